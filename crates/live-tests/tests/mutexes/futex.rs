//! A mutex of the kernel with priority inheritance.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex::{self, Flags};
use rustix::thread::gettid;

/// A futex with priority inheritance, of the threads of this process.
#[derive(Debug, Default)]
pub struct InheritingMutex {
    /// The number of the thread that holds it, and the kernel's bits.
    word: AtomicU32,
}

impl InheritingMutex {
    /// # Errors
    /// If the kernel refuses, as where the thread holds it already.
    pub fn lock(&self) -> Result<(), String> {
        let taken = self
            .word
            .compare_exchange(0, own(), Ordering::Acquire, Ordering::Relaxed);
        match taken {
            Ok(_) => Ok(()),
            Err(_) => {
                futex::lock_pi(&self.word, Flags::PRIVATE, None).map_err(|error| error.to_string())
            }
        }
    }

    /// # Errors
    /// If another thread holds it.
    pub fn unlock(&self) -> Result<(), String> {
        let freed = self
            .word
            .compare_exchange(own(), 0, Ordering::Release, Ordering::Relaxed);
        match freed {
            Ok(_) => Ok(()),
            Err(_) => {
                futex::unlock_pi(&self.word, Flags::PRIVATE).map_err(|error| error.to_string())
            }
        }
    }
}

/// The number of the calling thread.
fn own() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}
