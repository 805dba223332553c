//! Hard deadlines under the strong invariant: how long a job waits at each set of CPUs that others can keep full.
//!
//! The theory is in `docs/theory/waiting-levels.md`, of tasks that suspend themselves in `docs/theory/suspensions.md`. `levels.rs` has the sets of CPUs at which a task can wait
//! and the tasks that can fill them, `prices.rs` the linear program that bounds how long it waits there,
//! `window.rs` the search for the response time, `earlier.rs` windows that begin before the release.

mod earlier;
mod earliest_deadline;
mod fixed_priority;
mod levels;
mod prices;
#[cfg(test)]
mod tests;
mod window;

pub use earliest_deadline::{waiting_levels_edf, waiting_levels_edf_with_suspensions};
pub(crate) use fixed_priority::waiting_levels_in_time;
pub use fixed_priority::{waiting_levels_fp, waiting_levels_fp_with_suspensions};
