//! How long less urgent jobs of a CPU keep back another one by sections that they execute boosted, or with a ceiling.
//!
//! `docs/theory/blocking.md`, "Sections that come while a job is pending", has the bound.

use std::cmp::Reverse;

use shiftwork_model::Span;

use super::sum;

/// The sections of a job of a task that may keep back others of its CPU.
#[derive(Default)]
pub(super) struct Sections {
    /// The lengths of those in which it is boosted, of mutexes for which jobs suspend themselves; the longest first.
    boosted: Vec<Span>,
    /// The lengths of those of mutexes that tasks of the CPU alone use, and their ceilings; the longest first.
    alone: Vec<(Span, u64)>,
}

impl Sections {
    pub(super) fn new(mut boosted: Vec<Span>, mut alone: Vec<(Span, u64)>) -> Self {
        boosted.sort_unstable_by_key(|length| Reverse(*length));
        alone.sort_unstable_by_key(|(length, _)| Reverse(*length));
        Self { boosted, alone }
    }

    /// Those of mutexes with at most this ceiling.
    fn alone(&self, ceiling: u64) -> impl Iterator<Item = Span> {
        let alone = self.alone.iter().filter(move |(_, of)| *of <= ceiling);
        alone.map(|(length, _)| *length)
    }
}

/// So many jobs of a task.
#[derive(Clone, Copy)]
pub(super) struct Jobs<'a> {
    pub(super) of: &'a Sections,
    pub(super) count: u128,
}

impl Jobs<'_> {
    /// For how long they execute sections in which they are boosted, so many of them, at most.
    pub(super) fn boosted(self, sections: usize) -> Span {
        let each = self.of.boosted.iter();
        longest(each.map(|length| (*length, self.count)), sections)
    }
}

/// How long these jobs execute sections that they have requested, and not ended, at any of so many moments: at each, one of each task, and
/// only one of all for a mutex of the CPU alone, of which the ceiling is at most this; and no more than they have.
pub(super) fn at_moments(jobs: &[Jobs<'_>], moments: usize, ceiling: u64) -> Span {
    let each = one_of_each(jobs, ceiling);
    if moments == 1 {
        return each;
    }
    let boosted = sum(jobs.iter().map(|it| it.boosted(moments)));
    let alone = jobs.iter().flat_map(|it| {
        let lengths = it.of.alone(ceiling);
        lengths.map(|length| (length, it.count))
    });
    let mut alone: Vec<(Span, u128)> = alone.collect();
    alone.sort_unstable_by_key(|(length, _)| Reverse(*length));
    let all = sum([boosted, longest(alone.into_iter(), moments)]);
    sum((0..moments).map(|_| each)).min(all)
}

/// At one moment.
fn one_of_each(jobs: &[Jobs<'_>], ceiling: u64) -> Span {
    let (mut boosted, mut more) = (Span::ZERO, Span::ZERO);
    for Jobs { of, .. } in jobs {
        let one = of.boosted.first().copied().unwrap_or_default();
        let alone = of.alone(ceiling).next().unwrap_or_default();
        boosted = sum([boosted, one]);
        more = more.max(alone.saturating_sub(one));
    }
    sum([boosted, more])
}

/// The sum of the longest of these sections, of which there are so many each, up to this number of them.
fn longest(sections: impl Iterator<Item = (Span, u128)>, number: usize) -> Span {
    let mut left = number as u128;
    sum(sections.map_while(|(length, many)| {
        let some = many.min(left);
        left -= some;
        (some > 0).then(|| {
            let all = u128::from(length.as_ns()) * some;
            u64::try_from(all).map_or(Span::MAX, Span::from_ns)
        })
    }))
}
