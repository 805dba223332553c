//! Explanation of a chain that took longer than wanted: the jobs of its longest time, and the link that lost most.

mod json;
mod text;

use std::cmp::Reverse;

use shiftwork_model::{Chain, Instant, JobId, Recorder, Span, TaskId};

use super::walk::Walk;
use super::{Cause, Explanation, Origin, Part, Recording, Steps};
use crate::chains::{ChainTime, Chains, Interval, Measured, Step};

/// A chain that took longer than wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainMiss {
    /// The chain, as an index.
    pub chain: usize,
    /// What took longer.
    pub time: ChainTime,
    /// The longest that is wanted.
    pub wanted: Span,
    /// The begin of the longest time: a read or an arrival of the first task.
    pub from: Instant,
    /// Its end, or the horizon.
    pub to: Instant,
    /// Whether it had ended by the horizon.
    pub has_ended: bool,
}

impl ChainMiss {
    /// How long it took, at least.
    pub const fn length(&self) -> Span {
        self.to.late_since(self.from)
    }

    /// By how much it took longer than wanted.
    pub fn excess(&self) -> Span {
        self.length().saturating_sub(self.wanted)
    }
}

/// A part of the longest time of a chain: what one job took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its task.
    pub task: TaskId,
    /// The number of its job; `None` if none was released by the end.
    pub job: Option<u64>,
    /// The end of the link before, or the begin of the time.
    pub from: Instant,
    /// When the job triggered that of the next link or completed, or the end of the time.
    pub to: Instant,
    /// Whether the job did so by then.
    pub is_over: bool,
    /// The release of the job, which may be before `from`.
    pub release: Option<Instant>,
    /// The first instant after which it executed.
    pub start: Option<Instant>,
    /// Its completion, if it completed by the end of the time.
    pub completion: Option<Instant>,
    /// From `from` to the release.
    pub waited: Span,
    /// What triggered the job; `None` if its task arrives by time.
    pub origin: Option<Origin>,
    /// The time after that, up to `to`, in the order of [`Part`]; the times add up to exactly that span, and none is zero.
    pub parts: Vec<(Part, Span)>,
}

impl Link {
    /// How long it took.
    pub const fn length(&self) -> Span {
        self.to.late_since(self.from)
    }

    /// How much of that the job did not execute within its cost.
    pub fn delay(&self) -> Span {
        let executing = self.parts.iter().find(|(part, _)| *part == Part::Executing);
        let executing = executing.map_or(Span::ZERO, |&(_, time)| time);
        self.length().saturating_sub(executing)
    }

    /// From the step, with the explanation of its job if there is one.
    fn of(step: &Step, explanation: Option<&Explanation>) -> Self {
        let Step { from, to, .. } = *step;
        let release = step.job.map(|job| job.release);
        // In a broken record a job may pass on before it arrives.
        let ready = release.map_or(to, |release| release.min(to).max(from));
        Self {
            task: step.task,
            job: step.job.map(|job| job.job.number),
            from,
            to,
            is_over: step.is_over,
            release,
            start: step.job.and_then(|job| job.start),
            completion: step.job.and_then(|job| job.finish),
            waited: ready.late_since(from),
            origin: explanation.and_then(|it| it.origin),
            parts: explanation.map_or_else(Vec::new, |it| it.parts_between(ready, to)),
        }
    }
}

/// What of the slowest link made the chain late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slowest {
    /// The job was late for the chain, with this cause: as if its deadline had been so early that the chain were in time.
    Late(Box<Explanation>),
    /// Also without any delay of the link the chain would have taken too long.
    NotEnough,
    /// Not known: a shorter link need not have shortened the chain, since what follows does not begin with its end, or what
    /// delayed the link is outside of its job.
    Unknown,
}

/// The explanation of a chain that took longer than wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainExplanation {
    /// What it did.
    pub miss: ChainMiss,
    /// The name of the chain.
    pub name: String,
    /// By link, whether its task is triggered.
    is_triggered: Vec<bool>,
    /// The links of the longest time, which follow each other without gaps.
    pub links: Vec<Link>,
    /// The link with the longest delay, as an index; of equal delays the longest link, and of these the first.
    pub slowest: usize,
    /// What delayed its job.
    pub why: Slowest,
}

impl<'a> Recording<'a> {
    /// The chains that took longer than wanted, in the order of the task set; of each the reaction time, the data age and
    /// then the latency.
    pub fn chain_misses(self) -> Vec<ChainMiss> {
        let Recording { set, .. } = self;
        let is_restricted =
            |chain: &Chain| chain.reaction.or(chain.age).or(chain.latency).is_some();
        if !set.chains.iter().any(is_restricted) {
            return Vec::new();
        }
        let mut chains = Chains::new(set);
        for record in self.in_window() {
            chains.record(record.at, &record.kind);
        }
        let mut misses = Vec::new();
        for (chain, (_, found)) in chains.finish_measured(self.until).enumerate() {
            let times = [
                (ChainTime::Reaction, Some(found.reaction)),
                (ChainTime::Age, Some(found.age)),
                (ChainTime::Latency, found.latency),
            ];
            let miss = times.into_iter().filter_map(|(time, measured)| {
                let measured = measured?;
                let (longest, has_ended) = measured.excessive()?;
                Some(ChainMiss {
                    chain,
                    time,
                    wanted: measured.wanted?,
                    from: longest.from,
                    to: longest.to,
                    has_ended,
                })
            });
            misses.extend(miss);
        }
        misses
    }

    /// Explains the longest time of a chain. `None` if the records contradict each other.
    ///
    /// # Cost
    /// Some passes over the records; memory for the jobs of the chain's tasks within the time, and what
    /// [`explain`](super::explain) needs of those on its path.
    pub fn explain_chain(self, miss: &ChainMiss) -> Option<ChainExplanation> {
        let chain = self.set.chains.get(miss.chain)?;
        let steps = Measured {
            set: self.set,
            chain,
            records: self.records,
            time: Interval {
                from: miss.from,
                to: miss.to,
            },
            has_ended: miss.has_ended,
        };
        let steps = steps.steps(miss.time)?;
        let mut explained = self.explain_steps(&steps, miss);
        let explanation_of = |step: &Step| {
            let job = step.job?.job;
            explained.iter().position(|it| it.job == job)
        };
        let link = |step: &Step| Link::of(step, explanation_of(step).map(|at| &explained[at]));
        let links: Vec<Link> = steps.iter().map(link).collect();
        let places = 0..links.len();
        let slowest =
            places.max_by_key(|&at| (links[at].delay(), links[at].length(), Reverse(at)))?;
        let why = match explanation_of(&steps[slowest]) {
            Some(at) => {
                let explanation = explained.swap_remove(at);
                self.why(miss, &links[slowest..], explanation)
            }
            None => Slowest::Unknown,
        };
        Some(ChainExplanation {
            miss: *miss,
            name: chain.name.clone(),
            is_triggered: links.iter().map(|link| self.is_triggered(link)).collect(),
            links,
            slowest,
            why,
        })
    }

    /// What made the chain late of the first of these links, the last ones of the time.
    fn why(self, miss: &ChainMiss, links: &[Link], explanation: Explanation) -> Slowest {
        let Some((link, later)) = links.split_first() else {
            return Slowest::Unknown;
        };
        let mut later = later.iter();
        // An earlier end of an output does not shorten its age, and only what is triggered need begin earlier.
        let carries_over = later.all(|next| {
            let begins_with_trigger = self.is_triggered(next) && next.release == Some(next.from);
            miss.time != ChainTime::Age && begins_with_trigger
        });
        if !carries_over || explanation.until != link.to {
            Slowest::Unknown
        } else if link.delay() < miss.excess() {
            Slowest::NotEnough
        } else if link.delay().saturating_sub(link.waited) < miss.excess() {
            // Nothing is known of what it waited for.
            Slowest::Unknown
        } else {
            match explanation.cause {
                Cause::OwnDemand => Slowest::NotEnough,
                _ => Slowest::Late(Box::new(explanation)),
            }
        }
    }

    fn is_triggered(self, link: &Link) -> bool {
        let task = self.set.tasks.get(link.task.index());
        task.is_some_and(|task| task.trigger().is_some())
    }

    /// The explanations of the jobs, as if each had been due so early that the chain would have been in time.
    fn explain_steps(self, steps: &[Step], miss: &ChainMiss) -> Vec<Explanation> {
        let jobs: Vec<JobId> = steps
            .iter()
            .filter_map(|step| Some(step.job?.job))
            .collect();
        let mut walk = Walk::new(self, &jobs, jobs.len(), Steps::ALL);
        for &job in &jobs {
            walk = walk.with_excess(job, miss.excess());
        }
        let mut explained = Vec::new();
        walk.run(self, |_, explanation| explained.extend(explanation));
        explained
    }
}

#[cfg(test)]
mod tests;
