//! What is guaranteed of a task set.

use std::sync::Arc;

use pyo3::prelude::*;
use shiftwork_analysis::verdicts::Criterion;
use shiftwork_verbs::analyze::{Findings, Question, Releases, output};

use crate::failure::{question, wrong};
use crate::overheads::Overheads;
use crate::set::TaskSet;
use crate::to_json;
use crate::wait::interruptible;

/// Everything that is known of the task set, as JSON in the shape of `shiftwork analyze --json`. `overheads` comes
/// with the name under which the result speaks of it.
///
/// After Ctrl-C the tests that were begun go on unseen until they are done, or until their steps are used up.
#[pyfunction]
#[pyo3(signature = (set, policies, *, criterion, releases, max_steps, scale, assign, remedies, overheads))]
#[expect(clippy::too_many_arguments, reason = "keywords, as Python names them")]
pub fn analyze(
    py: Python<'_>,
    set: &TaskSet,
    policies: Vec<String>,
    criterion: &str,
    releases: &str,
    max_steps: u64,
    scale: bool,
    assign: bool,
    remedies: bool,
    overheads: Option<(String, PyRef<'_, Overheads>)>,
) -> PyResult<String> {
    let asked = Question {
        policies,
        criterion: named(criterion)?,
        releases: of_name(releases)?,
        max_steps,
        scale,
        assign,
        remedies,
    };
    let set = Arc::clone(&set.0);
    let overheads = overheads.map(|(name, file)| (name, (*file.0).clone()));
    let found = interruptible(py, move |_| {
        let found = Findings::of(&asked, &set, overheads, &mut |_| ())?;
        Ok(output(&set, &found))
    })?;
    to_json(&found.map_err(|error| question(&error))?)
}

fn named(criterion: &str) -> PyResult<Criterion> {
    match criterion {
        "hard" => Ok(Criterion::Hard),
        "soft" => Ok(Criterion::Soft),
        other => Err(wrong(format!(
            "`criterion` is \"{other}\"; write \"hard\" (all deadlines are met) or \"soft\" (tardiness is bounded)"
        ))),
    }
}

fn of_name(releases: &str) -> PyResult<Releases> {
    let known = [Releases::Sporadic, Releases::AsWritten];
    known
        .into_iter()
        .find(|one| one.name() == releases)
        .ok_or_else(|| {
            wrong(format!(
                "`releases` is \"{releases}\"; write \"sporadic\" (any that are a period or more apart) or \"as-written\" \
                 (those of the task set)"
            ))
        })
}
