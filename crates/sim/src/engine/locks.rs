//! Mutexes, whose protocols [`Mutexes`] defines, and what they make of simulated jobs.

use shiftwork_machine::{Handed, MutexMachine, Mutexes, Rank, Request, Step};
use shiftwork_model::{
    Affinity, CpuId, Instant, JobId, NotReadyReason, RecordKind, Recorder, ResourceId, TaskId,
};
use shiftwork_policy::Event;

use super::Engine;
use crate::state::Stage;

/// What mutexes change at an instant, because of what the job on that CPU does.
struct Host<'e, 'a, R> {
    engine: &'e mut Engine<'a, R>,
    now: Instant,
    cpu: CpuId,
}

impl<R: Recorder> Host<'_, '_, R> {
    fn record(&mut self, kind: RecordKind) {
        self.engine.record(self.now, kind);
    }
}

impl<R: Recorder> MutexMachine for Host<'_, '_, R> {
    fn rank(&self, task: TaskId) -> Rank {
        let state = &self.engine.tasks[task.index()];
        Rank {
            priority: state.priority,
            deadline: state.deadline,
        }
    }

    fn own_affinity(&self, task: TaskId) -> &Affinity {
        &self.engine.plans[task.index()].task.affinity
    }

    fn locked(&mut self, task: TaskId, resource: ResourceId) {
        let job = self.engine.job(task);
        self.record(RecordKind::Locked { job, resource });
    }

    fn unlocked(&mut self, task: TaskId, resource: ResourceId) {
        let job = self.engine.job(task);
        self.record(RecordKind::Unlocked { job, resource });
    }

    fn blocked(&mut self, task: TaskId, resource: ResourceId) {
        let reason = NotReadyReason::Blocked(resource);
        let job = self.engine.job(task);
        self.engine.tasks[task.index()].stage = Stage::Blocked;
        self.record(RecordKind::NotReady { job, reason });
        self.engine
            .notify_policy(Event::Block(task), Some(self.cpu));
    }

    fn spins(&mut self, task: TaskId, resource: ResourceId) {
        let job = self.engine.job(task);
        self.engine.tasks[task.index()].stage = Stage::Spinning;
        self.record(RecordKind::Spinning { job, resource });
    }

    fn handed_over(&mut self, task: TaskId, handed: Handed) {
        let state = &mut self.engine.tasks[task.index()];
        state.stage = Stage::Ready;
        if handed.spun
            && let Some(on) = state.cpu.take()
        {
            // It goes on there with its work.
            self.engine.touch(on);
        }
        if handed.goes_on {
            self.engine.begin_next_stretch(task);
        }
    }

    fn becomes_ready(&mut self, task: TaskId) {
        self.engine.arrivals.push(task);
    }

    fn set_rank(&mut self, task: TaskId, rank: Rank) {
        let Rank { priority, deadline } = rank;
        let state = &mut self.engine.tasks[task.index()];
        (state.priority, state.deadline) = (priority, deadline);
        // A job that is not ready, or becomes so at this instant, brings its rank along.
        let is_ready = matches!(state.stage, Stage::Ready | Stage::Spinning);
        self.record(RecordKind::RankChanged {
            task,
            priority,
            deadline,
        });
        if is_ready && !self.engine.arrivals.contains(&task) {
            let event = match self.engine.order.is_by_priority() {
                true => Event::SetPriority(task, priority),
                false => Event::SetDeadline(task, deadline),
            };
            self.engine.notify_policy(event, Some(self.cpu));
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity) {
        self.record(RecordKind::AffinitySet {
            task,
            affinity: Box::new(*affinity),
        });
        let event = Event::SetAffinity(task, affinity);
        self.engine.notify_policy(event, Some(self.cpu));
    }
}

impl<'a, R: Recorder> Engine<'a, R> {
    /// Does something with all mutexes, because of what the job on that CPU does.
    fn with_locks<T>(
        &mut self,
        (now, cpu): (Instant, CpuId),
        act: impl FnOnce(&mut Mutexes, &mut Host<'_, 'a, R>) -> T,
    ) -> T {
        let mut locks = self.locks.take().expect(LOCKS);
        let engine = &mut *self;
        let result = act(&mut locks, &mut Host { engine, now, cpu });
        self.locks = Some(locks);
        result
    }

    /// The job on the CPU requests the mutex: it holds it, or waits for it. Or it runs with it, to which it passed before.
    #[inline(never)]
    pub(crate) fn lock(&mut self, now: Instant, cpu: CpuId, job: JobId, resource: ResourceId) {
        let id = job.task;
        let request = self.with_locks((now, cpu), |locks, host| {
            locks.request(host, (now, cpu), id, resource)
        });
        if request == Request::Holds {
            self.begin_next_stretch(id);
        }
    }

    /// The job on the CPU unlocks the mutex, and those that it unlocks without executing between, at once: nothing that
    /// happens at this instant comes between, but triggers that it makes. It completes if nothing is left to do.
    #[inline(never)]
    pub(crate) fn unlock(&mut self, now: Instant, cpu: CpuId, job: JobId, first: ResourceId) {
        let id = job.task;
        let mut next = Some(first);
        while let Some(resource) = next {
            self.with_locks((now, cpu), |locks, host| locks.unlock(host, id, resource));
            self.begin_next_stretch(id);
            next = self.unlocked_next(job);
        }
        let is_complete =
            self.tasks[id.index()].remaining.is_zero() && self.step(id) == Step::Complete;
        if is_complete {
            // It is gone before anything is scheduled by its own rank, or placed on its own CPUs.
            self.tasks[id.index()].stage = Stage::Idle;
        }
        self.with_locks((now, cpu), |locks, host| {
            locks.pass_on(host, now, id, is_complete);
        });
        if is_complete {
            self.tasks[id.index()].stage = Stage::Ready;
            self.complete(now, id, cpu);
            self.with_locks((now, cpu), |locks, host| locks.end_job(host, id));
        }
    }

    /// The mutex that the job unlocks next without executing before, after triggers that it makes at once.
    fn unlocked_next(&mut self, job: JobId) -> Option<ResourceId> {
        let id = job.task;
        while self.tasks[id.index()].remaining.is_zero() {
            match self.step(id) {
                Step::Unlock(resource) => return Some(resource),
                Step::Trigger(target) => self.fire(job, target),
                _ => return None,
            }
        }
        None
    }
}

const LOCKS: &str = "a task that locks has mutexes";
