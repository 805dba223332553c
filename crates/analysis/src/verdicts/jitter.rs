//! Tests that know of jitter and of arrival curves.

use shiftwork_model::{Affinity, PolicyTraits, Span, Task, TaskSet};

use super::case::Shape;
use super::conclude::{improve, judgement};
use super::divide::Divided;
use super::ground::Ground;
use super::{Answer, Criterion, Found, PolicyAnalysis};
use crate::arrivals::curve_of;
use crate::exact::whole;
use crate::global_edf::gfb;
use crate::policy::{is_edf, is_fp};
use crate::stand_ins::with_earlier_deadlines;
use crate::suspensions::suspends;
use crate::uniprocessor::{WithCurve, WithJitter, fp_rta_with_jitter, qpa_with_curves};
use crate::{Outcome, Steps};

/// The test that bounds response times of tasks with jitter or arrival curves under fixed priorities.
pub(super) const RESPONSE_TIMES: &str = "fp-rta";

/// The tests, each once, that show tasks with jitter or arrival curves to be in time, bound so and with so many steps for all parts: under EDF
/// `qpa` and `gfb` of tasks with earlier deadlines, and under fixed priorities `fp-rta` with jitter and curves, as far as they are
/// admitted. `None` if some part is not shown. The lemmas are in `docs/theory/jitter.md` and `docs/theory/curves.md`.
pub(super) fn in_time(
    set: &TaskSet,
    policy: &PolicyTraits,
    (bound, steps): (&[Affinity], u64),
    is_admitted: impl Fn(&str) -> bool,
) -> Option<Vec<&'static str>> {
    let waits_within = suspends(set) || set.first_locking().is_some();
    if waits_within || !(is_edf(policy) || is_fp(policy)) {
        return None;
    }
    let earlier = is_edf(policy).then(|| with_earlier_deadlines(set));
    let asked = match &earlier {
        Some(earlier) => earlier.as_ref()?,
        None => set,
    };
    let grounds = Divided::new(asked, policy).grounds(bound, steps);
    let placed: usize = grounds.iter().map(|ground| ground.case.ids.len()).sum();
    if placed < set.tasks.len() {
        return None;
    }
    let shown = grounds.iter().map(|ground| {
        let test = match (ground.case.shape, is_edf(policy)) {
            (Shape::One(_), true) => "qpa",
            (Shape::One(_), false) => RESPONSE_TIMES,
            (Shape::Uniform, true) => "gfb",
            _ => return None,
        };
        (is_admitted(test) && passes(set, ground, test)).then_some(test)
    });
    let mut by: Vec<&'static str> = shown.collect::<Option<_>>()?;
    by.sort_unstable();
    by.dedup();
    Some(by)
}

/// Whether this test passes for a part of the set, of which the case has earlier deadlines under EDF.
fn passes(set: &TaskSet, ground: &Ground, test: &str) -> bool {
    let case = &ground.case;
    let mut steps = Steps::at_most(ground.steps);
    let curves = case.ids.iter().map(|id| curve_of(&set.tasks[id.index()]));
    match test {
        "qpa" => {
            let tasks = case.tasks.iter().zip(curves);
            let tasks: Vec<WithCurve<'_>> = tasks
                .map(|(&task, curve)| WithCurve { task, curve })
                .collect();
            qpa_with_curves(&tasks, whole(), &mut steps) == Outcome::Pass(())
        }
        "gfb" => gfb(&case.tasks, case.cpus.len(), &mut steps) == Outcome::Pass(()),
        _ => {
            let jitter = case.ids.iter().map(|id| set.tasks[id.index()].jitter);
            let tasks = case.ranked().into_iter().zip(jitter).zip(curves);
            let tasks: Vec<WithJitter<'_>> = tasks
                .map(|((ranked, jitter), curve)| WithJitter {
                    ranked,
                    curve,
                    jitter,
                })
                .collect();
            fp_rta_with_jitter(&tasks, whole(), &mut steps) == Outcome::Pass(())
        }
    }
}

/// Notes that these tests show all deadlines to be met.
pub(super) fn note(set: &TaskSet, found: &mut PolicyAnalysis, by: &[&'static str]) {
    for judgement in [&mut found.hard, &mut found.soft] {
        if let [only] = by {
            let same = judgement.tests.iter_mut().filter(|(test, _)| test == only);
            same.for_each(|(_, known)| *known = Found::Pass);
        }
        if judgement.answer == Answer::Unknown {
            (judgement.answer, judgement.by) = (Answer::Schedulable, by.to_vec());
        }
    }
    if let Some(&by) = by.last() {
        for (best, task) in found.best.iter_mut().zip(&set.tasks) {
            improve(best, task.deadline, by);
        }
    }
}

/// Notes bounds on the response times of all tasks by [`RESPONSE_TIMES`].
pub(super) fn note_responses(set: &TaskSet, found: &mut PolicyAnalysis, responses: &[Span]) {
    for (best, &response) in found.best.iter_mut().zip(responses) {
        improve(best, response, RESPONSE_TIMES);
    }
    let in_time = |(task, response): (&Task, &Span)| *response <= task.deadline;
    let is_in_time = set.tasks.iter().zip(responses).all(in_time);
    for (criterion, is_shown) in [(Criterion::Hard, is_in_time), (Criterion::Soft, true)] {
        let judgement = judgement(found, criterion);
        if is_shown && judgement.answer == Answer::Unknown {
            (judgement.answer, judgement.by) = (Answer::Schedulable, vec![RESPONSE_TIMES]);
        }
        for (test, known) in &mut judgement.tests {
            if *test == RESPONSE_TIMES {
                *known = match is_shown {
                    true => Found::Pass,
                    false => Found::Fail,
                };
            }
        }
    }
}
