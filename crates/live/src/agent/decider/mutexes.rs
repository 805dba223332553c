//! Jobs that lock mutexes: what their threads report, and what [`Mutexes`], the simulator's own, makes of it.

use shiftwork_machine::{Handed, MutexMachine, Mutexes, Rank, Request};
use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, ResourceId, TaskId};
use shiftwork_policy::Event as PolicyEvent;

use super::task_state::Stage;
use super::{Decider, number};
use crate::event::{Event, Kind, UnlockValue};

impl MutexMachine for Decider {
    fn rank(&self, task: TaskId) -> Rank {
        let state = &self.states[task.index()];
        Rank {
            priority: state.priority,
            deadline: state.deadline,
        }
    }

    fn own_affinity(&self, task: TaskId) -> &Affinity {
        &self.tasks[task.index()].affinity
    }

    fn locked(&mut self, task: TaskId, resource: ResourceId) {
        self.emit_of_mutex(Kind::Locked, task, resource);
    }

    fn unlocked(&mut self, task: TaskId, resource: ResourceId) {
        self.emit_of_mutex(Kind::Unlocked, task, resource);
    }

    fn blocked(&mut self, task: TaskId, resource: ResourceId) {
        if !self.states[task.index()].is_present {
            return;
        }
        self.states[task.index()].stage = Stage::Blocked;
        self.emit_of_mutex(Kind::AwaitsMutex, task, resource);
        self.apply(PolicyEvent::Block(task));
    }

    fn spins(&mut self, task: TaskId, resource: ResourceId) {
        self.emit_of_mutex(Kind::Spins, task, resource);
    }

    fn handed_over(&mut self, task: TaskId, handed: Handed) {
        let state = &mut self.states[task.index()];
        if !state.is_present {
            // Its thread runs, and is not scheduled by the mutex.
            self.grant(task);
            return;
        }
        state.stage = match state.is_awake {
            true => Stage::Ready,
            false => Stage::Suspended,
        };
        if handed.goes_on {
            self.grant(task);
        }
    }

    fn becomes_ready(&mut self, task: TaskId) {
        let state = &self.states[task.index()];
        if state.is_present && state.stage == Stage::Ready {
            self.arrivals.push(Job {
                task,
                ready: self.cause,
                deadline: state.deadline,
                priority: state.priority,
            });
        }
    }

    fn set_rank(&mut self, task: TaskId, rank: Rank) {
        let Rank { priority, deadline } = rank;
        let by_priority = self.order.is_by_priority();
        let state = &mut self.states[task.index()];
        (state.priority, state.deadline) = (priority, deadline);
        if !state.is_present {
            return;
        }
        let is_ready = state.stage == Stage::Ready && !state.ends;
        let (kind, value) = match by_priority {
            true => (Kind::RankPriority, u64::from(priority.number())),
            false => (Kind::RankDeadline, self.value(deadline)),
        };
        self.emit(self.cause, kind, number(task), None, value);
        // A job that becomes ready at this instant brings its rank along.
        if let Some(job) = self.arrivals.iter_mut().find(|job| job.task == task) {
            (job.priority, job.deadline) = (priority, deadline);
        } else if is_ready {
            self.apply(match by_priority {
                true => PolicyEvent::SetPriority(task, priority),
                false => PolicyEvent::SetDeadline(task, deadline),
            });
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity) {
        if !self.states[task.index()].in_policy {
            return;
        }
        let cpus: CpuSet = affinity
            .cpus()
            .iter()
            .map(|cpu| self.cpus[cpu.index()].cpu)
            .collect();
        self.emit(
            self.cause,
            Kind::Affinity,
            number(task),
            None,
            cpus.words()[0],
        );
        self.apply(PolicyEvent::SetAffinity(task, affinity));
    }
}

impl Decider {
    /// Does something with all mutexes, if a task locks one.
    fn with_mutexes<T>(&mut self, act: impl FnOnce(&mut Mutexes, &mut Self) -> T) -> Option<T> {
        let mut mutexes = self.mutexes.take()?;
        let result = act(&mut mutexes, self);
        self.mutexes = Some(mutexes);
        Some(result)
    }

    /// The thread of the task requests a mutex, and waits on its CPU for the answer.
    ///
    /// A job requests a mutex when it runs: one that has lost its CPU meanwhile, as far as is decided, does so when it has one
    /// again.
    pub(super) fn lock_requested(&mut self, event: Event, id: TaskId) {
        let index = usize::try_from(event.value).ok();
        let Some(index) = index.and_then(|number| number.checked_sub(1)) else {
            return;
        };
        // Only a thread that the end of the run let go on while it waited requests again.
        if self
            .mutexes
            .as_ref()
            .is_some_and(|mutexes| mutexes.waits(id))
        {
            return;
        }
        self.states[id.index()].requested = Some(ResourceId::from_index(index));
        if !self.states[id.index()].is_present {
            // On any CPU: its thread is not scheduled by the mutex.
            self.request(id, 0);
        } else if let Some(cpu) = self.cpus.iter().position(|cpu| cpu.slot == Some(id)) {
            self.request(id, cpu);
        }
    }

    /// Looks for jobs that have a CPU, again or still, and request a mutex now that they run.
    pub(super) fn find_requests(&mut self) {
        let requests = |id: TaskId| {
            let state = &self.states[id.index()];
            state.requested.is_some() && state.stage == Stage::Ready
        };
        let mut assigned = self.cpus.iter().filter_map(|cpu| cpu.slot);
        self.has_requests = self.mutexes.is_some() && assigned.any(requests);
    }

    /// Makes the requests of the jobs that have a CPU again, and have not lost it by what came since.
    pub(super) fn make_requests(&mut self, now: Instant) {
        if !std::mem::take(&mut self.has_requests) {
            return;
        }
        self.cause = now;
        for cpu in 0..self.cpus.len() {
            let assigned = self.policy.assigned(CpuId::from_index(cpu));
            if let Some(id) = self.cpus[cpu].slot.filter(|id| assigned == Some(*id)) {
                self.request(id, cpu);
            }
        }
    }

    /// The task's job requests what its thread has asked for, unless it waits for that by now.
    pub(super) fn request(&mut self, id: TaskId, cpu_index: usize) {
        let state = &self.states[id.index()];
        let requested = state.requested;
        let Some(resource) = requested.filter(|_| !state.is_present || state.stage == Stage::Ready)
        else {
            return;
        };
        let at = (self.cause, CpuId::from_index(cpu_index));
        let request =
            self.with_mutexes(|mutexes, decider| mutexes.request(decider, at, id, resource));
        match request {
            Some(Request::Holds) | None => self.grant(id),
            Some(Request::Spins) => self.states[id.index()].requested = None,
            Some(Request::Waits) => {}
        }
    }

    /// The thread goes on with what it requested.
    fn grant(&mut self, id: TaskId) {
        self.states[id.index()].requested = None;
        self.answered.push(id);
    }

    /// The thread of the task has unlocked mutexes, and unless its job ends by that waits for the decision that follows: it may lose
    /// its CPU before its next step. Those that it does not hold, as far as is known, have been passed on before.
    ///
    /// What a job unlocks when it ends passes on when that end is reported: its thread could lose its CPU in between, and end it later.
    pub(super) fn unlock_requested(&mut self, now: Instant, event: Event, id: TaskId) {
        let value = UnlockValue::read(event.value);
        if value.at_completion && self.states[id.index()].is_present {
            self.states[id.index()].has_unlocked = true;
            return;
        }
        self.with_mutexes(|mutexes, decider| {
            let mut is_news = false;
            for resource in value.mutexes() {
                if mutexes.holds(id, resource) {
                    mutexes.unlock(decider, id, resource);
                    is_news = true;
                }
            }
            if is_news {
                mutexes.pass_on(decider, now, id, value.at_completion);
            }
        });
        if !value.at_completion {
            self.answered.push(id);
        }
    }

    /// The present job of the task is about to end, or its thread has ended: what it holds passes on.
    pub(super) fn abandon_mutexes(&mut self, now: Instant, id: TaskId) {
        let involves = |mutexes: &Mutexes| mutexes.involves(id);
        if !self.mutexes.as_ref().is_some_and(involves) {
            return;
        }
        self.states[id.index()].ends = true;
        self.states[id.index()].requested = None;
        self.with_mutexes(|mutexes, decider| mutexes.abandon(decider, now, id));
    }

    /// The present job of the task has ended.
    pub(super) fn end_mutexes(&mut self, id: TaskId) {
        let state = &mut self.states[id.index()];
        (state.ends, state.has_unlocked) = (false, false);
        self.with_mutexes(|mutexes, decider| mutexes.end_job(decider, id));
    }

    /// The task has lost its reservation: its thread goes on as ordinary work, and keeps what it has locked until it unlocks it. What
    /// it unlocked at the end of its job passes on.
    pub(super) fn demote_with_mutexes(&mut self, id: TaskId) {
        if self.states[id.index()].has_unlocked {
            self.abandon_mutexes(self.cause, id);
            self.end_mutexes(id);
        }
        self.with_mutexes(|mutexes, decider| mutexes.lower(decider, id));
    }

    fn emit_of_mutex(&mut self, kind: Kind, task: TaskId, resource: ResourceId) {
        let value = resource.index() as u64 + 1;
        self.emit(self.cause, kind, number(task), None, value);
    }
}
