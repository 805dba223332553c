//! A measured run judged by its policy: the measured events are applied to the policy, and what it decides
//! on them is what should have run; see [`shiftwork_trace::replay`].

use serde_json::{Value, json};
use shiftwork_machine::may_be_throttled;
use shiftwork_model::{
    Affinity, Budgets, CpuId, Instant, Invariant, Job, Phase, PolicyTraits, Record, RecordKind,
    Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry::Entry;
use shiftwork_policy::registry::traits::STRONG;
use shiftwork_policy::{Event, Policy, PolicyError, Quanta, Switches};
use shiftwork_trace::replay::{Basis, Judge, Reference, Verdict, replay};

use crate::catalogue;

/// What decided in a run.
#[derive(Clone, Copy, Debug)]
pub enum Decider<'a> {
    /// The policy itself.
    Policy,
    /// The core in the kernel, to which all policies that it takes are strong scheduling where each task is
    /// bound to these CPUs: nothing is packed again while it runs.
    Core(&'a [Affinity]),
}

/// A run that is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// What was run.
    pub set: &'a TaskSet,
    /// The policy.
    pub entry: &'static Entry,
    /// What decided.
    pub decider: Decider<'a>,
    /// What was measured.
    pub records: &'a [Record],
    /// How long the machine may take to carry out a decision; not from these records.
    pub window: Span,
    /// The end of the run.
    pub horizon: Instant,
}

/// How a run was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What the replay found.
    pub verdict: Verdict,
    /// Whether the policy's own decisions on these events are also the sets that ran, where the rule does
    /// not ask for that; `None`: it does, or the policy decides in quanta.
    pub same_sets: Option<bool>,
    /// What else would have passed: the first policy of each other kind, and the policy with its
    /// ties broken the other way (the one that became ready later first). This run cannot
    /// distinguish them.
    pub alike: Vec<String>,
    /// The others, which would not have passed.
    pub distinguished: Vec<String>,
}

impl Judgement {
    /// The value of the key `replay` of `run --json`.
    pub fn to_json(&self) -> Value {
        let mut value = self.verdict.to_json();
        value["same_sets"] = json!(self.same_sets);
        value["alike"] = json!(self.alike);
        value["distinguished"] = json!(self.distinguished);
        value
    }
}

/// Judges a run by its policy.
///
/// # Errors
/// If the policy refuses the task set.
pub fn judge(run: &Measured<'_>) -> Result<Judgement, PolicyError> {
    let (entry, set) = reference(run)?;
    let set = set.as_ref().unwrap_or(run.set);
    let policy = entry.build(set)?;
    // Linux's servers hold any task back, whatever it does.
    let is_linux = entry.traits.budgets != Budgets::OfJobs;
    let prompt = set.iter().map(|(id, _)| !is_linux && is_prompt(set, id));
    let run = &Prompt {
        run,
        prompt: prompt.collect(),
    };
    let verdict = match rule(entry, policy.quanta()) {
        Some(rule) => judged(run, set, entry, policy.packing(), rule),
        None => by_decisions(run, set, entry, policy, Ties::Own),
    };
    let asks_for_sets = verdict.rule == shiftwork_trace::replay::Rule::SameSet;
    let is_reported = !asks_for_sets
        && !matches!(entry.traits.invariant, Invariant::Quanta)
        && !entry.traits.order.is_by_laxity();
    let same_sets = match is_reported {
        true => Some(by_decisions(run, set, entry, entry.build(set)?, Ties::Own).holds()),
        false => None,
    };
    let (alike, distinguished) = neighbours(run, entry, set)?;
    Ok(Judgement {
        verdict,
        same_sets,
        alike,
        distinguished,
    })
}

/// A run, and for each task whether its jobs are ready as soon as they can be.
struct Prompt<'a> {
    run: &'a Measured<'a>,
    prompt: Vec<bool>,
}

/// The policy that decided, and the task set as it knew it, if that is another.
fn reference(run: &Measured<'_>) -> Result<(&'static Entry, Option<TaskSet>), PolicyError> {
    let Decider::Core(bound) = run.decider else {
        return Ok((run.entry, None));
    };
    let mut set = run.set.clone();
    for (task, cpus) in set.tasks.iter_mut().zip(bound) {
        task.affinity = *cpus;
    }
    let strong = PolicyTraits {
        order: run.entry.traits.order,
        ..STRONG
    };
    let mut policies = catalogue::policies();
    let entry = policies.find(|entry| entry.traits == strong);
    let entry = entry.expect("there is a reference for each order that the core knows");
    Ok((entry, Some(set)))
}

/// What must hold of a policy with decisions that depend on the past; `None`: they depend on the
/// ready jobs alone.
fn rule(entry: &Entry, quanta: Option<Quanta>) -> Option<Judge<'static>> {
    match (entry.traits.invariant, quanta) {
        // Only the machine that ran the jobs knows their laxities.
        _ if entry.traits.order.is_by_laxity() => Some(Judge::WorkConserving),
        (_, Some(quanta)) => Some(Judge::AtBoundaries(quanta.length, quanta.phases)),
        (Invariant::Strong | Invariant::Packed | Invariant::Quanta, None) => None,
        (Invariant::Weak, None) => Some(Judge::WeakInvariant),
        (Invariant::NonPreemptive, None) => Some(Judge::NonPreemptive),
        (Invariant::PushPull, None) => Some(Judge::WorkConserving),
    }
}

fn judged(
    run: &Prompt<'_>,
    set: &TaskSet,
    entry: &Entry,
    packing: Option<Vec<Affinity>>,
    judge: Judge<'_>,
) -> Verdict {
    let Prompt { run, prompt } = run;
    let basis = Basis {
        order: entry.traits.order,
        packing: packing.as_deref(),
        prompt,
        window: run.window,
        horizon: run.horizon,
    };
    replay(set, &basis, judge, run.records)
}

/// Compares the sets that ran with those that the policy selects.
fn by_decisions(
    run: &Prompt<'_>,
    set: &TaskSet,
    entry: &Entry,
    policy: Box<dyn Policy>,
    ties: Ties,
) -> Verdict {
    let packing = policy.packing();
    let mut decisions = Decisions::new(set, policy, ties);
    judged(run, set, entry, packing, Judge::SameSet(&mut decisions))
}

/// Whether the task's jobs are ready as soon as they are released and the job before is finished.
fn is_prompt(set: &TaskSet, id: TaskId) -> bool {
    let task = &set.tasks[id.index()];
    let sleeps_first = match &task.work {
        Work::Phases(phases) => matches!(phases.first(), Some(Phase::Sleep(_))),
        _ => false,
    };
    task.command.is_empty() && !sleeps_first && !may_be_throttled(set, id)
}

/// Which other policies would have passed, and which not.
fn neighbours(
    of: &Prompt<'_>,
    entry: &'static Entry,
    set: &TaskSet,
) -> Result<(Vec<String>, Vec<String>), PolicyError> {
    let run = of.run;
    let (mut alike, mut distinguished) = (Vec::new(), Vec::new());
    let mut note = |name: String, verdict: &Verdict| match verdict.holds() {
        true => alike.push(name),
        false => distinguished.push(name),
    };
    let mut seen = vec![(run.entry.traits.order, run.entry.traits.invariant)];
    for other in catalogue::policies() {
        let kind = (other.traits.order, other.traits.invariant);
        if seen.contains(&kind) {
            continue;
        }
        let Ok(policy) = other.build(run.set) else {
            continue;
        };
        let own = run.entry.traits.order;
        if policy.quanta().is_some() || !other.traits.order.ranks_records_of(own) {
            continue;
        }
        seen.push(kind);
        let verdict = by_decisions(of, run.set, other, policy, Ties::Own);
        note(other.name.to_owned(), &verdict);
    }
    let decides_at_events = !matches!(entry.traits.invariant, Invariant::Quanta)
        && !entry.traits.order.is_by_laxity()
        && entry.build(set)?.quanta().is_none();
    if decides_at_events {
        let verdict = by_decisions(of, set, entry, entry.build(set)?, Ties::Reversed);
        note(format!("{} with other ties", run.entry.name), &verdict);
    }
    Ok((alike, distinguished))
}

/// How ties between jobs of equal rank are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ties {
    /// As the policy does: the one that became ready first.
    Own,
    /// The one that became ready last.
    Reversed,
}

/// A policy driven by measured events.
struct Decisions {
    policy: Box<dyn Policy>,
    ties: Ties,
    tasks: Vec<Task>,
    ready: Vec<bool>,
    /// For how many reasons each CPU is away: a CPU may be offline and taken.
    away: Vec<u8>,
    switches: Switches,
    /// For each CPU the task that is selected there, and how often it had become ready then.
    selected: Vec<Option<(TaskId, u64)>>,
    /// How often each task's job became ready.
    wakes: Vec<u64>,
}

impl Decisions {
    fn new(set: &TaskSet, policy: Box<dyn Policy>, ties: Ties) -> Self {
        let cpus = set.platform.cpus;
        let mut it = Self {
            policy,
            ties,
            tasks: set.tasks.clone(),
            ready: vec![false; set.tasks.len()],
            away: vec![0; cpus],
            switches: Switches::with_capacity(4 * cpus),
            selected: vec![None; cpus],
            wakes: vec![0; set.tasks.len()],
        };
        for (task, priority) in it.tasks.iter_mut().zip(set.priorities()) {
            task.priority = Some(priority);
        }
        it
    }

    /// Applies the event, unless the policy refuses it.
    fn tell(&mut self, event: Event<'_>) {
        if self.policy.accepts(&event).is_ok() {
            self.switches.clear();
            self.policy.on_event(event, &mut self.switches);
        }
    }

    fn job(&self, at: Instant, kind: &RecordKind) -> Option<Job> {
        let RecordKind::Ready {
            job,
            deadline,
            priority,
        } = *kind
        else {
            return None;
        };
        let ready = match self.ties {
            Ties::Own => at,
            Ties::Reversed => Instant::from_ns(u64::MAX - 1 - at.as_ns()),
        };
        Some(Job {
            task: job.task,
            ready,
            deadline,
            priority,
        })
    }

    /// Applies the record as an event. Returns whether the next record belongs to the same event.
    fn take(&mut self, at: Instant, kind: &RecordKind, next: Option<&RecordKind>) -> bool {
        match *kind {
            RecordKind::Ready { job, deadline, .. } if self.knows(job.task) => {
                self.wakes[job.task.index()] += 1;
                match std::mem::replace(&mut self.ready[job.task.index()], true) {
                    true => self.tell(Event::SetDeadline(job.task, deadline)),
                    false => self
                        .job(at, kind)
                        .into_iter()
                        .for_each(|job| self.tell(Event::Wake(job))),
                }
            }
            RecordKind::Completed { job } if self.knows(job.task) => {
                let successor = next.and_then(|next| self.job(at, next));
                let successor = successor.filter(|next| next.task == job.task);
                if let Some(successor) = successor.filter(|_| self.ready[job.task.index()]) {
                    self.switches.clear();
                    if self.policy.succeed(successor, &mut self.switches) {
                        self.wakes[job.task.index()] += 1;
                        return true;
                    }
                }
                self.stop(job.task, Event::Complete(job.task));
            }
            RecordKind::NotReady { job, .. } if self.knows(job.task) => {
                self.stop(job.task, Event::Block(job.task));
            }
            RecordKind::BudgetSpent { job } if self.knows(job.task) => {
                if self.tasks[job.task.index()].on_overrun == shiftwork_model::OnOverrun::Throttle {
                    self.stop(job.task, Event::BudgetSpent(job.task));
                }
            }
            RecordKind::Replenished { task, deadline, .. } if self.knows(task) => {
                if self.ready[task.index()] {
                    self.tell(Event::SetDeadline(task, deadline));
                }
            }
            _ => self.take_change(kind),
        }
        false
    }

    fn stop(&mut self, task: TaskId, event: Event<'_>) {
        if std::mem::take(&mut self.ready[task.index()]) {
            self.tell(event);
        }
    }

    fn knows(&self, task: TaskId) -> bool {
        task.index() < self.tasks.len()
    }

    fn take_change(&mut self, kind: &RecordKind) {
        match *kind {
            RecordKind::Entered { task } if self.knows(task) => {
                let entering = self.tasks[task.index()].clone();
                self.tell(Event::Enter(task, &entering));
            }
            RecordKind::Left { task } if self.knows(task) => {
                self.ready[task.index()] = false;
                self.tell(Event::Leave(task));
            }
            RecordKind::AffinitySet { task, ref affinity } if self.knows(task) => {
                self.tasks[task.index()].affinity = **affinity;
                self.tell(Event::SetAffinity(task, affinity));
            }
            RecordKind::RankChanged {
                task,
                priority,
                deadline,
            } if self.knows(task) => {
                self.tell(Event::SetPriority(task, priority));
                self.tell(Event::SetDeadline(task, deadline));
            }
            RecordKind::PrioritySet { task, priority } if self.knows(task) => {
                self.tasks[task.index()].priority = Some(priority);
                self.tell(Event::SetPriority(task, priority));
            }
            RecordKind::AttributesSet {
                task,
                cost,
                period,
                deadline,
            } if self.knows(task) => {
                let changed = &mut self.tasks[task.index()];
                (changed.cost, changed.period, changed.deadline) = (cost, period, deadline);
                let changed = changed.clone();
                self.tell(Event::SetAttributes(task, &changed));
            }
            RecordKind::CpuOffline { cpu }
            | RecordKind::CpuTaken { cpu }
            | RecordKind::BackgroundStarted { cpu } => self.count_away(cpu, true),
            RecordKind::CpuOnline { cpu }
            | RecordKind::CpuReturned { cpu }
            | RecordKind::BackgroundEnded { cpu } => self.count_away(cpu, false),
            _ => {}
        }
    }

    fn count_away(&mut self, cpu: CpuId, goes: bool) {
        let Some(reasons) = self.away.get_mut(cpu.index()) else {
            return;
        };
        let before = *reasons;
        *reasons = match goes {
            true => before.saturating_add(1),
            false => before.saturating_sub(1),
        };
        match (before == 0, *reasons == 0) {
            (true, false) => self.tell(Event::CpuOffline(cpu)),
            (false, true) => self.tell(Event::CpuOnline(cpu)),
            _ => {}
        }
    }
}

impl Reference for Decisions {
    fn apply(&mut self, at: Instant, events: &[RecordKind]) -> bool {
        let mut events = events.iter().peekable();
        while let Some(kind) = events.next() {
            if self.take(at, kind, events.peek().copied()) {
                events.next();
            }
        }
        self.switches.clear();
        self.policy.end_instant(&mut self.switches);
        let mut changed = false;
        for (index, before) in self.selected.iter_mut().enumerate() {
            let after = self.policy.assigned(CpuId::from_index(index));
            let after = after.map(|task| (task, self.wakes[task.index()]));
            changed |= std::mem::replace(before, after) != after;
        }
        changed
    }

    fn selected(&self, tasks: &mut Vec<TaskId>) {
        tasks.extend(self.selected.iter().flatten().map(|(task, _)| *task));
    }
}
