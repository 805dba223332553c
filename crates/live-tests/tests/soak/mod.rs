//! The soak: one seed is one run of a real kernel with our scheduler, on virtual time, with random tasks, faults and
//! interleavings. The same seed with the same binary is the same run, instruction by instruction.
//!
//! A [plan](plan) is [drawn](draw) from the seed, [executed](execute) in the guest and [judged](judge) there record by record. The
//! [host](host) boots the guest that the plan wants, says how a run is repeated, and makes the plan of a failure smaller.

mod compact;
mod draw;
mod execute;
pub mod host;
mod judge;
mod plan;
pub mod selection;
pub mod tests;
mod threads;

use std::process::ExitCode;

use self::draw::draw;
use self::execute::{Summary, execute};
use self::plan::Part;
use crate::{inside, long};

/// The first argument of the program in the guest; the seed, the number of episodes and the parts that are left out follow.
const IN_GUEST: &str = "--soak-plan";
/// By how much windows are wider where a fixed seed is a test: it is another run with each build.
const PATIENCE: u64 = 2;
/// Episodes of a run that has a boot of its own.
const EPISODES: usize = 40;

/// Executes a plan if this process was started to, in the guest.
pub fn execute_if_asked() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, seed, episodes, without] = &arguments[..] else {
        return None;
    };
    if first != IN_GUEST {
        return None;
    }
    let (Ok(seed), Ok(episodes), Ok(without)) = (seed.parse(), episodes.parse(), parts(without))
    else {
        return Some(ExitCode::from(2));
    };
    inside::trace_dumps_of_schedulers();
    match execute(&draw(seed, episodes, None).without(&without), 1) {
        Ok(summary) => {
            println!("{}", shown(&summary));
            Some(ExitCode::SUCCESS)
        }
        Err(why) => {
            println!("{why}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// Parts, separated by commas.
fn parts(list: &str) -> Result<Vec<Part>, String> {
    let parts = list.split(',').filter(|part| !part.is_empty());
    parts.map(str::parse).collect()
}

fn shown(summary: &Summary) -> String {
    let Summary {
        records,
        lost,
        digest,
        longest,
        reaction,
    } = summary;
    format!(
        "{records} records, {lost} events lost, digest {digest}, jobs waited {longest} and CPUs {reaction} at most"
    )
}

/// A fixed seed on the machine that the tests share: with its CPUs and turns. With `SHIFTWORK_LONG` many, in full.
pub fn soak_of_fixed_seeds_keeps_all_rules() -> Result<(), String> {
    let (seeds, episodes) = if long() { (20, EPISODES) } else { (1, 8) };
    for seed in 1..=seeds {
        let plan = draw(seed, episodes, Some(host::shared_machine()));
        let done = execute(&plan, PATIENCE).map_err(|why| format!("seed {seed}, {plan}: {why}"));
        println!("seed {seed}, {plan}: {}", shown(&done?));
    }
    Ok(())
}
