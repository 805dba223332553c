//! `shiftwork policies`: the names, what they are, where they come from and what they take.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_policy::registry::{Entry, Invariant, OrderName};

use crate::catalogue;
use crate::failure::{Answer, Failure};
use crate::json::SCHEMA_VERSION;
use crate::output::Console;
use crate::verb::chosen;

/// What `policies --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PoliciesOutput {
    schema_version: u64,
    policies: Vec<PolicyOutput>,
}

/// One policy of [`PoliciesOutput`].
#[derive(Debug, Serialize, JsonSchema)]
struct PolicyOutput {
    /// The name, as it is published; names are accepted in any case.
    name: &'static str,
    /// What it is, in a line.
    summary: &'static str,
    /// Which task sets it takes.
    domain: &'static str,
    /// By what it ranks jobs: `edf` or `fp`.
    order: &'static str,
    /// Which invariant it keeps: `weak`, `strong`, `packed`, `non-preemptive`, `at quanta` or
    /// `push and pull`.
    invariant: &'static str,
    /// Where it comes from.
    source: &'static str,
    /// Which keys of `[platform]` the simulator models under this policy and ignores under others.
    models: &'static [&'static str],
}

/// What says how fast CPUs are.
const SPEED: &[&str] = &["capacities", "frequency"];

impl From<&Entry> for PolicyOutput {
    fn from(entry: &Entry) -> Self {
        Self {
            name: entry.name,
            summary: entry.summary,
            domain: entry.domain,
            order: match entry.order {
                OrderName::Edf => "edf",
                OrderName::FixedPriority => "fp",
            },
            invariant: match entry.invariant {
                Invariant::Weak => "weak",
                Invariant::Strong => "strong",
                Invariant::Packed => "packed",
                Invariant::NonPreemptive => "non-preemptive",
                Invariant::Quanta => "at quanta",
                Invariant::PushPull => "push and pull",
            },
            source: entry.source,
            models: if chosen::models_speed(entry) {
                SPEED
            } else {
                &[]
            },
        }
    }
}

/// Lists the policies.
pub fn run(console: &mut Console) -> Result<Answer, Failure> {
    let policies: Vec<PolicyOutput> = catalogue::policies().map(PolicyOutput::from).collect();
    if console.json {
        console.json_line(&PoliciesOutput {
            schema_version: SCHEMA_VERSION,
            policies,
        })?;
        return Ok(Answer::Yes);
    }
    let width = policies
        .iter()
        .map(|policy| policy.name.len())
        .max()
        .unwrap_or(0);
    for policy in &policies {
        console.line(format!("{:width$}  {}", policy.name, policy.summary))?;
        console.line(format!("{:width$}  takes: {}", "", policy.domain))?;
        console.line(format!("{:width$}  source: {}", "", policy.source))?;
        if !policy.models.is_empty() {
            let models = policy.models.join(", ");
            console.line(format!("{:width$}  models: {models}", ""))?;
        }
    }
    Ok(Answer::Yes)
}
