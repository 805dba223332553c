//! Results that papers publish, computed again. One folder per paper; what a paper leaves open and
//! had to be assumed is said there.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;

mod bonifaci_2016;
mod brandenburg_2008;
mod dubey_2021;

use shiftwork_model::{Affinity, CpuSet, Span, Task};

/// A periodic task in whole milliseconds that may use these CPUs.
fn task(name: &str, cost_ms: u64, period_ms: u64, cpus: &str) -> Task {
    let cpus: CpuSet = cpus.parse().unwrap();
    let affinity = Affinity::new(cpus).unwrap();
    Task::periodic(
        name,
        Span::from_ms(cost_ms),
        Span::from_ms(period_ms),
        affinity,
    )
}
