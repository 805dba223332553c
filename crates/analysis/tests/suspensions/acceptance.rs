//! How many random task sets are shown to be in time, by suspensions that count as computing and by what is known of them.

use shiftwork_analysis::uniprocessor::{fp_rta, qpa};
use shiftwork_analysis::verdicts::{Answer, Criterion, Question, decide};
use shiftwork_analysis::{Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Affinity, CpuSet, RandomStream, Share, Span, TaskSet};
use shiftwork_policy::registry;

use super::schedules::Order;
use super::{Plain, count, edf, edf_responses, shown, verdicts};

/// What each test may do on several CPUs.
const STEPS: u64 = 5_000_000;

/// Suspensions as a share of T - C, in percent.
const SUSPENSIONS: [(f64, f64); 3] = [(1.0, 10.0), (10.0, 30.0), (10.0, 50.0)];

/// Tasks with this utilization in all by UUniFast, periods from 10 to 1,000 ms, log-uniform, implicit deadlines, priorities by
/// period; nanoseconds are microseconds here.
fn random(
    stream: &mut RandomStream,
    tasks: u64,
    utilization: f64,
    (least, most): (f64, f64),
) -> Vec<Plain> {
    let mut left = utilization;
    let mut drawn = Vec::new();
    for place in 0..tasks {
        let rest = match tasks - place - 1 {
            0 => 0.0,
            more => left * stream.unit().powf(1.0 / more as f64),
        };
        let period = (10_000.0 * 100_f64.powf(stream.unit())) as u64;
        let cost = (((left - rest) * period as f64) as u64).clamp(1, period);
        left = rest;
        let share = (least + (most - least) * stream.unit()) / 100.0;
        drawn.push(Plain {
            cost,
            suspension: ((period - cost) as f64 * share) as u64,
            period,
            deadline: period,
            priority: 0,
        });
    }
    drawn.sort_by_key(|task| task.period);
    for (place, task) in drawn.iter_mut().enumerate() {
        task.priority = place as u32 + 1;
    }
    drawn
}

/// Whether the tasks are in time if they compute while they are suspended.
fn computing(tasks: &[Plain], order: Order) -> bool {
    let of = |task: &Plain| {
        let mut ranked: Ranked = task.suspending().ranked;
        ranked.task.cost = Span::from_ns(task.cost + task.suspension);
        ranked
    };
    let ranked: Vec<Ranked> = tasks.iter().map(of).collect();
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    let steps = &mut Steps::ordinary();
    match order {
        Order::Priority => fp_rta(&ranked, whole, steps).passes(),
        Order::Deadline => {
            let tasks: Vec<Sporadic> = ranked.iter().map(|one| one.task).collect();
            qpa(&tasks, whole, steps) == Outcome::Pass(())
        }
    }
}

/// Whether a test shows that a set is in time.
type Shows<'a, Set> = &'a dyn Fn(&Set) -> bool;

/// Prints a table of `docs/theory/suspensions.md` with `SHIFTWORK_LONG` and `--nocapture`: of so many sets that are drawn with this
/// utilization and these suspensions, the first test shows fewer than the others, one after the other.
fn more_are_shown<Set: std::fmt::Debug, const TESTS: usize>(
    (name, sets): (&str, u64),
    draw: impl Fn(&mut RandomStream, f64, (f64, f64)) -> Set,
    computing: impl Fn(&Set) -> bool,
    tests: [Shows<'_, Set>; TESTS],
) {
    for suspensions in SUSPENSIONS {
        let (mut first, mut sums) = (0, [0; TESTS]);
        for tenths in 1..=9 {
            let (mut before, mut found) = (0, [0; TESTS]);
            for index in 0..sets {
                let stream = &mut RandomStream::new(index, 144, tenths);
                let tasks = draw(stream, tenths as f64 / 10.0, suspensions);
                let mut last = computing(&tasks);
                before += u64::from(last);
                for (found, is_shown) in found.iter_mut().zip(tests) {
                    let now = is_shown(&tasks);
                    assert!(now || !last, "set {index}, {tenths}: {tasks:?}");
                    *found += u64::from(now);
                    last = now;
                }
            }
            let percent = |found: u64| found as f64 * 100.0 / sets as f64;
            println!(
                "{name} {suspensions:?} U = 0.{tenths}: {:.1} -> {:.1?} %",
                percent(before),
                found.map(percent)
            );
            first += before;
            for (sum, found) in sums.iter_mut().zip(found) {
                *sum += found;
            }
        }
        let rises = [first].into_iter().chain(sums);
        assert!(
            rises.is_sorted_by(|before, now| before < now),
            "{suspensions:?}: {first} {sums:?}"
        );
    }
}

/// On one CPU.
fn more_are_shown_on_one_cpu<const TESTS: usize>(
    order: Order,
    tests: [Shows<'_, Vec<Plain>>; TESTS],
) {
    let draw = |stream: &mut RandomStream, utilization: f64, suspensions: (f64, f64)| {
        let tasks = 5 + stream.below(6);
        random(stream, tasks, utilization, suspensions)
    };
    let computing = |tasks: &Vec<Plain>| computing(tasks, order);
    more_are_shown((&format!("{order:?}"), count(40)), draw, computing, tests);
}

#[test]
fn more_sets_are_shown_than_if_suspensions_counted_as_computing() {
    more_are_shown_on_one_cpu(Order::Priority, [&|tasks| shown(tasks).is_ok()]);
}

#[test]
fn more_sets_are_shown_under_edf_than_if_suspensions_counted_as_computing() {
    let by_demand = |tasks: &Vec<Plain>| edf::passes(tasks);
    let by_bounds_too =
        |tasks: &Vec<Plain>| edf_responses::are_in_time(tasks) || edf::passes(tasks);
    more_are_shown_on_one_cpu(Order::Deadline, [&by_demand, &by_bounds_too]);
}

/// How many CPUs there are where there are several.
const CPUS: usize = 4;

/// Eight to 16 tasks, two to four for each CPU, with this utilization of each CPU; a task is bound to all CPUs, or as likely to all, to a half
/// or to one of them if affinities are `nested`.
fn random_on_several(
    stream: &mut RandomStream,
    utilization: f64,
    suspensions: (f64, f64),
    nested: bool,
) -> Vec<(Plain, CpuSet)> {
    let number = 2 * CPUS as u64 + stream.below(2 * CPUS as u64 + 1);
    let tasks = loop {
        let tasks = random(stream, number, utilization * CPUS as f64, suspensions);
        // No task needs more than a CPU.
        if tasks.iter().all(|task| task.cost < task.period) {
            break tasks;
        }
    };
    let bound = tasks.into_iter().map(|task| {
        let size = match nested {
            true => CPUS >> stream.below(3),
            false => CPUS,
        };
        let first = size * stream.below((CPUS / size) as u64) as usize;
        let cpus = CpuSet::first(CPUS);
        (task, cpus.iter().skip(first).take(size).collect())
    });
    bound.collect()
}

/// Whether verdicts say that such tasks are in time under this policy, as they are or if they compute while they are suspended.
fn are_shown(policy: &str, tasks: &[(Plain, CpuSet)], computing: bool) -> bool {
    let of = |(task, cpus): &(Plain, CpuSet)| {
        // A job is suspended after the first of two units at least.
        let cost = task.cost.max(2);
        let (cost, suspension) = match computing {
            true => (cost + task.suspension, 0),
            false => (cost, task.suspension),
        };
        verdicts::task([cost, suspension, task.period], task.priority, *cpus)
    };
    let set = TaskSet::new("", CPUS, tasks.iter().map(of).collect());
    let bound: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    let traits = registry::find(policy).unwrap().traits;
    let question = Question::new(traits, &bound, Criterion::Hard, STEPS);
    decide(&set, &question).answer == Answer::Schedulable
}

fn more_are_shown_on_several_cpus(policy: &str, nested: bool) {
    let draw = |stream: &mut RandomStream, utilization: f64, suspensions: (f64, f64)| {
        random_on_several(stream, utilization, suspensions, nested)
    };
    more_are_shown(
        (policy, count(20)),
        draw,
        |tasks: &Vec<_>| are_shown(policy, tasks, true),
        [&|tasks: &Vec<_>| are_shown(policy, tasks, false)],
    );
}

#[test]
fn more_sets_are_shown_under_global_priorities() {
    more_are_shown_on_several_cpus("g-fp", false);
}

#[test]
fn more_sets_are_shown_under_global_edf() {
    more_are_shown_on_several_cpus("g-edf", false);
}

#[test]
fn more_sets_are_shown_under_strong_priorities() {
    more_are_shown_on_several_cpus("strong-fp", true);
}

#[test]
fn more_sets_are_shown_under_strong_edf() {
    more_are_shown_on_several_cpus("strong-edf", true);
}
