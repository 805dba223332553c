//! What can be reserved at all, whoever asks and however much room there is.

use shiftwork_model::{Affinity, AffinityKind};

use super::{Denial, Placement, Reservation, ReservationTable, Span, TaskId};

/// The kernel's own scheduler of deadlines takes no shorter periods either, unless told to.
pub(crate) const PERIOD_MIN: Span = Span::from_us(100);

/// A task that waits for its budget for longer looks forgotten to the kernel's watchdog, with some room.
pub(crate) const PERIOD_MAX: Span = Span::from_s(10);

/// Less than what it takes to switch to a thread is nothing.
pub(crate) const COST_MIN: Span = Span::from_us(10);

impl ReservationTable {
    /// Whether the numbers can be those of a reservation.
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
                    "{} is longer than the period of {}; a thread gets its budget anew once a period",
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
                format!("`{}`: the agent has CPUs {}", it.cpus, self.rules.cpus),
            );
        }
        Ok(())
    }

    /// Whether the policy can bind a task so, beside all the others; `task` is who asks, if it is known.
    pub(super) fn check_nesting(
        &self,
        task: Option<TaskId>,
        to: &Reservation,
    ) -> Result<(), Denial> {
        if self.rules.terms.placement != Placement::Hierarchical {
            return Ok(());
        }
        let others = self.tasks().filter(|&(other, _)| Some(other) != task);
        let cpus = others.map(|(_, reserved)| reserved.reservation.cpus);
        let all: Vec<Affinity> = cpus.chain([to.cpus]).filter_map(Affinity::new).collect();
        match AffinityKind::of(&self.rules.cpus, &all) {
            AffinityKind::Arbitrary => Err(Denial::Refused(format!(
                "CPUs {} would overlap those of another task without nesting, which the agent's policy does not \
                 take; with policy = \"strong-edf\" or \"strong-fp\" in its configuration it takes any",
                to.cpus
            ))),
            _ => Ok(()),
        }
    }
}
