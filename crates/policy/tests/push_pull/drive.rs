//! The policy and the definition, side by side.

use shiftwork_model::{Affinity, CpuId, CpuSet, Instant, Job, Priority, Repairs, Share};
use shiftwork_model::{Span, Task, TaskId, TaskSet};
use shiftwork_policy::{Event, Policy, PushPull, Switches, Ties};

use crate::oracle::{Known, Oracle, Rules};

/// Something that happens to a policy; sets of CPUs are bits.
#[derive(Clone, Debug)]
pub enum Step {
    /// The task, when, and its deadline.
    Wake(usize, u64, u64),
    Block(usize),
    Complete(usize),
    BudgetSpent(usize),
    /// The task, when, and the deadline of its next job.
    Succeed(usize, u64, u64),
    SetDeadline(usize, u64),
    SetAffinity(usize, u64),
    Enter(usize, Spec),
    Leave(usize),
    SetClusters(Vec<u64>),
    CpuOffline(usize),
    CpuOnline(usize),
    EndInstant,
}

/// A task: where it may run, and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    pub cpus: u64,
    pub start_cpu: Option<usize>,
    pub cost: u64,
    pub period: u64,
    pub deadline: u64,
}

impl Spec {
    /// A third of a CPU, due at the end of the period.
    pub const fn on(cpus: u64) -> Self {
        Self {
            cpus,
            start_cpu: None,
            cost: 4,
            period: 12,
            deadline: 12,
        }
    }

    fn task(&self) -> Task {
        let affinity = Affinity::new(CpuSet::from_bits(self.cpus)).unwrap();
        let ns = Span::from_ns;
        let mut task = Task::periodic("t", ns(self.cost), ns(self.period), affinity);
        task.deadline = ns(self.deadline);
        task.start_cpu = self.start_cpu.map(CpuId::from_index);
        task
    }

    fn known(&self) -> Known {
        let lowest = self.cpus.trailing_zeros() as usize;
        let start = self.start_cpu.filter(|cpu| self.cpus >> cpu & 1 == 1);
        Known {
            cpus: self.cpus,
            queue: start.unwrap_or(lowest),
            deadline: 0,
            is_ready: false,
            gap: self.period - self.deadline,
            density: (self.cost << 20).div_ceil(self.deadline),
            was_throttled: false,
        }
    }
}

/// A platform and its tasks.
#[derive(Clone, Debug)]
pub struct System {
    pub cpus: usize,
    /// Disjoint.
    pub clusters: Vec<u64>,
    /// In percent; empty if all CPUs are alike.
    pub capacities: Vec<u64>,
    pub tasks: Vec<Spec>,
    pub repairs: Repairs,
    pub ties: Ties,
}

impl System {
    pub fn policy(&self) -> PushPull {
        let tasks = self.tasks.iter().map(Spec::task).collect();
        let mut set = TaskSet::new("test", self.cpus, tasks);
        let clusters = self.clusters.iter();
        set.platform.clusters = clusters.map(|&cpus| CpuSet::from_bits(cpus)).collect();
        let capacities = self.capacities.iter();
        let billionths = |percent: u64| u32::try_from(percent).unwrap() * (Share::WHOLE / 100);
        let share = |&percent: &u64| Share::from_billionths(billionths(percent)).unwrap();
        set.platform.capacities = capacities.map(share).collect();
        PushPull::new("dl-test", &set, self.repairs, self.ties).unwrap()
    }

    pub fn oracle(&self) -> Oracle {
        let rules = Rules {
            no_bypass: self.repairs.no_bypass,
            push_without_itself: self.repairs.push_without_itself,
            running_goes_on: self.ties == Ties::Running,
        };
        let capacities = self.capacities.iter();
        let capacities = capacities.map(|percent| (percent << 20) / 100).collect();
        let mut oracle = Oracle::new(rules, self.cpus, self.clusters.clone(), capacities);
        for (task, spec) in self.tasks.iter().enumerate() {
            oracle.enter(task, spec.known());
        }
        oracle
    }
}

/// Applies a step to the policy. Returns whether a job succeeded another.
pub fn apply(policy: &mut PushPull, step: &Step, out: &mut Switches) -> bool {
    let task = TaskId::from_index;
    let job = |index: usize, now: u64, deadline: u64| Job {
        task: task(index),
        ready: Instant::from_ns(now),
        deadline: Instant::from_ns(deadline),
        priority: Priority::LEAST_URGENT,
    };
    let event = match step {
        &Step::Wake(index, now, deadline) => Event::Wake(job(index, now, deadline)),
        &Step::Block(index) => Event::Block(task(index)),
        &Step::Complete(index) => Event::Complete(task(index)),
        &Step::BudgetSpent(index) => Event::BudgetSpent(task(index)),
        &Step::Succeed(index, now, deadline) => {
            return policy.succeed(job(index, now, deadline), out);
        }
        &Step::SetDeadline(index, deadline) => {
            Event::SetDeadline(task(index), Instant::from_ns(deadline))
        }
        &Step::SetAffinity(index, cpus) => {
            let affinity = Affinity::new(CpuSet::from_bits(cpus)).unwrap();
            policy.on_event(Event::SetAffinity(task(index), &affinity), out);
            return false;
        }
        Step::Enter(index, spec) => {
            policy.on_event(Event::Enter(task(*index), &spec.task()), out);
            return false;
        }
        &Step::Leave(index) => Event::Leave(task(index)),
        Step::SetClusters(clusters) => {
            let clusters: Vec<_> = clusters
                .iter()
                .map(|&cpus| CpuSet::from_bits(cpus))
                .collect();
            policy.on_event(Event::SetClusters(&clusters), out);
            return false;
        }
        &Step::CpuOffline(cpu) => Event::CpuOffline(CpuId::from_index(cpu)),
        &Step::CpuOnline(cpu) => Event::CpuOnline(CpuId::from_index(cpu)),
        Step::EndInstant => {
            policy.end_instant(out);
            return false;
        }
    };
    policy.on_event(event, out);
    false
}

/// Applies a step to the definition.
pub fn apply_to_oracle(oracle: &mut Oracle, step: &Step) -> bool {
    match step {
        &Step::Wake(task, now, deadline) => oracle.wake(task, now, deadline),
        &Step::Block(task) | &Step::Complete(task) | &Step::Leave(task) => oracle.stop(task, false),
        &Step::BudgetSpent(task) => oracle.stop(task, true),
        &Step::Succeed(task, now, deadline) => return oracle.succeed(task, now, deadline),
        &Step::SetDeadline(task, deadline) => oracle.set_deadline(task, deadline),
        &Step::SetAffinity(task, cpus) => oracle.set_affinity(task, cpus),
        Step::Enter(task, spec) => oracle.enter(*task, spec.known()),
        Step::SetClusters(clusters) => oracle.domains.clone_from(clusters),
        &Step::CpuOffline(cpu) => oracle.cpu_offline(cpu),
        &Step::CpuOnline(cpu) => oracle.cpu_online(cpu),
        Step::EndInstant => oracle.decide_all(),
    }
    false
}

/// The tasks that the switches let run, by CPU.
pub type Running = Vec<Option<TaskId>>;

/// Carries out the switches. Returns what is wrong with them.
pub fn carry_out(out: &Switches, running: &mut Running) -> Result<(), String> {
    for (at, switch) in out.iter().enumerate() {
        if out[..at].iter().any(|other| other.cpu == switch.cpu) {
            return Err(format!("two switches of one CPU: {out:?}"));
        }
        let job = &mut running[switch.cpu.index()];
        if *job != switch.from {
            return Err(format!("{switch:?} where {job:?} was to run"));
        }
        *job = switch.to;
    }
    Ok(())
}

/// Returns where the policy differs from the definition, or its switches from its assignment.
pub fn compare(policy: &PushPull, oracle: &Oracle, running: &Running) -> Result<(), String> {
    for (cpu, &running) in running.iter().enumerate() {
        let assigned = policy.assigned(CpuId::from_index(cpu));
        let expected = oracle.running(cpu).map(TaskId::from_index);
        if assigned != expected {
            return Err(format!(
                "CPU {cpu} runs {assigned:?} instead of {expected:?}"
            ));
        }
        // A CPU that has yet to decide appends its switch when it does.
        if running != assigned && !oracle.is_undecided(cpu) {
            return Err(format!("CPU {cpu} runs {running:?} and has {assigned:?}"));
        }
    }
    for (task, known) in oracle.tasks.iter().enumerate() {
        let queue = policy.queue_of(TaskId::from_index(task));
        let expected = Some(CpuId::from_index(known.queue));
        if queue != expected {
            return Err(format!(
                "task {task} is in {queue:?} instead of {expected:?}"
            ));
        }
    }
    let unknown = TaskId::from_index(oracle.tasks.len());
    if policy.queue_of(unknown).is_some() {
        return Err("an unknown task has a queue".into());
    }
    Ok(())
}

/// A policy, its definition, and all that was said so far.
#[derive(Debug)]
pub struct Pair {
    pub policy: PushPull,
    pub oracle: Oracle,
    running: Running,
    out: Switches,
}

impl Pair {
    pub fn new(system: &System) -> Self {
        Self {
            policy: system.policy(),
            oracle: system.oracle(),
            running: vec![None; system.cpus],
            out: Vec::new(),
        }
    }

    /// One step of both.
    ///
    /// # Errors
    /// What differs.
    pub fn step(&mut self, step: &Step) -> Result<(), String> {
        self.out.clear();
        let succeeded = apply(&mut self.policy, step, &mut self.out);
        let expected = apply_to_oracle(&mut self.oracle, step);
        if succeeded != expected {
            return Err(format!("succeeded: {succeeded}"));
        }
        carry_out(&self.out, &mut self.running)?;
        compare(&self.policy, &self.oracle, &self.running)
    }
}
