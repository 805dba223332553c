//! Our errors as exceptions of Python, each message as its crate wrote it.

use pyo3::{PyErr, import_exception};
use shiftwork_client::{Error as Denial, Failure as Unanswered};
use shiftwork_policy::PolicyError as Refusal;
use shiftwork_study::StudyError as Failure;
use shiftwork_taskset::TasksetError;
use shiftwork_verbs::analyze::QuestionError;

import_exception!(shiftwork.errors, AgentError);
import_exception!(shiftwork.errors, InputError);
import_exception!(shiftwork.errors, NoAgentError);
import_exception!(shiftwork.errors, PolicyError);
import_exception!(shiftwork.errors, RefusedError);
import_exception!(shiftwork.errors, StudyError);

/// A value that makes no sense.
pub fn wrong(message: String) -> PyErr {
    InputError::new_err(message)
}

/// A text or options that were refused, with all mistakes and their places.
pub fn refused(error: &TasksetError) -> PyErr {
    input_error(error, None)
}

/// A mistake: what it is, line and column.
type Mistake = (String, Option<u32>, Option<u32>);

/// The error of all mistakes in a text, which is that of a file if it has a path.
fn input_error(error: &TasksetError, path: Option<String>) -> PyErr {
    let mut mistakes = error.mistakes().iter().map(|mistake| {
        let place = mistake.place();
        (
            mistake.detail(),
            place.map(|place| place.line),
            place.map(|place| place.column),
        )
    });
    let (detail, line, column) = mistakes.next().unwrap_or_default();
    let others: Vec<Mistake> = mistakes.collect();
    InputError::new_err((detail, line, column, path, others))
}

/// A policy that there is not, or that does not take the task set.
pub fn policy(error: &Refusal) -> PyErr {
    PolicyError::new_err(error.to_string())
}

/// A question about policies of which nothing is known.
pub fn question(error: &QuestionError) -> PyErr {
    PolicyError::new_err(error.to_string())
}

/// What is wrong with a study, or with the folder of one.
pub fn study(error: Failure) -> PyErr {
    match error {
        Failure::File { path, error } => input_error(&error, Some(path)),
        Failure::Policy { .. }
        | Failure::NoOverheads { .. }
        | Failure::Unsuitable { .. }
        | Failure::Draw { .. } => wrong(error.to_string()),
        error => StudyError::new_err(error.to_string()),
    }
}

/// What the daemon did not do, and which kind of failure that is.
pub fn agent(failure: &Unanswered) -> PyErr {
    let kind = kind_of(failure);
    let arguments = (failure.to_string(), kind);
    match kind {
        "refused" | "exhausted" => RefusedError::new_err(arguments),
        "no-agent" => NoAgentError::new_err(arguments),
        _ => AgentError::new_err(arguments),
    }
}

fn kind_of(failure: &Unanswered) -> &'static str {
    match failure {
        Unanswered::Agent(denial) => match denial {
            Denial::Refused { .. } => "refused",
            Denial::Forbidden { .. } => "forbidden",
            Denial::Invalid { .. } => "invalid",
            Denial::Missing { .. } => "missing",
            Denial::Exhausted { .. } => "exhausted",
            Denial::Broken { .. } => "broken",
        },
        Unanswered::NoAgent { .. } => "no-agent",
        Unanswered::NotPermitted { .. } => "not-permitted",
        Unanswered::Silent { .. } => "silent",
        Unanswered::Lost { .. } => "lost",
        Unanswered::Service(_) | Unanswered::Garbled { .. } => "garbled",
        Unanswered::OtherThread { .. } => "other-thread",
        _ => "internal",
    }
}
