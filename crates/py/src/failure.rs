//! Our errors as exceptions of Python, each message as its crate wrote it.

use pyo3::{PyErr, import_exception};
use shiftwork_policy::PolicyError as Refusal;
use shiftwork_taskset::TasksetError;
use shiftwork_verbs::analyze::QuestionError;

import_exception!(shiftwork.errors, InputError);
import_exception!(shiftwork.errors, PolicyError);

/// A value that makes no sense.
pub fn wrong(message: String) -> PyErr {
    InputError::new_err(message)
}

/// A text or options that were refused, with the place if there is one.
pub fn refused(error: &TasksetError) -> PyErr {
    let text = error.to_string();
    match error.place() {
        Some(place) => {
            let detail = text.strip_prefix(&format!("{place}: ")).unwrap_or(&text);
            InputError::new_err((detail.to_owned(), place.line, place.column))
        }
        None => wrong(text),
    }
}

/// A policy that there is not, or that does not take the task set.
pub fn policy(error: &Refusal) -> PyErr {
    PolicyError::new_err(error.to_string())
}

/// A question about policies of which nothing is known.
pub fn question(error: &QuestionError) -> PyErr {
    PolicyError::new_err(error.to_string())
}
