//! The connection of verbs to the daemon, and the exit status for its errors.

use shiftwork_client::{Client, Error, Failure as Unanswered, socket_path};

use crate::failure::Failure;

/// Connects to the daemon.
pub fn connect() -> Result<Client, Failure> {
    Client::connect(socket_path()).map_err(|failure| of(&failure))
}

/// The reason if the daemon refused the request, which is an answer and not a failure.
pub fn refusal(failure: &Unanswered) -> Option<String> {
    match failure {
        Unanswered::Agent(error @ (Error::Refused { .. } | Error::Exhausted { .. })) => {
            Some(error.to_string())
        }
        _ => None,
    }
}

/// The failure of a call.
pub fn of(failure: &Unanswered) -> Failure {
    match failure {
        Unanswered::Agent(
            Error::Invalid { .. } | Error::Missing { .. } | Error::Forbidden { .. },
        ) => Failure::input(failure),
        _ => Failure::Machine(failure.to_string()),
    }
}
