//! S. Tang, J. H. Anderson, L. Abeni, "On the Defectiveness of `SCHED_DEADLINE` w.r.t. Tardiness and
//! Affinities, and a Partial Fix", RTNS 2021.

use std::path::PathBuf;

use shiftwork_model::{Instant, Lagging, Repairs, TaskSet};
use shiftwork_policy::registry::OrderName;
use shiftwork_policy::{AsLinux, PushPull, Ties};

use crate::schedule::Schedule;

/// Where the task sets of the examples are.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/tang-2021")
}

/// The task set of an example, by the name of its file without the ending: `example-5`.
///
/// # Errors
/// In words, if there is no such file, or it cannot be read.
pub fn example(name: &str) -> Result<TaskSet, String> {
    let path = folder().join(format!("{name}.toml"));
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    shiftwork_taskset::read(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Simulates the set with these repairs, and ties broken like this. What the command line runs as
/// `dl-linux` has no repairs, and ties as Linux breaks them.
///
/// # Errors
/// In words, if the policy does not take the set.
pub fn simulate(
    set: &TaskSet,
    repairs: Repairs,
    ties: Ties,
    horizon: Instant,
) -> Result<Schedule, String> {
    let rules = AsLinux {
        repairs,
        lagging: Lagging::Grid,
    };
    let policy = PushPull::new("dl", set, rules, ties).map_err(|error| error.to_string())?;
    let order = OrderName::Edf;
    Ok(Schedule::under(set, Box::new(policy), order, horizon))
}
