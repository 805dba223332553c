//! How verbs reach the agent, and what its answers mean for their exit status.

use shiftwork_client::{Client, Error, Failure as Unanswered, socket_path};

use crate::failure::Failure;

/// Connects to the agent.
pub fn connect() -> Result<Client, Failure> {
    Client::connect(socket_path()).map_err(|failure| of(&failure))
}

/// Whether the agent's answer is a plain no, which is no failure of ours.
pub fn refusal(failure: &Unanswered) -> Option<String> {
    match failure {
        Unanswered::Agent(error @ (Error::Refused { .. } | Error::Exhausted { .. })) => {
            Some(error.to_string())
        }
        _ => None,
    }
}

/// A call that brought no answer.
pub fn of(failure: &Unanswered) -> Failure {
    match failure {
        Unanswered::Agent(
            Error::Invalid { .. } | Error::Missing { .. } | Error::Forbidden { .. },
        ) => Failure::input(failure),
        _ => Failure::Machine(failure.to_string()),
    }
}
