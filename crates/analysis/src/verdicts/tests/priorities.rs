//! Orders of priorities against all orders that there are.

use shiftwork_model::{Placement, PolicyTraits, RandomStream, TaskId};

use super::super::audsley::audsley;
use super::super::divide::Divided;
use super::super::ground::Ground;
use super::super::priorities::{InTime, tests};
use super::*;
use crate::Steps;

/// A small set for one of the policies by priorities, of which about half have some order.
fn random(seed: u64) -> (TaskSet, &'static str) {
    let policies = ["p-fp", "g-fp", "np-g-fp", "weak-fp", "strong-fp", "np-g-fp"];
    let mut stream = RandomStream::new(seed, 84, 0);
    let policy = policies[(seed % 6) as usize];
    let cpus = match (policy, seed % 12) {
        ("p-fp", _) | (_, 5) => 1,
        _ => 2 + stream.below(2) as usize,
    };
    let count = 2 + stream.below(4) as usize;
    let tasks = (0..count).map(|place| {
        let period = 3 + stream.below(12);
        let heaviest = (period * cpus as u64 * 3 / count as u64 / 2).clamp(1, period);
        let cost = 1 + stream.below(heaviest);
        let deadline = match (cpus, stream.below(3)) {
            (_, 0) => period,
            (1, 1) => cost + stream.below(2 * period),
            _ => cost + stream.below(period - cost + 1),
        };
        let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ns);
        let bits = match policy {
            "weak-fp" | "strong-fp" => 1 + stream.below((1 << cpus) - 1),
            _ => (1 << cpus) - 1,
        };
        let affinity = Affinity::new(CpuSet::from_bits(bits)).unwrap();
        Task {
            deadline,
            ..Task::periodic(&format!("t{place}"), cost, period, affinity)
        }
    });
    (TaskSet::new("", cpus, tasks.collect()), policy)
}

/// All orders of these places.
fn orders(places: &[usize]) -> Vec<Vec<usize>> {
    match places {
        [] => vec![Vec::new()],
        _ => (0..places.len())
            .flat_map(|first| {
                let mut rest = places.to_vec();
                let first = rest.remove(first);
                let with_first = move |mut order: Vec<usize>| {
                    order.insert(0, first);
                    order
                };
                orders(&rest).into_iter().map(with_first)
            })
            .collect(),
    }
}

fn grounds(set: &TaskSet, traits: &PolicyTraits) -> Vec<Ground> {
    let bound: Vec<Affinity> = set.tasks.iter().map(|task| task.affinity).collect();
    Divided::new(set, traits).grounds(&bound, STEPS)
}

/// Whether the test shows the task with these priorities.
fn asked(ground: &mut Ground, test: InTime, (place, more): (usize, &[usize])) -> bool {
    for other in 0..ground.case.ids.len() {
        let number = match (other == place, more.contains(&other)) {
            (true, _) => 2,
            (_, true) => 1,
            _ => 3,
        };
        ground.case.priorities[other] = shiftwork_model::Priority::new(number).unwrap();
    }
    test(&ground.case, place, &mut Steps::at_most(STEPS)).unwrap()
}

#[test]
fn audsley_finds_an_order_exactly_if_one_of_all_orders_passes() {
    let (mut found_some, mut found_none, mut by_own_order) = (0, 0, 0);
    for seed in 0..3_000 {
        let (set, policy) = random(seed);
        let traits = registry::find(policy).unwrap().traits;
        for mut ground in grounds(&set, &traits) {
            let places: Vec<usize> = (0..ground.case.ids.len()).collect();
            let all = orders(&places);
            for (number, test) in tests(&traits, &ground.case).into_iter().enumerate() {
                let found = audsley(&places, |place, more, _| {
                    Some(asked(&mut ground, test, (place, more)))
                });
                let mut passes = |order: &Vec<usize>| {
                    (0..order.len())
                        .all(|rank| asked(&mut ground, test, (order[rank], &order[..rank])))
                };
                let context = format!("seed {seed}, {policy}, test {number}: {set:?}");
                if let Some(order) = &found {
                    assert!(passes(order), "{order:?}, {context}");
                }
                let passing: Vec<&Vec<usize>> = all.iter().filter(|order| passes(order)).collect();
                assert_eq!(found.is_some(), !passing.is_empty(), "{context}");
                found_some += usize::from(found.is_some());
                found_none += usize::from(found.is_none());
                by_own_order += usize::from(found.is_some() && passing.len() < all.len());
            }
        }
    }
    println!("{found_some} with an order, {by_own_order} not with each, {found_none} without");
    assert!(
        found_none > 500 && by_own_order > 500,
        "{found_none} {by_own_order}"
    );
}

#[test]
fn an_order_that_is_found_is_shown_and_on_one_cpu_none_is_missed() {
    let (mut found_some, mut changed, mut missed) = (0, 0, 0);
    for seed in 0..1_500 {
        let (set, policy) = random(seed);
        let shown = |order: &[TaskId]| {
            let set = with_priorities(&set, order);
            let bound: Vec<_> = set.tasks.iter().map(|task| task.affinity).collect();
            let traits = registry::find(policy).unwrap().traits;
            let question = Question::new(traits, &bound, Criterion::Hard, STEPS);
            decide(&set, &question).answer == Answer::Schedulable
        };
        let mut of = |set: &TaskSet| {
            let own = set.tasks.iter().map(|task| task.affinity);
            Candidate {
                policy: policy.to_owned(),
                traits: registry::find(policy).unwrap().traits,
                bound: Ok(own.collect()),
            }
        };
        let found = priority_order(&set, &mut of, STEPS);
        let places: Vec<usize> = (0..set.tasks.len()).collect();
        let exists = orders(&places).iter().any(|order| {
            let order: Vec<TaskId> = order.iter().copied().map(TaskId::from_index).collect();
            shown(&order)
        });
        if let Some(order) = &found {
            assert!(shown(order), "seed {seed}, {policy}: {order:?} of {set:?}");
            found_some += 1;
            let given = set.priorities();
            changed += usize::from(!order.is_sorted_by_key(|task| given[task.index()]));
        } else if exists {
            let is_alone =
                set.platform.cpus == 1 || of(&set).traits.placement == Placement::Partitioned;
            assert!(!is_alone, "seed {seed}, {policy}: {set:?}");
            missed += 1;
        }
    }
    println!("{found_some} found, {changed} of them other than the given, {missed} missed");
    assert!(found_some > 500 && changed > 50, "{found_some} {changed}");
}

#[test]
fn policies_by_deadline_have_no_order_of_priorities() {
    let set = set(1, &[(1, 3, 3, "0")]);
    let mut of = |set: &TaskSet| candidate("g-edf", set);
    assert_eq!(priority_order(&set, &mut of, STEPS), None);
}
