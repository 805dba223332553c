//! Triggers: which jobs of other tasks release the jobs of a task.
//!
//! What is triggered at an instant arrives after all completions of that instant, in the order in which they were made.

use shiftwork_machine::{Step, Taken, TriggerQueue};
use shiftwork_model::{CpuId, Instant, JobId, RecordKind, Recorder, TaskId, TaskSet};

use super::Engine;
use crate::state::Stage;

/// All triggers of a run.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    /// Per task those that it triggers at the completion of a job.
    at_completion: Vec<Vec<TaskId>>,
    /// Per task its triggers; `None` if its jobs arrive by time.
    queues: Vec<Option<TriggerQueue>>,
    /// What was triggered at this instant.
    fired: Vec<(JobId, TaskId)>,
}

impl Triggers {
    /// `None` if no task triggers another.
    pub(crate) fn new(set: &TaskSet) -> Option<Self> {
        set.first_triggered()?;
        let targets = |(id, _)| set.triggered_at_completion(id).collect();
        Some(Self {
            at_completion: set.iter().map(targets).collect(),
            queues: set
                .tasks
                .iter()
                .map(|task| task.trigger().map(TriggerQueue::new))
                .collect(),
            fired: Vec::new(),
        })
    }

    /// Whether something was triggered at this instant.
    pub(crate) const fn have_fired(&self) -> bool {
        !self.fired.is_empty()
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// Notes what the completed job triggers.
    #[inline(never)]
    pub(crate) fn trigger_at_completion(&mut self, job: JobId) {
        let Some(triggers) = &mut self.triggers else {
            return;
        };
        let targets = &triggers.at_completion[job.task.index()];
        triggers
            .fired
            .extend(targets.iter().map(|target| (job, *target)));
    }

    /// The job on the CPU triggers the task and goes on at once: nothing that happens at this instant comes between.
    #[inline(never)]
    pub(crate) fn trigger(&mut self, now: Instant, cpu: CpuId, job: JobId, first: TaskId) {
        let mut target = first;
        loop {
            self.fire(job, target);
            if !self.tasks[job.task.index()].remaining.is_zero() {
                return;
            }
            match self.step(job.task) {
                Step::Trigger(next) => target = next,
                step => return self.take_step(now, cpu, job, step),
            }
        }
    }

    /// Notes the trigger that the job makes, and begins what follows it.
    pub(crate) fn fire(&mut self, job: JobId, target: TaskId) {
        let triggers = self.triggers.as_mut().expect(TRIGGERS);
        triggers.fired.push((job, target));
        self.begin_next_stretch(job.task);
    }

    /// Releases what was triggered at this instant.
    #[inline(never)]
    pub(crate) fn release_triggered(&mut self, now: Instant) {
        let mut at = 0;
        while let Some(triggers) = &mut self.triggers
            && let Some(&(by, task)) = triggers.fired.get(at)
        {
            at += 1;
            let queue = triggers.queues[task.index()].as_mut().expect(TRIGGERS);
            let taken = match self.tasks[task.index()].stage {
                Stage::Absent => Taken::Lost,
                stage => queue.take(by.task, stage == Stage::Idle, now),
            };
            let is_lost = taken == Taken::Lost;
            self.record(now, RecordKind::Triggered { by, task, is_lost });
            if taken == Taken::Releases {
                self.release(now, task);
            }
        }
        if let Some(triggers) = &mut self.triggers {
            triggers.fired.clear();
        }
    }

    /// The arrival of the next job of a triggered task, which begins.
    pub(crate) fn next_triggered(&mut self, id: TaskId) -> Instant {
        let triggers = self.triggers.as_mut().expect(TRIGGERS);
        let queue = triggers.queues[id.index()].as_mut().expect(TRIGGERS);
        queue.next_arrival().expect("a released job has arrived")
    }

    /// Drops all that waits to release a job of the task.
    pub(crate) fn forget_triggers(&mut self, id: TaskId) {
        let triggers = self.triggers.as_mut();
        if let Some(queue) = triggers.and_then(|it| it.queues[id.index()].as_mut()) {
            queue.clear();
        }
    }
}

const TRIGGERS: &str = "a task that is triggered has a queue";
