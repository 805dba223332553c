//! Where no test decides, a simulation may: a job that is late there shows that not all deadlines are met.

use shiftwork_analysis::verdicts::{Analysis, Answer, PolicyAnalysis};
use shiftwork_model::{Arrival, Instant, Pace, Span, Task, TaskSet};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::Entry;
use shiftwork_trace::Counters;
use shiftwork_trace::check::Violation;

use super::simulated::{CheckedRun, LONGEST, hyperperiod, time_of_jobs, with_full_costs};
use crate::catalogue;

#[cfg(test)]
mod tests;

/// What decides where a simulation does.
pub(super) const SIMULATION: &str = "simulation";

/// So many jobs are simulated under one policy.
pub(super) const JOBS_MAX: u128 = 5_000;

/// Looks for missed deadlines under every policy of which nothing is known, and notes those that are
/// found; returns the policies with what was seen.
///
/// All tasks that arrive by time release together (at their offsets if some trigger others) and then every period, or as
/// early as their arrival curves allow, and every job takes its whole cost. Sporadic tasks may do so, and tasks with jitter,
/// whatever else the task set says. A checker that knows the policy's
/// definition and nothing of how it is built judges the schedule; one that it rejects shows nothing.
pub fn search(set: &TaskSet, analysis: &mut Analysis) -> Vec<(String, String)> {
    let mut examples = Vec::new();
    // What such a task triggers depends on what it does, which may be more than it is allowed.
    let overruns = |task: &Task| task.triggers().next().is_some() && task.longest_run() > task.cost;
    if set.tasks.iter().any(overruns) {
        return examples;
    }
    let strict = strictest(set);
    for found in &mut analysis.policies {
        if found.hard.answer != Answer::Unknown || found.refusal.is_some() {
            continue;
        }
        let entry = catalogue::find(&found.policy).ok();
        if let Some(words) = entry.and_then(|entry| late(set, &strict, entry)) {
            refute(found, words, &mut examples);
        }
    }
    examples
}

/// Notes that a simulation shows a missed deadline, which these words describe.
pub(super) fn refute(
    found: &mut PolicyAnalysis,
    words: String,
    examples: &mut Vec<(String, String)>,
) {
    found.hard.answer = Answer::Unschedulable;
    found.hard.by = vec![SIMULATION];
    examples.push((found.policy.clone(), words));
}

/// The same tasks, as demanding as they may be from the start.
fn strictest(set: &TaskSet) -> TaskSet {
    let mut strict = with_full_costs(set);
    // Triggers of tasks with other offsets may be joined, and then these count.
    let has_triggers = set.first_triggered().is_some();
    for task in &mut strict.tasks {
        if !has_triggers {
            task.offset = Span::ZERO;
        }
        match &mut task.arrival {
            Arrival::Triggered(_) => {}
            Arrival::Curve(_, pace) => *pace = Pace::Earliest,
            by_time => *by_time = Arrival::Periodic,
        }
        task.jitter = Span::ZERO;
    }
    strict
}

/// What a simulation shows of missed deadlines.
struct Witness {
    /// Which task misses how many; `None` if none does.
    words: Option<String>,
    /// What is wrong with the schedule by the definition of the policy.
    violations: Vec<Violation>,
}

/// The missed deadlines of the stricter set, in words; `None` if there are none, or if the schedule is not one of
/// the policy.
fn late(of: &TaskSet, set: &TaskSet, entry: &Entry) -> Option<String> {
    let witness = witness(of, set, entry, entry.build(of).ok()?);
    witness.words.filter(|_| witness.violations.is_empty())
}

/// Simulates the stricter set under a policy that was built for the set itself, and judges the schedule by what the
/// entry says the policy is.
fn witness(of: &TaskSet, set: &TaskSet, entry: &Entry, policy: Box<dyn Policy>) -> Witness {
    let end = horizon(set);
    let horizon = Instant::ZERO + end;
    let mut counters = Counters::new(set, set.platform.cpus);
    let run = CheckedRun {
        of,
        set,
        entry,
        policy,
        horizon,
    };
    let (_, violations) = run.run(&mut counters, |_| true);
    let summary = counters.finish(horizon);
    let worst = summary.tasks.iter().filter(|task| task.misses > 0);
    let words = worst.max_by_key(|task| task.misses).map(|worst| {
        format!(
            "simulated for {end} with all tasks released together, task `{}` misses {} of {} deadlines",
            worst.name, worst.misses, worst.jobs
        )
    });
    Witness { words, violations }
}

/// How long to simulate: until the schedule would repeat if nothing were left over, or so many jobs.
fn horizon(set: &TaskSet) -> Span {
    let longest = set.tasks.iter().map(|task| task.deadline.as_ns()).max();
    let enough = time_of_jobs(set, JOBS_MAX);
    let enough = match hyperperiod(set, enough) {
        Some(repeats) => repeats + u128::from(longest.unwrap_or(0)),
        None => enough,
    };
    let enough = u64::try_from(enough).unwrap_or(u64::MAX);
    Span::from_ns(enough).min(LONGEST)
}
