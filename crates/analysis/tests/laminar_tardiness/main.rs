//! Tries to make jobs later than `laminar_tardiness` allows, under the policies that it is for.
//!
//! `system.rs` makes nested systems, most of them filled to the last bit; `game.rs` drives a policy
//! and lets adversaries choose releases while it runs; `climb.rs` improves on lists of releases with
//! the simulator; `exhaustive.rs` tries all releases of tiny systems; `examples.rs` has the values
//! of the document, and `deep.rs` has trees with many levels.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod climb;
mod deep;
mod examples;
mod exhaustive;
mod game;
mod limits;
mod reserved;
mod system;

/// Times more cases if `SHIFTWORK_LONG` is set.
fn times_if_long(few: u64, factor: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => few * factor,
        None => few,
    }
}
