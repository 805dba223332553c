//! Validation of reservations, independent of the owner and of the load.

use shiftwork_model::{Affinities, Affinity, AffinityKind};
use shiftwork_taskset::daemon::{COST_MIN, PERIOD_MAX, PERIOD_MIN};

use super::{Denial, Reservation, ReservationTable, TaskId};

impl ReservationTable {
    /// Checks the parameters of a reservation.
    pub(super) fn validate(&self, it: &Reservation) -> Result<(), Denial> {
        let invalid = |parameter, reason| Err(Denial::Invalid { parameter, reason });
        if it.period < PERIOD_MIN || it.period > PERIOD_MAX {
            return invalid(
                "period",
                format!("{} is not between {PERIOD_MIN} and {PERIOD_MAX}", it.period),
            );
        }
        if it.deadline > it.period {
            return invalid(
                "deadline",
                format!(
                    "{} is longer than the period of {}; a budget is replenished once per period",
                    it.deadline, it.period
                ),
            );
        }
        if it.cost < COST_MIN || it.cost > it.deadline {
            return invalid(
                "cost",
                format!(
                    "{} is not between {COST_MIN} and the deadline of {}",
                    it.cost, it.deadline
                ),
            );
        }
        let beyond = it.cpus - self.rules.cpus;
        if it.cpus.is_empty() || !beyond.is_empty() {
            return invalid(
                "cpus",
                format!(
                    "`{}`: the daemon schedules CPUs {}",
                    it.cpus, self.rules.cpus
                ),
            );
        }
        Ok(())
    }

    /// Checks that the affinity nests with all others if the policy requires that. `task` is the task to change, `None` for a
    /// new one.
    pub(super) fn check_nesting(
        &self,
        task: Option<TaskId>,
        to: &Reservation,
    ) -> Result<(), Denial> {
        if self.rules.terms.policy.affinities != Affinities::Laminar {
            return Ok(());
        }
        let others = self.tasks().filter(|&(other, _)| Some(other) != task);
        let cpus = others.map(|(_, reserved)| reserved.reservation.cpus);
        let all: Vec<Affinity> = cpus.chain([to.cpus]).filter_map(Affinity::new).collect();
        match AffinityKind::of(&self.rules.cpus, &all) {
            AffinityKind::Arbitrary => Err(Denial::Refused(format!(
                "CPUs {} would overlap those of another task without nesting, which the policy does not support; \
                 `policy = \"strong-edf\"` or `\"strong-fp\"` in the daemon's configuration supports any affinities",
                to.cpus
            ))),
            _ => Ok(()),
        }
    }
}
