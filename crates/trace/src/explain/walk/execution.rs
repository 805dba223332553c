//! What the job of a task does by itself: it executes, spins, or is not ready.

use shiftwork_model::{CpuSet, Instant, JobId, NotReadyReason, Span};

use super::Walk;
use crate::explain::history::Run;
use crate::explain::piece::Piece;
use crate::explain::{Culprit, Part};

impl Walk<'_> {
    /// The pieces of an interval in which the job of the task is on a CPU.
    pub(super) fn executing(
        &self,
        index: usize,
        number: u64,
        from: Instant,
        to: Instant,
    ) -> Vec<Piece> {
        let history = &self.histories[index];
        if let Some(resource) = history.spins {
            let holder = self.holders.get(&resource).copied();
            return vec![Piece {
                from,
                to,
                number,
                part: Part::Spinning(holder),
                without: vec![(Culprit::Mutex(holder), CpuSet::EMPTY)],
                youngest: Instant::ZERO,
            }];
        }
        let [begins, crosses] = history.crossings(from).unwrap_or([from, Instant::NEVER]);
        let crosses = if self.are_cpus_alike {
            crosses
        } else {
            Instant::NEVER
        };
        let (begins, crosses) = (begins.clamp(from, to), crosses.clamp(from, to));
        let none = CpuSet::EMPTY;
        [
            (
                from,
                begins,
                Part::Interrupted,
                vec![(Culprit::Interrupts, none)],
            ),
            (begins, crosses, Part::Executing, Vec::new()),
            (
                crosses,
                to,
                Part::OwnOverrun,
                vec![(Culprit::OwnOverrun, none)],
            ),
        ]
        .into_iter()
        .filter(|(from, to, ..)| from < to)
        .map(|(from, to, part, without)| Piece {
            from,
            to,
            number,
            part,
            without,
            youngest: Instant::ZERO,
        })
        .collect()
    }

    /// The piece of an interval in which the job of the task is not ready.
    pub(super) fn held(&self, index: usize, number: u64, from: Instant, to: Instant) -> Piece {
        let history = &self.histories[index];
        let is_immediate = self.contract.is_none_or(|contract| contract.immediate);
        let is_out_of_budget = is_immediate || history.is_spent || history.consumed >= history.cost;
        let (part, culprit) = match history.reason {
            Some(NotReadyReason::Suspended) => (Part::Suspended, Culprit::Suspension),
            Some(NotReadyReason::Throttled) => (Part::Throttled, Culprit::OwnOverrun),
            Some(NotReadyReason::Blocked(resource)) => {
                let holder = self.holders.get(&resource).copied();
                (Part::Blocked(holder), Culprit::Mutex(holder))
            }
            None if is_out_of_budget => (Part::Throttled, Culprit::OwnOverrun),
            // Released but not ready: the machine was late to notice the release.
            None => (Part::Stalled, Culprit::Stall),
        };
        Piece {
            from,
            to,
            number,
            part,
            without: vec![(culprit, CpuSet::EMPTY)],
            youngest: Instant::ZERO,
        }
    }

    /// The job holds the mutex, and executes if it has spun on a CPU until now.
    pub(super) fn end_spinning(&mut self, at: Instant, job: JobId) {
        let Some(history) = self.histories.get_mut(job.task.index()) else {
            return;
        };
        let state = &self.state.tasks[job.task.index()];
        let is_there = state.runs.is_some_and(|(number, _)| number == job.number);
        if history.spins.take().is_some() && is_there {
            let (number, from, lost) = (job.number, at, Span::ZERO);
            history.run = Some(Run { number, from, lost });
        }
    }
}
