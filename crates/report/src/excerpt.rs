//! The part of a run that charts show.

use shiftwork_model::Instant;
use shiftwork_trace::Segment;

use crate::misses::{Miss, Misses};
use crate::overview::Overview;
use crate::run::Limits;

/// All data up to some instant, and after it windows around misses that are explained one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Ascending and disjoint; the first starts at zero.
    pub windows: Vec<(Instant, Instant)>,
    /// Whether the excerpt is the whole run.
    pub whole: bool,
}

/// What is to be selected from: a run, its misses and its end.
pub(crate) type Candidate<'a> = (&'a Overview, &'a Misses, Instant);

impl Excerpt {
    /// Selects the same windows for all runs, up to where each ends: so many that no chart has more slices than about
    /// those that the limits allow, and half as many more around misses.
    pub fn of(runs: &[Candidate<'_>], limits: &Limits) -> Vec<Self> {
        let slices = limits.slices * 2 / runs.len().max(2);
        let cuts = runs.iter().filter_map(|(run, ..)| run.starts.get(slices));
        let Some(cut) = cuts.min().copied() else {
            let whole = |&(_, _, horizon): &Candidate<'_>| Self {
                windows: vec![(Instant::ZERO, horizon)],
                whole: true,
            };
            return runs.iter().map(whole).collect();
        };
        let mut windows = vec![(Instant::ZERO, cut)];
        let mut misses: Vec<&Miss> = runs.iter().flat_map(|(_, it, _)| &it.first).collect();
        misses.sort_by_key(|miss| (miss.late.deadline, miss.late.job));
        let mut spare = vec![slices / 2; runs.len()];
        for miss in misses {
            let (from, to) = window(miss, runs, slices / 8);
            let costs: Vec<usize> = runs.iter().map(|(run, ..)| cost(run, from, to)).collect();
            if to <= cut || costs.iter().zip(&spare).any(|(cost, spare)| cost > spare) {
                continue;
            }
            windows.push((from, to));
            for (spare, cost) in spare.iter_mut().zip(costs) {
                *spare -= cost;
            }
        }
        let windows = merged(windows);
        let excerpt = |&(_, _, horizon): &Candidate<'_>| Self::cut(&windows, horizon);
        runs.iter().map(excerpt).collect()
    }

    /// The part of these windows before the end of the run.
    fn cut(windows: &[(Instant, Instant)], horizon: Instant) -> Self {
        let windows = windows.iter().filter(|(from, _)| *from < horizon);
        let windows: Vec<_> = windows.map(|&(from, to)| (from, to.min(horizon))).collect();
        Self {
            whole: windows == [(Instant::ZERO, horizon)],
            windows,
        }
    }

    /// Whether something from `from` to `to` is at least partly in a window.
    pub fn shows(&self, from: Instant, to: Instant) -> bool {
        let next = self.windows.partition_point(|&(_, end)| end < from);
        self.windows
            .get(next)
            .is_some_and(|&(start, _)| start <= to)
    }

    pub fn shows_slice(&self, slice: &Segment) -> bool {
        let next = self.windows.partition_point(|&(_, end)| end <= slice.from);
        self.windows
            .get(next)
            .is_some_and(|&(start, _)| start < slice.to)
    }
}

/// The time of the late job from its release on, or the last part of it that needs at most so many slices in each run.
fn window(miss: &Miss, runs: &[Candidate<'_>], most: usize) -> (Instant, Instant) {
    let to = miss.late.until.max(miss.late.deadline);
    let latest = |(run, ..): &Candidate<'_>| {
        let first = run.starts_before(to).checked_sub(most)?;
        run.starts.get(first).copied()
    };
    let from = runs.iter().filter_map(latest).max();
    (from.unwrap_or_default().max(miss.late.release).min(to), to)
}

fn cost(run: &Overview, from: Instant, to: Instant) -> usize {
    run.starts_before(to)
        .saturating_sub(run.starts_before(from))
}

fn merged(mut windows: Vec<(Instant, Instant)>) -> Vec<(Instant, Instant)> {
    windows.sort_unstable();
    let mut merged: Vec<(Instant, Instant)> = Vec::new();
    for (from, to) in windows {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}
