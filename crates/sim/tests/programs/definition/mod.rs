//! What jobs do by the definition, executed one time unit after the other, under a policy that runs the most urgent basis of
//! the ready jobs.

mod boosting;
mod queue;
mod triggers;

use std::collections::{BTreeMap, VecDeque};

use shiftwork_model::{
    CpuId, CpuSet, NotReadyReason, Phase, Protocol, Record, RecordKind, ResourceId, TaskSet, Work,
};

use triggers::{Waiting, waiting};

/// A job in the terms of the definition.
struct Job {
    own_deadline: u64,
    ready_since: u64,
    phases: Vec<Phase>,
    /// Index of the current phase, and what is left of it if it runs.
    at: usize,
    left: u64,
    asleep_until: Option<u64>,
    waits_for: Option<ResourceId>,
    /// It waits for a mutex and keeps its CPU.
    spins: bool,
    /// The CPU on which it is not preempted.
    kept: Option<CpuId>,
    /// The mutexes that it holds, with the instants of the locks.
    held: Vec<(ResourceId, u64)>,
    /// The number of its last request with FMLP+.
    request: u64,
}

impl Job {
    /// Begins the phase at `at`; adjacent runs are one.
    fn begin(&mut self) {
        self.left = 0;
        while let Some(Phase::Run(run)) = self.phases.get(self.at) {
            self.left += run.as_ns();
            self.at += 1;
        }
    }

    /// Suspends itself if that comes next, adjacent suspensions as one.
    fn suspend(&mut self, now: u64) {
        let mut until = now;
        while self.left == 0
            && let Some(Phase::Sleep(span)) = self.phases.get(self.at)
        {
            until += span.as_ns();
            self.at += 1;
        }
        if until > now {
            self.asleep_until = Some(until);
            self.begin();
        }
    }

    /// Whether nothing is left to do.
    fn has_ended(&self) -> bool {
        self.left == 0 && self.at == self.phases.len()
    }

    fn is_ready(&self) -> bool {
        self.asleep_until.is_none() && self.waits_for.is_none()
    }
}

/// Scheduling by affinities: from the most urgent ready job to the least, each runs that can together with those before it.
pub(crate) struct Definition<'a> {
    set: &'a TaskSet,
    by_priority: bool,
    priorities: Vec<u64>,
    records: &'a [Record],
    /// In order of release; only the first can run, and it has begun.
    jobs: Vec<Vec<Job>>,
    running: Vec<usize>,
    /// By task, the places in the records of a run of what its jobs did by themselves. Of the running jobs the definition
    /// does not say which CPU each has, by which requests of one instant are ordered; so they are taken in this order.
    done: Vec<VecDeque<usize>>,
    /// The tasks that wait for each mutex, in the order of their requests.
    waiters: BTreeMap<ResourceId, Vec<usize>>,
    /// Those of them that have joined the queue of a mutex with OMLP, in that order.
    queues: BTreeMap<ResourceId, Vec<usize>>,
    /// Number of requests with FMLP+.
    requests: u64,
    waiting: Waiting,
    /// What was triggered in this round: source and target.
    fired: Vec<(usize, usize)>,
    pub(crate) finishes: Vec<Vec<u64>>,
    /// Instant, task, mutex, and whether it was locked.
    pub(crate) locks: Vec<(u64, usize, usize, bool)>,
    /// Instant, source, target, and whether it was lost.
    pub(crate) triggers: Vec<(u64, usize, usize, bool)>,
}

impl<'a> Definition<'a> {
    pub(crate) fn new(set: &'a TaskSet, by_priority: bool, records: &'a [Record]) -> Self {
        let count = set.tasks.len();
        let priorities = set.priorities();
        Self {
            set,
            by_priority,
            records,
            priorities: priorities.iter().map(|it| it.number().into()).collect(),
            jobs: (0..count).map(|_| Vec::new()).collect(),
            running: Vec::new(),
            done: done(set, records),
            waiters: BTreeMap::new(),
            queues: BTreeMap::new(),
            requests: 0,
            waiting: waiting(set),
            fired: Vec::new(),
            finishes: vec![Vec::new(); count],
            locks: Vec::new(),
            triggers: Vec::new(),
        }
    }

    pub(crate) fn run(mut self, horizon: u64) -> Self {
        for now in 0..horizon {
            let mut is_first = true;
            loop {
                let running = self.running.iter().copied();
                let mut due: Vec<usize> = running
                    .filter(|&task| self.jobs[task][0].left == 0 && !self.jobs[task][0].spins)
                    .collect();
                due.sort_by_key(|&task| self.order(task));
                if due.is_empty() && !is_first {
                    break;
                }
                due.into_iter().for_each(|task| self.step(task, now));
                if is_first {
                    (0..self.jobs.len()).for_each(|task| self.complete_asleep(task, now));
                    (0..self.jobs.len()).for_each(|task| self.arrive(task, now));
                }
                self.deliver_all(now);
                is_first = false;
                self.assign();
            }
            for task in &self.running {
                let job = &mut self.jobs[*task][0];
                job.left -= u64::from(!job.spins);
            }
        }
        self
    }

    /// By the CPU of a task that is bound to one, else by what the run did.
    fn order(&self, task: usize) -> usize {
        match self.set.tasks[task].only_cpu() {
            Some(_) if self.is_partitioned() => self.cpus(task).iter().next().unwrap().index(),
            _ => self.done[task].front().copied().unwrap_or(usize::MAX),
        }
    }

    fn is_partitioned(&self) -> bool {
        let mut tasks = self.set.tasks.iter();
        tasks.all(|task| task.only_cpu().is_some())
    }

    /// A job that runs has executed what comes before its next phase. It makes triggers in passing.
    fn step(&mut self, task: usize, now: u64) {
        loop {
            let job = &mut self.jobs[task][0];
            match job.phases.get(job.at).copied() {
                None => return self.complete(task, now),
                Some(Phase::Sleep(_)) => {
                    job.suspend(now);
                    self.done[task].pop_front();
                    return;
                }
                Some(Phase::Trigger(target)) => {
                    job.at += 1;
                    job.begin();
                    self.fired.push((task, target.index()));
                    if job.left > 0 {
                        return;
                    }
                }
                Some(Phase::Lock(resource)) => {
                    job.at += 1;
                    return self.request(task, resource, now);
                }
                Some(Phase::Unlock(_)) => return self.unlock(task, now),
                Some(Phase::Run(_)) => unreachable!("runs are begun with what precedes them"),
            }
        }
    }

    /// The job unlocks all that it unlocks without executing between; it makes triggers in passing, and completes if nothing
    /// is left to do.
    fn unlock(&mut self, task: usize, now: u64) {
        let job = &mut self.jobs[task][0];
        let mut free = Vec::new();
        while job.left == 0 {
            match job.phases.get(job.at) {
                Some(Phase::Unlock(resource)) => {
                    free.push(*resource);
                    self.done[task].pop_front();
                }
                Some(Phase::Trigger(target)) => self.fired.push((task, target.index())),
                _ => break,
            }
            job.at += 1;
            job.begin();
        }
        job.held.retain(|(held, _)| !free.contains(held));
        let protocol = |id: ResourceId| self.set.resources[id.index()].protocol;
        let mut held = job.held.iter();
        if !held.any(|(held, _)| protocol(*held).is_non_preemptive()) {
            job.kept = None;
        }
        let has_ended = job.has_ended();
        for resource in &free {
            self.locks.push((now, task, resource.index(), false));
        }
        free.into_iter().for_each(|it| self.hand_over(it, now));
        if has_ended {
            self.complete(task, now);
        }
    }

    /// The job that runs requests the mutex, or runs with it first after it has waited.
    fn request(&mut self, task: usize, resource: ResourceId, now: u64) {
        let protocol = self.set.resources[resource.index()].protocol;
        let cpu = self.cpu(task, now);
        let holder = self.holder(resource);
        if holder != Some(task) {
            self.done[task].pop_front();
        }
        let spins = protocol == Protocol::Spin && holder.is_some();
        let has_it = match holder {
            Some(holder) => holder == task,
            None => self.may_lock(task, resource),
        };
        let job = &mut self.jobs[task][0];
        if protocol.is_non_preemptive() && (spins || has_it) && job.kept.is_none() {
            job.kept = Some(cpu);
        }
        // A non-preemptive mutex that it waits for it requests again when it runs.
        match protocol == Protocol::NonPreemptive && !has_it {
            true => job.at -= 1,
            false => job.begin(),
        }
        if matches!(protocol, Protocol::Fmlp | Protocol::Dpcp(_)) && holder != Some(task) {
            self.requests += 1;
            self.jobs[task][0].request = self.requests;
        }
        if holder.is_none() && has_it {
            self.hold(task, resource, now);
        } else if !has_it {
            self.jobs[task][0].spins = spins;
            self.jobs[task][0].waits_for = Some(resource).filter(|_| !spins);
            self.waiters.entry(resource).or_default().push(task);
            self.fill_queue(resource);
        }
    }

    /// The CPU on which the task runs.
    fn cpu(&self, task: usize, now: u64) -> CpuId {
        // A job that is bound to one may have been lent others.
        if self.is_partitioned() {
            return self.cpus(task).iter().next().unwrap();
        }
        let place = self.done[task].front().copied().unwrap_or(usize::MAX);
        let before = self.records.iter().take(place);
        let before = before.take_while(|record| record.at.as_ns() <= now);
        let on = before.filter_map(|record| match record.kind {
            RecordKind::Switched { cpu, to, .. }
                if to.is_some_and(|it| it.task.index() == task) =>
            {
                Some(cpu)
            }
            _ => None,
        });
        on.last().expect("it runs")
    }

    fn hand_over(&mut self, resource: ResourceId, now: u64) {
        let served = self.next_served(resource);
        let resource = served.map_or(resource, |(_, mutex)| mutex);
        let waiters = match (served, self.served_on(resource)) {
            (Some((task, _)), _) => vec![task],
            (None, Some(_)) => Vec::new(),
            (None, None) => self.waiters.entry(resource).or_default().clone(),
        };
        let Some(next) = self.next(resource, &waiters) else {
            return;
        };
        for list in [&mut self.waiters, &mut self.queues] {
            list.entry(resource)
                .or_default()
                .retain(|task| *task != next);
        }
        let job = &mut self.jobs[next][0];
        job.waits_for = None;
        if !std::mem::take(&mut job.spins) {
            job.ready_since = now;
        }
        self.hold(next, resource, now);
        self.fill_queue(resource);
    }

    fn hold(&mut self, task: usize, resource: ResourceId, now: u64) {
        self.jobs[task][0].held.push((resource, now));
        self.locks.push((now, task, resource.index(), true));
    }

    fn holder(&self, resource: ResourceId) -> Option<usize> {
        let holds = |job: &Job| job.held.iter().any(|(held, _)| *held == resource);
        self.jobs
            .iter()
            .position(|jobs| jobs.first().is_some_and(holds))
    }

    fn complete(&mut self, task: usize, now: u64) {
        self.done[task].pop_front();
        self.jobs[task].remove(0);
        self.finishes[task].push(now);
        self.trigger_others(task);
        self.begin_first(task, now);
    }

    /// The first job of the task begins, if there is one, with the first trigger of each kind.
    fn begin_first(&mut self, task: usize, now: u64) {
        let Some(job) = self.jobs[task].first_mut() else {
            return;
        };
        job.ready_since = now;
        job.suspend(now);
        for place in &mut self.waiting[task] {
            place.pop_front().unwrap();
        }
    }

    /// Completes a job that ends with a suspension.
    fn complete_asleep(&mut self, task: usize, now: u64) {
        let job = self.jobs[task].first();
        if job.is_some_and(|job| job.asleep_until == Some(now) && job.has_ended()) {
            self.complete(task, now);
        }
    }

    fn arrive(&mut self, task: usize, now: u64) {
        if let Some(job) = self.jobs[task].first_mut()
            && job.asleep_until == Some(now)
        {
            job.asleep_until = None;
            job.ready_since = now;
        }
        let of = &self.set.tasks[task];
        let (offset, period) = (of.offset.as_ns(), of.period.as_ns());
        let by_time = of.trigger().is_none();
        if by_time && now >= offset && (now - offset).is_multiple_of(period) {
            self.release(task, now);
        }
    }

    fn release(&mut self, task: usize, now: u64) {
        let of = &self.set.tasks[task];
        let phases = match &of.work {
            Work::Phases(phases) => phases.clone(),
            _ => vec![Phase::Run(of.cost)],
        };
        let mut job = Job {
            own_deadline: now + of.deadline.as_ns(),
            ready_since: now,
            phases,
            at: 0,
            left: 0,
            asleep_until: None,
            waits_for: None,
            spins: false,
            kept: None,
            held: Vec::new(),
            request: 0,
        };
        job.begin();
        self.jobs[task].push(job);
        if self.jobs[task].len() == 1 {
            self.begin_first(task, now);
        }
    }

    /// The least there is if it is not to be preempted. Else the least of a job's own rank, of what comes with the mutexes that it holds, and of the ranks of the jobs that
    /// wait for those of them that have inheritance.
    fn rank(&self, task: usize) -> u64 {
        let job = &self.jobs[task][0];
        let own = |task: usize| match self.by_priority {
            true => self.priorities[task],
            false => self.jobs[task][0].own_deadline,
        };
        if job.kept.is_some() || self.is_boosted(task) {
            return 0;
        }
        let mut rank = own(task);
        for &(resource, since) in &job.held {
            match self.set.resources[resource.index()].protocol {
                Protocol::None | Protocol::NonPreemptive | Protocol::Spin | Protocol::Fmlp => {}
                Protocol::Inheritance | Protocol::Migratory | Protocol::Omlp => {
                    let waiters = self.waiters.get(&resource).into_iter().flatten();
                    rank = waiters
                        .map(|&waiter| self.rank(waiter))
                        .fold(rank, u64::min);
                }
                Protocol::Mpcp if self.is_global(resource) => {}
                Protocol::Dpcp(_) if self.served_on(resource).is_some() => {}
                Protocol::Ceiling | Protocol::Mpcp | Protocol::Dpcp(_) => {
                    let users = self.set.iter().filter(|(_, it)| it.locks_one(resource));
                    let ceiling = users.map(|(user, it)| match self.by_priority {
                        true => self.priorities[user.index()],
                        false => since + it.deadline.as_ns(),
                    });
                    rank = ceiling.fold(rank, u64::min);
                }
            }
        }
        rank
    }

    /// The task's own CPUs, and those of the jobs that wait for a mutex with migratory inheritance that it holds.
    fn cpus(&self, task: usize) -> CpuSet {
        if let Some(cpu) = self.jobs[task][0].kept {
            return CpuSet::single(cpu);
        }
        if let Some(cpu) = self.served(task) {
            return CpuSet::single(cpu);
        }
        let held = self.jobs[task][0].held.iter().map(|(resource, _)| resource);
        let lends =
            |it: &&ResourceId| self.set.resources[it.index()].protocol == Protocol::Migratory;
        let waiters = held.filter(lends).flat_map(|it| self.waiters.get(it));
        let lent = waiters.flatten().map(|&waiter| self.cpus(waiter));
        lent.fold(*self.set.tasks[task].affinity.cpus(), |all, more| {
            all | more
        })
    }

    fn assign(&mut self) {
        let is_ready = |task: &usize| self.jobs[*task].first().is_some_and(Job::is_ready);
        let mut ready: Vec<usize> = (0..self.jobs.len()).filter(is_ready).collect();
        ready.sort_by_key(|&task| (self.rank(task), self.jobs[task][0].ready_since, task));
        let mut on: Vec<Option<usize>> = vec![None; self.set.platform.cpus];
        for &task in &ready {
            self.place(task, &mut on, &mut CpuSet::EMPTY.clone());
        }
        self.running = on.into_iter().flatten().collect();
    }

    /// Gives the task a CPU if those that have one can keep one; `seen` are the CPUs that have been tried.
    fn place(&self, task: usize, on: &mut [Option<usize>], seen: &mut CpuSet) -> bool {
        for cpu in self.cpus(task).iter() {
            if seen.contains(cpu) {
                continue;
            }
            seen.insert(cpu);
            let can = match on[cpu.index()] {
                None => true,
                Some(other) => self.place(other, on, seen),
            };
            if can {
                on[cpu.index()] = Some(task);
                return true;
            }
        }
        false
    }
}

/// By task, the places of the records of what its jobs did by themselves: not that one that waits is given a mutex.
fn done(set: &TaskSet, records: &[Record]) -> Vec<VecDeque<usize>> {
    let mut done = vec![VecDeque::new(); set.tasks.len()];
    let mut waits = vec![false; set.tasks.len()];
    for (place, record) in records.iter().enumerate() {
        let (job, is_waiting) = match record.kind {
            RecordKind::NotReady { job, reason } => {
                (job, matches!(reason, NotReadyReason::Blocked(_)))
            }
            RecordKind::Spinning { job, .. } => (job, true),
            RecordKind::Locked { job, .. }
            | RecordKind::Unlocked { job, .. }
            | RecordKind::Completed { job } => (job, false),
            _ => continue,
        };
        let task = job.task.index();
        let is_given = std::mem::replace(&mut waits[task], is_waiting);
        if !is_given {
            done[task].push_back(place);
        }
    }
    done
}
