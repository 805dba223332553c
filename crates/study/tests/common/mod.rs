//! A small study, and folders for it.

use std::path::Path;

use shiftwork_study::{Options, Outcome, Plan, run};
use shiftwork_taskset::study;
use tempfile::TempDir;

/// Six task sets in each of five cells, and what is asked differs from family to family.
pub const STUDY: &str = r#"
name = "small"
seed = 7
sets = 6
overheads = "costs.toml"
[tasks]
cpus = 2
utilizations = "uniform-medium"
[[family]]
name = "loads"
tardiness = true
caps = [0.5, 1.25, 2]
[[family]]
name = "clustered"
cluster-size = 1
affinities = "clustered"
utilizations = "uunifast-discard"
tasks = 4
loads = [0.6, 0.9]
[[policy]]
name = "g-edf"
label = "G"
families = ["loads"]
[[policy]]
name = "p-edf"
criteria = ["hard"]
[[policy]]
name = "strong-edf"
overheads = "none"
simulate = "50ms"
families = ["clustered"]
"#;

const COSTS: &str = r#"
[worst.g-edf]
schedule = { base = "20us", per-task = "1us" }
[average.g-edf]
schedule = "5us"
[worst.p-edf]
schedule = "10us"
"#;

/// A folder that goes when it is dropped.
pub fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The study above.
pub fn plan() -> Plan {
    plan_of(STUDY)
}

/// The plan of this study.
pub fn plan_of(text: &str) -> Plan {
    let folder = folder();
    std::fs::write(folder.path().join("costs.toml"), COSTS).unwrap();
    let file = study::read(text).unwrap();
    Plan::new(file, &folder.path().join("study.toml")).unwrap()
}

/// Runs all that is missing.
pub fn run_all(plan: &Plan, folder: &Path) -> Outcome {
    let outcome = run(plan, folder, Options::default(), &mut |_| true).unwrap();
    assert_eq!(outcome.missing, 0);
    outcome
}
