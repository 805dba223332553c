//! The agent's own time: a low real-time priority, within a share that everybody else is admitted beside, so that it
//! answers however busy the machine is.
//!
//! It looks at its own processor time after each step, and once half of the share is used up goes on as ordinary work,
//! for so long that this is kept whatever a step took. Nothing throttles it: it would fall behind what the kernel tells
//! just when there is most of it, on an idle machine too.

use rustix::thread::gettid;
use shiftwork_analysis::admission::{Guarantee, Order};
use shiftwork_live::{Class, set_class};
use shiftwork_model::{CpuSet, Instant, OnOverrun, Priority, Share, Span};

use super::Daemon;
use crate::reservation::Reservation;
use crate::reservation_table::Rules;

/// What it is called where others do not fit beside it.
const NAME: &str = "agent";

/// Long beside what a call takes, short for whoever waits for the answer to one.
const PERIOD: Span = Span::from_ms(20);

/// Above all ordinary work and all tasks, below everything else that is real-time. Threads that it starts are ordinary.
const PRIORITY_CLASS: Class = Class::FifoAlone(1);

/// What is left of its priority, of the agent's thread.
#[derive(Debug)]
pub(super) struct SelfReservation {
    budget: BudgetUse,
}

/// What is used of a cost per period, as far as it was used by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BudgetUse {
    cost: Span,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// With priority, in the period that began then; `used` is its processor time at that instant.
    WithPriority { since: Instant, used: Span },
    /// As ordinary work, until then.
    Overdrawn { until: Instant },
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Keep,
    Demote,
    Promote,
}

impl BudgetUse {
    /// It is now so late, and the processor time so much.
    fn step(&mut self, now: Instant, used: Span) -> Step {
        match self.phase {
            Phase::WithPriority {
                since,
                used: before,
            } => {
                let spent = used.saturating_sub(before);
                if spent >= self.cost {
                    // For so many periods as there are costs in it.
                    let periods = u128::from(PERIOD.as_ns()) * u128::from(spent.as_ns());
                    let span = periods.div_ceil(u128::from(self.cost.as_ns().max(1)));
                    let span = Span::from_ns(u64::try_from(span).unwrap_or(u64::MAX));
                    self.phase = Phase::Overdrawn {
                        until: since + span,
                    };
                    return Step::Demote;
                }
                if now >= since + PERIOD {
                    self.phase = Phase::WithPriority { since: now, used };
                }
                Step::Keep
            }
            Phase::Overdrawn { until } if now >= until => {
                self.phase = Phase::WithPriority { since: now, used };
                Step::Promote
            }
            Phase::Overdrawn { .. } => Step::Keep,
        }
    }
}

impl Daemon {
    /// Takes time for the calling thread, which is to be the one that looks and answers. What went wrong, if it did.
    pub(super) fn reserve_for_self(&mut self, online: CpuSet, now: Instant) -> Option<String> {
        let cost = cost(self.config.own_share)?;
        let taken = self.try_reserve_for_self(online, cost);
        if let Err(why) = taken {
            return Some(format!(
                "the agent has no time of its own, and answers when ordinary work may run: {why}"
            ));
        }
        self.self_reservation = Some(SelfReservation {
            budget: BudgetUse {
                // It may come twice in a row, at the end of a period and at the beginning of the next.
                cost: Span::from_ns(cost.as_ns() / 2),
                // What its start took was before, and is not counted.
                phase: Phase::WithPriority {
                    since: now,
                    used: Span::from_ns(u64::MAX),
                },
            },
        });
        None
    }

    fn try_reserve_for_self(&mut self, online: CpuSet, cost: Span) -> Result<(), String> {
        let rules = self.table.rules();
        let others = online - rules.cpus;
        if others.is_empty() {
            let wanted = reservation(cost, rules, online);
            let kept = self.table.reserve_share(NAME, &wanted);
            kept.map_err(|denial| denial.to_string())?;
        } else {
            // There it takes nothing from anybody who has reserved.
            let bound = self.backend.standing.bind(gettid(), &others);
            bound.map_err(|error| error.to_string())?;
        }
        set_class(None, PRIORITY_CLASS).map_err(|error| format!("real-time priority: {error}"))
    }

    /// After each step: `used` is the processor time of the agent's thread so far.
    pub fn enforce_own_budget(&mut self, now: Instant, used: Span) {
        let Some(own) = &mut self.self_reservation else {
            return;
        };
        let class = match own.budget.step(now, used) {
            Step::Keep => return,
            Step::Demote => Class::Ordinary,
            Step::Promote => PRIORITY_CLASS,
        };
        // It was allowed to at first; where it is not any more it is ordinary work.
        if set_class(None, class).is_err() {
            self.self_reservation = None;
        }
    }
}

/// What is counted for the agent where it shares the CPUs of those who reserve.
///
/// Where deadlines are promised it keeps to one CPU of them, the last: a task that may be anywhere connects all, and
/// deadlines are shown where they are not connected. There it comes before everybody else, as if it had a short deadline.
fn reservation(cost: Span, rules: &Rules, online: CpuSet) -> Reservation {
    let there = rules.cpus & online;
    let is_hard = rules.guarantee == Guarantee::Hard;
    let is_short = is_hard && rules.terms.order == Order::Edf;
    Reservation {
        cost,
        period: PERIOD,
        deadline: if is_short {
            (cost + cost).min(PERIOD)
        } else {
            PERIOD
        },
        cpus: match there.iter().last() {
            Some(last) if is_hard => CpuSet::single(last),
            _ => there,
        },
        priority: Priority::MOST_URGENT,
        on_overrun: OnOverrun::Continue,
    }
}

/// Of each period; `None`: nothing.
fn cost(share: Share) -> Option<Span> {
    let parts = u128::from(PERIOD.as_ns()) * u128::from(share.billionths());
    let ns = u64::try_from(parts / u128::from(Share::WHOLE)).unwrap_or(0);
    (ns > 0).then(|| Span::from_ns(ns))
}

#[cfg(test)]
mod tests {
    use shiftwork_analysis::admission::Terms;
    use shiftwork_model::RandomStream;

    use super::*;
    use crate::reservation_table::ReservationTable;

    #[test]
    fn a_share_is_so_much_of_each_period() {
        let of = |billionths| cost(Share::from_billionths(billionths).unwrap());
        assert_eq!(of(50_000_000), Some(Span::from_ms(1)));
        assert_eq!(of(500_000_000), Some(Span::from_ms(10)));
        assert_eq!(of(0), None);
    }

    fn rules(policy: &str, guarantee: Guarantee) -> Rules {
        let reserve = Share::from_billionths(50_000_000).unwrap();
        let quota = crate::quotas::Quota {
            tasks: 1,
            share_ppm: 1,
        };
        Rules {
            cpus: "1-3".parse().unwrap(),
            terms: Terms::of_policy(policy, reserve).unwrap(),
            guarantee,
            quotas: crate::quotas::Quotas {
                user: quota,
                cgroup: quota,
            },
            tasks_max: 9,
        }
    }

    /// Whatever is promised, the agent is admitted as the first, and others beside it.
    #[test]
    fn where_deadlines_are_promised_it_keeps_to_one_cpu() {
        for (policy, guarantee, cpus, deadline_ms) in [
            ("strong-edf", Guarantee::BoundedTardiness, "1-2", 20),
            ("strong-edf", Guarantee::Hard, "2", 2),
            ("hpa-edf", Guarantee::Share, "1-2", 20),
            ("strong-fp", Guarantee::Hard, "2", 20),
        ] {
            let rules = rules(policy, guarantee);
            let own = reservation(Span::from_ms(1), &rules, "0-2".parse().unwrap());
            assert_eq!(own.cpus, cpus.parse().unwrap(), "{policy}");
            assert_eq!(own.deadline, Span::from_ms(deadline_ms), "{policy}");
            let mut table = ReservationTable::new(rules);
            assert_eq!(table.reserve_share(NAME, &own), Ok(()), "{policy}");
            let ms = Span::from_ms;
            let (two, all) = ("2".parse().unwrap(), "1-3".parse().unwrap());
            // Of CPU 2 alone it need not take anything unless it is bound there.
            let is_bound = guarantee == Guarantee::Hard;
            let room = table.available_cost(two, ms(100));
            assert_eq!(room < ms(95), is_bound, "{policy}: {room}");
            assert!(room > ms(60), "{policy}: {room}");
            assert!(
                is_bound || table.available_cost(all, ms(100)) > ms(60),
                "{policy}"
            );
        }
    }

    /// However long steps take, what is used while it is served is at most its share of any time, beside one cost
    /// and one step; and while steps are short and seldom it never rests.
    #[test]
    fn what_it_takes_by_its_reservation_is_its_share() {
        for seed in 0..200 {
            let mut random = RandomStream::new(seed, 0, 0);
            let step_max = [100, 3_000, 40_000][seed as usize % 3];
            let pause_max = [1, 100, 40_000][(seed / 3) as usize % 3];
            let cost = Span::from_ms(1);
            let phase = Phase::WithPriority {
                since: Instant::ZERO,
                used: Span::ZERO,
            };
            let mut budget = BudgetUse { cost, phase };
            let (mut now_us, mut used_us) = (0, 0);
            // All steps that were served, and when they began.
            let mut served: Vec<(u64, u64)> = Vec::new();
            let mut rested = 0;
            for _ in 0..400 {
                now_us += random.below(pause_max);
                let step_us = random.below(step_max);
                let is_served = matches!(budget.phase, Phase::WithPriority { .. });
                if is_served {
                    served.push((now_us, step_us));
                }
                now_us += step_us;
                used_us += step_us;
                let now = Instant::ZERO + Span::from_us(now_us);
                let step = budget.step(now, Span::from_us(used_us));
                rested += u32::from(step == Step::Demote);
                assert_eq!(
                    matches!(budget.phase, Phase::WithPriority { .. }),
                    step == Step::Promote || is_served && step == Step::Keep,
                    "seed {seed}, at {now_us} us"
                );
            }
            for first in 0..served.len() {
                let mut sum = 0;
                for &(began, step) in &served[first..] {
                    sum += step;
                    let window = began + step - served[first].0;
                    // Two costs: at the end of a period, and at the beginning of the next.
                    let most = window / 20 + 2 * 1_000 + 2 * step_max;
                    assert!(sum <= most, "seed {seed}: {sum} us within {window} us");
                }
            }
            assert!(rested > 0 || step_max == 100, "seed {seed}");
            assert!(
                rested == 0 || pause_max < 40_000 || step_max > 100,
                "seed {seed}"
            );
        }
    }
}
