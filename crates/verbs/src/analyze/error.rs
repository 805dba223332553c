//! Why a question about a task set makes no sense.

use std::fmt;

use shiftwork_policy::PolicyError;

/// Why nothing can be said about what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuestionError {
    /// There is no such policy.
    Policy(PolicyError),
    /// Affinities cannot be proposed for the policy with this name.
    NoProposal(&'static str),
}

impl fmt::Display for QuestionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy(error) => error.fmt(f),
            Self::NoProposal(name) => write!(
                f,
                "affinities cannot be proposed for {name}; `strong-edf` and `p-edf` are among those for which \
                 they can"
            ),
        }
    }
}

impl std::error::Error for QuestionError {}
