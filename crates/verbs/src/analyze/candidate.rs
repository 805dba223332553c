//! Which policies are looked at, and where each binds the tasks.

use shiftwork_analysis::verdicts::{Candidate, POLICIES, Rule};
use shiftwork_model::{Affinity, TaskSet};

use super::error::QuestionError;
use crate::catalogue;

/// A policy of which something is known, by its name in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// How it schedules.
    pub rule: Rule,
}

/// The policy with this name, in any case.
///
/// # Errors
/// If there is no such policy, or nothing is known of it.
pub fn named(name: &str) -> Result<Named, QuestionError> {
    let known = POLICIES
        .iter()
        .find(|known| known.eq_ignore_ascii_case(name));
    let name = match (known, catalogue::find(name)) {
        (Some(known), _) => (*known).to_owned(),
        (None, Ok(entry)) => entry.name.to_owned(),
        (None, Err(error)) => return Err(QuestionError::Policy(error)),
    };
    match Rule::of_policy(&name) {
        Some(rule) => Ok(Named { name, rule }),
        None => Err(QuestionError::NoTest(name)),
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
