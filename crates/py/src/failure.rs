//! Our errors as exceptions of Python, each message as its crate wrote it.

use pyo3::{PyErr, import_exception};
use shiftwork_client::{Error as Denial, Failure as Unanswered};
use shiftwork_policy::PolicyError as Refusal;
use shiftwork_study::StudyError as Failure;
use shiftwork_taskset::{Place, TasksetError};
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

/// A text or options that were refused, with the place if there is one.
pub fn refused(error: &TasksetError) -> PyErr {
    match parted(error) {
        (detail, Some(place)) => InputError::new_err((detail, place.line, place.column)),
        (detail, None) => wrong(detail),
    }
}

/// The message without its place, and the place.
fn parted(error: &TasksetError) -> (String, Option<Place>) {
    let text = error.to_string();
    let place = error.place();
    let detail =
        place.and_then(|place| text.strip_prefix(&format!("{place}: ")).map(str::to_owned));
    (detail.unwrap_or(text), place)
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
        Failure::File { path, error } => {
            let (detail, place) = parted(&error);
            let (line, column) =
                place.map_or((None, None), |place| (Some(place.line), Some(place.column)));
            InputError::new_err((detail, line, column, path))
        }
        Failure::Policy { .. }
        | Failure::NoOverheads { .. }
        | Failure::Test { .. }
        | Failure::Draw { .. } => wrong(error.to_string()),
        error => StudyError::new_err(error.to_string()),
    }
}

/// What the agent did not do, and which kind of failure that is.
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
