//! Every schedulability test answers every input, within its steps, and always in the same way.

use shiftwork_analysis::{Sporadic, Steps};
use shiftwork_model::{CPUS_MAX, RandomStream};

use super::catalogue::{Answer, TESTED, check};
use super::{ODD, sporadic, without_common_periods};

#[test]
fn every_odd_task_alone_gets_a_sane_answer() {
    for tested in TESTED {
        for cpus in [0, 1, 2, CPUS_MAX] {
            for (cost, period, deadline) in triples() {
                let tasks = [sporadic(cost, period, deadline)];
                let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(2_000));
                check(tested, &tasks, cpus, &answer);
            }
        }
    }
}

fn triples() -> impl Iterator<Item = (u64, u64, u64)> {
    let pairs = ODD.iter().flat_map(|&a| ODD.iter().map(move |&b| (a, b)));
    pairs.flat_map(|(a, b)| ODD.iter().map(move |&c| (a, b, c)))
}

#[test]
fn odd_tasks_together_get_sane_answers() {
    for tested in TESTED {
        for seed in 0..2_000 {
            let mut stream = RandomStream::new(seed, 42, 0);
            let cpus = [0, 1, 2, 3, 64, CPUS_MAX][stream.below(6) as usize];
            let mut odd = || ODD[stream.below(ODD.len() as u64) as usize];
            let tasks: Vec<Sporadic> = (0..4).map(|_| sporadic(odd(), odd(), odd())).collect();
            let tasks = &tasks[..1 + seed as usize % 4];
            let answer = (tested.run)(tasks, cpus, &mut Steps::at_most(5_000));
            check(tested, tasks, cpus, &answer);
        }
    }
}

#[test]
fn an_empty_set_is_always_schedulable() {
    for tested in TESTED {
        for cpus in [0, 1, 2, CPUS_MAX] {
            let answer = (tested.run)(&[], cpus, &mut Steps::ordinary());
            let in_time = matches!(&answer, Answer::Pass(bounds)
                if bounds.as_ref().is_none_or(Vec::is_empty));
            assert!(in_time, "{}, {cpus} CPUs: {answer:?}", tested.name);
        }
    }
}

#[test]
fn a_light_task_alone_is_shown_to_be_in_time() {
    for tested in TESTED {
        for cpus in [1, 2, 64, CPUS_MAX] {
            for period in [10, 1 << 60] {
                let tasks = [sporadic(1, period, period)];
                let answer = (tested.run)(&tasks, cpus, &mut Steps::ordinary());
                let shown = matches!(answer, Answer::Pass(_));
                assert!(shown, "{}, {cpus} CPUs: {answer:?}", tested.name);
            }
        }
    }
}

#[test]
fn hyperperiods_beyond_any_number_are_no_obstacle() {
    for tested in TESTED {
        for seed in 0..40 {
            let mut stream = RandomStream::new(seed, 42, 1);
            let cpus = 1 + stream.below(8) as usize;
            let count = 1 + stream.below(20);
            let load = 1_000_000 * cpus as u64 / count * (1 + stream.below(12)) / 10;
            let tasks = without_common_periods(count, load.max(1), &mut stream);
            let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(100_000));
            check(tested, &tasks, cpus, &answer);
        }
    }
}

#[test]
fn ten_thousand_tasks_get_an_answer() {
    for tested in TESTED {
        for (cpus, load) in [(1, 50), (4, 380), (1_024, 60_000)] {
            let mut stream = RandomStream::new(load, 42, 2);
            let tasks = without_common_periods(10_000, load, &mut stream);
            let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(100_000));
            check(tested, &tasks, cpus, &answer);
        }
    }
}

#[test]
fn deadlines_far_beyond_and_far_before_periods_and_costs_are_no_obstacle() {
    let [day, hour] = [86_400_000_000_000, 3_600_000_000_000];
    for tested in TESTED {
        for cpus in [1, 2, 16] {
            for tasks in [
                vec![sporadic(1, 10, day), sporadic(9, 10, day)],
                vec![sporadic(7, 10, u64::MAX), sporadic(3, 10, 3)],
                vec![sporadic(hour, day, 1), sporadic(1, 2, 2)],
                vec![
                    sporadic(1, 3, 3),
                    sporadic(hour, day, day),
                    sporadic(1, 7, 2),
                ],
            ] {
                let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(50_000));
                check(tested, &tasks, cpus, &answer);
                let due_before_done = tasks.iter().any(|task| task.deadline < task.cost);
                if tested.hard && due_before_done {
                    assert!(
                        matches!(answer, Answer::Fail(_)),
                        "{}: {answer:?}",
                        tested.name
                    );
                }
            }
        }
    }
}

/// Whether an answer with more steps may follow one with fewer: it is the same, or the same with
/// bounds that are no longer (`laminar-tardiness` says that it leaves coarser ones where steps end).
fn may_follow(fewer: &Answer, more: &Answer) -> bool {
    match (fewer, more) {
        (Answer::StepLimit, _) => true,
        (Answer::Pass(Some(coarse)), Answer::Pass(Some(fine))) => {
            coarse.len() == fine.len()
                && fine.iter().zip(coarse).all(|(fine, coarse)| fine <= coarse)
        }
        _ => fewer == more,
    }
}

#[test]
fn more_steps_never_change_an_answer() {
    for tested in TESTED {
        for seed in 0..60 {
            let mut stream = RandomStream::new(seed, 42, 3);
            let cpus = 1 + stream.below(4) as usize;
            let count = 1 + stream.below(8);
            let load = 1_000_000 * cpus as u64 / count * (1 + stream.below(10)) / 10;
            let tasks = without_common_periods(count, load.max(1), &mut stream);
            let mut before = Answer::StepLimit;
            for limit in [0, 1, 5, 20, 100, 1_000, 10_000, 100_000] {
                let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(limit));
                let context = || format!("{}, seed {seed}, {limit}", tested.name);
                assert!(
                    may_follow(&before, &answer),
                    "{}: {before:?} {answer:?}",
                    context()
                );
                let again = (tested.run)(&tasks, cpus, &mut Steps::at_most(limit));
                assert_eq!(answer, again, "{}", context());
                before = answer;
            }
        }
    }
}
