//! The results of the verbs, as data for the command line and Python.
//!
//! This crate joins the others to answers: which policies there are, what is guaranteed of a task set, how a
//! policy is prepared for a simulation; and it owns the shapes of the JSON that says so. It must never
//! contain an algorithm, arguments of a command line, a terminal, a file or a clock.
//!
//! Start reading at [`catalogue`], then [`admission`] and [`analyze`].

pub mod admission;
pub mod analyze;
pub mod catalogue;
pub mod policies;
mod promise;
pub mod replay;
pub mod simulate;

pub use admission::why_nothing_is_guaranteed;
pub use promise::quantum_rule;
