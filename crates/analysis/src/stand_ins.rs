//! Task sets that stand for those whose jobs have to wait before they may run: for their release, as they have jitter, or
//! within the job, as they suspend themselves or lock mutexes. Where tasks have arrival curves, sporadic ones stand for them.
//!
//! What is shown of the stand-ins holds for the real tasks: `docs/theory/suspensions.md`, `docs/theory/jitter.md` and
//! `docs/theory/blocking.md` have the lemmas.

use shiftwork_model::{Affinity, Budgets, PolicyTraits, Span, Task, TaskId, TaskSet, Work};

use crate::blocking::blocking;
use crate::curves::{at_shortest_distance, has_curves};
use crate::policy::{is_by_priority, is_edf, is_fp};
use crate::suspensions::{suspends, suspension};

/// What stands for a task set under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandIns {
    /// The task set itself: no job waits.
    Same,
    /// Others.
    Other(Box<Others>),
    /// Nothing is known that does.
    Unknown,
}

/// Tasks without jitter and arrival curves that neither suspend themselves nor lock mutexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Others {
    /// The tasks, in the order of the real ones.
    pub set: TaskSet,
    /// By task, how much later than the arrival of a real job its stand-in is released at most: bounds on response times
    /// of the stand-ins, and this, bound those of the real jobs counted from their arrival.
    pub delays: Vec<Span>,
    /// By task, how much of the cost of its stand-in a real job may be suspended instead, at any times after the release of
    /// the stand-in. Empty where that is not known.
    pub suspensions: Vec<Span>,
}

impl StandIns {
    /// What stands for the tasks under such a policy, wherever it binds them.
    pub fn of(set: &TaskSet, policy: &PolicyTraits) -> Self {
        Self::of_bound(set, policy, None)
    }

    /// The same where it binds them to these CPUs, if that is known; those beyond the end of the list to their own.
    pub fn of_bound(set: &TaskSet, policy: &PolicyTraits, bound: Option<&[Affinity]>) -> Self {
        let sporadic = at_shortest_distance(set);
        let may_compute = may_compute(policy)
            || bound
                .is_some_and(|bound| is_greedy_alone(policy) && are_on_one_cpu_each(set, bound));
        match Self::of_sporadic(&sporadic, policy, may_compute) {
            Self::Same if has_curves(set) => Self::Other(Box::new(Others {
                delays: vec![Span::ZERO; set.tasks.len()],
                set: sporadic.into_owned(),
                suspensions: Vec::new(),
            })),
            found => found,
        }
    }

    /// `may_compute`: whether waiting may count as computing.
    fn of_sporadic(set: &TaskSet, policy: &PolicyTraits, may_compute: bool) -> Self {
        if !waits(set) {
            return Self::Same;
        }
        if set.first_triggered().is_some() {
            return Self::Unknown;
        }
        if set.first_locking().is_some() {
            let blocked = (!has_jitter(set)).then(|| blocking(set, policy)).flatten();
            return match blocked {
                Some(blocked) => Self::Other(Box::new(Others {
                    set: unblocked(set, &blocked.longer),
                    delays: vec![Span::ZERO; set.tasks.len()],
                    suspensions: blocked.suspended,
                })),
                None => Self::Unknown,
            };
        }
        // Deadlines decide nothing then.
        let is_sporadic = has_jitter(set) && is_by_priority(policy);
        let released = is_sporadic.then(|| sporadic(set)).flatten();
        let delays = match &released {
            Some(_) => set.tasks.iter().map(|task| task.jitter).collect(),
            None => vec![Span::ZERO; set.tasks.len()],
        };
        let released = released.as_ref().unwrap_or(set);
        if !waits(released) {
            return Self::Other(Box::new(Others {
                set: released.clone(),
                delays,
                suspensions: Vec::new(),
            }));
        }
        if !may_compute {
            return Self::Unknown;
        }
        Self::Other(Box::new(Others {
            set: computing(released),
            delays,
            suspensions: released.tasks.iter().map(wait).collect(),
        }))
    }
}

impl StandIns {
    /// What stands for the tasks under such a policy where it binds them to these CPUs; those beyond the end of the list
    /// to their own. On one CPU, EDF is late by no more than the most by which the demand in some time exceeds it, and the
    /// demand of tasks with jitter is that of tasks with earlier deadlines.
    pub fn where_bound(set: &TaskSet, policy: &PolicyTraits, bound: &[Affinity]) -> Self {
        let of = set;
        let set = &*at_shortest_distance(set);
        let is_alone =
            !suspends(set) && set.first_locking().is_none() && set.first_triggered().is_none();
        let is_known = has_jitter(set) && is_alone && is_edf(policy);
        let is_partitioned = is_known && are_on_one_cpu_each(set, bound);
        match is_partitioned
            .then(|| with_earlier_deadlines(set))
            .flatten()
        {
            Some(earlier) => Self::Other(Box::new(Others {
                delays: vec![Span::ZERO; set.tasks.len()],
                set: earlier,
                suspensions: Vec::new(),
            })),
            // Affinities may change while tasks are admitted.
            None => Self::of(of, policy),
        }
    }
}

/// Whether any task has jitter.
pub fn has_jitter(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| !task.jitter.is_zero())
}

/// Whether any job may have to wait before it may run, for a trigger too.
pub fn waits(set: &TaskSet) -> bool {
    has_jitter(set)
        || suspends(set)
        || set.first_locking().is_some()
        || set.first_triggered().is_some()
}

/// The task set that stands for this one where any scheduler is asked about.
pub(crate) fn under_any(set: &TaskSet) -> TaskSet {
    let released = sporadic(set);
    computing(released.as_ref().unwrap_or(set))
}

/// The task set whose tasks compute for as long as each of these may be blocked, by task, and lock nothing.
fn unblocked(set: &TaskSet, blocked: &[Span]) -> TaskSet {
    let mut unblocked = set.clone();
    // Tasks without an explicit priority have one by deadline, which stays the same.
    for (task, &blocked) in unblocked.tasks.iter_mut().zip(blocked) {
        task.cost = (task.cost + blocked).min(Span::MAX);
        task.work = Work::Cost;
    }
    unblocked
}

/// The task set whose tasks compute for as long as these have to wait.
fn computing(set: &TaskSet) -> TaskSet {
    let mut computing = set.clone();
    // Tasks without an explicit priority have one by deadline, which stays the same.
    for task in &mut computing.tasks {
        let wait = wait(task);
        if !wait.is_zero() {
            task.cost = (task.cost + wait).min(Span::MAX);
            task.jitter = Span::ZERO;
            task.work = Work::Cost;
        }
    }
    computing
}

/// How long a job has to wait at most, from its arrival on, while nothing else keeps it from running.
fn wait(task: &Task) -> Span {
    (task.jitter + suspension(task)).min(Span::MAX)
}

/// Whether waiting may count as computing under such a policy: it is greedy, and its ranks do not follow from costs.
const fn may_compute(policy: &PolicyTraits) -> bool {
    policy.is_greedy() && !policy.order.is_by_cost()
}

/// Whether the policy runs the most urgent of the ready jobs of a CPU that all of its tasks are bound to, wherever else it does
/// not: by deadlines or priorities, with preemption.
fn is_greedy_alone(policy: &PolicyTraits) -> bool {
    (is_edf(policy) || is_fp(policy)) && matches!(policy.budgets, Budgets::OfJobs)
}

/// Whether each task has one CPU where they are bound so; those beyond the end of the list by their own affinity.
fn are_on_one_cpu_each(set: &TaskSet, bound: &[Affinity]) -> bool {
    let is_on_one_cpu = |(id, task): (TaskId, &Task)| {
        let affinity = bound.get(id.index()).unwrap_or(&task.affinity);
        affinity.cpus().len() == 1
    };
    set.iter().all(is_on_one_cpu)
}

/// The set of sporadic tasks with D - J for D; `None` if one of these is not above zero. If `qpa` or `gfb` shows it, EDF
/// meets all deadlines of the real one.
pub(crate) fn with_earlier_deadlines(set: &TaskSet) -> Option<TaskSet> {
    let mut earlier = set.clone();
    for task in &mut earlier.tasks {
        if task.jitter >= task.deadline {
            return None;
        }
        task.deadline -= task.jitter;
        task.jitter = Span::ZERO;
    }
    Some(earlier)
}

/// The set of sporadic tasks with T - J and D - J for T and D, and with the same priorities; `None` if one of these is not
/// above zero.
fn sporadic(set: &TaskSet) -> Option<TaskSet> {
    let mut sporadic = set.clone();
    for (task, priority) in sporadic.tasks.iter_mut().zip(set.priorities()) {
        if task.jitter >= task.period.min(task.deadline) {
            return None;
        }
        task.period -= task.jitter;
        task.deadline -= task.jitter;
        task.jitter = Span::ZERO;
        // Tasks without an explicit priority have one by deadline; it must not change.
        task.priority = Some(priority);
    }
    Some(sporadic)
}
