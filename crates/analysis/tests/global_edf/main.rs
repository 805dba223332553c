//! The tests for global EDF against the same tests as published, term by term in exact fractions.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod edges;
mod plain;

use plain::Task;
use shiftwork_analysis::global_edf::{bak, bar, bcl, bcli, ffdbf, gfb, load, rta};
use shiftwork_analysis::{NotShown, Outcome, Sporadic, Steps};
use shiftwork_model::{RandomStream, Span};

fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic {
        cost: Span::from_ns(cost),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
    }
}

/// Whether a test passes, and the response times if it gives any.
type Verdict = (bool, Option<Vec<u64>>);

/// A test and the same as published.
struct Pair {
    name: &'static str,
    found: fn(&[Sporadic], usize, &mut Steps) -> Option<Verdict>,
    plain: fn(&[Task], i128) -> Verdict,
}

fn plainly(outcome: Outcome<NotShown>) -> Option<Verdict> {
    match outcome {
        Outcome::StepLimit => None,
        Outcome::Pass(()) => Some((true, None)),
        Outcome::Fail(_) => Some((false, None)),
    }
}

fn with_bounds(outcome: Outcome<NotShown, Vec<Span>>) -> Option<Verdict> {
    match outcome {
        Outcome::StepLimit => None,
        Outcome::Pass(bounds) => {
            let bounds = bounds.into_iter().map(Span::as_ns).collect();
            Some((true, Some(bounds)))
        }
        Outcome::Fail(_) => Some((false, None)),
    }
}

fn bounds(bounds: Option<Vec<i128>>) -> Verdict {
    let small = |bounds: Vec<i128>| bounds.into_iter().map(|bound| bound as u64).collect();
    (bounds.is_some(), bounds.map(small))
}

const PAIRS: [Pair; 8] = [
    Pair {
        name: "gfb",
        found: |tasks, cpus, steps| plainly(gfb(tasks, cpus, steps)),
        plain: |tasks, m| (plain::gfb(tasks, m), None),
    },
    Pair {
        name: "bak",
        found: |tasks, cpus, steps| plainly(bak(tasks, cpus, steps)),
        plain: |tasks, m| (plain::bak(tasks, m), None),
    },
    Pair {
        name: "bcl",
        found: |tasks, cpus, steps| plainly(bcl(tasks, cpus, steps)),
        plain: |tasks, m| (plain::bcl(tasks, m), None),
    },
    Pair {
        name: "bcli",
        found: |tasks, cpus, steps| with_bounds(bcli(tasks, cpus, steps)),
        plain: |tasks, m| bounds(plain::bcli(tasks, m)),
    },
    Pair {
        name: "rta",
        found: |tasks, cpus, steps| with_bounds(rta(tasks, cpus, steps)),
        plain: |tasks, m| bounds(plain::rta(tasks, m)),
    },
    Pair {
        name: "bar",
        found: |tasks, cpus, steps| plainly(bar(tasks, cpus, steps)),
        plain: |tasks, m| (plain::bar(tasks, m), None),
    },
    Pair {
        name: "ffdbf",
        found: |tasks, cpus, steps| plainly(ffdbf(tasks, cpus, steps)),
        plain: |tasks, m| (plain::ffdbf(tasks, m), None),
    },
    Pair {
        name: "load",
        found: |tasks, cpus, steps| plainly(load(tasks, cpus, steps)),
        plain: |tasks, m| (plain::load(tasks, m), None),
    },
];

/// How much random testing is asked for.
fn rounds(few: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 100 * few,
        None => few,
    }
}

/// Compares one test with the published one; whether it passed.
fn agree(pair: &Pair, tasks: &[Sporadic], cpus: usize, which: &str) -> bool {
    let plain: Vec<Task> = tasks.iter().map(Task::of).collect();
    let expected = (pair.plain)(&plain, cpus as i128);
    let found = (pair.found)(tasks, cpus, &mut Steps::at_most(1_000_000_000));
    let name = pair.name;
    assert_eq!(
        found.as_ref(),
        Some(&expected),
        "{which}: {name} on {cpus} CPUs: {plain:?}"
    );
    expected.0
}

/// Periods with a small common multiple, so that the published tests end soon.
const PERIODS: [u64; 7] = [1, 2, 3, 4, 6, 8, 12];

/// A few tasks in small whole numbers, in which thresholds are often met exactly; the same one more
/// than once.
fn small(stream: &mut RandomStream) -> (Vec<Sporadic>, usize) {
    let cpus = 1 + stream.below(4);
    let deadlines = stream.below(3);
    let dense = 1 + stream.below(3);
    let count = stream.below(2 * cpus + 4);
    let mut tasks = Vec::new();
    while tasks.len() < count as usize {
        let period = PERIODS[stream.below(7) as usize];
        let cost = 1 + stream.below(period.div_ceil(dense));
        let deadline = match deadlines {
            0 => period,
            1 => cost + stream.below(period - cost + 1),
            _ => cost + stream.below(2 * period),
        };
        let copies = 1 + stream.below(3) / 2 * stream.below(2 * cpus);
        tasks.extend((0..copies).map(|_| sporadic(cost, period, deadline)));
    }
    tasks.truncate(count as usize);
    (tasks, cpus as usize)
}

fn small_sets_agree(name: &str, sets: u64) {
    let pair = PAIRS.iter().find(|pair| pair.name == name).unwrap();
    let (mut yes, mut no) = (0, 0);
    for seed in 0..rounds(sets) {
        let (tasks, cpus) = small(&mut RandomStream::new(seed, 62, 0));
        match agree(pair, &tasks, cpus, &format!("seed {seed}")) {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes > sets / 10 && no > sets / 10, "{yes} {no}");
}

#[test]
fn small_sets_have_the_verdicts_of_gfb() {
    small_sets_agree("gfb", 4_000);
}

#[test]
fn small_sets_have_the_verdicts_of_bak() {
    small_sets_agree("bak", 2_000);
}

#[test]
fn small_sets_have_the_verdicts_of_bcl() {
    small_sets_agree("bcl", 4_000);
}

#[test]
fn small_sets_have_the_verdicts_and_bounds_of_bcli() {
    small_sets_agree("bcli", 4_000);
}

#[test]
fn small_sets_have_the_verdicts_and_bounds_of_rta() {
    small_sets_agree("rta", 4_000);
}

#[test]
fn small_sets_have_the_verdicts_of_bar() {
    small_sets_agree("bar", 4_000);
}

#[test]
fn small_sets_have_the_verdicts_of_load() {
    small_sets_agree("load", 2_000);
}

#[test]
fn small_sets_have_the_verdicts_of_ffdbf() {
    small_sets_agree("ffdbf", 800);
}

/// Long jobs that must have run a part of their cost before a burst of short ones is due: a speed above
/// the greatest density leaves less of them to do.
fn burst(stream: &mut RandomStream) -> (Vec<Sporadic>, usize) {
    let cpus = 2 + stream.below(2);
    let density = 30 + stream.below(50);
    let long = (0..cpus + stream.below(2)).map(|_| {
        let deadline = 20 + stream.below(60);
        (deadline * density / 100, deadline)
    });
    let long: Vec<_> = long.collect();
    let short = (0..1 + stream.below(4)).map(|_| {
        let deadline = 4 + stream.below(20);
        (1 + stream.below(deadline * density / 100), deadline)
    });
    let short: Vec<_> = short.collect();
    let all = long.into_iter().chain(short);
    let tasks = all.map(|(cost, deadline)| sporadic(cost.max(1), 100, deadline));
    (tasks.collect(), cpus as usize)
}

#[test]
fn speeds_above_the_greatest_density_are_found() {
    let pair = PAIRS.iter().find(|pair| pair.name == "ffdbf").unwrap();
    let mut only_faster = 0;
    for seed in 0..rounds(1_000) {
        let (tasks, cpus) = burst(&mut RandomStream::new(seed, 62, 6));
        let passes = agree(pair, &tasks, cpus, &format!("seed {seed}"));
        let plain: Vec<Task> = tasks.iter().map(Task::of).collect();
        only_faster += u64::from(passes && !plain::ffdbf_at_density(&plain, cpus as i128));
    }
    assert!(only_faster > 10, "{only_faster}");
}

#[test]
fn what_passes_ffdbf_as_published_passes() {
    let mut passed = 0;
    for seed in 0..rounds(800) {
        let mut stream = RandomStream::new(seed, 62, 1);
        let (tasks, cpus) = small(&mut stream);
        let plain: Vec<Task> = tasks.iter().map(Task::of).collect();
        if cpus > 1 && plain::ffdbf_by_steps(&plain, cpus as i128) {
            let found = ffdbf(&tasks, cpus, &mut Steps::ordinary());
            assert_eq!(found, Outcome::Pass(()), "seed {seed}: {plain:?} on {cpus}");
            passed += 1;
        }
    }
    assert!(passed > 50, "{passed}");
}

/// Sets like those of studies: many tasks, milliseconds and microseconds. Periods have a small common
/// multiple so that fractions of 128 bits are enough.
fn large(stream: &mut RandomStream, constrained: bool) -> (Vec<Sporadic>, usize) {
    const PERIODS: [u64; 9] = [10, 12, 15, 20, 24, 30, 40, 60, 120];
    let cpus = 2 + stream.below(7);
    let share = 10 + stream.below(60);
    let count = cpus + stream.below(4 * cpus);
    let tasks = (0..count).map(|_| {
        let period = PERIODS[stream.below(9) as usize] * 1_000_000;
        let cost = 1_000 + stream.below(period * share / 100_000) * 1_000;
        let deadline = period / 4 * (2 + stream.below(3));
        let fits = constrained && cost <= deadline;
        let deadline = if fits { deadline } else { period };
        sporadic(cost, period, deadline)
    });
    (tasks.collect(), cpus as usize)
}

#[test]
fn large_sets_have_the_published_verdicts() {
    for name in ["gfb", "bak", "bcl", "bcli", "bar"] {
        let pair = PAIRS.iter().find(|pair| pair.name == name).unwrap();
        let mut passed = 0;
        for seed in 0..rounds(40) {
            let mut stream = RandomStream::new(seed, 62, 2);
            let (tasks, cpus) = large(&mut stream, seed % 2 == 1);
            passed += u64::from(agree(pair, &tasks, cpus, &format!("seed {seed}")));
        }
        assert!(passed > 0, "{name}");
    }
}

#[test]
fn large_sets_have_the_published_verdicts_of_slow_tests() {
    // In microseconds: the published ones count by single units or look at all instants.
    for name in ["rta", "load", "ffdbf"] {
        let pair = PAIRS.iter().find(|pair| pair.name == name).unwrap();
        let mut passed = 0;
        for seed in 0..rounds(if name == "rta" { 60 } else { 5 }) {
            let mut stream = RandomStream::new(seed, 62, 3);
            let (mut tasks, cpus) = large(&mut stream, seed % 2 == 1);
            tasks.truncate(if name == "rta" { 40 } else { 6 });
            for task in &mut tasks {
                let scale = if name == "rta" { 1_000 } else { 1_000_000 };
                let shorter = |span: Span| (span.as_ns() / scale).max(1);
                let (cost, period) = (shorter(task.cost), shorter(task.period));
                *task = sporadic(cost, period, shorter(task.deadline).max(cost).min(period));
            }
            passed += u64::from(agree(pair, &tasks, cpus, &format!("seed {seed}")));
        }
        assert!(passed > 0, "{name}");
    }
}

#[test]
fn all_pairs_of_the_smallest_tasks_agree() {
    let mut tasks = Vec::new();
    for (period, deadline) in (1..=3).flat_map(|period| (1..=4).map(move |d| (period, d))) {
        for cost in 1..=period.min(deadline) + u64::from(period == 2) {
            tasks.push(sporadic(cost, period, deadline));
        }
    }
    for one in &tasks {
        for other in &tasks {
            for cpus in 1..=2 {
                for pair in &PAIRS {
                    agree(pair, &[*one, *other], cpus, "exhaustive");
                }
            }
        }
    }
}
