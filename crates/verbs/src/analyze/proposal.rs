//! Affinities with which a policy meets a criterion.

use shiftwork_analysis::admission::{Claim, Guarantee, Terms, claims};
use shiftwork_analysis::affinity::Bound;
use shiftwork_analysis::packing::{Assignment, assign};
use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_analysis::verdicts::Criterion;
use shiftwork_analysis::{Ranked, Sporadic, Steps};
use shiftwork_model::TaskSet;
use shiftwork_policy::registry::Entry;

use super::error::QuestionError;

/// Affinities for all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The policy.
    pub policy: String,
    /// `None` if none were found.
    pub assignment: Option<Assignment>,
    /// Whether some task gets CPUs that its file does not give it.
    pub is_wider: bool,
}

/// Proposes affinities within those of the file with which the policy meets the criterion; if there are none, any
/// with which it does; else with which it guarantees anything, within those of the file if possible.
///
/// # Errors
/// If no condition is known under which the policy guarantees anything.
pub(super) fn proposal(
    entry: &Entry,
    set: &TaskSet,
    criterion: Criterion,
    steps: u64,
) -> Result<Proposal, QuestionError> {
    let terms = Terms::new(&entry.traits, set.scheduler.reserve)
        .ok_or(QuestionError::NoProposal(entry.name))?;
    let all = set.platform.all();
    // Which tasks share mutexes, and so what stands for them, depends on affinities.
    let stand_ins = match set.first_locking() {
        Some(_) => StandIns::Unknown,
        None => StandIns::of(set, &entry.traits),
    };
    let set = match &stand_ins {
        StandIns::Same => set,
        StandIns::Other(others) => &others.set,
        StandIns::Unknown => {
            return Ok(Proposal {
                policy: entry.name.to_owned(),
                is_wider: false,
                assignment: None,
            });
        }
    };
    let claims = claims(set, &[]);
    let tasks = |widen: bool| -> Vec<Bound> {
        let bound = |claim: &Claim| Bound {
            ranked: Ranked {
                task: Sporadic {
                    cost: claim.cost,
                    period: claim.period,
                    deadline: claim.deadline,
                },
                priority: claim.priority,
            },
            cpus: if widen { all } else { claim.cpus },
        };
        claims.iter().map(bound).collect()
    };
    let search = |widen| assign(&tasks(widen), &all, terms, &mut Steps::at_most(steps));
    let wanted = match criterion {
        Criterion::Hard => Guarantee::Hard,
        Criterion::Soft => Guarantee::BoundedTardiness,
    };
    let meets = |found: &Assignment| found.guarantee >= wanted;
    let (assignment, is_wider) = match search(false) {
        Some(within) if meets(&within) => (Some(within), false),
        within => match search(true) {
            Some(wider) if within.is_none() || meets(&wider) => (Some(wider), true),
            _ => (within, false),
        },
    };
    Ok(Proposal {
        policy: entry.name.to_owned(),
        is_wider,
        assignment,
    })
}
