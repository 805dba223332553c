//! Which thread triggers which.
//!
//! A thread triggers another one if nearly all jobs of that one begin with a wake-up within a job of the first, one for
//! each job. A mutex that is handed over wakes threads too, but not once for each job.

use std::collections::{BTreeMap, BTreeSet};

use shiftwork_model::Span;

use crate::event::Waker;
use crate::jobs::{History, Job};

/// How many percent of the jobs of both threads have to belong together.
const ONE_TO_ONE_PERCENT: u64 = 95;

/// A trigger in the last part of a job is one at its completion: at most a tenth of its cost, or so long.
const AT_COMPLETION: Span = Span::from_us(20);

/// How many jobs of a thread something woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakerShare {
    /// What woke the thread.
    pub waker: Waker,
    /// How many of its jobs began so.
    pub jobs: u64,
}

/// Whether another thread of the process triggers a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// No thread of the process wakes it often.
    None,
    /// One thread wakes it, once for each of its own jobs.
    Triggered {
        /// That thread.
        by: u32,
        /// In how many of its jobs.
        sources: u64,
        /// When in these; `None`: at the end.
        within: Option<Within>,
    },
    /// One thread wakes it often, but not once for each job.
    NotOneToOne {
        /// That thread.
        by: u32,
        /// How many jobs it woke.
        woken: u64,
        /// In how many of its own jobs.
        sources: u64,
        /// How many jobs it has.
        of: u64,
    },
    /// Threads that trigger each other in a circle: each the next, and the last the first.
    Circle(Vec<u32>),
}

/// When within a job another one is triggered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// For how long the job has executed then, in the median.
    pub executed: Span,
    /// For how long it executes in all, in the median.
    pub cost: Span,
}

/// A path of threads of which each triggers the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// At least two.
    pub threads: Vec<u32>,
    /// How often it was seen as a whole.
    pub seen: u64,
    /// Times from the wake-up of the first thread to the end of the job of the last one: half were no longer.
    pub latency_median: Span,
    /// None was longer.
    pub latency_max: Span,
}

/// What woke a thread, the most frequent first.
pub(crate) fn shares(jobs: &[Job]) -> Vec<WakerShare> {
    let mut counts: BTreeMap<Waker, u64> = BTreeMap::new();
    for job in jobs {
        *counts.entry(job.waker).or_default() += 1;
    }
    let share = |(waker, jobs)| WakerShare { waker, jobs };
    let mut shares: Vec<WakerShare> = counts.into_iter().map(share).collect();
    shares.sort_by_key(|share| (std::cmp::Reverse(share.jobs), share.waker));
    shares
}

/// The relation of each thread.
pub(crate) fn relations(histories: &BTreeMap<u32, History>) -> BTreeMap<u32, Relation> {
    let found = histories
        .iter()
        .map(|(&id, history)| (id, relation(history, histories)));
    let mut found: BTreeMap<u32, Relation> = found.collect();
    for circle in circles(&found) {
        for &id in &circle {
            found.insert(id, Relation::Circle(circle.clone()));
        }
    }
    found
}

fn relation(target: &History, histories: &BTreeMap<u32, History>) -> Relation {
    let threads = shares(&target.jobs).into_iter();
    let mut threads = threads.filter_map(|share| match share.waker {
        Waker::Thread(id) => Some((id, share.jobs, &histories.get(&id)?.jobs)),
        Waker::Interrupt | Waker::Unknown => None,
    });
    let Some((by, woken, jobs)) = threads.next() else {
        return Relation::None;
    };
    // Half of the jobs, or there is nothing to say.
    let all = target.jobs.len() as u64;
    if woken * 2 < all {
        return Relation::None;
    }
    let of_source = target
        .jobs
        .iter()
        .filter(|job| job.waker == Waker::Thread(by));
    let origins: Vec<_> = of_source.filter_map(|job| job.origin).collect();
    let numbers: BTreeSet<u64> = origins.iter().map(|origin| origin.number).collect();
    let (sources, of) = (numbers.len() as u64, jobs.len() as u64);
    // At the beginning and at the end of the recording one may be cut off.
    let is_most = |part: u64, whole: u64| (part + 1) * 100 >= whole * ONE_TO_ONE_PERCENT;
    let is_one_to_one = woken * 100 >= all * ONE_TO_ONE_PERCENT
        && is_most(sources, woken)
        && is_most(sources, of)
        && sources > 1;
    if !is_one_to_one {
        return Relation::NotOneToOne {
            by,
            woken,
            sources,
            of,
        };
    }
    let cost_of = |number: u64| {
        let index = jobs.binary_search_by_key(&number, |job| job.number).ok()?;
        Some(jobs[index].cost)
    };
    let known = origins
        .iter()
        .filter_map(|origin| Some((origin.executed, cost_of(origin.number)?)));
    let (executed, costs): (Vec<Span>, Vec<Span>) = known.unzip();
    let left = executed.iter().zip(&costs);
    let left = median(
        left.map(|(executed, cost)| cost.saturating_sub(*executed))
            .collect(),
    );
    let within = Within {
        executed: median(executed),
        cost: median(costs),
    };
    let is_end = left <= AT_COMPLETION || left.as_ns() <= within.cost.as_ns() / 10;
    Relation::Triggered {
        by,
        sources,
        within: (!is_end).then_some(within),
    }
}

/// Zero of no values.
fn median(mut values: Vec<Span>) -> Span {
    values.sort_unstable();
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or(Span::ZERO)
}

/// The thread that triggers this one.
fn source(relations: &BTreeMap<u32, Relation>, id: u32) -> Option<u32> {
    match relations.get(&id)? {
        Relation::Triggered { by, .. } => Some(*by),
        Relation::None | Relation::NotOneToOne { .. } | Relation::Circle(_) => None,
    }
}

/// The circles of triggers, each once. A thread has one source at most, so no two circles have one in common.
fn circles(relations: &BTreeMap<u32, Relation>) -> Vec<Vec<u32>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for &start in relations.keys() {
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            path.push(id);
            next = source(relations, id);
        }
        let begin = next.and_then(|id| path.iter().position(|other| *other == id));
        if let Some(begin) = begin {
            // Followed from each thread to its source; each triggers the one before it.
            let mut circle = path.split_off(begin);
            circle.reverse();
            found.push(circle);
        }
    }
    found
}

/// All paths of triggers, each as long as it can be.
pub(crate) fn paths(
    histories: &BTreeMap<u32, History>,
    relations: &BTreeMap<u32, Relation>,
) -> Vec<Path> {
    let sources: BTreeSet<u32> = relations
        .keys()
        .filter_map(|&id| source(relations, id))
        .collect();
    let ends = relations.keys().filter(|id| !sources.contains(id));
    let mut found = Vec::new();
    for &end in ends {
        let mut threads = vec![end];
        while let Some(by) = threads.last().and_then(|&id| source(relations, id)) {
            threads.push(by);
        }
        threads.reverse();
        if threads.len() > 1 {
            found.push(timed(threads, histories));
        }
    }
    found.sort_by(|a, b| a.threads.cmp(&b.threads));
    found
}

/// The path with the latencies that were seen.
fn timed(threads: Vec<u32>, histories: &BTreeMap<u32, History>) -> Path {
    let mut latencies = Vec::new();
    let last = threads.last().and_then(|id| histories.get(id));
    for job in last.map(|history| &history.jobs).into_iter().flatten() {
        // From the last thread to the first.
        let mut begin = Some(job);
        for &by in threads.iter().rev().skip(1) {
            begin = begin.and_then(|job| origin_job(job, by, histories));
        }
        latencies.extend(begin.map(|begin| job.completed.late_since(begin.released)));
    }
    Path {
        threads,
        seen: latencies.len() as u64,
        latency_max: latencies.iter().copied().max().unwrap_or(Span::ZERO),
        latency_median: median(latencies),
    }
}

/// The job of this thread that triggered the job.
fn origin_job<'a>(job: &Job, by: u32, histories: &'a BTreeMap<u32, History>) -> Option<&'a Job> {
    let origin = job.origin.filter(|_| job.waker == Waker::Thread(by))?;
    let jobs = &histories.get(&by)?.jobs;
    let index = jobs
        .binary_search_by_key(&origin.number, |job| job.number)
        .ok()?;
    jobs.get(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Origin;
    use shiftwork_model::Instant;

    fn job(number: u64, waker: Waker, origin: Option<(u64, u64)>) -> Job {
        let released = Instant::from_ns(number * 1_000_000);
        Job {
            number,
            released,
            completed: released + Span::from_us(number % 10 + 300),
            cost: Span::from_us(200),
            waker,
            origin: origin.map(|(number, us)| Origin {
                number,
                executed: Span::from_us(us),
            }),
            suspensions: 0,
            continued: 0,
        }
    }

    fn history(jobs: impl Iterator<Item = Job>) -> History {
        History {
            jobs: jobs.collect(),
            executed: Span::ZERO,
        }
    }

    fn timed_jobs(count: u64) -> History {
        history((1..=count).map(|number| job(number, Waker::Interrupt, None)))
    }

    /// Jobs that thread 1 woke when it had executed so long, but for those whose number the divisor divides.
    fn woken(count: u64, executed_us: u64, but: u64) -> History {
        history((1..=count).map(|number| match number % but {
            0 => job(number, Waker::Interrupt, None),
            _ => job(number, Waker::Thread(1), Some((number, executed_us))),
        }))
    }

    fn relation_to(source: History, target: History) -> Relation {
        let found = relations(&[(1, source), (2, target)].into());
        assert_eq!(found[&1], Relation::None);
        found[&2].clone()
    }

    #[test]
    fn thread_is_triggered_if_each_job_of_another_wakes_it() {
        let triggered = |within, sources| Relation::Triggered {
            by: 1,
            sources,
            within,
        };
        // At the end; and within the job, of which half is left.
        assert_eq!(
            relation_to(timed_jobs(100), woken(100, 185, 1_000)),
            triggered(None, 100)
        );
        let half = Within {
            executed: Span::from_us(100),
            cost: Span::from_us(200),
        };
        assert_eq!(
            relation_to(timed_jobs(100), woken(100, 100, 1_000)),
            triggered(Some(half), 100)
        );
        // One of 25 wake-ups by something else is little, and so is one that is cut off.
        assert_eq!(
            relation_to(timed_jobs(101), woken(100, 190, 25)),
            triggered(None, 96)
        );
        assert_eq!(
            relation_to(timed_jobs(4), woken(3, 190, 10)),
            triggered(None, 3)
        );
    }

    #[test]
    fn thread_is_not_triggered_if_wakeups_and_jobs_are_not_one_to_one() {
        let not = |woken, sources, of| Relation::NotOneToOne {
            by: 1,
            woken,
            sources,
            of,
        };
        // One of ten jobs begins otherwise.
        assert_eq!(
            relation_to(timed_jobs(100), woken(100, 190, 10)),
            not(90, 90, 100)
        );
        // The same where each job of the source wakes it.
        let mut source = timed_jobs(100);
        source.jobs.retain(|job| job.number % 10 > 0);
        assert_eq!(relation_to(source, woken(100, 190, 10)), not(90, 90, 90));
        // Only half of the source's jobs wake it.
        assert_eq!(
            relation_to(timed_jobs(200), woken(100, 190, 1_000)),
            not(100, 100, 200)
        );
        // Each of its jobs wakes it twice.
        let twice = (1..=100).map(|it| job(it, Waker::Thread(1), Some((it / 2, 190))));
        assert_eq!(
            relation_to(timed_jobs(50), history(twice)),
            not(100, 51, 50)
        );
        // Less than half: as for a mutex that is handed over now and then.
        let few = (1..=100).map(|it| match it % 3 {
            0 => job(it, Waker::Thread(1), Some((it, 190))),
            _ => job(it, Waker::Interrupt, None),
        });
        assert_eq!(relation_to(timed_jobs(100), history(few)), Relation::None);
        // Another process.
        let other = (1..=100).map(|it| job(it, Waker::Thread(9), None));
        assert_eq!(relation_to(timed_jobs(100), history(other)), Relation::None);
    }

    #[test]
    fn threads_that_trigger_each_other_are_a_circle() {
        let by = |id| history((1..=50).map(move |it| job(it, Waker::Thread(id), Some((it, 190)))));
        // 1 -> 2 -> 3 -> 1, and 3 -> 4 -> 5.
        let all = [(1, by(3)), (2, by(1)), (3, by(2)), (4, by(3)), (5, by(4))].into();
        let found = relations(&all);
        let circle = Relation::Circle(vec![2, 3, 1]);
        for id in [1, 2, 3] {
            assert_eq!(found[&id], circle, "{id}");
        }
        assert!(matches!(found[&4], Relation::Triggered { by: 3, .. }));
        // The path begins where no thread of the file triggers.
        let paths: Vec<_> = paths(&all, &found)
            .into_iter()
            .map(|it| it.threads)
            .collect();
        assert_eq!(paths, [vec![3, 4, 5]]);
    }

    #[test]
    fn path_has_latencies_from_the_first_wakeup_to_the_last_completion() {
        let by = |id| history((1..=50).map(move |it| job(it, Waker::Thread(id), Some((it, 190)))));
        let all: BTreeMap<u32, History> =
            [(1, timed_jobs(50)), (2, by(1)), (3, by(2)), (4, by(2))].into();
        let found = paths(&all, &relations(&all));
        let threads: Vec<_> = found.iter().map(|it| it.threads.clone()).collect();
        assert_eq!(threads, [vec![1, 2, 3], vec![1, 2, 4]]);
        assert_eq!(found[0].seen, 50);
        assert_eq!(found[0].latency_max, Span::from_us(309));
        assert_eq!(found[0].latency_median, Span::from_us(304));
    }
}
