//! What events mean for mutexes.

use shiftwork_model::{
    Instant, JobId, NotReadyReason, Priority, RecordKind, Recorder, ResourceId, TaskId,
};

use super::EventTranslator;
use crate::event::{Event, Kind};

impl EventTranslator {
    /// The first pending job of the task locks or unlocks a mutex, or waits for one.
    pub(super) fn take_mutex_event<R: Recorder>(
        &mut self,
        at: Instant,
        event: Event,
        id: TaskId,
        recorder: &mut R,
    ) {
        let index = usize::try_from(event.value).ok();
        let resource = index.and_then(|number| number.checked_sub(1));
        let (Some(job), Some(index)) = (self.current(id), resource) else {
            return;
        };
        let resource = ResourceId::from_index(index);
        match event.kind {
            Kind::Locked => self.record(at, RecordKind::Locked { job, resource }, recorder),
            Kind::Unlocked => self.record(at, RecordKind::Unlocked { job, resource }, recorder),
            Kind::Spins => self.record(at, RecordKind::Spinning { job, resource }, recorder),
            _ => self.block(at, job, resource, recorder),
        }
    }

    /// The job gives up its CPU, though its thread has not left it yet.
    fn block<R: Recorder>(
        &mut self,
        at: Instant,
        job: JobId,
        resource: ResourceId,
        recorder: &mut R,
    ) {
        if let Some(place) = self.tasks[job.task.index()].on {
            self.show(at, place, None, recorder);
        }
        self.not_ready(at, job.task, NotReadyReason::Blocked(resource), recorder);
    }

    /// What the task is scheduled by from now on, by the protocols of the mutexes that it holds.
    pub(super) fn rank<R: Recorder>(
        &mut self,
        at: Instant,
        event: Event,
        task: TaskId,
        recorder: &mut R,
    ) {
        let state = &mut self.tasks[task.index()];
        let mut ranked_by = None;
        match event.kind {
            Kind::RankPriority => {
                let number = u32::try_from(event.value).ok().and_then(Priority::new);
                state.priority = Some(number.unwrap_or(Priority::NON_PREEMPTIVE));
            }
            _ => {
                let since_ns = event.value.saturating_sub(self.origin_ns);
                ranked_by = Some(Instant::from_ns(since_ns));
            }
        }
        let Some(job) = state.pending.front() else {
            return;
        };
        let deadline = ranked_by.unwrap_or(job.deadline);
        let priority = state.priority.unwrap_or(Priority::MOST_URGENT);
        let kind = RecordKind::RankChanged {
            task,
            priority,
            deadline,
        };
        self.record(at, kind, recorder);
    }
}
