//! What is known of the releases in the file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::analyze::found::Findings;

/// Whether all deadlines are met if tasks release their jobs as the file says.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AsWrittenOutput {
    policy: String,
    /// `schedulable`, `unschedulable` or `unknown`.
    verdict: String,
    /// The tests of sporadic tasks that show it, `feasibility`, or `simulation`; empty if nothing decides.
    by: Vec<String>,
    /// The simulation that decides covers the time from zero to there; null if none does.
    until_ns: Option<u64>,
    /// Which deadline is missed, or why nothing decides, for people; null if all deadlines are met.
    reason: Option<String>,
}

/// One entry for each policy, in their order.
pub fn as_written(findings: &Findings) -> Vec<AsWrittenOutput> {
    let policies = findings.analysis.policies.iter().zip(&findings.as_written);
    let output = policies.map(|(found, known)| AsWrittenOutput {
        policy: found.policy.clone(),
        verdict: known.answer.name().to_owned(),
        by: known.by.iter().map(|&by| by.to_owned()).collect(),
        until_ns: known.until.map(|until| until.as_ns()),
        reason: known.reason.clone(),
    });
    output.collect()
}
