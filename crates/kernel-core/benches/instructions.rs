//! Instructions per event of the core and of the reference implementation, counted by valgrind: the
//! same on every run.
//!
//! Each count is of [`EVENTS`] events of one kind, on the same recorded run for both; [`cases`] names
//! them by position. Needs `valgrind` and `gungraun-runner` in the version of the library.
#![allow(missing_docs, reason = "the macros make public items")]

#[path = "../../policy/benches/workload/mod.rs"]
mod workload;

use std::hint::black_box;
use std::rc::Rc;

use gungraun::{
    Callgrind, EntryPoint, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use shiftwork_kernel_core::POLICIES;
use shiftwork_policy::registry::{self, Entry};
use shiftwork_policy::{Event, Policy, Switches};

use workload::counted::{EVENTS, Kind};
use workload::recording::{Step, record};
use workload::replay::Replay;
use workload::runs::Run;
use workload::sets::{Case, Shape};

#[derive(Clone, Copy)]
struct Counted {
    case: Case,
    policy: &'static Entry,
    kind: Kind,
}

fn reference() -> &'static Entry {
    registry::find("strong-edf").expect("the reference has this policy")
}

/// 75% then 150% load; global, three-level, arbitrary; 4, 24, 64 CPUs; core, reference; wake, complete.
fn cases() -> Vec<Counted> {
    let mut cases = Vec::new();
    for load in [75, 150] {
        for shape in [Shape::Global, Shape::ThreeLevel, Shape::Arbitrary] {
            for cpus in [4, 24, 64] {
                let case = Case::new(shape, cpus, load);
                for policy in [&POLICIES[0], reference()] {
                    let both = [Kind::Wake, Kind::Complete];
                    cases.extend(both.map(|kind| Counted { case, policy, kind }));
                }
            }
        }
    }
    cases
}

/// The function whose instructions count, including its callees.
#[inline(never)]
fn counted_event(policy: &mut dyn Policy, event: Event<'_>, out: &mut Switches) {
    policy.on_event(black_box(event), black_box(out));
}

#[library_benchmark(config = LibraryBenchmarkConfig::default()
    .tool(Callgrind::default().entry_point(EntryPoint::Custom("*::counted_event*".into()))))]
#[benches::of(iter = cases())]
fn event(count: Counted) {
    let set = count.case.task_set();
    let recording = record(&set, reference(), 20 * count.case.tasks, 3_000);
    let run = Rc::new(Run { set, recording });
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
