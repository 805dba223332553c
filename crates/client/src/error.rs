//! Answers that say no.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Why the agent did not do what it was asked; serialized, the reply that says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum Error {
    /// No room, with the sum that does not fit and what would.
    #[serde(rename = "org.shiftwork.Agent.Refused")]
    Refused {
        /// The sum, and what would be accepted.
        reason: String,
    },
    /// The caller may not do that.
    #[serde(rename = "org.shiftwork.Agent.Forbidden")]
    Forbidden {
        /// Who may.
        reason: String,
    },
    /// A parameter says something impossible.
    #[serde(rename = "org.shiftwork.Agent.Invalid")]
    Invalid {
        /// Where it is, as "reservation.cost"; "message" if what was sent is no call at all.
        parameter: String,
        /// What is wrong with it, and what would be accepted.
        reason: String,
    },
    /// There is no such thread, or task.
    #[serde(rename = "org.shiftwork.Agent.Missing")]
    Missing {
        /// What there is not.
        what: String,
    },
    /// Too many tasks or requests of this user or control group.
    #[serde(rename = "org.shiftwork.Agent.Exhausted")]
    Exhausted {
        /// How many there may be.
        limit: String,
    },
    /// The agent cannot: its scheduler is not loaded any more.
    #[serde(rename = "org.shiftwork.Agent.Broken")]
    Broken {
        /// What happened to it.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Refused { reason } => write!(f, "refused: {reason}"),
            Self::Forbidden { reason } => write!(f, "forbidden: {reason}"),
            Self::Invalid { parameter, reason } => write!(f, "`{parameter}`: {reason}"),
            Self::Missing { what } => write!(f, "there is no {what}"),
            Self::Exhausted { limit } => write!(f, "too many: {limit}"),
            Self::Broken { reason } => write!(f, "the agent cannot: {reason}"),
        }
    }
}

impl core::error::Error for Error {}

/// What every varlink service says to calls that it has no method for.
///
/// # Source
/// The interface `org.varlink.service`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum ServiceError {
    /// The service does not have the interface.
    #[serde(rename = "org.varlink.service.InterfaceNotFound")]
    InterfaceNotFound {
        /// Its name.
        interface: String,
    },
    /// The interface does not have the method.
    #[serde(rename = "org.varlink.service.MethodNotFound")]
    MethodNotFound {
        /// Its full name.
        method: String,
    },
    /// The method cannot be called in this way.
    #[serde(rename = "org.varlink.service.MethodNotImplemented")]
    MethodNotImplemented {
        /// Its full name.
        method: String,
    },
    /// A parameter of a method of `org.varlink.service` is wrong.
    #[serde(rename = "org.varlink.service.InvalidParameter")]
    InvalidParameter {
        /// Its name.
        parameter: String,
    },
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::InterfaceNotFound { interface } => write!(f, "has no interface `{interface}`"),
            Self::MethodNotFound { method } => write!(f, "has no method `{method}`"),
            Self::MethodNotImplemented { method } => {
                write!(f, "cannot upgrade the connection as `{method}` asks")
            }
            Self::InvalidParameter { parameter } => write!(f, "refuses parameter `{parameter}`"),
        }
    }
}

impl core::error::Error for ServiceError {}
