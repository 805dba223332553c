//! The one table of policy names. The command line, the conformance suite and the documentation
//! all iterate it.

mod meant;
pub mod traits;
mod variants;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use shiftwork_model::{
    Affinities, Affinity, Alignment, CpuId, CpuSet, Order, Phase, Placement, PolicyTraits,
    Preemption, Protocol, Resource, ResourceId, Task, TaskSet,
};

use crate::error::PolicyError;
use crate::order::{Edf, FairLateness, FixedPriority, JobOrder, LeastLaxity, ZeroLaxity};
use crate::placement::{
    Assigner, ByLaxity, Ecrts16, Emsoft21, Hierarchical, Pfair, PushPull, Queued, Strong, Ties,
    Weak, clustered, global, non_preemptive_global, partitioned,
};
use crate::policy::Policy;
use traits::{
    CLUSTERED, GLOBAL, HIERARCHICAL, LINUX, LINUX_REPAIRED, NON_PREEMPTIVE, PARTITIONED, STRONG,
    WEAK, by_laxity, by_priority, by_priority_point, published,
};

/// What comes of building a policy.
pub type Built = Result<Box<dyn Policy>, PolicyError>;

/// One policy: its name, and what people and checkers need to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name, as it is published; [`find`] takes it in any case.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Which task sets it takes.
    pub domain: &'static str,
    /// Its properties.
    pub traits: PolicyTraits,
    /// Builds the policy of this entry; [`Entry::build`] calls it.
    pub build: fn(&Self, &TaskSet) -> Built,
}

impl Entry {
    /// Builds the policy for this task set, with every task of it known and no job ready.
    ///
    /// # Errors
    /// If the task set is outside the policy's domain.
    pub fn build(&self, set: &TaskSet) -> Built {
        if let Preemption::Pfair(_) = self.traits.preemption
            && let Some(task) = set.tasks.iter().find(|task| !task.jitter.is_zero())
        {
            return Err(PolicyError::Jitter {
                policy: self.name,
                task: task.name.clone(),
            });
        }
        if let Preemption::Pfair(_) = self.traits.preemption
            && let Some(task) = set.first_triggered()
        {
            return Err(PolicyError::Triggered {
                policy: self.name,
                task: task.name.clone(),
            });
        }
        if let Some(task) = set.first_locking()
            && !self.traits.takes_locks()
        {
            return Err(PolicyError::Locks {
                policy: self.name,
                order: self.traits.order,
                task: task.name.clone(),
            });
        }
        if !self.traits.order.is_by_priority()
            && let Some(resource) = first_locked(set, Protocol::needs_priorities)
        {
            return Err(PolicyError::NeedsPriorities {
                policy: self.name,
                resource: resource.name.clone(),
                protocol: resource.protocol,
            });
        }
        if let Some((resource, task)) = boosts_unbound(set) {
            return Err(PolicyError::Unbound {
                policy: self.name,
                resource: resource.name.clone(),
                protocol: resource.protocol,
                task: task.name.clone(),
                cpus: Box::new(*task.affinity.cpus()),
            });
        }
        if let Some((resource, cpu)) = self.serves_within(set) {
            return Err(PolicyError::ServedOn {
                policy: self.name,
                resource: resource.name.clone(),
                cpu,
                clusters: set.platform.clusters_or_one(),
            });
        }
        if let Some(resource) = self.lends_too_far(set) {
            return Err(PolicyError::LentCpus {
                policy: self.name,
                order: self.traits.order,
                resource: resource.name.clone(),
                is_laminar: self.traits.affinities == Affinities::Laminar,
            });
        }
        (self.build)(self, set)
    }

    /// A mutex that jobs have on a CPU that is not one of the groups to which this policy binds jobs.
    fn serves_within<'a>(&self, set: &'a TaskSet) -> Option<(&'a Resource, CpuId)> {
        if self.traits.placement != Placement::Clustered {
            return None;
        }
        let clusters = set.platform.clusters_or_one();
        let mut resources = set.resources.iter().enumerate();
        resources.find_map(|(index, resource)| {
            let cpu = set.served_on(ResourceId::from_index(index))?;
            let is_one = clusters.contains(&CpuSet::single(cpu));
            (!is_one).then_some((resource, cpu))
        })
    }

    /// A mutex by which a job may come to use CPUs that this policy cannot give it: beyond those that it is bound to, or, if
    /// affinities have to be nested, a union of affinities that need not be one of them.
    fn lends_too_far<'a>(&self, set: &'a TaskSet) -> Option<&'a Resource> {
        let is_laminar = self.traits.affinities == Affinities::Laminar;
        if !is_laminar && !self.traits.placement.is_packed() {
            return None;
        }
        let fit = |a: &Affinity, b: &Affinity| match is_laminar {
            true => a.cpus().is_subset(b.cpus()) || b.cpus().is_subset(a.cpus()),
            false => a == b && a.cpus().len() == 1,
        };
        let mut resources = set.resources.iter().enumerate();
        let found = resources.find(|(index, resource)| {
            let id = ResourceId::from_index(*index);
            let users = set.tasks.iter().filter(|task| task.locks_one(id));
            let users: Vec<&Affinity> = users.map(|task| &task.affinity).collect();
            let fits = |(at, a): (usize, &&Affinity)| users[at + 1..].iter().all(|b| fit(a, b));
            resource.protocol.lends_cpus() && !users.iter().enumerate().all(fits)
        });
        found.map(|(_, resource)| resource)
    }
}

/// A mutex by which jobs are scheduled before others of their CPU, and a task that uses it and is not bound to one.
fn boosts_unbound(set: &TaskSet) -> Option<(&Resource, &Task)> {
    let mut tasks = set.tasks.iter().filter(|task| task.only_cpu().is_none());
    tasks.find_map(|task| Some((locked(set, task, Protocol::boosts)?, task)))
}

/// The first mutex of such a protocol that a task locks.
fn first_locked(set: &TaskSet, is_one: fn(Protocol) -> bool) -> Option<&Resource> {
    let mut tasks = set.tasks.iter();
    tasks.find_map(|task| locked(set, task, is_one))
}

/// The first mutex of such a protocol that the task locks.
fn locked<'a>(set: &'a TaskSet, task: &Task, is_one: fn(Protocol) -> bool) -> Option<&'a Resource> {
    task.phases().iter().find_map(|phase| match phase {
        Phase::Lock(id) => Some(&set.resources[id.index()]).filter(|it| is_one(it.protocol)),
        _ => None,
    })
}

/// The policies of this crate, in the order of the documentation. Other crates have tables of their
/// own.
pub const POLICIES: &[Entry] = &[
    Entry {
        name: "p-edf",
        summary: "partitioned, earliest deadline first",
        source: "Brandenburg et al., RTSS 2008",
        domain: "any affinities",
        traits: PARTITIONED,
        build: |entry, set| Ok(Box::new(partitioned::<Edf>(entry.name, set)?)),
    },
    Entry {
        name: "g-edf",
        summary: "global, earliest deadline first",
        source: "Brandenburg et al., RTSS 2008",
        domain: "every task may use every CPU",
        traits: GLOBAL,
        build: |entry, set| Ok(Box::new(global::<Edf>(entry.name, set)?)),
    },
    Entry {
        name: "np-g-edf",
        summary: "global, earliest deadline first, non-preemptive",
        source: "Brandenburg et al., RTSS 2008",
        domain: "every task may use every CPU",
        traits: NON_PREEMPTIVE,
        build: |entry, set| Ok(Box::new(non_preemptive_global::<Edf>(entry.name, set)?)),
    },
    Entry {
        name: "c-edf",
        summary: "clustered, earliest deadline first",
        source: "Brandenburg et al., RTSS 2008",
        domain: "every affinity is a union of clusters",
        traits: CLUSTERED,
        build: |entry, set| Ok(Box::new(clustered::<Edf>(entry.name, set)?)),
    },
    Entry {
        name: "weak-edf",
        summary: "weak affinities (no shifting), earliest deadline first",
        source: "Bonifaci et al., ECRTS 2016, Def. II.1; Dubey et al., EMSOFT 2021",
        domain: "any affinities",
        traits: WEAK,
        build: |_, set| weak::<Edf>(set),
    },
    Entry {
        name: "strong-edf",
        summary: "strong affinities (shifting), earliest deadline first",
        source: "Cerqueira et al., RTSS 2014; SAPA-EDF of Tang et al., 2021",
        domain: "any affinities",
        traits: STRONG,
        build: |_, set| strong::<Edf>(set),
    },
    Entry {
        name: "hpa-edf",
        summary: "hierarchical strong affinities, earliest deadline first",
        source: "Bonifaci et al., ECRTS 2016; the algorithm is ours",
        domain: "affinities are nested or disjoint",
        traits: HIERARCHICAL,
        build: |entry, set| Ok(Box::new(Hierarchical::<Edf>::new(entry.name, set)?)),
    },
    Entry {
        name: "p-fp",
        summary: "partitioned, fixed priorities",
        source: "Brandenburg et al., RTSS 2008",
        domain: "any affinities",
        traits: by_priority(PARTITIONED),
        build: |entry, set| Ok(Box::new(partitioned::<FixedPriority>(entry.name, set)?)),
    },
    Entry {
        name: "g-fp",
        summary: "global, fixed priorities",
        source: "Guan et al., RTSS 2009",
        domain: "every task may use every CPU",
        traits: by_priority(GLOBAL),
        build: |entry, set| Ok(Box::new(global::<FixedPriority>(entry.name, set)?)),
    },
    Entry {
        name: "np-g-fp",
        summary: "global, fixed priorities, non-preemptive",
        source: "Guan, Yi, Gu, Deng, Yu, RTSS 2008",
        domain: "every task may use every CPU",
        traits: by_priority(NON_PREEMPTIVE),
        build: |entry, set| {
            Ok(Box::new(non_preemptive_global::<FixedPriority>(
                entry.name, set,
            )?))
        },
    },
    Entry {
        name: "g-fl",
        summary: "global fair lateness: earliest priority point first, D - (m-1)/m C after the release",
        source: "Erickson, Anderson, Ward, Real-Time Systems 50(1), 2014",
        domain: "every task may use every CPU",
        traits: by_priority_point(GLOBAL),
        build: |entry, set| Ok(Box::new(global::<FairLateness>(entry.name, set)?)),
    },
    Entry {
        name: "edzl",
        summary: "global, earliest deadline first until zero laxity",
        source: "Cho, Lee, Ahn, Lin, IEICE Transactions on Communications E85-B(12), 2002",
        domain: "every task may use every CPU",
        traits: by_laxity(GLOBAL, Order::ZeroLaxity),
        build: |entry, set| Ok(Box::new(ByLaxity::<ZeroLaxity>::new(entry.name, set)?)),
    },
    Entry {
        name: "llf",
        summary: "global, least laxity first, compared at events and quanta",
        source: "Dertouzos, Mok, IEEE Transactions on Software Engineering 15(12), 1989",
        domain: "every task may use every CPU",
        traits: by_laxity(GLOBAL, Order::LeastLaxity),
        build: |entry, set| Ok(Box::new(ByLaxity::<LeastLaxity>::new(entry.name, set)?)),
    },
    Entry {
        name: "c-fp",
        summary: "clustered, fixed priorities",
        source: "Brandenburg et al., RTSS 2008",
        domain: "every affinity is a union of clusters",
        traits: by_priority(CLUSTERED),
        build: |entry, set| Ok(Box::new(clustered::<FixedPriority>(entry.name, set)?)),
    },
    Entry {
        name: "weak-fp",
        summary: "weak affinities (no shifting), fixed priorities",
        source: "Bonifaci et al., ECRTS 2016, Def. II.1; Dubey et al., EMSOFT 2021",
        domain: "any affinities",
        traits: by_priority(WEAK),
        build: |_, set| weak::<FixedPriority>(set),
    },
    Entry {
        name: "strong-fp",
        summary: "strong affinities (shifting), fixed priorities",
        source: "Cerqueira et al., RTSS 2014",
        domain: "any affinities",
        traits: by_priority(STRONG),
        build: |_, set| strong::<FixedPriority>(set),
    },
    Entry {
        name: "hpa-fp",
        summary: "hierarchical strong affinities, fixed priorities",
        source: "Bonifaci et al., ECRTS 2016; the algorithm is ours",
        domain: "affinities are nested or disjoint",
        traits: by_priority(HIERARCHICAL),
        build: |entry, set| {
            Ok(Box::new(Hierarchical::<FixedPriority>::new(
                entry.name, set,
            )?))
        },
    },
    Entry {
        name: "hpa-edf-ecrts16",
        summary: "hierarchical strong affinities as published (Algorithms 3, 5, 6), earliest deadline first",
        source: "Bonifaci et al., ECRTS 2016, errata fixed",
        domain: "affinities are nested or disjoint",
        traits: published(HIERARCHICAL),
        build: |entry, set| ecrts16::<Edf>(entry.name, set, Assigner::LocalityAware),
    },
    Entry {
        name: "hpa-edf-ecrts16-alg4",
        summary: "the same with Algorithm 4 instead of 6, earliest deadline first",
        source: "Bonifaci et al., ECRTS 2016, errata fixed",
        domain: "affinities are nested or disjoint",
        traits: published(HIERARCHICAL),
        build: |entry, set| ecrts16::<Edf>(entry.name, set, Assigner::LevelByLevel),
    },
    Entry {
        name: "hpa-fp-ecrts16",
        summary: "hierarchical strong affinities as published (Algorithms 3, 5, 6), fixed priorities",
        source: "Bonifaci et al., ECRTS 2016, errata fixed",
        domain: "affinities are nested or disjoint",
        traits: published(by_priority(HIERARCHICAL)),
        build: |entry, set| ecrts16::<FixedPriority>(entry.name, set, Assigner::LocalityAware),
    },
    Entry {
        name: "hpa-fp-ecrts16-alg4",
        summary: "the same with Algorithm 4 instead of 6, fixed priorities",
        source: "Bonifaci et al., ECRTS 2016, errata fixed",
        domain: "affinities are nested or disjoint",
        traits: published(by_priority(HIERARCHICAL)),
        build: |entry, set| ecrts16::<FixedPriority>(entry.name, set, Assigner::LevelByLevel),
    },
    Entry {
        name: "strong-fp-emsoft21",
        summary: "strong affinities as published for RTEMS, fixed priorities",
        source: "Dubey et al., EMSOFT 2021, errata fixed",
        domain: "any affinities",
        traits: published(by_priority(STRONG)),
        build: |_, set| emsoft21(set),
    },
    Entry {
        name: "dl-linux",
        summary: "SCHED_DEADLINE as Linux does it: run queues, push and pull, constant-bandwidth servers; no guarantee",
        source: "Linux; Tang et al., RTNS 2021",
        domain: "affinities within clusters (cpusets), deadlines up to the period",
        traits: LINUX,
        build: push_pull,
    },
    Entry {
        name: "dl-sp",
        summary: "SCHED_DEADLINE with the four repairs for semi-partitioned affinities",
        source: "Tang et al., RTNS 2021",
        domain: "each task on one CPU or on all of its cluster, deadlines up to the period; without the repair \
                 `admission` any affinities within clusters",
        traits: LINUX_REPAIRED,
        build: push_pull,
    },
    Entry {
        name: "pd2",
        summary: "Pfair: PD2, quanta that begin on all CPUs together",
        source: "Anderson, Srinivasan, JCSS 2004; Brandenburg et al., RTSS 2008",
        domain: "every task may use every CPU",
        traits: traits::pfair(GLOBAL, Alignment::Aligned),
        build: pfair,
    },
    Entry {
        name: "s-pd2",
        summary: "Pfair: PD2, staggered quanta",
        source: "Holman, Anderson, JEC 2005; Brandenburg et al., RTSS 2008",
        domain: "every task may use every CPU",
        traits: traits::pfair(GLOBAL, Alignment::Staggered),
        build: pfair,
    },
    Entry {
        name: "c-pd2",
        summary: "Pfair within clusters: PD2, aligned quanta",
        source: "Brandenburg et al., RTSS 2008",
        domain: "every affinity is a union of clusters",
        traits: traits::pfair(CLUSTERED, Alignment::Aligned),
        build: pfair,
    },
    Entry {
        name: "cs-pd2",
        summary: "Pfair within clusters: PD2, quanta staggered in each",
        source: "Brandenburg et al., RTSS 2008",
        domain: "every affinity is a union of clusters",
        traits: traits::pfair(CLUSTERED, Alignment::Staggered),
        build: pfair,
    },
    variants::CE_M,
    variants::CQ_M,
    variants::S_CQ_M,
    variants::HE_M,
    variants::FE_M,
    variants::CE_1,
    variants::CQ_1,
    variants::S_CQ_1,
    variants::FE_1,
];

/// The policy with this name, in any case.
///
/// # Errors
/// [`PolicyError::Unknown`] names those that may be meant.
pub fn find(name: &str) -> Result<&'static Entry, PolicyError> {
    find_in(&[POLICIES], name)
}

/// The same, in several tables.
///
/// # Errors
/// [`PolicyError::Unknown`] names those that may be meant.
pub fn find_in(tables: &[&'static [Entry]], name: &str) -> Result<&'static Entry, PolicyError> {
    let all = || tables.iter().flat_map(|table| table.iter());
    let found = all().find(|entry| entry.name.eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let known: Vec<&'static str> = all().map(|entry| entry.name).collect();
        PolicyError::Unknown {
            name: String::from(name),
            meant: meant::meant(name, &known),
        }
    })
}

/// One-word masks where they suffice.
fn strong<O: JobOrder + 'static>(set: &TaskSet) -> Built {
    if set.platform.cpus <= 64 {
        Ok(Box::new(Strong::<O, u64>::new(set)?))
    } else {
        Ok(Box::new(Strong::<O, CpuSet>::new(set)?))
    }
}

fn weak<O: JobOrder + 'static>(set: &TaskSet) -> Built {
    if set.platform.cpus <= 64 {
        Ok(Box::new(Weak::<O, u64>::new(set)?))
    } else {
        Ok(Box::new(Weak::<O, CpuSet>::new(set)?))
    }
}

fn ecrts16<O: Queued + 'static>(name: &'static str, set: &TaskSet, assigner: Assigner) -> Built {
    if set.platform.cpus <= 64 {
        Ok(Box::new(Ecrts16::<O, u64>::new(name, set, assigner)?))
    } else {
        Ok(Box::new(Ecrts16::<O, CpuSet>::new(name, set, assigner)?))
    }
}

fn emsoft21(set: &TaskSet) -> Built {
    if set.platform.cpus <= 64 {
        Ok(Box::new(Emsoft21::<u64>::new(set)?))
    } else {
        Ok(Box::new(Emsoft21::<CpuSet>::new(set)?))
    }
}

fn push_pull(entry: &Entry, set: &TaskSet) -> Built {
    let rules = entry.traits.budgets.linux_rules(&set.scheduler);
    let rules = rules.expect("queues are pushed and pulled as by Linux alone");
    let policy = PushPull::new(entry.name, set, rules.repairs, Ties::Fifo)?;
    Ok(Box::new(policy))
}

fn pfair(entry: &Entry, set: &TaskSet) -> Built {
    let groups = match entry.traits.placement {
        Placement::Clustered => set.platform.clusters_or_one(),
        _ => alloc::vec![set.platform.all()],
    };
    let alignment = entry.traits.preemption.alignment();
    let alignment = alignment.expect("Pfair decides where quanta begin");
    Ok(Box::new(Pfair::new(entry.name, set, groups, alignment)?))
}
