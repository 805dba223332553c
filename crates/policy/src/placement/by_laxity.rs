//! Global scheduling by orders whose ranks change with time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, Span, Task, TaskId, TaskSet};

use super::Placement;
use super::support::cpus::{CacheMates, check_cpus};
use super::support::domains::choose_idle;
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::order::{Laxity, LaxityOrder};
use crate::policy::{Switch, Switches};

/// At a decision the most urgent ready jobs run, as many as there are CPUs. Those of them that run already
/// stay where they are; the others, the most urgent first, each take a CPU without a job: the one where the job
/// last ran, else one that shares a cache with it, else the lowest.
///
/// Decisions are taken at the end of an instant: of each at which a job becomes ready, stops being ready, is
/// ranked anew or gets another affinity, or a CPU goes or comes back, and of those that the order asks for. So the number of switches
/// is finite where ranks change all the time.
///
/// # Cost
/// O(n log n + m) per decision, for n ready jobs on m CPUs.
#[derive(Debug)]
pub(crate) struct ByLaxity<O> {
    name: &'static str,
    quantum: Span,
    tasks: TaskTable,
    /// By task the latest start of its ready job.
    starts: Vec<Instant>,
    /// The tasks with ready jobs, as the last decision ordered them, later ones behind.
    ready: Vec<TaskId>,
    online: CpuSet,
    runners: Vec<Option<TaskId>>,
    /// What those ran before a decision.
    before: Vec<Option<TaskId>>,
    /// The CPUs that are online and have no job.
    free: CpuSet,
    now: Instant,
    /// The decision that the order asks for.
    next: Instant,
    /// Whether a decision is due at this instant.
    is_due: bool,
    mates: CacheMates,
    order: PhantomData<O>,
}

impl<O: LaxityOrder> ByLaxity<O> {
    /// # Errors
    /// If a task may not use every CPU.
    pub(crate) fn new(name: &'static str, set: &TaskSet) -> Result<Self, PolicyError> {
        let platform = &set.platform;
        let mut policy = Self {
            name,
            quantum: set.scheduler.quantum_or_default(),
            tasks: TaskTable::default(),
            starts: Vec::new(),
            ready: Vec::new(),
            online: platform.all(),
            runners: alloc::vec![None; platform.cpus],
            before: alloc::vec![None; platform.cpus],
            free: platform.all(),
            now: Instant::ZERO,
            next: Instant::NEVER,
            is_due: false,
            mates: CacheMates::new(platform),
            order: PhantomData,
        };
        for (id, task) in set.iter() {
            policy.accepts_affinity(id, &task.name, &task.affinity)?;
            policy.enter(id, task);
        }
        Ok(policy)
    }

    /// Puts the ready jobs into their order at this instant.
    fn rank(&mut self) {
        let Self {
            tasks,
            starts,
            ready,
            now,
            ..
        } = self;
        ready.sort_unstable_by_key(|&task| {
            let entry = tasks.get(task);
            let laxity = Laxity {
                now: *now,
                latest_start: starts[task.index()],
                runs: entry.status != Status::Backlogged,
            };
            O::key(&entry.job, laxity)
        });
    }

    fn vacate(&mut self, task: TaskId, cpu: CpuId) {
        self.runners[cpu.index()] = None;
        self.free.insert(cpu);
        self.tasks.get_mut(task).status = Status::Backlogged;
    }

    fn take(&mut self, cpu: CpuId, task: TaskId) {
        self.runners[cpu.index()] = Some(task);
        self.free.remove(cpu);
        let entry = self.tasks.get_mut(task);
        entry.status = Status::Assigned(cpu);
        entry.last_cpu = Some(cpu);
    }

    fn decide(&mut self) {
        self.rank();
        let room = self.online.len().min(self.ready.len());
        for at in room..self.ready.len() {
            let task = self.ready[at];
            if let Status::Assigned(cpu) = self.tasks.status(task) {
                self.vacate(task, cpu);
            }
        }
        for at in 0..room {
            let task = self.ready[at];
            let entry = self.tasks.get(task);
            if entry.status == Status::Backlogged {
                let cpu = choose_idle(&self.free, entry.last_cpu, &self.mates);
                self.take(cpu, task);
            }
        }
        let start = |task: &TaskId| self.starts[task.index()];
        let (running, waiting) = self.ready.split_at(room);
        let next = |last_running| {
            let waiting = waiting.iter().map(start);
            O::next_decision((self.now, self.quantum), last_running, waiting)
        };
        self.next = running.iter().map(start).max().map_or(Instant::NEVER, next);
    }
}

impl<O: LaxityOrder> Placement for ByLaxity<O> {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.runners.get(cpu.index()).copied().flatten()
    }

    /// Its latest start is not known before the end of the instant.
    fn arrive(&mut self, job: Job, _out: &mut Switches) {
        let entry = self.tasks.get_mut(job.task);
        entry.set_job(job);
        entry.status = Status::Backlogged;
        self.starts[job.task.index()] = job.deadline;
        self.ready.push(job.task);
        self.is_due = true;
    }

    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        self.ready.retain(|&other| other != task);
        if let Status::Assigned(cpu) = self.tasks.status(task) {
            self.vacate(task, cpu);
            out.push(Switch {
                cpu,
                from: Some(task),
                to: None,
            });
        }
        self.tasks.get_mut(task).status = Status::NotReady;
        self.is_due = true;
    }

    fn latest_starts(&mut self, now: Instant, of: &[(TaskId, Instant)]) {
        self.now = now;
        for &(task, start) in of {
            if let Some(known) = self.starts.get_mut(task.index()) {
                *known = start;
            }
        }
    }

    fn next_decision(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn end_instant(&mut self, out: &mut Switches) {
        if !core::mem::take(&mut self.is_due) && self.now < self.next {
            return;
        }
        self.before.copy_from_slice(&self.runners);
        self.decide();
        for cpu in self.online.iter() {
            let (from, to) = (self.before[cpu.index()], self.runners[cpu.index()]);
            if from != to {
                out.push(Switch { cpu, from, to });
            }
        }
    }

    fn rerank(&mut self, job: Job, _out: &mut Switches) {
        self.tasks.get_mut(job.task).job = job;
        self.starts[job.task.index()] = job.deadline;
        self.is_due = true;
    }

    /// Every affinity that is accepted allows all CPUs.
    fn set_affinity(&mut self, task: TaskId, _affinity: &Affinity, _out: &mut Switches) {
        self.is_due |= self.tasks.status(task) != Status::NotReady;
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        self.starts.resize(self.tasks.len(), Instant::NEVER);
        let more = self.tasks.len().saturating_sub(self.ready.len());
        self.ready.reserve(more);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        if let Some(task) = self.runners[cpu.index()] {
            self.vacate(task, cpu);
            out.push(Switch {
                cpu,
                from: Some(task),
                to: None,
            });
        }
        self.online.remove(cpu);
        self.free.remove(cpu);
        self.is_due = true;
    }

    fn cpu_online(&mut self, cpu: CpuId, _out: &mut Switches) {
        self.online.insert(cpu);
        self.free.insert(cpu);
        self.is_due = true;
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
        let cpus = self.runners.len();
        check_cpus(cpus, name, affinity)?;
        if affinity.cpus().len() == cpus {
            return Ok(());
        }
        Err(PolicyError::NotGlobal {
            policy: self.name,
            order: O::ORDER,
            task: name.into(),
            affinity: Box::new(*affinity),
        })
    }
}
