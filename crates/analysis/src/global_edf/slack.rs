//! How early each task is known to finish, and what that leaves of its interference with others.
//!
//! [`bcli`](super::bcli()) and [`rta`](super::rta()) start from no knowledge and go round the tasks until all are shown
//! or nothing more is found out.

use shiftwork_model::Span;

use crate::{NotShown, Sporadic, Steps};

use super::divisor::Divisor;

/// A task of which every job finishes by `slack` before its deadline, unless some job misses first.
///
/// Invariant: `cost + slack <= deadline <= period <= Span::MAX`.
pub(super) struct Known {
    pub(super) cost: u64,
    pub(super) deadline: u64,
    pub(super) slack: u64,
    period: Divisor,
}

impl Known {
    fn new(task: &Sporadic) -> Self {
        Self {
            cost: task.cost.as_ns(),
            deadline: task.deadline.as_ns(),
            slack: 0,
            period: Divisor::new(task.period.as_ns()),
        }
    }

    /// The most that jobs due within `length` before a deadline run in that time: the deadlines are
    /// aligned at its end, and a job that is due too soon after its begin was done earlier.
    #[inline]
    pub(super) fn due_within(&self, length: u64) -> u64 {
        let (jobs, rest) = self.period.split(length);
        jobs * self.cost + self.cost.min(rest.saturating_sub(self.slack))
    }

    /// The most that any jobs run in an interval of this length: the first one as late as it can, the
    /// others as soon as they can.
    #[inline]
    pub(super) fn within(&self, length: u64) -> u64 {
        let reach = length + (self.deadline - self.cost - self.slack);
        let (jobs, rest) = self.period.split(reach);
        jobs * self.cost + self.cost.min(rest)
    }
}

/// Goes round the tasks until all are shown or a round finds out nothing. `response` is asked for the
/// greatest response time of a task, which `None` says is not shown to be in time.
///
/// All only grows, so every order of asking ends with the same verdict.
pub(super) fn rounds(
    tasks: &[Sporadic],
    steps: &mut Steps,
    mut response: impl FnMut(usize, &[Known], &mut Steps) -> Option<Option<u64>>,
) -> Option<Result<Vec<Span>, NotShown>> {
    let mut known: Vec<Known> = tasks.iter().map(Known::new).collect();
    loop {
        let (mut not_shown, mut learnt) = (None, false);
        for place in 0..known.len() {
            match response(place, &known, steps)? {
                None => not_shown = not_shown.or(Some(NotShown { place })),
                Some(response) => {
                    let task = &mut known[place];
                    let slack = task.deadline - response;
                    learnt |= slack > task.slack;
                    task.slack = slack.max(task.slack);
                }
            }
        }
        match not_shown {
            None => {
                let response = |task: &Known| Span::from_ns(task.deadline - task.slack);
                return Some(Ok(known.iter().map(response).collect()));
            }
            Some(not_shown) if !learnt => return Some(Err(not_shown)),
            Some(_) => {}
        }
    }
}
