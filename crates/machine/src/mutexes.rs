//! Mutexes: which job holds each and which wait for it, and what their protocols make of the ranks and the CPUs of jobs.
//!
//! This is the definition of all protocols for machines that decide in user space; `kernel-core` has the same in C. A machine
//! says when a job requests or unlocks a mutex, and carries out what follows as a [`MutexMachine`].

mod interface;
mod mutex;
mod renewal;
mod served;

use shiftwork_model::{
    Affinities, Affinity, CpuId, Instant, Order, Phase, PolicyTraits, Priority, Protocol,
    ResourceId, Task, TaskId, TaskSet,
};

pub use interface::{Handed, MutexMachine, Rank, Request};
use mutex::{Boost, Mutex};

/// What a task has of mutexes.
#[derive(Clone, Debug)]
struct Held {
    /// By what its job would be scheduled without mutexes; `None` if it holds none.
    own: Option<Rank>,
    /// The mutexes that it holds, and the rank that comes with each from its protocol, in the order of its locks.
    mutexes: Vec<(ResourceId, Option<Rank>)>,
    /// The mutex that it waits for.
    awaited: Option<ResourceId>,
    /// The number of its last request that had to wait, by which equals are served with DPCP.
    request: u64,
    /// Its own priority, by which it locks with DPCP.
    priority: Priority,
    /// The CPUs that its job may use by protocols; `None` if these are those of the task.
    cpus: Option<Affinity>,
    /// The CPU on which its job must not be preempted; `None` if it may be.
    kept: Option<CpuId>,
    /// By which mutex that boosts it does so, which it holds, or waits for with FMLP+; [`Boost::NONE`] if there is none.
    boosted_by: Boost,
}

/// All mutexes of a run.
///
/// A job requests a mutex at the instant at which it has executed what comes before, on its CPU. Requests of one instant are made
/// in the order of CPUs. A task holds mutexes only within a job, and no budget is enforced for it.
///
/// Allocates nothing after [`new`](Self::new).
#[derive(Clone, Debug)]
pub struct Mutexes {
    mutexes: Vec<Mutex>,
    tasks: Vec<Held>,
    /// Mutexes that are unlocked and have not been passed on; empty between steps.
    free: Vec<ResourceId>,
    /// The tasks that hold a mutex that boosts.
    boosted: Vec<TaskId>,
    /// The next number of a boost, or of a request that has to wait.
    numbers: u64,
    order: Order,
    /// Whether a protocol may change what CPUs a job may use.
    changes_cpus: bool,
    /// Whether the policy would move running jobs to make room for others.
    shifts: bool,
    /// Whether the policy refuses some affinities for those of other tasks.
    is_laminar: bool,
}

impl Mutexes {
    /// Those of this set under a policy with these properties; `None` if no task locks a mutex.
    pub fn new(set: &TaskSet, traits: &PolicyTraits) -> Option<Self> {
        set.first_locking()?;
        let shifts = traits.placement.shifts();
        let mutex = |(index, protocol)| {
            let id = ResourceId::from_index(index);
            let users = set.tasks.iter().filter(|task| task.locks_one(id));
            Mutex {
                protocol,
                ceiling: set.ceiling(id, traits.order),
                remote_ceilings: match protocol {
                    Protocol::Mpcp => set.remote_ceilings(id),
                    _ => Vec::new(),
                },
                served_on: set.served_on(id).map(Affinity::pinned),
                holder: None,
                first_come: set.first_come(id),
                waiters: Vec::with_capacity(users.count()),
            }
        };
        let protocols = set.resources.iter().map(|resource| resource.protocol);
        let held = |(task, priority): (&Task, Priority)| {
            let phases = task.phases().iter();
            let locks = phases.filter(|phase| matches!(phase, Phase::Lock(_)));
            Held {
                own: None,
                mutexes: Vec::with_capacity(locks.count()),
                awaited: None,
                request: 0,
                priority,
                cpus: None,
                kept: None,
                boosted_by: Boost::NONE,
            }
        };
        Some(Self {
            mutexes: protocols.enumerate().map(mutex).collect(),
            tasks: set.tasks.iter().zip(set.priorities()).map(held).collect(),
            free: Vec::with_capacity(set.resources.len()),
            boosted: Vec::with_capacity(set.tasks.len()),
            numbers: 0,
            order: traits.order,
            changes_cpus: set.resources.iter().enumerate().any(|(index, it)| {
                let protocol = it.protocol;
                let id = ResourceId::from_index(index);
                let moves = protocol.lends_cpus() || set.served_on(id).is_some();
                moves || (shifts && protocol.is_non_preemptive())
            }),
            shifts,
            is_laminar: traits.affinities == Affinities::Laminar,
        })
    }

    /// Whether the CPUs of this task may not change: those of others depend on them, its job must not be moved, or affinities
    /// that have to be nested may be hidden by protocols.
    pub fn fixes_cpus_of(&self, task: &Task) -> bool {
        let mut mutexes = self.mutexes.iter().enumerate();
        let matters = |(index, mutex): (usize, &Mutex)| {
            let protocol = mutex.protocol;
            let is_one = protocol.lends_cpus() || protocol.may_not_suspend();
            is_one && task.locks_one(ResourceId::from_index(index))
        };
        (self.is_laminar && self.changes_cpus) || mutexes.any(matters)
    }

    /// Whether the task's job holds the mutex.
    pub fn holds(&self, task: TaskId, resource: ResourceId) -> bool {
        let mutex = self.mutexes.get(resource.index());
        mutex.is_some_and(|mutex| mutex.holder == Some(task))
    }

    /// Whether the task's job waits for a mutex.
    pub fn waits(&self, task: TaskId) -> bool {
        self.tasks[task.index()].awaited.is_some()
    }

    /// Whether the task's job holds a mutex, or waits for one.
    pub fn involves(&self, task: TaskId) -> bool {
        let held = &self.tasks[task.index()];
        !held.mutexes.is_empty() || held.awaited.is_some()
    }

    /// The job that runs on this CPU requests the mutex, which must not be one that it waits for. It holds it then, or waits for
    /// it. Or it runs with it, to which it passed before.
    pub fn request(
        &mut self,
        machine: &mut impl MutexMachine,
        (now, cpu): (Instant, CpuId),
        task: TaskId,
        resource: ResourceId,
    ) -> Request {
        debug_assert!(self.held(task).awaited.is_none(), "{task:?} waits");
        let Mutex {
            protocol, holder, ..
        } = *self.mutex(resource);
        if protocol == Protocol::Fmlp
            && let Some(ceiling) = self.mutex(resource).boost_of(task)
        {
            self.boost(task, ceiling);
        }
        let waits = match holder {
            Some(holder) => holder != task,
            None => !self.may_lock(task, resource),
        };
        let spins = waits && protocol == Protocol::Spin;
        if holder.is_none() && !waits {
            self.hold(machine, now, task, resource);
        }
        if protocol.is_non_preemptive() && (spins || !waits) {
            let own = machine.rank(task);
            let held = self.held(task);
            held.own.get_or_insert(own);
            held.kept.get_or_insert(cpu);
        }
        if !waits {
            self.renew(machine, task, false);
            self.renew_boosted(machine, task);
            return Request::Holds;
        }
        self.mutex(resource).waiters.push(task);
        self.held(task).request = self.numbers;
        self.numbers += 1;
        self.held(task).awaited = Some(resource);
        if spins {
            machine.spins(task, resource);
            self.renew(machine, task, false);
            return Request::Spins;
        }
        machine.blocked(task, resource);
        self.inherit(machine, task);
        Request::Waits
    }

    /// The job holds the mutex from now on. Its rank is not renewed.
    fn hold(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        task: TaskId,
        resource: ResourceId,
    ) {
        let mutex = self.mutex(resource);
        mutex.holder = Some(task);
        let protocol = mutex.protocol;
        let boost = mutex.boost_of(task);
        let ceiling = mutex.ceiling.filter(|_| mutex.has_ceiling(task));
        let ceiling = ceiling.map(|(priority, floor)| Rank {
            priority,
            deadline: now + floor,
        });
        let own = machine.rank(task);
        let held = self.held(task);
        held.own.get_or_insert(own);
        held.mutexes.push((resource, ceiling));
        if let Some(ceiling) = boost {
            // With FMLP+ the request has done so.
            if protocol != Protocol::Fmlp {
                self.boost(task, ceiling);
            }
            if !self.boosted.contains(&task) {
                self.boosted.push(task);
            }
        }
        machine.locked(task, resource);
    }

    /// A mutex boosts the task's job by this ceiling from now on, or when the mutex belongs to it.
    fn boost(&mut self, task: TaskId, ceiling: Priority) {
        let number = self.numbers;
        self.numbers += 1;
        let held = self.held(task);
        held.boosted_by = held.boosted_by.min(Boost { ceiling, number });
    }

    /// The job unlocks the mutex, which it must hold. It passes to no other before [`pass_on`](Self::pass_on), and the job keeps its
    /// rank until then.
    pub fn unlock(&mut self, machine: &mut impl MutexMachine, task: TaskId, resource: ResourceId) {
        let mutexes = &mut self.held(task).mutexes;
        // Nearly always that which was locked last.
        if mutexes.pop_if(|(held, _)| *held == resource).is_none() {
            mutexes.retain(|(held, _)| *held != resource);
        }
        self.mutex(resource).holder = None;
        self.end_kept(task);
        self.end_boost(task);
        machine.unlocked(task, resource);
        self.free.push(resource);
    }

    /// What the task's job has unlocked at this instant passes on. `has_ended`: the job ends at this instant, and is scheduled by
    /// its own rank no more; [`end_job`](Self::end_job) comes next.
    pub fn pass_on(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        task: TaskId,
        has_ended: bool,
    ) {
        self.renew_boosted(machine, task);
        self.renew(machine, task, has_ended);
        for at in 0..self.free.len() {
            self.hand_over(machine, now, self.free[at]);
        }
        self.free.clear();
    }

    /// The task's job has ended: the CPUs that it had by protocols are those of the task again.
    pub fn end_job(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        self.renew_cpus(machine, task);
    }

    /// The task's thread is not scheduled by the machine any more: the least urgent of all jobs, until it unlocks what it holds.
    pub fn lower(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        match self.held(task).own.as_mut() {
            Some(own) => *own = Rank::LEAST,
            None => machine.set_rank(task, Rank::LEAST),
        }
        // It keeps no other from what the protocol boosts.
        self.held(task).boosted_by = Boost::NONE;
        self.renew_boosted(machine, task);
        self.renew(machine, task, false);
        self.inherit(machine, task);
    }

    /// The task's job ends, or its thread does, whatever it holds or waits for.
    pub fn abandon(&mut self, machine: &mut impl MutexMachine, now: Instant, task: TaskId) {
        if let Some(resource) = self.held(task).awaited.take() {
            self.leave(machine, task, resource);
        }
        while let Some(&(resource, _)) = self.held(task).mutexes.last() {
            self.unlock(machine, task, resource);
        }
        self.end_kept(task);
        self.end_boost(task);
        self.pass_on(machine, now, task, true);
    }

    /// The task's job may be preempted again if it holds no mutex any more that forbids it.
    fn end_kept(&mut self, task: TaskId) {
        if self.held(task).kept.is_none() {
            return;
        }
        let mut held = self.tasks[task.index()].mutexes.iter();
        let protocol = |resource: ResourceId| self.mutexes[resource.index()].protocol;
        if !held.any(|(held, _)| protocol(*held).is_non_preemptive()) {
            self.held(task).kept = None;
        }
    }

    /// The task's job is boosted no more if it holds no mutex any more that does so.
    fn end_boost(&mut self, task: TaskId) {
        let mut held = self.tasks[task.index()].mutexes.iter();
        if !held.any(|(held, _)| self.mutexes[held.index()].boost_of(task).is_some()) {
            self.held(task).boosted_by = Boost::NONE;
            self.boosted.retain(|boosted| *boosted != task);
        }
    }

    /// Passes the free mutex to the job that waits for it and comes next.
    fn hand_over(&mut self, machine: &mut impl MutexMachine, now: Instant, resource: ResourceId) {
        if self.mutexes[resource.index()].served_on.is_some() {
            return self.hand_over_served(machine, now, resource);
        }
        let next = match self.mutexes[resource.index()].first_come {
            0 => self.most_urgent(machine, resource, 0),
            _ => Some(0),
        };
        let waiters = &self.mutexes[resource.index()].waiters;
        if let Some(&next) = next.and_then(|at| waiters.get(at)) {
            self.give(machine, now, next, resource);
        }
    }

    /// The place of the most urgent of the jobs that wait for the mutex, from this place on; of equals the first.
    fn most_urgent(
        &self,
        machine: &impl MutexMachine,
        resource: ResourceId,
        from: usize,
    ) -> Option<usize> {
        let waiters = self.mutexes[resource.index()].waiters.get(from..)?;
        let rank = |id: &TaskId| {
            let Rank { priority, deadline } = machine.rank(*id);
            self.order.rank(deadline, priority)
        };
        let waiters = waiters.iter().enumerate();
        Some(from + waiters.min_by_key(|(_, id)| rank(id))?.0)
    }

    /// The job does not wait for the mutex any more. If it was first come, first served, the most urgent of the others takes the last
    /// place of these.
    fn leave(&mut self, machine: &impl MutexMachine, task: TaskId, resource: ResourceId) {
        let mutex = self.mutex(resource);
        let Some(at) = mutex.waiters.iter().position(|id| *id == task) else {
            return;
        };
        mutex.waiters.remove(at);
        let first_come = mutex.first_come;
        if at < first_come
            && let Some(next) = self.most_urgent(machine, resource, first_come - 1)
        {
            self.mutex(resource).waiters[first_come - 1..=next].rotate_right(1);
        }
    }

    /// Passes the mutex to the job, which waits for it.
    fn give(
        &mut self,
        machine: &mut impl MutexMachine,
        now: Instant,
        next: TaskId,
        resource: ResourceId,
    ) {
        self.leave(machine, next, resource);
        self.held(next).awaited = None;
        self.hold(machine, now, next, resource);
        let protocol = self.mutex(resource).protocol;
        let spun = protocol == Protocol::Spin;
        let handed = Handed {
            spun,
            goes_on: spun || !protocol.is_non_preemptive(),
        };
        machine.handed_over(next, handed);
        self.renew(machine, next, false);
        self.renew_boosted(machine, next);
        if !spun {
            machine.becomes_ready(next);
        }
    }

    /// The holders that `task` waits for, directly or not, may inherit its rank and its CPUs.
    fn inherit(&mut self, machine: &mut impl MutexMachine, task: TaskId) {
        let mut waiter = task;
        while let Some(resource) = self.held(waiter).awaited
            && let Some(holder) = self.mutex(resource).holder
            && self.renew(machine, holder, false)
        {
            waiter = holder;
        }
    }

    fn mutex(&mut self, resource: ResourceId) -> &mut Mutex {
        &mut self.mutexes[resource.index()]
    }

    fn held(&mut self, task: TaskId) -> &mut Held {
        &mut self.tasks[task.index()]
    }
}
