//! Which policies are looked at, and where each binds the tasks.

use shiftwork_analysis::verdicts::Candidate;
use shiftwork_model::{Affinity, Budgets, Preemption, Role, TaskSet};
use shiftwork_policy::registry::Entry;

use super::error::QuestionError;
use crate::catalogue;

/// The policy with this name, in any case.
///
/// # Errors
/// If there is no such policy.
pub fn named(name: &str) -> Result<&'static Entry, QuestionError> {
    catalogue::find(name).map_err(QuestionError::Policy)
}

/// All policies of which tests speak, by placement, and Pfair last; baselines and other builds of the same rules
/// are left out.
pub fn all() -> Vec<&'static Entry> {
    let is_listed = |entry: &&Entry| {
        entry.traits.role == Role::Reference && entry.traits.budgets != Budgets::AsLinux
    };
    let mut all: Vec<_> = catalogue::policies().filter(is_listed).collect();
    all.sort_by_key(|entry| {
        let traits = &entry.traits;
        let is_pfair = matches!(traits.preemption, Preemption::Pfair(_));
        let placement = (!is_pfair).then_some(traits.placement);
        (is_pfair, placement, traits.preemption == Preemption::Never)
    });
    all
}

/// The policy with the CPUs to which it binds the tasks of this set.
pub fn candidate(entry: &Entry, set: &TaskSet) -> Candidate {
    Candidate {
        policy: entry.name.to_owned(),
        traits: entry.traits,
        bound: bound(entry, set),
    }
}

fn bound(entry: &Entry, set: &TaskSet) -> Result<Vec<Affinity>, String> {
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    let policy = entry.build(set).map_err(|error| error.to_string())?;
    Ok(policy.packing().unwrap_or_else(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_listed_once_by_placement() {
        let names: Vec<&str> = all().into_iter().map(|entry| entry.name).collect();
        assert_eq!(
            names,
            [
                "p-edf",
                "p-fp",
                "c-edf",
                "c-fp",
                "g-edf",
                "g-fp",
                "g-fl",
                "edzl",
                "llf",
                "np-g-edf",
                "np-g-fp",
                "weak-edf",
                "weak-fp",
                "strong-edf",
                "strong-fp",
                "hpa-edf",
                "hpa-fp",
                "dl-sp",
                "pd2",
                "s-pd2",
                "c-pd2",
                "cs-pd2",
            ]
        );
    }
}
