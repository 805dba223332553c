//! The capabilities that the daemon keeps once its scheduler is loaded: those that it needs, also if root started it.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// `BPF` to call the loaded programs, `SYS_NICE` to set scheduling parameters of other users' threads, `KILL` to signal their
/// overruns, `IPC_LOCK` for memory that is locked already. Others were needed only to load the scheduler and to set the
/// group of the socket.
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::IPC_LOCK);

/// Drops all other capabilities of the calling thread and of the threads that it creates from now on. Executing a program
/// does not restore them.
///
/// # Errors
/// Those of the system calls.
pub(crate) fn drop_others() -> io::Result<()> {
    let has = capabilities(None)?;
    set_no_new_privs(true)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: has.effective & KEPT,
            permitted: has.permitted & KEPT,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}
