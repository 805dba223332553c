//! Response times under fixed priorities with release jitter, against schedules of one CPU.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ticks;

use shiftwork_analysis::uniprocessor::{WithJitter, fp_rta_with_jitter};
use shiftwork_analysis::{Outcome, Ranked, Steps};
use shiftwork_model::{Priority, RandomStream, Share, Span};
use ticks::{factor, sporadic};

const WHOLE: Option<Share> = Share::from_billionths(Share::WHOLE);

fn task(cost: u64, period: u64, deadline: u64, jitter: u64, priority: u32) -> WithJitter<'static> {
    let ranked = Ranked {
        task: sporadic(cost, period, deadline),
        priority: Priority::new(priority).unwrap(),
    };
    WithJitter {
        ranked,
        curve: None,
        jitter: Span::from_ns(jitter),
    }
}

fn verdict(tasks: &[WithJitter<'_>]) -> Outcome<shiftwork_analysis::uniprocessor::TooLate> {
    fp_rta_with_jitter(tasks, WHOLE.unwrap(), &mut Steps::ordinary())
}

/// The least deadline with which the last task is shown, all others being in time.
fn bound(tasks: &[WithJitter<'_>], most: u64) -> Option<u64> {
    (1..=most).find(|&deadline| {
        let mut tasks = tasks.to_vec();
        for task in &mut tasks {
            task.ranked.task.deadline = Span::from_ns(10 * most);
        }
        tasks.last_mut().unwrap().ranked.task.deadline = Span::from_ns(deadline);
        verdict(&tasks) == Outcome::Pass(())
    })
}

/// A job: when it arrives and when it is ready.
type Job = (u64, u64);

/// The longest time from an arrival of the last task to its finish, the first task being the most
/// urgent.
fn longest(tasks: &[WithJitter<'_>], jobs: &[Vec<Job>]) -> u64 {
    let mut pending: Vec<(usize, usize, u64)> = Vec::new();
    for (index, jobs) in jobs.iter().enumerate() {
        let cost = tasks[index].ranked.task.cost.as_ns();
        pending.extend((0..jobs.len()).map(|job| (index, job, cost)));
    }
    let mut worst = 0;
    for now in 0.. {
        // In the order of priorities and arrivals, as they were listed.
        let ready = |&(index, job, _): &(usize, usize, u64)| jobs[index][job].1 <= now;
        if let Some(place) = pending.iter().position(ready) {
            pending[place].2 -= 1;
            if pending[place].2 == 0 {
                let (index, job, _) = pending.remove(place);
                if index + 1 == tasks.len() {
                    worst = worst.max(now + 1 - jobs[index][job].0);
                }
            }
        }
        if pending.is_empty() {
            break;
        }
    }
    worst
}

/// Random tasks that leave the CPU idle at times, the first the most urgent: with jitter, those that
/// do not may keep it busy for ever.
fn random(stream: &mut RandomStream, count: u64, periods: u64) -> Vec<WithJitter<'static>> {
    (1..=count as u32)
        .map(|priority| {
            let period = count + 1 + stream.below(periods);
            let cost = 1 + stream.below(((period - 1) / count).max(1));
            task(cost, period, period, stream.below(2 * period), priority)
        })
        .collect()
}

#[test]
fn first_jobs_with_maximum_jitter_ready_together_reach_the_bound() {
    let mut later = 0;
    for seed in 0..600 * factor() {
        let mut stream = RandomStream::new(seed, 72, 0);
        let count = 1 + stream.below(3);
        let tasks = random(&mut stream, count, 12);
        let Some(bound) = bound(&tasks, 120) else {
            continue;
        };
        // All first jobs have waited for their whole jitter when they become ready together; the
        // others are ready as soon as they arrive.
        let start = 100;
        let jobs: Vec<Vec<Job>> = tasks
            .iter()
            .map(|task| {
                let period = task.ranked.task.period.as_ns();
                let first = start - task.jitter.as_ns();
                let arrivals = (0..60).map(|job| first + job * period);
                arrivals.map(|at| (at, at.max(start))).collect()
            })
            .collect();
        assert_eq!(longest(&tasks, &jobs), bound, "seed {seed}: {tasks:?}");
        later += u64::from(bound > tasks.last().unwrap().ranked.task.period.as_ns());
    }
    assert!(later > 30, "{later}");
}

#[test]
fn no_choice_of_offsets_and_jitters_is_worse() {
    for seed in 0..40 * factor() {
        let mut stream = RandomStream::new(seed, 72, 1);
        let mut tasks = random(&mut stream, 2, 4);
        for task in &mut tasks {
            task.jitter = Span::from_ns(stream.below(3));
        }
        let Some(bound) = bound(&tasks, 60) else {
            continue;
        };
        let periods: Vec<u64> = tasks.iter().map(|t| t.ranked.task.period.as_ns()).collect();
        let choices: Vec<u64> = tasks.iter().map(|t| t.jitter.as_ns() + 1).collect();
        // Three jobs of each; one offset is enough, as only the difference matters.
        let all: u64 = choices.iter().map(|&choices| choices.pow(3)).product();
        for offset in 0..periods[0] + periods[1] {
            for mut choice in 0..all {
                let mut jobs = Vec::new();
                for (index, &period) in periods.iter().enumerate() {
                    let first = [offset, periods[0]][index];
                    let mut ready = 0;
                    let of_task = (0..3).map(|job| {
                        let arrival = first + job * period;
                        // In the order of arrivals.
                        ready = ready.max(arrival + choice % choices[index]);
                        choice /= choices[index];
                        (arrival, ready)
                    });
                    jobs.push(of_task.collect());
                }
                let seen = longest(&tasks, &jobs);
                assert!(
                    seen <= bound,
                    "seed {seed}: {tasks:?} {jobs:?}: {seen} > {bound}"
                );
            }
        }
    }
}

#[test]
fn jitter_of_its_own_is_added_and_of_others_may_cost_a_job() {
    let two = |own, other| [task(2, 5, 5, other, 1), task(3, 9, 9, own, 2)];
    assert_eq!(bound(&two(0, 0), 90), Some(5));
    assert_eq!(bound(&two(2, 0), 90), Some(7));
    assert_eq!(bound(&two(0, 1), 90), Some(7));
    assert_eq!(bound(&two(2, 1), 90), Some(9));
}

#[test]
fn the_longest_times_do_no_harm() {
    let most = u64::MAX;
    for (cost, period) in [(1, 1), (most, most), (1, most)] {
        let tasks = [
            task(cost, period, most, most, 1),
            task(1, most, most, most, 2),
        ];
        let mut steps = Steps::at_most(1_000);
        let found = fp_rta_with_jitter(&tasks, WHOLE.unwrap(), &mut steps);
        assert_ne!(found, Outcome::Pass(()), "{cost} {period}");
    }
}
