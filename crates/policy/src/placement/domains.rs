//! Global scheduling within disjoint groups of CPUs: what partitioned (one CPU each), clustered and
//! global (all CPUs) scheduling have in common.

use alloc::vec::Vec;
use core::cmp::Reverse;
use core::hint::select_unpredictable;

use shiftwork_model::{CpuId, CpuSet, Job, Platform, TaskId};

use super::CacheMates;
use crate::order::JobOrder;
use crate::policy::{Switch, Switches};
use crate::ready::{Backlog, HeapPositions, Status, TaskTable};
use crate::tournament::Tournament;

/// Whether an arriving job may take the CPU of a less urgent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preemption {
    Allowed,
    Never,
}

/// Up to this many CPUs it is faster to look at all of them when a victim is wanted than to keep a
/// tournament up to date at every switch.
const FEW: usize = 32;

/// What each CPU of a domain runs, and which of that is the least urgent.
#[derive(Clone, Debug)]
enum LeastUrgent<K> {
    Few(Vec<K>),
    Many(Tournament<Reverse<K>>),
}

impl<K: Ord + Copy> LeastUrgent<K> {
    /// `idle` comes before every job's key.
    fn new(slots: usize, idle: K) -> Self {
        if slots <= FEW {
            Self::Few(alloc::vec![idle; slots])
        } else {
            Self::Many(Tournament::new(slots, Reverse(idle)))
        }
    }

    #[inline]
    fn set(&mut self, slot: usize, key: K) {
        match self {
            Self::Few(keys) => keys[slot] = key,
            Self::Many(tournament) => {
                tournament.set(slot, Reverse(key));
            }
        }
    }

    /// The key of the least urgent job.
    #[inline]
    fn key(&self) -> K {
        match self {
            Self::Few(keys) => {
                let later = |a: K, b: K| select_unpredictable(b > a, b, a);
                keys.iter()
                    .copied()
                    .reduce(later)
                    .expect("a domain has a CPU")
            }
            Self::Many(tournament) => tournament.winner().0,
        }
    }
}

/// One group of CPUs. If a CPU of it is idle, nothing is backlogged.
#[derive(Debug)]
struct Domain<O: JobOrder> {
    idle: CpuSet,
    idle_count: usize,
    backlog: Backlog<O>,
    /// How often a task was bound here: room for that many backlogged jobs.
    bound: usize,
    /// By the CPU's place in the domain.
    least: LeastUrgent<O::Key>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    domain: u16,
    slot: u16,
}

/// Tasks bound to domains, and the most urgent jobs of each domain on its CPUs.
#[derive(Debug)]
pub(crate) struct Domains<O: JobOrder> {
    pub tasks: TaskTable,
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
    /// `groups` are disjoint and cover all CPUs.
    pub fn new(platform: &Platform, groups: &[CpuSet], preemption: Preemption) -> Self {
        let mut places = alloc::vec![Place { domain: 0, slot: 0 }; platform.cpus];
        for (domain, group) in groups.iter().enumerate() {
            for (slot, cpu) in group.iter().enumerate() {
                places[cpu.index()] = Place {
                    domain: domain as u16,
                    slot: slot as u16,
                };
            }
        }
        let domain = |group: &CpuSet| Domain {
            idle: *group,
            idle_count: group.len(),
            backlog: Backlog::default(),
            bound: 0,
            least: LeastUrgent::new(group.len(), O::FIRST),
        };
        Self {
            tasks: TaskTable::default(),
            preemption,
            positions: HeapPositions::default(),
            domains: groups.iter().map(domain).collect(),
            domain_of: Vec::new(),
            places,
            runners: alloc::vec![None; platform.cpus],
            online: platform.all(),
            mates: CacheMates::new(platform),
        }
    }

    /// Binds a task without a ready job to a domain.
    pub fn bind(&mut self, task: TaskId, domain: usize, last_cpu: Option<CpuId>) {
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

    /// The domain of a task.
    pub fn domain_of(&self, task: TaskId) -> usize {
        usize::from(self.domain_of[task.index()])
    }

    #[inline]
    pub fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.runners.get(cpu.index()).copied().flatten()
    }

    pub fn is_online(&self, cpu: CpuId) -> bool {
        self.online.contains(cpu)
    }

    #[inline]
    pub fn arrive(&mut self, job: Job, out: &mut Switches) {
        let entry = self.tasks.get_mut(job.task);
        entry.job = job;
        let last_cpu = entry.last_cpu;
        let key = O::key(&job);
        let domain = &mut self.domains[usize::from(self.domain_of[job.task.index()])];
        if domain.idle_count > 0 {
            let cpu = choose_idle(&domain.idle, last_cpu, &self.mates);
            self.assign(cpu, Some(job.task), out);
            return;
        }
        let victim = domain.least.key();
        if victim > key && self.preemption == Preemption::Allowed {
            self.replace(O::task(&victim), job.task, out);
        } else {
            domain.backlog.push(key, &mut self.positions);
            self.tasks.get_mut(job.task).status = Status::Backlogged;
        }
    }

    #[inline]
    pub fn depart(&mut self, task: TaskId, out: &mut Switches) {
        let domain = &mut self.domains[usize::from(self.domain_of[task.index()])];
        match self.tasks.get(task).status {
            Status::NotReady => {}
            Status::Backlogged => {
                domain.backlog.remove(task, &mut self.positions);
                self.tasks.get_mut(task).status = Status::NotReady;
            }
            Status::Assigned(cpu) => {
                self.tasks.get_mut(task).status = Status::NotReady;
                let next = Self::take_next(domain, &mut self.positions);
                self.assign(cpu, next, out);
            }
        }
    }

    /// The ready job changes its rank.
    pub fn rerank(&mut self, job: Job, out: &mut Switches) {
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
        domain.least.set(usize::from(place.slot), key);
        if domain.backlog.top() < key && self.preemption == Preemption::Allowed {
            let next = O::task(&domain.backlog.top());
            domain.backlog.remove(next, &mut self.positions);
            self.replace(job.task, next, out);
        }
    }

    /// The CPU is gone; its job waits, or takes the place of the least urgent one.
    pub fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.remove(cpu);
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

    /// The CPU is back, for whoever waits.
    pub fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.insert(cpu);
        let domain = &mut self.domains[usize::from(self.places[cpu.index()].domain)];
        domain.idle.insert(cpu);
        domain.idle_count += 1;
        if let Some(next) = Self::take_next(domain, &mut self.positions) {
            self.assign(cpu, Some(next), out);
        }
    }

    /// A job that lost its CPU: like an arrival, but with a domain that may have no CPU left.
    fn arrive_displaced(&mut self, job: Job, out: &mut Switches) {
        self.tasks.get_mut(job.task).status = Status::NotReady;
        self.arrive(job, out);
    }

    fn take_next(domain: &mut Domain<O>, positions: &mut HeapPositions) -> Option<TaskId> {
        if domain.backlog.is_empty() {
            return None;
        }
        let next = O::task(&domain.backlog.top());
        domain.backlog.remove(next, positions);
        Some(next)
    }

    /// `task` takes the CPU of `victim`, which waits.
    #[inline]
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

    #[inline]
    fn assign(&mut self, cpu: CpuId, to: Option<TaskId>, out: &mut Switches) {
        let place = self.places[cpu.index()];
        let domain = &mut self.domains[usize::from(place.domain)];
        let from = core::mem::replace(&mut self.runners[cpu.index()], to);
        if from.is_none() {
            domain.idle.remove(cpu);
            domain.idle_count -= 1;
        }
        let key = match to {
            Some(task) => {
                let entry = self.tasks.get_mut(task);
                entry.status = Status::Assigned(cpu);
                entry.last_cpu = Some(cpu);
                O::key(&entry.job)
            }
            None => {
                domain.idle.insert(cpu);
                domain.idle_count += 1;
                O::FIRST
            }
        };
        domain.least.set(usize::from(place.slot), key);
        out.push(Switch { cpu, from, to });
    }

    /// Takes a CPU that is offline already out of its domain.
    fn vacate(&mut self, cpu: CpuId, out: &mut Switches) {
        let place = self.places[cpu.index()];
        let from = self.runners[cpu.index()].take();
        self.domains[usize::from(place.domain)]
            .least
            .set(usize::from(place.slot), O::FIRST);
        out.push(Switch {
            cpu,
            from,
            to: None,
        });
    }
}

/// The last-used CPU if it is idle, else an idle one that shares a cache with it, else the lowest.
#[inline]
fn choose_idle(idle: &CpuSet, last_cpu: Option<CpuId>, mates: &CacheMates) -> CpuId {
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
