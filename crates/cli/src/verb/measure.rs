//! `shiftwork exec --measure`: watches a thread without reserving anything, and proposes what to reserve.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_client::{Client, Observation};
use shiftwork_model::Span;

use super::daemon_client;
use super::exec::ExecOutput;
use super::watch::{catch_interrupts, is_interrupted};
use crate::args::ExecArgs;
use crate::failure::{Answer, Failure};
use crate::json::SCHEMA_VERSION;
use crate::output::Console;

/// More than the longest job that was seen, in percent: a later one may be longer.
const MARGIN_PERCENT: u64 = 20;

/// Costs and periods are proposed in steps of so much.
const STEP: Span = Span::from_us(10);

/// What was seen of a thread.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MeasuredOutput {
    schema_version: u64,
    /// For how long it was watched.
    observed_ns: u64,
    /// How often it blocked after having run.
    jobs: u64,
    cost_ns: CostOutput,
    period_ns: PeriodOutput,
    /// Over all jobs.
    ran_ns: u64,
    /// What to reserve; null if too little was seen, or it would not fit.
    proposed: Option<ProposalOutput>,
}

/// Processor time of a job.
#[derive(Debug, Serialize, JsonSchema)]
struct CostOutput {
    p50: u64,
    p99: u64,
    max: u64,
}

/// From one job to the next.
#[derive(Debug, Serialize, JsonSchema)]
struct PeriodOutput {
    min: u64,
    p50: u64,
}

/// What to reserve.
#[derive(Debug, Serialize, JsonSchema)]
struct ProposalOutput {
    cost_ns: u64,
    period_ns: u64,
}

/// Runs the program, or watches the thread until Ctrl-C.
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
            watch(client, child.id(), || {
                // A process that cannot be waited for is no child any more.
                child.try_wait().is_ok_and(|status| status.is_none())
            })?
        }
        None => {
            let thread = args.tid.or(args.pid).unwrap_or(0);
            let folder = format!("/proc/{thread}");
            watch(client, thread, || Path::new(&folder).exists())?
        }
    };
    let answer = show(&seen, console)?;
    // Of a thread that goes on anyway Ctrl-C is the way to end the observation.
    Ok(match is_interrupted() && !args.command.is_empty() {
        true => Answer::Interrupted,
        false => answer,
    })
}

fn watch(
    client: &mut Client,
    thread: u32,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Observation, Failure> {
    const NAP: Duration = Duration::from_millis(50);
    let number = client.observe(Some(thread));
    let number = number.map_err(|failure| daemon_client::of(&failure))?;
    while goes_on() && !is_interrupted() {
        std::thread::sleep(NAP);
    }
    let ended = client.end_observation(number);
    ended.map_err(|failure| daemon_client::of(&failure))
}

/// What to reserve: a little more than the longest job took, as often as half of the jobs came at least. `None` if too
/// little was seen, or it does not fit.
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
        "{} jobs in {}: each took {} (half of them at most), {} (99%), {} (all)",
        seen.jobs,
        span(seen.observed),
        span(seen.cost_p50),
        span(seen.cost_p99),
        span(seen.cost_max),
    ))?;
    console.line(format!(
        "they came every {} (half of them at least as often), {} at the shortest",
        span(seen.period_p50),
        span(seen.period_min),
    ))?;
    match proposal {
        Some((cost, period)) => console.line(format!(
            "proposed: --cost {cost} --period {period}; the cost is {MARGIN_PERCENT}% more than the longest seen, which \
             proves nothing of those not seen"
        ))?,
        None => console.line(
            "nothing is proposed: too few jobs were seen, or they take longer than it is from one to the next",
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
    fn a_little_more_than_the_longest_is_proposed() {
        let us = Span::from_us;
        assert_eq!(
            proposal(&seen(9, 1_000, 5_007)),
            Some((us(1_200), us(5_000)))
        );
        assert_eq!(proposal(&seen(9, 1, 5_000)), Some((us(10), us(5_000))));
    }

    #[test]
    fn nothing_is_proposed_of_what_does_not_fit() {
        assert_eq!(proposal(&seen(1, 100, 5_000)), None);
        assert_eq!(proposal(&seen(9, 4_500, 5_000)), None);
        assert_eq!(proposal(&seen(9, 0, 5_000)), None);
    }
}
