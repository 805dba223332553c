//! How many random task sets are shown to be in time, by suspensions that count as computing and by what is known of them.

use shiftwork_analysis::uniprocessor::{fp_rta, qpa};
use shiftwork_analysis::{Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{RandomStream, Share, Span};

use super::schedules::Order;
use super::{Plain, count, edf, edf_responses, shown};

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

/// Prints a table of `docs/theory/suspensions.md` with `SHIFTWORK_LONG` and `--nocapture`.
fn more_are_shown<const TESTS: usize>(order: Order, tests: [fn(&[Plain]) -> bool; TESTS]) {
    let sets = count(40);
    for suspensions in SUSPENSIONS {
        let (mut first, mut sums) = (0, [0; TESTS]);
        for tenths in 1..=9 {
            let (mut before, mut found) = (0, [0; TESTS]);
            for index in 0..sets {
                let stream = &mut RandomStream::new(index, 144, tenths);
                let tasks = 5 + stream.below(6);
                let tasks = random(stream, tasks, tenths as f64 / 10.0, suspensions);
                let mut last = computing(&tasks, order);
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
                "{order:?} {suspensions:?} U = 0.{tenths}: {:.1} -> {:.1?} %",
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

#[test]
fn more_sets_are_shown_than_if_suspensions_counted_as_computing() {
    more_are_shown(Order::Priority, [|tasks| shown(tasks).is_ok()]);
}

#[test]
fn more_sets_are_shown_under_edf_than_if_suspensions_counted_as_computing() {
    let by_bounds_too = |tasks: &[Plain]| edf_responses::are_in_time(tasks) || edf::passes(tasks);
    more_are_shown(Order::Deadline, [edf::passes, by_bounds_too]);
}
