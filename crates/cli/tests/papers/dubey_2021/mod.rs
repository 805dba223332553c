//! R. Dubey, V. Banerjee, S. Hounsinou, G. Bloom, "Work-in-Progress: Strong APA Scheduling in a
//! Real-Time Operating System", EMSOFT 2021 Companion.
//!
//! Fig. 1 is a table in tests/scenarios (dubey_2021_fig1_weak.toml and …_strong.toml). Table 1 was
//! measured; its shape follows from Fig. 1 with about 3.1 s of work for each task: which task waits
//! for which, and for how long. T3 arrives a millisecond after the others.

use std::fs;
use std::path::Path;

use shiftwork_cli::catalogue::policies;
use shiftwork_model::{Instant, Invariant, Order, Span, TaskSet};

use crate::common::{Done, run, simulate};

fn example(name: &str) -> TaskSet {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/dubey-2021")
        .join(name);
    shiftwork_taskset::read(&fs::read_to_string(path).unwrap()).unwrap()
}

const fn at_ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// From release to first running, and from release to finish.
fn response_and_turnaround(done: &Done, set: &TaskSet, task: &str) -> (Span, Span) {
    let released = match task {
        "T3" => at_ms(1),
        _ => at_ms(0),
    };
    (
        done.start(set, task, 1).unwrap().since(released).unwrap(),
        done.finish(set, task, 1).unwrap().since(released).unwrap(),
    )
}

fn table_1(done: &Done, set: &TaskSet) -> [(Span, Span); 4] {
    ["T1", "T2", "T3", "T4"].map(|task| response_and_turnaround(done, set, task))
}

const C: Span = Span::from_ms(3_100);

#[test]
fn under_the_weak_scheduler_t3_waits_for_all_of_t1() {
    let set = example("fig1.toml");
    let done = run(&set, "weak-fp", at_ms(10_000));
    let no = Span::ZERO;
    let waits = C - Span::from_ms(1);
    assert_eq!(
        table_1(&done, &set),
        [(no, C), (no, C), (waits, waits + C), (no, C)]
    );
    assert_eq!(done.summary.shifts, 0);
}

#[test]
fn under_every_strong_scheduler_t3_starts_at_once_and_t4_waits_instead() {
    let set = example("fig1.toml");
    let mut judged = 0;
    for entry in policies() {
        if entry.traits.invariant != Invariant::Strong || entry.traits.order != Order::FixedPriority
        {
            continue;
        }
        let Some(done) = simulate(&set, entry, 1, at_ms(10_000)) else {
            continue;
        };
        let no = Span::ZERO;
        let t4 = C + C - Span::from_ms(1);
        assert_eq!(
            table_1(&done, &set),
            [(no, C), (no, C), (no, C), (no, t4)],
            "{}",
            entry.name
        );
        assert_eq!(done.summary.shifts, 1, "{}", entry.name);
        assert_eq!(done.summary.preemptions, 1, "{}", entry.name);
        judged += 1;
    }
    assert!(judged >= 2, "`strong-fp` and `hpa-fp` at least");
}

#[test]
fn a_weak_scheduler_starves_a_control_loop_that_a_strong_one_serves_in_time() {
    let set = example("starvation.toml");
    let misses = |policy: &str| {
        let done = run(&set, policy, at_ms(1_000));
        let of = |name: &str| {
            let tasks = &done.summary.tasks;
            let task = tasks.iter().find(|task| task.name == name).unwrap();
            (task.completed, task.misses)
        };
        (of("motor-control"), done.summary.deadline_misses)
    };
    assert_eq!(misses("weak-fp"), ((0, 99), 99));
    assert_eq!(misses("strong-fp"), ((100, 0), 0));
}
