//! Whether the task set as its file says it meets all deadlines: strictly periodic, with the offsets of the file.
//!
//! One simulation decides. A missed deadline in it refutes the set under any policy. Where it is the proof that there
//! is none, the theory is in `docs/theory/periodic.md`: under preemptive policies with fixed ranks of jobs that always
//! run a most urgent independent set (the strong invariant), no job completes later if others execute for less; and
//! from two equal states a hyperperiod apart everything repeats.

mod progress;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;

use shiftwork_analysis::suspensions::suspension;
use shiftwork_analysis::verdicts::{
    Account, Analysis, Answer, Judgement, PolicyAnalysis, left_out,
};
use shiftwork_model::{Arrival, Instant, Span, Task, TaskSet};
use shiftwork_policy::registry::Entry;

use super::counterexample::{self, SIMULATION};
use super::simulated::{CheckedRun, LONGEST, hyperperiod, time_of_jobs, with_full_costs};
use crate::catalogue;
use progress::{End, Progress, Recording};

/// So many jobs are simulated under one policy where that can be a proof.
const JOBS_MAX: u128 = 200_000;

/// What is known of the hard criterion under one policy, for the releases that the file states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsWritten {
    /// Whether all deadlines are met.
    pub answer: Answer,
    /// The tests of sporadic tasks that show it, or `simulation`; empty if nothing decides.
    pub by: Vec<&'static str>,
    /// The simulation that decides covers the time from zero to this instant; `None` if none decides.
    pub until: Option<Instant>,
    /// The deadline that is missed, or why nothing decides, for people; `None` where all deadlines are met.
    pub reason: Option<String>,
}

impl AsWritten {
    fn decided(answer: Answer, until: Instant, reason: Option<String>) -> Self {
        Self {
            answer,
            by: vec![SIMULATION],
            until: Some(until),
            reason,
        }
    }

    fn unknown(why: &Obstacle<'_>) -> Self {
        Self {
            answer: Answer::Unknown,
            by: Vec::new(),
            until: None,
            reason: Some(why.to_string()),
        }
    }
}

/// Why nothing decides.
enum Obstacle<'a> {
    /// The policy does not take the set.
    Refused(&'a str),
    /// The file does not say when this task releases its jobs.
    NotPeriodic(&'a Task),
    /// The file says more than periodic tasks with costs.
    More(String),
    /// All deadlines are met if overheads cost nothing.
    Overheads,
    /// All deadlines are met if every job takes its whole cost.
    NotPredictable,
    /// The same, for deadlines beyond the period.
    LongDeadline(&'a Task),
    /// More jobs would have to be simulated than are.
    TooLong,
    /// The schedule is not one of the policy.
    Rejected,
}

impl fmt::Display for Obstacle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FULL: &str =
            "the simulation with full costs misses no deadline; if jobs execute for less";
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::NotPeriodic(task) if task.trigger().is_some() => {
                write!(f, "task `{}` is triggered by others", task.name)
            }
            Self::NotPeriodic(task) if task.arrival == Arrival::Periodic => {
                write!(f, "task `{}` has jitter", task.name)
            }
            Self::NotPeriodic(task) => write!(f, "task `{}` is not periodic", task.name),
            Self::More(what) => write!(f, "not covered by simulation: {what}"),
            Self::Overheads => f.write_str("not covered by simulation: overheads"),
            Self::NotPredictable => {
                write!(f, "{FULL}, others may complete later under this policy")
            }
            Self::LongDeadline(task) => write!(
                f,
                "{FULL}, others may complete later, since the deadline of task `{}` is beyond its period",
                task.name
            ),
            Self::TooLong => write!(
                f,
                "more than {JOBS_MAX} jobs would have to be simulated: the hyperperiod or an offset is too long"
            ),
            Self::Rejected => f.write_str("the checker rejects the simulated schedule"),
        }
    }
}

/// What is known under each policy, in the order of the analysis. A deadline that is missed refutes sporadic tasks, too:
/// they may be released as the file says. That is noted in the analysis, and added to `examples`.
pub fn decide(
    set: &TaskSet,
    analysis: &mut Analysis,
    accounts: &[Account],
    examples: &mut Vec<(String, String)>,
) -> Vec<AsWritten> {
    let full = with_full_costs(set);
    let of_policy = |(found, account): (&mut PolicyAnalysis, &Account)| {
        let known = one(set, &full, found, account);
        if known.answer == Answer::Unschedulable && found.hard.answer == Answer::Unknown {
            let missed = known.reason.as_deref().unwrap_or_default();
            let words = format!("released as the file says, {missed}");
            counterexample::refute(found, words, examples);
        }
        known
    };
    let policies = analysis.policies.iter_mut().zip(accounts);
    policies.map(of_policy).collect()
}

/// The same under one policy; `full` is the set with full costs.
fn one(set: &TaskSet, full: &TaskSet, found: &PolicyAnalysis, account: &Account) -> AsWritten {
    let Judgement { answer, by, .. } = &found.hard;
    if *answer == Answer::Schedulable {
        return AsWritten {
            answer: *answer,
            by: by.clone(),
            until: None,
            reason: None,
        };
    }
    if let Some(refusal) = &found.refusal {
        return AsWritten::unknown(&Obstacle::Refused(refusal));
    }
    if let Some(obstacle) = not_covered(set) {
        return AsWritten::unknown(&obstacle);
    }
    if found.soft.answer == Answer::Unschedulable {
        // In the long run, whatever the releases.
        return AsWritten {
            answer: Answer::Unschedulable,
            by: found.soft.by.clone(),
            until: None,
            reason: Some("the demand is more than the CPUs provide".to_owned()),
        };
    }
    let Ok(entry) = catalogue::find(&found.policy) else {
        return AsWritten::unknown(&Obstacle::NotPredictable);
    };
    let known = simulate(full, entry);
    match known.answer {
        Answer::Schedulable if account.hard.is_some() => AsWritten::unknown(&Obstacle::Overheads),
        _ => known,
    }
}

/// What in the file a simulation of periodic tasks does not cover, under any policy.
fn not_covered(set: &TaskSet) -> Option<Obstacle<'_>> {
    let periodic = |task: &&Task| task.arrival == Arrival::Periodic && task.jitter.is_zero();
    if let Some(task) = set.tasks.iter().find(|task| !periodic(task)) {
        return Some(Obstacle::NotPeriodic(task));
    }
    let runs_a_program = |task: &&Task| !task.command.is_empty();
    let programs = set.tasks.iter().find(runs_a_program);
    let more = programs.map(|task| format!("the program of task `{}`", task.name));
    let more = more.or_else(|| (!set.actions.is_empty()).then(|| "timed changes".to_owned()));
    let more = more.or_else(|| left_out(set).into_iter().next());
    let suspending = set.tasks.iter().find(|task| !suspension(task).is_zero());
    let more = more.or_else(|| {
        suspending.map(|task| format!("task `{}` suspends itself within a job", task.name))
    });
    more.map(Obstacle::More)
}

/// Simulates periodic tasks that execute for their whole costs until a deadline is missed, until the schedule repeats, or
/// until too many jobs were simulated.
///
/// # Cost
/// At most [`JOBS_MAX`] jobs, or those of a search for missed deadlines where no proof can be expected.
fn simulate(full: &TaskSet, entry: &Entry) -> AsWritten {
    let obstacle = match full.tasks.iter().find(|task| task.deadline > task.period) {
        // If jobs execute for less, others may lock a mutex first.
        _ if full.first_locking().is_some() => full
            .first_locking()
            .map(|task| Obstacle::More(format!("task `{}` locks mutexes", task.name))),
        // No job completes later if other jobs execute for less: the lemma in `docs/theory/periodic.md`.
        _ if !entry.traits.is_greedy() => Some(Obstacle::NotPredictable),
        Some(task) => Some(Obstacle::LongDeadline(task)),
        None => None,
    };
    let policy = match entry.build(full) {
        Ok(policy) => policy,
        Err(error) => return AsWritten::unknown(&Obstacle::Refused(&error.to_string())),
    };
    let samples = Samples::of(full, obstacle.is_none());
    let progress = RefCell::new(Progress::new(full, samples.first, samples.cycle));
    let run = CheckedRun {
        of: full,
        set: full,
        entry,
        policy,
        horizon: samples.horizon,
    };
    let is_open = |now| progress.borrow_mut().advance(now).is_none();
    let (end, violations) = run.run(&mut Recording(&progress), is_open);
    let ended = progress.borrow_mut().finish(end);
    match (ended, obstacle) {
        _ if !violations.is_empty() => AsWritten::unknown(&Obstacle::Rejected),
        (Some(End::Missed { task, due }), _) => {
            let name = &full.tasks[task.index()].name;
            let words = format!("task `{name}` misses its deadline at {due}");
            AsWritten::decided(Answer::Unschedulable, due, Some(words))
        }
        (_, Some(obstacle)) => AsWritten::unknown(&obstacle),
        (Some(End::Repeats), None) => {
            AsWritten::decided(Answer::Schedulable, progress.borrow().sampled(), None)
        }
        (None, None) => AsWritten::unknown(&Obstacle::TooLong),
    }
}

/// When the states are compared, and where the simulation ends at the latest.
struct Samples {
    /// The last offset: from there on all tasks release jobs.
    first: Instant,
    /// The hyperperiod; `None` if it is too long for a simulation.
    cycle: Option<Span>,
    /// A sample, or about so many jobs as a search for missed deadlines has.
    horizon: Instant,
}

impl Samples {
    /// `may_prove`: whether equal states are a proof, so that many jobs may be worth it.
    fn of(set: &TaskSet, may_prove: bool) -> Self {
        let first = set.tasks.iter().map(|task| task.offset).max();
        let first = first.unwrap_or(Span::ZERO);
        let offset = u128::from(first.as_ns());
        let jobs = match may_prove {
            true => JOBS_MAX,
            false => counterexample::JOBS_MAX,
        };
        let limit = time_of_jobs(set, jobs).min(u128::from(LONGEST.as_ns()));
        let cycle = hyperperiod(set, limit).filter(|cycle| offset + cycle <= limit);
        let end = match cycle {
            Some(cycle) => offset + (limit - offset) / cycle * cycle,
            None => limit.min(time_of_jobs(set, counterexample::JOBS_MAX)),
        };
        let span = |ns| Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX));
        Self {
            first: Instant::ZERO + first,
            cycle: cycle.map(span),
            horizon: Instant::ZERO + span(end),
        }
    }
}
