//! Failures as codes, and the text of each thread's last failure.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use shiftwork_client::{Error, Failure};

/// `enum shiftwork_failure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[expect(missing_docs, reason = "documented in the header")]
pub enum Code {
    Refused = -1,
    Forbidden = -2,
    Invalid = -3,
    Missing = -4,
    Exhausted = -5,
    Broken = -6,
    NoAgent = -7,
    NotPermitted = -8,
    Silent = -9,
    Lost = -10,
    Garbled = -11,
    OtherThread = -12,
    Internal = -13,
}

/// Why a function fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) code: Code,
    pub(crate) text: String,
}

impl CallFailure {
    /// An invalid argument.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self {
            code: Code::Invalid,
            text: text.into(),
        }
    }
}

impl From<Failure> for CallFailure {
    fn from(failure: Failure) -> Self {
        Self {
            code: code_of(&failure),
            text: failure.to_string(),
        }
    }
}

fn code_of(failure: &Failure) -> Code {
    match failure {
        Failure::Agent(error) => match error {
            Error::Refused { .. } => Code::Refused,
            Error::Forbidden { .. } => Code::Forbidden,
            Error::Invalid { .. } => Code::Invalid,
            Error::Missing { .. } => Code::Missing,
            Error::Exhausted { .. } => Code::Exhausted,
            Error::Broken { .. } => Code::Broken,
        },
        Failure::NoAgent { .. } => Code::NoAgent,
        Failure::NotPermitted { .. } => Code::NotPermitted,
        Failure::Silent { .. } => Code::Silent,
        Failure::Lost { .. } => Code::Lost,
        Failure::Service(_) | Failure::Garbled { .. } => Code::Garbled,
        Failure::OtherThread { .. } => Code::OtherThread,
        // A variant added later.
        _ => Code::Internal,
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Sets the thread's last error. Has no effect while the thread's local storage is being destroyed.
pub(crate) fn set_last_error(failure: &CallFailure) -> Code {
    // One line, without NUL.
    let text: String = failure
        .text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect();
    let text = CString::new(text).unwrap_or_default();
    // Fails only while the thread ends.
    let _ = LAST.try_with(|last| last.replace(text));
    failure.code
}

/// The thread's last error, valid until the next one; empty if there is none.
pub(crate) fn last_error() -> *const c_char {
    const NONE: &CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(NONE.as_ptr())
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::PathBuf;

    use shiftwork_client::ServiceError;

    use super::*;

    #[test]
    fn every_failure_has_its_code() {
        let socket = || PathBuf::from("/run/x");
        let text = || String::from("words");
        let (reason, what, limit, parameter) = (text(), text(), text(), text());
        let of_agent = [
            (Error::Refused { reason: text() }, Code::Refused),
            (Error::Forbidden { reason: text() }, Code::Forbidden),
            (Error::Invalid { parameter, reason }, Code::Invalid),
            (Error::Missing { what }, Code::Missing),
            (Error::Exhausted { limit }, Code::Exhausted),
            (Error::Broken { reason: text() }, Code::Broken),
        ];
        let of_service = ServiceError::MethodNotFound { method: text() };
        let mut cases: Vec<(Failure, Code)> = of_agent
            .map(|(error, code)| (Failure::Agent(error), code))
            .into();
        cases.extend([
            (Failure::Service(of_service), Code::Garbled),
            (Failure::NoAgent { socket: socket() }, Code::NoAgent),
            (
                Failure::NotPermitted {
                    socket: socket(),
                    group: None,
                },
                Code::NotPermitted,
            ),
            (Failure::Silent { socket: socket() }, Code::Silent),
            (
                Failure::Lost {
                    socket: socket(),
                    error: ErrorKind::BrokenPipe.into(),
                },
                Code::Lost,
            ),
            (
                Failure::Garbled {
                    socket: socket(),
                    reason: text(),
                },
                Code::Garbled,
            ),
            (Failure::OtherThread { thread: 7 }, Code::OtherThread),
        ]);
        for (failure, code) in cases {
            let words = failure.to_string();
            let failure = CallFailure::from(failure);
            assert_eq!(failure, CallFailure { code, text: words });
        }
    }
}
