//! Why a policy refuses a task set or a change.

use core::fmt;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use shiftwork_model::{Affinity, CpuId, CpuSet, Order, Protocol};

/// Why a policy refuses. Each message says what was found and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has this name.
    Unknown {
        /// What was asked for.
        name: String,
        /// The policies that may be meant; none if the name resembles nothing.
        meant: Vec<&'static str>,
    },
    /// Two affinities overlap without nesting, under a policy for laminar ones.
    NotLaminar {
        /// The policy.
        policy: &'static str,
        /// By what it ranks jobs.
        order: Order,
        /// One task and its affinity.
        first: (String, Box<Affinity>),
        /// The other.
        second: (String, Box<Affinity>),
    },
    /// A global policy, and a task that may not use every CPU.
    NotGlobal {
        /// The policy.
        policy: &'static str,
        /// By what it ranks jobs.
        order: Order,
        /// The task.
        task: String,
        /// Its affinity.
        affinity: Box<Affinity>,
    },
    /// A CPU is dedicated to interrupts, and there is no other.
    NoCpuLeft {
        /// The policy.
        policy: &'static str,
        /// The CPU.
        cpu: CpuId,
    },
    /// A clustered policy, and a task whose affinity is no union of clusters.
    NotClustered {
        /// The policy.
        policy: &'static str,
        /// The task.
        task: String,
        /// Its affinity.
        affinity: Box<Affinity>,
        /// The clusters.
        clusters: Vec<CpuSet>,
    },
    /// A deadline after the end of its period, which Linux does not take.
    LateDeadline {
        /// The policy.
        policy: &'static str,
        /// The task.
        task: String,
    },
    /// An affinity that no cpuset covers.
    NotInCluster {
        /// The policy.
        policy: &'static str,
        /// The task.
        task: String,
        /// Its affinity.
        affinity: Box<Affinity>,
        /// The clusters.
        clusters: Vec<CpuSet>,
    },
    /// An affinity that is neither one CPU nor a whole cluster.
    NotSemiPartitioned {
        /// The policy.
        policy: &'static str,
        /// The task.
        task: String,
        /// Its affinity.
        affinity: Box<Affinity>,
        /// The cluster that it lies in.
        cluster: Box<CpuSet>,
    },
    /// An affinity names a CPU that the platform does not have.
    NoSuchCpu {
        /// The task.
        task: String,
        /// The CPU.
        cpu: CpuId,
        /// Number of CPUs of the platform.
        cpus: usize,
    },
    /// The policy has a fixed size, and this is beyond it.
    TooMany {
        /// The policy.
        policy: &'static str,
        /// By what it ranks jobs.
        order: Order,
        /// Of what there are too many.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many the policy takes.
        at_most: usize,
    },
    /// A Pfair policy, whose windows follow one another a period apart, and a task with jitter.
    Jitter {
        /// The policy.
        policy: &'static str,
        /// The task.
        task: String,
    },
    /// A Pfair policy, whose windows follow one another a period apart, and a task that others trigger.
    Triggered {
        /// The policy.
        policy: &'static str,
        /// The task.
        task: String,
    },
    /// A task that locks mutexes, under a policy that does not know by what its jobs are scheduled then.
    Locks {
        /// The policy.
        policy: &'static str,
        /// By what it ranks jobs.
        order: Order,
        /// The task.
        task: String,
    },
    /// A mutex by which jobs may use the CPUs of others, under a policy that cannot take that.
    LentCpus {
        /// The policy.
        policy: &'static str,
        /// By what it ranks jobs.
        order: Order,
        /// The mutex.
        resource: String,
        /// Whether it is that affinities have to be nested.
        is_laminar: bool,
    },
    /// A task with several CPUs uses a mutex by which its jobs are scheduled before others of their CPU.
    Unbound {
        /// The policy.
        policy: &'static str,
        /// The mutex.
        resource: String,
        /// Its protocol.
        protocol: Protocol,
        /// The task.
        task: String,
        /// The CPUs that it may use.
        cpus: Box<CpuSet>,
    },
    /// A mutex of which the protocol is defined for fixed priorities, under a policy that has none.
    NeedsPriorities {
        /// The policy.
        policy: &'static str,
        /// The mutex.
        resource: String,
        /// Its protocol.
        protocol: Protocol,
    },
    /// A mutex that jobs have on a CPU to which the policy cannot move a job alone.
    ServedOn {
        /// The policy.
        policy: &'static str,
        /// The mutex.
        resource: String,
        /// Its CPU.
        cpu: CpuId,
        /// The groups of CPUs of which jobs use all.
        clusters: Vec<CpuSet>,
    },
    /// The policy has no such notion (a cluster move under a global policy).
    NotModelled {
        /// The policy.
        policy: &'static str,
        /// What was asked for.
        what: &'static str,
    },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, meant } => {
                write!(f, "there is no policy `{name}`; ")?;
                if name.contains(',') {
                    f.write_str(
                        "one is expected here, and `simulate` and `analyze` take several; ",
                    )?;
                }
                if let [first, others @ ..] = &meant[..] {
                    write!(f, "did you mean `{first}`")?;
                    others
                        .iter()
                        .try_for_each(|other| write!(f, " or `{other}`"))?;
                    f.write_str("? ")?;
                }
                f.write_str("`shiftwork policies` lists all")
            }
            Self::NotLaminar {
                policy,
                order,
                first,
                second,
            } => write!(
                f,
                "{policy}: affinities of {} {{{}}} and {} {{{}}} overlap without nesting; \
                 `strong-{}` takes any",
                first.0,
                first.1,
                second.0,
                second.1,
                base(*order),
            ),
            Self::NotGlobal {
                policy,
                order,
                task,
                affinity,
            } => write!(
                f,
                "{policy}: task {task} may use only CPUs {{{affinity}}}, and this policy schedules over \
                 all of them; `hpa-{order}` takes nested affinities, `strong-{order}` any",
                order = base(*order),
            ),
            Self::NoCpuLeft { policy, cpu } => write!(
                f,
                "{policy}: CPU {cpu} is dedicated to interrupts and runs no jobs, and the platform has no other; \
                 it needs two CPUs, `CEm` takes any number"
            ),
            Self::NotClustered {
                policy,
                task,
                affinity,
                clusters,
            } => {
                write!(
                    f,
                    "{policy}: the affinity {{{affinity}}} of task {task} is no union of clusters;"
                )?;
                clusters
                    .iter()
                    .try_for_each(|cluster| write!(f, " {{{cluster}}}"))?;
                write!(f, " are the clusters")
            }
            Self::LateDeadline { policy, task } => write!(
                f,
                "{policy}: the deadline of task {task} is after its period, which SCHED_DEADLINE does not take; \
                 `deadline` may be at most `period`"
            ),
            Self::NotInCluster {
                policy,
                task,
                affinity,
                clusters,
            } => {
                write!(
                    f,
                    "{policy}: the affinity {{{affinity}}} of task {task} lies in no cluster (cpuset); it must \
                     be within one of"
                )?;
                clusters
                    .iter()
                    .try_for_each(|cluster| write!(f, " {{{cluster}}}"))
            }
            Self::NotSemiPartitioned {
                policy,
                task,
                affinity,
                cluster,
            } => write!(
                f,
                "{policy}: task {task} may use CPUs {{{affinity}}}; it must be bound to one CPU, or free to \
                 use its whole cluster {{{cluster}}}; `hpa-edf` takes nested affinities, `strong-edf` any"
            ),
            Self::NoSuchCpu { task, cpu, cpus } => write!(
                f,
                "task {task} may use CPU {cpu}, but the platform has CPUs 0 to {}",
                cpus - 1
            ),
            Self::TooMany {
                policy,
                order,
                what,
                found,
                at_most,
            } => write!(
                f,
                "{policy} takes up to {at_most} {what}, here are {found}; `strong-{}` takes any number",
                base(*order),
            ),
            Self::Jitter { policy, task } => write!(
                f,
                "{policy}: task {task} has jitter, and a Pfair policy has windows for jobs a period apart; \
                 `jitter` must be zero, `g-edf` takes any"
            ),
            Self::Triggered { policy, task } => write!(
                f,
                "{policy}: task {task} is triggered by others, and a Pfair policy has windows for jobs a period apart; \
                 `g-edf` takes such tasks"
            ),
            Self::Locks {
                policy,
                order,
                task,
            } => write!(
                f,
                "{policy}: task {task} locks mutexes; policies that preempt at events, by deadlines or priorities, take \
                 such tasks, for example `strong-{}`",
                base(*order),
            ),
            Self::LentCpus {
                policy,
                order,
                resource,
                is_laminar,
            } => {
                let (why, accepted) = match is_laminar {
                    true => ("takes nested affinities", "have nested affinities"),
                    false => (
                        "binds each task to a part of the CPUs",
                        "are bound to one CPU",
                    ),
                };
                write!(
                    f,
                    "{policy} {why}, and jobs that hold `{resource}` may use the CPUs of those that wait for it; accepted are \
                     tasks that use it and {accepted}, another protocol, and policies for any affinities, for example `strong-{}`",
                    base(*order),
                )
            }
            Self::Unbound {
                policy,
                resource,
                protocol,
                task,
                cpus,
            } => write!(
                f,
                "{policy}: jobs that hold `{resource}` come before others of their CPU (protocol \"{}\"), and task `{task}` may use \
                 CPUs {cpus}; accepted are tasks that use it and are bound to one CPU, and other protocols",
                protocol.name()
            ),
            Self::NeedsPriorities {
                policy,
                resource,
                protocol,
            } => write!(
                f,
                "{policy} does not schedule by fixed priorities, by which the protocol \"{}\" of `{resource}` is defined; accepted are \
                 policies that do, for example `p-fp`, and other protocols, for example \"{}\"",
                protocol.name(),
                Protocol::Fmlp.name()
            ),
            Self::ServedOn {
                policy,
                resource,
                cpu,
                clusters,
            } => {
                write!(
                    f,
                    "{policy}: jobs that hold `{resource}` execute on CPU {cpu}, and this policy binds jobs to all of"
                )?;
                clusters
                    .iter()
                    .try_for_each(|cluster| write!(f, " {{{cluster}}}"))?;
                write!(
                    f,
                    "; accepted are CPUs that are a cluster alone, and `p-fp`"
                )
            }
            Self::NotModelled { policy, what } => write!(f, "{policy} does not know {what}"),
        }
    }
}

/// The order in the names of policies that take more; there are such for EDF and for fixed priorities.
const fn base(order: Order) -> &'static str {
    match order {
        Order::FixedPriority => Order::FixedPriority.name(),
        _ => Order::Edf.name(),
    }
}

impl core::error::Error for PolicyError {}
