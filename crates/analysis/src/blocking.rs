//! How long jobs are blocked by less urgent ones that hold mutexes, on one CPU.
//!
//! `docs/theory/blocking.md` has the bounds and why tests may count blocking as computing.

use shiftwork_model::{
    CpuId, Phase, PolicyTraits, Protocol, ResourceId, Span, Task, TaskSet, Work,
};

use crate::policy::{is_edf, is_fp, is_partitioned};
use crate::suspensions::suspends;

/// For what part of its execution time a job holds a mutex, `[from, to)`.
struct Holding {
    resource: ResourceId,
    from: Span,
    to: Span,
}

/// For how long less urgent jobs that hold mutexes may keep a job of each task from its CPU, at most.
///
/// Of tasks without jitter. `None` where no bound is known: unless jobs are ranked by priorities or deadlines and each
/// CPU is scheduled alone, all tasks that use a mutex together are bound to one CPU, that mutex has a protocol, nested
/// mutexes have the same one and are unlocked in reverse, no job locks any when it has executed all, no task suspends
/// itself, no change is timed, and no tasks wait for each other for ever.
///
/// # Cost
/// The square of the number of tasks, times the number of mutexes that a job locks.
pub fn blocking(set: &TaskSet, policy: &PolicyTraits) -> Option<Vec<Span>> {
    let is_ranked = is_edf(policy) || is_fp(policy);
    if !is_ranked || !policy.is_greedy() || !is_each_cpu_alone(set, policy) {
        return None;
    }
    if suspends(set) || !set.actions.is_empty() || set.deadlock().is_some() {
        return None;
    }
    if set.tasks.iter().any(locks_at_the_end) {
        return None;
    }
    let shared = shared(set)?;
    let holdings = set.tasks.iter().map(|task| holdings(task, &shared));
    let holdings: Vec<Vec<Holding>> = holdings.collect::<Option<_>>()?;
    let levels = levels(set, policy);
    let ceilings = ceilings(set, &levels, &shared)?;
    let blocked = set.tasks.iter().zip(&levels).map(|(task, &level)| {
        let cpus = task.affinity.cpus().iter();
        let on = cpus.map(|cpu| {
            let others = set.tasks.iter().zip(&levels).zip(&holdings);
            let low =
                others.filter(|((other, of), _)| **of > level && other.only_cpu() == Some(cpu));
            let sections = low.map(|(_, holdings)| {
                let blocks = |it: &&Holding| ceilings[it.resource.index()] <= level;
                holdings.iter().filter(blocks).collect::<Vec<&Holding>>()
            });
            sum_or_longest(set, &sections.collect::<Vec<_>>())
        });
        on.max().unwrap_or_default()
    });
    Some(blocked.collect())
}

/// Whether a job locks a mutex when it has executed all. More urgent jobs may then delay its completion though nothing is
/// left to execute, which no test counts.
fn locks_at_the_end(task: &Task) -> bool {
    let Work::Phases(phases) = &task.work else {
        return false;
    };
    let after = phases.iter().rev();
    let mut after = after.take_while(|phase| !matches!(phase, Phase::Run(_)));
    after.any(|phase| matches!(phase, Phase::Lock(_)))
}

/// One section of each task blocks a job, or only one of all tasks if every mutex has a ceiling.
fn sum_or_longest(set: &TaskSet, tasks: &[Vec<&Holding>]) -> Span {
    let has_ceiling =
        |it: &&Holding| set.resources[it.resource.index()].protocol == Protocol::Ceiling;
    let sections = tasks.iter().map(|holdings| longest(holdings));
    match tasks.iter().flatten().all(has_ceiling) {
        true => sections.max().unwrap_or_default(),
        false => sections.fold(Span::ZERO, |sum, span| (sum + span).min(Span::MAX)),
    }
}

/// By resource, whether several tasks use it; `None` if any of those is shared between CPUs, or has no protocol. No job
/// waits for one that a single task uses.
fn shared(set: &TaskSet) -> Option<Vec<bool>> {
    let resources = set.resources.iter().enumerate();
    let is_shared = resources.map(|(index, resource)| {
        let id = ResourceId::from_index(index);
        let users = set.tasks.iter().filter(|task| task.locks_one(id));
        let cpus: Vec<Option<CpuId>> = users.map(Task::only_cpu).collect();
        let is_local = cpus.iter().all(|cpu| cpu.is_some() && *cpu == cpus[0]);
        // On one CPU a job can be lent no other.
        let is_bounded = resource.protocol.inherits() || resource.protocol == Protocol::Ceiling;
        match cpus.len() > 1 {
            true => (is_local && is_bounded).then_some(true),
            false => Some(false),
        }
    });
    is_shared.collect()
}

/// Whether jobs on different CPUs never compete for one.
fn is_each_cpu_alone(set: &TaskSet, policy: &PolicyTraits) -> bool {
    let is_bound = |task: &Task| task.only_cpu().is_some();
    is_partitioned(policy) || set.platform.cpus == 1 || set.tasks.iter().all(is_bound)
}

/// By what a job of each task may delay others: its priority, or its relative deadline; the least first.
fn levels(set: &TaskSet, policy: &PolicyTraits) -> Vec<u64> {
    match is_fp(policy) {
        true => {
            let priorities = set.priorities();
            priorities.iter().map(|own| own.number().into()).collect()
        }
        false => set.tasks.iter().map(|task| task.deadline.as_ns()).collect(),
    }
}

/// The least level of the jobs that may wait for each mutex, be it for one that its holder waits for; `None` if mutexes
/// of different protocols are nested.
fn ceilings(set: &TaskSet, levels: &[u64], shared: &[bool]) -> Option<Vec<u64>> {
    let resources = (0..set.resources.len()).map(ResourceId::from_index);
    let ceiling = |id: ResourceId| {
        let users = set.iter().filter(|(_, task)| task.locks_one(id));
        let least = users.map(|(task, _)| levels[task.index()]).min();
        least.unwrap_or(u64::MAX)
    };
    let mut ceilings: Vec<u64> = resources.map(ceiling).collect();
    let mut nested = set.nested_locks();
    nested.retain(|it| shared[it.held.index()] && shared[it.locked.index()]);
    let protocol = |id: ResourceId| set.resources[id.index()].protocol;
    if nested
        .iter()
        .any(|it| protocol(it.held) != protocol(it.locked))
    {
        return None;
    }
    // A job that waits for the mutex that is held waits for its holder, which may wait for the one that it locks.
    for _ in &set.resources {
        for nested in &nested {
            let held = ceilings[nested.held.index()];
            let locked = &mut ceilings[nested.locked.index()];
            *locked = held.min(*locked);
        }
    }
    Some(ceilings)
}

/// The longest time without a gap in which a job has any of these, which are in the order of the locks.
fn longest(holdings: &[&Holding]) -> Span {
    let mut best = Span::ZERO;
    let mut open: Option<(Span, Span)> = None;
    for holding in holdings {
        let (from, to) = match open {
            Some((from, to)) if holding.from <= to => (from, to.max(holding.to)),
            _ => (holding.from, holding.to),
        };
        open = Some((from, to));
        best = best.max(to.saturating_sub(from));
    }
    best
}

/// For what a job of the task holds the shared mutexes; `None` if it does not unlock them in reverse.
fn holdings(task: &Task, shared: &[bool]) -> Option<Vec<Holding>> {
    let Work::Phases(phases) = &task.work else {
        return Some(Vec::new());
    };
    let mut now = Span::ZERO;
    let mut all: Vec<Holding> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for phase in phases {
        match *phase {
            Phase::Run(run) => now = (now + run).min(Span::MAX),
            Phase::Lock(resource) if shared[resource.index()] => {
                open.push(all.len());
                let (from, to) = (now, now);
                all.push(Holding { resource, from, to });
            }
            Phase::Unlock(resource) if shared[resource.index()] => {
                let last = &mut all[open.pop()?];
                if last.resource != resource {
                    return None;
                }
                last.to = now;
            }
            Phase::Sleep(_) | Phase::Lock(_) | Phase::Unlock(_) => {}
        }
    }
    open.is_empty().then_some(all)
}
