//! What `analyze` says of a policy as a whole: from whichever tests, part by part.

use shiftwork_analysis::verdicts::{Analysis, Answer, Candidate, Criterion, Found, TESTS, analyse};
use shiftwork_model::{Arrival, Span, TaskSet};
use shiftwork_policy::registry::{self, Entry};

use super::campaign::Made;
use super::claims::CLAIMS;
use super::system::System;

/// All that the simulator has and of which a test of the catalogue speaks, published implementations too.
pub fn policies() -> Vec<&'static str> {
    let speaks = |entry: &&Entry| TESTS.iter().any(|test| test.speaks_of(&entry.traits));
    let entries = registry::POLICIES.iter().filter(speaks);
    entries.map(|entry| entry.name).collect()
}

/// In place of a bound where there is none.
pub const NONE: Span = Span::from_ns(u64::MAX);

/// Steps of each test; few, as tests that need many are called by themselves too.
const STEPS: u64 = 10_000;

/// Where the policy binds the tasks, as it does it itself.
pub fn candidate(set: &TaskSet, policy: &str) -> Candidate {
    let entry = registry::find(policy).unwrap();
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    Candidate {
        policy: policy.to_owned(),
        traits: entry.traits,
        bound: match entry.build(set) {
            Ok(built) => Ok(built.packing().unwrap_or_else(own)),
            Err(refusal) => Err(refusal.to_string()),
        },
    }
}

/// All verdicts on a set, under these policies.
pub fn of(set: &TaskSet, policies: &[&str]) -> Analysis {
    let candidates = policies.iter().map(|policy| candidate(set, policy));
    analyse(set, &candidates.collect::<Vec<_>>(), STEPS)
}

/// All bounds that verdicts come to, and deadlines where they say that these are met; under so many policies, of which
/// seeds take turns, as the simulator takes most of the time. `passed` is called with each test that passes.
///
/// A verdict is attacked by all tests at once: the bounds are the least of all, and one test that passes is enough for
/// "hard".
pub fn made(
    system: &System,
    (seed, count): (u64, usize),
    mut passed: impl FnMut(&'static str, Criterion),
) -> Vec<Made> {
    let mut set = system.task_set();
    for task in &mut set.tasks {
        // Adversaries release jobs anywhere within quanta.
        task.arrival = Arrival::Sporadic;
    }
    let mut policies = policies();
    // Seeds take turns among tests; this one must not keep step with them.
    let turn = (seed / CLAIMS.len() as u64) as usize % policies.len();
    policies.rotate_left(turn);
    policies.truncate(count);
    let mut made = Vec::new();
    for (policy, analysis) in policies.iter().zip(of(&set, &policies).policies) {
        for criterion in [Criterion::Hard, Criterion::Soft] {
            for &(test, found) in &analysis.judgement(criterion).tests {
                if found == Found::Pass {
                    passed(test, criterion);
                }
            }
        }
        let best = analysis.best.iter();
        let bounds: Vec<Span> = best
            .map(|best| best.map_or(NONE, |best| best.response))
            .collect();
        if bounds.iter().any(|&bound| bound < NONE) {
            made.push(Made {
                test: "analyze",
                policy,
                bounds,
            });
        }
        if analysis.hard.answer == Answer::Schedulable {
            made.push(Made {
                test: "analyze, hard",
                policy,
                bounds: set.tasks.iter().map(|task| task.deadline).collect(),
            });
        }
    }
    made
}
