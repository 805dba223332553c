//! The run queues: the ready jobs of each CPU, and the running one.

use alloc::vec::Vec;

use shiftwork_model::{CpuId, Instant, TaskId};

use super::PushPull;
use crate::policy::{Switch, Switches};

/// The run queue of a CPU.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    /// Everything that is ready here, the first to run first.
    pub(super) ready: Vec<Ready>,
    pub(super) running: Option<TaskId>,
    /// What it ran before the present event.
    pub(super) before: Option<TaskId>,
    /// Whether `before` holds.
    pub(super) is_noted: bool,
}

/// A ready job in its queue; less is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ready {
    pub(super) deadline: Instant,
    /// Sequence number of the enqueueing: the smaller one goes first.
    pub(super) turn: i64,
    pub(super) task: TaskId,
}

impl RunQueue {
    /// The first of the queue, `task` not counted.
    pub(super) fn first_but(&self, task: TaskId) -> Option<Ready> {
        self.ready.iter().copied().find(|other| other.task != task)
    }

    pub(super) fn first(&self) -> Option<Ready> {
        self.ready.first().copied()
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = Ready> {
        let running = self.running;
        let waits = move |ready: &Ready| Some(ready.task) != running;
        self.ready.iter().copied().filter(waits)
    }
}

/// A CPU where a job ended, or was replenished. The earliest decides first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Undecided {
    pub(super) deadline: Instant,
    pub(super) task: TaskId,
    pub(super) cpu: CpuId,
    /// Whether the job became ready there, so that its CPU pushes.
    pub(super) woken: bool,
}

impl PushPull {
    /// Notes what the CPU ran before the present event, once.
    pub(super) fn note(&mut self, cpu: CpuId) -> &mut RunQueue {
        let queue = &mut self.queues[cpu.index()];
        if !queue.is_noted {
            queue.is_noted = true;
            queue.before = queue.running;
        }
        queue
    }

    /// Appends one switch for each CPU whose job is another one than before the event.
    pub(super) fn report(&mut self, out: &mut Switches) {
        for (index, queue) in self.queues.iter_mut().enumerate() {
            if core::mem::take(&mut queue.is_noted) && queue.before != queue.running {
                out.push(Switch {
                    cpu: CpuId::from_index(index),
                    from: queue.before,
                    to: queue.running,
                });
            }
        }
    }

    /// The ready job of the task waits in this queue from now on, as the last of its deadline.
    pub(super) fn enqueue(&mut self, task: TaskId, cpu: CpuId) {
        self.enqueued += 1;
        self.enqueue_as(task, cpu, self.enqueued);
    }

    pub(super) fn enqueue_as(&mut self, task: TaskId, cpu: CpuId, turn: i64) {
        let entry = Ready {
            deadline: self.tasks.get(task).job.deadline,
            turn,
            task,
        };
        let ready = &mut self.queues[cpu.index()].ready;
        let at = ready.partition_point(|other| *other < entry);
        ready.insert(at, entry);
        self.homes[task.index()] = cpu;
    }

    /// The waiting job is the last of its deadline in another queue from now on.
    pub(super) fn move_to(&mut self, task: TaskId, cpu: CpuId) {
        let home = self.homes[task.index()];
        self.remove(task, home);
        self.enqueue(task, cpu);
    }

    pub(super) fn remove(&mut self, task: TaskId, cpu: CpuId) {
        self.queues[cpu.index()]
            .ready
            .retain(|ready| ready.task != task);
    }

    /// Takes the job out of its queue; whether it ran.
    pub(super) fn dequeue(&mut self, task: TaskId) -> bool {
        let home = self.homes[task.index()];
        let queue = self.note(home);
        queue.ready.retain(|ready| ready.task != task);
        let ran = queue.running == Some(task);
        if ran {
            queue.running = None;
        }
        ran
    }
}
