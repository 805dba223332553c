//! On random sets no verdict contradicts another one.

use shiftwork_model::RandomStream;

use super::*;
use crate::affinity::Feasible;
use crate::verdicts::scale::is_shown;

/// Random sets on a few CPUs, with deadlines of all kinds.
fn random(stream: &mut RandomStream) -> TaskSet {
    let cpus = 1 + stream.below(3) as usize;
    let task = |stream: &mut RandomStream| {
        let period = 2 + stream.below(9);
        let cost = 1 + stream.below(period);
        let deadline = match stream.below(3) {
            0 => period,
            1 => cost + stream.below(period - cost + 1),
            _ => cost + stream.below(2 * period),
        };
        let mut mask: CpuSet = CpuSet::EMPTY;
        for cpu in CpuSet::first(cpus).iter() {
            if stream.below(2) == 0 {
                mask = mask | CpuSet::single(cpu);
            }
        }
        let affinity = Affinity::new(mask).or(Affinity::new(CpuSet::first(cpus)));
        let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ms);
        Task {
            deadline,
            ..Task::periodic("t", cost, period, affinity.unwrap())
        }
    };
    let count = 1 + stream.below(5);
    let tasks = (0..count).map(|_| task(stream)).collect();
    TaskSet::new("", cpus, tasks)
}

#[test]
fn verdicts_do_not_contradict_each_other() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 5_000,
        None => 120,
    };
    for seed in 0..seeds {
        let set = random(&mut RandomStream::new(seed, 71, 0));
        let candidates: Vec<Candidate> = policies().map(|name| candidate(name, &set)).collect();
        let together = analyse(&set, &candidates, STEPS);
        for (candidate, found) in candidates.iter().zip(&together.policies) {
            let context = format!("seed {seed}, {}", candidate.policy);
            let (hard, soft) = (found.hard.answer, found.soft.answer);
            if hard == Answer::Schedulable {
                assert_eq!(soft, Answer::Schedulable, "{context}");
                assert_ne!(together.feasibility.verdict, Feasible::No, "{context}");
                let deadlines = set.tasks.iter().map(|task| task.deadline);
                let best = found.best.iter().map(|best| best.unwrap().response);
                assert!(
                    best.zip(deadlines).all(|(best, due)| best <= due),
                    "{context}"
                );
            }
            if soft == Answer::Unschedulable {
                assert_eq!(hard, Answer::Unschedulable, "{context}");
            }
            let proven = hard == Answer::Unschedulable;
            assert_eq!(found.hard.witness.is_some(), proven, "{context}");
            // What is known of one policy does not depend on which others are asked about.
            let alone = analyse(&set, std::slice::from_ref(candidate), STEPS);
            assert_eq!(&alone.policies[0], found, "{context}");
            for criterion in [Criterion::Hard, Criterion::Soft] {
                let shown = is_shown(&set, candidate, criterion, STEPS);
                let known = found.judgement(criterion).answer == Answer::Schedulable;
                assert_eq!(shown, known, "{context}, {criterion:?}");
            }
        }
    }
}
