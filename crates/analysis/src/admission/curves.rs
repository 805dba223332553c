//! What is promised of tasks with arrival curves.

use shiftwork_model::{Affinity, TaskSet};

use super::{DeadlineTests, Decision, Guarantee, Terms, admit_by_period, judge_at_once, triggered};
use crate::curves::{at_mean_distance, at_shortest_distance};
use crate::suspensions::suspends;

/// What is promised to the tasks where the policy binds them so: what is promised to sporadic ones that are the shortest
/// distance apart, or, where nothing changes with time, what a test for one CPU shows that takes the curves. A demand that
/// does not fit is that of the long run.
pub(super) fn admit(set: &TaskSet, bound: &[Affinity], terms: Terms) -> Decision {
    const COUNTS: &str = "jobs count as arriving the shortest distance apart";
    // What would be let in is not known from this, as bursts may need more.
    let in_the_long_run = || judge_at_once(&at_mean_distance(set), bound, terms);
    if set.first_triggered().is_some() {
        return triggered::promise(set, in_the_long_run(), bound, terms);
    }
    let known = admit_by_period(&at_shortest_distance(set), bound, terms);
    let with_condition = |known: Decision| Decision {
        reason: format!("{} ({COUNTS})", known.reason),
        ..known
    };
    if known.guarantee == Guarantee::Hard {
        return with_condition(known);
    }
    // Costs that are scaled may look as if they were never exceeded.
    let is_throttled = set.tasks.iter().any(|task| task.may_be_throttled());
    // What counts suspensions counts on tasks that stay as they are.
    let may_change = suspends(set) && terms.deadlines != DeadlineTests::All;
    let shown = match is_throttled || may_change {
        true => None,
        false => triggered::shown(set, bound, terms, "the distances of arrivals"),
    };
    match shown {
        Some((guarantee, reason)) if guarantee > known.guarantee => {
            Decision::same_for_all(set, guarantee, reason)
        }
        _ if known.guarantee != Guarantee::None => with_condition(known),
        _ => {
            let in_the_long_run = in_the_long_run();
            match in_the_long_run.fits {
                false => in_the_long_run,
                true => Decision {
                    reason: format!("if {COUNTS}, {}", known.reason),
                    witness: None,
                    tasks: set
                        .iter()
                        .map(|(task, _)| (task, Guarantee::None))
                        .collect(),
                    fits: true,
                    ..known
                },
            }
        }
    }
}
