//! Small random task sets.

use shiftwork_analysis::{Outcome, Ranked, Sporadic};
use shiftwork_model::{Priority, RandomStream, Span};

/// How deadlines relate to periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlines {
    Implicit,
    Constrained,
    Arbitrary,
}

pub const DEADLINES: [Deadlines; 3] = [
    Deadlines::Implicit,
    Deadlines::Constrained,
    Deadlines::Arbitrary,
];

pub fn ranked(cost: u64, period: u64, deadline: u64, priority: u32) -> Ranked {
    Ranked {
        task: Sporadic {
            cost: Span::from_ns(cost),
            period: Span::from_ns(period),
            deadline: Span::from_ns(deadline),
        },
        priority: Priority::new(priority).unwrap(),
    }
}

/// `count` tasks of periods up to `longest`, with U of at most the number of CPUs; distinct priorities in any order.
pub fn random(
    (count, longest, cpus): (u64, u64, u64),
    deadlines: Deadlines,
    stream: &mut RandomStream,
) -> Vec<Ranked> {
    loop {
        let mut order: Vec<u32> = (1..=count as u32).collect();
        stream.shuffle(&mut order);
        let tasks: Vec<Ranked> = order
            .into_iter()
            .map(|priority| {
                let period = 2 + stream.below(longest - 1);
                let share = 1 + stream.below(200 * cpus / count);
                let cost = (period * share / 100).clamp(1, period);
                let deadline = match deadlines {
                    Deadlines::Implicit => period,
                    Deadlines::Constrained => cost + stream.below(period - cost + 1),
                    Deadlines::Arbitrary => cost + stream.below(2 * period - cost + 1),
                };
                ranked(cost, period, deadline, priority)
            })
            .collect();
        let parts = tasks.iter().map(|one| {
            let [cost, period] = [one.task.cost, one.task.period].map(Span::as_ns);
            // A common multiple of all periods up to 14.
            360_360 / period * cost
        });
        if parts.sum::<u64>() <= 360_360 * cpus {
            return tasks;
        }
    }
}

pub fn plain(tasks: &[Ranked]) -> Vec<Sporadic> {
    tasks.iter().map(|ranked| ranked.task).collect()
}

pub fn deadlines(tasks: &[Ranked]) -> Vec<u64> {
    tasks.iter().map(|one| one.task.deadline.as_ns()).collect()
}

/// Whether no response is longer than the deadline.
pub fn in_time(tasks: &[Ranked], responses: &[u64]) -> bool {
    responses
        .iter()
        .zip(deadlines(tasks))
        .all(|(&response, deadline)| response <= deadline)
}

pub fn passes<Failure, Proof>(outcome: &Outcome<Failure, Proof>) -> bool {
    match outcome {
        Outcome::Pass(_) => true,
        Outcome::Fail(_) => false,
        Outcome::StepLimit => panic!("out of steps"),
    }
}

/// The bounds, if the test passes.
pub fn bounds<Failure>(outcome: Outcome<Failure, Vec<Span>>) -> Option<Vec<u64>> {
    match outcome {
        Outcome::Pass(bounds) => Some(bounds.into_iter().map(Span::as_ns).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("out of steps"),
    }
}

/// How many times as many random cases as usual.
pub fn factor() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20,
        None => 1,
    }
}
