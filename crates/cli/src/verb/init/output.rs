//! What `init --json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_observe::{Measurement, Proposal, ThreadMeasurement, Waker};
use shiftwork_trace::SCHEMA_VERSION;

/// What `init --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitOutput {
    schema_version: u64,
    /// Where the file was written; null without `--output`, or if there is nothing to write.
    file: Option<String>,
    /// The task-set file; null with `--output`, or if no thread has enough jobs.
    toml: Option<String>,
    /// What was measured; null for the example.
    measured: Option<MeasuredOutput>,
}

/// What was measured of a process, and of those that it started.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MeasuredOutput {
    process: u32,
    /// For how long.
    length_ns: u64,
    /// `trace`: each event; `counters`: mean values.
    source: &'static str,
    /// How often events were lost.
    gaps: u64,
    /// By number.
    threads: Vec<ThreadOutput>,
    paths: Vec<PathOutput>,
}

/// What was measured of a thread.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ThreadOutput {
    /// The number of its process, and the name of that.
    process: u32,
    process_name: String,
    thread: u32,
    name: String,
    /// `idle`, `rare`, `periodic`, `sporadic` or `busy`.
    activity: &'static str,
    jobs: u64,
    /// CPU time, jobs or not.
    ran_ns: u64,
    /// CPU time of jobs.
    cost_ns: CostOutput,
    /// Times from one wake-up to the next; null if none is known.
    period_ns: Option<PeriodOutput>,
    /// What woke it, the most frequent first.
    wakers: Vec<WakerOutput>,
    /// The name of its task; null if it is none.
    task: Option<String>,
    /// The name of the task that triggers its task; null if none does.
    triggered_by: Option<String>,
    /// Why it is no task; null if it is one.
    left_out: Option<String>,
}

/// CPU time of jobs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostOutput {
    p50: u64,
    p99: u64,
    max: u64,
}

/// Times from one wake-up to the next.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeriodOutput {
    min: u64,
    p50: u64,
}

impl CostOutput {
    /// Of a thread.
    pub fn of(thread: &ThreadMeasurement) -> Self {
        Self {
            p50: thread.costs.p50.as_ns(),
            p99: thread.costs.p99.as_ns(),
            max: thread.costs.max.as_ns(),
        }
    }
}

impl PeriodOutput {
    /// Of a thread; `None` if no distance of two wake-ups is known.
    pub fn of(thread: &ThreadMeasurement) -> Option<Self> {
        let distances = thread.distances?;
        Some(Self {
            min: distances.min.as_ns(),
            p50: distances.median.as_ns(),
        })
    }
}

/// Something that woke a thread.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WakerOutput {
    /// `thread`, `interrupt` or `unknown`.
    kind: &'static str,
    /// The number of the thread, of this process or another one; null for others.
    thread: Option<u32>,
    /// How many jobs began so.
    jobs: u64,
}

/// A path of threads of which each triggers the next.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PathOutput {
    threads: Vec<u32>,
    /// How often it was seen as a whole.
    seen: u64,
    /// From the first wake-up to the last completion.
    latency_ns: LatencyOutput,
}

/// From the first wake-up of a path to the last completion.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LatencyOutput {
    p50: u64,
    max: u64,
}

impl InitOutput {
    /// Of the example.
    pub fn example(file: Option<&str>, toml: &str) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            file: file.map(str::to_owned),
            toml: file.is_none().then(|| toml.to_owned()),
            measured: None,
        }
    }

    /// Of a measured process; without a text if nothing is proposed.
    pub fn measured(
        measurement: &Measurement,
        proposal: &Proposal,
        file: Option<&str>,
        toml: Option<&str>,
    ) -> Self {
        let threads = measurement.threads.iter();
        let paths = measurement.paths.iter().map(|path| PathOutput {
            threads: path.threads.clone(),
            seen: path.seen,
            latency_ns: LatencyOutput {
                p50: path.latency_median.as_ns(),
                max: path.latency_max.as_ns(),
            },
        });
        Self {
            schema_version: SCHEMA_VERSION,
            file: file.map(str::to_owned),
            toml: toml.filter(|_| file.is_none()).map(str::to_owned),
            measured: Some(MeasuredOutput {
                process: measurement.process,
                length_ns: measurement.length.as_ns(),
                source: measurement.source.name(),
                gaps: measurement.gaps as u64,
                threads: threads.map(|it| ThreadOutput::of(it, proposal)).collect(),
                paths: paths.collect(),
            }),
        }
    }
}

impl ThreadOutput {
    fn of(thread: &ThreadMeasurement, proposal: &Proposal) -> Self {
        let index = proposal.threads.iter().position(|id| *id == thread.id);
        let task = index.and_then(|index| proposal.set.tasks.get(index));
        let source = task.and_then(|task| task.trigger()?.sources.first().copied());
        let source = source.and_then(|id| proposal.set.tasks.get(id.index()));
        let left_out = proposal.left_out.iter().find(|it| it.id == thread.id);
        let waker = |share: &shiftwork_observe::WakerShare| {
            let (kind, thread) = match share.waker {
                Waker::Thread(id) => ("thread", Some(id)),
                Waker::Interrupt => ("interrupt", None),
                Waker::Unknown => ("unknown", None),
            };
            WakerOutput {
                kind,
                thread,
                jobs: share.jobs,
            }
        };
        Self {
            process: thread.process,
            process_name: thread.process_name.clone(),
            thread: thread.id,
            name: thread.name.clone(),
            activity: thread.activity.name(),
            jobs: thread.jobs,
            ran_ns: thread.executed.as_ns(),
            cost_ns: CostOutput::of(thread),
            period_ns: PeriodOutput::of(thread),
            wakers: thread.wakers.iter().map(waker).collect(),
            task: task.map(|task| task.name.clone()),
            triggered_by: source.map(|task| task.name.clone()),
            left_out: left_out.map(|it| it.reason.clone()),
        }
    }
}
