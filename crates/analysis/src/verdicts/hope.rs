//! What may still be shown of a part, before any test is asked.

use super::catalogue::Criterion;
use super::ground::{Ground, overload};
use crate::Sporadic;
use crate::response::demand_fits;

/// What may still be shown of tasks, judged by sums of utilizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hope {
    /// Nothing: the demand does not fit, or something is no task.
    None,
    /// That tardiness is bounded; some task alone cannot meet its deadline.
    Soft,
    /// Anything.
    All,
}

impl Hope {
    pub(super) fn of(ground: &Ground) -> Self {
        let case = &ground.case;
        let fits = match case.is_global() {
            true => demand_fits(&case.demanding(), case.cpus.len()),
            false => overload(std::slice::from_ref(ground)).is_none(),
        };
        if !fits || !case.tasks.iter().all(Sporadic::is_possible) {
            return Self::None;
        }
        match case.tasks.iter().any(|task| task.cost > task.deadline) {
            true => Self::Soft,
            false => Self::All,
        }
    }

    pub(super) const fn reaches(self, criterion: Criterion) -> bool {
        match criterion {
            Criterion::Hard => matches!(self, Self::All),
            Criterion::Soft => !matches!(self, Self::None),
        }
    }
}
