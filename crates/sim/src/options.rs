//! The options of a simulation.

use shiftwork_model::{Instant, Overheads};

/// How to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random numbers: sporadic gaps and random execution times.
    pub seed: u64,
    /// The run covers everything before this instant, and completions exactly at it.
    pub horizon: Instant,
    /// The costs of scheduling; `None` if it costs nothing.
    pub overheads: Option<Overheads>,
    /// Whether background work that has waited for a second gets its reserve.
    pub reserve_server: bool,
}
