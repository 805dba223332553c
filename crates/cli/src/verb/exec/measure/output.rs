//! What `exec --measure` prints.

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_model::Span;
use shiftwork_observe::{Activity, Measurement, Source, ThreadMeasurement, summary};
use shiftwork_trace::SCHEMA_VERSION;

use crate::failure::Failure;
use crate::output::Console;
use crate::verb::exec::ExecOutput;
use crate::verb::init::{CostOutput, PeriodOutput};

/// Margin above the measured maximum, in percent: a later job may take longer.
const MARGIN_PERCENT: u64 = 20;

/// Proposed costs and periods are multiples of this.
const STEP: Span = Span::from_us(10);

/// So many threads are shown as text.
const SHOWN_MAX: usize = 10;

/// What was measured of all threads, and the proposals.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MeasuredOutput {
    schema_version: u64,
    /// `daemon` or `trace`: each job; `counters`: mean values.
    source: &'static str,
    /// Length of the measurement.
    measured_ns: u64,
    /// The first process.
    process: u32,
    /// Those with the most CPU time first.
    threads: Vec<ThreadOutput>,
}

/// What was measured of a thread.
#[derive(Debug, Serialize, JsonSchema)]
struct ThreadOutput {
    /// The number of its process, and the name of that.
    process: u32,
    process_name: String,
    thread: u32,
    name: String,
    /// Number of completed jobs.
    jobs: u64,
    cost_ns: CostOutput,
    /// Null with fewer than two jobs.
    period_ns: Option<PeriodOutput>,
    /// CPU time, jobs or not.
    ran_ns: u64,
    /// The proposed reservation; null if too few jobs were measured, or their cost exceeds their period.
    proposed: Option<ProposalOutput>,
}

/// A proposed reservation.
#[derive(Debug, Serialize, JsonSchema)]
struct ProposalOutput {
    cost_ns: u64,
    period_ns: u64,
}

/// The proposed cost and period: the maximum CPU time of a job with a margin, and the median period. `None` if too few jobs
/// were measured, or the cost exceeds the period.
fn proposal(thread: &ThreadMeasurement) -> Option<(Span, Span)> {
    let up = |ns: u64| ns.checked_next_multiple_of(STEP.as_ns()).map(Span::from_ns);
    let down = |ns: u64| Span::from_ns(ns - ns % STEP.as_ns());
    let cost = up(thread.costs.max.as_ns() / 100 * (100 + MARGIN_PERCENT))?;
    let period = down(thread.distances?.median.as_ns());
    (!cost.is_zero() && cost < period).then_some((cost, period))
}

/// Prints what was measured; returns whether there is a proposal.
pub fn show(measurement: &Measurement, console: &mut Console) -> Result<bool, Failure> {
    let mut threads: Vec<&ThreadMeasurement> = measurement.threads.iter().collect();
    threads.sort_by_key(|it| (std::cmp::Reverse(it.executed), it.id));
    let has_proposal = threads.iter().any(|it| proposal(it).is_some());
    if console.json {
        console.json_line(&ExecOutput::Measured(MeasuredOutput {
            schema_version: SCHEMA_VERSION,
            source: measurement.source.name(),
            measured_ns: measurement.length.as_ns(),
            process: measurement.process,
            threads: threads.iter().map(|it| ThreadOutput::of(it)).collect(),
        }))?;
        return Ok(has_proposal);
    }
    match threads[..] {
        [] => console.line("nothing was measured: no thread was there for long enough")?,
        [thread] => show_thread(thread, measurement, console)?,
        _ => show_threads(&threads, measurement, console)?,
    }
    Ok(has_proposal)
}

/// Those with jobs, each below its name.
fn show_threads(
    threads: &[&ThreadMeasurement],
    measurement: &Measurement,
    console: &mut Console,
) -> Result<(), Failure> {
    console.line(summary(measurement))?;
    let has_jobs =
        |it: &ThreadMeasurement| matches!(it.activity, Activity::Periodic | Activity::Sporadic);
    let with_jobs = threads.iter().filter(|it| has_jobs(it));
    let with_jobs: Vec<&ThreadMeasurement> = with_jobs.copied().collect();
    for thread in with_jobs.iter().take(SHOWN_MAX) {
        console.line(format!(
            "\n{} (thread {})",
            thread.label(measurement),
            thread.id
        ))?;
        show_thread(thread, measurement, console)?;
    }
    if let Some(more) = with_jobs.len().checked_sub(SHOWN_MAX).filter(|it| *it > 0) {
        console.line(format!("\n{more} more with jobs; --json has all"))?;
    }
    let others = with_jobs.iter().filter(|it| proposal(it).is_some());
    if let Some(thread) = others.clone().find(|it| it.id != measurement.process) {
        console.line(format!(
            "\n`exec` reserves for the main thread of what it executes. For others while they run: `exec --tid {} ..`; for all at \
             once a file, which `sudo shiftwork init --pid {}` writes and `shiftwork apply` requests",
            thread.id, thread.process
        ))?;
    }
    Ok(())
}

fn show_thread(
    thread: &ThreadMeasurement,
    measurement: &Measurement,
    console: &mut Console,
) -> Result<(), Failure> {
    let span = |span: Span| shiftwork_report::span(span.as_ns());
    let costs = &thread.costs;
    let cost = match measurement.source {
        Source::Counters => format!(
            "CPU time {} (mean), {} (largest mean of a short time)",
            span(costs.p50),
            span(costs.max)
        ),
        Source::Daemon | Source::Trace => format!(
            "CPU time {} (median), {} (99%), {} (max)",
            span(costs.p50),
            span(costs.p99),
            span(costs.max),
        ),
    };
    let length = span(measurement.length);
    console.line(format!("{} jobs in {length}: {cost}", thread.jobs))?;
    if let Some(distances) = &thread.distances {
        console.line(match measurement.source {
            Source::Counters => format!("period {} (mean)", span(distances.median)),
            Source::Daemon | Source::Trace => format!(
                "period {} (median), {} (min)",
                span(distances.median),
                span(distances.min)
            ),
        })?;
    }
    console.line(match proposal(thread) {
        Some((cost, period)) => format!(
            "proposed: --cost {cost} --period {period}; the cost is the measured maximum plus {MARGIN_PERCENT}%, which is \
             no bound on the worst case"
        ),
        None => {
            "no proposal: too few jobs were measured, or their cost exceeds their period".to_owned()
        }
    })
}

impl ThreadOutput {
    fn of(thread: &ThreadMeasurement) -> Self {
        Self {
            process: thread.process,
            process_name: thread.process_name.clone(),
            thread: thread.id,
            name: thread.name.clone(),
            jobs: thread.jobs,
            cost_ns: CostOutput::of(thread),
            period_ns: PeriodOutput::of(thread),
            ran_ns: thread.executed.as_ns(),
            proposed: proposal(thread).map(|(cost, period)| ProposalOutput {
                cost_ns: cost.as_ns(),
                period_ns: period.as_ns(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_model::CpuSet;
    use shiftwork_observe::{Costs, Distances, Thread};

    use super::*;

    fn seen(jobs: u64, cost_us: u64, period_us: u64) -> ThreadMeasurement {
        let (cost, period) = (Span::from_us(cost_us), Span::from_us(period_us));
        let thread = Thread {
            process: 1,
            process_name: "control".to_owned(),
            name: "control".to_owned(),
            affinity: CpuSet::first(1),
            cpu_time: Some(Span::from_us(jobs * cost_us)),
            started: 1,
            has_ended: false,
        };
        let costs = Costs {
            p50: cost,
            p99: cost,
            max: cost,
            chosen: cost,
        };
        let distances = (jobs > 1).then_some(Distances {
            min: period,
            median: period,
            regular: period,
            regular_percent: 0,
        });
        ThreadMeasurement::counted(1, thread, jobs, costs, distances, Span::from_s(1))
    }

    #[test]
    fn proposal_is_maximum_cost_with_margin_and_median_period() {
        let us = Span::from_us;
        assert_eq!(
            proposal(&seen(9, 1_000, 5_007)),
            Some((us(1_200), us(5_000)))
        );
        assert_eq!(proposal(&seen(9, 1, 5_000)), Some((us(10), us(5_000))));
    }

    #[test]
    fn no_proposal_if_cost_exceeds_period() {
        assert_eq!(proposal(&seen(1, 100, 5_000)), None);
        assert_eq!(proposal(&seen(9, 4_500, 5_000)), None);
        assert_eq!(proposal(&seen(9, 0, 5_000)), None);
    }
}
