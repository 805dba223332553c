//! The theorems of `docs/theory/strong-edf.md`: each against its definition, against schedules that try
//! to refute it, and with its constants changed, which a schedule must refute.
//!
//! `naive.rs` has the definitions in fractions, with changes; `schedule.rs` is EDF with the strong invariant
//! by definition, with any ties; `system.rs` makes task sets and releases. `density.rs` is about Theorem 1,
//! `factor.rs` about Theorem 2, `response.rs` and `potential.rs` about Theorem 3.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod density;
mod factor;
mod naive;
mod potential;
mod response;
mod schedule;
mod system;

/// Times more cases if `SHIFTWORK_LONG` is set.
fn times_if_long(few: u64, factor: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => few * factor,
        None => few,
    }
}

/// No part of a CPU is reserved for anything else.
fn whole() -> shiftwork_model::Share {
    shiftwork_model::Share::from_billionths(shiftwork_model::Share::WHOLE).unwrap()
}
