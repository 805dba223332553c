//! What a test is asked about: tasks on CPUs that no task connects with any others.

use std::collections::BTreeSet;

use shiftwork_model::{CpuId, CpuSet, Priority, Share, Span, TaskId};

use crate::affinity::{Bound, Groups, laminar};
use crate::exact::Rate;
use crate::pfair::Quanta;
use crate::{Placed, Ranked, Sporadic};

/// How deadlines compare with periods, from the most special to the most general.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadlines {
    /// Every deadline is the period.
    Implicit,
    /// None is beyond the period.
    Constrained,
    /// Anything.
    Arbitrary,
}

impl Deadlines {
    /// `implicit`, `constrained` or `arbitrary`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Implicit => "implicit",
            Self::Constrained => "constrained",
            Self::Arbitrary => "arbitrary",
        }
    }

    /// Of these tasks.
    pub fn of<'a>(tasks: impl IntoIterator<Item = &'a Sporadic>) -> Self {
        let one = |task: &Sporadic| match task.deadline.cmp(&task.period) {
            std::cmp::Ordering::Equal => Self::Implicit,
            std::cmp::Ordering::Less => Self::Constrained,
            std::cmp::Ordering::Greater => Self::Arbitrary,
        };
        tasks.into_iter().map(one).max().unwrap_or(Self::Implicit)
    }
}

/// What the affinities of a case look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// There is one CPU.
    One(CpuId),
    /// Every task may use every CPU, of which there are several.
    Uniform,
    /// They differ, and are nested or disjoint.
    Nested,
    /// They differ, and two overlap without nesting.
    Overlapping,
}

/// One task as a policy binds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Member {
    pub id: TaskId,
    pub cost: Span,
    pub period: Span,
    pub deadline: Span,
    pub priority: Priority,
    pub cpus: CpuSet,
}

/// Tasks and their CPUs, in the forms in which tests take them; all lists are in the same order.
pub(super) struct Case {
    pub members: Vec<Member>,
    pub tasks: Vec<Sporadic>,
    pub ranked: Vec<Ranked>,
    pub placed: Vec<Placed>,
    /// All that any task may use.
    pub cpus: CpuSet,
    pub shape: Shape,
    pub deadlines: Deadlines,
    /// What the task set says beside its tasks.
    pub terms: CaseTerms,
}

/// What a task set says beside its tasks, as far as published tests speak of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaseTerms {
    /// Of quantum-driven policies.
    pub quantum: Span,
    /// Whether all jobs are released where quanta begin.
    pub aligned: bool,
    /// What SCHED_DEADLINE keeps of each CPU.
    pub reserve: Share,
}

impl Case {
    /// The case of these tasks on these CPUs.
    pub fn new(members: Vec<Member>, cpus: CpuSet, terms: CaseTerms) -> Self {
        let tasks: Vec<Sporadic> = members.iter().map(sporadic).collect();
        let ranked = tasks.iter().zip(&members);
        let ranked = ranked.map(|(&task, member)| Ranked {
            task,
            priority: member.priority,
        });
        let placed = tasks.iter().zip(&members);
        let placed = placed.map(|(&task, member)| Placed {
            task,
            cpus: member.cpus,
        });
        Self {
            ranked: ranked.collect(),
            placed: placed.collect(),
            shape: shape(&members, &cpus),
            deadlines: Deadlines::of(&tasks),
            tasks,
            members,
            cpus,
            terms,
        }
    }

    /// Whether every task may use every CPU.
    pub fn is_global(&self) -> bool {
        matches!(self.shape, Shape::One(_) | Shape::Uniform)
    }

    /// How time is divided, if it is.
    pub const fn quanta(&self, staggered: bool) -> Quanta {
        Quanta {
            quantum: self.terms.quantum,
            staggered,
            aligned: self.terms.aligned,
        }
    }

    /// The tasks with priorities and CPUs.
    pub fn bound(&self) -> Vec<Bound> {
        let tasks = self.ranked.iter().zip(&self.members);
        let bound = tasks.map(|(&ranked, member)| Bound {
            ranked,
            cpus: member.cpus,
        });
        bound.collect()
    }

    /// Whether the affinities that are not that of all CPUs here are disjoint.
    pub fn has_two_levels(&self) -> bool {
        let masks = self.members.iter().map(|member| member.cpus);
        let masks: BTreeSet<CpuSet> = masks.filter(|cpus| *cpus != self.cpus).collect();
        let union = masks.iter().fold(CpuSet::EMPTY, |all, cpus| all | *cpus);
        masks.iter().map(CpuSet::len).sum::<usize>() == union.len()
    }

    /// Whether no two tasks have the same priority.
    pub fn priorities_differ(&self) -> bool {
        let mut all: Vec<Priority> = self.members.iter().map(|member| member.priority).collect();
        all.sort_unstable();
        all.windows(2).all(|pair| pair[0] != pair[1])
    }

    /// The tasks by affinity, at this rate; `None` if a task has none.
    pub fn groups(&self, rate: fn(&Member) -> Option<Rate>) -> Option<Groups> {
        let mut groups = Groups::default();
        for member in &self.members {
            groups.add(member.id, member.cpus, rate(member)?);
        }
        Some(groups)
    }
}

/// C/T.
pub(super) fn utilization(member: &Member) -> Option<Rate> {
    Rate::new(member.cost, member.period)
}

/// C / min(D, T).
pub(super) fn density(member: &Member) -> Option<Rate> {
    Rate::new(member.cost, member.deadline.min(member.period))
}

const fn sporadic(member: &Member) -> Sporadic {
    Sporadic {
        cost: member.cost,
        period: member.period,
        deadline: member.deadline,
    }
}

fn shape(members: &[Member], cpus: &CpuSet) -> Shape {
    if members.iter().all(|member| member.cpus == *cpus) {
        return match (cpus.len(), cpus.lowest()) {
            (1, Some(cpu)) => Shape::One(cpu),
            _ => Shape::Uniform,
        };
    }
    let mut groups = Groups::default();
    for member in members {
        // The rate does not matter to the shape.
        if let Some(rate) = Rate::new(Span::ZERO, Span::from_ns(1)) {
            groups.add(member.id, member.cpus, rate);
        }
    }
    match laminar::Tree::new(&groups) {
        Some(_) => Shape::Nested,
        None => Shape::Overlapping,
    }
}
