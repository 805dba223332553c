//! What is known of cause-effect chains under a policy.

use shiftwork_analysis::chains::{Known, chain_bound, latency_bound};
use shiftwork_analysis::verdicts::PolicyAnalysis;
use shiftwork_model::{Chain, Span, TaskSet};

use super::candidate::{candidate, named};
use super::found::Findings;

/// What is known of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainBound {
    /// No reaction time and no data age is longer; `None` if nothing is known.
    pub bound: Option<Span>,
    /// No end-to-end latency is longer; `None` if nothing is known, or not every task triggers the next.
    pub latency: Option<Span>,
}

impl ChainBound {
    /// Whether a reaction time or data age is shown to be as wanted: `met` or `unknown`.
    pub fn verdict(self, wanted: Span) -> &'static str {
        verdict(self.bound, wanted)
    }

    /// The same of an end-to-end latency.
    pub fn latency_verdict(self, wanted: Span) -> &'static str {
        verdict(self.latency, wanted)
    }
}

fn verdict(bound: Option<Span>, wanted: Span) -> &'static str {
    match bound {
        Some(bound) if bound <= wanted => "met",
        _ => "unknown",
    }
}

impl Findings {
    /// What is known of each chain of the task set under a policy, for the releases that the file states.
    pub fn chains(&self, set: &TaskSet, found: &PolicyAnalysis) -> Vec<ChainBound> {
        if set.chains.is_empty() {
            return Vec::new();
        }
        let best = found.best.iter().map(|best| best.map(|best| best.response));
        let responses: Vec<Option<Span>> = best.collect();
        // With overheads a job may start between a release and the end of its handling.
        let entry = named(&found.policy).ok();
        let bound = entry.filter(|_| self.overheads.is_none());
        let bound = bound.and_then(|entry| candidate(entry, set).bound.ok());
        let known = Known {
            set,
            responses: &responses,
            rules: bound.as_deref().map(|bound| (&found.traits, bound)),
        };
        let of = |chain: &Chain| ChainBound {
            bound: chain_bound(chain, known),
            latency: latency_bound(chain, set, &responses),
        };
        set.chains.iter().map(of).collect()
    }
}
