//! Overheads in schedulability tests: a task set is turned into one that costs more and comes more
//! often, and if a test passes for that one on a machine that schedules for free, it holds for the task set
//! on the real machine.
//!
//! [`inflate`] is *preemption-centric*: each job pays for the preemption that it causes. An overhead file
//! names no release latency (the time until an interrupt is taken); it counts as zero, and where a
//! machine has any it belongs into `release`.
//!
//! # Event-driven
//! With n tasks on the m CPUs of a part, Q the period of ticks, and for these n tasks tck, rel, sch, cxs
//! and ipi the costs of a tick, a release, a decision, a switch and a remote rescheduling, and cpd the
//! largest of the cache refills that are possible:
//!
//! > u = tck / Q + sum of rel / T_i, p = (tck + n rel) / (1 - u),
//! > C' = (C + 2 (sch + cxs) + cpd) / (1 - u) + 2 p + ipi
//!
//! - sch + cxs, twice: the job is switched to when it comes, and when it is done another one is.
//! - cpd: that other one refills its caches. Zero for a task alone in its part; on one CPU only
//!   `preemption` is possible, on several also `migration` between any two of them.
//! - u: interrupts of all releases may come on any CPU of the part, ticks come on all.
//! - p, twice: of each interrupt source one more may fall into either of the two stretches that are
//!   paid for.
//! - ipi: only where there are several CPUs.
//! - A job that is never preempted does not preempt either: C' = (C + sch + cxs) / (1 - u) + p + ipi under
//!   non-preemptive policies.
//! - With one more CPU that is dedicated to interrupts releases cost the tasks nothing on the way, and each
//!   job waits for its own: rel is added to C', and is zero in u and p. Before that CPU comes to it, it may
//!   be busy with the releases of others, for B - rel at most, where B = sum of ceil(B / T_i) rel is its longest
//!   busy stretch: T and D are less by that. The published accounting leaves this out, as if whatever is
//!   released within a moment were one interrupt; a simulation of jobs that come a few nanoseconds apart
//!   refutes it.
//!
//! # Quantum-driven
//! Each quantum begins with a tick, a decision, a switch and a refill, and the other tasks may release
//! in it; so of Q remains
//!
//! > Q_eff = Q - tck - sch - cxs - cpd - sum over others of rel ceil(Q / T_j)
//!
//! (no releases with a dedicated CPU, but B of its own quantum where a job comes just when one begins; only
//! rel if all do, since what is released at one instant is one interrupt), and C' = ceil(C / Q_eff) Q. A job that comes within a quantum is seen
//! when the next begins, after its release was handled: T and D are less by Q + rel; not for periodic tasks
//! that come where quanta begin. Where quanta are staggered, they are less by (m - 1) / m of Q. What is
//! left is rounded down to whole quanta. [`pfair`](crate::pfair::pfair) knows quanta itself: for it only rel is
//! taken off, and nothing is charged twice.
//!
//! # Queues
//! A CPU that inserts or removes a job may have to wait until all other m - 1 CPUs have done the
//! same once (a FIFO lock): rel is `release` + `enqueue` and sch is `schedule` + `dequeue`, each
//! with m - 1 times the longer of both.
//!
//! # Assumes
//! Jobs keep their priorities, and a job migrates only after all CPUs of its part were taken by
//! more urgent ones; the more urgent job that completes is charged for the migration. So there is
//! no accounting where the affinities in a part differ, nor for SCHED_DEADLINE: there a job is
//! moved aside by one that need not be more urgent (strong invariant), or to a CPU that was free
//! all the time (weak invariant), and pays for that itself.
//!
//! # Source
//! B. Brandenburg, "Scheduling and Locking in Multiprocessor Real-Time Operating Systems", PhD thesis,
//! University of North Carolina, 2011, chapter 3. The library that came with it, SchedCAT, calls its
//! staggering latency with the two arguments exchanged: with Q = 1000 us on 32 CPUs it charges 31.97 us
//! ((Q - 1) / Q of m) where 968.75 us ((m - 1) / m of Q) are meant.

mod charges;
mod events;
mod quanta;

use shiftwork_model::{
    Affinity, Alignment, Budgets, CpuSet, Interrupts, Overheads, PolicyTraits, Span, TaskSet,
};

use crate::Sporadic;
use crate::affinity::parts::parts;
use crate::pfair::Quanta;
use crate::policy::pfair;
pub(crate) use charges::{Charges, Site};
pub(crate) use events::NearTerms;

/// How a scheduler is built, as far as its overheads are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// `None`: it decides whenever something happens; otherwise where quanta begin.
    pub quantum: Option<Quanta>,
    /// Where releases are handled. A dedicated CPU is one more than those to which the tasks are bound.
    pub interrupts: Interrupts,
}

impl Structure {
    /// That of a policy for this task set.
    pub fn of(policy: &PolicyTraits, set: &TaskSet) -> Self {
        let alignment = policy.preemption.alignment();
        let structure = policy.structure;
        Self {
            quantum: alignment.map(|alignment| Quanta::of(set, alignment == Alignment::Staggered)),
            interrupts: structure.map_or(Interrupts::Global, |structure| structure.interrupts),
        }
    }
}

/// Why a task cannot bear the overheads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Interrupts alone take all of a CPU.
    Interrupts,
    /// A quantum is over before its overheads are.
    Quantum,
    /// Nothing is left of the period or the deadline until the release is seen.
    Window,
    /// The cost is more than the period or the deadline; tardiness may still be bounded.
    Density,
}

impl Obstacle {
    /// In words, to follow the name of the task.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Interrupts => "interrupts alone take all of a CPU",
            Self::Quantum => "a quantum is over before its overheads are",
            Self::Window => "nothing is left of its period or deadline when its release is seen",
            Self::Density => "it costs more than its period or deadline",
        }
    }
}

/// What a task is to tests once overheads are charged to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inflated {
    /// The task that stands for it on a machine that schedules for free; `None` if there is none.
    pub task: Option<Sporadic>,
    /// How much later than the real release that of the stand-in is at most: a bound on its response times
    /// is one of the task if this is added.
    pub delay: Span,
    /// Where it runs.
    pub cpus: CpuSet,
    /// Why it cannot meet deadlines, if that is known already.
    pub obstacle: Option<Obstacle>,
}

/// The task set with these overheads under policies like this with this structure, task by task, bound to
/// these CPUs; `None` if no accounting is known: under `dl-*`, and where affinities in a part differ.
///
/// Exact, rounded up to nanoseconds; more of any overhead never makes a cost less or a period longer.
///
/// # Assumes
/// What [`overheads`](self) says; sporadic tasks.
///
/// # Cost
/// O(n) for n tasks and O(m²) for the distances between m CPUs, as long as costs need not be rounded where
/// they are whole.
pub fn inflate(
    set: &TaskSet,
    (policy, structure): (&PolicyTraits, &Structure),
    bound: &[CpuSet],
    overheads: &Overheads,
) -> Option<Vec<Inflated>> {
    if !is_accounted(policy) {
        return None;
    }
    let mut inflated: Vec<Option<Inflated>> = vec![None; set.tasks.len()];
    for part in parts(bound) {
        if !part.is_uniform {
            return None;
        }
        let tasks = part.members.iter().map(|&place| &set.tasks[place]);
        let tasks: Vec<Sporadic> = tasks.map(Sporadic::from).collect();
        let members = Members {
            cpus: &part.cpus,
            tasks: &tasks,
        };
        let of_part = inflate_part(set, (policy, structure), &members, overheads);
        for (&place, one) in part.members.iter().zip(of_part) {
            inflated[place] = Some(Inflated {
                task: one.task,
                delay: one.delay,
                cpus: part.cpus,
                obstacle: one.obstacle,
            });
        }
    }
    inflated.into_iter().collect()
}

/// Tasks of a set that share these CPUs, all of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members<'a> {
    pub cpus: &'a CpuSet,
    pub tasks: &'a [Sporadic],
}

/// The same as [`inflate`] for one part of the set, in the order of its members.
pub(crate) fn inflate_part(
    set: &TaskSet,
    (policy, structure): (&PolicyTraits, &Structure),
    members: &Members<'_>,
    overheads: &Overheads,
) -> Vec<StandIn> {
    let site = Site::new(&set.platform, members.cpus);
    let count = members.tasks.len();
    let charges = Charges::new(set, (policy, structure), (&site, count), overheads);
    let charges = charges.of_members(members.tasks);
    match &structure.quantum {
        None => events::inflate(policy, members.tasks, &charges),
        Some(quanta) => quanta::inflate((policy, quanta), members.tasks, &charges),
    }
}

/// Whether [`inflate`] knows an accounting, given that the affinities in each part are the same.
pub(crate) fn is_accounted(policy: &PolicyTraits) -> bool {
    // Priority points and laxities follow from the costs without overheads.
    policy.budgets == Budgets::OfJobs && !policy.order.is_by_cost()
}

/// The task set to configure a Pfair scheduler with under these overheads. Costs are inflated so
/// that the quanta of a job suffice although overheads take a part of each. Periods and deadlines
/// are reduced by the time that releases take to be handled. Affinities are those of `bound`.
/// `None` if the policy is not Pfair, or if overheads take the whole quantum.
///
/// Guarantees under overheads hold for a scheduler with these parameters, while jobs execute as the
/// original task set says.
pub fn inflate_for_pfair(
    set: &TaskSet,
    policy: &PolicyTraits,
    bound: &[Affinity],
    overheads: &Overheads,
) -> Option<TaskSet> {
    pfair(policy)?;
    let structure = Structure::of(policy, set);
    let all = set.platform.all();
    let cpus: Vec<CpuSet> = bound.iter().map(|one| *one.cpus() & all).collect();
    let inflated = inflate(set, (policy, &structure), &cpus, overheads)?;
    let mut result = set.clone();
    for ((task, bound), inflated) in result.tasks.iter_mut().zip(bound).zip(inflated) {
        let stand_in = inflated.task?;
        task.cost = stand_in.cost;
        // So it takes jobs to come when their releases are handled.
        task.period = stand_in.period;
        task.deadline = stand_in.deadline;
        task.affinity = *bound;
    }
    Some(result)
}

/// [`Inflated`], but where the task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StandIn {
    pub task: Option<Sporadic>,
    pub delay: Span,
    pub obstacle: Option<Obstacle>,
}

impl StandIn {
    /// Nothing stands for the task.
    const fn none(obstacle: Obstacle) -> Self {
        Self {
            task: None,
            delay: Span::ZERO,
            obstacle: Some(obstacle),
        }
    }

    /// `times`: cost, period and deadline in nanoseconds.
    fn new(delay: u128, times: [u128; 3]) -> Self {
        let [cost, period, deadline] = times;
        if period == 0 || deadline == 0 {
            return Self::none(Obstacle::Window);
        }
        let [Some(cost), Some(period), Some(deadline), Some(delay)] =
            [cost, period, deadline, delay].map(span)
        else {
            return Self::none(Obstacle::Density);
        };
        Self {
            task: Some(Sporadic {
                cost,
                period,
                deadline,
            }),
            delay,
            obstacle: (cost > period || cost > deadline).then_some(Obstacle::Density),
        }
    }
}

/// `None` if it is longer than the longest span that a file may name.
fn span(ns: u128) -> Option<Span> {
    let span = u64::try_from(ns).ok().map(Span::from_ns);
    span.filter(|&span| span <= Span::MAX)
}
