//! Clustered scheduling: global within each cluster.

use shiftwork_model::TaskSet;

use super::support::domains::{Domains, Preemption};
use crate::error::PolicyError;
use crate::order::JobOrder;

/// Every task is packed onto one cluster of the platform (first-fit decreasing, within its
/// affinity) and scheduled globally there (Brandenburg et al., RTSS 2008).
///
/// # Errors
/// If an affinity is no union of clusters.
pub(crate) fn clustered<O: JobOrder>(
    name: &'static str,
    set: &TaskSet,
) -> Result<Domains<O>, PolicyError> {
    Domains::new(
        name,
        set,
        set.platform.clusters_or_one(),
        Preemption::Allowed,
    )
}
