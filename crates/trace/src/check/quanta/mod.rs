//! The allocation of quanta under policies that decide at quantum boundaries: checked at each instant with
//! records, and at each boundary, with or without records.

mod jobs;
mod subtasks;

use shiftwork_model::{CpuId, CpuSet, Instant, Order, RecordKind, Span};

use super::Findings;
use super::state::State;
use subtasks::Subtasks;

/// The rule of a policy that decides only at quantum boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantumRule {
    /// Length of each quantum. Nothing is checked if it is zero.
    pub length: Span,
    /// By CPU the phase of its quanta, less than a length; CPUs beyond the end have no quanta.
    pub phases: Vec<Span>,
    /// The allocation of the quanta.
    pub choice: QuantumChoice,
}

/// The allocation of the quanta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantumChoice {
    /// The most urgent ready jobs, as many as there are of these CPUs; other CPUs run no jobs. A job that is
    /// among them keeps its CPU; any other loses it at the CPU's boundary. Ties are broken by when jobs
    /// became ready, then by task.
    Jobs(CpuSet),
    /// Subtasks, by PD2. Checked as long as each job executes its whole cost, no job is suspended or throttled,
    /// and neither tasks nor CPUs change.
    Subtasks {
        /// By task.
        shares: Vec<PfairShare>,
        /// Whether a job's subtasks after the first may run before their windows.
        early_release: bool,
    },
}

/// The weight of a task under PD2: `quanta` in `slots`. Zero counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfairShare {
    /// The CPUs on which it is scheduled. Those of different tasks are the same or disjoint.
    pub group: CpuSet,
    /// The quanta of a job.
    pub quanta: u64,
    /// The slots of all its windows together.
    pub slots: u64,
}

/// The boundaries of a run, and the checks there.
#[derive(Clone, Debug)]
pub(super) struct Quanta {
    length: u64,
    /// By CPU the next boundary, in ns; `u64::MAX` if there is none.
    next: Vec<u64>,
    order: Order,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Jobs(CpuSet),
    Subtasks(Subtasks),
}

impl Quanta {
    pub fn new(rule: QuantumRule, order: Order, cpus: usize) -> Self {
        let length = rule.length.as_ns();
        let first = |cpu: usize| match rule.phases.get(cpu) {
            Some(phase) if length > 0 => phase.as_ns(),
            _ => u64::MAX,
        };
        Self {
            length,
            next: (0..cpus).map(first).collect(),
            order,
            rule: match rule.choice {
                QuantumChoice::Jobs(served) => Rule::Jobs(served),
                QuantumChoice::Subtasks {
                    shares,
                    early_release,
                } => Rule::Subtasks(Subtasks::new(length, &shares, early_release)),
            },
        }
    }

    /// Takes a record of the instant.
    pub fn take(&mut self, at: Instant, kind: &RecordKind) {
        if let Rule::Subtasks(subtasks) = &mut self.rule {
            subtasks.take(at, kind);
        }
    }

    /// Checks the boundaries before `until`, at which there are no records.
    pub fn pass(&mut self, until: Instant, state: &State, found: &mut Findings) {
        while let Some(&next) = self.next.iter().min()
            && next < until.as_ns()
        {
            self.check(Instant::from_ns(next), state, found);
        }
    }

    /// Checks the instant, after all of its records.
    pub fn check(&mut self, now: Instant, state: &State, found: &mut Findings) {
        let due = self.take_due(now);
        match &mut self.rule {
            Rule::Jobs(served) => {
                jobs::check(self.order, served, &due, (now, state), found);
            }
            Rule::Subtasks(subtasks) => subtasks.check(&due, (now, state), found),
        }
    }

    /// The CPUs whose quanta begin now.
    fn take_due(&mut self, now: Instant) -> CpuSet {
        let mut due = CpuSet::EMPTY;
        for (index, next) in self.next.iter_mut().enumerate() {
            if *next == now.as_ns() && *next != u64::MAX {
                due.insert(CpuId::from_index(index));
                *next = next.checked_add(self.length).unwrap_or(u64::MAX);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checker;
    use crate::check::testing::edf;
    use crate::testing::{Script, at, set};
    use shiftwork_model::{Invariant, Recorder, TaskSet};

    fn found(set: &TaskSet, rule: &QuantumRule, script: &Script, horizon: u64) -> Vec<String> {
        let mut checker = Checker::new(set, edf(Invariant::Quanta)).with_quanta(rule.clone());
        for record in &script.records {
            checker.record(record.at, &record.kind);
        }
        let found = checker.finish(at(horizon));
        found.iter().map(ToString::to_string).collect()
    }

    fn jobs(phases: &[u64]) -> QuantumRule {
        QuantumRule {
            length: Span::from_ns(6),
            phases: phases.iter().copied().map(Span::from_ns).collect(),
            choice: QuantumChoice::Jobs(CpuSet::first(phases.len())),
        }
    }

    fn three() -> TaskSet {
        set(2, &[("a", "0-1"), ("b", "0-1"), ("c", "0-1")])
    }

    #[test]
    fn job_that_starts_or_stops_within_a_quantum_is_a_violation() {
        let script = Script::default().at(3).release(0, 1, 90);
        let starts = script.clone().switch(0, Some((0, 1)));
        assert_eq!(
            found(&three(), &jobs(&[0, 0]), &starts, 9),
            ["at 3ns: job 1 of a starts on CPU 0 within a quantum"]
        );
        let right = script.at(6).switch(0, Some((0, 1)));
        assert_eq!(found(&three(), &jobs(&[0, 0]), &right, 9), [""; 0]);
        let stops = right.at(8).switch(0, None);
        assert_eq!(
            found(&three(), &jobs(&[0, 0]), &stops, 9),
            ["at 8ns: job 1 of a loses CPU 0, and is one of the 2 most urgent jobs"]
        );
    }

    #[test]
    fn boundary_without_records_is_checked() {
        let script = Script::default().at(3).release(0, 1, 90);
        assert_eq!(
            found(&three(), &jobs(&[0, 5]), &script, 6),
            ["at 5ns: a quantum of CPU 1 begins idle, and job 1 of a waits"]
        );
    }

    #[test]
    fn quanta_are_allocated_to_the_most_urgent_jobs() {
        let script = |last: usize| {
            Script::default()
                .at(0)
                .release(0, 1, 50)
                .switch(0, Some((0, 1)))
                .release(1, 1, 80)
                .switch(1, Some((1, 1)))
                .at(4)
                .release(2, 1, 60)
                .at(6)
                .switch(last, Some((2, 1)))
        };
        assert_eq!(found(&three(), &jobs(&[0, 0]), &script(1), 9), [""; 0]);
        assert_eq!(
            found(&three(), &jobs(&[0, 0]), &script(0), 9),
            [
                "at 6ns: job 1 of a loses CPU 0, and is one of the 2 most urgent jobs",
                "at 6ns: job 1 of c starts on CPU 0, and the more urgent job 1 of a waits",
                "at 6ns: job 1 of b has a quantum of CPU 1, and is not one of the 2 most urgent jobs",
            ]
        );
    }

    fn subtasks() -> QuantumRule {
        let share = |quanta| PfairShare {
            group: CpuSet::first(2),
            quanta,
            slots: 3,
        };
        QuantumRule {
            choice: QuantumChoice::Subtasks {
                shares: vec![share(2), share(2), share(1)],
                early_release: false,
            },
            ..jobs(&[0, 0])
        }
    }

    /// In slot 1 the second subtask of a, and of b, and the first of c are due before slot 3, and their windows
    /// do not overlap the next: that of c began first, then the lower task comes.
    #[test]
    fn slots_are_allocated_to_the_subtasks_that_pd2_selects() {
        let begin = Script::default().at(0).release(0, 1, 30).release(1, 1, 30);
        let begin = begin.release(2, 1, 30).switch(0, Some((0, 1)));
        let first = begin.clone().switch(1, Some((1, 1))).at(6);
        let right = first.clone().switch(1, Some((2, 1)));
        assert_eq!(found(&three(), &subtasks(), &right, 9), [""; 0]);
        let wanted = "at 6ns: in slot 1 quanta of a, b begin, and PD2 chooses a, c";
        assert_eq!(found(&three(), &subtasks(), &first, 9), [wanted]);
        let wrong = begin.switch(1, Some((2, 1)));
        let wanted = "at 0ns: in slot 0 quanta of a, c begin, and PD2 chooses a, b";
        assert_eq!(found(&three(), &subtasks(), &wrong, 5), [wanted]);
    }
}
