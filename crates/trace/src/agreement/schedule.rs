//! The scheduled sets of two runs, compared at every moment.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, JobId, Span};

use super::replay::Replay;

/// How the scheduled sets of two runs differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Difference {
    /// For how long they were not the same.
    pub differed: Span,
    /// How much of that lies outside reaction windows.
    pub outside: Span,
    /// The jobs that were outside.
    pub jobs: BTreeMap<JobId, Deviation>,
}

/// A job that executed at other times than its reactions explain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deviation {
    /// Since when.
    pub at: Instant,
    /// Whether it had executed more than in the reference then, not less.
    pub ahead: bool,
    /// By how much, at worst.
    pub by: Span,
}

/// Compares the scheduled sets up to the horizon.
///
/// A job that runs in one run only gets ahead, or falls behind, of the other run. Within its
/// bound that is its machine's reaction, and the moment lies inside a reaction window; beyond it,
/// outside. Moved windows, and a remainder of execution that was left over by an earlier reaction,
/// need no rule of their own then. A job without a bound has none to get ahead by.
///
/// # Cost
/// Per instant a step per CPU.
pub(super) fn compare<'a>(
    mut reference: Replay<'a>,
    mut measured: Replay<'a>,
    bounds: &BTreeMap<JobId, Span>,
    horizon: Instant,
) -> Difference {
    let mut comparison = Comparison {
        bounds,
        ahead: BTreeMap::new(),
        outside: Vec::new(),
        found: Difference::default(),
    };
    let next = |a: &Replay<'_>, b: &Replay<'_>| a.next_at().into_iter().chain(b.next_at()).min();
    while let Some(now) = next(&reference, &measured) {
        for replay in [&mut reference, &mut measured] {
            if replay.next_at() == Some(now) {
                replay.step();
            }
        }
        let until = next(&reference, &measured).unwrap_or(horizon);
        comparison.pass(now, until, [&reference.scheduled(), &measured.scheduled()]);
    }
    comparison.close()
}

struct Comparison<'a> {
    bounds: &'a BTreeMap<JobId, Span>,
    /// By how many nanoseconds the job has executed more in the measured run, or less.
    ahead: BTreeMap<JobId, i128>,
    /// Times outside reaction windows, in no order.
    outside: Vec<(Instant, Instant)>,
    found: Difference,
}

impl Comparison<'_> {
    /// These sets are scheduled from `now` to `until`.
    fn pass(&mut self, now: Instant, until: Instant, [reference, measured]: [&[JobId]; 2]) {
        let only = |these: &[JobId], those: &[JobId]| -> Vec<JobId> {
            let these = these.iter().copied();
            these.filter(|job| !those.contains(job)).collect()
        };
        let (behind, ahead) = (only(reference, measured), only(measured, reference));
        if behind.is_empty() && ahead.is_empty() {
            return;
        }
        self.found.differed += until.late_since(now);
        for job in behind {
            self.deviate(job, -1, now, until);
        }
        for job in ahead {
            self.deviate(job, 1, now, until);
        }
    }

    /// The job runs in one run only: it gets ahead of the reference (`sign` 1) or falls behind (-1).
    fn deviate(&mut self, job: JobId, sign: i128, now: Instant, until: Instant) {
        let bound = self.bounds.get(&job).copied().unwrap_or(Span::ZERO);
        let bound = i128::from(bound.as_ns());
        let time = i128::from(until.late_since(now).as_ns());
        let ahead = self.ahead.entry(job).or_insert(0);
        // Seen in the direction in which the job goes.
        let before = *ahead * sign;
        let after = before + time;
        *ahead = after * sign;
        let moment = |position: i128| {
            let passed = (position - before).clamp(0, time);
            now + Span::from_ns(u64::try_from(passed).unwrap_or(u64::MAX))
        };
        if before < -bound {
            self.outside.push((now, moment(-bound)));
        }
        if after > bound {
            self.outside.push((moment(bound), until));
            let by = Span::from_ns(u64::try_from(after).unwrap_or(u64::MAX));
            let deviation = Deviation {
                at: moment(bound),
                ahead: sign > 0,
                by,
            };
            let known = self.found.jobs.entry(job).or_insert(deviation);
            known.by = known.by.max(by);
        }
    }

    fn close(mut self) -> Difference {
        self.outside.sort_unstable();
        let mut reached = Instant::ZERO;
        for (from, to) in self.outside {
            self.found.outside += to.late_since(from.max(reached));
            reached = reached.max(to);
        }
        self.found
    }
}
