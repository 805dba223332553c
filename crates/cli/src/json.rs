//! The shapes of everything that the verbs print with `--json`, from which `shiftwork schema` makes
//! JSON schemas.
//!
//! Keys are added freely and never renamed. Times are integers in `_ns` keys.

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

use crate::verb::{doctor::DoctorOutput, policies::PoliciesOutput};

/// Version of all outputs; it changes when a key changes its meaning.
pub const SCHEMA_VERSION: u64 = shiftwork_trace::SCHEMA_VERSION;

/// What `simulate --json` prints, one line per policy, and `report --json`, one line per trace.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunOutput {
    schema_version: u64,
    /// The policy's name.
    policy: String,
    /// CPUs of the machine.
    cpus: u64,
    /// The run covers [0, horizon).
    horizon_ns: u64,
    /// Jobs released before the horizon.
    jobs: u64,
    /// Jobs finished by the horizon.
    completed: u64,
    /// Events that the policy took; absent from `report`, since traces do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    events: Option<u64>,
    /// Jobs finished late, and unfinished jobs that were due by the horizon.
    deadline_misses: u64,
    /// How often a running unfinished job was ready but not running after an instant.
    preemptions: u64,
    /// How often a job executed on another CPU than it last executed on; shifts included.
    migrations: u64,
    /// How often a job ran before and after an instant, on different CPUs.
    shifts: u64,
    tasks: Vec<TaskOutput>,
    /// True if the run was stopped (Ctrl-C) before the time that was asked for; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted: Option<bool>,
}

/// One task of a run.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskOutput {
    name: String,
    jobs: u64,
    completed: u64,
    /// Jobs finished late, and unfinished jobs that were due by the horizon.
    misses: u64,
    /// Of completed jobs; null if there are none.
    response_ns: Option<ResponseOutput>,
    /// Of completed jobs; null if there are none.
    tardiness_ns: Option<TardinessOutput>,
    preemptions: u64,
    migrations: u64,
    shifts: u64,
}

/// Response times of a task, in nanoseconds.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ResponseOutput {
    min: u64,
    /// To the nearest nanosecond.
    mean: u64,
    /// To three digits.
    p99: u64,
    max: u64,
}

/// Tardiness of a task, in nanoseconds.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TardinessOutput {
    max: u64,
    /// To the nearest nanosecond.
    mean: u64,
}

/// What `scenario --json` prints, one line per step.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepOutput {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// From 0.
    pub step: usize,
    /// The task on each CPU, null where none is.
    pub running: Vec<Option<String>>,
    /// Tasks that ran before and after this step on different CPUs.
    pub shifts: u64,
    /// Tasks that ran before this step and are ready and not running after it.
    pub preemptions: u64,
    /// Whether the step's expectation is met; true if it has none.
    pub ok: bool,
}

/// What `generate --json` prints, one line per task set.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GeneratedOutput {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// From 0.
    pub index: u64,
    /// Where the task set was written; null without `--out-dir`.
    pub file: Option<String>,
    /// CPUs of the platform.
    pub cpus: usize,
    /// Number of tasks.
    pub tasks: usize,
    /// The sum of the utilizations, rounded.
    pub utilization: f64,
    /// `global`, `partitioned`, `bi-level`, `clustered`, `laminar` or `arbitrary`.
    pub affinity_kind: &'static str,
    /// The task-set file; null with `--out-dir`.
    pub toml: Option<String>,
}

/// What `convert --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConvertedOutput {
    /// Always the same for one release of the format.
    pub schema_version: u64,
    /// The format that was read: `rt-app`, `simso` or `schedcat`.
    pub from: &'static str,
    /// What could not be carried over.
    pub left_out: Vec<String>,
    /// Where the task set was written; null without `--output`.
    pub file: Option<String>,
    /// The task-set file; null with `--output`.
    pub toml: Option<String>,
}

/// A verb and the schema of one line that it prints with `--json`.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("simulate", schema_for!(RunOutput)),
        ("scenario", schema_for!(StepOutput)),
        ("generate", schema_for!(GeneratedOutput)),
        ("convert", schema_for!(ConvertedOutput)),
        ("policies", schema_for!(PoliciesOutput)),
        ("report", schema_for!(RunOutput)),
        ("doctor", schema_for!(DoctorOutput)),
    ]
}
