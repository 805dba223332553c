//! Task sets that stand for those with arrival curves where a test knows of periods only.
//!
//! One does all that the real tasks may do, and perhaps more: what is shown of it holds for them. The other does only what
//! they may do, too: what is impossible for it is for them. `docs/theory/curves.md` has the lemmas.

use std::borrow::Cow;

use shiftwork_model::{Arrival, Span, Task, TaskSet};

/// Whether any task has an arrival curve.
pub(crate) fn has_curves(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| task.curve().is_some())
}

/// The set in which tasks with curves are sporadic, the shortest distance apart.
pub(crate) fn at_shortest_distance(set: &TaskSet) -> Cow<'_, TaskSet> {
    sporadic(set, |task| task.period)
}

/// The set in which tasks with curves are sporadic, the mean distance apart that the curves allow in the long run; in whole
/// ticks.
pub(crate) fn at_mean_distance(set: &TaskSet) -> Cow<'_, TaskSet> {
    let tick = set.platform.tick_unit.as_ns().max(1);
    sporadic(set, |task| {
        let mean = task.mean_period().as_ns();
        Span::from_ns(mean.next_multiple_of(tick))
    })
}

fn sporadic(set: &TaskSet, period: impl Fn(&Task) -> Span) -> Cow<'_, TaskSet> {
    if !has_curves(set) {
        return Cow::Borrowed(set);
    }
    let mut sporadic = set.clone();
    for task in &mut sporadic.tasks {
        if task.curve().is_some() {
            task.period = period(task);
            task.arrival = Arrival::Sporadic;
        }
    }
    Cow::Owned(sporadic)
}
