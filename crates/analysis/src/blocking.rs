//! How long jobs are blocked by less urgent ones that hold mutexes, and how long they spin, where each CPU is scheduled
//! alone, or jobs wait in the queues of OMLP.
//!
//! `docs/theory/blocking.md` has the bounds and why tests may count blocking as computing.

mod boosted;
mod by_ceilings;
mod queued;
mod responses;
mod sections;

use shiftwork_model::{CpuId, Phase, PolicyTraits, Protocol, ResourceId, Span, Task, TaskSet};

use crate::policy::{is_edf, is_fp, is_partitioned};
use crate::suspensions::suspends;

/// What mutexes add to tasks, by task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What counts as computing, beside the cost.
    pub longer: Vec<Span>,
    /// For how much of the cost and that a job may be suspended instead, at any times. Empty where that is not known.
    pub suspended: Vec<Span>,
}

impl Blocked {
    /// All that is added may be suspension, or that is not known.
    fn new(longer: Vec<Span>, is_suspension: bool) -> Self {
        let suspended = if is_suspension {
            longer.clone()
        } else {
            Vec::new()
        };
        Self { longer, suspended }
    }
}

/// For what part of its execution time a job holds a mutex, `[from, to)`.
struct Holding {
    resource: ResourceId,
    from: Span,
    to: Span,
}

/// For how long a job of each task may spin or wait, and less urgent jobs that spin or hold mutexes may keep it from its CPU, at
/// most; under fixed priorities, and under EDF with FMLP+ if no deadline is beyond its period, also for how much of that and of its
/// cost it counts as suspended where it interferes with others.
///
/// Of tasks without jitter. `None` where no bound is known: unless jobs are ranked by priorities or deadlines and each
/// CPU is scheduled alone, all tasks that use a mutex together are bound to one CPU, that mutex has a protocol, nested
/// mutexes have the same one and are unlocked in reverse, no job locks any when it has executed all, no task suspends
/// itself, no change is timed, and no tasks wait for each other for ever. Tasks that spin for a mutex may be bound to
/// different CPUs, and it is not nested; so may those that share mutexes with FMLP+, MPCP or DPCP, if all that matter have that protocol,
/// but for ceilings beside the last two. Where CPUs are shared, unless the policy has the strong invariant, all mutexes that matter
/// have OMLP and are not nested, and the tasks that use one have the same affinity.
///
/// # Cost
/// The square of the number of tasks, times the number of mutexes that a job locks; times that of CPUs if jobs spin, or of tasks
/// with FMLP+. With MPCP and DPCP, and with FMLP+ under fixed priorities, responses are found together, in a bounded number of steps.
///
/// # Source
/// Of spinning: P. Gai, G. Lipari, M. Di Natale, "Minimizing memory utilization of real-time task sets in single and
/// multi-processor systems-on-a-chip", RTSS 2001. Of FMLP+: B. Brandenburg, "Scheduling and locking in multiprocessor real-time
/// operating systems", PhD thesis, UNC Chapel Hill 2011. Of MPCP: K. Lakshmanan, D. de Niz, R. Rajkumar, "Coordinated task
/// scheduling, allocation and synchronization on multiprocessors", RTSS 2009, where waiting counts as computing. Of OMLP: B. Brandenburg,
/// J. Anderson, "Optimality results for multiprocessor real-time locking", RTSS 2010, with affinities here.
pub fn blocking(set: &TaskSet, policy: &PolicyTraits) -> Option<Blocked> {
    let is_ranked = is_edf(policy) || is_fp(policy);
    if !is_ranked || !policy.is_greedy() {
        return None;
    }
    if suspends(set) || !set.actions.is_empty() || set.deadlock().is_some() {
        return None;
    }
    if set.tasks.iter().any(locks_at_the_end) {
        return None;
    }
    if !is_each_cpu_alone(set, policy) {
        let longer = queued::blocking(set, policy)?;
        return Some(Blocked::new(longer, false));
    }
    if locks_one_of(set, |protocol| protocol == Protocol::Fmlp) {
        return boosted::blocking(set, &levels(set, policy), is_edf(policy));
    }
    if locks_one_of(set, Protocol::needs_priorities) {
        let levels = levels(set, policy);
        return is_fp(policy)
            .then(|| by_ceilings::blocking(set, &levels))
            .flatten();
    }
    let shared = shared(set)?;
    let sections = Sections::new(set, &shared)?;
    let spin = |task: &Task, resource| sections.spin(task, resource);
    let holdings = set.tasks.iter().map(|task| holdings(task, &shared, spin));
    let holdings: Vec<Vec<Holding>> = holdings.collect::<Option<_>>()?;
    let levels = levels(set, policy);
    let ceilings = ceilings(set, &levels, &shared)?;
    let low = set.tasks.iter().zip(&levels).map(|(task, &level)| {
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
    let low: Vec<Span> = low.collect();
    let spins = |task: &Task| sum(locked(task).map(|resource| spin(task, resource)));
    let longer = set.tasks.iter().zip(&low);
    let longer = longer.map(|(task, &low)| sum([spins(task), low])).collect();
    Some(Blocked {
        longer,
        // Jobs that spin execute.
        suspended: if is_fp(policy) { low } else { Vec::new() },
    })
}

/// By resource and CPU, the longest section of a task that is bound to the CPU, of mutexes for which jobs spin.
struct Sections(Vec<Vec<Span>>);

impl Sections {
    /// `None` if such mutexes are nested.
    fn new(set: &TaskSet, shared: &[bool]) -> Option<Self> {
        let spins = |id: ResourceId| set.resources[id.index()].protocol == Protocol::Spin;
        let mut nested = set.nested_locks().into_iter();
        if nested.any(|it| spins(it.held) || spins(it.locked)) {
            return None;
        }
        let mut sections = vec![vec![Span::ZERO; set.platform.cpus]; set.resources.len()];
        for task in &set.tasks {
            for holding in holdings(task, shared, |_, _| Span::ZERO)? {
                if let Some(cpu) = task.only_cpu().filter(|_| spins(holding.resource)) {
                    let longest = &mut sections[holding.resource.index()][cpu.index()];
                    *longest = holding.to.saturating_sub(holding.from).max(*longest);
                }
            }
        }
        Some(Self(sections))
    }

    /// How long a job of the task spins at most when it requests the mutex: for a section on each other CPU.
    fn spin(&self, task: &Task, resource: ResourceId) -> Span {
        let own = task.only_cpu().map(CpuId::index);
        let cpus = self.0[resource.index()].iter().enumerate();
        let others = cpus.filter(|(cpu, _)| Some(*cpu) != own);
        sum(others.map(|(_, &span)| span))
    }
}

/// The mutexes that a job of the task locks, once for each time.
fn locked(task: &Task) -> impl Iterator<Item = ResourceId> {
    task.phases().iter().filter_map(|phase| match phase {
        Phase::Lock(resource) => Some(*resource),
        _ => None,
    })
}

/// Whether a task locks a mutex with such a protocol.
fn locks_one_of(set: &TaskSet, is_one: fn(Protocol) -> bool) -> bool {
    let mut tasks = set.tasks.iter();
    tasks.any(|task| locked(task).any(|id| is_one(set.resources[id.index()].protocol)))
}

/// Whether all tasks that use the mutex are bound to the same CPU.
fn is_local(set: &TaskSet, id: ResourceId) -> bool {
    let mut users = set.tasks.iter().filter(|task| task.locks_one(id));
    let mut cpus = users.by_ref().map(Task::only_cpu);
    let first = cpus.next().flatten();
    first.is_some() && cpus.all(|cpu| cpu == first)
}

/// Whether a job locks a mutex when it has executed all. More urgent jobs may then delay its completion though nothing is
/// left to execute, which no test counts.
fn locks_at_the_end(task: &Task) -> bool {
    let after = task.phases().iter().rev();
    let runs = |phase: &&Phase| matches!(phase, Phase::Run(span) if !span.is_zero());
    let mut after = after.take_while(|phase| !runs(phase));
    after.any(|phase| matches!(phase, Phase::Lock(_)))
}

/// One section of each task blocks a job, or only one of all tasks if every mutex has a ceiling, or forbids preemption.
fn sum_or_longest(set: &TaskSet, tasks: &[Vec<&Holding>]) -> Span {
    let has_ceiling = |it: &&Holding| !set.resources[it.resource.index()].protocol.inherits();
    let sections = tasks.iter().map(|holdings| longest(holdings));
    match tasks.iter().flatten().all(has_ceiling) {
        true => sections.max().unwrap_or_default(),
        false => sum(sections),
    }
}

/// The sum of spans, at most [`Span::MAX`].
fn sum(spans: impl IntoIterator<Item = Span>) -> Span {
    let spans = spans.into_iter();
    spans.fold(Span::ZERO, |sum, span| (sum + span).min(Span::MAX))
}

/// By resource, whether it matters: several tasks use it, or one that is then not preempted. `None` if nothing is known of
/// any of those: it is shared between CPUs and jobs do not spin for it, or it has no protocol. No job waits for one that a
/// single task uses.
fn shared(set: &TaskSet) -> Option<Vec<bool>> {
    let resources = set.resources.iter().enumerate();
    let is_shared = resources.map(|(index, resource)| {
        let id = ResourceId::from_index(index);
        let users = set.tasks.iter().filter(|task| task.locks_one(id));
        let cpus: Vec<Option<CpuId>> = users.map(Task::only_cpu).collect();
        let is_local = is_local(set, id);
        let is_bounded = match resource.protocol {
            Protocol::None => false,
            // On one CPU a job can be lent no other.
            Protocol::Inheritance | Protocol::Migratory | Protocol::Ceiling => is_local,
            // The queue has a place for the job alone that holds it.
            Protocol::Omlp => is_local,
            Protocol::NonPreemptive => is_local,
            Protocol::Spin => cpus.iter().all(Option::is_some),
            // Beside none of that protocol.
            Protocol::Fmlp | Protocol::Mpcp | Protocol::Dpcp(_) => false,
        };
        match matters(set, id) {
            true => is_bounded.then_some(true),
            false => Some(false),
        }
    });
    is_shared.collect()
}

/// Whether several tasks use the mutex, or one that is then not preempted, boosted, or on another CPU.
fn matters(set: &TaskSet, id: ResourceId) -> bool {
    let users = set.tasks.iter().filter(|task| task.locks_one(id));
    let protocol = set.resources[id.index()].protocol;
    let precedes = protocol.is_non_preemptive() || protocol == Protocol::Fmlp;
    let is_alone = precedes || set.served_on(id).is_some();
    users.count() >= if is_alone { 1 } else { 2 }
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

/// The least level of the jobs that may wait for each mutex, be it for one that its holder waits for, and 0 if its holder
/// is not preempted; `None` if mutexes of different protocols are nested.
fn ceilings(set: &TaskSet, levels: &[u64], shared: &[bool]) -> Option<Vec<u64>> {
    let resources = (0..set.resources.len()).map(ResourceId::from_index);
    let ceiling = |id: ResourceId| {
        if set.resources[id.index()].protocol.is_non_preemptive() {
            return 0;
        }
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

/// For what a job of the task holds the shared mutexes, or spins for them; `None` if it does not unlock them in reverse.
fn holdings(
    task: &Task,
    shared: &[bool],
    spin: impl Fn(&Task, ResourceId) -> Span,
) -> Option<Vec<Holding>> {
    let mut now = Span::ZERO;
    let mut all: Vec<Holding> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for phase in task.phases() {
        match *phase {
            Phase::Run(run) => now = (now + run).min(Span::MAX),
            Phase::Lock(resource) if shared[resource.index()] => {
                open.push(all.len());
                let (from, to) = (now, now);
                all.push(Holding { resource, from, to });
                now = (now + spin(task, resource)).min(Span::MAX);
            }
            Phase::Unlock(resource) if shared[resource.index()] => {
                let last = &mut all[open.pop()?];
                if last.resource != resource {
                    return None;
                }
                last.to = now;
            }
            Phase::Sleep(_) | Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => {}
        }
    }
    open.is_empty().then_some(all)
}
