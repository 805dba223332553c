//! What is known of cause-effect chains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shiftwork_model::{Span, TaskSet};

use crate::analyze::found::Findings;

/// What is known of the chains under one policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainsOutput {
    policy: String,
    /// Which overheads are taken into account: `worst` or `average`; null: none.
    overheads: Option<String>,
    chains: Vec<ChainOutput>,
}

/// What is known of one chain.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChainOutput {
    name: String,
    /// No reaction time and no data age is longer; null if nothing is known.
    bound_ns: Option<u64>,
    /// Null if any reaction time is wanted.
    reaction: Option<RequirementOutput>,
    /// Null if any data age is wanted.
    age: Option<RequirementOutput>,
    /// No end-to-end latency is longer; null if nothing is known, or not every task triggers the next.
    latency_bound_ns: Option<u64>,
    /// Null if any end-to-end latency is wanted.
    latency: Option<RequirementOutput>,
}

/// What is known of one requirement.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RequirementOutput {
    wanted_ns: u64,
    /// `met` (always) or `unknown`.
    verdict: String,
}

/// One entry for each policy, in their order; `None` without chains.
pub fn chains(set: &TaskSet, findings: &Findings) -> Option<Vec<ChainsOutput>> {
    if set.chains.is_empty() {
        return None;
    }
    let of_policy = findings.accounted().map(|(found, account)| {
        let bounds = findings.chains(set, found).into_iter();
        let chains = set.chains.iter().zip(bounds).map(|(chain, known)| {
            let output = |wanted: Span, verdict: &str| RequirementOutput {
                wanted_ns: wanted.as_ns(),
                verdict: verdict.to_owned(),
            };
            let requirement = |wanted: Span| output(wanted, known.verdict(wanted));
            let latency = |wanted: Span| output(wanted, known.latency_verdict(wanted));
            ChainOutput {
                name: chain.name.clone(),
                bound_ns: known.bound.map(Span::as_ns),
                reaction: chain.reaction.map(requirement),
                age: chain.age.map(requirement),
                latency_bound_ns: known.latency.map(Span::as_ns),
                latency: chain.latency.map(latency),
            }
        });
        ChainsOutput {
            policy: found.policy.clone(),
            overheads: account.best.map(|table| table.name().to_owned()),
            chains: chains.collect(),
        }
    });
    Some(of_policy.collect())
}
