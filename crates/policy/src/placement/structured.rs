//! Global scheduling as it is built: the same decisions, and a CPU that is kept for interrupts.

use shiftwork_model::{Structure, TaskSet};

use super::quanta::served_cpus;
use super::support::domains::{Domains, Preemption};
use crate::error::PolicyError;
use crate::order::JobOrder;

/// The most urgent jobs run, on any CPU that runs jobs under this structure (Brandenburg and Anderson,
/// RTSS 2009: CEm, HEm, FEm, CE1, FE1).
///
/// # Errors
/// If a task may not use every CPU, or no CPU is left for tasks.
pub(crate) fn structured_global<O: JobOrder>(
    name: &'static str,
    set: &TaskSet,
    structure: Structure,
) -> Result<Domains<O>, PolicyError> {
    let served = served_cpus(name, set, structure)?;
    Domains::new(name, set, alloc::vec![served], Preemption::Allowed)
}
