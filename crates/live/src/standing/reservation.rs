//! The reservation of a thread, and which reservations are invalid.

use rustix::thread::Pid;
use shiftwork_model::{CpuSet, OnOverrun, Priority, Span};

use crate::LiveError;
use crate::machine::{Excess, Parameters};
use crate::preflight::THROTTLED_MAX;

/// The CPU time that is reserved for a thread.
///
/// A job lasts from a wake-up of the thread until it sleeps or yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The thread that has the reservation.
    pub thread: Pid,
    /// The CPUs that it may use, in the machine's numbers.
    pub cpus: CpuSet,
    /// How long a job may run.
    pub cost: Span,
    /// The minimum separation of jobs.
    pub period: Span,
    /// By when a job is to be finished, from its beginning.
    pub deadline: Span,
    /// What happens to a job that runs for longer than its cost. It never goes on at the expense of another reservation:
    /// until the next period it waits, or is ordinary work.
    pub on_overrun: OnOverrun,
    /// Ranks it where priorities do.
    pub priority: Priority,
}

impl Reservation {
    /// Its cost, period and deadline.
    pub(super) const fn attributes(&self) -> [Span; 3] {
        [self.cost, self.period, self.deadline]
    }

    /// Its parameters for a machine with these CPUs.
    pub(super) fn parameters(&self, all: &CpuSet) -> Result<Parameters, LiveError> {
        self.check(all).map_err(LiveError::Reservation)?;
        Ok(Parameters {
            thread: self.thread,
            cpus: self.cpus,
            cost: self.cost,
            period: self.period,
            deadline: self.deadline,
            on_overrun: self.on_overrun,
            excess: Excess::of_reservation(self.on_overrun),
            priority: self.priority,
            follows: false,
            start: None,
        })
    }

    fn check(&self, all: &CpuSet) -> Result<(), String> {
        let (cost, period, deadline) = (self.cost, self.period, self.deadline);
        if !self.cpus.intersects(all) {
            return Err(format!(
                "CPUs {} cannot be reserved; available: {all}",
                self.cpus
            ));
        }
        if cost.is_zero() || cost > deadline {
            return Err(format!(
                "a cost of {cost} with a deadline of {deadline} cannot be reserved; the cost has to be more than \
                 zero and at most the deadline"
            ));
        }
        if deadline > period {
            return Err(format!(
                "the deadline of {deadline} is longer than the period of {period}; it may be as long at most"
            ));
        }
        if self.on_overrun == OnOverrun::Throttle && period > THROTTLED_MAX {
            return Err(format!(
                "a thread that is throttled for its period of {period} would trigger the sched_ext \
                 watchdog; the period may be at most {THROTTLED_MAX}, unless the thread is not \
                 throttled"
            ));
        }
        if period > PERIOD_MAX {
            return Err(format!(
                "the period of {period} is too long; at most {PERIOD_MAX} are accepted"
            ));
        }
        Ok(())
    }
}

/// What the core's arithmetic takes: `SW_SPAN_MAX` of its `server.h`, in whole years.
const PERIOD_MAX: Span = Span::from_s(36 * 365 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Reservation {
        Reservation {
            thread: Pid::from_raw(7).unwrap(),
            cpus: CpuSet::from_bits(0b10),
            cost: Span::from_ms(2),
            period: Span::from_ms(10),
            deadline: Span::from_ms(8),
            on_overrun: OnOverrun::Throttle,
            priority: Priority::MOST_URGENT,
        }
    }

    fn refusal(change: impl FnOnce(&mut Reservation)) -> String {
        let mut of = sound();
        change(&mut of);
        let refused = of.parameters(&CpuSet::from_bits(0b110));
        refused.unwrap_err().to_string()
    }

    #[test]
    fn parameters_of_a_valid_reservation_are_its_own() {
        let parameters = sound().parameters(&CpuSet::from_bits(0b110)).unwrap();
        assert_eq!(parameters.cpus, CpuSet::from_bits(0b10));
        assert_eq!(parameters.budget(), Span::from_us(2020));
        assert!(!parameters.follows && parameters.start.is_none());
    }

    #[test]
    fn invalid_reservation_is_refused_with_the_accepted_range() {
        assert_eq!(
            refusal(|of| of.cpus = CpuSet::from_bits(0b1001)),
            "CPUs 0,3 cannot be reserved; available: 1,2"
        );
        for cost in [Span::ZERO, Span::from_ms(9)] {
            assert_eq!(
                refusal(|of| of.cost = cost),
                format!(
                    "a cost of {cost} with a deadline of 8ms cannot be reserved; the cost has to be more than \
                     zero and at most the deadline"
                )
            );
        }
        assert_eq!(
            refusal(|of| of.deadline = Span::from_ms(11)),
            "the deadline of 11ms is longer than the period of 10ms; it may be as long at most"
        );
        assert_eq!(
            refusal(|of| of.period = Span::from_s(26)),
            "a thread that is throttled for its period of 26s would trigger the sched_ext \
             watchdog; the period may be at most 25s, unless the thread is not throttled"
        );
        assert_eq!(
            refusal(|of| {
                of.period = Span::from_ns(u64::MAX);
                of.on_overrun = OnOverrun::Continue;
            }),
            format!(
                "the period of {} is too long; at most {PERIOD_MAX} are accepted",
                Span::from_ns(u64::MAX)
            )
        );
        assert!(PERIOD_MAX.as_ns() <= 1 << 60);
    }
}
