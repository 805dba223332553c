//! The tests for several CPUs claim nothing that some schedule contradicts.

use shiftwork_analysis::global_edf::{np_density, np_rta};
use shiftwork_analysis::response::devi_anderson_non_preemptive;
use shiftwork_analysis::{Ranked, Steps, global_fp};
use shiftwork_model::{Order, RandomStream};

use crate::search::Rules;
use crate::sets::{DEADLINES, bounds, factor, in_time, passes, plain, random};

const MOST_STATES: usize = 12_000;

fn searched(tasks: &[Ranked], cpus: usize, order: Order, early: bool) -> Option<Vec<u64>> {
    let rules = Rules {
        tasks,
        cpus,
        order,
        early,
    };
    rules.responses(100, MOST_STATES)
}

/// No schedule takes longer than the bounds; whether one takes as long.
fn hold(responses: &[u64], bounds: &[u64], at: &str) -> bool {
    for (response, bound) in responses.iter().zip(bounds) {
        assert!(response <= bound, "{at}: {responses:?} > {bounds:?}");
    }
    responses
        .iter()
        .zip(bounds)
        .any(|(response, bound)| response == bound)
}

#[test]
fn fixed_priorities_take_no_longer_than_their_bounds() {
    let (mut shown, mut tight, mut met) = (0, 0, 0);
    for seed in 0..150 * factor() {
        let mut stream = RandomStream::new(seed, 92, 0);
        let size = (2 + stream.below(3), 5, 2);
        let tasks = random(size, DEADLINES[seed as usize % 2], &mut stream);
        let Some(responses) = searched(&tasks, 2, Order::FixedPriority, seed % 4 == 0) else {
            continue;
        };
        met += usize::from(in_time(&tasks, &responses));
        if let Some(bounds) = bounds(global_fp::np_rta(&tasks, 2, &mut Steps::ordinary())) {
            shown += 1;
            tight += usize::from(hold(
                &responses,
                &bounds,
                &format!("seed {seed}: {tasks:?}"),
            ));
        }
    }
    println!("{shown} shown of {met} that meet deadlines, {tight} with a bound that is reached");
    assert!(shown > 20 && tight > 5, "{shown} {tight}");
}

#[test]
fn earliest_deadlines_take_no_longer_than_their_bounds() {
    let (mut shown, mut tight, mut met) = ([0; 2], 0, 0);
    for seed in 0..150 * factor() {
        let mut stream = RandomStream::new(seed, 92, 1);
        let size = (2 + stream.below(3), 5, 2);
        let tasks = random(size, DEADLINES[seed as usize % 2], &mut stream);
        let Some(responses) = searched(&tasks, 2, Order::Edf, seed % 4 == 0) else {
            continue;
        };
        let at = format!("seed {seed}: {tasks:?}");
        met += usize::from(in_time(&tasks, &responses));
        if let Some(bounds) = bounds(np_rta(&plain(&tasks), 2, &mut Steps::ordinary())) {
            shown[0] += 1;
            tight += usize::from(hold(&responses, &bounds, &at));
        }
        if passes(&np_density(&plain(&tasks), 2, &mut Steps::ordinary())) {
            shown[1] += 1;
            assert!(in_time(&tasks, &responses), "{at}: {responses:?}");
        }
        if let Some(bounds) = bounds(devi_anderson_non_preemptive(
            &plain(&tasks),
            2,
            &mut Steps::ordinary(),
        )) {
            hold(&responses, &bounds, &at);
        }
    }
    println!("{shown:?} shown of {met} that meet deadlines, {tight} with a bound that is reached");
    assert!(
        shown[0] > 20 && shown[1] > 5 && tight > 5,
        "{shown:?} {tight}"
    );
}
