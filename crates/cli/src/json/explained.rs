//! What `--explain` adds, and what a record says: why deadlines were missed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the time of a late job went, and what is to blame.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplanationOutput {
    /// The name of its task.
    task: String,
    /// Its number, from 1.
    job: u64,
    release_ns: u64,
    deadline_ns: u64,
    /// Its finish, or the end of what is known of it.
    until_ns: u64,
    /// `finished`, `dropped` or `unfinished`.
    end: String,
    /// From the deadline to `until_ns`; zero if that is earlier.
    tardiness_ns: u64,
    /// What was still to be executed, by itself and the jobs before it.
    remaining_ns: u64,
    /// The release of the first of the row of late jobs of its task: culprits are counted from here.
    since_ns: u64,
    /// One culprit that is enough, several that only together are, or none: its own demand.
    cause: Vec<CauseOutput>,
    /// Everything between release and `until_ns`; the times add up to exactly that.
    parts: Vec<PartOutput>,
    /// All that may be to blame, the longest time first.
    culprits: Vec<CulpritOutput>,
    /// All this in words.
    text: String,
    /// What ran on the CPUs of its affinity, by CPU and then by time.
    timeline: Vec<SliceOutput>,
    /// The mutexes for which it waited, the longest time first; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mutexes: Option<Vec<MutexWaitOutput>>,
    /// What triggered it; absent if its task arrives by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trigger: Option<TriggerOutput>,
    /// Of a record: sentences about what no record says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<String>>,
}

/// The wait of a job for a mutex that a task held.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MutexWaitOutput {
    /// The name of the mutex.
    mutex: String,
    /// The task that held it.
    task: String,
    /// The time for which the job waited meanwhile.
    time_ns: u64,
    /// The part of it in which the holder was ready and had no CPU.
    without_cpu_ns: u64,
    /// What executed then on CPUs that the holder may use, the longest time first.
    instead: Vec<InsteadOutput>,
}

/// A task that executed instead of another.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InsteadOutput {
    task: String,
    time_ns: u64,
}

/// What triggered a job.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TriggerOutput {
    /// The task of the job that triggered it; where all of several do, of the last of them.
    task: String,
    /// The number of that job.
    job: u64,
    /// When it did.
    at_ns: u64,
    /// The task of the job from which both stem, which arrived by time.
    root_task: String,
    /// The number of that job.
    root_job: u64,
    /// When that arrived.
    root_arrival_ns: u64,
    /// The median of the time from the root's arrival to the trigger, over the jobs of the task, to three digits.
    usual_delay_ns: u64,
}

/// The longest time of a chain that took longer than wanted, and where it went.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainExplanationOutput {
    /// The name of the chain.
    chain: String,
    /// `reaction`, `age` or `latency`.
    requirement: String,
    wanted_ns: u64,
    /// The read or the arrival of the first task.
    from_ns: u64,
    /// The effect of the last task, or the end of the run.
    to_ns: u64,
    /// Whether there was that effect by the end of the run.
    ended: bool,
    /// What one job after the other took, without gaps.
    links: Vec<LinkOutput>,
    /// The link with the longest delay, as an index from 0; the longest link if none was delayed.
    slowest: u64,
    /// For how long its job did not execute within its cost.
    delay_ns: u64,
    /// What made the slowest link so late that the chain was: one culprit, or several together; empty if that cannot be said.
    cause: Vec<CauseOutput>,
    /// All that may be to blame for the slowest link, the longest time first; empty with `cause`.
    culprits: Vec<CulpritOutput>,
    /// What was missed and the slowest link, in words.
    text: String,
}

/// The part of one job in the time of a chain.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LinkOutput {
    /// The name of its task.
    task: String,
    /// Its number; null if no job was released by the end.
    job: Option<u64>,
    /// The end of the link before.
    from_ns: u64,
    /// When it triggered the next link's job or completed, or the end of the time.
    to_ns: u64,
    /// Its release, which may be before `from_ns`.
    release_ns: Option<u64>,
    /// When it began to execute, and to read.
    start_ns: Option<u64>,
    /// Its completion, if that was by the end of the time.
    completion_ns: Option<u64>,
    /// From `from_ns` to its release.
    waited_ns: u64,
    /// What follows, up to `to_ns`; the times add up to that.
    parts: Vec<PartOutput>,
    /// What triggered the job; absent if its task arrives by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trigger: Option<TriggerOutput>,
}

/// A culprit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CauseOutput {
    /// `task-left`, `cpu-offline`, `cpu-taken`, `stall`, `interrupts`, `own-overrun`, `overrun`, `reserve`,
    /// `no-shift`, `narrow-affinity`, `narrow-packing`, `rule`, `overload` or `suspension`.
    kind: String,
    /// Of `overrun`: the task that overran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
}

/// A part of the time.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PartOutput {
    /// `carry-in`, `executing`, `own-overrun`, `interrupted`, `throttled`, `suspended`, `blocked`, `spinning`,
    /// `stalled`, `held-back`, `cpu-taken`, `cpu-offline`, `background`, `overrun` or `more-urgent`.
    kind: String,
    /// Of `overrun` and `more-urgent`: the task that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    time_ns: u64,
}

/// A culprit and what it did.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CulpritOutput {
    /// As in `cause`.
    kind: String,
    /// As in `cause`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    time_ns: u64,
    /// Whether the deadline would have been met without it.
    suffices: bool,
    /// On which CPUs that was; absent where none is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpus: Option<Vec<u64>>,
}

/// A stretch of time on a CPU.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SliceOutput {
    cpu: u64,
    from_ns: u64,
    to_ns: u64,
    /// `job`, `idle`, `offline`, `taken` or `background`.
    state: String,
    /// Of `job`: the task's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// Of `job`: its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    job: Option<u64>,
    /// If the job was shifted to here: the CPU from which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shifted_from: Option<u64>,
}
