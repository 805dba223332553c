//! Overheads in tests: the accounting by hand-computed examples, what must hold of it whatever the
//! numbers, and that nothing shown under overheads is contradicted by a schedule that pays for them. With
//! `SHIFTWORK_LONG` set, 20,000 systems.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod decide;
mod examples;
mod laws;
mod niagara;
mod packing;
mod random;
mod soundness;

use shiftwork_analysis::overheads::{Inflated, Structure, inflate};
use shiftwork_analysis::verdicts::Candidate;
use shiftwork_model::{CpuId, CpuSet, Interrupts, LinearCost, Overheads, Span, TaskSet};
use shiftwork_policy::registry;

const NS: fn(u64) -> Span = Span::from_ns;

/// A cost that does not depend on the tasks.
fn cost(base: u64) -> LinearCost {
    LinearCost {
        base: NS(base),
        per_task: NS(0),
    }
}

/// Any CPU that runs no jobs.
const DEDICATED: Interrupts = Interrupts::Dedicated(CpuId::from_index(0));

/// How the policy binds the tasks, as it does itself.
fn candidate(set: &TaskSet, policy: &str) -> Candidate {
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    let entry = registry::find(policy).unwrap();
    let built = entry.build(set).map_err(|refusal| refusal.to_string());
    Candidate {
        policy: policy.to_owned(),
        traits: entry.traits,
        bound: built.map(|built| built.packing().unwrap_or_else(own)),
    }
}

/// The set with these overheads under a policy, which takes it.
fn inflated(
    set: &TaskSet,
    policy: &str,
    interrupts: Interrupts,
    overheads: &Overheads,
) -> Vec<Inflated> {
    let candidate = candidate(set, policy);
    let structure = Structure {
        interrupts,
        ..Structure::of(&candidate.traits, set)
    };
    let bound = candidate.bound.unwrap();
    let bound: Vec<CpuSet> = bound.iter().map(|affinity| *affinity.cpus()).collect();
    inflate(set, (&candidate.traits, &structure), &bound, overheads).unwrap()
}

/// Cost, period and deadline in nanoseconds.
fn times(inflated: &Inflated) -> [u64; 3] {
    let task = inflated.task.unwrap();
    [task.cost, task.period, task.deadline].map(Span::as_ns)
}
