//! Whether a task set is admitted under a policy: one answer, in the same words, for every verb.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shiftwork_analysis::admission::{Decision, Terms, Verdict, admit};
use shiftwork_model::{Affinity, Budgets, PolicyTraits, Preemption, TaskSet};
use shiftwork_policy::registry::Entry;

/// What admission says of a task set under a policy. Shown as `admission under POLICY: VERDICT: REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    policy: String,
    decision: Decision,
}

impl Admission {
    /// Decides on the task set with each task bound to these CPUs. `Err`: why the policy does not take the set, which
    /// is a refusal for that reason. So is a policy of which no condition is known.
    pub fn of(policy: &Entry, set: &TaskSet, bound: Result<&[Affinity], &str>) -> Self {
        let traits = &policy.traits;
        let decision = match (Terms::of(traits, set), bound) {
            (_, Err(outside)) => Decision::refused(outside.to_owned()),
            (Some(terms), Ok(bound)) => admit(set, bound, terms),
            (None, Ok(_)) => Decision::unguaranteed(why_nothing_is_guaranteed(traits)),
        };
        Self {
            policy: policy.name.to_owned(),
            decision,
        }
    }

    /// The verdict.
    pub const fn verdict(&self) -> Verdict {
        self.decision.verdict()
    }

    /// Whether the task set is admitted, which is never without a guarantee.
    pub const fn is_admitted(&self) -> bool {
        matches!(self.verdict(), Verdict::Admitted(_))
    }

    /// The same for programs; `best_effort`: whether the set runs although it is refused, as the user asked.
    pub fn output(&self, best_effort: bool) -> AdmissionOutput {
        AdmissionOutput {
            policy: self.policy.clone(),
            verdict: self.verdict().name().to_owned(),
            guarantee: self.decision.guarantee.name().to_owned(),
            reason: self.decision.reason.clone(),
            best_effort: best_effort.then_some(true),
        }
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "admission under {}: {}", self.policy, self.decision)
    }
}

/// What admission says, the reserve included.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdmissionOutput {
    /// The policy.
    policy: String,
    /// `admitted` or `refused`.
    verdict: String,
    /// `hard`, `bounded-tardiness` or `share`; `none` exactly if the verdict is `refused`.
    guarantee: String,
    /// For people.
    reason: String,
    /// True if the task set ran although it was refused (`run --best-effort`); otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    best_effort: Option<bool>,
}

/// Why nothing is guaranteed under a policy like this, in a sentence without its end; for policies
/// of which admission knows no condition.
pub const fn why_nothing_is_guaranteed(policy: &PolicyTraits) -> &'static str {
    match (policy.budgets, policy.preemption) {
        (Budgets::AsLinux, _) => {
            "Linux only adds up the utilizations, and that does not bound tardiness under SCHED_DEADLINE as it \
             is (docs/sched-deadline.md says why); `dl-sp` is the same with four repairs, and has a condition \
             under which it is bounded"
        }
        (_, Preemption::AtQuanta(_)) => {
            "jobs wait for the next quantum to begin, and so does a CPU that is free, of which no condition takes \
             account; `CEm` and `CE1` decide at once, and have one"
        }
        _ => "admission knows no condition for this policy, whatever single tests show",
    }
}
