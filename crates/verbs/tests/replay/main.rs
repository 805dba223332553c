//! What the replay of measured runs finds, and what it does not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod lagging;
mod machine;
mod simulated;
