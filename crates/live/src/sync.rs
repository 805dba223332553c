//! Primitives of lock-free code: the atomics of `std` and the futex of this crate, or those of the model checker
//! (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(all(loom, test)))]
pub(crate) use std::sync::{Arc, atomic};

#[cfg(all(loom, test))]
pub(crate) use loom::sync::{Arc, atomic};

#[cfg(not(all(loom, test)))]
pub(crate) use crate::sys::word::Word;

#[cfg(all(loom, test))]
pub(crate) use model::Word;

/// Padded to cache lines of its own, so that writes of one side do not slow down reads of the other. Two
/// lines, because processors prefetch the neighbour.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

#[cfg(all(loom, test))]
mod model {
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};

    /// A model of the futex word: the comparison and the sleep happen under a lock, as in the kernel.
    /// Time does not pass, so no wait ends by a timeout.
    #[derive(Debug)]
    pub(crate) struct Word {
        value: AtomicU32,
        queue: Mutex<()>,
        woken: Condvar,
    }

    impl Word {
        pub(crate) fn new(value: u32) -> Self {
            Self {
                value: AtomicU32::new(value),
                queue: Mutex::new(()),
                woken: Condvar::new(),
            }
        }

        pub(crate) fn get(&self) -> u32 {
            self.value.load(Ordering::Acquire)
        }

        pub(crate) fn set(&self, value: u32) {
            self.value.store(value, Ordering::Release);
            self.wake();
        }

        pub(crate) fn change(&self, from: u32, to: u32) -> bool {
            let exchanged =
                self.value
                    .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
            exchanged.is_ok()
        }

        pub(crate) fn wake(&self) {
            let _queue = self.queue.lock().unwrap();
            self.woken.notify_all();
        }

        pub(crate) fn wait_while(&self, value: u32) {
            let mut queue = self.queue.lock().unwrap();
            while self.get() == value {
                queue = self.woken.wait(queue).unwrap();
            }
        }

        pub(crate) fn wait_until(&self, value: u32, _at_ns: u64) {
            self.wait_while(value);
        }
    }
}
