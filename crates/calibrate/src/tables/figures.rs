//! The figures of a calibration for one use, and the overheads that are made of them.

use std::collections::BTreeMap;

use shiftwork_model::{LinearCost, Overheads, Span};
use shiftwork_taskset::overheads::Use;

use crate::fit::linear;
use crate::measure::distance_name;
use crate::quantity::{Kind, Quantity};
use crate::session::Calibration;
use crate::structure::Implementation;

/// What was measured, for one use: the worst that is no outlier, or the mean of a typical round.
#[derive(Clone, Copy)]
pub(super) struct Figures<'a> {
    pub(super) done: &'a Calibration,
    pub(super) purpose: Use,
}

impl Figures<'_> {
    pub(super) fn of(&self, quantity: Quantity) -> Option<i64> {
        let summary = self.done.measured.get(&quantity)?.summary()?;
        Some(match self.purpose {
            Use::Worst => summary.worst,
            Use::Average => summary.typical,
        })
    }

    /// The line through what was measured of this variant against the number of tasks; of several kinds
    /// the one that takes longer, for each number. `None` if one of them was not measured.
    pub(super) fn line(&self, kinds: &[Kind], variant: &str) -> Option<LinearCost> {
        let measured = |kind: &Kind| {
            let mut all = self.done.measured.keys();
            all.any(|other| other.kind == *kind && other.variant == variant)
        };
        if !kinds.iter().all(measured) {
            return None;
        }
        let mut points: BTreeMap<usize, i64> = BTreeMap::new();
        for &quantity in self.done.measured.keys() {
            if !kinds.contains(&quantity.kind) || quantity.variant != variant {
                continue;
            }
            if let Some(ns) = self.of(quantity) {
                let most = points.entry(quantity.at as usize).or_insert(ns);
                *most = ns.max(*most);
            }
        }
        linear(&points.into_iter().collect::<Vec<_>>())
    }

    /// Nothing if it was not measured; that is noted elsewhere.
    fn sole(&self, kind: Kind) -> i64 {
        self.of(Quantity::of(kind)).unwrap_or(0)
    }

    fn switch(&self) -> i64 {
        let processes = self.of(Quantity::of(Kind::SwitchProcesses));
        processes.unwrap_or_else(|| self.sole(Kind::SwitchThreads))
    }

    pub(super) fn in_kernel(&self, decide: LinearCost) -> Overheads {
        Overheads {
            release: constant(self.sole(Kind::Release)),
            schedule: decide,
            switch: constant(self.switch()),
            tick: constant(self.sole(Kind::Tick)),
            // Both were measured between threads.
            ipi: constant(self.sole(Kind::IpiBusy) - self.sole(Kind::SwitchThreads)),
            ..Overheads::default()
        }
    }

    /// `of_live` are the decisions of the policy that live runs were made under: what the others take more or
    /// less than it is what their runs would.
    pub(super) fn live(&self, decide: LinearCost, of_live: LinearCost) -> Overheads {
        let way = [Kind::LiveReport, Kind::LiveDecide, Kind::LiveKick];
        let way: i64 = way.into_iter().map(|kind| self.sole(kind)).sum();
        let decided = of_live.at(self.done.live_tasks).as_ns() as i64;
        let base = way - decided + decide.base.as_ns() as i64;
        Overheads {
            schedule: LinearCost {
                base: span(base),
                per_task: decide.per_task,
            },
            switch: constant(self.sole(Kind::LiveSwitch) + self.sole(Kind::LiveExcess)),
            ..Overheads::default()
        }
    }

    /// `None` if the calls of this queue were not measured.
    pub(super) fn add_queue(&self, to: &mut Overheads, of: Implementation) -> Option<()> {
        let queue = of.queue.name();
        to.enqueue = match of.merges {
            true => self.line(&[Kind::QueueInsert, Kind::QueueMerge], queue)?,
            false => self.line(&[Kind::QueueInsert], queue)?,
        };
        to.dequeue = self.line(&[Kind::QueueTake], queue)?;
        if of.is_in_quanta {
            let look = self.line(&[Kind::QueueLook], queue)?;
            to.tick = LinearCost {
                base: to.tick.base + look.base,
                per_task: to.tick.per_task + look.per_task,
            };
        }
        Some(())
    }

    pub(super) fn add_caches(&self, to: &mut Overheads, bytes: u64) {
        let nearest = |kind, variant| {
            let sizes = self.done.measured.keys();
            let sizes = sizes.filter(|other| other.kind == kind && other.variant == variant);
            let quantity = sizes.min_by_key(|other| other.at.abs_diff(bytes))?;
            self.of(*quantity).map(constant)
        };
        to.preemption = nearest(Kind::Preemption, "").into_iter().collect();
        let by_distance: Vec<Option<LinearCost>> = (1..=6)
            .map(|distance| nearest(Kind::Migration, distance_name(distance)))
            .collect();
        to.migration = without_gaps(&by_distance);
    }
}

/// A distance that was not measured is taken for the next farther one, or else the next nearer one, which
/// serves all that is farther.
fn without_gaps(by_distance: &[Option<LinearCost>]) -> Vec<LinearCost> {
    let farthest = by_distance.iter().rposition(Option::is_some);
    let known = farthest.map_or(&[][..], |farthest| &by_distance[..=farthest]);
    let cost = |index: usize| known[index..].iter().flatten().next().copied();
    (0..known.len()).filter_map(cost).collect()
}

fn span(ns: i64) -> Span {
    Span::from_ns(u64::try_from(ns).unwrap_or(0))
}

/// A cost that is the same for any number of tasks; a difference below zero is noise around nothing.
pub(super) fn constant(ns: i64) -> LinearCost {
    LinearCost {
        base: span(ns),
        per_task: Span::ZERO,
    }
}
