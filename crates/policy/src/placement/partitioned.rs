//! Partitioned scheduling: every task has its CPU.

use shiftwork_model::{CpuSet, TaskSet};

use super::support::domains::{Domains, Preemption};
use crate::error::PolicyError;
use crate::order::JobOrder;

/// Every task is packed onto one CPU (first-fit decreasing, within its affinity) and scheduled
/// there.
///
/// # Errors
/// If a task names a CPU that the platform does not have.
pub(crate) fn partitioned<O: JobOrder>(
    name: &'static str,
    set: &TaskSet,
) -> Result<Domains<O>, PolicyError> {
    let cpus = set.platform.all().iter().map(CpuSet::single).collect();
    Domains::new(name, set, cpus, Preemption::Allowed)
}
