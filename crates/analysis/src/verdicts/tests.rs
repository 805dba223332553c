//! The verdicts on task sets with known answers, and that no verdict contradicts another.

mod catalogue;
mod consistency;
mod examples;
mod priorities;
mod response_times;
mod scale;

use shiftwork_model::{Budgets, CpuSet, Role, Task, pack};
use shiftwork_policy::registry::{self, Entry};

use super::*;

const STEPS: u64 = 20_000_000;

/// Cost, period, deadline in milliseconds, and CPUs.
type Line = (u64, u64, u64, &'static str);

fn set(cpus: usize, lines: &[Line]) -> TaskSet {
    let task = |(index, &(cost, period, deadline, list)): (usize, &Line)| {
        let affinity = Affinity::new(list.parse().unwrap()).unwrap();
        let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ms);
        Task {
            deadline,
            ..Task::periodic(&format!("t{}", index + 1), cost, period, affinity)
        }
    };
    TaskSet::new("", cpus, lines.iter().enumerate().map(task).collect())
}

/// Three tasks of which two CPUs can run only two at a time: U = 2.
fn three_of_two_thirds() -> TaskSet {
    set(2, &[(2, 3, 3, "0-1"); 3])
}

/// Example 5 of Tang et al. 2021: U = 17/6 on three CPUs.
fn tang_5() -> TaskSet {
    let lines = [
        (2, 6, 6, "0"),
        (2, 2, 2, "0-2"),
        (1, 6, 6, "1"),
        (2, 2, 2, "0-2"),
        (2, 6, 6, "2"),
    ];
    set(3, &lines)
}

/// Where a policy binds the tasks, as `policy` does it.
fn candidate(name: &str, set: &TaskSet) -> Candidate {
    let entry = registry::find(name).unwrap();
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    let bound = match name {
        "p-edf" | "p-fp" => {
            let singles: Vec<CpuSet> = set.platform.all().iter().map(CpuSet::single).collect();
            let packed = pack(set, &singles).group_of.into_iter();
            let packed = packed.map(|group| Affinity::new(singles[group.unwrap()]).unwrap());
            Ok(packed.collect())
        }
        "dl-sp" | "pd2" | "s-pd2" => {
            let built = entry.build(set);
            built.map(|_| own()).map_err(|refusal| refusal.to_string())
        }
        _ => Ok(own()),
    };
    Candidate {
        policy: name.to_owned(),
        traits: entry.traits,
        bound,
    }
}

fn found(name: &str, set: &TaskSet) -> PolicyAnalysis {
    let analysis = analyse(set, &[candidate(name, set)], STEPS);
    analysis.policies.into_iter().next().unwrap()
}

/// `hard soft`.
fn answers(name: &str, set: &TaskSet) -> String {
    let found = found(name, set);
    format!("{} {}", found.hard.answer.name(), found.soft.answer.name())
}

fn verdict_of(test: &str, judgement: &Judgement) -> Option<Found> {
    let mut tests = judgement.tests.iter();
    tests
        .find(|(name, _)| *name == test)
        .map(|&(_, found)| found)
}

/// Those that stand for a rule of which tests speak.
fn policies() -> impl Iterator<Item = &'static str> {
    let stands_for_a_rule = |entry: &&Entry| {
        entry.traits.role == Role::Reference && entry.traits.budgets != Budgets::AsLinux
    };
    let entries = registry::POLICIES.iter().filter(stands_for_a_rule);
    entries.map(|entry| entry.name)
}
