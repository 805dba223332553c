//! Response times of larger sets against the published formula, of a slower CPU, and of published examples.

use shiftwork_analysis::Steps;
use shiftwork_analysis::uniprocessor::{edf_rta, fp_response_times};
use shiftwork_model::{RandomStream, Share};

use super::ticks::factor;
use super::{Plain, as_ranked, as_sporadic, edf, fp, in_ns, random_tasks};

/// Spuri's formula for every release within the busy period, one after the other.
fn edf_by_every_release(tasks: &[Plain]) -> Vec<u64> {
    let mut busy = tasks.iter().map(|task| task.cost).sum::<u64>();
    loop {
        let work = |task: &Plain| busy.div_ceil(task.period) * task.cost;
        match tasks.iter().map(work).sum::<u64>() {
            next if next == busy => break,
            next => busy = next,
        }
    }
    let finish = |own: usize, release: u64| {
        let due = release + tasks[own].deadline;
        let mut finish = 0u64;
        loop {
            let work = |(place, task): (usize, &Plain)| match due.checked_sub(task.deadline) {
                None => 0,
                Some(rest) if place == own => (rest / task.period + 1) * task.cost,
                Some(rest) => finish.div_ceil(task.period).min(rest / task.period + 1) * task.cost,
            };
            match tasks.iter().enumerate().map(work).sum::<u64>() {
                next if next == finish => return finish,
                next => finish = next,
            }
        }
    };
    let worst = |own: usize| {
        let responses = (0..busy).map(|release| finish(own, release).saturating_sub(release));
        responses.max().unwrap().max(tasks[own].cost)
    };
    (0..tasks.len()).map(worst).collect()
}

#[test]
fn larger_sets_have_the_responses_of_the_published_formula() {
    for seed in 0..150 * factor() {
        let mut stream = RandomStream::new(seed, 83, 4);
        let percent = [60, 100, 300][stream.below(3) as usize];
        let periods = [10, 12, 15, 18, 20, 24, 30, 36, 40, 45, 60, 72];
        let tasks = random_tasks(&mut stream, 12, &periods, percent);
        let expected = edf_by_every_release(&tasks);
        assert_eq!(edf(&tasks), Some(expected), "seed {seed}: {tasks:?}");
    }
}

#[test]
fn a_smaller_supply_makes_responses_of_a_slower_cpu() {
    // At four fifths of the speed every cost takes five quarters: count time in quarters.
    let slower = Share::from_billionths(800_000_000).unwrap();
    let mut shown = 0;
    for seed in 0..300 * factor() {
        let mut stream = RandomStream::new(seed, 83, 5);
        let tasks = random_tasks(&mut stream, 5, &[6, 8, 12, 24], 200);
        let quarters = |task: &Plain| Plain {
            cost: 5 * task.cost,
            period: 4 * task.period,
            deadline: 4 * task.deadline,
        };
        let quarters: Vec<Plain> = tasks.iter().map(quarters).collect();
        let round = |responses: Option<Vec<u64>>| {
            responses.map(|all| all.iter().map(|one| one.div_ceil(4)).collect::<Vec<u64>>())
        };
        let found = edf_rta(&as_sporadic(&tasks), slower, &mut Steps::ordinary());
        assert_eq!(
            in_ns(&found),
            round(edf(&quarters)),
            "EDF, seed {seed}: {tasks:?}"
        );
        let found = fp_response_times(&as_ranked(&tasks), slower, &mut Steps::ordinary());
        assert_eq!(
            in_ns(&found),
            round(fp(&quarters)),
            "FP, seed {seed}: {tasks:?}"
        );
        shown += u64::from(in_ns(&found).is_some());
    }
    assert!(shown > 50, "{shown}");
}

#[test]
fn published_examples_have_their_published_responses() {
    // Lehoczky 1990, example 1: the jobs of the second task respond after 114, 102, 116, 104, 118, 106,
    // 94 in a busy period of 694, where the first is not the worst.
    let tasks = [(26, 70, 70), (62, 100, 120)];
    let tasks = tasks.map(|(cost, period, deadline)| Plain {
        cost,
        period,
        deadline,
    });
    assert_eq!(fp(&tasks), Some(vec![26, 118]));
}
