//! SCHED_DEADLINE's placement: a run queue per CPU, and tasks pushed and pulled between them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, Share, Span, Task, TaskId, TaskSet};

use super::{Placement, check_cpus};
use crate::error::PolicyError;
use crate::policy::{AsLinux, Switch, Switches};
use crate::ready::{Status, TaskTable};

/// Who goes first of two jobs with the same deadline in one run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ties {
    /// Whoever was put into the queue first, as in Linux; a job that is replenished is put there anew.
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
/// - *Push*: of the waiting jobs that may run elsewhere, the earliest moves to a CPU with an empty queue,
///   else to the CPU with the latest deadline, if that is later than its own. Whenever a CPU starts to run
///   another job likewise.
///   Linux counts the pushed job itself in the deadline of the pushing CPU, which then never seems to be
///   the latest, and does not push who preempts one here that can move. With
///   [`push_without_itself`](shiftwork_model::Repairs::push_without_itself) a push finds the latest of all.
/// - *Pull*: before a CPU decides what to run, it takes from every other CPU the earliest waiting job that
///   may run here, if that is earlier than all it has.
/// - A job that is replenished late stays where it runs, and if it stays the earliest nobody decides
///   anything; [`no_bypass`](shiftwork_model::Repairs::no_bypass) makes it a job that becomes ready there
///   anew, so that its CPU pushes.
/// - Of jobs that end or are replenished at one instant all leave their queues first; then their CPUs
///   decide, the earliest deadline first.
///
/// O(m + n) per step, for m CPUs and n jobs in the queues that are looked at; a chain of pushes is at most
/// m long, since each of them preempts a later job.
///
/// # Source
/// `kernel/sched/deadline.c` and `cpudeadline.c` of Linux, as told in Section 4 of S. Tang, J. H. Anderson,
/// L. Abeni, RTNS 2021. Where those leave a choice: of equally good targets the pushing CPU, else the
/// lowest; where capacities differ, of free CPUs one that is fast enough, else the fastest.
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
    rules: AsLinux,
    ties: Ties,
}

/// The run queue of a CPU.
#[derive(Debug, Default)]
struct RunQueue {
    /// Everything that is ready here, the first to run first.
    ready: Vec<Ready>,
    running: Option<TaskId>,
    /// What it ran before the present event.
    before: Option<TaskId>,
    /// Whether `before` holds.
    is_noted: bool,
}

/// A ready job in its queue; less is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    deadline: Instant,
    /// Who was put there first goes first.
    turn: i64,
    task: TaskId,
}

impl RunQueue {
    /// The first of the queue, `task` not counted.
    fn first_but(&self, task: TaskId) -> Option<Ready> {
        self.ready.iter().copied().find(|other| other.task != task)
    }

    fn first(&self) -> Option<Ready> {
        self.ready.first().copied()
    }

    fn waiting(&self) -> impl Iterator<Item = Ready> {
        let running = self.running;
        let waits = move |ready: &Ready| Some(ready.task) != running;
        self.ready.iter().copied().filter(waits)
    }
}

/// A CPU where a job ended, or was replenished. The earliest decides first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Undecided {
    deadline: Instant,
    task: TaskId,
    cpu: CpuId,
    /// Whether the job became ready there, so that its CPU pushes.
    woken: bool,
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
        rules: AsLinux,
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
            rules,
            ties,
        };
        let clusters = set.platform.clusters_or_one();
        for (id, task) in set.iter() {
            policy.accepts_affinity(id, &task.name, &task.affinity)?;
            check_domain(name, task, &clusters, rules.repairs.admission)?;
            policy.enter(id, task);
        }
        Ok(policy)
    }

    /// Notes what the CPU ran before the present event, once.
    fn note(&mut self, cpu: CpuId) -> &mut RunQueue {
        let queue = &mut self.queues[cpu.index()];
        if !queue.is_noted {
            queue.is_noted = true;
            queue.before = queue.running;
        }
        queue
    }

    /// Appends one switch for each CPU whose job is another one than before the event.
    fn report(&mut self, out: &mut Switches) {
        for (index, queue) in self.queues.iter_mut().enumerate() {
            if core::mem::take(&mut queue.is_noted) && queue.before != queue.running {
                out.push(Switch {
                    cpu: CpuId::from_index(index),
                    from: queue.before,
                    to: queue.running,
                });
            }
        }
    }

    /// The ready job of the task waits in this queue from now on, as the last of its deadline.
    fn enqueue(&mut self, task: TaskId, cpu: CpuId) {
        self.enqueued += 1;
        self.enqueue_as(task, cpu, self.enqueued);
    }

    fn enqueue_as(&mut self, task: TaskId, cpu: CpuId, turn: i64) {
        let entry = Ready {
            deadline: self.tasks.get(task).job.deadline,
            turn,
            task,
        };
        let ready = &mut self.queues[cpu.index()].ready;
        let at = ready.partition_point(|other| *other < entry);
        ready.insert(at, entry);
        self.homes[task.index()] = cpu;
    }

    /// The waiting job is the last of its deadline in another queue from now on.
    fn move_to(&mut self, task: TaskId, cpu: CpuId) {
        let home = self.homes[task.index()];
        self.remove(task, home);
        self.enqueue(task, cpu);
    }

    fn remove(&mut self, task: TaskId, cpu: CpuId) {
        self.queues[cpu.index()]
            .ready
            .retain(|ready| ready.task != task);
    }

    /// Takes the job out of its queue; whether it ran.
    fn dequeue(&mut self, task: TaskId) -> bool {
        let home = self.homes[task.index()];
        let queue = self.note(home);
        queue.ready.retain(|ready| ready.task != task);
        let ran = queue.running == Some(task);
        if ran {
            queue.running = None;
        }
        ran
    }

    /// Lets the CPUs decide where jobs have ended, or were replenished and are not the first any more.
    fn decide_all(&mut self) {
        self.push_woken();
        loop {
            let jobs = self.undecided.iter().enumerate();
            let first = jobs.min_by_key(|(_, undecided)| **undecided);
            let Some((at, &Undecided { cpu, .. })) = first else {
                return;
            };
            self.undecided.swap_remove(at);
            self.decide(cpu);
        }
    }

    /// Whoever became ready where it ran is pushed before anybody decides, and pulls it.
    fn push_woken(&mut self) {
        loop {
            let woken = self
                .undecided
                .iter_mut()
                .filter(|undecided| undecided.woken);
            let Some(first) = woken.min() else { return };
            first.woken = false;
            let cpu = first.cpu;
            self.push(cpu);
        }
    }

    /// Lets the CPU run the first of its queue, after it has pulled; pushes whom that preempts.
    fn decide(&mut self, cpu: CpuId) {
        if !self.online.contains(cpu) {
            return;
        }
        self.pull(cpu);
        let queue = self.note(cpu);
        let next = queue.first().map(|ready| ready.task);
        let before = queue.running;
        if next == before {
            return;
        }
        queue.running = next;
        if let Some(task) = before {
            self.tasks.get_mut(task).status = Status::Backlogged;
        }
        if let Some(task) = next {
            let entry = self.tasks.get_mut(task);
            entry.status = Status::Assigned(cpu);
            entry.last_cpu = Some(cpu);
        }
        if next.is_some() {
            self.push(cpu);
        }
    }

    /// Takes from every other CPU the earliest job that waits there and may run here, as long as that is
    /// earlier than all that is here, and not the next to run there.
    fn pull(&mut self, cpu: CpuId) {
        for other in 0..self.queues.len() {
            if other == cpu.index() {
                continue;
            }
            let here = self.queues[cpu.index()].first();
            let queue = &self.queues[other];
            let found = queue.ready.iter().skip(1).find(|ready| {
                Some(ready.task) != queue.running && self.masks[ready.task.index()].contains(cpu)
            });
            let is_earlier =
                |found: &&Ready| here.is_none_or(|here| found.deadline < here.deadline);
            if let Some(task) = found.filter(is_earlier).map(|found| found.task) {
                self.move_to(task, cpu);
            }
        }
    }

    /// Moves waiting jobs to CPUs where they run at once, the earliest first, until one has to stay.
    fn push(&mut self, cpu: CpuId) {
        while let Some((job, target)) = self.next_push(cpu) {
            self.move_to(job, target);
            self.decide(target);
        }
    }

    /// The same for one job, even if it is the only one here.
    fn push_even_alone(&mut self, cpu: CpuId) {
        if let Some((job, target)) = self.pushed_from(cpu) {
            self.move_to(job, target);
            self.decide(target);
        }
    }

    /// The earliest waiting job that may run elsewhere, and where, if there is a better CPU for it.
    fn next_push(&self, cpu: CpuId) -> Option<(TaskId, CpuId)> {
        match self.queues[cpu.index()].ready.len() {
            0 | 1 => None,
            _ => self.pushed_from(cpu),
        }
    }

    fn pushed_from(&self, cpu: CpuId) -> Option<(TaskId, CpuId)> {
        let queue = &self.queues[cpu.index()];
        let job = queue.waiting().find(|ready| self.is_movable(ready.task))?;
        if let Some(running) = queue.running
            && !self.rules.repairs.push_without_itself
            && job.deadline < self.tasks.get(running).job.deadline
            && self.is_movable(running)
        {
            // It preempts, and whoever it preempts is pushed.
            return None;
        }
        let counted = !self.rules.repairs.push_without_itself;
        let target = self.target(cpu, job.task, job.deadline, counted)?;
        (target != cpu).then_some((job.task, target))
    }

    /// Whether the task may use more than one CPU.
    fn is_movable(&self, task: TaskId) -> bool {
        (self.masks[task.index()] & self.online).len() > 1
    }

    /// A free CPU for the job, else the one with the latest deadline, if that is later than `deadline`:
    /// what `find_later_rq` looks up. Whether the job itself is `counted` where it waits.
    fn target(&self, from: CpuId, task: TaskId, deadline: Instant, counted: bool) -> Option<CpuId> {
        let allowed = self.masks[task.index()] & self.online;
        let deadline_of = |cpu: CpuId| {
            let queue = &self.queues[cpu.index()];
            let first = if counted {
                queue.first()
            } else {
                queue.first_but(task)
            };
            first.map(|first| first.deadline)
        };
        let free = allowed.iter().filter(|&cpu| deadline_of(cpu).is_none());
        if let Some(cpu) = self.best_free(free, from, task) {
            return Some(cpu);
        }
        // The heap of the whole root domain knows one CPU with the latest deadline; if the task may not use
        // that one, `cpudl_find` looks no further.
        let domain = self.domains.iter().find(|domain| domain.contains(from))?;
        let latest = (*domain & self.online)
            .iter()
            .filter_map(deadline_of)
            .max()?;
        if latest <= deadline {
            return None;
        }
        let are_latest = |&cpu: &CpuId| deadline_of(cpu) == Some(latest);
        self.prefer(allowed.iter().filter(are_latest), from)
    }

    /// Whether the CPU alone could do what the task may ask for.
    fn is_fast_enough(&self, cpu: CpuId, task: TaskId) -> bool {
        let capacity = self.capacities.get(cpu.index());
        capacity.is_none_or(|&capacity| self.densities[task.index()] <= capacity)
    }

    /// A task that has slept and would preempt nobody who can move, or nobody at all, or whose CPU is too
    /// slow for it, wakes on a better CPU. What counts is the deadline that it had, which is seldom the
    /// one that it gets.
    fn wake_elsewhere(&mut self, task: TaskId) {
        if self.rules.repairs.push_without_itself {
            return;
        }
        let home = self.homes[task.index()];
        let deadline = self.tasks.get(task).job.deadline;
        let is_kept_out = |running: TaskId| {
            let preempts = deadline < self.tasks.get(running).job.deadline;
            !preempts || self.masks[running.index()].len() < 2
        };
        let running = self.queues[home.index()].running;
        let leaves = running.is_some_and(is_kept_out) || !self.is_fast_enough(home, task);
        if !leaves || self.masks[task.index()].len() < 2 {
            return;
        }
        if let Some(target) = self.target(home, task, deadline, false) {
            let first = self.queues[target.index()].first();
            if first.is_none_or(|first| deadline < first.deadline) {
                self.homes[task.index()] = target;
            }
        }
    }

    /// The CPU itself if it is among them, else the lowest.
    fn prefer(&self, cpus: impl Iterator<Item = CpuId>, first: CpuId) -> Option<CpuId> {
        cpus.min_by_key(|&cpu| (cpu != first, cpu))
    }

    /// Of free CPUs one that is fast enough for the task, else one of the fastest.
    fn best_free(
        &self,
        free: impl Iterator<Item = CpuId>,
        from: CpuId,
        task: TaskId,
    ) -> Option<CpuId> {
        if self.capacities.is_empty() {
            return self.prefer(free, from);
        }
        let capacity = |cpu: CpuId| self.capacities[cpu.index()];
        free.min_by_key(|&cpu| {
            let fits = self.is_fast_enough(cpu, task);
            let too_slow = if fits { 0 } else { UNITS - capacity(cpu) };
            (!fits, too_slow, cpu != from, cpu)
        })
    }

    /// A ready job without a queue goes to the one of its task, or to the lowest CPU that it may use.
    fn settle(&mut self, task: TaskId, has_slept: bool) {
        let allowed = self.masks[task.index()] & self.online;
        let home = self.homes[task.index()];
        let home = if allowed.contains(home) {
            home
        } else if let Some(lowest) = allowed.lowest() {
            lowest
        } else {
            self.stranded.push(task);
            return;
        };
        self.enqueue(task, home);
        let queue = &self.queues[home.index()];
        let is_first = queue.first().is_some_and(|first| first.task == task);
        // Whoever wakes and preempts is not pushed, even if nobody else here can move (`task_woken_dl`); whom a
        // timer makes ready is (`dl_task_timer`).
        if !has_slept {
            // Since Linux 6.7 even one that is alone there.
            self.push_even_alone(home);
        } else if !is_first || self.rules.repairs.push_without_itself {
            self.push(home);
        }
        self.decide(home);
    }
}

/// What the policies named `name` take.
fn check_domain(
    name: &'static str,
    task: &Task,
    clusters: &[CpuSet],
    semi_partitioned: bool,
) -> Result<(), PolicyError> {
    if task.deadline > task.period {
        return Err(PolicyError::LateDeadline {
            policy: name,
            task: task.name.clone(),
        });
    }
    let cpus = *task.affinity.cpus();
    let within = |cluster: &&CpuSet| (cpus - **cluster).is_empty();
    let Some(cluster) = clusters.iter().find(within) else {
        return Err(PolicyError::NotInCluster {
            policy: name,
            task: task.name.clone(),
            affinity: Box::new(task.affinity),
            clusters: clusters.to_vec(),
        });
    };
    if semi_partitioned && cpus.len() != 1 && cpus != *cluster {
        return Err(PolicyError::NotSemiPartitioned {
            policy: name,
            task: task.name.clone(),
            affinity: Box::new(task.affinity),
            cluster: Box::new(*cluster),
        });
    }
    Ok(())
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

    fn as_linux(&self) -> Option<AsLinux> {
        Some(self.rules)
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
        let woken = self.rules.repairs.no_bypass;
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
            // Otherwise nobody decides anything, and nothing is pulled.
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
        for task in core::mem::take(&mut self.stranded) {
            self.settle(task, true);
        }
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
