//! Memory that is there when it is needed.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};

/// Keeps all memory of this process, present and to come, from being paged out.
///
/// # Errors
/// Without the privilege, where `ulimit -l` is less than the process takes.
pub(crate) fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Touches this thread's stack below the caller, so that the first job does not fault it in.
pub(crate) fn touch_stack() {
    const BYTES: usize = 32 << 10;
    let mut below = [0_u8; BYTES];
    // Nobody may see that nobody reads it.
    std::hint::black_box(&mut below);
}
