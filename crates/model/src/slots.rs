//! Tasks in whole quanta: what Pfair scheduling, its packing and its analysis share, so that what is
//! analysed is what runs.

use alloc::vec::Vec;

use crate::cpu::CpuSet;
use crate::packing::{Heuristic, Packing, Parcel, pack_by};
use crate::task::{Arrival, Task};
use crate::taskset::{Change, TaskSet};
use crate::time::{Instant, Span};
use crate::utilization::Utilization;

/// How time is divided into slots of one quantum each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The length of a quantum; tasks have no weight if it is zero.
    pub quantum: Span,
    /// Over how many CPUs the beginnings of a slot are spread evenly; 1 if it begins on all together.
    pub staggered_over: usize,
    /// Whether all jobs are released where slots begin: periodic tasks with a period of whole quanta,
    /// started so. A task with another period is treated as if it were not.
    pub aligned: bool,
}

/// From what the windows of a task are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// The period: no job is tardy by more than the time lost to quanta.
    Period,
    /// What is left of the deadline when a release is seen late and a quantum ends late, if that is less:
    /// deadlines are met.
    Deadline,
}

/// What a task needs: so many quanta in every so many slots. Either may be zero, of tasks that no
/// schedule serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// The cost, rounded up.
    pub quanta: u64,
    /// The slots that it has for them, rounded down.
    pub slots: u64,
}

impl Slots {
    /// The division of time that the task set's file asks for, with slots that begin spread over
    /// `staggered_over` CPUs.
    pub fn of(set: &TaskSet, staggered_over: usize) -> Self {
        let quantum = set.scheduler.quantum_or_default();
        let starts = |at: u64| at.is_multiple_of(quantum.as_ns());
        let is_aligned =
            |task: &Task| task.arrival == Arrival::Periodic && starts(task.offset.as_ns());
        let enters_aligned = set.actions.iter().all(|action| match action.change {
            Change::Enter(_) => starts(action.at.as_ns()),
            _ => true,
        });
        Self {
            quantum,
            staggered_over,
            aligned: enters_aligned && set.tasks.iter().all(is_aligned),
        }
    }

    /// Whether all releases of a task with this period are seen at once.
    pub const fn sees_at_once(&self, period: Span) -> bool {
        let quantum = self.quantum.as_ns();
        self.aligned && quantum > 0 && period.as_ns().is_multiple_of(quantum)
    }

    /// The slot in which what happens at this instant is seen: the first that begins then or later.
    pub const fn seen(&self, at: Instant) -> u64 {
        at.as_ns().div_ceil(self.quantum.as_ns())
    }

    /// The task's weight: its cost and its windows in whole quanta. At least `slots` slots lie between those
    /// in which two of its jobs are seen.
    pub fn weight(&self, [cost, period, deadline]: [Span; 3], source: WindowSource) -> Weight {
        let [quantum, cost, period_ns, deadline] =
            [self.quantum, cost, period, deadline].map(|span| u128::from(span.as_ns()));
        let parts = self.staggered_over as u128;
        if quantum == 0 || parts == 0 {
            return Weight {
                quanta: 0,
                slots: 0,
            };
        }
        // In parts of a quantum, as many as there are CPUs.
        let unseen = u128::from(!self.sees_at_once(period)) * parts;
        let lost = (unseen + parts - 1).saturating_mul(quantum);
        let left = (parts * deadline).saturating_sub(lost) / (parts * quantum);
        let slots = match source {
            WindowSource::Period => period_ns / quantum,
            WindowSource::Deadline => left.min(period_ns / quantum),
        };
        // Both are at most the nanoseconds that they were.
        Weight {
            quanta: cost.div_ceil(quantum) as u64,
            slots: slots as u64,
        }
    }

    /// The same of a whole task.
    pub(crate) fn weight_of(&self, task: &Task, source: WindowSource) -> Weight {
        self.weight([task.cost, task.period, task.deadline], source)
    }
}

impl Weight {
    /// Whether one CPU suffices for the task alone.
    pub const fn is_possible(self) -> bool {
        self.quanta <= self.slots && self.slots > 0
    }

    /// Quanta per slot; no slot counts as one.
    fn utilization(self) -> Utilization {
        let [quanta, slots] = [self.quanta, self.slots.max(1)].map(Span::from_ns);
        Utilization::new(quanta, slots).expect("there is a slot")
    }
}

/// Whether tasks of these weights have room on these CPUs: none needs more than one, and all together
/// no more than there are. Exact.
pub fn weights_fit(weights: impl Iterator<Item = Weight>, cpus: &CpuSet) -> bool {
    let weights: Vec<Weight> = weights.collect();
    let parcels = weights.iter().map(|weight| Parcel {
        utilization: weight.utilization(),
        cpus,
    });
    weights.iter().all(|weight| weight.is_possible())
        && pack_by(Heuristic::FFD, parcels, &[*cpus]).fits()
}

/// Packs the tasks of a set onto the groups (disjoint sets of CPUs) by their weights, first fit, decreasing;
/// see [`pack_by`]. By windows for the deadlines if these fit, else by periods. Staggered slots are
/// spread over the CPUs of each group.
pub fn pack_weights(set: &TaskSet, groups: &[CpuSet], staggered: bool) -> Packing {
    let widest = groups.iter().map(CpuSet::len).max().unwrap_or(1);
    let slots = Slots::of(set, if staggered { widest } else { 1 });
    let packed = |source| {
        let weights = set.tasks.iter().map(|task| slots.weight_of(task, source));
        let weights: Vec<Weight> = weights.collect();
        let parcels = set.tasks.iter().zip(&weights).map(|(task, weight)| Parcel {
            utilization: weight.utilization(),
            cpus: task.affinity.cpus(),
        });
        let packing = pack_by(Heuristic::FFD, parcels, groups);
        let all_fit = packing.fits() && weights.iter().all(|weight| weight.is_possible());
        (packing, all_fit)
    };
    match packed(WindowSource::Deadline) {
        (packing, true) => packing,
        _ => packed(WindowSource::Period).0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::Affinity;

    const MS: fn(u64) -> Span = Span::from_ms;

    fn slots(staggered_over: usize, aligned: bool) -> Slots {
        Slots {
            quantum: MS(1),
            staggered_over,
            aligned,
        }
    }

    fn of(slots: Slots, times: [Span; 3], source: WindowSource) -> (u64, u64) {
        let weight = slots.weight(times, source);
        (weight.quanta, weight.slots)
    }

    #[test]
    fn costs_are_rounded_up_and_windows_down() {
        let times = [
            Span::from_us(2_001),
            Span::from_us(5_900),
            Span::from_us(5_900),
        ];
        assert_eq!(of(slots(1, true), times, WindowSource::Period), (3, 5));
        // A release within a quantum is seen up to a quantum later.
        assert_eq!(of(slots(1, true), times, WindowSource::Deadline), (3, 4));
        let whole = [MS(2), MS(5), MS(5)];
        assert_eq!(of(slots(1, true), whole, WindowSource::Deadline), (2, 5));
        assert_eq!(of(slots(1, false), whole, WindowSource::Deadline), (2, 4));
        // Three quarters of a quantum are lost to staggering.
        assert_eq!(of(slots(4, true), whole, WindowSource::Deadline), (2, 4));
        assert_eq!(of(slots(4, true), whole, WindowSource::Period), (2, 5));
        let soon = [MS(2), MS(5), Span::from_us(3_750)];
        assert_eq!(of(slots(4, true), soon, WindowSource::Deadline), (2, 3));
    }

    #[test]
    fn what_happens_within_a_slot_is_seen_in_the_next() {
        let seen = |ns| slots(1, true).seen(Instant::from_ns(ns));
        assert_eq!(
            [seen(0), seen(1), seen(1_000_000), seen(1_000_001)],
            [0, 1, 1, 2]
        );
    }

    #[test]
    fn packing_is_by_deadlines_where_these_fit() {
        let all = Affinity::new(CpuSet::first(2)).unwrap();
        let groups = [
            CpuSet::single(crate::CpuId::from_index(0)),
            CpuSet::single(crate::CpuId::from_index(1)),
        ];
        let mut set = TaskSet::new("", 2, Vec::new());
        for (cost, deadline) in [(2, 4), (4, 8)] {
            let mut task = Task::periodic("", MS(cost), MS(8), all);
            task.deadline = MS(deadline);
            set.tasks.push(task);
        }
        // By their periods 1/4 and 1/2, by their deadlines 1/2 and 1/2.
        assert_eq!(
            pack_weights(&set, &groups, false).group_of,
            [Some(0), Some(0)]
        );
        set.tasks[0].deadline = MS(3);
        assert_eq!(
            pack_weights(&set, &groups, false).group_of,
            [Some(0), Some(1)]
        );
        set.tasks[0].deadline = MS(1);
        assert_eq!(
            pack_weights(&set, &groups, false).group_of,
            [Some(0), Some(0)]
        );
    }

    #[test]
    fn weights_fit_exactly() {
        let two = CpuSet::first(2);
        let weight = |quanta, slots| Weight { quanta, slots };
        assert!(weights_fit([weight(2, 3); 3].into_iter(), &two));
        let more = [weight(2, 3), weight(2, 3), weight(2, 3), weight(1, 1 << 60)];
        assert!(!weights_fit(more.into_iter(), &two));
        assert!(!weights_fit([weight(2, 1)].into_iter(), &two));
        assert!(!weights_fit([weight(0, 0)].into_iter(), &two));
    }
}
