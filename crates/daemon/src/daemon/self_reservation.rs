//! CPU time for the daemon itself: the lowest real-time priority, within a share that admission counts, so that the daemon
//! answers on a busy machine.
//!
//! The daemon reads its own CPU time after each step. Once half of the share is used it continues as ordinary work, long
//! enough that the share holds however long the step took. It is never throttled: otherwise it would fall behind the
//! scheduling events when there are most of them, even on an idle machine.

use shiftwork_analysis::admission::Guarantee;
use shiftwork_live::{Class, set_class};
use shiftwork_model::{CpuSet, Instant, OnOverrun, Priority, Share, Span};

use super::Daemon;
use crate::reservation::Reservation;
use crate::reservation_table::Rules;

/// The name of this reservation in refusals of others.
const NAME: &str = "daemon";

/// Long compared with the execution time of a call, short compared with the latency that a caller tolerates.
const PERIOD: Span = Span::from_ms(20);

/// Above all ordinary work and all tasks of sched_ext, below all other real-time threads. Not inherited by created threads.
const PRIORITY_CLASS: Class = Class::FifoAlone(1);

/// The reservation of the daemon's thread.
#[derive(Debug)]
pub(super) struct SelfReservation {
    budget: BudgetUse,
}

/// Accounts the CPU time used with priority against a cost per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BudgetUse {
    cost: Span,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// With priority, in the period that began at `since`; `used` is the thread's CPU time at that instant.
    WithPriority { since: Instant, used: Span },
    /// As ordinary work, until then: it has used more than its cost.
    Overdrawn { until: Instant },
}

/// Change of the scheduling class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Keep,
    Demote,
    Promote,
}

impl BudgetUse {
    /// Advances to `now`; `used` is the thread's CPU time so far.
    fn step(&mut self, now: Instant, used: Span) -> Step {
        match self.phase {
            Phase::WithPriority {
                since,
                used: before,
            } => {
                let spent = used.saturating_sub(before);
                if spent >= self.cost {
                    // One period for each cost that was spent.
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
    /// Reserves time for the calling thread, which must be the one that polls and serves. Returns a failure to log.
    pub(super) fn reserve_for_self(&mut self, online: CpuSet, now: Instant) -> Option<String> {
        let cost = cost(self.config.own_share)?;
        let taken = self.try_reserve_for_self(online, cost);
        if let Err(why) = taken {
            return Some(format!(
                "could not reserve CPU time for the daemon; requests are served at normal priority: {why}"
            ));
        }
        self.self_reservation = Some(SelfReservation {
            budget: BudgetUse {
                // Two costs may be used back to back, at the end of one period and the beginning of the next.
                cost: Span::from_ns(cost.as_ns() / 2),
                // CPU time used during startup is not counted.
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
            // CPUs without reservations: it takes no time from any task.
            let bound = self.backend.bind_self(&others);
            bound.map_err(|error| error.to_string())?;
        }
        set_class(None, PRIORITY_CLASS).map_err(|error| format!("real-time priority: {error}"))
    }

    /// Changes the scheduling class if the budget requires it. To be called after each step; `used` is the CPU time of the
    /// daemon's thread so far.
    pub fn enforce_own_budget(&mut self, now: Instant, used: Span) {
        let Some(own) = &mut self.self_reservation else {
            return;
        };
        let class = match own.budget.step(now, used) {
            Step::Keep => return,
            Step::Demote => Class::Ordinary,
            Step::Promote => PRIORITY_CLASS,
        };
        // Permitted at the start. If it no longer is, the daemon continues as ordinary work.
        if set_class(None, class).is_err() {
            self.self_reservation = None;
        }
    }
}

/// The reservation that admission counts for the daemon where it shares CPUs with tasks.
///
/// Under a hard guarantee it is bound to one CPU, the last: a task with a global affinity connects all CPUs, and hard
/// deadlines are shown where CPUs are not connected. Under EDF it has a short deadline there, since its real-time priority
/// is above all tasks.
fn reservation(cost: Span, rules: &Rules, online: CpuSet) -> Reservation {
    let there = rules.cpus & online;
    let is_hard = rules.guarantee == Guarantee::Hard;
    let is_short = is_hard && rules.terms.is_edf();
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

/// The cost per period for this share; `None` if that is zero.
fn cost(share: Share) -> Option<Span> {
    let parts = u128::from(PERIOD.as_ns()) * u128::from(share.billionths());
    let ns = u64::try_from(parts / u128::from(Share::WHOLE)).unwrap_or(0);
    (ns > 0).then(|| Span::from_ns(ns))
}

#[cfg(test)]
mod tests {
    use shiftwork_analysis::admission::Terms;
    use shiftwork_model::RandomStream;
    use shiftwork_policy::registry;

    use super::*;
    use crate::reservation_table::ReservationTable;

    #[test]
    fn cost_is_share_of_period() {
        let of = |billionths| cost(Share::from_billionths(billionths).unwrap());
        assert_eq!(of(50_000_000), Some(Span::from_ms(1)));
        assert_eq!(of(500_000_000), Some(Span::from_ms(10)));
        assert_eq!(of(0), None);
    }

    fn rules(policy: &str, guarantee: Guarantee) -> Rules {
        let reserve = Share::from_billionths(50_000_000).unwrap();
        let amount = crate::quotas::Amount {
            tasks: 1,
            share_ppm: 1,
        };
        let quota = crate::quotas::Quota {
            held: amount,
            released: amount,
        };
        Rules {
            cpus: "1-3".parse().unwrap(),
            terms: Terms::new(&registry::find(policy).unwrap().traits, reserve).unwrap(),
            guarantee,
            quotas: crate::quotas::Quotas {
                user: quota,
                cgroup: quota,
            },
            tasks_max: 9,
        }
    }

    /// Under every guarantee the daemon is admitted first, and tasks are admitted beside it.
    #[test]
    fn daemon_under_hard_guarantee_is_bound_to_one_cpu() {
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
            let (two, all) = ("2".parse().unwrap(), "1-3".parse().unwrap());
            let free = |cpus: CpuSet| {
                let some = Reservation {
                    cost: Span::from_ms(1),
                    period: Span::from_ms(100),
                    deadline: Span::from_ms(100),
                    cpus,
                    priority: Priority::LEAST_URGENT,
                    ..own.clone()
                };
                let fits = |ms: &u64| {
                    let cost = Span::from_ms(*ms);
                    let wanted = Reservation {
                        cost,
                        ..some.clone()
                    };
                    let mut table = table.clone();
                    table.reserve_share("some", &wanted).is_ok()
                };
                (1..=100).rev().find(fits).unwrap_or(0)
            };
            // It takes time of CPU 2 alone only if it is bound there.
            let is_bound = guarantee == Guarantee::Hard;
            let room = free(two);
            assert_eq!(room < 95, is_bound, "{policy}: {room}");
            assert!(room > 60, "{policy}: {room}");
            assert!(is_bound || free(all) > 60, "{policy}");
        }
    }

    /// However long steps take, CPU time used with priority within any window is at most the share of it, plus two costs
    /// and two steps. With short and rare steps the daemon is never demoted.
    #[test]
    fn cpu_time_with_priority_is_at_most_share_in_any_window() {
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
            // Start and length of each step with priority.
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
                    // Two costs: at the end of a period and at the beginning of the next.
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
