//! Mutexes: which job holds each and which wait for it, and what their protocols make of the ranks of jobs.
//!
//! A job requests a mutex at the instant at which it has executed what comes before, on its CPU. Requests of one instant
//! are handled in the order of CPUs. A task holds mutexes only within a job, and no budget is enforced for it.

use shiftwork_machine::Step;
use shiftwork_model::{
    Affinities, Affinity, CpuId, Instant, JobId, NotReadyReason, Order, PolicyTraits, Priority,
    Protocol, RecordKind, Recorder, ResourceId, Span, Task, TaskId, TaskSet,
};
use shiftwork_policy::Event;

use super::Engine;
use crate::state::Stage;

/// By what a job is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rank {
    priority: Priority,
    deadline: Instant,
}

impl Rank {
    /// More urgent than any job that may be preempted.
    const NON_PREEMPTIVE: Self = Self {
        priority: Priority::NON_PREEMPTIVE,
        deadline: Instant::ZERO,
    };

    /// The more urgent of both in what the order compares; the rest of this one.
    fn raised_to(self, other: Self, order: Order) -> Self {
        match order.is_by_priority() {
            true => Self {
                priority: self.priority.min(other.priority),
                ..self
            },
            false => Self {
                deadline: self.deadline.min(other.deadline),
                ..self
            },
        }
    }
}

/// A mutex.
#[derive(Clone, Debug)]
struct Mutex {
    protocol: Protocol,
    /// The most urgent priority and the shortest relative deadline of the tasks that use it; `None` if none does.
    ceiling: Option<(Priority, Span)>,
    holder: Option<TaskId>,
    /// In the order of their requests.
    waiters: Vec<TaskId>,
}

/// What a task has of mutexes.
#[derive(Clone, Debug, Default)]
struct Held {
    /// By what its job would be scheduled without mutexes; `None` if it holds none.
    own: Option<Rank>,
    /// The mutexes that it holds, and the rank that comes with each from its protocol, in the order of its locks.
    mutexes: Vec<(ResourceId, Option<Rank>)>,
    /// The mutex that it waits for.
    awaited: Option<ResourceId>,
    /// The CPUs that its job may use by protocols; `None` if these are those of the task.
    cpus: Option<Affinity>,
    /// The CPU on which its job must not be preempted; `None` if it may be.
    kept: Option<CpuId>,
}

/// All mutexes of a run.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    mutexes: Vec<Mutex>,
    tasks: Vec<Held>,
    /// Mutexes that are unlocked at once; empty between steps.
    free: Vec<ResourceId>,
    /// Whether a protocol may change what CPUs a job may use.
    changes_cpus: bool,
    /// Whether the policy would move running jobs to make room for others.
    shifts: bool,
    /// Whether the policy refuses some affinities for those of other tasks.
    is_laminar: bool,
}

impl Locks {
    /// `None` if no task locks a mutex.
    pub(crate) fn new(set: &TaskSet, traits: &PolicyTraits) -> Option<Self> {
        set.first_locking()?;
        let shifts = traits.placement.shifts();
        let mutexes = set
            .resources
            .iter()
            .enumerate()
            .map(|(index, resource)| Mutex {
                protocol: resource.protocol,
                ceiling: set.ceiling(ResourceId::from_index(index), traits.order),
                holder: None,
                waiters: Vec::new(),
            });
        Some(Self {
            mutexes: mutexes.collect(),
            tasks: vec![Held::default(); set.tasks.len()],
            free: Vec::new(),
            changes_cpus: set.resources.iter().any(|it| {
                let protocol = it.protocol;
                protocol.lends_cpus() || (shifts && protocol.is_non_preemptive())
            }),
            shifts,
            is_laminar: traits.affinities == Affinities::Laminar,
        })
    }

    /// Whether the CPUs of this task may not change: those of others depend on them, its job must not be moved, or affinities
    /// that have to be nested may be hidden by protocols.
    pub(crate) fn fixes_cpus_of(&self, task: &Task) -> bool {
        let mut mutexes = self.mutexes.iter().enumerate();
        let matters = |(index, mutex): (usize, &Mutex)| {
            let protocol = mutex.protocol;
            let is_one = protocol.lends_cpus() || protocol.is_non_preemptive();
            is_one && task.locks_one(ResourceId::from_index(index))
        };
        (self.is_laminar && self.changes_cpus) || mutexes.any(matters)
    }
}

impl<R: Recorder> Engine<'_, R> {
    /// The job on the CPU requests the mutex: it holds it, or waits for it. Or it runs with it, to which it passed before.
    #[inline(never)]
    pub(crate) fn lock(&mut self, now: Instant, cpu: CpuId, job: JobId, resource: ResourceId) {
        let id = job.task;
        let Mutex {
            protocol, holder, ..
        } = *self.mutex(resource);
        let waits = holder.is_some_and(|holder| holder != id);
        let spins = waits && protocol == Protocol::Spin;
        if holder.is_none() {
            self.hold(now, job, resource);
        }
        if protocol.is_non_preemptive() && (spins || !waits) {
            let own = self.rank(id);
            let held = self.held(id);
            held.own.get_or_insert(own);
            held.kept.get_or_insert(cpu);
        }
        if !waits {
            self.begin_next_stretch(id);
            self.renew(now, id, Some(cpu));
            return;
        }
        self.mutex(resource).waiters.push(id);
        self.held(id).awaited = Some(resource);
        if spins {
            self.tasks[id.index()].stage = Stage::Spinning;
            self.record(now, RecordKind::Spinning { job, resource });
            self.renew(now, id, Some(cpu));
            return;
        }
        let reason = NotReadyReason::Blocked(resource);
        self.tasks[id.index()].stage = Stage::Blocked;
        self.record(now, RecordKind::NotReady { job, reason });
        self.notify_policy(Event::Block(id), Some(cpu));
        self.inherit(now, id, cpu);
    }

    /// The job holds the mutex from now on. Its rank is not renewed.
    fn hold(&mut self, now: Instant, job: JobId, resource: ResourceId) {
        let id = job.task;
        self.mutex(resource).holder = Some(id);
        let mutex = self.mutex(resource);
        let ceiling = mutex
            .ceiling
            .filter(|_| mutex.protocol == Protocol::Ceiling);
        let ceiling = ceiling.map(|(priority, floor)| Rank {
            priority,
            deadline: now + floor,
        });
        let own = self.rank(id);
        let held = self.held(id);
        held.own.get_or_insert(own);
        held.mutexes.push((resource, ceiling));
        self.record(now, RecordKind::Locked { job, resource });
    }

    /// The job on the CPU unlocks the mutex, and those that it unlocks without executing between, at once: nothing that
    /// happens at this instant comes between, but triggers that it makes. It completes if nothing is left to do.
    #[inline(never)]
    pub(crate) fn unlock(&mut self, now: Instant, cpu: CpuId, job: JobId, first: ResourceId) {
        let id = job.task;
        let mut next = Some(first);
        let mut free = std::mem::take(&mut self.locks.as_mut().expect(LOCKS).free);
        while let Some(resource) = next {
            self.held(id).mutexes.retain(|(held, _)| *held != resource);
            self.mutex(resource).holder = None;
            self.end_kept(id);
            self.record(now, RecordKind::Unlocked { job, resource });
            free.push(resource);
            self.begin_next_stretch(id);
            next = self.unlocked_next(job);
        }
        let is_complete =
            self.tasks[id.index()].remaining.is_zero() && self.step(id) == Step::Complete;
        if is_complete {
            // It is gone before anything is scheduled by its own rank, or placed on its own CPUs.
            self.tasks[id.index()].stage = Stage::Idle;
        }
        self.renew(now, id, Some(cpu));
        for resource in free.drain(..) {
            self.hand_over(now, cpu, resource);
        }
        self.locks.as_mut().expect(LOCKS).free = free;
        if is_complete {
            self.tasks[id.index()].stage = Stage::Ready;
            self.complete(now, id, cpu);
            self.renew_cpus(now, id, Some(cpu));
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

    /// The task's job may be preempted again if it holds no mutex any more that forbids it.
    fn end_kept(&mut self, id: TaskId) {
        let locks = self.locks();
        let protocol = |resource: ResourceId| locks.mutexes[resource.index()].protocol;
        let mut held = locks.tasks[id.index()].mutexes.iter();
        if !held.any(|(held, _)| protocol(*held).is_non_preemptive()) {
            self.held(id).kept = None;
        }
    }

    /// Passes the free mutex to the most urgent job that waits for it; all that spin are equally urgent.
    fn hand_over(&mut self, now: Instant, cpu: CpuId, resource: ResourceId) {
        let waiters = &self.locks().mutexes[resource.index()].waiters;
        let rank = |id: &TaskId| {
            let task = &self.tasks[id.index()];
            self.order.rank(task.deadline, task.priority)
        };
        // Of equals the first.
        let Some(&next) = waiters.iter().min_by_key(|id| rank(id)) else {
            return;
        };
        self.mutex(resource).waiters.retain(|id| *id != next);
        self.held(next).awaited = None;
        self.hold(now, self.job(next), resource);
        let protocol = self.mutex(resource).protocol;
        let state = &mut self.tasks[next.index()];
        let spun = state.stage == Stage::Spinning;
        state.stage = Stage::Ready;
        if spun && let Some(on) = state.cpu.take() {
            // It goes on there with its work.
            self.touch(on);
        }
        // What a non-preemptive mutex forbids begins when its holder runs, which then requests it again.
        if spun || !protocol.is_non_preemptive() {
            self.begin_next_stretch(next);
        }
        self.renew(now, next, Some(cpu));
        if !spun {
            self.arrivals.push(next);
        }
    }

    /// The holders that `id` waits for, directly or not, may inherit its rank and its CPUs.
    fn inherit(&mut self, now: Instant, id: TaskId, cpu: CpuId) {
        let mut waiter = id;
        while let Some(resource) = self.held(waiter).awaited
            && let Some(holder) = self.mutex(resource).holder
            && self.renew(now, holder, Some(cpu))
        {
            waiter = holder;
        }
    }

    /// What the task's job is scheduled by now and where, by the protocols of the mutexes that it holds. Returns whether any
    /// of that has changed.
    ///
    /// CPUs are gained before the rank changes and lost after it: a job that is raised need not take the CPU of another
    /// one first, nor one that is lowered.
    fn renew(&mut self, now: Instant, id: TaskId, cause: Option<CpuId>) -> bool {
        let has_ended = self.tasks[id.index()].stage == Stage::Idle;
        let cpus = self.cpus_by_protocols(id).filter(|_| !has_ended);
        let Some(cpus) = cpus else {
            return self.renew_rank(now, id, cause);
        };
        match self.cpus_of(id).cpus().is_subset(cpus.cpus()) {
            true => {
                self.renew_cpus(now, id, cause);
                self.renew_rank(now, id, cause);
            }
            false => {
                self.renew_rank(now, id, cause);
                self.renew_cpus(now, id, cause);
            }
        }
        true
    }

    /// Where the task's job may run from now on.
    fn renew_cpus(&mut self, now: Instant, id: TaskId, cause: Option<CpuId>) {
        let Some(affinity) = self.cpus_by_protocols(id) else {
            return;
        };
        let is_own = affinity == self.plans[id.index()].task.affinity;
        self.held(id).cpus = Some(affinity).filter(|_| !is_own);
        self.record(
            now,
            RecordKind::AffinitySet {
                task: id,
                affinity: Box::new(affinity),
            },
        );
        self.notify_policy(Event::SetAffinity(id, &affinity), cause);
    }

    /// The CPUs that the task's job may use by the protocols of the mutexes that it holds; `None` if these are the same as
    /// so far.
    fn cpus_by_protocols(&self, id: TaskId) -> Option<Affinity> {
        let locks = self.locks();
        if !locks.changes_cpus {
            return None;
        }
        let held = &locks.tasks[id.index()];
        if let Some(kept) = held.kept.filter(|_| locks.shifts) {
            return Some(Affinity::pinned(kept)).filter(|cpus| cpus != self.cpus_of(id));
        }
        let mutexes = held.mutexes.iter();
        let mutexes = mutexes.map(|(resource, _)| &locks.mutexes[resource.index()]);
        let lent = mutexes.filter(|mutex| mutex.protocol.lends_cpus());
        let own = *self.plans[id.index()].task.affinity.cpus();
        let waiters = lent.flat_map(|mutex| &mutex.waiters);
        let all = waiters.fold(own, |all, waiter| all | *self.cpus_of(*waiter).cpus());
        Affinity::new(all).filter(|cpus| cpus != self.cpus_of(id))
    }

    /// The CPUs that the task's job may use now.
    fn cpus_of(&self, id: TaskId) -> &Affinity {
        let by_protocols = self.locks().tasks[id.index()].cpus.as_ref();
        by_protocols.unwrap_or(&self.plans[id.index()].task.affinity)
    }

    /// What the task's job is scheduled by now, by the protocols of the mutexes that it holds. Returns whether that has
    /// changed.
    fn renew_rank(&mut self, now: Instant, id: TaskId, cause: Option<CpuId>) -> bool {
        let before = self.rank(id);
        let held = &self.locks().tasks[id.index()];
        let Some(own) = held.own else { return false };
        let mut rank = own;
        for (resource, ceiling) in &held.mutexes {
            let mutex = &self.locks().mutexes[resource.index()];
            let inherits = mutex.protocol.inherits();
            let waiters = mutex.waiters.iter().filter(|_| inherits);
            let others = waiters.map(|waiter| self.rank(*waiter)).chain(*ceiling);
            rank = others.fold(rank, |rank, other| rank.raised_to(other, self.order));
        }
        if held.kept.is_some() {
            rank = rank.raised_to(Rank::NON_PREEMPTIVE, self.order);
        } else if held.mutexes.is_empty() {
            self.held(id).own = None;
        }
        if rank == before {
            return false;
        }
        let state = &mut self.tasks[id.index()];
        (state.priority, state.deadline) = (rank.priority, rank.deadline);
        let (priority, deadline) = (rank.priority, rank.deadline);
        self.record(
            now,
            RecordKind::RankChanged {
                task: id,
                priority,
                deadline,
            },
        );
        // A job that is not ready, or becomes so at this instant, brings its rank along.
        let is_ready = matches!(self.tasks[id.index()].stage, Stage::Ready | Stage::Spinning);
        if is_ready && !self.arrivals.contains(&id) {
            let event = match self.order.is_by_priority() {
                true => Event::SetPriority(id, priority),
                false => Event::SetDeadline(id, deadline),
            };
            self.notify_policy(event, cause);
        }
        true
    }

    fn rank(&self, id: TaskId) -> Rank {
        let task = &self.tasks[id.index()];
        Rank {
            priority: task.priority,
            deadline: task.deadline,
        }
    }

    fn locks(&self) -> &Locks {
        self.locks.as_ref().expect(LOCKS)
    }

    fn mutex(&mut self, resource: ResourceId) -> &mut Mutex {
        &mut self.locks.as_mut().expect(LOCKS).mutexes[resource.index()]
    }

    fn held(&mut self, id: TaskId) -> &mut Held {
        &mut self.locks.as_mut().expect(LOCKS).tasks[id.index()]
    }
}

const LOCKS: &str = "a task that locks has mutexes";
