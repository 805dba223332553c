//! Nanoseconds per event, for every policy: the time of one event of a recorded run.
//!
//! `cargo bench --bench events -- '75%/three-level/m=24'` measures a part. Names are
//! load/affinities/CPUs/policy. Time is CPU time. `wake` and `complete` at the end select events of
//! one kind, timed one by one on the wall clock: the cost of reading it is taken off, and events
//! that were interrupted are left out. The instruction counts separate the kinds better.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock; nothing is decided by it"
)]
#![allow(missing_docs, reason = "the macros make public items")]

mod workload;

use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use shiftwork_policy::registry::Entry;

use workload::clock::cpu_time;
use workload::recording::Step;
use workload::replay::Replay;
use workload::runs::{self, Library, Run};

/// Light, heavy, and far too much, so that backlogs are long.
const LOADS: [u64; 3] = [75, 85, 150];

/// The load at which wake and complete are measured separately.
const APART: u64 = 75;

fn events(criterion: &mut Criterion) {
    let mut library = Library::new();
    let clock = clock_cost();
    for (case, policy) in runs::all(&LOADS) {
        let name = format!(
            "{}%/{}/m={}/{}",
            case.load,
            case.shape.name(),
            case.cpus,
            policy.name
        );
        let mut get = || library.get(&case, policy);
        criterion.bench_function(&name, |bencher| {
            let run = get();
            let mut replay = Replay::new(policy, &run).check_same_run();
            bencher.iter_custom(|events| all_kinds(&mut replay, events));
        });
        if case.load != APART {
            continue;
        }
        for (kind, is_kind) in KINDS {
            criterion.bench_function(&format!("{name}/{kind}"), |bencher| {
                let run = get();
                let mut kinds = OneKind::new(policy, &run, is_kind, clock);
                bencher.iter_custom(|events| kinds.time_of(events));
            });
        }
    }
}

type IsKind = fn(&Step) -> bool;

const KINDS: [(&str, IsKind); 2] = [
    ("wake", |step| matches!(step, Step::Wake(_))),
    ("complete", |step| matches!(step, Step::Complete(_))),
];

/// How long the policy needs for so many events; going back to the beginning is not counted.
fn all_kinds(replay: &mut Replay<'_>, events: u64) -> Duration {
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

/// Times the events of one kind, among the others.
struct OneKind<'a> {
    replay: Replay<'a>,
    is_kind: IsKind,
    clock: Duration,
    /// What takes longer was interrupted.
    longest: Duration,
}

impl<'a> OneKind<'a> {
    fn new(policy: &'a Entry, run: &'a Run, is_kind: IsKind, clock: Duration) -> Self {
        let mut replay = Replay::new(policy, run);
        let mean = all_kinds(&mut replay, SAMPLE) / SAMPLE as u32;
        Self {
            replay,
            is_kind,
            clock,
            longest: mean * 50 + Duration::from_micros(5),
        }
    }

    fn time_of(&mut self, events: u64) -> Duration {
        let (mut time, mut seen) = (Duration::ZERO, 0);
        while seen < events {
            if self.replay.is_at_end() {
                self.replay.rewind();
            }
            if let Some(one) = self.time_of_next()
                && one < self.longest
            {
                time += one.saturating_sub(self.clock);
                seen += 1;
            }
        }
        time
    }

    fn time_of_next(&mut self) -> Option<Duration> {
        let is_kind = self.is_kind;
        let mut time = None;
        self.replay.advance_with(1, |policy, step, out| {
            let start = Instant::now();
            policy.on_event(step.event(), out);
            time = is_kind(step).then(|| start.elapsed());
        });
        time
    }
}

/// Events from which the mean is taken.
const SAMPLE: u64 = 500;

/// What reading the clock twice in a row shows, at best.
fn clock_cost() -> Duration {
    let twice = || {
        let start = Instant::now();
        start.elapsed()
    };
    (0..1_000).map(|_| twice()).min().unwrap_or_default()
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .sample_size(10)
        .nresamples(2_000)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300));
    targets = events
}
criterion_main!(benches);
