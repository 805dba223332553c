//! What the replay of measured runs finds, and what it does not.

mod lagging;
mod machine;
mod simulated;
