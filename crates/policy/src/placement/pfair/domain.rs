//! The subtasks that compete for a group of CPUs.

use alloc::vec::Vec;

use shiftwork_model::{CpuSet, Slots, TaskId, WindowSource};

use super::super::support::ready::{Backlog, HeapPositions};
use super::progress::{Rules, Turn, Waits};
use crate::order::{Eligibility, Subtask, SubtaskOrder};

/// A group of CPUs on which slots are decided together.
///
/// Invariant: a task of the domain whose job is ready waits in one of the two queues or is chosen, except
/// while it runs the last quantum that its job declares and no other job of it waits.
#[derive(Debug)]
pub(super) struct Domain {
    pub cpus: CpuSet,
    pub slots: Slots,
    pub source: WindowSource,
    /// The slot that is to be decided next.
    pub next: u64,
    /// Whether the slot before that one is to be decided now.
    pub is_open: bool,
    eligible: Backlog<SubtaskOrder>,
    ineligible: Backlog<Eligibility>,
    /// The members.
    pub members: Vec<TaskId>,
}

impl Domain {
    /// Of these CPUs, without tasks.
    pub fn new(cpus: CpuSet, slots: Slots) -> Self {
        Self {
            cpus,
            slots,
            source: WindowSource::Deadline,
            next: 0,
            is_open: false,
            eligible: Backlog::default(),
            ineligible: Backlog::default(),
            members: Vec::new(),
        }
    }

    /// By what windows are made here.
    pub fn rules(&self) -> Rules<'_> {
        Rules {
            slots: &self.slots,
            source: self.source,
        }
    }

    /// The task takes part here from now on.
    pub fn add(&mut self, task: TaskId) {
        self.members.push(task);
        self.eligible.reserve(self.members.len());
        self.ineligible.reserve(self.members.len());
    }

    /// Puts a task in; where it waits then.
    pub fn push(&mut self, task: TaskId, turn: &Turn, places: &mut Places) -> Waits {
        if turn.from < self.next {
            self.eligible.push(turn.subtask, &mut places.eligible);
            Waits::Eligible
        } else {
            self.ineligible
                .push((turn.from, task), &mut places.ineligible);
            Waits::Ineligible
        }
    }

    /// Takes a task out that waits there.
    pub fn remove(&mut self, task: TaskId, waits: Waits, places: &mut Places) {
        match waits {
            Waits::Eligible => self.eligible.remove(task, &mut places.eligible),
            Waits::Ineligible => self.ineligible.remove(task, &mut places.ineligible),
            Waits::Nowhere | Waits::Chosen(_) => {}
        }
    }

    /// Takes out the task, if there is one, that may be scheduled from now on in the slot decided last.
    pub fn pop_due(&mut self, places: &mut Places) -> Option<TaskId> {
        let (from, task) = self.ineligible.top();
        if self.ineligible.is_empty() || from >= self.next {
            return None;
        }
        self.ineligible.remove(task, &mut places.ineligible);
        Some(task)
    }

    /// Takes out the subtask that comes first among those that may be scheduled.
    pub fn pop(&mut self, places: &mut Places) -> Option<Subtask> {
        if self.eligible.is_empty() {
            return None;
        }
        let top = self.eligible.top();
        self.eligible.remove(top.task, &mut places.eligible);
        Some(top)
    }

    /// Puts one back that was popped.
    pub fn put_back(&mut self, subtask: Subtask, places: &mut Places) {
        self.eligible.push(subtask, &mut places.eligible);
    }
}

/// Where tasks stand in the queues of their domains.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub eligible: HeapPositions,
    pub ineligible: HeapPositions,
}

impl Places {
    /// Makes room for the task.
    pub fn enter(&mut self, task: TaskId) {
        self.eligible.enter(task);
        self.ineligible.enter(task);
    }
}

/// The state of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuState {
    /// Its domain.
    pub domain: usize,
    /// The task whose quantum runs.
    pub runs: Option<TaskId>,
    /// The task chosen for the slot that was decided last and has not begun here.
    pub chosen: Option<TaskId>,
    /// The slot that begins at this instant.
    pub begins: Option<u64>,
}
