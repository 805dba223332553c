//! What a policy is, in plain values: the properties that tests, admission, checkers, machines and reports
//! go by. The registry of policies fills them in, once for each policy; nothing else knows policies by name.

use crate::linux::{Lagging, Repairs};
use crate::{CpuId, CpuSet, Instant, Priority, SchedulerOptions, Span};

/// The properties of one policy. They say nothing of how it reaches its decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyTraits {
    /// By what it ranks jobs.
    pub order: Order,
    /// On which CPUs jobs run.
    pub placement: Placement,
    /// When a running job may lose its CPU.
    pub preemption: Preemption,
    /// What holds of the running jobs after every instant.
    pub invariant: Invariant,
    /// Which affinities it accepts.
    pub affinities: Affinities,
    /// How machines keep budgets and answer requests.
    pub budgets: Budgets,
    /// Which live machines can run it.
    pub machines: Machines,
    /// How the implementation that it stands for is built; `None`: nothing is known of that.
    pub structure: Option<Structure>,
    /// What it is among the policies that schedule by the same rule.
    pub role: Role,
}

impl PolicyTraits {
    /// The CPU that handles interrupts and runs no jobs, if there is one.
    pub fn dedicated_cpu(&self) -> Option<CpuId> {
        match self.structure?.interrupts {
            Interrupts::Global => None,
            Interrupts::Dedicated(cpu) => Some(cpu),
        }
    }

    /// Whether the policy is *greedy*: between events the rank of a job is fixed, and the running jobs are the most
    /// urgent basis of the ready ones: from the most urgent to the least, each that can run together with those
    /// before it. Under the weak invariant that does not hold.
    pub const fn is_greedy(&self) -> bool {
        // Packed: each CPU or cluster runs the most urgent of the jobs that are bound to all of it.
        let runs_most_urgent = matches!(self.invariant, Invariant::Strong | Invariant::Packed);
        !self.order.is_by_laxity()
            && runs_most_urgent
            && matches!(self.preemption, Preemption::AtEvents)
            && matches!(self.budgets, Budgets::OfJobs)
    }

    /// Whether tasks may lock mutexes: what a job is scheduled by may change while it is ready, and takes effect at once.
    pub const fn takes_locks(&self) -> bool {
        !self.order.is_by_laxity()
            && matches!(self.preemption, Preemption::AtEvents)
            && matches!(self.budgets, Budgets::OfJobs)
    }

    /// Those of these CPUs that run jobs.
    pub fn serving(&self, mut cpus: CpuSet) -> CpuSet {
        if let Some(cpu) = self.dedicated_cpu() {
            cpus.remove(cpu);
        }
        cpus
    }
}

/// By what jobs are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Earliest deadline first.
    Edf,
    /// Fixed priorities.
    FixedPriority,
    /// Earliest priority point first, with the points of global fair lateness. A job is scheduled by its
    /// priority point instead of its deadline; [`Order::relative_deadline`] defines it.
    FairLateness,
    /// Earliest deadline first, but a job whose laxity is zero before all others. The laxity of a job is the time
    /// until its deadline less what is left of its cost.
    ZeroLaxity,
    /// Least laxity first.
    LeastLaxity,
}

impl Order {
    /// The name in JSON and in names of policies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Edf => "edf",
            Self::FixedPriority => "fp",
            Self::FairLateness => "fl",
            Self::ZeroLaxity => "edzl",
            Self::LeastLaxity => "llf",
        }
    }

    /// Whether jobs are ranked by fixed priorities, and deadlines do not matter.
    pub const fn is_by_priority(self) -> bool {
        matches!(self, Self::FixedPriority)
    }

    /// What jobs are compared by, for people.
    pub const fn ranks_by(self) -> &'static str {
        match self {
            Self::Edf => "deadline",
            Self::FixedPriority => "priority",
            Self::FairLateness => "priority point",
            Self::ZeroLaxity => "deadline or zero laxity",
            Self::LeastLaxity => "latest start",
        }
    }

    /// Whether the ranks of jobs change with time and with what they have executed, so that neither deadlines
    /// nor priorities are enough to compare them.
    pub const fn is_by_laxity(self) -> bool {
        matches!(self, Self::ZeroLaxity | Self::LeastLaxity)
    }

    /// Whether the records of a run by the order `own` have what this one ranks jobs by. Under GEL orders the deadlines in
    /// records are priority points, and laxities are in none.
    pub const fn ranks_records_of(self, own: Self) -> bool {
        match self {
            Self::FixedPriority => true,
            Self::Edf => !matches!(own, Self::FairLateness),
            Self::FairLateness | Self::ZeroLaxity | Self::LeastLaxity => false,
        }
    }

    /// Whether the ranks of jobs follow from costs, so that what is charged to costs changes them.
    pub const fn is_by_cost(self) -> bool {
        self.is_by_laxity() || matches!(self, Self::FairLateness)
    }

    /// The rank at `now` of a job with this deadline that has to run from its *latest start* on, its deadline less
    /// what is left of its cost, to complete in time. Only of orders by laxity, which is the time until the latest
    /// start.
    pub fn rank_by_laxity(self, now: Instant, deadline: Instant, latest_start: Instant) -> u64 {
        match self {
            Self::ZeroLaxity if latest_start <= now => 0,
            Self::LeastLaxity => latest_start.as_ns(),
            _ => deadline.as_ns(),
        }
    }

    /// The rank of a job that is scheduled by this deadline and this priority; the lowest is the most urgent.
    /// Ties are broken elsewhere. Of orders by laxity it is the rank of jobs that have all their laxity left.
    pub fn rank(self, deadline: Instant, priority: Priority) -> u64 {
        match self {
            Self::Edf | Self::FairLateness | Self::ZeroLaxity | Self::LeastLaxity => {
                deadline.as_ns()
            }
            Self::FixedPriority => u64::from(priority.number()),
        }
    }

    /// How long after its release the deadline lies by which a job is scheduled, on a machine with this number
    /// of CPUs, for a task with this cost and this relative deadline. Machines release jobs by it.
    ///
    /// It is D, and under fair lateness the relative priority point Y = D - (m-1)/m C, rounded up to whole
    /// nanoseconds; zero where C is so far above D that Y would be negative.
    ///
    /// # Source
    /// J. Erickson, J. Anderson, B. Ward, "Fair lateness scheduling: reducing maximum lateness in G-EDF-like
    /// scheduling", Real-Time Systems 50(1), 2014.
    pub const fn relative_deadline(self, cost: Span, deadline: Span, cpus: usize) -> Span {
        match self {
            Self::Edf | Self::FixedPriority | Self::ZeroLaxity | Self::LeastLaxity => deadline,
            Self::FairLateness => {
                let cpus = if cpus == 0 { 1 } else { cpus as u128 };
                // Not above the cost, so that it fits; rounded down, so that Y is rounded up.
                let ahead = cost.as_ns() as u128 * (cpus - 1) / cpus;
                deadline.saturating_sub(Span::from_ns(ahead as u64))
            }
        }
    }

    /// The instant by which a job of such a task is scheduled that is due at `due`.
    pub fn scheduling_deadline(
        self,
        due: Instant,
        (cost, deadline): (Span, Span),
        cpus: usize,
    ) -> Instant {
        let ahead = deadline.saturating_sub(self.relative_deadline(cost, deadline, cpus));
        Instant::from_ns(due.as_ns().saturating_sub(ahead.as_ns()))
    }
}

/// Where jobs run, and how they get there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// Each task on the one CPU that it is bound to.
    Partitioned,
    /// Globally within the cluster that a task is bound to.
    Clustered,
    /// Globally over all CPUs.
    Global,
    /// Within affinities, without moving running jobs (Bonifaci et al. 2016, Def. II.1).
    Weak,
    /// Within affinities, moving running jobs where that makes room (ibid., Def. II.2).
    Strong,
    /// The same for nested affinities.
    Hierarchical,
    /// In a run queue for each CPU, between which jobs are pushed and pulled, as SCHED_DEADLINE does it.
    PushPull,
}

impl Placement {
    /// Whether each task is bound to a part of the CPUs that has a scheduler of its own.
    pub const fn is_packed(self) -> bool {
        matches!(self, Self::Partitioned | Self::Clustered)
    }

    /// Whether running jobs are moved within affinities that differ, where that makes room.
    pub const fn shifts(self) -> bool {
        matches!(self, Self::Strong | Self::Hierarchical)
    }
}

/// When a running job may lose its CPU to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// As soon as a more urgent one is ready.
    AtEvents,
    /// Never while it is ready.
    Never,
    /// Where quanta begin, and only there do jobs get CPUs.
    AtQuanta(Alignment),
    /// The same, and jobs are scheduled in windows, quantum by quantum (Pfair).
    Pfair(Alignment),
}

impl Preemption {
    /// How quanta lie to each other; `None`: there are none.
    pub const fn alignment(self) -> Option<Alignment> {
        match self {
            Self::AtEvents | Self::Never => None,
            Self::AtQuanta(alignment) | Self::Pfair(alignment) => Some(alignment),
        }
    }
}

/// How the quanta of the CPUs lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// They begin together.
    Aligned,
    /// Of m CPUs each begins its quanta an m-th of a quantum after the one before it.
    Staggered,
}

/// What holds of the running jobs after every instant; checkers judge by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// No ready job waits while one of its CPUs is idle or runs a less urgent job (Bonifaci et al.
    /// 2016, Def. II.1).
    Weak,
    /// The same over every chain of shifts (Def. II.2).
    Strong,
    /// The weak one within each partition or cluster, as packed.
    Packed,
    /// No ready job waits while one of its CPUs is idle. A started job keeps its CPU as long as it is ready,
    /// and a CPU that is free after all events of an instant takes the most urgent job that waits by then.
    NonPreemptive,
    /// No ready job waits while one of its CPUs is idle. Which of the ready jobs run depends on what was
    /// pushed and pulled, and when; so nothing is said of that.
    PushPull,
    /// What runs is decided at quantum boundaries only. CPUs may be idle while jobs wait, for the next
    /// boundary or for their windows; so nothing is said of that here.
    Quanta,
}

impl Invariant {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weak => "weak",
            Self::Strong => "strong",
            Self::Packed => "packed",
            Self::NonPreemptive => "non-preemptive",
            Self::PushPull => "push and pull",
            Self::Quanta => "at quanta",
        }
    }
}

/// Which affinities a policy accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinities {
    /// Any.
    Any,
    /// All CPUs that run jobs.
    Global,
    /// Unions of clusters.
    Clusters,
    /// Nested or disjoint ones.
    Laminar,
    /// Any within clusters (cpusets).
    WithinClusters,
    /// One CPU, or all of a cluster.
    SemiPartitioned,
}

/// How machines keep budgets and answer requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budgets {
    /// Each job has the cost of its task.
    OfJobs,
    /// Servers do as those of Linux's `SCHED_DEADLINE`.
    AsLinux,
    /// The same with the repairs that the task set names, or with all.
    AsLinuxRepaired,
}

impl Budgets {
    /// How exactly servers do as those of Linux, for a task set with these options; `None`: they do not.
    pub fn linux_rules(self, options: &SchedulerOptions) -> Option<LinuxRules> {
        let repairs = match self {
            Self::OfJobs => return None,
            Self::AsLinux => Repairs::NONE,
            Self::AsLinuxRepaired => options.repairs.unwrap_or(Repairs::ALL),
        };
        Some(LinuxRules {
            repairs,
            lagging: options.lagging,
        })
    }
}

/// How machines are to do what `SCHED_DEADLINE` does outside of its run queues: what servers do is in
/// `shiftwork_machine::Server`, what becomes of requests in `shiftwork_machine::Cpusets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxRules {
    /// What differs from Linux.
    pub repairs: Repairs,
    /// What is done about servers that lag.
    pub lagging: Lagging,
}

/// Which live machines can run a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machines {
    /// The core in the kernel decides so, and so does an agent.
    KernelOrAgent,
    /// An agent alone.
    Agent,
    /// None: what a policy by laxity has to know of running jobs at each instant, only the simulator does.
    None,
}

/// How the ready queue is kept, and what of it is locked at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyQueue {
    /// One mergeable heap under one lock.
    Coarse,
    /// A mergeable heap for each CPU, and a master heap of their most urgent jobs; each under its lock.
    Hierarchical,
    /// One heap with a lock for each node, which cannot be merged.
    Fine,
}

/// Where the interrupts are handled by which jobs are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupts {
    /// On whichever CPU they reach.
    Global,
    /// On this CPU, which runs no jobs.
    Dedicated(CpuId),
}

/// The structure of an implementation: the properties in which implementations of one algorithm
/// differ. It affects no decision, except that a dedicated CPU runs no jobs. A simulated machine
/// charges overheads by it.
///
/// # Source
/// B. Brandenburg, J. Anderson, "On the Implementation of Global Real-Time Schedulers", RTSS 2009.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// The ready queue.
    pub queue: ReadyQueue,
    /// Which CPUs releases interrupt.
    pub interrupts: Interrupts,
}

/// What a policy is among those that schedule by the same rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that stands for the rule.
    Reference,
    /// A published baseline or another build: what tests show of the rule holds of it, too.
    Variant,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_priority_point_is_the_least_whole_number_that_is_not_below_the_exact_one() {
        for cpus in 1..=5_u64 {
            for cost in 0..=20_u64 {
                for deadline in 0..=20_u64 {
                    let (cost_span, deadline_span) = (Span::from_ns(cost), Span::from_ns(deadline));
                    let found = Order::FairLateness
                        .relative_deadline(cost_span, deadline_span, cpus as usize)
                        .as_ns();
                    // m Y = m D - (m-1) C, from the definition.
                    let exact = (cpus * deadline).saturating_sub((cpus - 1) * cost);
                    let least = (0..).find(|point| cpus * point >= exact);
                    assert_eq!(Some(found), least, "m = {cpus}, C = {cost}, D = {deadline}");
                    for order in [Order::Edf, Order::FixedPriority] {
                        let same = order.relative_deadline(cost_span, deadline_span, cpus as usize);
                        assert_eq!(same, deadline_span);
                    }
                }
            }
        }
        let long = Order::FairLateness.relative_deadline(Span::MAX, Span::MAX, 3);
        let max = u128::from(Span::MAX.as_ns());
        assert_eq!(u128::from(long.as_ns()), max - 2 * max / 3);
    }
}
