//! Global scheduling within disjoint groups of CPUs: what partitioned (one CPU each), clustered and
//! global (all CPUs) scheduling have in common.

use alloc::boxed::Box;
use alloc::vec::Vec;

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Job, Order, Task, TaskId, TaskSet, groups_within, pack,
};

use super::super::Placement;
use super::cpus::{CacheMates, check_cpus};
use super::least_urgent::LeastUrgent;
use super::ready::{Backlog, HeapPositions, Status, TaskTable};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::{Switch, Switches};

/// Whether a job may take the CPU of a less urgent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preemption {
    /// It may, also one that got the CPU at the same instant: every event is decided at once.
    Allowed,
    /// A job keeps its CPU as long as it is ready. Since no decision can be taken back, none is taken
    /// before the instant is over: events only change which jobs wait and which CPUs are free.
    Never,
}

/// Up to this many CPUs a domain looks at all of them for a victim.
const FEW: usize = 32;

/// One group of CPUs. If a CPU of it is idle, nothing is backlogged; without preemption that holds between
/// instants.
#[derive(Debug)]
struct Domain<O: JobOrder> {
    idle: CpuSet,
    idle_count: usize,
    backlog: Backlog<O>,
    /// How often a task was bound here and not moved elsewhere: room for that many backlogged jobs.
    bound: usize,
    /// By the CPU's place in the domain.
    least: LeastUrgent<O::Key>,
}

impl<O: JobOrder> Domain<O> {
    fn new(group: &CpuSet) -> Self {
        Self {
            idle: *group,
            idle_count: group.len(),
            backlog: Backlog::default(),
            bound: 0,
            least: LeastUrgent::new(group.len(), FEW, O::FIRST),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    domain: u16,
    slot: u16,
}

/// Every task is bound to one group of CPUs and scheduled globally within it.
///
/// With preemption an arriving job takes a free CPU, else that of the least urgent running job if that is
/// less urgent, else it waits; a CPU that becomes free takes the most urgent waiting job. Without
/// preemption the waiting jobs, the most urgent first, each take a free CPU when the instant is over.
///
/// Of several free CPUs a job takes the one where it last ran, else one that shares a cache with that, else
/// the lowest.
///
/// O(log n + log c) per event and decision for n tasks and groups of c CPUs.
#[derive(Debug)]
pub struct Domains<O: JobOrder> {
    name: &'static str,
    groups: Vec<CpuSet>,
    tasks: TaskTable,
    preemption: Preemption,
    positions: HeapPositions,
    domains: Vec<Domain<O>>,
    domain_of: Vec<u16>,
    places: Vec<Place>,
    runners: Vec<Option<TaskId>>,
    online: CpuSet,
    mates: CacheMates,
}

impl<O: JobOrder> Domains<O> {
    /// `groups` are disjoint; CPUs of no group run no jobs.
    ///
    /// # Errors
    /// If an affinity is no union of groups.
    pub(crate) fn new(
        name: &'static str,
        set: &TaskSet,
        groups: Vec<CpuSet>,
        preemption: Preemption,
    ) -> Result<Self, PolicyError> {
        let platform = &set.platform;
        let mut places = alloc::vec![Place { domain: 0, slot: 0 }; platform.cpus];
        for (domain, group) in groups.iter().enumerate() {
            for (slot, cpu) in group.iter().enumerate() {
                places[cpu.index()] = Place {
                    domain: domain as u16,
                    slot: slot as u16,
                };
            }
        }
        let mut policy = Self {
            name,
            domains: groups.iter().map(Domain::new).collect(),
            groups,
            tasks: TaskTable::default(),
            preemption,
            positions: HeapPositions::default(),
            domain_of: Vec::new(),
            places,
            runners: alloc::vec![None; platform.cpus],
            online: platform.all(),
            mates: CacheMates::new(platform),
        };
        for (id, task) in set.iter() {
            policy.accepts_affinity(id, &task.name, &task.affinity)?;
        }
        let packing = pack(set, &policy.groups);
        for (id, task) in set.iter() {
            let group = packing.group_of[id.index()].expect("every affinity holds a whole group");
            policy.bind(id, group, task.start_cpu);
        }
        Ok(policy)
    }

    fn group_for(&self, task: TaskId, affinity: &Affinity) -> usize {
        let known = task.index() < self.tasks.len();
        let group = known.then(|| usize::from(self.domain_of[task.index()]));
        group_for(&self.groups, group, affinity)
    }

    /// Binds a task without a ready job to a domain.
    fn bind(&mut self, task: TaskId, domain: usize, last_cpu: Option<CpuId>) {
        self.tasks.enter(task, last_cpu);
        self.positions.enter(task);
        if self.domain_of.len() <= task.index() {
            self.domain_of.resize(task.index() + 1, 0);
        }
        self.domain_of[task.index()] = domain as u16;
        let domain = &mut self.domains[domain];
        domain.bound += 1;
        domain.backlog.reserve(domain.bound);
    }

    /// A job that lost its CPU: like an arrival, but with a domain that may have no CPU left.
    fn arrive_displaced(&mut self, job: Job, out: &mut Switches) {
        self.tasks.get_mut(job.task).status = Status::NotReady;
        self.arrive(job, out);
    }

    /// The waiting jobs, the most urgent first, take the free CPUs of their domains.
    #[inline(never)]
    fn fill(&mut self, out: &mut Switches) {
        for domain in 0..self.domains.len() {
            self.fill_domain(domain, out);
        }
    }

    fn fill_domain(&mut self, domain: usize, out: &mut Switches) {
        while self.domains[domain].idle_count > 0
            && let Some(next) = Self::take_next(&mut self.domains[domain], &mut self.positions)
        {
            let last_cpu = self.tasks.get(next).last_cpu;
            let cpu = choose_idle(&self.domains[domain].idle, last_cpu, &self.mates);
            self.assign(cpu, Some(next), out);
        }
    }

    /// The most urgent waiting job waits no more; `None` if there is none.
    fn take_next(domain: &mut Domain<O>, positions: &mut HeapPositions) -> Option<TaskId> {
        if domain.backlog.is_empty() {
            return None;
        }
        let next = O::task(&domain.backlog.top());
        domain.backlog.remove(next, positions);
        Some(next)
    }

    /// `task` takes the CPU of `victim`, which waits.
    #[inline(always)]
    fn replace(&mut self, victim: TaskId, task: TaskId, out: &mut Switches) {
        let Status::Assigned(cpu) = self.tasks.get(victim).status else {
            unreachable!("the least urgent assigned job is assigned");
        };
        let key = O::key(&self.tasks.get(victim).job);
        let domain = usize::from(self.places[cpu.index()].domain);
        self.domains[domain].backlog.push(key, &mut self.positions);
        self.tasks.get_mut(victim).status = Status::Backlogged;
        self.assign(cpu, Some(task), out);
    }

    #[inline(always)]
    fn assign(&mut self, cpu: CpuId, to: Option<TaskId>, out: &mut Switches) {
        let place = self.places[cpu.index()];
        let domain = &mut self.domains[usize::from(place.domain)];
        let from = core::mem::replace(&mut self.runners[cpu.index()], to);
        if from.is_none() {
            domain.idle.remove(cpu);
            domain.idle_count -= 1;
        }
        let slot = usize::from(place.slot);
        match to {
            Some(task) => {
                let entry = self.tasks.get_mut(task);
                entry.status = Status::Assigned(cpu);
                entry.last_cpu = Some(cpu);
                domain.least.set(slot, || O::key(&entry.job));
            }
            None => {
                domain.idle.insert(cpu);
                domain.idle_count += 1;
                domain.least.set(slot, || O::FIRST);
            }
        }
        out.push(Switch { cpu, from, to });
    }

    /// Takes a CPU that is offline already out of its domain.
    fn vacate(&mut self, cpu: CpuId, out: &mut Switches) {
        let place = self.places[cpu.index()];
        let from = self.runners[cpu.index()].take();
        self.domains[usize::from(place.domain)]
            .least
            .set(usize::from(place.slot), || O::FIRST);
        out.push(Switch {
            cpu,
            from,
            to: None,
        });
    }
}

impl<O: JobOrder> Placement for Domains<O> {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    #[inline]
    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.runners.get(cpu.index()).copied().flatten()
    }

    #[inline(always)]
    fn arrive(&mut self, job: Job, out: &mut Switches) {
        let entry = self.tasks.get_mut(job.task);
        entry.set_job(job);
        let last_cpu = entry.last_cpu;
        let key = O::key(&job);
        let domain = &mut self.domains[usize::from(self.domain_of[job.task.index()])];
        let preempts = self.preemption == Preemption::Allowed;
        if domain.idle_count > 0 && preempts {
            let cpu = choose_idle(&domain.idle, last_cpu, &self.mates);
            self.assign(cpu, Some(job.task), out);
            return;
        }
        let victim = domain.least.key();
        if victim > key && preempts {
            self.replace(O::task(&victim), job.task, out);
        } else {
            domain.backlog.push(key, &mut self.positions);
            self.tasks.get_mut(job.task).status = Status::Backlogged;
        }
    }

    #[inline(always)]
    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        let domain = &mut self.domains[usize::from(self.domain_of[task.index()])];
        match self.tasks.get(task).status {
            Status::NotReady => {}
            Status::Backlogged => {
                domain.backlog.remove(task, &mut self.positions);
                self.tasks.get_mut(task).status = Status::NotReady;
            }
            Status::Assigned(cpu) => {
                self.tasks.get_mut(task).status = Status::NotReady;
                let next = match self.preemption {
                    Preemption::Allowed => Self::take_next(domain, &mut self.positions),
                    Preemption::Never => None,
                };
                self.assign(cpu, next, out);
            }
        }
    }

    /// The only place where a policy that does not preempt gives CPUs to jobs.
    fn end_instant(&mut self, out: &mut Switches) {
        // Apart: this is called for each instant, and nearly always has nothing to do.
        if self.preemption == Preemption::Never {
            self.fill(out);
        }
    }

    /// The ready job changes its rank.
    fn rerank(&mut self, job: Job, out: &mut Switches) {
        let cpu = match self.tasks.get(job.task).status {
            Status::Assigned(cpu) => cpu,
            _ => {
                self.depart(job.task, out);
                return self.arrive(job, out);
            }
        };
        self.tasks.get_mut(job.task).job = job;
        let key = O::key(&job);
        let place = self.places[cpu.index()];
        let domain = &mut self.domains[usize::from(place.domain)];
        domain.least.set(usize::from(place.slot), || key);
        if domain.backlog.top() < key && self.preemption == Preemption::Allowed {
            let next = O::task(&domain.backlog.top());
            domain.backlog.remove(next, &mut self.positions);
            self.replace(job.task, next, out);
        }
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let group = self.group_for(task, affinity);
        if group == usize::from(self.domain_of[task.index()]) {
            return;
        }
        let entry = *self.tasks.get(task);
        self.depart(task, out);
        self.domains[usize::from(self.domain_of[task.index()])].bound -= 1;
        self.bind(task, group, entry.last_cpu);
        if entry.status != Status::NotReady {
            self.arrive(entry.job, out);
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        let group = self.group_for(id, &task.affinity);
        self.bind(id, group, task.start_cpu);
    }

    /// The CPU is gone; its job arrives anew.
    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.remove(cpu);
        if !served_by(&self.groups).contains(cpu) {
            return;
        }
        let domain = &mut self.domains[usize::from(self.places[cpu.index()].domain)];
        match self.runners[cpu.index()] {
            None => {
                domain.idle.remove(cpu);
                domain.idle_count -= 1;
            }
            Some(task) => {
                let job = self.tasks.get(task).job;
                self.vacate(cpu, out);
                self.arrive_displaced(job, out);
            }
        }
    }

    /// The CPU is back and takes a waiting job.
    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.insert(cpu);
        if !served_by(&self.groups).contains(cpu) {
            return;
        }
        let domain = &mut self.domains[usize::from(self.places[cpu.index()].domain)];
        domain.idle.insert(cpu);
        domain.idle_count += 1;
        if self.preemption == Preemption::Allowed
            && let Some(next) = Self::take_next(domain, &mut self.positions)
        {
            self.assign(cpu, Some(next), out);
        }
    }

    fn is_online(&self, cpu: CpuId) -> bool {
        self.online.contains(cpu)
    }

    fn accepts_affinity(
        &self,
        _: TaskId,
        name: &str,
        affinity: &Affinity,
    ) -> Result<(), PolicyError> {
        check_cpus(self.runners.len(), name, affinity)?;
        check_union((self.name, O::ORDER), &self.groups, name, affinity)
    }

    /// One group of all CPUs is no packing.
    fn packed(&self) -> Option<Vec<Affinity>> {
        let group = |&domain: &u16| Affinity::new(self.groups[usize::from(domain)]);
        let is_one_of_all = self.groups[0].len() == self.runners.len();
        (!is_one_of_all).then(|| self.domain_of.iter().filter_map(group).collect())
    }
}

/// A task whose new affinity holds its present group stays there, any other goes to the first group of its
/// affinity, which is a union of groups.
pub(crate) fn group_for(groups: &[CpuSet], present: Option<usize>, affinity: &Affinity) -> usize {
    let candidates = groups_within(groups, affinity);
    present
        .filter(|group| candidates.contains(group))
        .or(candidates.first().copied())
        .expect("the affinity was accepted")
}

/// The CPUs that run jobs.
fn served_by(groups: &[CpuSet]) -> CpuSet {
    let groups = groups.iter();
    groups.fold(CpuSet::EMPTY, |served, group| served | *group)
}

/// Whether the affinity of the task with this name is a union of groups, and perhaps of CPUs of no group, which
/// run no jobs.
pub(crate) fn check_union(
    (policy, order): (&'static str, Order),
    groups: &[CpuSet],
    name: &str,
    affinity: &Affinity,
) -> Result<(), PolicyError> {
    let covered = groups_within(groups, affinity)
        .into_iter()
        .fold(CpuSet::EMPTY, |covered, group| covered | groups[group]);
    if !covered.is_empty() && covered == *affinity.cpus() & served_by(groups) {
        return Ok(());
    }
    let (task, affinity) = (name.into(), Box::new(*affinity));
    if groups.len() == 1 {
        return Err(PolicyError::NotGlobal {
            policy,
            order,
            task,
            affinity,
        });
    }
    Err(PolicyError::NotClustered {
        policy,
        task,
        affinity,
        clusters: groups.to_vec(),
    })
}

/// The last-used CPU if it is idle, else an idle one that shares a cache with it, else the lowest.
#[inline]
pub(crate) fn choose_idle(idle: &CpuSet, last_cpu: Option<CpuId>, mates: &CacheMates) -> CpuId {
    if let Some(last) = last_cpu {
        if idle.contains(last) {
            return last;
        }
        if let Some(near) = mates.of(last).and_then(|mates| (*mates & *idle).lowest()) {
            return near;
        }
    }
    idle.lowest().expect("there is an idle CPU")
}
