//! Under SCHED_DEADLINE with the four repairs (`dl-sp`) the tardiness of every task is bounded.
//!
//! Random sets that conditions (1) and (2) of Tang et al. allow, as loaded as these let them be, are
//! simulated with periodic, sporadic and bursting releases (`campaign.rs`), and an adversary chooses
//! releases to make migrating tasks as late as possible (`adversary.rs`). `examples.rs` has the
//! paper's own examples. With `SHIFTWORK_LONG` set, 20,000 sets; use `--release`.
//!
//! *The criterion for tardiness.* The paper shows that a bound exists, and gives none. The bound of
//! `laminar_tardiness` under the strong invariant, plus one or two jobs of every migrating task, is
//! not one. With a task that always runs, or without a reserve, time that an inversion leaves
//! unused is never made up for. Tardiness then rises for thousands of periods before it stops, to
//! 80 times that under the strong invariant in one of the tests. So a run is made four times as
//! long, repeatedly, until that no longer raises the maximum tardiness by half. The growth of
//! Example 5, with the square root of the time, doubles each time and would never pass; that of the
//! maximum of more and more random jobs is far slower. Slower growth is not detected.
//!
//! *Inversions.* Each affinity-related one (see `shiftwork_trace::Inversions`) begins with a migrating job in
//! the way, and by Example 8 it ends with that job. So none may outlast its cost, and none may be direct.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod adversary;
mod campaign;
mod examples;
mod run;
mod system;

/// Whether there is time for everything.
fn is_long() -> bool {
    std::env::var_os("SHIFTWORK_LONG").is_some()
}
