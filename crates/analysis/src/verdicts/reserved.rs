//! What is known where background work takes the reserve.

use shiftwork_model::{Span, TaskSet};

use super::{Best, Candidate};
use crate::affinity::{Unavailable, laminar_tardiness_beside};
use crate::policy::{is_edf, shifts};
use crate::stand_ins::waits;
use crate::{Outcome, Placed, Sporadic, Steps};

/// For so long background work waits before it gets the reserve.
const WAIT: Span = Span::from_s(1);

/// Bounds on the response times of all tasks where background work takes the reserve of the task set as
/// the simulator has it: on each CPU for the reserve's share of a second, and then not for a second.
/// `None` where no bound is known; of all tests only `laminar-tardiness` has any, and none where a job may have to wait.
pub fn bounds_beside_reserve(
    set: &TaskSet,
    candidate: &Candidate,
    steps: u64,
) -> Vec<Option<Best>> {
    let none = vec![None; set.tasks.len()];
    let speaks = is_edf(&candidate.traits) && shifts(&candidate.traits) && !waits(set);
    let Some(bound) = candidate.bound.as_ref().ok().filter(|_| speaks) else {
        return none;
    };
    let all = set.platform.all();
    let placed = set.tasks.iter().zip(bound).map(|(task, affinity)| Placed {
        task: Sporadic::from(task),
        cpus: *affinity.cpus() & all,
    });
    let placed: Vec<Placed> = placed.collect();
    let unavailable = Unavailable::by_reserve(set.scheduler.reserve, WAIT);
    match laminar_tardiness_beside(&placed, unavailable, &mut Steps::at_most(steps)) {
        Outcome::Pass(bounds) => {
            let by = "laminar-tardiness";
            let best = |response| Best { response, by };
            bounds.into_iter().map(|bound| bound.map(best)).collect()
        }
        Outcome::Fail(_) | Outcome::StepLimit => none,
    }
}
