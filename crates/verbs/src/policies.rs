//! What `policies` says, for programs.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_model::Budgets;
use shiftwork_policy::registry::Entry;
use shiftwork_trace::SCHEMA_VERSION;

use crate::catalogue;

/// What `policies --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PoliciesOutput {
    schema_version: u64,
    /// All of them.
    pub policies: Vec<PolicyOutput>,
}

/// One policy of [`PoliciesOutput`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct PolicyOutput {
    /// The name, as it is published; names are accepted in any case.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Which task sets it takes.
    pub domain: &'static str,
    /// By what it ranks jobs: `edf`, `fp`, `fl`, `edzl` or `llf`.
    pub order: &'static str,
    /// Which invariant it keeps: `weak`, `strong`, `packed`, `non-preemptive`, `at quanta` or
    /// `push and pull`.
    pub invariant: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Which keys of `[platform]` the simulator models under this policy and ignores under others.
    pub models: &'static [&'static str],
}

/// What says how fast CPUs are.
const SPEED: &[&str] = &["capacities", "frequency"];

impl From<&Entry> for PolicyOutput {
    fn from(entry: &Entry) -> Self {
        Self {
            name: entry.name,
            summary: entry.summary,
            domain: entry.domain,
            order: entry.traits.order.name(),
            invariant: entry.traits.invariant.name(),
            source: entry.source,
            models: if models_speed(entry) { SPEED } else { &[] },
        }
    }
}

/// All policies.
pub fn output() -> PoliciesOutput {
    PoliciesOutput {
        schema_version: SCHEMA_VERSION,
        policies: catalogue::policies().map(PolicyOutput::from).collect(),
    }
}

/// Whether the simulator models speeds of CPUs under the policy, as `capacities` and `frequency` give
/// them: where it does as `SCHED_DEADLINE` does.
pub fn models_speed(entry: &Entry) -> bool {
    entry.traits.budgets != Budgets::OfJobs
}
