//! S. Tang, J. H. Anderson, L. Abeni, "On the Defectiveness of `SCHED_DEADLINE` w.r.t. Tardiness and
//! Affinities, and a Partial Fix", RTNS 2021.
//!
//! `examples/` and `repairs.rs` are its Sections 3 and 4, example by example; `examples_page.rs` is the page about those,
//! `evaluation.rs` and `evaluation_page.rs` are Section 6.

pub mod evaluation;
pub mod evaluation_page;
mod examples;
pub mod examples_page;
mod repairs;

use std::path::PathBuf;

use shiftwork_model::{Instant, Lagging, Repairs, Span, TaskId, TaskSet};
use shiftwork_policy::registry::traits::LINUX_REPAIRED;
use shiftwork_policy::{PushPull, Ties};

use crate::schedule::Schedule;

/// The folder of this paper's pages.
const FOLDER: &str = "tang-2021";

/// The policies that are compared: Linux, the repaired Linux, and two that shift running jobs.
pub const POLICIES: [&str; 4] = ["dl-linux", "dl-sp", "strong-edf", "hpa-edf"];

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
    let mut set = set.clone();
    set.scheduler.repairs = Some(repairs);
    set.scheduler.lagging = Lagging::Grid;
    let policy = PushPull::new("dl", &set, repairs, ties).map_err(|error| error.to_string())?;
    Ok(Schedule::under(
        &set,
        Box::new(policy),
        &LINUX_REPAIRED,
        horizon,
    ))
}

/// All repairs but the one of this name.
pub fn all_but(name: &str) -> Option<Repairs> {
    let mut others = Repairs::NAMES.into_iter().filter(|other| *other != name);
    others.try_fold(Repairs::NONE, Repairs::with)
}

/// The occurrences of Example 5: the k-th one, from 1, is at the release of the k-th job of t3. For each, by
/// how much t2 and t4 have been late until the next one.
pub fn lateness_by_occurrence(run: &Schedule) -> Vec<[Span; 2]> {
    let [t2, t3, t4] = [1, 2, 3].map(TaskId::from_index);
    let releases = run.of_task(t3).map(|fate| fate.release);
    let worst = |release: Instant| {
        [t2, t4].map(|task| run.worst_of_releases_before(task, release + Span::from_ms(1)))
    };
    releases.map(worst).collect()
}
