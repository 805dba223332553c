//! Which policies are looked at, and where each binds the tasks.

use shiftwork_analysis::verdicts::{Candidate, POLICIES, Rule, analyse, left_out};
use shiftwork_model::{Affinity, TaskSet};
use shiftwork_report::Bound;

use crate::catalogue;
use crate::failure::Failure;

/// A policy of which something is known, by its name in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub rule: Rule,
}

/// The policy with this name, in any case.
///
/// # Errors
/// If there is no such policy, or nothing is known of it.
pub fn named(name: &str) -> Result<Named, Failure> {
    let known = POLICIES
        .iter()
        .find(|known| known.eq_ignore_ascii_case(name));
    let name = match (known, catalogue::find(name)) {
        (Some(known), _) => (*known).to_owned(),
        (None, Ok(entry)) => entry.name.to_owned(),
        (None, Err(error)) => return Err(Failure::input(error)),
    };
    match Rule::of_policy(&name) {
        Some(rule) => Ok(Named { name, rule }),
        None => Err(Failure::input(format_args!(
            "no test speaks of {name}; there are tests for {}",
            POLICIES.join(" ")
        ))),
    }
}

/// All policies of which tests speak, baselines and other builds of the same rules left out.
pub fn all() -> Vec<Named> {
    let named = |name: &&str| Named {
        name: (*name).to_owned(),
        rule: Rule::of_policy(name).expect("every listed policy has a rule"),
    };
    POLICIES.iter().map(named).collect()
}

/// The policy with the CPUs to which it binds the tasks of this set.
pub fn candidate(named: &Named, set: &TaskSet) -> Candidate {
    Candidate {
        policy: named.name.clone(),
        rule: named.rule,
        bound: bound(named, set),
    }
}

fn bound(named: &Named, set: &TaskSet) -> Result<Vec<Affinity>, String> {
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    let entry = catalogue::find(&named.name).map_err(|error| error.to_string())?;
    let policy = entry.build(set).map_err(|error| error.to_string())?;
    Ok(policy.packing().unwrap_or_else(own))
}

/// Bounds on the response times of all tasks under the policy with this name, for a page about a run of
/// them; none if nothing is known, or if the task set says more than tests take into account.
pub fn bounds(set: &TaskSet, policy: &str, steps: u64) -> Vec<Option<Bound>> {
    let Ok(named) = named(policy) else {
        return Vec::new();
    };
    if !left_out(set).is_empty() || set.scheduler.reserve_server {
        return Vec::new();
    }
    let analysis = analyse(set, &[candidate(&named, set)], steps);
    let best = analysis.policies.into_iter().flat_map(|found| found.best);
    best.map(|best| {
        best.map(|best| Bound {
            response: best.response,
            by: best.by,
        })
    })
    .collect()
}
