//! What a policy guarantees of a task set, and whether it is let in.
//!
//! [`admit`] decides on a whole set before a run; [`Admitted`] goes on from there and answers the
//! requests of tasks that enter, leave or change while others run. Both come down to one function
//! in `decide.rs`: the demand must fit the CPUs beside the reserve, and then every group of CPUs
//! that no task connects with another gets the best guarantee that a condition shows.
//!
//! The claim of a task that leaves or lowers its demand still counts for a while. Otherwise a task
//! could use its budget, leave, and use another one. `lingering.rs` defines how long, and proves
//! that no sequence of requests gets more than what was admitted.
//!
//! A policy is known here by its properties and where it binds each task; so partitioned,
//! clustered and global scheduling are affinities like any other.

mod advice;
mod books;
mod curves;
mod decide;
mod lingering;
mod online;
mod pfair;
#[cfg(test)]
mod tests;
mod triggered;
mod words;

pub use online::{Admitted, Loss, Refusal, Returned};

use std::fmt;

use shiftwork_model::{
    Affinity, Alignment, Change, CpuSet, PolicyTraits, Priority, Share, Span, Task, TaskId, TaskSet,
};

use crate::affinity::Groups;
use crate::curves::has_curves;
use crate::exact::Rate;
use crate::pfair::Quanta;
use crate::policy::{
    is_edf, is_fp, is_np_edf, is_packed, is_semi_partitioned, pfair, ranks_by_deadline,
};
use crate::stand_ins::{StandIns, has_jitter};
use crate::suspensions::suspends;
use crate::{Steps, Witness};

/// Under what tasks are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The properties of the policy.
    pub policy: PolicyTraits,
    /// The share of each CPU that is kept for everything that is not real-time.
    pub reserve: Share,
    /// How a Pfair policy divides time; `None` under others.
    pub quanta: Option<Quanta>,
    /// By which tests deadlines are promised under EDF with the strong invariant, on more than one CPU.
    pub deadlines: DeadlineTests,
}

/// Which tests may show that all deadlines are met under EDF with the strong invariant, on more than one CPU.
///
/// A task that is promised its deadlines keeps them, so that others are refused for its sake, and a claim that ends
/// counts for longer. So they are promised where that is asked for, or where nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeadlineTests {
    /// None: bounded tardiness is promised.
    None,
    /// Those that look at the window of one job. They hold while tasks come, change and go, if all that may take part
    /// in a window are counted together: see the private module `lingering`.
    Windows,
    /// All of them, those by densities too, whose proof looks back over any time: as long as no task changes.
    All,
}

impl Terms {
    /// The terms of a policy whatever the task set is. `None` if no condition is known under which it guarantees
    /// anything, as of SCHED_DEADLINE as it is; or not without the task set: see [`of`](Self::of). So what is
    /// decided under terms is decided for EDF or fixed priorities.
    pub fn new(policy: &PolicyTraits, reserve: Share) -> Option<Self> {
        let is_known = [is_edf, is_fp, is_np_edf, is_semi_partitioned];
        let is_known = is_known.into_iter().any(|is_known| is_known(policy));
        is_known.then_some(Self {
            policy: *policy,
            reserve,
            quanta: None,
            deadlines: DeadlineTests::None,
        })
    }

    /// The terms of a policy for this task set; for Pfair policies they are a matter of quanta. Where nothing
    /// changes with time, deadlines are promised by all tests; else bounded tardiness, so that no change is
    /// refused for a promise that was not asked for. Programs may change their affinities at any time.
    pub fn of(policy: &PolicyTraits, set: &TaskSet) -> Option<Self> {
        let reserve = set.scheduler.reserve;
        let has_programs = set.tasks.iter().any(|task| !task.command.is_empty());
        let deadlines = match set.actions.is_empty() && !has_programs {
            true => DeadlineTests::All,
            false => DeadlineTests::None,
        };
        let Some(alignment) = pfair(policy) else {
            let terms = Self::new(policy, reserve)?;
            return Some(Self { deadlines, ..terms });
        };
        Some(Self {
            policy: *policy,
            reserve,
            quanta: Some(Quanta::of(set, alignment == Alignment::Staggered)),
            deadlines,
        })
    }

    /// Whether the policy ranks jobs by their deadlines.
    pub fn is_edf(&self) -> bool {
        ranks_by_deadline(self.policy.order)
    }
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
    /// The task that makes the claim.
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
    /// That is shown of each task of a set whose demand fits.
    fn same_for_all(set: &TaskSet, guarantee: Guarantee, reason: String) -> Self {
        Self {
            guarantee,
            reason,
            witness: None,
            tasks: set.iter().map(|(task, _)| (task, guarantee)).collect(),
            fits: true,
        }
    }

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
///
/// Where jobs have to wait, as they have jitter, suspend themselves or lock mutexes, [others stand for the
/// tasks](crate::stand_ins). If those are not admitted, or none are known under the policy, nothing is promised; but to tasks that
/// suspend themselves what a test shows that counts suspensions, if nothing changes with time. Where tasks
/// have arrival curves, sporadic ones that are the shortest distance apart stand for them, unless a test for one CPU takes the
/// curves. Where tasks trigger others, that is promised which is [decided](crate::verdicts::decide) of them with the supply that is left.
pub fn admit(set: &TaskSet, bound: &[Affinity], terms: Terms) -> Decision {
    match has_curves(set) {
        true => curves::admit(set, bound, terms),
        false => admit_by_period(set, bound, terms),
    }
}

/// As [`admit`], of tasks without arrival curves.
fn admit_by_period(set: &TaskSet, bound: &[Affinity], terms: Terms) -> Decision {
    let decision = admit_at_once(set, bound, terms);
    match StandIns::where_bound(set, &terms.policy, bound) {
        StandIns::Same => decision,
        _ if set.first_triggered().is_some() => triggered::promise(set, decision, bound, terms),
        _ if !decision.fits => decision,
        stand_ins => {
            let known = admit_waiting(set, decision, &stand_ins, bound, terms);
            admit_suspended(set, known, bound, terms)
        }
    }
}

/// What is promised to tasks that suspend themselves where nothing changes: what is known if they compute meanwhile, or what a
/// test shows that counts suspensions.
fn admit_suspended(set: &TaskSet, known: Decision, bound: &[Affinity], terms: Terms) -> Decision {
    let has_test = is_fp(&terms.policy) || is_edf(&terms.policy);
    let is_counted = has_test && suspends(set) && set.first_locking().is_none();
    let may_change = terms.deadlines != DeadlineTests::All;
    // A job that is throttled is late, and others count on its deadline.
    let is_throttled = set.tasks.iter().any(|task| task.may_be_throttled());
    if !is_counted || may_change || is_throttled || known.guarantee == Guarantee::Hard {
        return known;
    }
    match triggered::shown(set, bound, terms, "suspensions within jobs") {
        Some((guarantee, reason)) if guarantee > known.guarantee => {
            Decision::same_for_all(set, guarantee, reason)
        }
        _ => known,
    }
}

/// What is promised to tasks whose jobs have to wait: `decision` is as if they did not.
fn admit_waiting(
    set: &TaskSet,
    decision: Decision,
    stand_ins: &StandIns,
    bound: &[Affinity],
    terms: Terms,
) -> Decision {
    let (where_they_wait, what_counts) = words::waiting(set);
    let why = match stand_ins {
        _ if deadlines_shrink(set) => {
            format!("nothing is known of deadlines that become shorter {where_they_wait}")
        }
        _ if has_jitter(set) && changes_attributes(set) => {
            format!("nothing is known of timed changes of attributes {where_they_wait}")
        }
        StandIns::Other(others) => {
            // What would be let in instead would be a cost or an affinity of a stand-in.
            let known = judge_at_once(&others.set, bound, terms);
            if known.fits {
                let reason = format!("{} ({what_counts})", known.reason);
                return Decision { reason, ..known };
            }
            format!("if {what_counts}, {}", known.reason)
        }
        _ => format!("nothing is known of this policy {where_they_wait}"),
    };
    let nothing = |(task, _)| (task, Guarantee::None);
    Decision {
        guarantee: Guarantee::None,
        reason: why,
        tasks: decision.tasks.into_iter().map(nothing).collect(),
        ..decision
    }
}

/// Whether a timed change sets a cost, a period or a deadline.
fn changes_attributes(set: &TaskSet) -> bool {
    let changes = |change: &Change| matches!(change, Change::SetAttributes { .. });
    set.actions.iter().any(|action| changes(&action.change))
}

/// Whether a timed change may make a deadline shorter than one that held before, in whatever order they come.
fn deadlines_shrink(set: &TaskSet) -> bool {
    let set_to = set.actions.iter().filter_map(|action| match action.change {
        Change::SetAttributes { task, deadline, .. } => Some((task, deadline?)),
        _ => None,
    });
    let mut longest: Vec<Span> = set.tasks.iter().map(|task| task.deadline).collect();
    for (task, deadline) in set_to.clone() {
        longest[task.index()] = longest[task.index()].max(deadline);
    }
    set_to
        .into_iter()
        .any(|(task, deadline)| deadline < longest[task.index()])
}

/// As [`admit`], as if each job might run from its arrival on.
fn admit_at_once(set: &TaskSet, bound: &[Affinity], terms: Terms) -> Decision {
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
    if crowded && is_packed(&terms.policy) && !decision.fits && fits_unbound(set, terms) {
        decision.reason.push_str(words::fits_unbound(terms));
    }
    decision
}

/// As [`admit_at_once`], without advice on what would be let in.
fn judge_at_once(set: &TaskSet, bound: &[Affinity], terms: Terms) -> Decision {
    let (all, claims) = (set.platform.all(), claims(set, bound));
    let counted = decide::Counted::all(&claims);
    let judgement = decide::judge(&counted, &all, terms, &mut Steps::ordinary());
    judgement.in_words(&counted, &all, terms)
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
