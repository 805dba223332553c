//! How many jobs of a task may arrive, be released, or be due in a window: of tasks with a period or an arrival curve, with
//! jitter or without.
//!
//! A period is the curve whose distances are multiples of it. `docs/theory/curves.md` has the lemmas.

use shiftwork_model::{ArrivalCurve, Span, Task};

use crate::exact::Rate;
use crate::task::Sporadic;

/// When jobs of a task arrive at the closest, and how long after that they are released at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrivals<'a> {
    apart: Apart<'a>,
    jitter_ns: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apart<'a> {
    /// By this many nanoseconds or more.
    Period(u128),
    Curve(&'a ArrivalCurve),
}

impl<'a> Arrivals<'a> {
    /// Those of a task with this curve, or else with its period.
    pub const fn new(task: &Sporadic, curve: Option<&'a ArrivalCurve>, jitter: Span) -> Self {
        Self {
            apart: match curve {
                Some(curve) => Apart::Curve(curve),
                None => Apart::Period(task.period_ns()),
            },
            jitter_ns: jitter.as_ns() as u128,
        }
    }

    /// The least time from an arrival to the one so many gaps later.
    pub fn distance(&self, gaps: u128) -> u128 {
        match self.apart {
            Apart::Period(period) => gaps.saturating_mul(period),
            Apart::Curve(curve) => curve.distance_ns(gaps),
        }
    }

    /// The most jobs that are released in a window of this length, which includes one of its ends: eta-plus. The first of
    /// them arrives up to the jitter before it.
    pub fn released_within(&self, length: u128) -> u128 {
        let length = length + self.jitter_ns;
        match self.apart {
            Apart::Period(period) => length.div_ceil(period),
            Apart::Curve(curve) => match length.checked_sub(1) {
                Some(last) => curve.gaps_within(last) + 1,
                None => 0,
            },
        }
    }

    /// The most jobs that arrive and are due within a window of this length, which includes both ends.
    pub fn due_within(&self, length: u128, deadline: u128) -> u128 {
        match (length.checked_sub(deadline), self.apart) {
            (None, _) => 0,
            (Some(rest), Apart::Period(period)) => rest / period + 1,
            (Some(rest), Apart::Curve(curve)) => curve.gaps_within(rest) + 1,
        }
    }
}

/// A task of which tests for one CPU know how its jobs arrive. What arrives by the curve arrives by the period, too.
pub(crate) trait Arriving {
    /// The task; its period is the least separation of arrivals.
    fn task(&self) -> &Sporadic;

    /// The curve that its arrivals keep to, if more is known of them than the period.
    fn curve(&self) -> Option<&ArrivalCurve>;

    /// How long after their arrival jobs are released at most.
    fn jitter(&self) -> Span {
        Span::ZERO
    }

    /// When jobs arrive and are released.
    fn arrivals(&self) -> Arrivals<'_> {
        Arrivals::new(self.task(), self.curve(), self.jitter())
    }

    /// The utilization, in the long run; `None` if the period is zero.
    fn rate(&self) -> Option<Rate> {
        let task = self.task();
        match self.curve() {
            Some(curve) => {
                let (work, every) = curve.long_run(task.cost);
                Rate::new(work, every)
            }
            None => Rate::new(task.cost, task.period),
        }
    }
}

impl Arriving for Sporadic {
    fn task(&self) -> &Sporadic {
        self
    }

    fn curve(&self) -> Option<&ArrivalCurve> {
        None
    }
}

/// The arrival curve that bounds what the jobs of a task may execute; `None` if only the period does. A task that may be
/// throttled gets its cost anew each period, whatever its curve, so that its curve bounds nothing.
pub(crate) fn curve_of(task: &Task) -> Option<&ArrivalCurve> {
    task.curve().filter(|_| !task.may_be_throttled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn period_is_the_curve_of_its_multiples() {
        for (period, jitter, deadline) in [(10, 0, 10), (10, 4, 3), (7, 20, 30)] {
            let task = Sporadic {
                cost: Span::from_ns(1),
                period: Span::from_ns(period),
                deadline: Span::from_ns(deadline),
            };
            let curves = [1, 2, 5].map(|length| {
                let distances = (1..=length).map(|gaps| Span::from_ns(gaps * period));
                ArrivalCurve::new(distances.collect()).ok()
            });
            let jitter = Span::from_ns(jitter);
            let by_period = Arrivals::new(&task, None, jitter);
            for curve in &curves {
                let by_curve = Arrivals::new(&task, curve.as_ref(), jitter);
                for length in 0..100 {
                    let counts = |of: &Arrivals<'_>| {
                        let due = of.due_within(length, deadline.into());
                        [of.released_within(length), due, of.distance(length)]
                    };
                    assert_eq!(counts(&by_curve), counts(&by_period), "{task:?} {length}");
                }
            }
        }
    }
}
