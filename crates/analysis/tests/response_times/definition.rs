//! Response times are the longest of any schedule.

use shiftwork_analysis::uniprocessor::{fp_rta, qpa};
use shiftwork_analysis::{Outcome, Steps};
use shiftwork_model::RandomStream;

use super::schedules::{Head, edf_by_definition, worst_over_offsets, worst_over_patterns};
use super::ticks::{factor, lcm};
use super::{Plain, WHOLE, as_ranked, as_sporadic, edf, fp, random_tasks};

fn is_full(tasks: &[Plain]) -> bool {
    let hyperperiod = tasks.iter().fold(1, |all, task| lcm(all, task.period));
    let work = |task: &Plain| hyperperiod / task.period * task.cost;
    tasks.iter().map(work).sum::<u64>() == hyperperiod
}

/// Tasks of few different periods, so that all offsets can be tried.
fn small_tasks(stream: &mut RandomStream) -> Vec<Plain> {
    let periods: &[u64] =
        [&[2, 3, 4, 6][..], &[4, 5], &[3, 7], &[2, 4, 8], &[1, 5, 6]][stream.below(5) as usize];
    let percent = [100, 150, 300][stream.below(3) as usize];
    random_tasks(stream, 3, periods, percent)
}

#[test]
fn edf_responses_are_the_longest_of_any_schedule() {
    let (mut full, mut late) = (0, 0);
    for seed in 0..500 * factor() {
        let mut stream = RandomStream::new(seed, 83, 0);
        let tasks = small_tasks(&mut stream);
        let expected = edf_by_definition(&tasks);
        assert_eq!(
            edf(&tasks),
            Some(expected.clone()),
            "seed {seed}: {tasks:?}"
        );
        full += u64::from(is_full(&tasks));
        let in_time = tasks
            .iter()
            .zip(&expected)
            .all(|(task, &worst)| worst <= task.deadline);
        late += u64::from(!in_time);
        let passes = qpa(&as_sporadic(&tasks), WHOLE, &mut Steps::ordinary());
        assert_eq!(
            passes == Outcome::Pass(()),
            in_time,
            "seed {seed}: {tasks:?}"
        );
    }
    assert!(full > 50 && late > 50, "{full} {late}");
}

/// Between equal deadlines the earlier release goes first, then the task that is listed first.
#[test]
fn the_rule_for_ties_makes_a_difference_of_one_unit_at_most() {
    let (mut same, mut less) = (0, 0);
    for seed in 0..300 * factor() {
        let mut stream = RandomStream::new(seed, 83, 1);
        let tasks = small_tasks(&mut stream);
        let rank = |head: Head| (head.deadline, head.release, head.task);
        let seen = worst_over_offsets(&tasks, rank);
        for (place, bound) in edf(&tasks).unwrap().into_iter().enumerate() {
            match bound - seen[place] {
                0 => same += 1,
                1 => less += 1,
                _ => panic!("seed {seed}: {tasks:?}: {seen:?}, and {bound} for task {place}"),
            }
        }
    }
    assert!(same > 100 && less > 10, "{same} {less}");
}

#[test]
fn fixed_priority_responses_are_the_longest_of_any_schedule() {
    let (mut full, mut beyond) = (0, 0);
    for seed in 0..500 * factor() {
        let mut stream = RandomStream::new(seed, 83, 2);
        let tasks = small_tasks(&mut stream);
        let expected = worst_over_offsets(&tasks, |head: Head| head.task);
        assert_eq!(fp(&tasks), Some(expected.clone()), "seed {seed}: {tasks:?}");
        full += u64::from(is_full(&tasks));
        let past_next = |(task, &worst): (&Plain, &u64)| worst > task.period;
        beyond += u64::from(tasks.iter().zip(&expected).any(past_next));
        let in_time = tasks
            .iter()
            .zip(&expected)
            .all(|(task, &worst)| worst <= task.deadline);
        let passes = fp_rta(&as_ranked(&tasks), WHOLE, &mut Steps::ordinary());
        assert_eq!(
            passes == Outcome::Pass(()),
            in_time,
            "seed {seed}: {tasks:?}"
        );
    }
    assert!(full > 50 && beyond > 15, "{full} {beyond}");
}

#[test]
fn no_sporadic_releases_make_longer_responses() {
    for seed in 0..60 * factor() {
        let mut stream = RandomStream::new(seed, 83, 3);
        let tasks = random_tasks(&mut stream, 2, &[3, 4], 200);
        // The longest busy period ends by the hyperperiod, 12.
        let by_deadline = |own: usize, head: Head| (head.deadline, head.task == own);
        let expected = worst_over_patterns(&tasks, 12, by_deadline);
        assert_eq!(edf(&tasks), Some(expected), "EDF, seed {seed}: {tasks:?}");
        let by_rank = |_: usize, head: Head| (head.task as u64, false);
        let expected = worst_over_patterns(&tasks, 12, by_rank);
        assert_eq!(fp(&tasks), Some(expected), "FP, seed {seed}: {tasks:?}");
    }
}
