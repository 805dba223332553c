//! Memory does not grow with the horizon, not even under overload.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{NS, options, set};
use shiftwork_model::{Arrival, OnOverrun, Work};
use shiftwork_policy::registry;
use shiftwork_sim::Simulation;

/// Resident memory of the process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn overloaded(horizon: u64) {
    let mut set = set(1, &[(900, 10), (900, 10), (900, 10)]);
    set.tasks[1].arrival = Arrival::Sporadic;
    set.tasks[2].work = Work::Uniform(NS(500), NS(2_000));
    set.tasks[2].on_overrun = OnOverrun::Throttle;
    let entry = registry::find("g-edf").unwrap();
    let policy = entry.build(&set).unwrap();
    let outcome = Simulation::new(&set, policy, &entry.traits, options(horizon)).run(&mut ());
    assert!(outcome.events > horizon / 1_000);
}

#[test]
fn overloaded_run_stores_no_pending_jobs() {
    overloaded(10_000);
    let before = resident_kib();
    // Half a million jobs of each task stay pending: with a word each, 12 MB.
    overloaded(5_000_000);
    let grown = resident_kib() - before;
    assert!(grown < 2_000, "the peak grew by {grown} KiB");
}
