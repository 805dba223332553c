//! Who holds each mutex, for threads that spin until they do.

use std::io;
use std::mem::offset_of;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use shiftwork_kernel_core::{MUTEXES_MAX, MutexNumber};

use super::skeleton::types::{bss, sw_mutex, sw_mutexes};

/// The memory of the programs, mapped once more to be read by any thread as long as this lives.
#[derive(Debug)]
pub(crate) struct MutexHolders {
    memory: *const bss,
}

#[expect(unsafe_code, reason = "shares a mapping")]
// SAFETY: the memory is only read, by volatile reads of single words.
unsafe impl Send for MutexHolders {}

#[expect(unsafe_code, reason = "shares a mapping")]
// SAFETY: as above.
unsafe impl Sync for MutexHolders {}

impl MutexHolders {
    /// Maps the memory of this map.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(super) fn new(map: BorrowedFd<'_>) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "maps shared memory")]
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let memory = unsafe {
            mmap(
                ptr::null_mut(),
                size_of::<bss>(),
                ProtFlags::READ,
                MapFlags::SHARED,
                map,
                0,
            )?
        };
        Ok(Self {
            memory: memory.cast(),
        })
    }

    /// The core's number of the task that holds the mutex; 0 if none does.
    pub(crate) fn holder(&self, mutex: MutexNumber) -> u16 {
        let index = usize::from(mutex.get()) % MUTEXES_MAX;
        let offset = offset_of!(bss, mutexes)
            + offset_of!(sw_mutexes, mutex)
            + index * size_of::<sw_mutex>()
            + offset_of!(sw_mutex, holder);
        super::read(self.memory.wrapping_byte_add(offset).cast())
    }
}

impl Drop for MutexHolders {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "unmaps shared memory")]
        // SAFETY: the mapping of `new`, which nothing reads any more. It fails only for other arguments.
        let _ = unsafe { munmap(self.memory.cast_mut().cast(), size_of::<bss>()) };
    }
}
