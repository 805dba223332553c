//! Pfair scheduling: PD2 decides at quantum boundaries which tasks run for the next quantum.
//!
//! - `windows.rs`: where the subtasks of a job may be scheduled, and what is compared of them;
//! - `progress.rs`: how far the jobs of a task are;
//! - `domain.rs`: the subtasks that compete for a group of CPUs;
//! - `decide.rs`: a slot is decided, and begins on each CPU.
//!
//! A slot is decided when the first CPU of its domain reaches it. With aligned quanta it begins
//! there and then on all CPUs. With staggered quanta each CPU continues the previous slot until its
//! own boundary. The task that runs there counts as done with that quantum, so that its next
//! subtask, or the first subtask of its next job, may have the slot, on the same CPU. A chosen task
//! that is not ready when its CPU reaches the slot (its job ended early) leaves the CPU to the next
//! best. No task is assigned a CPU within a quantum.

mod decide;
mod domain;
mod progress;
mod windows;

use alloc::vec::Vec;

use shiftwork_model::{
    Affinity, Alignment, CpuId, CpuSet, Job, Order, Slots, Span, Task, TaskId, TaskSet,
    WindowSource, pack_weights, weights_fit,
};

use super::Placement;
use super::support::cpus::{CacheMates, check_cpus};
use super::support::domains::{check_union, group_for};
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::policy::{Quanta, Switch, Switches};
use domain::{CpuState, Domain, Places};
use progress::{Declared, Progress, Stopped, Waits};

/// PD2 within disjoint groups of CPUs, aligned or staggered, as Pfair or as ERfair.
///
/// A task's windows are cut from its deadline where all tasks of its group have room then, else from
/// periods: the first is what `pfair` promises where it says that deadlines are met, the second what its
/// bounds on response times are for.
///
/// # Cost
/// O(log n) per subtask and O(c) per slot, for groups of c CPUs and n tasks.
///
/// # Source
/// PD2: J. Anderson, A. Srinivasan, Journal of Computer and System Sciences 68(1), 2004; sporadic tasks: A.
/// Srinivasan, J. Anderson, STOC 2002. Staggered quanta: P. Holman, J. Anderson, Journal of Embedded
/// Computing 1(4), 2005. In groups: B. Brandenburg, J. Calandrino, J. Anderson, RTSS 2008.
#[derive(Debug)]
pub struct Pfair {
    name: &'static str,
    groups: Vec<CpuSet>,
    quanta: Quanta,
    early: bool,
    tasks: TaskTable,
    /// By task; `None` for those that never took part.
    progress: Vec<Option<Progress>>,
    domains: Vec<Domain>,
    places: Places,
    /// By CPU.
    cpu_states: Vec<CpuState>,
    online: CpuSet,
    mates: CacheMates,
    /// CPUs on which a slot begins at this instant.
    beginning: Vec<CpuId>,
    /// Tasks chosen for a slot that have no CPU yet.
    unplaced: Vec<TaskId>,
    /// Subtasks that were skipped because they run elsewhere.
    passed: Vec<crate::order::Subtask>,
}

impl Pfair {
    /// PD2 on these groups of CPUs, which are disjoint and cover all.
    ///
    /// # Errors
    /// If an affinity is no union of groups.
    pub(crate) fn new(
        name: &'static str,
        set: &TaskSet,
        groups: Vec<CpuSet>,
        alignment: Alignment,
    ) -> Result<Self, PolicyError> {
        let cpus = set.platform.cpus;
        let length = set.scheduler.quantum_or_default();
        let mut phases = alloc::vec![Span::ZERO; cpus];
        let mut cpu_states = alloc::vec![CpuState::default(); cpus];
        let mut domains = Vec::with_capacity(groups.len());
        for (index, group) in groups.iter().enumerate() {
            let parts = match alignment {
                Alignment::Aligned => 1,
                Alignment::Staggered => group.len(),
            };
            for (place, cpu) in group.iter().enumerate() {
                cpu_states[cpu.index()].domain = index;
                phases[cpu.index()] = part(length, place.min(parts - 1), parts);
            }
            domains.push(Domain::new(*group, Slots::of(set, parts)));
        }
        let mut policy = Self {
            name,
            quanta: Quanta { length, phases },
            early: set.scheduler.early_release,
            tasks: TaskTable::default(),
            progress: Vec::new(),
            domains,
            places: Places::default(),
            cpu_states,
            online: set.platform.all(),
            mates: CacheMates::new(&set.platform),
            beginning: Vec::with_capacity(cpus),
            unplaced: Vec::with_capacity(cpus),
            passed: Vec::with_capacity(cpus),
            groups,
        };
        for (id, task) in set.iter() {
            policy.accepts_affinity(id, &task.name, &task.affinity)?;
        }
        let packing = pack_weights(set, &policy.groups, alignment == Alignment::Staggered);
        for (id, task) in set.iter() {
            let group = packing.group_of[id.index()].expect("every affinity holds a whole group");
            policy.bind(id, task, group);
        }
        for domain in 0..policy.domains.len() {
            policy.choose_source(domain);
        }
        Ok(policy)
    }

    /// Binds a task without jobs to a domain.
    fn bind(&mut self, id: TaskId, task: &Task, domain: usize) {
        self.tasks.enter(id, task.start_cpu);
        self.places.enter(id);
        if self.progress.len() <= id.index() {
            self.progress.resize(id.index() + 1, None);
        }
        let declared = Declared::new(times_of(task), &self.domains[domain].slots);
        self.progress[id.index()] = Some(Progress::new(declared, domain));
        self.domains[domain].add(id);
    }

    /// The task is in no domain from now on.
    fn unbind(&mut self, id: TaskId) {
        let Some(domain) = self.domain_of(id) else {
            return;
        };
        self.dequeue(id);
        self.domains[domain].members.retain(|&member| member != id);
    }

    fn domain_of(&self, id: TaskId) -> Option<usize> {
        let known = self.progress.get(id.index())?.as_ref();
        known.map(|progress| progress.domain)
    }

    /// What is known of a task that takes part.
    fn of(&mut self, id: TaskId) -> &mut Progress {
        self.progress[id.index()]
            .as_mut()
            .expect("a task that takes part has progress")
    }

    /// Windows are cut from deadlines where there is room for all, for the jobs to come.
    fn choose_source(&mut self, domain: usize) {
        let domain = &mut self.domains[domain];
        let progress = |id: &TaskId| self.progress[id.index()].as_ref();
        let of = domain.members.iter().filter_map(progress);
        let fit = weights_fit(
            of.map(|one| one.declared.weight(WindowSource::Deadline)),
            &domain.cpus,
        );
        domain.source = match fit {
            true => WindowSource::Deadline,
            false => WindowSource::Period,
        };
    }

    /// The next subtask of the task competes from now on, if there is one.
    fn enqueue(&mut self, id: TaskId) {
        let status = self.tasks.status(id);
        let Some(progress) = self.progress[id.index()].as_mut() else {
            return;
        };
        if status == Status::NotReady || progress.waits != Waits::Nowhere {
            return;
        }
        let runs = matches!(status, Status::Assigned(_));
        let domain = &mut self.domains[progress.domain];
        if let Some(turn) = progress.turn(id, runs, self.early, &domain.rules()) {
            progress.waits = domain.push(id, &turn, &mut self.places);
        }
    }

    /// Nothing of the task competes, and no slot is kept for it.
    fn dequeue(&mut self, id: TaskId) {
        let Some(progress) = self.progress[id.index()].as_mut() else {
            return;
        };
        let waits = core::mem::replace(&mut progress.waits, Waits::Nowhere);
        self.domains[progress.domain].remove(id, waits, &mut self.places);
        if let Waits::Chosen(cpu) = waits {
            self.cpu_states[cpu.index()].chosen = None;
        }
    }

    /// The job is ready no more. A slot that was kept for it stays so: it may be ready again in time.
    fn stop(&mut self, task: TaskId, why: Stopped, out: &mut Switches) {
        if let Status::Assigned(cpu) = self.tasks.status(task) {
            self.cpu_states[cpu.index()].runs = None;
            out.push(Switch {
                cpu,
                from: Some(task),
                to: None,
            });
        }
        self.tasks.get_mut(task).status = Status::NotReady;
        self.of(task).stopped = why;
        if !matches!(self.of(task).waits, Waits::Chosen(_)) {
            self.dequeue(task);
        }
    }

    /// The job loses its CPU in the middle of a quantum, and waits for the next.
    fn displace(&mut self, task: TaskId, cpu: CpuId, out: &mut Switches) {
        self.cpu_states[cpu.index()].runs = None;
        self.tasks.get_mut(task).status = Status::Backlogged;
        self.dequeue(task);
        self.enqueue(task);
        out.push(Switch {
            cpu,
            from: Some(task),
            to: None,
        });
    }
}

/// Cost, period and deadline.
const fn times_of(task: &Task) -> [Span; 3] {
    [task.cost, task.period, task.deadline]
}

/// So many of the parts into which the quantum is divided, rounded down.
fn part(quantum: Span, count: usize, parts: usize) -> Span {
    let ns = u128::from(quantum.as_ns()) * count as u128 / parts as u128;
    Span::from_ns(u64::try_from(ns).expect("a part is not more than the whole"))
}

impl Placement for Pfair {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpu_states.get(cpu.index())?.runs
    }

    fn arrive(&mut self, job: Job, _: &mut Switches) {
        let Some(domain) = self.domain_of(job.task) else {
            return;
        };
        let entry = self.tasks.get_mut(job.task);
        entry.set_job(job);
        entry.status = Status::Backlogged;
        let rules = self.domains[domain].rules();
        if let Some(progress) = &mut self.progress[job.task.index()] {
            progress.wake(job.ready, job.deadline, &rules);
        }
        self.enqueue(job.task);
    }

    fn depart(&mut self, task: TaskId, out: &mut Switches) {
        self.stop(task, Stopped::Finished, out);
    }

    fn throttle(&mut self, task: TaskId, out: &mut Switches) {
        self.stop(task, Stopped::Throttled, out);
    }

    fn block(&mut self, task: TaskId, out: &mut Switches) {
        self.stop(task, Stopped::Suspended, out);
    }

    fn tick(&mut self, cpu: CpuId, quantum: u64) {
        let Some(state) = self.cpu_states.get_mut(cpu.index()) else {
            return;
        };
        if state.begins.is_none() {
            self.beginning.push(cpu);
        }
        state.begins = state.begins.max(Some(quantum));
    }

    /// A job that waits for one whose last quantum runs competes for the slot after it.
    fn released(&mut self, job: Job) {
        if self.domain_of(job.task).is_some() {
            self.of(job.task).wait(job.deadline);
            self.enqueue(job.task);
        }
    }

    fn end_instant(&mut self, out: &mut Switches) {
        if !self.beginning.is_empty() {
            self.begin_slots(out);
        }
    }

    fn quanta(&self) -> Option<Quanta> {
        Some(self.quanta.clone())
    }

    /// Priorities are nothing to it; another deadline means new windows.
    fn rerank(&mut self, job: Job, _: &mut Switches) {
        let is_new = self.tasks.get(job.task).job.deadline != job.deadline;
        self.tasks.get_mut(job.task).job = job;
        let Some(domain) = self.domain_of(job.task).filter(|_| is_new) else {
            return;
        };
        let was_chosen = matches!(self.of(job.task).waits, Waits::Chosen(_));
        if !was_chosen {
            self.dequeue(job.task);
        }
        let rules = self.domains[domain].rules();
        if let Some(progress) = &mut self.progress[job.task.index()] {
            progress.renew(job.deadline, &rules);
        }
        self.enqueue(job.task);
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        let Some(present) = self.domain_of(task) else {
            return;
        };
        let group = group_for(&self.groups, Some(present), affinity);
        if group == present {
            return;
        }
        self.unbind(task);
        let declared = self.of(task).declared;
        let declared = declared.within(&self.domains[group].slots);
        let progress = self.of(task);
        (progress.domain, progress.declared) = (group, declared);
        self.domains[group].add(task);
        self.choose_source(present);
        self.choose_source(group);
        match self.tasks.status(task) {
            Status::Assigned(cpu) => self.displace(task, cpu, out),
            _ => self.enqueue(task),
        }
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        let present = self.domain_of(id);
        let group = group_for(&self.groups, present, &task.affinity);
        self.unbind(id);
        self.bind(id, task, group);
        for domain in present.into_iter().chain([group]) {
            self.choose_source(domain);
        }
    }

    /// What others were promised stays as it is: windows that were cut from periods go on so.
    fn leave(&mut self, task: TaskId) {
        self.unbind(task);
        if let Some(progress) = self.progress.get_mut(task.index()) {
            *progress = None;
        }
    }

    fn set_attributes(&mut self, id: TaskId, task: &Task) {
        if let Some(domain) = self.domain_of(id) {
            self.of(id).declared = Declared::new(times_of(task), &self.domains[domain].slots);
            self.choose_source(domain);
        }
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        self.online.remove(cpu);
        if let Some(task) = self.cpu_states[cpu.index()].chosen {
            self.dequeue(task);
            self.enqueue(task);
        }
        if let Some(task) = self.cpu_states[cpu.index()].runs {
            self.displace(task, cpu, out);
        }
    }

    /// The CPU has a quantum again at its next boundary.
    fn cpu_online(&mut self, cpu: CpuId, _: &mut Switches) {
        self.online.insert(cpu);
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
        check_cpus(self.cpu_states.len(), name, affinity)?;
        check_union((self.name, Order::Edf), &self.groups, name, affinity)
    }

    /// One group of all CPUs is no packing.
    fn packed(&self) -> Option<Vec<Affinity>> {
        let group = |progress: &Option<Progress>| {
            let cpus = match progress {
                Some(progress) => self.groups[progress.domain],
                None => self.groups[0],
            };
            Affinity::new(cpus)
        };
        (self.groups.len() > 1).then(|| self.progress.iter().filter_map(group).collect())
    }
}
