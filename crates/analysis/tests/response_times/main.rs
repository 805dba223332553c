//! Worst-case response times on one CPU against their definition: the longest response in any schedule.
//!
//! The definition is executed one unit of time after the other, for all offsets of all tasks, or for all
//! patterns of releases. It shares nothing with what it judges, not even what is known of worst cases.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod definition;
mod formula;
mod limits;
mod schedules;
#[path = "../ticks/mod.rs"]
mod ticks;

use shiftwork_analysis::uniprocessor::{edf_rta, fp_response_times};
use shiftwork_analysis::{NotShown, Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Priority, RandomStream, Share, Span};
use ticks::{lcm, sporadic};

const WHOLE: Share = Share::from_billionths(Share::WHOLE).unwrap();

/// A task in whole units of time.
#[derive(Clone, Copy, Debug)]
struct Plain {
    cost: u64,
    period: u64,
    deadline: u64,
}

/// Up to so many tasks that need at most one CPU, often all of it. Deadlines up to `percent` of the periods.
fn random_tasks(stream: &mut RandomStream, most: u64, periods: &[u64], percent: u64) -> Vec<Plain> {
    let mut tasks = Vec::new();
    let hyperperiod = periods.iter().fold(1, |all, &period| lcm(all, period));
    let mut left = hyperperiod;
    for _ in 0..1 + stream.below(most) {
        let period = periods[stream.below(periods.len() as u64) as usize];
        let room = left / (hyperperiod / period);
        if room == 0 {
            continue;
        }
        let cost = 1 + stream.below(room);
        left -= cost * (hyperperiod / period);
        let longest = (period * percent / 100).max(1);
        let deadline = match stream.below(3) {
            0 => period,
            _ => 1 + stream.below(longest),
        };
        tasks.push(Plain {
            cost,
            period,
            deadline,
        });
    }
    tasks
}

fn as_sporadic(tasks: &[Plain]) -> Vec<Sporadic> {
    let one = |task: &Plain| sporadic(task.cost, task.period, task.deadline);
    tasks.iter().map(one).collect()
}

/// In the order of the tasks, the first the most urgent.
fn as_ranked(tasks: &[Plain]) -> Vec<Ranked> {
    let ranks = (1..).map(|rank| Priority::new(rank).unwrap());
    let ranked = as_sporadic(tasks).into_iter().zip(ranks);
    ranked
        .map(|(task, priority)| Ranked { task, priority })
        .collect()
}

fn in_ns(outcome: &Outcome<NotShown, Vec<Span>>) -> Option<Vec<u64>> {
    match outcome {
        Outcome::Pass(responses) => Some(responses.iter().map(|span| span.as_ns()).collect()),
        _ => None,
    }
}

fn edf(tasks: &[Plain]) -> Option<Vec<u64>> {
    in_ns(&edf_rta(&as_sporadic(tasks), WHOLE, &mut Steps::ordinary()))
}

fn fp(tasks: &[Plain]) -> Option<Vec<u64>> {
    in_ns(&fp_response_times(
        &as_ranked(tasks),
        WHOLE,
        &mut Steps::ordinary(),
    ))
}
