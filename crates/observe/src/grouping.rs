//! Wake-ups of timed threads by other threads of the process.
//!
//! A thread that a timer wakes periodically may wait for a mutex within a job, and is then woken by the thread that
//! unlocks it. That begins no job: everything from one timer to the next counts to the same job, so that its cost
//! covers what the thread needs in a period.

use std::collections::{BTreeMap, BTreeSet};

use shiftwork_model::Span;

use crate::event::Waker;
use crate::jobs::{History, Job, Origin};
use crate::statistics::Distances;

/// How many percent of the distances between timers have to be regular.
const REGULAR_PERCENT: u8 = 90;

/// The job that one belongs to: its number, and what the jobs before in the same one executed.
type Place = (u64, Span);

/// Joins the jobs of timed threads.
pub(crate) fn group(histories: &mut BTreeMap<u32, History>) {
    let mut places: BTreeMap<(u32, u64), Place> = BTreeMap::new();
    let mut joined_threads = BTreeSet::new();
    let threads: Vec<u32> = histories.keys().copied().collect();
    for (&id, history) in histories.iter_mut() {
        if is_timed(&history.jobs, &threads) {
            let (jobs, own) = joined(&history.jobs, &threads);
            history.jobs = jobs;
            joined_threads.insert(id);
            let own = own.into_iter();
            places.extend(own.map(|(number, place)| ((id, number), place)));
        }
    }
    for job in histories.values_mut().flat_map(|history| &mut history.jobs) {
        let Waker::Thread(by) = job.waker else {
            continue;
        };
        if joined_threads.contains(&by) {
            job.origin = job.origin.and_then(|origin| {
                let &(number, before) = places.get(&(by, origin.number))?;
                Some(Origin {
                    number,
                    executed: before + origin.executed,
                })
            });
        }
    }
}

/// Whether a thread of the process woke it.
fn is_inner(job: &Job, threads: &[u32]) -> bool {
    matches!(job.waker, Waker::Thread(by) if threads.binary_search(&by).is_ok())
}

/// Whether the thread is woken from outside of the process at regular distances, as by a timer, and by other threads of the
/// process in between, but less often.
fn is_timed(jobs: &[Job], threads: &[u32]) -> bool {
    let inner = jobs.iter().filter(|job| is_inner(job, threads)).count();
    if inner == 0 || jobs.len() <= 2 * inner {
        return false;
    }
    let distances = Distances::of(&joined(jobs, threads).0);
    distances.is_some_and(|distances| distances.regular_percent >= REGULAR_PERCENT)
}

/// The jobs, each with those that follow it until the next timer, and for each where it is now. Those of which the timer was
/// not seen are left out.
fn joined(jobs: &[Job], threads: &[u32]) -> (Vec<Job>, BTreeMap<u64, Place>) {
    let mut found: Vec<Job> = Vec::new();
    let mut places = BTreeMap::new();
    let mut before: Option<u64> = None;
    let mut number = 0;
    // Whether the last job found is the one that now goes on.
    let mut is_open = false;
    for job in jobs {
        let follows = before.is_some_and(|before| before + 1 == job.number);
        before = Some(job.number);
        let is_inner = is_inner(job, threads);
        is_open = !is_inner || is_open && follows;
        match found.last_mut() {
            Some(last) if is_inner && is_open => {
                places.insert(job.number, (last.number, last.cost));
                last.completed = job.completed;
                last.cost += job.cost;
                last.suspensions += job.suspensions;
                last.continued += job.continued + 1;
            }
            _ if is_inner => number += 1,
            _ => {
                // Distances are taken between jobs of which the numbers follow one another.
                number += if follows { 1 } else { 2 };
                places.insert(job.number, (number, Span::ZERO));
                found.push(Job { number, ..*job });
            }
        }
    }
    (found, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::Instant;

    /// A job at this time, in microseconds, of 100 us.
    fn job(number: u64, at: u64, waker: Waker, origin: Option<u64>) -> Job {
        Job {
            number,
            released: Instant::from_ns(at * 1_000),
            completed: Instant::from_ns(at * 1_000 + 150_000),
            cost: Span::from_us(100),
            waker,
            origin: origin.map(|number| Origin {
                number,
                executed: Span::from_us(70),
            }),
            suspensions: 0,
            continued: 0,
        }
    }

    fn history(jobs: Vec<Job>) -> History {
        History {
            jobs,
            executed: Span::ZERO,
        }
    }

    /// Thread 1 has a timer every 10 ms, and thread 2 wakes it in every third job, after 400 us. It wakes thread 3 when it
    /// goes on, and otherwise at once.
    fn locked() -> BTreeMap<u32, History> {
        let (mut first, mut third) = (Vec::new(), Vec::new());
        for k in 0..30 {
            let number = first.len() as u64 + 1;
            first.push(job(number, k * 10_000, Waker::Interrupt, None));
            let mut origin = number;
            if k % 3 == 0 {
                origin += 1;
                first.push(job(origin, k * 10_000 + 400, Waker::Thread(2), Some(k)));
            }
            third.push(job(k + 1, k * 10_000 + 500, Waker::Thread(1), Some(origin)));
        }
        let second = (0..30).map(|k| job(k + 1, k * 10_000, Waker::Interrupt, None));
        [
            (1, history(first)),
            (2, history(second.collect())),
            (3, history(third)),
        ]
        .into()
    }

    #[test]
    fn wakeups_by_threads_between_timers_continue_the_job() {
        let mut found = locked();
        group(&mut found);
        let jobs = &found[&1].jobs;
        assert_eq!(jobs.len(), 30);
        for (k, job) in jobs.iter().enumerate() {
            let parts = if k % 3 == 0 { 2 } else { 1 };
            assert_eq!(job.released.as_ns(), k as u64 * 10_000_000, "{k}");
            assert_eq!(job.cost, Span::from_us(100 * parts), "{k}");
            assert_eq!(job.continued, parts - 1, "{k}");
        }
        // Jobs that it triggers know which job that is now, and for how long it had executed.
        for (k, (job, source)) in found[&3].jobs.iter().zip(jobs).enumerate() {
            let origin = job.origin.unwrap();
            assert_eq!(origin.number, source.number, "{k}");
            let executed = if k % 3 == 0 { 170 } else { 70 };
            assert_eq!(origin.executed, Span::from_us(executed), "{k}");
        }
        assert_eq!(found[&2].jobs.len(), 30);
    }

    #[test]
    fn jobs_stay_apart_if_timers_are_irregular_or_seldom() {
        let mut irregular = locked();
        for (k, job) in irregular.get_mut(&1).unwrap().jobs.iter_mut().enumerate() {
            job.released += Span::from_us((k as u64 * 7_919) % 9_000);
        }
        let mut outside = locked();
        outside.remove(&2);
        let mut seldom = locked();
        for job in &mut seldom.get_mut(&1).unwrap().jobs {
            job.waker = Waker::Thread(2);
        }
        for (name, histories) in [
            ("irregular", irregular),
            ("outside", outside),
            ("seldom", seldom),
        ] {
            let mut found = histories.clone();
            group(&mut found);
            assert_eq!(found, histories, "{name}");
        }
    }

    #[test]
    fn no_job_is_joined_across_a_gap() {
        let mut histories = locked();
        // Another continuation follows the first one, and something is missing before both.
        let jobs = &mut histories.get_mut(&1).unwrap().jobs;
        jobs.insert(2, job(2, 600, Waker::Thread(2), None));
        for (index, job) in jobs.iter_mut().enumerate().skip(1) {
            job.number = index as u64 + 2;
        }
        for job in &mut histories.get_mut(&3).unwrap().jobs {
            let origin = job.origin.as_mut().unwrap();
            origin.number += if origin.number > 2 { 2 } else { 1 };
        }
        group(&mut histories);
        let jobs = &histories[&1].jobs;
        assert_eq!((jobs.len(), jobs[0].cost), (30, Span::from_us(100)));
        assert!(jobs[1].number > jobs[0].number + 1);
        // What the first continuation triggered has no known origin.
        assert_eq!(histories[&3].jobs[0].origin, None);
        assert_eq!(histories[&3].jobs[1].origin.unwrap().number, jobs[1].number);
    }
}
