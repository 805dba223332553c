//! What a policy guarantees of a task set, and whether it is let in.
//!
//! [`admit`] decides on a whole set before a run; [`Admitted`] goes on from there and answers the
//! requests of tasks that enter, leave or change while others run. Both come down to one function
//! in `decide.rs`: the demand must fit the CPUs beside the reserve, and then every group of CPUs
//! that no task connects with another gets the best guarantee that a condition shows.
//!
//! Whoever leaves or asks for less goes on to count for a while, or a task could use its budget, leave,
//! and use another one: `lingering.rs` says how long, and why no sequence of requests gets more than what
//! was admitted.
//!
//! A policy is known here by its order, its placement, and where it binds each task; so partitioned,
//! clustered and global scheduling are affinities like any other.

mod advice;
mod books;
mod decide;
mod lingering;
mod online;
mod pfair;
#[cfg(test)]
mod tests;
mod words;

pub use online::{Admitted, Loss, Refusal, Returned};
pub use pfair::PfairTime;

use std::fmt;

use shiftwork_model::{
    Affinity, CpuSet, Order, Priority, Share, Slots, Span, Task, TaskId, TaskSet,
};

use crate::affinity::Groups;
use crate::exact::Rate;
use crate::verdicts::Rule;
use crate::{Steps, Witness};

/// How a policy places jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each task on the one CPU it is bound to.
    Partitioned,
    /// Globally within the cluster that a task is bound to.
    Clustered,
    /// Globally over all CPUs.
    Global,
    /// Within affinities, without moving running jobs (Bonifaci et al. 2016, Def. II.1).
    Weak,
    /// Within any affinities, moving running jobs where that makes room (ibid., Def. II.2).
    Strong,
    /// The same for nested affinities.
    Hierarchical,
    /// Globally over all CPUs, and a job that runs goes on to its end.
    NonPreemptive,
    /// Each task on one CPU or globally over all, as SCHED_DEADLINE does it with its migrations repaired.
    SemiPartitioned,
    /// PD2 in quanta, globally within the CPUs that a task is bound to.
    Pfair(PfairTime),
}

/// Under what tasks are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The policy's order.
    pub order: Order,
    /// The policy's placement.
    pub placement: Placement,
    /// The share of each CPU that is kept for everything that is not real-time.
    pub reserve: Share,
}

impl Terms {
    /// The terms of the policy with this name (`hpa-edf`, `strong-fp-kernel`); a name is a placement
    /// and an order, and what follows them does not matter; besides there are `np-g-edf`, `dl-sp` and
    /// the event-driven implementations of global EDF (`CEm`). `None` for policies of which nothing is
    /// known here, such as `dl-linux`, or not without the task set: see [`of`](Self::of).
    pub fn of_policy(name: &str, reserve: Share) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let (order, placement) = match name.as_str() {
            "np-g-edf" => (Order::Edf, Placement::NonPreemptive),
            "cem" | "hem" | "fem" | "ce1" | "fe1" => (Order::Edf, Placement::Global),
            "dl-sp" => (Order::Edf, Placement::SemiPartitioned),
            name => by_words(name)?,
        };
        Some(Self {
            order,
            placement,
            reserve,
        })
    }
}

impl Terms {
    /// The terms of the policy with this name for this task set; for Pfair policies they are a matter of
    /// quanta.
    pub fn of(name: &str, set: &TaskSet) -> Option<Self> {
        let reserve = set.scheduler.reserve;
        let Some(Rule::Pfair { staggered }) = Rule::of_policy(name) else {
            return Self::of_policy(name, reserve);
        };
        let Slots {
            quantum, aligned, ..
        } = Slots::of(set, 1);
        let time = PfairTime {
            quantum,
            staggered,
            aligned,
        };
        Some(Self {
            order: Order::Edf,
            placement: Placement::Pfair(time),
            reserve,
        })
    }
}

/// A placement and an order, as the words of a name.
fn by_words(name: &str) -> Option<(Order, Placement)> {
    let mut words = name.split('-');
    let placement = match words.next()? {
        "p" => Placement::Partitioned,
        "c" => Placement::Clustered,
        "g" => Placement::Global,
        "weak" => Placement::Weak,
        "strong" => Placement::Strong,
        "hpa" => Placement::Hierarchical,
        _ => return None,
    };
    let order = match words.next()? {
        "edf" => Order::Edf,
        "fp" => Order::FixedPriority,
        _ => return None,
    };
    Some((order, placement))
}

/// What a policy promises, from nothing to everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// Nothing is shown.
    None,
    /// In the long run each task gets its utilization; nothing is said about single jobs.
    Share,
    /// No job is ever later than some bound that does not grow with time.
    BoundedTardiness,
    /// All deadlines are met.
    Hard,
}

impl Guarantee {
    /// All of them, the strongest first.
    pub const ALL: [Self; 4] = [Self::Hard, Self::BoundedTardiness, Self::Share, Self::None];

    /// The one with this name in JSON.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The name in JSON: `hard`, `bounded-tardiness`, `share` or `none`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Share => "share",
            Self::BoundedTardiness => "bounded-tardiness",
            Self::Hard => "hard",
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether tasks are admitted. Every verb shows it in the words of [`Display`](fmt::Display): `admitted, guarantee hard`,
/// or `refused`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With this guarantee, which is never [`Guarantee::None`].
    Admitted(Guarantee),
    /// The demand does not fit, or nothing can be guaranteed of it.
    Refused,
}

impl Verdict {
    /// The verdict on tasks of which this is the best guarantee that holds for all of them.
    pub const fn of(guarantee: Guarantee) -> Self {
        match guarantee {
            Guarantee::None => Self::Refused,
            _ => Self::Admitted(guarantee),
        }
    }

    /// The name in JSON: `admitted` or `refused`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admitted(_) => "admitted",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admitted(guarantee) => write!(f, "admitted, guarantee {guarantee}"),
            Self::Refused => f.write_str("refused"),
        }
    }
}

/// What admission needs to know of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Whose claim it is.
    pub task: TaskId,
    /// For people.
    pub name: String,
    /// C.
    pub cost: Span,
    /// T.
    pub period: Span,
    /// D, relative to a release.
    pub deadline: Span,
    /// Matters under fixed priorities only.
    pub priority: Priority,
    /// The CPUs to which the policy binds the task: one under partitioned scheduling, its cluster
    /// under clustered, else those of its affinity.
    pub cpus: CpuSet,
}

impl Claim {
    /// The claim of a task that the policy binds to these CPUs.
    pub fn new(id: TaskId, task: &Task, priority: Priority, bound: &Affinity) -> Self {
        Self {
            task: id,
            name: task.name.clone(),
            cost: task.cost,
            period: task.period,
            deadline: task.deadline,
            priority,
            cpus: *bound.cpus(),
        }
    }

    /// C/T; `None` if the period is zero.
    fn utilization(&self) -> Option<Rate> {
        Rate::new(self.cost, self.period)
    }

    /// C / min(D, T); `None` if either is zero.
    fn density(&self) -> Option<Rate> {
        Rate::new(self.cost, self.deadline.min(self.period))
    }
}

/// The claims of all tasks of a set; `bound` has one affinity per task, in the same order (tasks
/// beyond its end are bound to their own).
pub fn claims(set: &TaskSet, bound: &[Affinity]) -> Vec<Claim> {
    let priorities = set.priorities();
    set.iter()
        .map(|(id, task)| {
            let bound = bound.get(id.index()).unwrap_or(&task.affinity);
            Claim::new(id, task, priorities[id.index()], bound)
        })
        .collect()
}

/// Whether tasks are admitted, with which guarantee, and why. Shown as `VERDICT: REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The weakest of `tasks`; [`Guarantee::None`] exactly if they are refused.
    pub guarantee: Guarantee,
    /// For people: which tasks, which CPUs, which sum against which limit; and under what conditions
    /// a guarantee holds.
    pub reason: String,
    /// What shows it, where something does not fit or is late.
    pub witness: Option<Witness>,
    /// What can be shown of each task, in the order of the claims; empty if the demand does not fit.
    pub tasks: Vec<(TaskId, Guarantee)>,
    /// Whether the demand fits. If it does, the tasks are refused only because nothing is shown of some of them.
    fits: bool,
}

impl Decision {
    /// A refusal for this reason, which is not one of demand.
    pub const fn refused(reason: String) -> Self {
        Self {
            guarantee: Guarantee::None,
            reason,
            witness: None,
            tasks: Vec::new(),
            fits: false,
        }
    }

    /// A refusal because of this no guarantee can be given.
    pub fn unguaranteed(why: &str) -> Self {
        Self::refused(format!("{}: {why}", words::NOTHING))
    }

    /// Whether the tasks are admitted.
    pub const fn verdict(&self) -> Verdict {
        Verdict::of(self.guarantee)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.verdict(), self.reason)
    }
}

/// Decides on all tasks of a set, also those that enter later.
///
/// `bound` is where the policy binds each task (see [`claims`]). A refusal says with what cost or on
/// which CPUs the last of the tasks that are too many would be let in, if changing it alone helps; and
/// under a policy that binds tasks more narrowly than they ask, if the tasks would fit their own
/// affinities.
pub fn admit(set: &TaskSet, bound: &[Affinity], terms: Terms) -> Decision {
    let all = set.platform.all();
    let claims = claims(set, bound);
    let counted = decide::Counted::all(&claims);
    let judgement = decide::judge(&counted, &all, terms, &mut Steps::ordinary());
    let advice = advice::on_set(&claims, &set.platform, terms, &judgement);
    let mut decision = judgement.in_words(&counted, &all, terms);
    if let Some(advice) = advice {
        decision.reason.push_str(&advice);
    }
    let crowded = matches!(decision.witness, Some(Witness::Crowd { .. }));
    let narrowed = matches!(
        terms.placement,
        Placement::Partitioned | Placement::Clustered
    );
    if crowded && narrowed && !decision.fits && fits_unbound(set, terms) {
        decision.reason.push_str(words::fits_unbound(terms.order));
    }
    decision
}

/// Whether the tasks would fit if each might use its whole affinity.
fn fits_unbound(set: &TaskSet, terms: Terms) -> bool {
    let mut groups = Groups::default();
    for (id, task) in set.iter() {
        let Some(rate) = Rate::new(task.cost, task.period) else {
            return false;
        };
        groups.add(id, *task.affinity.cpus() & set.platform.all(), rate);
    }
    let (shortage, _) = groups.shortage(crate::exact::beside(terms.reserve));
    shortage.is_none()
}
