//! Observed threads without a reservation: the costs of their jobs and the periods between them.

use std::collections::BTreeMap;

use shiftwork_client::Observation;
use shiftwork_live::standing::{Activity, Observed};
use shiftwork_model::{Instant, Span, TaskId};
use shiftwork_trace::Distribution;

use crate::reservation::{Owner, Thread};

/// An observed thread.
#[derive(Debug)]
pub struct ObservedThread {
    /// The user and control group that observe it.
    pub owner: Owner,
    /// The thread.
    pub thread: Thread,
    since: Instant,
    costs: Distribution,
    jobs: u64,
    periods: Distribution,
    wakes: u64,
    woken: Option<Instant>,
    /// CPU time of the current job so far.
    running: Span,
    ran: Span,
    /// When its end was detected.
    gone: Option<Instant>,
}

/// An observation is dropped if its result is not requested within this time after the end of the thread.
const EXPIRY: Span = Span::from_s(60);

/// All observed threads, by task number.
#[derive(Debug, Default)]
pub struct Observations {
    all: BTreeMap<TaskId, ObservedThread>,
}

impl Observations {
    /// Starts to observe the thread.
    pub fn begin(&mut self, task: TaskId, owner: Owner, thread: Thread, now: Instant) {
        let observed = ObservedThread {
            owner,
            thread,
            since: now,
            costs: Distribution::default(),
            jobs: 0,
            periods: Distribution::default(),
            wakes: 0,
            woken: None,
            running: Span::ZERO,
            ran: Span::ZERO,
            gone: None,
        };
        self.all.insert(task, observed);
    }

    /// The thread that is observed under this number.
    pub fn of(&self, task: TaskId) -> Option<&ObservedThread> {
        self.all.get(&task)
    }

    /// Number of threads whose observations this user is charged with.
    pub fn count_of(&self, account: u32) -> usize {
        let own = |it: &&ObservedThread| it.owner.account == account;
        self.all.values().filter(own).count()
    }

    /// Ends the observation and returns its result.
    pub fn end(&mut self, task: TaskId, now: Instant) -> Option<Observation> {
        self.all.remove(&task).map(|it| it.summary(now))
    }

    /// Takes what an observed thread did.
    pub fn record(&mut self, did: &Observed) {
        if let Some(it) = self.all.get_mut(&did.task) {
            it.record(did);
        }
    }

    /// Drops these observations, and returns their numbers.
    pub fn remove_if(&mut self, is_over: impl Fn(&ObservedThread) -> bool) -> Vec<TaskId> {
        let over = self.all.iter().filter(|(_, it)| is_over(it));
        let over: Vec<TaskId> = over.map(|(&task, _)| task).collect();
        for task in &over {
            self.all.remove(task);
        }
        over
    }

    /// Drops observations if their results were not requested in time, and returns their numbers;
    /// `is_alive` tests a thread.
    pub fn expire(&mut self, now: Instant, is_alive: impl Fn(&Thread) -> bool) -> Vec<TaskId> {
        for it in self.all.values_mut() {
            if it.gone.is_none() && !is_alive(&it.thread) {
                it.gone = Some(now);
            }
        }
        self.remove_if(|it| it.gone.is_some_and(|gone| gone + EXPIRY <= now))
    }
}

impl ObservedThread {
    fn record(&mut self, did: &Observed) {
        match did.activity {
            Activity::Woken => {
                if let Some(before) = self.woken.replace(did.at) {
                    self.periods.add(did.at.late_since(before));
                    self.wakes += 1;
                }
            }
            Activity::Ran(ran) => {
                self.running += ran;
                self.ran += ran;
            }
            Activity::Blocked => {
                let cost = std::mem::take(&mut self.running);
                // The job in progress when the observation began is incomplete and not counted.
                if self.woken.is_some() {
                    self.costs.add(cost);
                    self.jobs += 1;
                }
            }
            Activity::Ended => {}
        }
    }

    fn summary(&self, now: Instant) -> Observation {
        let ranked = |of: &Distribution, rank: u64| {
            Span::from_ns(of.ranked_ns(rank.max(1)).unwrap_or_default())
        };
        let half = |count: u64| count.div_ceil(2);
        Observation {
            observed: self.gone.unwrap_or(now).late_since(self.since),
            jobs: self.jobs,
            cost_p50: ranked(&self.costs, half(self.jobs)),
            cost_p99: ranked(&self.costs, self.jobs - self.jobs / 100),
            cost_max: Span::from_ns(self.costs.max_ns()),
            period_min: ranked(&self.periods, 1),
            period_p50: ranked(&self.periods, half(self.wakes)),
            ran: self.ran,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskId = TaskId::from_index(9);

    fn did(at_us: u64, activity: Activity) -> Observed {
        Observed {
            at: Instant::from_ns(at_us * 1_000),
            task: TASK,
            activity,
        }
    }

    fn begun() -> Observations {
        let owner = Owner {
            user: 5,
            group: Some(5),
            account: 5,
            cgroup: "/".to_owned(),
        };
        let thread = Thread {
            process: 1,
            thread: 1,
            started: 1,
        };
        let mut all = Observations::default();
        all.begin(TASK, owner, thread, Instant::ZERO);
        all
    }

    const fn stopped(ran_us: u64) -> Activity {
        Activity::Ran(Span::from_us(ran_us))
    }

    #[test]
    fn costs_and_periods_of_jobs_are_recorded() {
        let mut all = begun();
        // The observation begins in the middle of a job.
        all.record(&did(1, stopped(999)));
        all.record(&did(1, Activity::Blocked));
        for job in 0..100 {
            let at = 10_000 * (job + 1);
            all.record(&did(at, Activity::Woken));
            all.record(&did(at + 500, stopped(100)));
            all.record(&did(at + 900, stopped(100 + job)));
            all.record(&did(at + 900, Activity::Blocked));
        }
        assert_eq!(all.count_of(5), 1);
        let seen = all.end(TASK, Instant::from_ns(2_000_000_000)).unwrap();
        assert_eq!(seen.observed, Span::from_s(2));
        assert_eq!(seen.jobs, 100);
        assert_eq!(seen.cost_max, Span::from_us(299));
        let near = |it: Span, us: u64| it.as_ns().abs_diff(us * 1_000) <= us;
        assert!(near(seen.cost_p50, 249), "{}", seen.cost_p50);
        assert!(near(seen.cost_p99, 298), "{}", seen.cost_p99);
        assert!(near(seen.period_min, 10_000) && near(seen.period_p50, 10_000));
        assert_eq!(seen.ran, Span::from_us(999 + 100 * 200 + 99 * 50));
        assert!(all.of(TASK).is_none());
    }

    #[test]
    fn observation_of_ended_thread_expires() {
        let mut all = begun();
        let at = |s: u64| Instant::ZERO + Span::from_s(s);
        assert_eq!(all.expire(at(500), |_| true), []);
        assert_eq!(all.expire(at(600), |_| false), []);
        assert_eq!(all.expire(at(659), |_| false), []);
        assert_eq!(all.expire(at(660), |_| false), [TASK]);
    }
}
