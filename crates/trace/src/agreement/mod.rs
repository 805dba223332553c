//! Whether a measured run and a simulated one agree, judged by their records alone.
//!
//! A real machine needs time to react, so its jobs finish later than simulated ones, and sometimes
//! earlier. The rule: **every job finishes within [`TOLERANCE`] × reaction × reactions of its
//! simulated finish, and outside reaction windows the same jobs run.** The reaction is the measured
//! one that 99.9% do not exceed. The reactions of a job are how often it was put on a CPU (its
//! preemptions and shifts, + 1), and how often those were for which it waited:
//!
//! - Each time the job is put on a CPU (it starts, resumes, or is shifted) counts one.
//! - Each time it waits before that adds the reactions of the jobs that it waits for: the CPU that
//!   it gets becomes free as late as they were. These are the jobs that run meanwhile on CPUs that
//!   its own are connected to, and of those the one with the most reactions; and the task's job
//!   before it.
//! - There are never more than there were in the *busy interval*: from the earliest release in the
//!   chain of jobs that waited for each other up to the job's end, on the connected CPUs. No
//!   lateness from before comes through, since nobody in the chain waited for anybody then.
//!
//! CPUs are connected if some task used both, in either run; lateness goes from job to job only
//! over a CPU that both use. Of the two runs the one with more reactions counts.
//!
//! What is compared:
//!
//! - *Finishes*: the time in which a job is finished in one run only, less the time in which it
//!   could not execute then since more urgent jobs had the CPUs. A job that lacks a microsecond
//!   when a more urgent one arrives finishes only when that one is done: the smallest lateness
//!   before becomes a long one, and nothing is wrong with that.
//! - *Scheduled sets*: a job that runs in one run only gets ahead of the other run or falls behind.
//!   Up to the job's bound that happens inside reaction windows, beyond it outside.
//! - *Jobs*: the same are released, at the same instants and with the same deadlines. Releases are
//!   recorded at their nominal instants; how late a machine noticed is part of its reaction.
//!
//! Why the sum of the reactions bounds every deviation: under the strong invariant, and for the
//! partitioned and global policies, which jobs run depends only on which are ready. There a job more
//! or less changes at most one other job of the scheduled set, so a late reaction takes as much
//! execution from one job as it gives to another and never grows. Where the past matters (weak
//! affinities, no preemption) a late reaction may change the schedule for good, and what is found
//! may be no fault.
//!
//! Start reading at [`compare`].

mod history;
mod json;
mod reactions;
mod replay;
mod schedule;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use shiftwork_model::{Instant, JobId, Record, Span, TaskSet};

use crate::check::{Facts, VIOLATIONS_MAX};
use history::{Connected, Trail, Trails};
pub use reactions::{ReactionStatistics, Reactions};
use replay::Replay;
use waiting::{Gap, Trust};

/// How many measured reactions one reaction of a job may take.
///
/// Four: one for the event to be noticed (timers are late as well), one for the switch (that is
/// what is measured), and both once more, since one reaction in a thousand is longer than the
/// measured one, and since a switch also takes time from the jobs themselves. Where none was
/// longer, two were enough in 295,000 jobs of random runs, and one was not.
pub const TOLERANCE: u64 = 4;

/// What runs are compared by, beside the task set.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// What the policy promises; its order and packing say who may keep whom waiting.
    pub facts: &'a Facts,
    /// The measured reaction, from event to running, that 99.9% do not exceed.
    pub reaction: Span,
    /// Both runs cover the time up to here; jobs released before it are compared.
    pub horizon: Instant,
}

/// How one job went in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobAgreement {
    /// The job.
    pub job: JobId,
    /// When it was released.
    pub release: Instant,
    /// When it finished in the reference; `None` if it did not.
    pub expected: Option<Instant>,
    /// When it finished in the measured run; `None` if it did not.
    pub found: Option<Instant>,
    /// For how long it was finished in one run only (up to the horizon, if it never finished in
    /// the other) and could have executed in the other.
    pub difference: Span,
    /// For how long it was finished in one run only and rightly kept waiting in the other.
    pub waited: Span,
    /// Preemptions, in whichever run it had more.
    pub preemptions: u64,
    /// How many reactions can have moved it, at least 1.
    pub reactions: u64,
    /// The largest difference that is agreement.
    pub bound: Span,
}

/// Something in which the measured run is not as the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// When it began.
    pub at: Instant,
    /// The job.
    pub job: JobId,
    /// The name of its task.
    pub task: String,
    /// What is not as expected.
    pub what: Finding,
}

/// In what a job is not as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// It was not released.
    Lost,
    /// It was released, and should not have been.
    Extra,
    /// It was released at another instant or with another deadline.
    Released {
        /// Release and deadline in the reference.
        expected: (Instant, Instant),
        /// Release and deadline in the measured run.
        found: (Instant, Instant),
    },
    /// It finished too late or too early.
    Finished(JobAgreement),
    /// It executed at other times.
    Executed {
        /// Whether it had executed more than in the reference then, not less.
        ahead: bool,
        /// By how much, at worst.
        by: Span,
        /// By how much it may.
        bound: Span,
    },
}

/// How far a measured run agrees with the simulated one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The names of the tasks, in the order of the task set.
    pub tasks: Vec<String>,
    /// The reaction that it was judged by.
    pub reaction: Span,
    /// The jobs that were released alike in both runs and finished in one of them at least, by task
    /// and number.
    pub jobs: Vec<JobAgreement>,
    /// What is not as expected, the first [`VIOLATIONS_MAX`] in the order of time.
    pub disagreements: Vec<Disagreement>,
    /// How many there are, also beyond those listed.
    pub disagreement_count: u64,
    /// For how long the scheduled sets were not the same.
    pub sets_differed: Span,
    /// How much of that lies outside reaction windows.
    pub sets_differed_outside: Span,
}

impl Agreement {
    /// Whether the runs agree.
    pub const fn holds(&self) -> bool {
        self.disagreement_count == 0
    }

    /// The job with the largest difference; `None` if none was compared.
    pub fn worst(&self) -> Option<&JobAgreement> {
        self.jobs.iter().max_by_key(|job| job.difference)
    }

    /// The job nearest to its bound, or farthest beyond it; `None` if none was compared.
    pub fn tightest(&self) -> Option<&JobAgreement> {
        let times = |a: Span, b: Span| u128::from(a.as_ns()) * u128::from(b.as_ns());
        self.jobs.iter().max_by(|a, b| {
            let by_share = times(a.difference, b.bound).cmp(&times(b.difference, a.bound));
            by_share.then(a.difference.cmp(&b.difference))
        })
    }

    /// How many jobs were kept waiting for longer than their bound in one run, and had finished
    /// in the other just before that.
    pub fn near_ties(&self) -> u64 {
        let kept = self.jobs.iter().filter(|job| job.waited > job.bound);
        kept.count() as u64
    }
}

/// Compares a measured run with the reference, a simulation of the same task set and seed.
///
/// # Assumes
/// A deterministic policy whose scheduled set depends only on which jobs are ready; jobs that
/// execute for the same time in both runs; clocks that agree.
///
/// # Cost
/// Sorting the records; per instant a step per task and CPU; logarithmic steps per job.
pub fn compare(
    set: &TaskSet,
    basis: Basis<'_>,
    reference: &[Record],
    measured: &[Record],
) -> Agreement {
    let cpus = set.platform.cpus;
    let connected = Connected::new(set.tasks.len(), cpus, [reference, measured]);
    let replay = |records| Replay::new(set, basis.facts, records, basis.horizon);
    let (simulated, real) = (replay(reference), replay(measured));
    // Half of what one reaction may take: the other half may pass before the job is ready.
    let window = Span::from_ns(allowed(basis.reaction, 1).as_ns() / 2);
    let pair = Pair {
        expected: history::follow(simulated.clone(), &connected, Span::ZERO, basis.horizon),
        found: history::follow(real.clone(), &connected, window, basis.horizon),
    };
    let mut comparison = Comparison {
        set,
        basis,
        bounds: BTreeMap::new(),
        jobs: Vec::new(),
        disagreements: Vec::new(),
    };
    comparison.compare_releases(&pair);
    comparison.excuse_waiting(&pair, &simulated, &real);
    comparison.judge_finishes();
    let sets = schedule::compare(simulated, real, &comparison.bounds, basis.horizon);
    comparison.judge_sets(&sets);
    let mut disagreements = comparison.disagreements;
    disagreements.sort_by_key(|it| (it.at, it.job));
    let disagreement_count = disagreements.len() as u64;
    disagreements.truncate(VIOLATIONS_MAX);
    Agreement {
        tasks: set.tasks.iter().map(|task| task.name.clone()).collect(),
        reaction: basis.reaction,
        jobs: comparison.jobs,
        disagreements,
        disagreement_count,
        sets_differed: sets.differed,
        sets_differed_outside: sets.outside,
    }
}

/// How far so many reactions may move a job.
fn allowed(reaction: Span, reactions: u64) -> Span {
    let factor = TOLERANCE.saturating_mul(reactions);
    reaction.checked_mul(factor).unwrap_or(Span::MAX)
}

/// The jobs of both runs.
struct Pair {
    expected: Trails,
    found: Trails,
}

struct Comparison<'a> {
    set: &'a TaskSet,
    basis: Basis<'a>,
    /// The bound of every job that was released alike in both runs.
    bounds: BTreeMap<JobId, Span>,
    jobs: Vec<JobAgreement>,
    disagreements: Vec<Disagreement>,
}

impl Comparison<'_> {
    fn disagree(&mut self, at: Instant, job: JobId, what: Finding) {
        let task = self.set.tasks.get(job.task.index());
        self.disagreements.push(Disagreement {
            at,
            job,
            task: task.map_or_else(String::new, |task| task.name.clone()),
            what,
        });
    }

    /// Which jobs there are, and how far each may move.
    fn compare_releases(&mut self, pair: &Pair) {
        let known: BTreeSet<JobId> = pair
            .expected
            .keys()
            .chain(pair.found.keys())
            .copied()
            .collect();
        for job in known {
            match (pair.expected.get(&job), pair.found.get(&job)) {
                (Some(expected), None) => self.disagree(expected.release, job, Finding::Lost),
                (None, Some(found)) => self.disagree(found.release, job, Finding::Extra),
                (Some(expected), Some(found)) => self.pair_up(job, expected, found),
                (None, None) => {}
            }
        }
    }

    fn pair_up(&mut self, job: JobId, expected: &Trail, found: &Trail) {
        let release = |trail: &Trail| (trail.release, trail.deadline);
        if release(expected) != release(found) {
            let at = expected.release.min(found.release);
            let (expected, found) = (release(expected), release(found));
            self.disagree(at, job, Finding::Released { expected, found });
            return;
        }
        let reactions = expected.reactions.max(found.reactions).max(1);
        let bound = allowed(self.basis.reaction, reactions);
        self.bounds.insert(job, bound);
        if expected.finish.is_none() && found.finish.is_none() {
            return;
        }
        let horizon = self.basis.horizon;
        let (one, other) = (expected.end(horizon), found.end(horizon));
        self.jobs.push(JobAgreement {
            job,
            release: expected.release,
            expected: expected.finish,
            found: found.finish,
            difference: one.late_since(other).max(other.late_since(one)),
            waited: Span::ZERO,
            preemptions: expected.preemptions.max(found.preemptions),
            reactions,
            bound,
        });
    }

    /// Takes off the differences what the jobs were rightly kept waiting.
    fn excuse_waiting(&mut self, pair: &Pair, reference: &Replay<'_>, measured: &Replay<'_>) {
        let horizon = self.basis.horizon;
        let trust = Trust::of(self.basis.facts);
        for (replay, trails, trust) in [
            (reference, &pair.expected, Trust::All),
            (measured, &pair.found, trust),
        ] {
            let (mut indices, mut gaps) = (Vec::new(), Vec::new());
            for (index, it) in self.jobs.iter().enumerate() {
                let elsewhere = match trust {
                    Trust::All => it.found,
                    Trust::Blocked | Trust::Occupied => it.expected,
                };
                let (job, to) = (it.job, trails[&it.job].end(horizon));
                if let Some(from) = elsewhere.filter(|&from| from < to) {
                    indices.push(index);
                    gaps.push(Gap { job, from, to });
                }
            }
            let waited = waiting::rightly_kept_waiting(replay.clone(), &gaps, trust, horizon);
            for (index, waited) in indices.into_iter().zip(waited) {
                let job = &mut self.jobs[index];
                job.waited = waited;
                job.difference = job.difference.saturating_sub(waited);
            }
        }
    }

    fn judge_finishes(&mut self) {
        let beyond = |job: &&JobAgreement| job.difference > job.bound;
        let late: Vec<JobAgreement> = self.jobs.iter().filter(beyond).copied().collect();
        for job in late {
            let first = job.expected.into_iter().chain(job.found).min();
            let at = first.unwrap_or(self.basis.horizon);
            self.disagree(at, job.job, Finding::Finished(job));
        }
    }

    fn judge_sets(&mut self, sets: &schedule::Difference) {
        for (&job, deviation) in &sets.jobs {
            // A job that only one run has is reported as that.
            if let Some(&bound) = self.bounds.get(&job) {
                let (ahead, by) = (deviation.ahead, deviation.by);
                let what = Finding::Executed { ahead, by, bound };
                self.disagree(deviation.at, job, what);
            }
        }
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {}: job {} of {}",
            self.at, self.job.number, self.task
        )?;
        match self.what {
            Finding::Lost => write!(f, " was not released, as expected"),
            Finding::Extra => write!(f, " was released, and none was expected"),
            Finding::Released { expected, found } => write!(
                f,
                " was released at {} and due at {}, expected at {} and {}",
                found.0, found.1, expected.0, expected.1
            ),
            Finding::Finished(job) => write_finish(f, &job),
            Finding::Executed { ahead, by, bound } => write!(
                f,
                " executed up to {by} {} than expected by then; {bound} would be its machine's reaction",
                if ahead { "more" } else { "less" }
            ),
        }
    }
}

fn write_finish(f: &mut fmt::Formatter<'_>, job: &JobAgreement) -> fmt::Result {
    let finish = |f: &mut fmt::Formatter<'_>, at: Option<Instant>| match at {
        Some(at) => write!(f, "finished at {at}"),
        None => write!(f, "did not finish"),
    };
    write!(f, " ")?;
    finish(f, job.found)?;
    write!(f, ", expected that it ")?;
    finish(f, job.expected)?;
    write!(f, ": {} apart", job.difference)?;
    if !job.waited.is_zero() {
        write!(f, " beside {} of waiting for more urgent jobs", job.waited)?;
    }
    let reactions = job.reactions;
    let allow = match reactions {
        1 => "reaction allows",
        _ => "reactions allow",
    };
    write!(f, ", and {reactions} {allow} {}", job.bound)
}
