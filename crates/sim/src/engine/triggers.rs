//! Triggers: which jobs of other tasks release the jobs of a task.
//!
//! What is triggered at an instant arrives after all completions of that instant, in the order in which they were made.

use std::collections::VecDeque;

use shiftwork_machine::Step;
use shiftwork_model::{
    CpuId, Instant, JobId, Join, RecordKind, Recorder, TaskId, TaskSet, Trigger,
};

use super::Engine;
use crate::state::{Stage, TaskState};

/// All triggers of a run.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    /// Per task those that it triggers at the completion of a job.
    at_completion: Vec<Vec<TaskId>>,
    /// Per task its triggers; `None` if its jobs arrive by time.
    queues: Vec<Option<Queue>>,
    /// What was triggered at this instant.
    fired: Vec<(JobId, TaskId)>,
}

/// The triggers of one task that wait, and its pending jobs.
#[derive(Clone, Debug)]
struct Queue {
    sources: Vec<TaskId>,
    /// Number of triggers so far that were not lost: under [`Join::All`] of each source, otherwise of all together.
    accepted: Vec<u64>,
    limit: u64,
    /// The arrivals of the jobs that have not begun, the earliest first.
    arrivals: VecDeque<Instant>,
}

impl Queue {
    /// The place in `accepted` of triggers by this task.
    fn place(&self, source: TaskId) -> usize {
        match self.accepted.len() {
            1 => 0,
            _ => self
                .sources
                .iter()
                .position(|id| *id == source)
                .unwrap_or(0),
        }
    }

    /// Takes a trigger by `source` of a task in this state. Returns whether it is kept, and whether it releases a job.
    fn take(&mut self, source: TaskId, task: &TaskState) -> (bool, bool) {
        let (released, begun) = (task.released, task.number);
        let place = self.place(source);
        let mut others = self.accepted.iter().enumerate();
        let completes = self.accepted[place] == released
            && others.all(|(other, accepted)| other == place || *accepted > released);
        let begins = completes && task.stage == Stage::Idle;
        if !begins && self.accepted[place] - begun >= self.limit {
            return (false, false);
        }
        self.accepted[place] += 1;
        (true, completes)
    }
}

impl Triggers {
    /// `None` if no task triggers another.
    pub(crate) fn new(set: &TaskSet) -> Option<Self> {
        set.first_triggered()?;
        let queue = |trigger: &Trigger| {
            let places = match trigger.join {
                Join::Any => 1,
                Join::All => trigger.sources.len(),
            };
            Queue {
                sources: trigger.sources.clone(),
                accepted: vec![0; places],
                limit: trigger.queue.map_or(u64::MAX, u64::from),
                arrivals: VecDeque::new(),
            }
        };
        let targets = |(id, _)| set.triggered_at_completion(id).collect();
        Some(Self {
            at_completion: set.iter().map(targets).collect(),
            queues: set
                .tasks
                .iter()
                .map(|task| task.trigger().map(queue))
                .collect(),
            fired: Vec::new(),
        })
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
        let Some(triggers) = &mut self.triggers else {
            return;
        };
        let mut fired = std::mem::take(&mut triggers.fired);
        for (by, task) in fired.drain(..) {
            let state = &self.tasks[task.index()];
            let triggers = self.triggers.as_mut().expect(TRIGGERS);
            let queue = triggers.queues[task.index()].as_mut().expect(TRIGGERS);
            let (is_kept, releases) = match state.stage {
                Stage::Absent => (false, false),
                _ => queue.take(by.task, state),
            };
            if releases {
                queue.arrivals.push_back(now);
            }
            let is_lost = !is_kept;
            self.record(now, RecordKind::Triggered { by, task, is_lost });
            if releases {
                self.release(now, task);
            }
        }
        self.triggers.as_mut().expect(TRIGGERS).fired = fired;
    }

    /// The arrival of the next job of a triggered task, which begins.
    pub(crate) fn next_triggered(&mut self, id: TaskId) -> Instant {
        let arrivals = &mut self.queue(id).arrivals;
        arrivals.pop_front().expect("a released job has arrived")
    }

    /// Drops all that waits to release a job of the task.
    pub(crate) fn forget_triggers(&mut self, id: TaskId) {
        let released = self.tasks[id.index()].released;
        let triggers = self.triggers.as_mut();
        if let Some(queue) = triggers.and_then(|it| it.queues[id.index()].as_mut()) {
            queue.accepted.fill(released);
            queue.arrivals.clear();
        }
    }

    fn queue(&mut self, id: TaskId) -> &mut Queue {
        let triggers = self.triggers.as_mut().expect(TRIGGERS);
        triggers.queues[id.index()].as_mut().expect(TRIGGERS)
    }
}

const TRIGGERS: &str = "a task that is triggered has a queue";
