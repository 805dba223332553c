//! Memory that is present when it is needed.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};

/// Locks all memory of this process, present and future.
///
/// # Errors
/// Without the privilege, if the process needs more than `ulimit -l` allows.
pub(crate) fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Touches this thread's stack below the caller, so that the first job causes no page faults.
pub(crate) fn touch_stack() {
    const BYTES: usize = 32 << 10;
    let mut below = [0_u8; BYTES];
    // Keeps the compiler from removing the unread array.
    std::hint::black_box(&mut below);
}
