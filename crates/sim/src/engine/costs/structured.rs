//! The costs of an implementation's structure: interrupts, and operations on its ready queue.

use shiftwork_model::{
    CpuId, Instant, Interrupts, JobId, Overheads, Recorder, Span, Structure, TaskId, TaskSet,
};

use super::Engine;
use super::contention::{Contention, Entry, Key, Lengths, QueueUse};
use crate::state::Stage;

/// The ready queue, and the interrupted CPU.
#[derive(Debug)]
pub(super) struct Structured {
    interrupts: Interrupts,
    queue: Contention,
    /// The CPU interrupted at this instant.
    interrupted: Option<CpuId>,
    /// The jobs of one operation.
    keys: Vec<Key>,
}

impl Structured {
    pub(super) fn new(set: &TaskSet, structure: Structure, overheads: &Overheads) -> Self {
        let tasks = set.tasks.len();
        let lengths = Lengths {
            enqueue: overheads.enqueue.at(tasks),
            dequeue: overheads.dequeue.at(tasks),
        };
        Self {
            interrupts: structure.interrupts,
            queue: Contention::new(structure.queue, lengths, set.platform.cpus, tasks),
            interrupted: None,
            keys: Vec::with_capacity(tasks),
        }
    }

    /// The durations of operations on the ready queue; `None` if they are not measured.
    pub(super) fn used(&mut self) -> &mut Option<QueueUse> {
        &mut self.queue.used
    }

    /// The CPU that enqueued the task's present job.
    pub(super) fn enqueued_by(&self, task: TaskId) -> Option<CpuId> {
        self.queue.entry(task).by
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// A job of the task is released, under an implementation of a known structure. All releases of an
    /// instant are one interrupt.
    pub(super) fn interrupt(&mut self, now: Instant, id: TaskId) {
        let Some(cpu) = self.interrupt_cpu(id) else {
            return;
        };
        let Some(costs) = &mut self.costs else { return };
        let span = costs.on(cpu).release;
        let is_first = costs
            .structured
            .as_mut()
            .is_some_and(|it| it.interrupted.replace(cpu).is_none());
        if is_first {
            self.steal(now, cpu, span);
        }
    }

    /// The CPU that handles the interrupts of an instant if the first of them concerns this task.
    fn interrupt_cpu(&self, id: TaskId) -> Option<CpuId> {
        let structured = self.costs.as_ref()?.structured.as_ref()?;
        match structured.interrupts {
            Interrupts::Dedicated(cpu) => Some(cpu),
            Interrupts::Global => structured.interrupted.or(self.home(id)),
        }
    }

    /// Enqueues all jobs that become ready at this instant: first those whose predecessor has completed, each on
    /// the CPU of its task, then the others, on the interrupted CPU.
    #[inline(never)]
    pub(crate) fn charge_arrivals(&mut self, now: Instant, successors: usize) {
        for at in 0..successors {
            let id = self.arrivals[at];
            if let Some(cpu) = self.home(id) {
                self.enqueue(now, cpu, at..at + 1);
            }
        }
        let all = self.arrivals.len();
        let interrupt = (successors < all)
            .then(|| self.interrupt_cpu(self.arrivals[successors]))
            .flatten();
        let structured = self.costs.as_mut().and_then(|it| it.structured.as_mut());
        let Some(structured) = structured else { return };
        structured.interrupted = None;
        let merges = structured.queue.merges();
        let Some(cpu) = interrupt else { return };
        if merges {
            self.enqueue(now, cpu, successors..all);
        } else {
            for at in successors..all {
                self.enqueue(now, cpu, at..at + 1);
            }
        }
    }

    /// The CPU is interrupted to enqueue these arrivals in one operation.
    fn enqueue(&mut self, now: Instant, cpu: CpuId, arrivals: core::ops::Range<usize>) {
        let Some(costs) = &mut self.costs else { return };
        let begin = costs.backlogs[cpu.index()].after_interrupts(now);
        let Some(structured) = &mut costs.structured else {
            return;
        };
        let key = |id: &TaskId| (self.tasks[id.index()].deadline, *id);
        structured.keys.clear();
        structured
            .keys
            .extend(self.arrivals[arrivals].iter().map(key));
        let end = structured.queue.enqueue(now, begin, cpu, &structured.keys);
        self.steal(now, cpu, end.late_since(begin));
    }

    /// Removes the waiting job of a task that leaves.
    pub(crate) fn forget_queued(&mut self, id: TaskId) {
        if let Some(structured) = self.costs.as_mut().and_then(|it| it.structured.as_mut()) {
            structured.queue.forget(id);
        }
    }

    /// Whether CPUs contend for locks.
    pub(crate) fn is_structured(&self) -> bool {
        self.costs
            .as_ref()
            .is_some_and(|it| it.structured.is_some())
    }

    /// Sorts the CPUs that may switch by the instants at which they begin to do so.
    #[inline(never)]
    pub(crate) fn sort_by_begin(&mut self, now: Instant) {
        let mut touched = core::mem::take(&mut self.touched);
        touched.sort_unstable_by_key(|&cpu| {
            let notified = self.notified_at(now, cpu, self.cpus[cpu.index()].assigned);
            let begin = self
                .costs
                .as_ref()
                .map(|it| it.backlogs[cpu.index()].after_interrupts(notified));
            (begin, cpu)
        });
        self.touched = touched;
    }

    /// The instant at which the CPU is notified of its assigned task: not before the job is in the queue.
    fn notified_at(&self, now: Instant, cpu: CpuId, to: Option<TaskId>) -> Instant {
        let Some(costs) = &self.costs else { return now };
        let queue = costs.structured.as_ref().map(|it| &it.queue);
        let entry = queue.zip(to).map(|(queue, task)| queue.entry(task));
        let since = entry.map_or(Instant::ZERO, |entry: Entry| entry.since);
        now.max(since) + costs.latency(cpu)
    }

    /// The latency until the CPU is notified of a switch, and the time for carrying it out.
    pub(super) fn structured_switch(
        &mut self,
        now: Instant,
        cpu: CpuId,
        (from, to): (Option<JobId>, Option<JobId>),
    ) -> (Span, Span) {
        let notified = self.notified_at(now, cpu, to.map(|job| job.task));
        let requeued = from.filter(|&job| self.waits_again(job));
        let requeued = requeued.map(|job| (self.tasks[job.task.index()].deadline, job.task));
        let Some(costs) = &mut self.costs else {
            return (Span::ZERO, Span::ZERO);
        };
        let (schedule, switch) = (costs.on(cpu).schedule, costs.on(cpu).switch);
        let begin = costs.backlogs[cpu.index()].after_interrupts(notified);
        let mut at = begin;
        if let Some(structured) = &mut costs.structured {
            if let Some(key) = requeued {
                at = structured.queue.enqueue(now, at, cpu, &[key]);
            }
            at += schedule;
            if let Some(job) = to {
                at = structured.queue.dequeue(now, at, job.task) + switch;
            }
        }
        (notified.late_since(now), at.late_since(begin))
    }

    /// Whether the job, which has just left a CPU, waits now.
    fn waits_again(&self, job: JobId) -> bool {
        let state = &self.tasks[job.task.index()];
        let goes_on = |cpu: &CpuId| self.cpus[cpu.index()].assigned == Some(job.task);
        state.number == job.number
            && state.stage == Stage::Ready
            && state.cpu.is_none()
            && !self.touched.iter().any(goes_on)
    }
}
