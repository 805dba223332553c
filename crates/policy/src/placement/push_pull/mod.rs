//! SCHED_DEADLINE's placement: a run queue per CPU, and tasks pushed and pulled between them.
//!
//! - `queue.rs`: the run queues;
//! - `migration.rs`: pushing and pulling, and when CPUs decide;
//! - `target.rs`: the CPU that a job moves to;
//! - `domain.rs`: the task sets that are accepted.

mod domain;
mod migration;
mod queue;
mod target;

use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Job, Repairs, Share, Span, Task, TaskId, TaskSet};

use super::Placement;
use super::support::cpus::check_cpus;
use super::support::ready::{Status, TaskTable};
use crate::error::PolicyError;
use crate::policy::{Switch, Switches};
use domain::check_domain;
use queue::{RunQueue, Undecided};

/// The order of two jobs with the same deadline in one run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ties {
    /// By time of enqueueing, as in Linux; a job that is replenished is enqueued anew.
    #[default]
    Fifo,
    /// The same, but a job that is replenished while it runs goes on, unless its new deadline is due
    /// already: what Figs. 5 and 8 of Tang et al. assume.
    Running,
}

/// Earliest deadline first as Linux does it.
///
/// A job waits and runs in the run queue of one CPU. The *deadline of a CPU* is the earliest in its queue.
/// A job that becomes ready is put into the queue where its task was last; then its CPU pushes, and only
/// then the earliest job of the queue runs. One that has slept, not one that was throttled, Linux may put
/// into another queue at once (`select_task_rq_dl`), which the paper leaves out.
///
/// - *Push*: of the waiting jobs that may run elsewhere, the earliest moves to a CPU with an empty
///   queue, else to the CPU with the latest deadline, if that is later than its own. A CPU also
///   pushes whenever it starts to run another job. Linux counts the pushed job itself in the
///   deadline of the pushing CPU, which then never seems to be the latest. Linux looks at one CPU
///   with the latest deadline of the root domain, and gives up if the job may not use it. It does
///   not push a job that has slept and preempts, nor a job that preempts one that can move. It does
///   push a job that a timer makes ready, even if it is alone (since Linux 6.7). With
///   [`push_without_itself`](shiftwork_model::Repairs::push_without_itself) every push finds the
///   latest of all.
/// - *Pull*: before a CPU decides what to run, it takes from every other CPU the earliest waiting job that
///   may run here, if that is earlier than all it has.
/// - A job that is replenished late stays where it runs, and if it stays the earliest no CPU
///   decides. With [`no_bypass`](shiftwork_model::Repairs::no_bypass) it is a job that becomes
///   ready there anew, so that its CPU pushes.
/// - Of jobs that end or are replenished at one instant all leave their queues first; then their CPUs
///   decide, the earliest deadline first.
///
/// O(m + n) per step, for m CPUs and n jobs in the queues that are looked at; a chain of pushes is at most
/// m long, since each of them preempts a later job.
///
/// # Source
/// `kernel/sched/deadline.c` and `cpudeadline.c` of Linux, as described in Section 4 of S. Tang, J.
/// H. Anderson, L. Abeni, RTNS 2021. Where those leave a choice: of equally good targets the
/// pushing CPU, else the lowest; where capacities differ, of free CPUs one that is fast enough,
/// else the fastest.
#[derive(Debug)]
pub struct PushPull {
    tasks: TaskTable,
    /// By task: where it may run.
    masks: Vec<CpuSet>,
    /// By task: C / min(D, T) in units of 2^-20, rounded up.
    densities: Vec<u64>,
    /// By task: the CPU in whose queue its job is, was, or will be.
    homes: Vec<CpuId>,
    /// By task: whether its budget was used up when it was ready last, so that a timer makes it ready,
    /// unless it sleeps for longer.
    throttled: Vec<bool>,
    /// By task: from a deadline to the end of the period.
    gaps: Vec<Span>,
    queues: Vec<RunQueue>,
    online: CpuSet,
    /// The root domains: CPUs of different ones know nothing of each other.
    domains: Vec<CpuSet>,
    /// The jobs that ended or were replenished at this instant where they ran, and where that was. The
    /// earliest is looked at first.
    undecided: Vec<Undecided>,
    /// Ready jobs that may run nowhere.
    stranded: Vec<TaskId>,
    /// How many jobs were put into queues so far.
    enqueued: i64,
    /// In units of 2^-20; empty if all CPUs are alike.
    capacities: Vec<u64>,
    repairs: Repairs,
    ties: Ties,
}

/// So many units are one CPU, or a capacity of one.
const UNITS: u64 = 1 << 20;

impl PushPull {
    /// All tasks known, no job ready.
    ///
    /// # Errors
    /// If an affinity names a CPU that the platform does not have or lies in no cluster, if a deadline is
    /// beyond its period, and under the repaired admission if a task is neither bound to one CPU nor free
    /// to use its whole cluster.
    pub fn new(
        name: &'static str,
        set: &TaskSet,
        repairs: Repairs,
        ties: Ties,
    ) -> Result<Self, PolicyError> {
        let cpus = set.platform.cpus;
        let queue = || RunQueue {
            ready: Vec::with_capacity(set.tasks.len()),
            ..RunQueue::default()
        };
        let units = |share: &Share| u64::from(share.billionths()) * UNITS / u64::from(Share::WHOLE);
        let mut policy = Self {
            tasks: TaskTable::default(),
            masks: Vec::with_capacity(set.tasks.len()),
            densities: Vec::with_capacity(set.tasks.len()),
            homes: Vec::with_capacity(set.tasks.len()),
            throttled: Vec::with_capacity(set.tasks.len()),
            gaps: Vec::with_capacity(set.tasks.len()),
            queues: (0..cpus).map(|_| queue()).collect(),
            online: set.platform.all(),
            domains: set.platform.clusters_or_one(),
            undecided: Vec::with_capacity(cpus),
            stranded: Vec::with_capacity(set.tasks.len()),
            enqueued: 0,
            capacities: set.platform.capacities.iter().map(units).collect(),
            repairs,
            ties,
        };
        let clusters = set.platform.clusters_or_one();
        for (id, task) in set.iter() {
            policy.accepts_affinity(id, &task.name, &task.affinity)?;
            check_domain(name, task, &clusters, repairs.admission)?;
            policy.enter(id, task);
        }
        Ok(policy)
    }
}

impl Placement for PushPull {
    fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    fn tasks_mut(&mut self) -> &mut TaskTable {
        &mut self.tasks
    }

    fn runner(&self, cpu: CpuId) -> Option<TaskId> {
        self.queues[cpu.index()].running
    }

    fn queue_of(&self, task: TaskId) -> Option<CpuId> {
        self.homes.get(task.index()).copied()
    }

    fn arrive(&mut self, job: Job, out: &mut Switches) {
        self.decide_all();
        let index = job.task.index();
        let end = self.tasks.get(job.task).job.deadline + self.gaps[index];
        let has_slept = !core::mem::take(&mut self.throttled[index]) || job.ready > end;
        if has_slept {
            self.wake_elsewhere(job.task);
        }
        let entry = self.tasks.get_mut(job.task);
        entry.set_job(job);
        entry.status = Status::Backlogged;
        self.settle(job.task, has_slept);
        self.report(out);
    }

    fn throttle(&mut self, task: TaskId, out: &mut Switches) {
        self.throttled[task.index()] = true;
        self.depart(task, out);
    }

    fn depart(&mut self, task: TaskId, _: &mut Switches) {
        self.tasks.get_mut(task).status = Status::NotReady;
        self.stranded.retain(|other| *other != task);
        if self.dequeue(task) {
            self.undecided.push(Undecided {
                deadline: self.tasks.get(task).job.deadline,
                task,
                cpu: self.homes[task.index()],
                woken: false,
            });
        }
    }

    fn end_instant(&mut self, out: &mut Switches) {
        self.decide_all();
        self.report(out);
    }

    fn succeed(&mut self, next: Job, out: &mut Switches) -> bool {
        let task = next.task;
        let cpu = self.homes[task.index()];
        if self.tasks.status(task) != Status::Assigned(cpu) {
            return false;
        }
        self.tasks.get_mut(task).set_job(next);
        let woken = self.repairs.no_bypass;
        if woken {
            self.dequeue(task);
            self.tasks.get_mut(task).status = Status::Backlogged;
        } else {
            self.remove(task, cpu);
        }
        self.enqueued += 1;
        let goes_on = self.ties == Ties::Running && !woken && next.deadline > next.ready;
        let turn = if goes_on {
            -self.enqueued
        } else {
            self.enqueued
        };
        self.enqueue_as(task, cpu, turn);
        if woken || self.queues[cpu.index()].first().map(|first| first.task) != Some(task) {
            // Otherwise no CPU decides, and nothing is pulled.
            self.undecided.push(Undecided {
                deadline: next.deadline,
                task,
                cpu,
                woken,
            });
        }
        out.push(Switch {
            cpu,
            from: Some(task),
            to: Some(task),
        });
        true
    }

    fn rerank(&mut self, job: Job, out: &mut Switches) {
        self.decide_all();
        self.tasks.get_mut(job.task).set_job(job);
        let cpu = self.homes[job.task.index()];
        let ready = &mut self.queues[cpu.index()].ready;
        let before = ready.len();
        ready.retain(|ready| ready.task != job.task);
        if ready.len() < before {
            self.enqueue(job.task, cpu);
            self.decide(cpu);
        }
        self.report(out);
    }

    fn set_affinity(&mut self, task: TaskId, affinity: &Affinity, out: &mut Switches) {
        self.decide_all();
        self.masks[task.index()] = *affinity.cpus();
        let home = self.homes[task.index()];
        let is_ready = self.tasks.status(task) != Status::NotReady;
        let is_stranded = self.stranded.contains(&task);
        if affinity.cpus().contains(home) && !is_stranded {
            if is_ready {
                self.push(home);
            }
        } else if is_ready {
            self.stranded.retain(|other| *other != task);
            let ran = !is_stranded && self.dequeue(task);
            self.tasks.get_mut(task).status = Status::Backlogged;
            self.settle(task, true);
            if ran {
                self.decide(home);
            }
        } else if let Some(lowest) = affinity.cpus().lowest() {
            self.homes[task.index()] = lowest;
        }
        self.report(out);
    }

    fn enter(&mut self, id: TaskId, task: &Task) {
        self.tasks.enter(id, task.start_cpu);
        let cpus = *task.affinity.cpus();
        let start = task.start_cpu.filter(|&cpu| cpus.contains(cpu));
        let home = start.or(cpus.lowest()).unwrap_or(CpuId::from_index(0));
        let least = task.deadline.min(task.period).as_ns().max(1);
        let density = (u128::from(task.cost.as_ns()) * u128::from(UNITS)).div_ceil(least.into());
        let density = u64::try_from(density).unwrap_or(u64::MAX);
        while self.homes.len() <= id.index() {
            self.homes.push(home);
            self.masks.push(cpus);
            self.densities.push(density);
            self.throttled.push(false);
            self.gaps.push(Span::ZERO);
        }
        self.homes[id.index()] = home;
        self.throttled[id.index()] = false;
        self.gaps[id.index()] = task.period.saturating_sub(task.deadline);
        self.masks[id.index()] = cpus;
        self.densities[id.index()] = density;
        let room = self.tasks.len();
        for queue in &mut self.queues {
            queue.ready.reserve(room.saturating_sub(queue.ready.len()));
        }
        self.stranded
            .reserve(room.saturating_sub(self.stranded.len()));
    }

    fn set_clusters(&mut self, clusters: &[CpuSet]) {
        self.domains.clear();
        self.domains.extend_from_slice(clusters);
    }

    fn cpu_offline(&mut self, cpu: CpuId, out: &mut Switches) {
        self.decide_all();
        self.online.remove(cpu);
        let queue = self.note(cpu);
        queue.running = None;
        let homeless = core::mem::take(&mut queue.ready);
        for ready in &homeless {
            self.tasks.get_mut(ready.task).status = Status::Backlogged;
            self.settle(ready.task, true);
        }
        // The allocation is kept, so that later events need none.
        self.queues[cpu.index()].ready = homeless;
        self.queues[cpu.index()].ready.clear();
        self.report(out);
    }

    fn cpu_online(&mut self, cpu: CpuId, out: &mut Switches) {
        self.decide_all();
        self.online.insert(cpu);
        let mut waiting = core::mem::take(&mut self.stranded);
        for &task in &waiting {
            self.settle(task, true);
        }
        // The allocation is kept, so that later events need none.
        waiting.clear();
        waiting.append(&mut self.stranded);
        self.stranded = waiting;
        self.decide(cpu);
        self.report(out);
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
        check_cpus(self.queues.len(), name, affinity)
    }
}
