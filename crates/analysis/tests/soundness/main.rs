//! Nothing that a test claims is contradicted by a schedule.
//!
//! Random systems of all shapes of affinities and kinds of deadlines are made as demanding as one of
//! the tests allows; then every claim about them is attacked: synchronous and shifted periodic
//! releases, random gaps, jobs that finish early, carry-in just before a victim, and a greedy search
//! over release times and execution times. Start reading at `campaign.rs`; a test joins by its line in
//! `claims.rs`, and must pass in the verdicts, which ask the whole catalogue. With `SHIFTWORK_LONG` set, 100,000
//! systems on all CPUs, and the verdicts under every policy of which a test speaks; else under one each.
//! `SHIFTWORK_SEEDS=FROM..TO` attacks just these.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod campaign;
mod claims;
mod judge;
mod non_preemptive;
mod refusals;
mod system;
mod verdicts;
mod workers;

use std::ops::Range;

use campaign::{Effort, Tally, challenge};
use claims::CLAIMS;
use shiftwork_analysis::verdicts::TESTS;
use workers::over_seeds;

/// How many systems, and how hard each is attacked.
fn size() -> (u64, Effort) {
    match std::env::var_os("SHIFTWORK_LONG") {
        None => (
            1_500,
            Effort {
                rounds: 1,
                climbs: 8,
                verdicts: 1,
            },
        ),
        Some(_) => (
            100_000,
            Effort {
                rounds: 2,
                climbs: 40,
                verdicts: usize::MAX,
            },
        ),
    }
}

/// The seeds that the environment names.
fn named_seeds() -> Option<Range<u64>> {
    let named = std::env::var("SHIFTWORK_SEEDS").ok()?;
    let bounds = named.split_once("..");
    let bounds = bounds.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    let seeds = bounds.filter(|seeds: &Range<u64>| !seeds.is_empty());
    Some(seeds.unwrap_or_else(|| panic!("SHIFTWORK_SEEDS is {named:?}; wanted: FROM..TO")))
}

#[test]
fn no_claim_is_refuted() {
    let (systems, effort) = size();
    let tally: Tally = over_seeds(named_seeds().unwrap_or(0..systems), |seed, tally| {
        if let Err(refuted) = challenge(seed, effort, tally) {
            panic!("seed {seed}: {refuted}");
        }
    });
    println!("{tally:#?}");
    // A few seeds need not have something of everything.
    if named_seeds().is_some() {
        return;
    }
    for claim in CLAIMS {
        let made = tally.claims_of(claim.name);
        assert!(made as u64 > systems / 100, "{}: {made} claims", claim.name);
    }
    for test in TESTS {
        assert!(tally.passes_of(test) > 0, "{} never passed", test.name);
    }
}

#[test]
fn every_refusal_is_justified() {
    let systems = match std::env::var_os("SHIFTWORK_LONG") {
        None => 300,
        Some(_) => 100_000,
    };
    let seeds = named_seeds().unwrap_or(0..systems);
    let seen: refusals::Seen = over_seeds(seeds, refusals::check);
    println!("{seen:?}");
    if named_seeds().is_some() {
        return;
    }
    let refusals::Seen {
        alone: _,
        crowds,
        late,
        misses,
    } = seen;
    for count in [crowds, late, misses] {
        assert!(count as u64 > systems / 20, "{seen:?}");
    }
}
