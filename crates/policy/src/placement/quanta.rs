//! Global scheduling that decides at quantum boundaries only.

use alloc::boxed::Box;
use alloc::vec::Vec;

use shiftwork_model::{
    Affinity, Alignment, CpuId, CpuSet, Interrupts, Job, Span, Structure, Task, TaskId, TaskSet,
};

use super::Placement;
use super::support::cpus::{CacheMates, check_cpus};
use super::support::domains::choose_idle;
use super::support::ready::{Backlog, HeapPositions, Status, TaskTable};
use crate::error::PolicyError;
use crate::order::JobOrder;
use crate::policy::{Quanta, Switch, Switches};

/// Between boundaries no job starts: a job that becomes ready is enqueued, and a CPU whose job ends
/// is idle until its next quantum begins. At a boundary, after all other events of the instant, the
/// CPUs whose quanta begin decide together. The *selected* jobs are the most urgent ready ones, as
/// many as there are CPUs, wherever they are.
///
/// 1. A CPU whose quantum begins keeps a selected job, and gives up any other.
/// 2. The selected jobs that have no CPU, the most urgent first, each take one of those CPUs that is
///    without a job: the one where the job last ran, else one that shares a cache with it, else the
///    lowest.
///
/// So no job is stopped that global scheduling would run, none moves while it runs, and a CPU decides for
/// itself alone. There are always enough jobs for the CPUs that gave up theirs: as long as a job that is not
/// selected runs, a selected one waits. Aligned, exactly the selected jobs run after each boundary;
/// staggered, a job that stays selected for a quantum runs at the end of it.
///
/// # Invariant
/// `selected` are the most urgent ready jobs; of them those without a CPU are in `unplaced`. All other ready
/// jobs, also those that still run, are in `others`.
///
/// # Cost
/// O(log n + m) per event and boundary, for n tasks on m CPUs.
///
/// # Source
/// B. Brandenburg, J. Anderson, "On the Implementation of Global Real-Time Schedulers", RTSS 2009
/// (CQm, S-CQm, CQ1, S-CQ1), which leaves open which job a staggered CPU may preempt.
#[derive(Debug)]
pub(crate) struct InQuanta<O: JobOrder> {
    name: &'static str,
    quanta: Quanta,
    tasks: TaskTable,
    positions: HeapPositions,
    /// The most urgent first.
    selected: Vec<O::Key>,
    /// How many may be selected: the served CPUs that are online.
    room: usize,
    unplaced: Backlog<O>,
    others: Backlog<O>,
    /// The CPUs that run jobs, online or not.
    served: CpuSet,
    online: CpuSet,
    runners: Vec<Option<TaskId>>,
    /// The served CPUs that are online and have no job.
    free: CpuSet,
    /// The CPUs whose quanta begin at this instant.
    due: CpuSet,
    /// What those ran before.
    before: Vec<Option<TaskId>>,
    mates: CacheMates,
}

impl<O: JobOrder> InQuanta<O> {
    /// # Errors
    /// If a task may not use every CPU, or no CPU is left for tasks.
    pub(crate) fn new(
        name: &'static str,
        set: &TaskSet,
        structure: Structure,
        alignment: Alignment,
    ) -> Result<Self, PolicyError> {
        let platform = &set.platform;
        let served = served_cpus(name, set, structure)?;
        let mut policy = Self {
            name,
            quanta: Quanta {
                length: set.scheduler.quantum_or_default(),
                phases: phases(set, &served, alignment),
            },
            tasks: TaskTable::default(),
            positions: HeapPositions::default(),
            selected: Vec::with_capacity(platform.cpus),
            room: served.len(),
            unplaced: Backlog::default(),
            others: Backlog::default(),
            served,
            online: platform.all(),
            runners: alloc::vec![None; platform.cpus],
            free: served,
            due: CpuSet::EMPTY,
            before: alloc::vec![None; platform.cpus],
            mates: CacheMates::new(platform),
        };
        for (id, task) in set.iter() {
            policy.accepts_affinity(id, &task.name, &task.affinity)?;
            policy.enter(id, task);
        }
        Ok(policy)
    }

    fn key_of(&self, task: TaskId) -> O::Key {
        O::key(&self.tasks.get(task).job)
    }

    fn is_placed(&self, key: &O::Key) -> bool {
        self.tasks.status(O::task(key)) != Status::Backlogged
    }

    fn is_selected(&self, key: &O::Key) -> bool {
        self.selected.last().is_some_and(|last| key <= last)
    }

    /// A ready job is selected or not, by its key.
    fn join(&mut self, key: O::Key) {
        if self.selected.len() < self.room {
            self.select(key);
        } else if self.is_selected(&key) {
            self.deselect_last();
            self.select(key);
        } else {
            self.others.push(key, &mut self.positions);
        }
    }

    fn select(&mut self, key: O::Key) {
        let at = self.selected.partition_point(|other| *other < key);
        self.selected.insert(at, key);
        if !self.is_placed(&key) {
            self.unplaced.push(key, &mut self.positions);
        }
    }

    fn deselect_last(&mut self) {
        let key = self.selected.pop().expect("at least one job is selected");
        if !self.is_placed(&key) {
            self.unplaced.remove(O::task(&key), &mut self.positions);
        }
        self.others.push(key, &mut self.positions);
    }

    /// The ready job is not to be considered any more; the most urgent of the others is selected instead.
    fn part(&mut self, key: O::Key) {
        let Ok(at) = self.selected.binary_search(&key) else {
            self.others.remove(O::task(&key), &mut self.positions);
            return;
        };
        self.selected.remove(at);
        if !self.is_placed(&key) {
            self.unplaced.remove(O::task(&key), &mut self.positions);
        }
        self.refill();
    }

    fn refill(&mut self) {
        if self.selected.len() < self.room && !self.others.is_empty() {
            let next = self.others.top();
            self.others.remove(O::task(&next), &mut self.positions);
            self.select(next);
        }
    }

    /// The CPU has no job any more; returns the one it had.
    fn vacate(&mut self, cpu: CpuId) -> Option<TaskId> {
        self.free.insert(cpu);
        self.runners[cpu.index()].take()
    }

    fn give_up(&mut self, cpu: CpuId) {
        let Some(task) = self.runners[cpu.index()] else {
            return;
        };
        if !self.is_selected(&self.key_of(task)) {
            self.vacate(cpu);
            self.tasks.get_mut(task).status = Status::Backlogged;
        }
    }

    fn take(&mut self, cpu: CpuId, task: TaskId) {
        self.unplaced.remove(task, &mut self.positions);
        self.free.remove(cpu);
        self.runners[cpu.index()] = Some(task);
        let entry = self.tasks.get_mut(task);
        entry.status = Status::Assigned(cpu);
        entry.last_cpu = Some(cpu);
    }
}

impl<O: JobOrder> Placement for InQuanta<O> {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.runners.get(cpu.index()).copied().flatten()
    }

    /// It is only enqueued.
    fn arrive(&mut self, job: Job, _out: &mut Switches) {
        let entry = self.tasks.get_mut(job.task);
        entry.set_job(job);
        entry.status = Status::Backlogged;
        self.join(O::key(&job));
    }

    /// Its CPU is idle until its next quantum begins.
    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        self.part(self.key_of(task));
        if let Status::Assigned(cpu) = self.tasks.status(task) {
            let from = self.vacate(cpu);
            out.push(Switch {
                cpu,
                from,
                to: None,
            });
        }
        self.tasks.get_mut(task).status = Status::NotReady;
    }

    fn tick(&mut self, cpu: CpuId, _quantum: u64) {
        if self.served.contains(cpu) && self.online.contains(cpu) {
            self.due.insert(cpu);
        }
    }

    fn end_instant(&mut self, out: &mut Switches) {
        let due = core::mem::replace(&mut self.due, CpuSet::EMPTY) & self.online;
        if due.is_empty() {
            return;
        }
        for cpu in due.iter() {
            self.before[cpu.index()] = self.runners[cpu.index()];
            self.give_up(cpu);
        }
        while !self.unplaced.is_empty() {
            let free = self.free & due;
            if free.is_empty() {
                break;
            }
            let task = O::task(&self.unplaced.top());
            let cpu = choose_idle(&free, self.tasks.get(task).last_cpu, &self.mates);
            self.take(cpu, task);
        }
        for cpu in due.iter() {
            let (from, to) = (self.before[cpu.index()], self.runners[cpu.index()]);
            if from != to {
                out.push(Switch { cpu, from, to });
            }
        }
    }

    fn quanta(&self) -> Option<Quanta> {
        Some(self.quanta.clone())
    }

    fn rerank(&mut self, job: Job, _out: &mut Switches) {
        self.part(self.key_of(job.task));
        self.tasks.get_mut(job.task).job = job;
        self.join(O::key(&job));
    }

    /// Every affinity that is accepted allows all CPUs that run jobs.
    fn set_affinity(&mut self, _task: TaskId, _affinity: &Affinity, _out: &mut Switches) {}

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        self.positions.enter(id);
        self.others.reserve(self.tasks.len());
        self.unplaced.reserve(self.runners.len());
    }

    /// Its job waits for another CPU, if it is selected with one CPU less.
    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.remove(cpu);
        if !self.served.contains(cpu) {
            return;
        }
        if let Some(task) = self.vacate(cpu) {
            let key = self.key_of(task);
            self.tasks.get_mut(task).status = Status::Backlogged;
            if self.is_selected(&key) {
                self.unplaced.push(key, &mut self.positions);
            }
            out.push(Switch {
                cpu,
                from: Some(task),
                to: None,
            });
        }
        self.free.remove(cpu);
        self.room -= 1;
        if self.selected.len() > self.room {
            self.deselect_last();
        }
    }

    /// The CPU is back, and idle until its next quantum begins.
    fn cpu_online(&mut self, cpu: CpuId, _out: &mut Switches) {
        self.online.insert(cpu);
        if self.served.contains(cpu) {
            self.free.insert(cpu);
            self.room += 1;
            self.refill();
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
        if self.served.is_subset(affinity.cpus()) {
            return Ok(());
        }
        Err(PolicyError::NotGlobal {
            policy: self.name,
            order: O::ORDER,
            task: name.into(),
            affinity: Box::new(*affinity),
        })
    }

    fn packed(&self) -> Option<Vec<Affinity>> {
        let is_packed = self.served.len() < self.runners.len();
        let cpus = Affinity::new(self.served).filter(|_| is_packed);
        cpus.map(|cpus| alloc::vec![cpus; self.tasks.len()])
    }
}

/// The CPUs that run jobs under this structure.
///
/// # Errors
/// If that is none.
pub(super) fn served_cpus(
    policy: &'static str,
    set: &TaskSet,
    structure: Structure,
) -> Result<CpuSet, PolicyError> {
    let mut served = set.platform.all();
    if let Interrupts::Dedicated(cpu) = structure.interrupts {
        served.remove(cpu);
        if served.is_empty() {
            return Err(PolicyError::NoCpuLeft { policy, cpu });
        }
    }
    Ok(served)
}

/// How late the quanta of each CPU begin. CPUs that run no jobs count in no staggering.
fn phases(set: &TaskSet, served: &CpuSet, alignment: Alignment) -> Vec<Span> {
    let mut phases = alloc::vec![Span::ZERO; set.platform.cpus];
    if alignment == Alignment::Staggered {
        let length = u128::from(set.scheduler.quantum_or_default().as_ns());
        for (rank, cpu) in served.iter().enumerate() {
            // Less than a quantum, since the rank is less than the number of CPUs.
            let late = length * rank as u128 / served.len() as u128;
            phases[cpu.index()] = Span::from_ns(late as u64);
        }
    }
    phases
}
