//! How a policy and its overheads are prepared for a simulation.

use std::fmt;

use shiftwork_analysis::overheads::inflate_for_pfair;
use shiftwork_model::{Affinity, Overheads, TaskSet};
use shiftwork_policy::registry::{Built, Entry};
use shiftwork_taskset::overheads::{OverheadFile, Use};

/// The policy for this task set. Under overheads the set is adjusted for policies that account for
/// them (Pfair).
///
/// # Errors
/// If the task set is outside the policy's domain.
pub fn policy(set: &TaskSet, entry: &Entry, overheads: Option<&Overheads>) -> Built {
    let policy = entry.build(set)?;
    let Some(overheads) = overheads else {
        return Ok(policy);
    };
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    let bound: Vec<Affinity> = policy.packing().unwrap_or_else(own);
    match inflate_for_pfair(set, &entry.traits, &bound, overheads) {
        Some(adjusted) => entry.build(&adjusted),
        None => Ok(policy),
    }
}

/// Why a file has no overheads for a policy. Silently free scheduling would look better than any that was
/// measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoOverheads {
    policy: &'static str,
    purpose: Use,
    known: Vec<String>,
    is_variant: bool,
}

/// To follow the path of the file.
impl fmt::Display for NoOverheads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.purpose.name();
        let policy = self.policy;
        let known = match &self.known[..] {
            [] => "none".to_owned(),
            known => known.join(" "),
        };
        let hint = match self.is_variant {
            true => "; of the implementations of g-edf, CEm alone takes its table",
            false => "",
        };
        write!(
            f,
            "has no overheads for {policy}; write a table [{word}.{policy}] (there are: {known}{hint})"
        )
    }
}

impl std::error::Error for NoOverheads {}

/// What one policy costs.
///
/// # Errors
/// If the file has no table for it.
pub fn overheads(
    file: &OverheadFile,
    purpose: Use,
    entry: &Entry,
) -> Result<Overheads, NoOverheads> {
    file.find(purpose, entry.name).cloned().ok_or_else(|| {
        let tables = file.tables.keys();
        let known = tables.filter(|(other, _)| *other == purpose);
        NoOverheads {
            policy: entry.name,
            purpose,
            known: known.map(|(_, policy)| policy.clone()).collect(),
            is_variant: entry.traits.structure.is_some(),
        }
    })
}
