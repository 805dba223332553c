//! Instructions per event, for every policy, counted by valgrind: the same on every run.
//!
//! Each count is of [`EVENTS`] events of one kind, in the order of `workload::counted`. Needs
//! `valgrind` and `gungraun-runner` in the version of the library; `.ci/bench` sees to it.
#![allow(missing_docs, reason = "the macros make public items")]

mod workload;

use gungraun::{
    Callgrind, EntryPoint, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use std::hint::black_box;

use shiftwork_policy::{Event, Policy, Switches};

use workload::counted::{Counted, EVENTS, Kind, counted};
use workload::recording::Step;
use workload::replay::Replay;
use workload::runs::Library;

/// The only function whose instructions count, with all that it calls.
#[inline(never)]
fn counted_event(policy: &mut dyn Policy, event: Event<'_>, out: &mut Switches) {
    policy.on_event(black_box(event), black_box(out));
}

#[library_benchmark(config = LibraryBenchmarkConfig::default()
    .tool(Callgrind::with_args(["--cache-sim=no"]).entry_point(EntryPoint::Custom("*::counted_event*".into()))))]
#[benches::of(iter = counted())]
fn event(count: Counted) {
    let run = Library::short().get(&count.case, count.policy);
    let mut replay = Replay::new(count.policy, &run);
    let mut seen = 0;
    while seen < EVENTS {
        let done = replay.advance_with(1, |policy, step, out| match (step, count.kind) {
            (Step::Wake(_), Kind::Wake) | (Step::Complete(_), Kind::Complete) => {
                seen += 1;
                counted_event(policy, step.event(), out);
            }
            _ => policy.on_event(step.event(), out),
        });
        assert_eq!(done, 1, "the recording has enough events of each kind");
    }
}

library_benchmark_group!(name = events; benchmarks = event);
main!(library_benchmark_groups = events);
