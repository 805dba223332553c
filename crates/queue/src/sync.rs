//! A spin lock and the atomics of `std`, or those of the model checker when it checks the same code
//! (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic;
#[cfg(not(all(loom, test)))]
use std::sync::{Mutex, MutexGuard};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic;
#[cfg(all(loom, test))]
use loom::sync::{Mutex, MutexGuard};

/// A spin lock: critical sections are shorter than a sleep.
///
/// After a while it yields, because in user space the holder may be preempted, which kernels exclude. No caller
/// sleeps on it, so that releasing it is never a system call.
#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

/// Proof that the lock is held; dropping it releases the lock.
pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;

/// Failed attempts before the first yield; the pause between two doubles up to this.
#[cfg(not(all(loom, test)))]
const PAUSES_MAX: u32 = 64;

impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Waits until the lock is free.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let mut pauses = 1;
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            if pauses > PAUSES_MAX {
                std::thread::yield_now();
            } else {
                (0..pauses).for_each(|_| std::hint::spin_loop());
                pauses *= 2;
            }
        }
    }

    /// The model checker's lock: it knows that a waiting thread can continue only after a release.
    #[cfg(all(loom, test))]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Always fails under the model checker, whose own attempt waits like a lock and reports false deadlocks.
    /// Callers have an alternative for a failed attempt.
    #[cfg(all(loom, test))]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        None
    }

    /// `None` if the lock is held.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::WouldBlock) => None,
            // The panic of the holder is reported already; other threads need not panic as well.
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        }
    }
}

/// Alignment against false sharing: two cache lines, because processors prefetch the adjacent line.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Yields to other threads when this one cannot continue before they do.
pub(crate) fn wait_a_moment() {
    #[cfg(not(all(loom, test)))]
    std::thread::yield_now();
    #[cfg(all(loom, test))]
    loom::thread::yield_now();
}
