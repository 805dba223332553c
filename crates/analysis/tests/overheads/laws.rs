//! What holds of the accounting whatever the numbers are.

use shiftwork_analysis::overheads::{Inflated, Structure};
use shiftwork_analysis::verdicts::{Answer, Candidate, Price, Table, analyse, analyse_under};
use shiftwork_model::{Interrupts, LinearCost, Overheads, RandomStream, TaskSet};

use crate::{DEDICATED, NS, candidate, inflated, random, times};

const POLICIES: [&str; 8] = [
    "p-edf", "g-edf", "np-g-edf", "c-edf", "p-fp", "weak-edf", "pd2", "s-pd2",
];

/// Systems with overheads under every policy.
fn cases() -> impl Iterator<Item = (u64, &'static str, TaskSet, Overheads)> {
    (0..200).flat_map(|seed| {
        POLICIES.into_iter().filter_map(move |policy| {
            let mut stream = RandomStream::new(seed, 61, 0);
            let set = random::system(policy, &mut stream);
            let overheads = random::overheads(&mut stream);
            let is_taken = candidate(&set, policy).bound.is_ok();
            is_taken.then_some((seed, policy, set, overheads))
        })
    })
}

fn price(candidate: &Candidate, set: &TaskSet, overheads: &Overheads) -> Price {
    Price {
        structure: Structure::of(&candidate.traits, set),
        worst: Some(overheads.clone()),
        average: Some(overheads.clone()),
    }
}

#[test]
fn overheads_of_nothing_change_nothing() {
    for (seed, policy, set, _) in cases() {
        let candidate = candidate(&set, policy);
        let nothing = price(&candidate, &set, &Overheads::default());
        let free = analyse(&set, std::slice::from_ref(&candidate), 20_000);
        let (priced, accounts) = analyse_under(&set, &[(candidate, Some(nothing))], 20_000);
        let (free, priced) = (&free.policies[0], &priced.policies[0]);
        for (free, priced) in [(&free.hard, &priced.hard), (&free.soft, &priced.soft)] {
            assert_eq!(free.answer, priced.answer, "seed {seed}, {policy}");
            assert_eq!(free.by, priced.by, "seed {seed}, {policy}");
            assert_eq!(free.witness, priced.witness, "seed {seed}, {policy}");
        }
        assert_eq!(free.best, priced.best, "seed {seed}, {policy}");
        assert_eq!(free.bounds, priced.bounds, "seed {seed}, {policy}");
        let hard = accounts[0].hard.as_ref().unwrap();
        assert_eq!(hard.table, Table::Worst);
        if priced.traits.preemption.alignment().is_none() {
            for (task, inflated) in set.tasks.iter().zip(&hard.inflated) {
                let plain = [task.cost, task.period, task.deadline].map(|span| span.as_ns());
                assert_eq!(times(inflated), plain, "seed {seed}, {policy}");
            }
        }
    }
}

/// A cost, no less than the other; a period and deadline, no more.
fn is_no_better(worse: &Inflated, than: &Inflated) -> bool {
    let Some(worse) = worse.task else {
        return true;
    };
    than.task.is_some_and(|than| {
        worse.cost >= than.cost && worse.period <= than.period && worse.deadline <= than.deadline
    })
}

/// One of the costs.
type Field = fn(&mut Overheads) -> &mut LinearCost;

#[test]
fn more_of_any_overhead_is_never_better() {
    let more: [(&str, Field); 10] = [
        ("release", |it| &mut it.release),
        ("schedule", |it| &mut it.schedule),
        ("switch", |it| &mut it.switch),
        ("tick", |it| &mut it.tick),
        ("ipi", |it| &mut it.ipi),
        ("enqueue", |it| &mut it.enqueue),
        ("dequeue", |it| &mut it.dequeue),
        ("preemption", |it| &mut it.preemption[0]),
        ("near migration", |it| &mut it.migration[0]),
        ("far migration", |it| &mut it.migration[1]),
    ];
    let mut mattered = [0; 10];
    for (seed, policy, set, overheads) in cases() {
        for interrupts in [Interrupts::Global, DEDICATED] {
            let before = inflated(&set, policy, interrupts, &overheads);
            for (place, (name, field)) in more.iter().enumerate() {
                let mut costly = overheads.clone();
                field(&mut costly).base += NS(25);
                let after = inflated(&set, policy, interrupts, &costly);
                for (after, before) in after.iter().zip(&before) {
                    assert!(
                        is_no_better(after, before),
                        "seed {seed}, {policy}, {interrupts:?}, more {name}: {before:?} to {after:?}"
                    );
                }
                mattered[place] += usize::from(after != before);
            }
        }
    }
    assert!(mattered.iter().all(|&count| count > 100), "{mattered:?}");
}

#[test]
fn nothing_is_refuted_by_overheads_alone_and_no_refusal_is_lost() {
    let mut seen = [0; 3];
    for (seed, policy, set, overheads) in cases() {
        let candidate = candidate(&set, policy);
        let price = price(&candidate, &set, &overheads);
        let free = analyse(&set, std::slice::from_ref(&candidate), 20_000);
        let (priced, _) = analyse_under(&set, &[(candidate, Some(price))], 20_000);
        let pairs = [
            (&free.policies[0].hard, &priced.policies[0].hard),
            (&free.policies[0].soft, &priced.policies[0].soft),
        ];
        for (free, priced) in pairs {
            let is_no = |answer| answer == Answer::Unschedulable;
            assert_eq!(
                is_no(free.answer),
                is_no(priced.answer),
                "seed {seed}, {policy}"
            );
            seen[usize::from(is_no(free.answer))] += 1;
            let lost = free.answer == Answer::Schedulable && priced.answer == Answer::Unknown;
            seen[2] += usize::from(lost);
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}
