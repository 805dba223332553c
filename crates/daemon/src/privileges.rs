//! What the agent may do once its scheduler is loaded: what its work takes, whoever started it.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};

/// `BPF` to call what was loaded, `SYS_NICE` to change how threads of others are scheduled, `KILL` to warn them, `IPC_LOCK` for
/// memory that is locked already. Loading, and giving the socket to a group, took others.
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::IPC_LOCK);

/// The calling thread, and those that it begins from now on, can do nothing else any more, nor get it back by starting a program.
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
