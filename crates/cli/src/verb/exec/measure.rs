//! `shiftwork exec --measure`: observes a thread without a reservation, and proposes one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_client::{Client, Observation};
use shiftwork_model::Span;
use shiftwork_trace::SCHEMA_VERSION;

use super::ExecOutput;
use crate::args::ExecArgs;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::verb::daemon_client;
use crate::verb::watch::{catch_interrupts, is_interrupted};

/// Margin above the observed maximum, in percent: a later job may take longer.
const MARGIN_PERCENT: u64 = 20;

/// Proposed costs and periods are multiples of this.
const STEP: Span = Span::from_us(10);

/// Result of an observation, and the proposal.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MeasuredOutput {
    schema_version: u64,
    /// Length of the observation.
    observed_ns: u64,
    /// Number of completed jobs.
    jobs: u64,
    cost_ns: CostOutput,
    period_ns: PeriodOutput,
    /// CPU time of all jobs.
    ran_ns: u64,
    /// The proposed reservation; null if too few jobs were observed, or their cost exceeds their period.
    proposed: Option<ProposalOutput>,
}

/// CPU time of jobs.
#[derive(Debug, Serialize, JsonSchema)]
struct CostOutput {
    p50: u64,
    p99: u64,
    max: u64,
}

/// Times from one wake-up to the next.
#[derive(Debug, Serialize, JsonSchema)]
struct PeriodOutput {
    min: u64,
    p50: u64,
}

/// A proposed reservation.
#[derive(Debug, Serialize, JsonSchema)]
struct ProposalOutput {
    cost_ns: u64,
    period_ns: u64,
}

/// Observes the program until its end, or the thread until Ctrl-C.
pub fn measure(
    args: &ExecArgs,
    client: &mut Client,
    console: &mut Console,
) -> Result<Answer, Failure> {
    catch_interrupts();
    let seen = match args.command.split_first() {
        Some((program, rest)) => {
            let mut child = Command::new(program).args(rest).spawn().map_err(|error| {
                Failure::input(format_args!("{}: {error}", Path::new(program).display()))
            })?;
            observe(client, child.id(), || {
                // `try_wait` fails only if the process is no longer a child.
                child.try_wait().is_ok_and(|status| status.is_none())
            })?
        }
        None => {
            let thread = args.tid.or(args.pid).unwrap_or(0);
            let folder = format!("/proc/{thread}");
            observe(client, thread, || Path::new(&folder).exists())?
        }
    };
    let answer = show(&seen, console)?;
    // The observation of a running thread regularly ends by Ctrl-C.
    Ok(match is_interrupted() && !args.command.is_empty() {
        true => Answer::Interrupted,
        false => answer,
    })
}

fn observe(
    client: &mut Client,
    thread: u32,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Observation, Failure> {
    const INTERVAL: Duration = Duration::from_millis(50);
    let number = client.observe(Some(thread));
    let number = number.map_err(|failure| daemon_client::of(&failure))?;
    while goes_on() && !is_interrupted() {
        std::thread::sleep(INTERVAL);
    }
    let ended = client.end_observation(number);
    ended.map_err(|failure| daemon_client::of(&failure))
}

/// The proposed cost and period: the maximum CPU time of a job with a margin, and the median period. `None` if too few jobs
/// were observed, or the cost exceeds the period.
fn proposal(seen: &Observation) -> Option<(Span, Span)> {
    let up = |ns: u64| ns.checked_next_multiple_of(STEP.as_ns()).map(Span::from_ns);
    let down = |ns: u64| Span::from_ns(ns - ns % STEP.as_ns());
    let cost = up(seen.cost_max.as_ns() / 100 * (100 + MARGIN_PERCENT))?;
    let period = down(seen.period_p50.as_ns());
    (seen.jobs > 1 && !cost.is_zero() && cost < period).then_some((cost, period))
}

fn show(seen: &Observation, console: &mut Console) -> Result<Answer, Failure> {
    let proposal = proposal(seen);
    if console.json {
        console.json_line(&ExecOutput::Measured(MeasuredOutput {
            schema_version: SCHEMA_VERSION,
            observed_ns: seen.observed.as_ns(),
            jobs: seen.jobs,
            cost_ns: CostOutput {
                p50: seen.cost_p50.as_ns(),
                p99: seen.cost_p99.as_ns(),
                max: seen.cost_max.as_ns(),
            },
            period_ns: PeriodOutput {
                min: seen.period_min.as_ns(),
                p50: seen.period_p50.as_ns(),
            },
            ran_ns: seen.ran.as_ns(),
            proposed: proposal.map(|(cost, period)| ProposalOutput {
                cost_ns: cost.as_ns(),
                period_ns: period.as_ns(),
            }),
        }))?;
        return Ok(Answer::from_truth(proposal.is_some()));
    }
    let span = |span: Span| shiftwork_report::span(span.as_ns());
    console.line(format!(
        "{} jobs in {}: CPU time {} (median), {} (99%), {} (max)",
        seen.jobs,
        span(seen.observed),
        span(seen.cost_p50),
        span(seen.cost_p99),
        span(seen.cost_max),
    ))?;
    console.line(format!(
        "period {} (median), {} (min)",
        span(seen.period_p50),
        span(seen.period_min),
    ))?;
    match proposal {
        Some((cost, period)) => console.line(format!(
            "proposed: --cost {cost} --period {period}; the cost is the observed maximum plus {MARGIN_PERCENT}%, which is \
             no bound on the worst case"
        ))?,
        None => console.line(
            "no proposal: too few jobs were observed, or their cost exceeds their period",
        )?,
    }
    Ok(Answer::from_truth(proposal.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(jobs: u64, cost_us: u64, period_us: u64) -> Observation {
        Observation {
            observed: Span::from_s(1),
            jobs,
            cost_p50: Span::from_us(cost_us),
            cost_p99: Span::from_us(cost_us),
            cost_max: Span::from_us(cost_us),
            period_min: Span::from_us(period_us),
            period_p50: Span::from_us(period_us),
            ran: Span::from_us(jobs * cost_us),
        }
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
