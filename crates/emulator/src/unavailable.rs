//! Why there is no emulator here, and what would help.

use std::fmt;

/// The emulator, or a kernel for it, cannot be had on this machine.
///
/// It says nothing about what was to be run: a test that needs the emulator is skipped, loudly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// What was tried and how it went.
    pub reason: String,
    /// What the user can do about it.
    pub remedy: String,
}

impl Unavailable {
    /// Both texts are whole phrases without a final full stop.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

impl std::error::Error for Unavailable {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_remedy() {
        let unavailable = Unavailable::new("there is no apt-get", "install the package apt");
        assert_eq!(
            unavailable.to_string(),
            "there is no apt-get; install the package apt"
        );
    }
}
