//! Sets without response times, too few steps, many tasks, and times of every size.

use shiftwork_analysis::response::gel;
use shiftwork_analysis::uniprocessor::{edf_rta, fp_response_times};
use shiftwork_analysis::{NotShown, Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Priority, RandomStream, Span};

use super::ticks::{factor, sporadic};
use super::{Plain, WHOLE, as_ranked, as_sporadic, in_ns};

#[test]
fn a_set_without_responses_or_without_steps_says_so() {
    let tasks = [(1, 2, 2), (1, 2, 2), (1, 9, 9)];
    let tasks = tasks.map(|(cost, period, deadline)| sporadic(cost, period, deadline));
    let found = edf_rta(&tasks, WHOLE, &mut Steps::ordinary());
    assert_eq!(found, Outcome::Fail(NotShown { place: 2 }));
    let ranked = tasks.map(|task| Ranked {
        task,
        priority: Priority::LEAST_URGENT,
    });
    let found = fp_response_times(&ranked, WHOLE, &mut Steps::ordinary());
    assert_eq!(found, Outcome::Fail(NotShown { place: 2 }));
    // All of the CPU is used, and the busy period ends with the product of the periods.
    let long = [
        sporadic(999_999_937, 1_999_999_874, 1),
        sporadic(499_999_996, 999_999_992, 1),
    ];
    let found = edf_rta(&long, WHOLE, &mut Steps::at_most(1_000));
    assert_eq!(found, Outcome::StepLimit);
    assert_eq!(
        edf_rta(&[], WHOLE, &mut Steps::at_most(0)),
        Outcome::Pass(vec![])
    );
    for bad in [sporadic(0, 1, 1), sporadic(1, 0, 1), sporadic(1, 1, 0)] {
        let found = edf_rta(&[bad], WHOLE, &mut Steps::ordinary());
        assert_eq!(found, Outcome::Fail(NotShown { place: 0 }), "{bad:?}");
    }
    let longest = sporadic(u64::MAX, u64::MAX, u64::MAX);
    let found = edf_rta(&[longest], WHOLE, &mut Steps::ordinary());
    assert_eq!(found, Outcome::Fail(NotShown { place: 0 }));
}

/// So many tasks with a sum of utilizations just below `percent`; periods from 1 ms to 1 s, in nanoseconds and
/// not multiples of each other, as many in each power of two.
fn large_tasks(stream: &mut RandomStream, count: u64, percent: u64, most: u64) -> Vec<Plain> {
    let shares: Vec<u64> = (0..count).map(|_| 1 + stream.below(1_000)).collect();
    let sum: u64 = shares.iter().sum();
    let task = |share: u64| {
        let period = (1_000_000 << stream.below(10)) + stream.below(900_000);
        let cost =
            (u128::from(period) * u128::from(share * percent) / u128::from(100 * sum)) as u64;
        let deadline = period * (most / 2 + stream.below(most / 2)) / 100;
        Plain {
            cost: cost.max(1),
            period,
            deadline: deadline.max(1),
        }
    };
    shares.into_iter().map(task).collect()
}

#[test]
fn a_hundred_tasks_need_a_fraction_of_the_ordinary_steps() {
    for (most, percent) in [(100, 95), (200, 95), (100, 99), (300, 99)] {
        for seed in 0..2 * factor() {
            let mut stream = RandomStream::new(seed, 83, 6);
            let tasks = large_tasks(&mut stream, 100, percent, most);
            let at = format!("seed {seed}, {percent}%, deadlines up to {most}%");
            let found = edf_rta(&as_sporadic(&tasks), WHOLE, &mut Steps::at_most(8_000_000));
            assert!(in_ns(&found).is_some(), "EDF, {at}");
            let ranked = as_ranked(&tasks);
            let found = fp_response_times(&ranked, WHOLE, &mut Steps::at_most(2_000_000));
            assert!(in_ns(&found).is_some(), "FP, {at}");
        }
    }
}

#[test]
fn times_of_every_size_have_an_answer() {
    let mut shown = 0;
    for seed in 0..400 * factor().min(4) {
        let mut stream = RandomStream::new(seed, 83, 7);
        let mut any = |size: u64| 1 + stream.below(u64::MAX >> (63 - size));
        let sizes: Vec<u64> = (0..5).map(|_| any(5)).collect();
        let one = |size: &u64| {
            let period = any(*size);
            let cost = 1 + any(*size) % (period / 4 + 1);
            sporadic(cost, period, any(*size))
        };
        let tasks: Vec<Sporadic> = sizes.iter().map(one).collect();
        let steps = Steps::at_most(100_000);
        let found = edf_rta(&tasks, WHOLE, &mut steps.clone());
        if let Outcome::Pass(responses) = &found {
            shown += 1;
            let least = responses
                .iter()
                .zip(&tasks)
                .all(|(&response, task)| response >= task.cost);
            assert!(least, "seed {seed}: {tasks:?}: {found:?}");
            assert!(
                gel_is_no_tighter(&tasks, responses),
                "seed {seed}: {tasks:?}: {found:?}"
            );
        }
    }
    assert!(shown > 50, "{shown}");
}

fn gel_is_no_tighter(tasks: &[Sporadic], responses: &[Span]) -> bool {
    match gel(tasks, 1, &mut Steps::ordinary()) {
        Outcome::Pass(bounds) => bounds
            .iter()
            .zip(responses)
            .all(|(bound, exact)| bound >= exact),
        _ => true,
    }
}
