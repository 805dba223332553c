//! What is promised of tasks of which some trigger others.

use shiftwork_model::{Affinity, Share, TaskSet};

use super::words::NOTHING;
use super::{Decision, Guarantee, Terms};
use crate::exact::beside;
use crate::triggers::Streams;
use crate::verdicts::{Answer, Criterion, Factor, Question, decide, scaled};
use crate::{Steps, Witness};

/// What is promised to the tasks where the policy binds them so, if their demand fits. What is kept from them makes every cost
/// longer. Nothing is known of timed changes. `decision` is as if they arrived by time, and of a refusal only what holds for any
/// arrivals counts.
pub(super) fn promise(
    set: &TaskSet,
    decision: Decision,
    bound: &[Affinity],
    terms: Terms,
) -> Decision {
    if let Some(
        Witness::NoTask { .. }
        | Witness::Alone { .. }
        | Witness::Nowhere { .. }
        | Witness::Crowd { .. },
    ) = decision.witness
    {
        return decision;
    }
    let known = match set.actions.is_empty() {
        true => shown(set, bound, terms, "the latest arrivals of triggered jobs"),
        false => None,
    };
    let (guarantee, reason) = known.unwrap_or_else(|| {
        let why = match set.actions.is_empty() {
            true => "no test shows that jobs respond in bounded time where tasks trigger others",
            false => "nothing is known of timed changes where tasks trigger others",
        };
        (Guarantee::None, format!("{NOTHING}: {why}"))
    });
    Decision::same_for_all(set, guarantee, reason)
}

/// What tests show of the tasks with the supply that is left, if nothing changes, and why; it counts this.
pub(super) fn shown(
    set: &TaskSet,
    bound: &[Affinity],
    terms: Terms,
    what: &str,
) -> Option<(Guarantee, String)> {
    // Whose costs are scaled may look as if it were never throttled.
    Streams::of(set)?;
    let own = set.tasks.iter().enumerate();
    let bound: Vec<Affinity> = own
        .map(|(index, task)| *bound.get(index).unwrap_or(&task.affinity))
        .collect();
    let supply = beside(terms.reserve).billionths();
    let slower = scaled(set, Factor::new(Share::WHOLE.into(), supply.into()))?;
    [
        (Criterion::Hard, Guarantee::Hard),
        (Criterion::Soft, Guarantee::BoundedTardiness),
    ]
    .into_iter()
    .find_map(|(criterion, guarantee)| {
        let question = Question::new(terms.policy, &bound, criterion, Steps::ORDINARY);
        let decision = decide(&slower, &question);
        let by = decision.by?;
        let promise = match guarantee {
            Guarantee::Hard => "all deadlines are met",
            _ => "tardiness is bounded",
        };
        (decision.answer == Answer::Schedulable).then(|| {
            let reason = format!("{promise} by {by}, which counts {what}");
            (guarantee, reason)
        })
    })
}
