//! What `analyze` says of a policy as a whole: from whichever tests, part by part.

use shiftwork_analysis::verdicts::{Analysis, Answer, Candidate, analyse};
use shiftwork_model::{Arrival, Span, TaskSet};
use shiftwork_policy::registry;

use super::campaign::Made;
use super::claims::CLAIMS;
use super::system::System;

/// Those that the simulator has and verdicts speak of.
pub const POLICIES: [&str; 20] = [
    "p-edf",
    "p-fp",
    "c-edf",
    "c-fp",
    "g-edf",
    "g-fp",
    "weak-edf",
    "weak-fp",
    "strong-edf",
    "strong-fp",
    "hpa-edf",
    "hpa-fp",
    "np-g-edf",
    "np-g-fp",
    "g-fl",
    "edzl",
    "pd2",
    "s-pd2",
    "c-pd2",
    "cs-pd2",
];

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

/// All bounds that verdicts come to, and deadlines where they say that these are met; under one of the
/// policies, chosen by the seed, as the simulator takes most of the time.
pub fn made(system: &System, seed: u64) -> Vec<Made> {
    let mut set = system.task_set();
    for task in &mut set.tasks {
        // Adversaries release jobs anywhere within quanta.
        task.arrival = Arrival::Sporadic;
    }
    // Seeds take turns among tests; this one must not keep step with them.
    let policy = POLICIES[(seed / CLAIMS.len() as u64) as usize % POLICIES.len()];
    let mut made = Vec::new();
    for analysis in of(&set, &[policy]).policies {
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
