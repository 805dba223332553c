//! The tests for one CPU against a simulation of every job, tick by tick, until the pattern repeats.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::uniprocessor::{fp_rta, qpa};
use shiftwork_analysis::{Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Priority, RandomStream, Share, Span};

const WHOLE: Option<Share> = Share::from_billionths(Share::WHOLE);

fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic {
        cost: Span::from_ns(cost),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
    }
}

/// Runs all tasks from a common start, releasing as often as allowed, one unit at a time; `rank`
/// orders the ready jobs. Whether all deadlines up to `until` are met. The jobs of a task run in
/// order.
fn all_in_time(tasks: &[Sporadic], until: u64, rank: impl Fn(usize, u64) -> u64) -> bool {
    let mut pending: Vec<(usize, u64, u64)> = Vec::new();
    for now in 0..until {
        for (index, task) in tasks.iter().enumerate() {
            if now % task.period.as_ns() == 0 {
                pending.push((index, now + task.deadline.as_ns(), task.cost.as_ns()));
            }
        }
        if pending.iter().any(|&(_, deadline, _)| deadline <= now) {
            return false;
        }
        let next = (0..pending.len()).min_by_key(|&place| {
            let (index, deadline, _) = pending[place];
            (rank(index, deadline), deadline)
        });
        if let Some(place) = next {
            pending[place].2 -= 1;
            if pending[place].2 == 0 {
                pending.remove(place);
            }
        }
    }
    pending.iter().all(|&(_, deadline, _)| deadline > until)
}

fn lcm(a: u64, b: u64) -> u64 {
    let gcd = |mut a, mut b| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    a / gcd(a, b) * b
}

fn random_tasks(stream: &mut RandomStream, deadline_percent: u64) -> Vec<Sporadic> {
    (0..1 + stream.below(4))
        .map(|_| {
            let period = 2 + stream.below(11);
            let cost = 1 + stream.below(period.div_ceil(2));
            let longest = (period * deadline_percent / 100).max(cost);
            sporadic(cost, period, cost + stream.below(longest - cost + 1))
        })
        .collect()
}

fn overloaded(tasks: &[Sporadic], hyperperiod: u64) -> bool {
    let jobs = |task: &Sporadic| hyperperiod / task.period.as_ns() * task.cost.as_ns();
    tasks.iter().map(jobs).sum::<u64>() > hyperperiod
}

#[test]
fn edf_verdicts_are_those_of_the_simulation() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..4_000 {
        let mut stream = RandomStream::new(seed, 32, 1);
        let percent = [100, 100, 250][stream.below(3) as usize];
        let tasks = random_tasks(&mut stream, percent);
        let hyperperiod = tasks
            .iter()
            .fold(1, |all, task| lcm(all, task.period.as_ns()));
        let expected = !overloaded(&tasks, hyperperiod)
            && all_in_time(&tasks, 2 * hyperperiod + 60, |_, deadline| deadline);
        let found = qpa(&tasks, WHOLE.unwrap(), &mut Steps::ordinary());
        assert_eq!(
            found == Outcome::Pass(()),
            expected,
            "seed {seed}: {tasks:?} {found:?}"
        );
        assert_ne!(found, Outcome::StepLimit, "seed {seed}");
        match expected {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes > 500 && no > 500, "{yes} {no}");
}

#[test]
fn fixed_priority_verdicts_are_those_of_the_simulation() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..4_000 {
        let mut stream = RandomStream::new(seed, 32, 2);
        let percent = [100, 100, 250][stream.below(3) as usize];
        let tasks = random_tasks(&mut stream, percent);
        let hyperperiod = tasks
            .iter()
            .fold(1, |all, task| lcm(all, task.period.as_ns()));
        let expected = !overloaded(&tasks, hyperperiod)
            && all_in_time(&tasks, 2 * hyperperiod + 60, |index, _| index as u64);
        let ranked: Vec<Ranked> = (1..)
            .zip(&tasks)
            .map(|(rank, &task)| Ranked {
                task,
                priority: Priority::new(rank).unwrap(),
            })
            .collect();
        let found = fp_rta(&ranked, WHOLE.unwrap(), &mut Steps::ordinary());
        assert_eq!(
            found == Outcome::Pass(()),
            expected,
            "seed {seed}: {tasks:?} {found:?}"
        );
        match expected {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes > 500 && no > 500, "{yes} {no}");
}

#[test]
fn a_smaller_supply_is_a_slower_cpu() {
    // At four fifths of the speed every cost counts five quarters: scale all times to whole numbers.
    for seed in 0..2_000 {
        let mut stream = RandomStream::new(seed, 32, 3);
        let tasks = random_tasks(&mut stream, 150);
        let slower = Share::from_billionths(800_000_000).unwrap();
        let scaled: Vec<Sporadic> = tasks
            .iter()
            .map(|task| {
                let [cost, period, deadline] =
                    [task.cost, task.period, task.deadline].map(Span::as_ns);
                sporadic(5 * cost, 4 * period, 4 * deadline)
            })
            .collect();
        let verdict = |tasks: &[Sporadic], supply| {
            matches!(
                qpa(tasks, supply, &mut Steps::ordinary()),
                Outcome::Pass(())
            )
        };
        assert_eq!(
            verdict(&tasks, slower),
            verdict(&scaled, WHOLE.unwrap()),
            "seed {seed}: {tasks:?}"
        );
    }
}

#[test]
fn a_published_example_has_its_published_response_times() {
    // Joseph and Pandya's recurrence on the textbook example (Burns and Wellings, "Real-Time Systems
    // and Programming Languages"): C = 3, 3, 5 and T = 7, 12, 20 give R = 3, 6, 20.
    let task = |cost, period, deadline, rank| Ranked {
        task: sporadic(cost, period, deadline),
        priority: Priority::new(rank).unwrap(),
    };
    let verdict = |last| {
        let tasks = [task(3, 7, 3, 1), task(3, 12, 6, 2), task(5, 20, last, 3)];
        fp_rta(&tasks, WHOLE.unwrap(), &mut Steps::ordinary())
    };
    assert_eq!(verdict(20), Outcome::Pass(()));
    assert!(matches!(verdict(19), Outcome::Fail(late) if late.place == 2));
}

#[test]
fn a_test_that_runs_out_of_steps_says_so() {
    let tasks = [sporadic(1, 3, 2), sporadic(1_000_003, 2_000_003, 1_999_000)];
    assert_eq!(
        qpa(&tasks, WHOLE.unwrap(), &mut Steps::at_most(3)),
        Outcome::StepLimit
    );
}

#[test]
fn impossible_tasks_fail_without_harm() {
    let longest = u64::MAX;
    for tasks in [
        vec![sporadic(0, 1, 1)],
        vec![sporadic(1, 0, 1)],
        vec![
            sporadic(longest, longest, longest),
            sporadic(longest, longest, longest),
        ],
    ] {
        let found = qpa(&tasks, WHOLE.unwrap(), &mut Steps::ordinary());
        assert!(matches!(found, Outcome::Fail(_)), "{tasks:?}: {found:?}");
    }
    let none = Share::from_billionths(0).unwrap();
    let found = qpa(&[sporadic(1, 2, 2)], none, &mut Steps::ordinary());
    assert!(matches!(found, Outcome::Fail(_)));
}
