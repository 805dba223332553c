//! Whether any scheduler at all could meet the deadlines of a task set.

use shiftwork_model::{Task, TaskSet};

use super::{Crowd, Groups};
use crate::Witness;
use crate::exact::{Rate, whole};

/// Whether some scheduler, however clever, meets all deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feasible {
    /// Some scheduler does.
    Yes,
    /// None does.
    No,
    /// No condition decides.
    Unknown,
}

impl Feasible {
    /// The name in JSON: `yes`, `no` or `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// An answer, what it rests on, and for a "no" what shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasibility {
    /// The answer.
    pub verdict: Feasible,
    /// `flow` or `laminar` (the sums of utilizations), `flow-density` or `laminar-density` (those of
    /// densities), or `task` if one task cannot be, whatever the others do; or the test that shows that a policy meets all
    /// deadlines.
    pub by: &'static str,
    /// The tasks that do not fit, and their CPUs.
    pub witness: Option<Witness>,
}

/// Whether the task set is feasible on its platform at full speed; the reserve does not count.
///
/// Exact if no deadline is before the end of the period: the utilizations must fit, and then a
/// schedule exists that meets even implicit deadlines. With a shorter deadline somewhere, utilizations
/// that do not fit still mean "no"; densities (C / min(D, T)) that fit mean "yes", since each task is
/// then one with the deadline as its period that comes less often; anything between is unknown.
///
/// # Assumes
/// Sporadic tasks, independent, no self-suspension, CPUs alike.
pub fn feasibility(set: &TaskSet) -> Feasibility {
    let answer = |verdict, by, witness| Feasibility {
        verdict,
        by,
        witness,
    };
    if let Some(witness) = impossible_alone(set) {
        return answer(Feasible::No, "task", Some(witness));
    }
    let by_utilization = groups(set, |task| Rate::new(task.cost, task.period));
    let (crowd, by) = by_utilization.shortage(whole());
    if let Some(crowd) = crowd {
        let witness = by_utilization.witness(&crowd, whole());
        return answer(Feasible::No, by.name(), Some(witness));
    }
    if set.tasks.iter().all(|task| task.deadline >= task.period) {
        return answer(Feasible::Yes, by.name(), None);
    }
    let by_density = groups(set, |task| {
        Rate::new(task.cost, task.deadline.min(task.period))
    });
    let (crowd, by): (Option<Crowd>, _) = by_density.shortage(whole());
    let by = match by {
        super::By::Flow => "flow-density",
        super::By::Laminar => "laminar-density",
    };
    let verdict = match crowd {
        None => Feasible::Yes,
        Some(_) => Feasible::Unknown,
    };
    answer(verdict, by, None)
}

/// A task that cannot be, that has no CPU of the platform, or that is too much for one CPU.
fn impossible_alone(set: &TaskSet) -> Option<Witness> {
    set.iter().find_map(|(id, task)| {
        let density = match Rate::new(task.cost, task.deadline.min(task.period)) {
            Some(density) if !task.cost.is_zero() => density,
            _ => return Some(Witness::NoTask { task: id }),
        };
        if !task.affinity.cpus().intersects(&set.platform.all()) {
            return Some(Witness::Nowhere { task: id });
        }
        density.exceeds_one().then_some(Witness::Alone {
            task: id,
            needed: density,
        })
    })
}

fn groups(set: &TaskSet, rate: impl Fn(&Task) -> Option<Rate>) -> Groups {
    let mut groups = Groups::default();
    for (id, task) in set.iter() {
        let cpus = *task.affinity.cpus() & set.platform.all();
        groups.add(id, cpus, rate(task).expect("no task has a period of zero"));
    }
    groups
}
