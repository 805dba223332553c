//! Global scheduling: the m most urgent jobs run, anywhere.

use shiftwork_model::TaskSet;

use super::support::domains::{Domains, Preemption};
use crate::error::PolicyError;
use crate::order::JobOrder;

/// The most urgent jobs run, on any CPU (Brandenburg et al., RTSS 2008). Takes tasks that may use
/// every CPU.
///
/// # Errors
/// If a task may not use every CPU.
pub(crate) fn global<O: JobOrder>(
    name: &'static str,
    set: &TaskSet,
) -> Result<Domains<O>, PolicyError> {
    Domains::new(
        name,
        set,
        alloc::vec![set.platform.all()],
        Preemption::Allowed,
    )
}

/// The same, but a running job keeps its CPU until it completes or blocks. At the end of every instant the
/// most urgent waiting jobs take the CPUs that are free, whatever the order of the instant's events.
///
/// # Errors
/// If a task may not use every CPU.
pub(crate) fn non_preemptive_global<O: JobOrder>(
    name: &'static str,
    set: &TaskSet,
) -> Result<Domains<O>, PolicyError> {
    Domains::new(
        name,
        set,
        alloc::vec![set.platform.all()],
        Preemption::Never,
    )
}
