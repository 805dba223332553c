//! What threads share: a spin lock and the atomics of `std`, or those of the model checker when it looks
//! at the same code (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::atomic;
#[cfg(not(all(loom, test)))]
use std::sync::{Mutex, MutexGuard};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::atomic;
#[cfg(all(loom, test))]
use loom::sync::{Mutex, MutexGuard};

/// A lock that spins: what it guards is held for less time than going to sleep takes.
///
/// After a while it yields, because here the holder may itself have lost its CPU, which kernels exclude.
/// Nobody ever sleeps on it, so that releasing it is never a system call.
#[derive(Debug)]
pub(crate) struct Lock<T>(Mutex<T>);

/// Whoever has it holds the lock.
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

    /// The model checker knows that whoever waits can only go on once somebody released.
    #[cfg(all(loom, test))]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The model checker's own attempt waits like a lock, and so finds deadlocks that are none: there an
    /// attempt never succeeds. Whoever makes one has another way then.
    #[cfg(all(loom, test))]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        None
    }

    /// `None` if somebody holds the lock.
    #[cfg(not(all(loom, test)))]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::WouldBlock) => None,
            // Whoever panicked is reported by that panic; the others need not follow.
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        }
    }
}

/// On a cache line of its own, so that one side's writing does not slow down the other's reading. Two
/// lines, in fact: processors fetch the neighbour as well.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Lets others go on when nothing can be done before they have.
pub(crate) fn wait_a_moment() {
    #[cfg(not(all(loom, test)))]
    std::thread::yield_now();
    #[cfg(all(loom, test))]
    loom::thread::yield_now();
}
