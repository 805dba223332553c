//! A futex word: threads wait for changes of it without a lock, so threads that are woken together do not wait for
//! each other.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{self, Flags};

use super::clock::{monotonic_ns, timespec};

/// A futex word: its owner changes it, and other threads wait for that.
#[derive(Debug, Default)]
pub struct Word(AtomicU32);

impl Word {
    /// A word with this value.
    pub const fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    /// The value. Writes before the change to that value are visible to the caller.
    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Changes the value and wakes all waiting threads.
    pub fn set(&self, value: u32) {
        self.0.store(value, Ordering::Release);
        self.wake();
    }

    /// Changes the value if it is `from`. Whether it was. Wakes no thread.
    ///
    /// A word may have several owners if all of them change it only in this way.
    pub fn change(&self, from: u32, to: u32) -> bool {
        let exchanged = self
            .0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        exchanged.is_ok()
    }

    /// Wakes all waiting threads, which check the value again.
    pub fn wake(&self) {
        // It fails only for an unaligned or unmapped address; this one is valid.
        let _ = futex::wake(&self.0, Flags::PRIVATE, i32::MAX as u32);
    }

    /// Returns once the value is not `value`.
    pub fn wait_while(&self, value: u32) {
        while self.get() == value {
            // After a signal or a change in between the loop checks again.
            let _ = futex::wait(&self.0, Flags::PRIVATE, value, None);
        }
    }

    /// Returns at this instant of the monotonic clock, or once the value is not `value`.
    pub fn wait_until(&self, value: u32, at_ns: u64) {
        let at = timespec(at_ns);
        while self.get() == value && monotonic_ns() < at_ns {
            // After a timeout, a signal or a change in between the loop checks again.
            let _ = futex::wait_bitset(&self.0, Flags::PRIVATE, value, Some(&at), NonZeroU32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_wakes_all_waiting_threads() {
        let word = Word::new(0);
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        word.wait_while(0);
                        word.get()
                    })
                })
                .collect();
            word.set(7);
            for waiter in waiters {
                assert_eq!(waiter.join().unwrap(), 7);
            }
        });
    }

    #[test]
    fn change_requires_the_expected_value() {
        let word = Word::new(3);
        assert!(!word.change(4, 5));
        assert!(word.change(3, 5));
        word.wake();
        assert_eq!(word.get(), 5);
    }

    #[test]
    fn wait_ends_at_its_instant_or_with_a_change() {
        let word = Word::new(1);
        let at = monotonic_ns() + 2_000_000;
        word.wait_until(1, at);
        assert!(monotonic_ns() >= at);
        // The instant never comes: only the value ends the wait.
        word.wait_until(0, u64::MAX);
    }
}
