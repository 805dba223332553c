//! Which task sets SCHED_DEADLINE takes.

use alloc::boxed::Box;

use shiftwork_model::{CpuSet, Task};

use crate::error::PolicyError;

/// What the policies named `name` take.
pub(super) fn check_domain(
    name: &'static str,
    task: &Task,
    clusters: &[CpuSet],
    semi_partitioned: bool,
) -> Result<(), PolicyError> {
    if task.deadline > task.period {
        return Err(PolicyError::LateDeadline {
            policy: name,
            task: task.name.clone(),
        });
    }
    let cpus = *task.affinity.cpus();
    let within = |cluster: &&CpuSet| (cpus - **cluster).is_empty();
    let Some(cluster) = clusters.iter().find(within) else {
        return Err(PolicyError::NotInCluster {
            policy: name,
            task: task.name.clone(),
            affinity: Box::new(task.affinity),
            clusters: clusters.to_vec(),
        });
    };
    if semi_partitioned && cpus.len() != 1 && cpus != *cluster {
        return Err(PolicyError::NotSemiPartitioned {
            policy: name,
            task: task.name.clone(),
            affinity: Box::new(task.affinity),
            cluster: Box::new(*cluster),
        });
    }
    Ok(())
}
