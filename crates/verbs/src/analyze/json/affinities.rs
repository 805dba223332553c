//! Affinities that are proposed, and what those of the file take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shiftwork_analysis::affinity::AffinityLoss;
use shiftwork_analysis::verdicts::Factor;
use shiftwork_model::{TaskId, TaskSet};

use crate::analyze::proposal::Proposal;

/// Affinities that are proposed.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssignmentOutput {
    policy: String,
    /// What the policy promises with them: `hard` or `bounded-tardiness`; null if none were found.
    guarantee: Option<String>,
    /// Whether some task gets CPUs that its file does not give it.
    wider: bool,
    /// Empty if none were found.
    tasks: Vec<AssignedOutput>,
}

/// The affinity that is proposed for one task.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AssignedOutput {
    name: String,
    /// A list of CPUs, as task-set files take it.
    affinity: String,
}

/// By how much all costs could grow with the affinities of the file and without, beside the reserve, whatever the policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AffinityLossOutput {
    /// The largest factor on all costs with which the utilizations fit, a reduced fraction; rounded down to a millionth if it is very long.
    factor: String,
    /// The same if every task could use every CPU.
    factor_without: String,
    /// Null if affinities take nothing.
    bottleneck: Option<BottleneckOutput>,
    /// The best change for one task, then that for all tasks with one affinity if it is better; empty if none helps, or
    /// none was found.
    changes: Vec<WideningOutput>,
}

/// Tasks that may run only on these CPUs and, with the factor, use them up.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BottleneckOutput {
    tasks: Vec<String>,
    /// A list of CPUs, as task-set files take it.
    cpus: String,
}

/// One CPU more for some tasks.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WideningOutput {
    tasks: Vec<String>,
    /// The CPU that they may use as well.
    cpu: u64,
    /// The largest factor then.
    factor: String,
}

/// What is proposed.
pub fn assignment(set: &TaskSet, proposal: &Proposal) -> AssignmentOutput {
    let found = proposal.assignment.as_ref();
    let cpus = found.map_or(&[][..], |found| &found.cpus);
    let tasks = set.tasks.iter().zip(cpus);
    AssignmentOutput {
        policy: proposal.policy.clone(),
        guarantee: found.map(|found| found.guarantee.name().to_owned()),
        wider: proposal.is_wider,
        tasks: tasks
            .map(|(task, cpus)| AssignedOutput {
                name: task.name.clone(),
                affinity: cpus.to_string(),
            })
            .collect(),
    }
}

/// What affinities take.
pub fn affinity_loss(set: &TaskSet, found: &AffinityLoss) -> AffinityLossOutput {
    let names = |tasks: &[TaskId]| {
        let names = tasks
            .iter()
            .map(|task| set.tasks[task.index()].name.clone());
        names.collect()
    };
    let changes = found.changes.iter().map(|change| WideningOutput {
        tasks: names(&change.tasks),
        cpu: change.cpu.index() as u64,
        factor: Factor::of(&change.factor).to_string(),
    });
    AffinityLossOutput {
        factor: Factor::of(&found.factor).to_string(),
        factor_without: Factor::of(&found.without).to_string(),
        bottleneck: found.bottleneck.as_ref().map(|one| BottleneckOutput {
            tasks: names(&one.tasks),
            cpus: one.cpus.to_string(),
        }),
        changes: changes.collect(),
    }
}
