//! How many random task sets are shown to be in time, by suspensions that count as computing and by what is known of them.

use shiftwork_analysis::uniprocessor::{fp_rta, qpa};
use shiftwork_analysis::{Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{RandomStream, Share, Span};

use super::schedules::Order;
use super::{Plain, count, edf, shown};

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
fn more_are_shown(order: Order, is_shown: fn(&[Plain]) -> bool) {
    let sets = count(40);
    for suspensions in SUSPENSIONS {
        let mut sums = [0; 2];
        for tenths in 1..=9 {
            let mut found = [0; 2];
            for index in 0..sets {
                let stream = &mut RandomStream::new(index, 144, tenths);
                let tasks = 5 + stream.below(6);
                let tasks = random(stream, tasks, tenths as f64 / 10.0, suspensions);
                let [before, now] = [computing(&tasks, order), is_shown(&tasks)];
                assert!(now || !before, "set {index}, {tenths}: {tasks:?}");
                found[0] += u64::from(before);
                found[1] += u64::from(now);
            }
            let percent = found.map(|found| found as f64 * 100.0 / sets as f64);
            println!("{order:?} {suspensions:?} U = 0.{tenths}: {percent:.1?} %");
            sums = [sums[0] + found[0], sums[1] + found[1]];
        }
        assert!(sums[1] > sums[0], "{suspensions:?}: {sums:?}");
    }
}

#[test]
fn more_sets_are_shown_than_if_suspensions_counted_as_computing() {
    more_are_shown(Order::Priority, |tasks| shown(tasks).is_ok());
}

#[test]
fn more_sets_are_shown_under_edf_than_if_suspensions_counted_as_computing() {
    more_are_shown(Order::Deadline, edf::passes);
}
