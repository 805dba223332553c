//! The errors of the interface.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Why the daemon did not carry out a call; serializes to the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum Error {
    /// Not admitted.
    #[serde(rename = "org.shiftwork.Agent.Refused")]
    Refused {
        /// The condition that fails, and what would be admitted.
        reason: String,
    },
    /// The caller lacks permission.
    #[serde(rename = "org.shiftwork.Agent.Forbidden")]
    Forbidden {
        /// Why.
        reason: String,
    },
    /// A parameter has an invalid value.
    #[serde(rename = "org.shiftwork.Agent.Invalid")]
    Invalid {
        /// Its path, as "reservation.cost"; "message" if the message is not a call.
        parameter: String,
        /// Why it is invalid, and which values are valid.
        reason: String,
    },
    /// The thread or task does not exist.
    #[serde(rename = "org.shiftwork.Agent.Missing")]
    Missing {
        /// The thread or task, as in "there is no …".
        what: String,
    },
    /// A quota or limit of the user or control group is reached.
    #[serde(rename = "org.shiftwork.Agent.Exhausted")]
    Exhausted {
        /// The quota or limit.
        limit: String,
    },
    /// The daemon failed: its scheduler is no longer loaded.
    #[serde(rename = "org.shiftwork.Agent.Broken")]
    Broken {
        /// What happened to the scheduler.
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
            Self::Exhausted { limit } => write!(f, "limit reached: {limit}"),
            Self::Broken { reason } => write!(f, "the daemon failed: {reason}"),
        }
    }
}

impl core::error::Error for Error {}

/// The errors that every varlink service returns for calls that it does not implement.
///
/// # Source
/// The interface `org.varlink.service`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "error", content = "parameters")]
pub enum ServiceError {
    /// The service does not implement the interface.
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
    /// A parameter of a method of `org.varlink.service` is invalid.
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
