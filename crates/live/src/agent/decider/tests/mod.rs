//! The decider on an ideal machine does what the simulator does, and copes with late and lost reports.
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod mutexes;
mod programs;
mod same;
mod sets;
mod trouble;
mod world;

use shiftwork_model::Machines;
use shiftwork_policy::registry::{self, Entry};

/// All policies of the registry and of the kernel core.
fn policies() -> impl Iterator<Item = &'static Entry> {
    let own = registry::POLICIES.iter();
    own.chain(shiftwork_kernel_core::POLICIES)
        .filter(|entry| entry.traits.machines != Machines::None)
}

/// The seeds to try: many more if `SHIFTWORK_LONG` is set.
fn seeds(few: u64) -> std::ops::RangeInclusive<u64> {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 1..=50 * few,
        None => 1..=few,
    }
}
