//! The tests for one CPU are exact.

use shiftwork_analysis::uniprocessor::{np_edf, np_fp_response_times, np_fp_rta};
use shiftwork_analysis::{Outcome, Ranked, Steps};
use shiftwork_model::{Order, RandomStream, Span};

use crate::search::Rules;
use crate::sets::{DEADLINES, Deadlines, bounds, factor, in_time, passes, plain, random, ranked};

const MOST_STATES: usize = 6_000;

/// The longest response of each task of all schedules, if they can be looked through.
fn searched(tasks: &[Ranked], order: Order, early: bool) -> Option<Vec<u64>> {
    let rules = Rules {
        tasks,
        cpus: 1,
        order,
        early,
    };
    rules.responses(100, MOST_STATES)
}

#[test]
fn np_edf_passes_exactly_where_every_schedule_meets_all_deadlines() {
    let mut seen = [0; 2];
    for seed in 0..240 * factor() {
        let mut stream = RandomStream::new(seed, 91, 0);
        let deadlines = DEADLINES[seed as usize % 3];
        let tasks = random((1 + stream.below(4), 8, 1), deadlines, &mut stream);
        let early = seed % 5 == 0;
        let Some(responses) = searched(&tasks, Order::Edf, early) else {
            continue;
        };
        let expected = in_time(&tasks, &responses);
        let found = np_edf(&plain(&tasks), &mut Steps::ordinary());
        assert_eq!(
            passes(&found),
            expected,
            "seed {seed}: {tasks:?}: {found:?} {responses:?}"
        );
        seen[usize::from(expected)] += 1;
    }
    assert!(seen.iter().all(|&count| count > 30), "{seen:?}");
}

#[test]
fn np_fp_response_times_are_the_longest_of_every_schedule() {
    let (mut seen, mut later) = ([0; 2], 0);
    for seed in 0..240 * factor() {
        let mut stream = RandomStream::new(seed, 91, 1);
        let deadlines = DEADLINES[seed as usize % 3];
        let tasks = random((1 + stream.below(4), 8, 1), deadlines, &mut stream);
        let early = seed % 5 == 0;
        let Some(responses) = searched(&tasks, Order::FixedPriority, early) else {
            continue;
        };
        let at = format!("seed {seed}: {tasks:?}");
        let found = bounds(np_fp_response_times(&tasks, &mut Steps::ordinary()));
        assert_eq!(found.as_ref(), Some(&responses), "{at}");
        let found = np_fp_rta(&tasks, &mut Steps::ordinary());
        let expected = in_time(&tasks, &responses);
        assert_eq!(passes(&found), expected, "{at}");
        if let Outcome::Fail(late) = found {
            // What it names is a lower bound above the deadline.
            let deadline = tasks[late.place].task.deadline;
            assert!(late.response > deadline, "{at}");
            assert!(late.response.as_ns() <= responses[late.place], "{at}");
        }
        seen[usize::from(expected)] += 1;
        later += usize::from(longest_is_not_of_the_first_job(&tasks, &responses));
    }
    assert!(
        seen.iter().all(|&count| count > 30) && later > 0,
        "{seen:?} {later}"
    );
}

/// Whether the longest response of a task with a deadline up to its period is not that of the first job of the busy
/// period, which is the classical mistake.
fn longest_is_not_of_the_first_job(tasks: &[Ranked], responses: &[u64]) -> bool {
    (0..tasks.len()).any(|place| {
        let own = &tasks[place];
        let others = || tasks.iter().filter(|one| one.priority != own.priority);
        let rest = others().filter(|one| one.priority > own.priority);
        let blocking = rest.map(|one| one.task.cost.as_ns() - 1).max().unwrap_or(0);
        let urgent = others().filter(|one| one.priority < own.priority);
        let urgent: Vec<_> = urgent.map(|one| (one.task.cost, one.task.period)).collect();
        let begins = |start: u64| {
            let jobs = urgent
                .iter()
                .map(|(cost, period)| (start / period.as_ns() + 1) * cost.as_ns());
            blocking + jobs.sum::<u64>() == start
        };
        let first = (0..200).find(|&start| begins(start));
        let response = first.map(|start| start + own.task.cost.as_ns());
        own.task.deadline <= own.task.period && response.is_some_and(|one| one < responses[place])
    })
}

#[test]
fn second_job_of_a_busy_period_is_later_than_the_first() {
    // Davis et al. 2007, Section 3, in units of 0.1 ms.
    let tasks = [
        ranked(10, 25, 25, 1),
        ranked(10, 35, 32, 2),
        ranked(10, 35, 35, 3),
    ];
    let found = bounds(np_fp_response_times(&tasks, &mut Steps::ordinary())).unwrap();
    // The first job of the third task takes 30; what comes meanwhile keeps the CPU busy until 50. So its second, released
    // at 35, begins at 60 and takes 35.
    assert_eq!(found, [19, 29, 35]);
}

#[test]
fn released_at_the_instant_of_a_decision_takes_part_in_it() {
    // The blocker leaves 4; were it to leave 5, the other would be late.
    let tasks = [ranked(5, 20, 20, 2), ranked(3, 9, 7, 1)];
    assert!(passes(&np_edf(&plain(&tasks), &mut Steps::ordinary())));
    assert!(passes(&np_fp_rta(&tasks, &mut Steps::ordinary())));
    let tasks = [ranked(6, 20, 20, 2), ranked(3, 9, 7, 1)];
    let Outcome::Fail(found) = np_edf(&plain(&tasks), &mut Steps::ordinary()) else {
        panic!("5 and 3 do not fit 7");
    };
    assert_eq!(found.blocker, Some(0));
    assert_eq!(found.overfull.length, Span::from_ns(7));
    assert_eq!(found.overfull.demand, Span::from_ns(3));
    assert!(!passes(&np_fp_rta(&tasks, &mut Steps::ordinary())));
}

#[test]
fn steps_run_out_without_an_answer() {
    let mut stream = RandomStream::new(0, 91, 2);
    let tasks = random((4, 14, 1), Deadlines::Constrained, &mut stream);
    let none = || Steps::at_most(1);
    assert!(matches!(
        np_edf(&plain(&tasks), &mut none()),
        Outcome::StepLimit
    ));
    assert!(matches!(np_fp_rta(&tasks, &mut none()), Outcome::StepLimit));
}
