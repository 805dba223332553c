//! Nanoseconds per event of the core and of the reference implementation, on the same recorded runs.
//!
//! `cargo bench -p shiftwork-kernel-core --bench events -- 'arbitrary/m=24'` measures a part. Names
//! are load/affinities/CPUs/policy; there are ten tasks per CPU. Time is CPU time.
#![allow(missing_docs, reason = "the macros make public items")]
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; no decision depends on it"
)]

#[path = "../../policy/benches/workload/mod.rs"]
mod workload;

use std::rc::Rc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use shiftwork_kernel_core::POLICIES;
use shiftwork_policy::registry::{self, Entry};

use workload::clock::cpu_time;
use workload::recording::record;
use workload::replay::Replay;
use workload::runs::Run;
use workload::sets::{Case, Shape};

fn events(criterion: &mut Criterion) {
    let reference = registry::find("strong-edf").expect("the reference has this policy");
    for load in [75, 150] {
        for shape in [Shape::Global, Shape::ThreeLevel, Shape::Arbitrary] {
            for cpus in [4, 24, 64] {
                let case = Case::new(shape, cpus, load);
                let mut run = None;
                for policy in [&POLICIES[0], reference] {
                    let name = format!("{load}%/{}/m={cpus}/{}", shape.name(), policy.name);
                    criterion.bench_function(&name, |bencher| {
                        let run = run.get_or_insert_with(|| recorded(&case, reference));
                        let mut replay = Replay::new(policy, run).check_same_run();
                        bencher.iter_custom(|events| time_of(&mut replay, events));
                    });
                }
            }
        }
    }
}

/// The run of the reference; its events are replayed to both.
fn recorded(case: &Case, policy: &Entry) -> Rc<Run> {
    let set = case.task_set();
    let recording = record(&set, policy, 50 * case.tasks, 20_000);
    Rc::new(Run { set, recording })
}

/// Time that the policy needs for `events` events, without the resets between passes.
fn time_of(replay: &mut Replay<'_>, events: u64) -> Duration {
    let mut time = Duration::ZERO;
    let mut left = events as usize;
    while left > 0 {
        if replay.is_at_end() {
            replay.rewind();
        }
        let start = cpu_time();
        left -= replay.advance(left);
        time += cpu_time() - start;
    }
    time
}

fn short() -> Criterion {
    Criterion::default()
        .without_plots()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
}

criterion_group!(name = group; config = short(); targets = events);
criterion_main!(group);
