//! How far the jobs of a task are.

use shiftwork_model::{CpuId, Instant, Slots, Span, TaskId, Weight, WindowSource};

use super::windows::Windows;
use crate::order::Subtask;

/// Where the next subtask of a task is until its quantum begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// No subtask waits for a quantum.
    Nowhere,
    /// Among those that may be scheduled, in its domain.
    Eligible,
    /// For the slot from which on it may be scheduled.
    Ineligible,
    /// It has the slot that is decided last, on this CPU, where that has not begun.
    Chosen(CpuId),
}

/// Why the job of a task is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// It is finished.
    Finished,
    /// It suspended itself.
    Suspended,
    /// Its budget is used up.
    Throttled,
}

/// What a task declares, for the jobs to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    /// Cost, period and deadline.
    times: [Span; 3],
    by_period: Weight,
    by_deadline: Weight,
}

impl Declared {
    /// This cost, period and deadline, in these slots.
    pub fn new(times: [Span; 3], slots: &Slots) -> Self {
        Self {
            times,
            by_period: slots.weight(times, WindowSource::Period),
            by_deadline: slots.weight(times, WindowSource::Deadline),
        }
    }

    /// The same in other slots.
    pub fn within(&self, slots: &Slots) -> Self {
        Self::new(self.times, slots)
    }

    /// The weight by what windows are cut from.
    pub const fn weight(&self, source: WindowSource) -> Weight {
        match source {
            WindowSource::Period => self.by_period,
            WindowSource::Deadline => self.by_deadline,
        }
    }

    /// The release time of a job with this deadline, computed from the declared deadline.
    fn release(&self, deadline: Instant) -> Instant {
        Instant::from_ns(deadline.as_ns().saturating_sub(self.times[2].as_ns()))
    }
}

/// A subtask, and from which slot on it may be scheduled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub from: u64,
    pub subtask: Subtask,
}

/// What is known of a task beside where its job stands.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    pub declared: Declared,
    /// Of the present job, or of the last one.
    windows: Windows,
    /// The slot before which the next job's windows do not begin; suspensions do not count.
    not_before: u64,
    /// By which deadline those are.
    deadline: Instant,
    /// How many quanta of those have begun.
    begun: u64,
    /// The first slot that the task may have: the one after its last.
    free_from: u64,
    pub stopped: Stopped,
    /// How many jobs wait for the present one to end.
    pending: u64,
    /// The deadline of the first of them.
    next: Instant,
    pub waits: Waits,
    pub domain: usize,
}

impl Progress {
    /// A task without jobs, in the domain of this number.
    pub fn new(declared: Declared, domain: usize) -> Self {
        Self {
            declared,
            windows: Windows {
                seen: 0,
                weight: declared.weight(WindowSource::Period),
            },
            not_before: 0,
            deadline: Instant::ZERO,
            begun: 0,
            free_from: 0,
            stopped: Stopped::Finished,
            pending: 0,
            next: Instant::ZERO,
            waits: Waits::Nowhere,
            domain,
        }
    }

    /// Whether the job has begun as many quanta as it declares.
    pub fn is_exhausted(&self) -> bool {
        self.begun >= self.windows.weight.quanta.max(1)
    }

    /// The subtask that is next of a job that is ready, when it may be scheduled. While the last quantum `runs`
    /// that the job declares, that is the first one of a job that waits for it, if one does.
    pub fn turn(&self, id: TaskId, runs: bool, early: bool, rules: &Rules<'_>) -> Option<Turn> {
        let (windows, index) = match runs && self.is_exhausted() {
            true if self.pending == 0 => return None,
            true => (self.windows_of(self.next, rules), 1),
            false => (self.windows, self.begun.saturating_add(1)),
        };
        let from = match early && index > 1 {
            true => windows.seen,
            false => windows.release(index),
        };
        Some(Turn {
            from: from.max(self.free_from),
            subtask: windows.subtask(id, index),
        })
    }

    /// Those of a job with this deadline that follows the present one.
    fn windows_of(&self, deadline: Instant, rules: &Rules<'_>) -> Windows {
        let seen = rules.slots.seen(self.declared.release(deadline));
        Windows {
            seen: seen.max(self.not_before),
            weight: self.declared.weight(rules.source),
        }
    }

    /// A quantum of the job begins in this slot.
    pub fn begin_quantum(&mut self, slot: u64) {
        self.begun = self.begun.saturating_add(1);
        self.free_from = slot.saturating_add(1);
    }

    /// The job of this deadline became ready then.
    pub fn wake(&mut self, ready: Instant, deadline: Instant, rules: &Rules<'_>) {
        let goes_on = self.stopped == Stopped::Suspended && deadline == self.deadline;
        if goes_on {
            // The rest of a job that suspended itself is due so much later (intra-sporadic).
            let late = rules.slots.seen(ready);
            let late = late.saturating_sub(self.windows.release(self.begun.saturating_add(1)));
            self.windows.seen = self.windows.seen.saturating_add(late);
            return;
        }
        if self.stopped != Stopped::Throttled && self.pending > 0 {
            self.pending -= 1;
            self.next = deadline + self.declared.times[1];
        }
        self.renew(deadline, rules);
    }

    /// The job is to be scheduled by this deadline from now on.
    pub fn renew(&mut self, deadline: Instant, rules: &Rules<'_>) {
        self.windows = self.windows_of(deadline, rules);
        self.not_before = self.windows.end();
        self.deadline = deadline;
        self.begun = 0;
    }

    /// A job of this deadline waits from now on.
    pub fn wait(&mut self, deadline: Instant) {
        if self.pending == 0 {
            self.next = deadline;
        }
        self.pending += 1;
    }
}

/// By what windows are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub slots: &'a Slots,
    pub source: WindowSource,
}
