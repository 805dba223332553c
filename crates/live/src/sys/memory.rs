//! Memory that is present when it is needed.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::disable_transparent_huge_pages;

/// Locks all memory of this process, present and future.
///
/// # Errors
/// Without the privilege, if the process needs more than `ulimit -l` allows.
pub(crate) fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Keeps the kernel from replacing pages of this process by huge ones, or lets it again. While it copies them, its thread
/// (ordinary work) locks the address space, and a thread that touches them sleeps for milliseconds, locked memory or not.
///
/// # Errors
/// On a kernel without huge pages.
pub(crate) fn allow_huge_pages(allow: bool) -> io::Result<()> {
    Ok(disable_transparent_huge_pages(!allow)?)
}

/// Touches this thread's stack below the caller, so that the first job causes no page faults.
pub(crate) fn touch_stack() {
    const BYTES: usize = 32 << 10;
    let mut below = [0_u8; BYTES];
    // Keeps the compiler from removing the unread array.
    std::hint::black_box(&mut below);
}
