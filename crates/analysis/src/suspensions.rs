//! Tasks that suspend themselves within a job; [`stand_ins`](crate::stand_ins) says what follows.

use shiftwork_model::{Phase, Span, Task, TaskSet};

/// How long a job of the task suspends itself at most; zero if it does not.
pub fn suspension(task: &Task) -> Span {
    let sleeps = task.phases().iter().map(|phase| match phase {
        Phase::Run(_) | Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => Span::ZERO,
        Phase::Sleep(sleep) => *sleep,
    });
    sleeps.fold(Span::ZERO, |sum, sleep| (sum + sleep).min(Span::MAX))
}

/// Whether any task suspends itself within a job.
pub fn suspends(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| !suspension(task).is_zero())
}
