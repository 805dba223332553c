//! Tasks that suspend themselves within a job: their suspensions count as computing.
//!
//! What is shown of the tasks that compute instead holds for the real ones, under policies that are greedy:
//! `docs/theory/suspensions.md` has the lemma.

use shiftwork_model::{Phase, PolicyTraits, Span, Task, TaskSet, Work};

/// How long a job of the task suspends itself at most; zero if it does not.
pub fn suspension(task: &Task) -> Span {
    let Work::Phases(phases) = &task.work else {
        return Span::ZERO;
    };
    let sleeps = phases.iter().map(|phase| match phase {
        Phase::Run(_) => Span::ZERO,
        Phase::Sleep(sleep) => *sleep,
    });
    sleeps.fold(Span::ZERO, |sum, sleep| (sum + sleep).min(Span::MAX))
}

/// Whether any task suspends itself within a job.
pub fn suspends(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| !suspension(task).is_zero())
}

/// The task set whose tasks compute for as long as these suspend themselves; `None` if none of these does.
pub fn computing(set: &TaskSet) -> Option<TaskSet> {
    if !suspends(set) {
        return None;
    }
    let mut computing = set.clone();
    // Tasks without an explicit priority have one by deadline, which stays the same.
    for task in &mut computing.tasks {
        let suspension = suspension(task);
        if !suspension.is_zero() {
            task.cost = (task.cost + suspension).min(Span::MAX);
            task.work = Work::Cost;
        }
    }
    Some(computing)
}

/// Whether suspensions may count as computing under such a policy: it is greedy, and its ranks do not follow
/// from costs.
pub const fn may_compute(policy: &PolicyTraits) -> bool {
    policy.is_greedy() && !policy.order.is_by_cost()
}
