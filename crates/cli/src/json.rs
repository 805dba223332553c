//! The shapes of everything that the verbs print with `--json`, from which `shiftwork schema` makes
//! JSON schemas. Those of one verb alone are in its file; here are those that several print.
//!
//! Keys are added freely and never renamed. Times are integers in `_ns` keys.

mod chains;
mod explained;

use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use shiftwork_verbs::admission::AdmissionOutput;
pub use shiftwork_verbs::analyze::AnalyzeOutput;
use shiftwork_verbs::policies::PoliciesOutput;

use crate::verb::apply::ApplyOutput;
pub use crate::verb::calibrate::CalibrateOutput;
use crate::verb::change::ChangeOutput;
use crate::verb::convert::ConvertedOutput;
use crate::verb::doctor::DoctorOutput;
use crate::verb::exec::ExecOutput;
use crate::verb::export::ExportOutput;
use crate::verb::generate::GeneratedOutput;
use crate::verb::init::InitOutput;
use crate::verb::record::{ExplainedOutput, KeptOutput};
use crate::verb::release::ReleaseOutput;
use crate::verb::scenario::StepOutput;
use crate::verb::status::StatusOutput;
use crate::verb::study::StudyOutput;
use chains::ChainOutput;
use explained::{ChainExplanationOutput, ExplanationOutput};

/// What `simulate --json` prints, one line per policy, `report --json`, one line per trace,
/// `run --json`, unless nothing was run, and `record FILE --json`.
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
    /// Events that the policy took; absent from `report`, since traces do not contain it.
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
    /// When jobs waited that the strong invariant would let run; absent if that was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inversions: Option<InversionsOutput>,
    tasks: Vec<TaskOutput>,
    /// Of cause-effect chains; absent if the task set has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chains: Option<Vec<ChainOutput>>,
    /// What led to the first missed deadlines; absent without `--explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    explanations: Option<Vec<ExplanationOutput>>,
    /// With `--explain`: why the first chains took longer than wanted; absent if the task set has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chain_explanations: Option<Vec<ChainExplanationOutput>>,
    /// Of a record: when it ends, by the world's clock, since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unix_ns: Option<u64>,
    /// True if the run was stopped (Ctrl-C) before the time that was asked for; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted: Option<bool>,
    /// Of `run`: `kernel`, `agent`, `fifo` or `sim`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Of `run`: what is promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    admission: Option<AdmissionOutput>,
    /// Of a live run: records lost on the way from the kernel; with any, all counts are too low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost_records: Option<u64>,
    /// Of a live run: how many running jobs the scheduler decided to move; `shifts` counts those that
    /// left one CPU and came to another at the very same instant, which only a simulation does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided_shifts: Option<u64>,
    /// Of a live run: to the job running, from the decision; where an agent decides, from what happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reaction_ns: Option<ReactionOutput>,
    /// Of a live run: from each release to the kernel knowing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lateness_ns: Option<ReactionOutput>,
    /// Of a live run where an agent decided: what scheduling itself took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overheads_ns: Option<OverheadsOutput>,
    /// Of a live run: why the kernel took the scheduler away before the end; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unloaded: Option<String>,
    /// Of a live run: the simulation of the same task set, seed and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    simulated: Option<Box<RunOutput>>,
    /// Of a live run: whether it was as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreement: Option<AgreementOutput>,
    /// Of a live run: whether what ran is what the policy decides on the events that were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayOutput>,
    /// Of `run`: whether what admission promised was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guarantee: Option<GuaranteeOutput>,
}

/// What scheduling itself took, part by part. A part that was not measured is absent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OverheadsOutput {
    /// From an event until the agent receives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    report: Option<ReactionOutput>,
    /// From there until it has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decide: Option<ReactionOutput>,
    /// From there to the kick of the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kick: Option<ReactionOutput>,
    /// From there until the CPU runs the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    switch: Option<ReactionOutput>,
    /// How long the scheduling CPU worked for a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scheduling: Option<ReactionOutput>,
    /// How long a CPU's dispatcher worked to find what to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dispatch: Option<ReactionOutput>,
    /// What each of the records costs by which this is known.
    record: u64,
}

/// What `run --json` prints if the task set is refused, and `--best-effort` is not given.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusedOutput {
    schema_version: u64,
    /// The policy's name.
    policy: String,
    admission: AdmissionOutput,
}

/// What `run --json` prints.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LiveOutput {
    /// It ran.
    Ran(Box<RunOutput>),
    /// It was refused.
    Refused(RefusedOutput),
}

/// What `record --json` prints with a file, `--list` or `--explain`. Without, it prints the facts: those of a record.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it only says what there is, for the schema")]
pub enum RecordOutput {
    /// What a file says.
    Run(Box<RunOutput>),
    /// With `--list`.
    Kept(KeptOutput),
    /// With `--explain`.
    Explained(ExplainedOutput),
}

/// How long something took, many times, in nanoseconds. Percentiles are to three digits.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReactionOutput {
    min: u64,
    p50: u64,
    p99: u64,
    p99_9: u64,
    max: u64,
    /// How many times.
    samples: u64,
}

/// Whether what admission promised was kept.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GuaranteeOutput {
    /// `hard`, `bounded-tardiness`, `share` or `none`.
    promised: String,
    /// False if deadlines were guaranteed, and missed.
    kept: bool,
    /// How many deadlines were missed.
    misses: u64,
    /// Why, for people; null if none was missed, or nothing was found.
    likely_cause: Option<String>,
}

/// Whether a live run was as it should be, and how far its finishes are from those of the ideal simulation.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgreementOutput {
    /// Whether the replay holds and no guarantee is broken.
    holds: bool,
    /// How many jobs are compared; absent where programs run, like the keys below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jobs: Option<u64>,
    /// How many jobs were released in one of the runs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unmatched: Option<u64>,
    /// The job that finished farthest from its simulated finish; absent if none was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worst: Option<FinishOutput>,
}

/// How far a job's finish differs from the simulated one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FinishOutput {
    task: Option<String>,
    /// From 1.
    job: u64,
    difference_ns: u64,
}

/// The measured events, replayed through the policy.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplayOutput {
    /// Whether there is no disagreement.
    holds: bool,
    /// By what the policy is judged: `same-set`, `weak-invariant`, `non-preemptive`, `work-conserving` or
    /// `at-boundaries`.
    rule: String,
    /// How long the machine may take to carry out a decision.
    window_ns: u64,
    /// How many decisions were replayed.
    decisions: u64,
    /// For how long the run was judged: the time outside of windows.
    judged_ns: u64,
    /// How many disagreements there are, also beyond those listed.
    disagreements: u64,
    /// How long they lasted in all.
    total_ns: u64,
    /// How long the longest lasted.
    longest_ns: u64,
    /// How many of them are stalls, or releases that were not noticed.
    stalls: u64,
    longest_stall_ns: u64,
    /// The first of them.
    intervals: Vec<IntervalOutput>,
    /// Where the rule does not ask for it: whether the sets that ran are also those that the policy selects
    /// by itself; otherwise null.
    same_sets: Option<bool>,
    /// Other policies that would have passed: this run cannot distinguish them.
    alike: Vec<String>,
    /// Other policies that would not have passed.
    distinguished: Vec<String>,
}

/// An interval in which the machine was not as the policy decides.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IntervalOutput {
    /// `set`: other jobs ran; `stall`: a job did not run while a CPU that it may use was idle; `unnoticed`: a
    /// release was not noticed; `rank`: a job was scheduled by a deadline or priority that is not its own.
    kind: String,
    from_ns: u64,
    to_ns: u64,
    /// The jobs that ran and should not have.
    runs: Vec<JobOutput>,
    /// The jobs that should have run and did not.
    waits: Vec<JobOutput>,
    /// A CPU that was idle and could have run one of them; null if there was none.
    idle_cpu: Option<u64>,
    /// For people.
    what: String,
}

/// A job by its task and number.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JobOutput {
    task: Option<String>,
    /// From 1.
    job: u64,
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
    /// When its jobs waited that the strong invariant would let run; absent if that was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inversions: Option<InversionsOutput>,
}

/// Priority inversions: stretches of time in which a ready job waits although the strong invariant would let
/// it run. Each is of one kind.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InversionsOutput {
    count: u64,
    /// The sum of their lengths.
    total_ns: u64,
    /// To three digits; null if there are none.
    p99_ns: Option<u64>,
    /// Null if there are none.
    longest_ns: Option<u64>,
    /// Those in which a CPU that the job may use is idle or runs a less urgent job.
    direct: InversionKindOutput,
    /// Those in which running jobs would have to shift.
    affinity_related: InversionKindOutput,
}

/// Priority inversions of one kind.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InversionKindOutput {
    count: u64,
    /// The sum of their lengths.
    total_ns: u64,
    /// To three digits; null if there are none.
    p99_ns: Option<u64>,
    /// Null if there are none.
    longest_ns: Option<u64>,
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

/// A verb and the schema of one line that it prints with `--json`.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("init", schema_for!(InitOutput)),
        ("analyze", schema_for!(AnalyzeOutput)),
        ("simulate", schema_for!(RunOutput)),
        ("run", schema_for!(LiveOutput)),
        ("exec", schema_for!(ExecOutput)),
        ("apply", schema_for!(ApplyOutput)),
        ("change", schema_for!(ChangeOutput)),
        ("release", schema_for!(ReleaseOutput)),
        ("status", schema_for!(StatusOutput)),
        ("top", schema_for!(StatusOutput)),
        ("record", schema_for!(RecordOutput)),
        ("scenario", schema_for!(StepOutput)),
        ("generate", schema_for!(GeneratedOutput)),
        ("convert", schema_for!(ConvertedOutput)),
        ("export", schema_for!(ExportOutput)),
        ("calibrate", schema_for!(CalibrateOutput)),
        ("study", schema_for!(StudyOutput)),
        ("policies", schema_for!(PoliciesOutput)),
        ("report", schema_for!(RunOutput)),
        ("doctor", schema_for!(DoctorOutput)),
    ]
}
