//! The jobs of one task, one after the other: releases and execution times, exactly as in the simulation of the same
//! file and seed.

use shiftwork_machine::{ReleasePattern, Step, WorkSource};
use shiftwork_model::{Change, Instant, Span, Task, TaskId, TaskSet};

/// A job to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedJob {
    /// When it is released; `None` if another task's job triggers it.
    pub(crate) release: Option<Instant>,
    /// How long it executes before it suspends, triggers a task or is finished.
    pub(crate) run: Span,
    /// When the task leaves and the rest of the job is dropped; [`Instant::NEVER`] if it
    /// stays.
    pub(crate) until: Instant,
}

/// The jobs of one task that are released before the horizon.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    /// With the attributes that hold at the release of the present job.
    task: Task,
    pattern: ReleasePattern,
    work: WorkSource,
    horizon: Instant,
    /// When the task enters and leaves, in turns, beginning with the present interval.
    intervals: Vec<(Instant, Instant)>,
    interval: usize,
    /// Changes of cost and period, by time.
    changes: Vec<(Instant, Option<Span>, Option<Span>)>,
    changed: usize,
}

impl Jobs {
    /// The jobs of this task, before the first.
    pub(crate) fn new(set: &TaskSet, id: TaskId, seed: u64, horizon: Instant) -> Self {
        let task = set.tasks[id.index()].clone();
        let pattern = ReleasePattern::new(set, id, seed, Instant::ZERO);
        let mut jobs = Self {
            work: WorkSource::new(&task, id, seed).in_units(set.platform.tick_unit),
            pattern,
            horizon,
            intervals: intervals(set, id),
            interval: 0,
            changes: changes(set, id),
            changed: 0,
            task,
        };
        if let Some(&(enters, _)) = jobs.intervals.first()
            && enters > Instant::ZERO
        {
            jobs.enter(enters);
        }
        jobs
    }

    /// The next job, for a thread that is ready at `now`, or will be when the job may run. Jobs that have not
    /// started when the task leaves are never done. `None` after the last.
    ///
    /// Allocates nothing.
    pub(crate) fn next(&mut self, now: Instant) -> Option<PlannedJob> {
        if self.task.trigger().is_some() {
            self.apply_changes(now);
            return Some(PlannedJob {
                release: None,
                run: self.work.next_job(self.task.cost),
                until: Instant::NEVER,
            });
        }
        loop {
            let &(_, leaves) = self.intervals.get(self.interval)?;
            let release = self.pattern.next();
            if leaves <= now || release >= leaves {
                self.skip_until(leaves);
                self.interval += 1;
                let &(enters, _) = self.intervals.get(self.interval)?;
                self.enter(enters);
                continue;
            }
            if release >= self.horizon {
                return None;
            }
            self.apply_changes(release);
            self.pattern.advance(&self.task, self.task.period);
            return Some(PlannedJob {
                release: Some(release),
                run: self.work.next_job(self.task.cost),
                until: leaves,
            });
        }
    }

    /// Every job after its first run: what it does, for how long it runs then, and so forth.
    pub(crate) fn rests(&self) -> impl Iterator<Item = (Step, Span)> + '_ {
        let stretches = self.work.stretches();
        let resumed = stretches.iter().skip(1).map(|stretch| stretch.run);
        // A job may end with a sleep.
        let resumed = resumed.chain(std::iter::once(Span::ZERO));
        let steps = stretches.iter().map(|stretch| stretch.then);
        steps
            .zip(resumed)
            .filter(|(step, _)| *step != Step::Complete)
    }

    /// Jobs that are released before the task leaves and never started count as released: random gaps continue
    /// after them.
    fn skip_until(&mut self, leaves: Instant) {
        while self.pattern.next() < leaves.min(self.horizon) {
            self.apply_changes(self.pattern.next());
            self.pattern.advance(&self.task, self.task.period);
        }
    }

    fn enter(&mut self, at: Instant) {
        self.apply_changes(at);
        self.pattern.restart(&self.task, at);
    }

    /// Changes precede releases of the same instant.
    fn apply_changes(&mut self, release: Instant) {
        while let Some(&(at, cost, period)) = self.changes.get(self.changed)
            && at <= release
        {
            self.task.cost = cost.unwrap_or(self.task.cost);
            self.task.period = period.unwrap_or(self.task.period);
            self.changed += 1;
        }
    }
}

/// The intervals in which the task is in the system. Entering twice or leaving twice changes nothing.
fn intervals(set: &TaskSet, id: TaskId) -> Vec<(Instant, Instant)> {
    let mut intervals = Vec::new();
    let mut since = (!set.enters_later(id)).then_some(Instant::ZERO);
    for action in &set.actions {
        match action.change {
            Change::Enter(task) if task == id => since = since.or(Some(action.at)),
            Change::Leave(task) if task == id => {
                intervals.extend(since.take().map(|since| (since, action.at)));
            }
            _ => {}
        }
    }
    intervals.extend(since.map(|since| (since, Instant::NEVER)));
    intervals
}

fn changes(set: &TaskSet, id: TaskId) -> Vec<(Instant, Option<Span>, Option<Span>)> {
    let of_task = set.actions.iter().filter_map(|action| match action.change {
        Change::SetAttributes {
            task, cost, period, ..
        } if task == id => Some((action.at, cost, period)),
        _ => None,
    });
    of_task.collect()
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{Action, Affinity, Arrival, CpuId, Phase, Work};

    use super::*;

    const NS: fn(u64) -> Span = Span::from_ns;
    const AT: fn(u64) -> Instant = Instant::from_ns;

    fn set(change: impl FnOnce(&mut Task), actions: Vec<(u64, Change)>) -> TaskSet {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let mut task = Task::periodic("t", NS(2), NS(10), cpu);
        change(&mut task);
        let mut set = TaskSet::new("s", 1, vec![task]);
        set.actions = actions
            .into_iter()
            .map(|(at, change)| Action { at: AT(at), change })
            .collect();
        set
    }

    fn id() -> TaskId {
        TaskId::from_index(0)
    }

    /// Releases and execution times if every job is done at once.
    fn all(set: &TaskSet, horizon: u64) -> Vec<(u64, u64)> {
        let mut jobs = Jobs::new(set, id(), 1, AT(horizon));
        let mut now = Instant::ZERO;
        let mut seen = Vec::new();
        while let Some(job) = jobs.next(now) {
            now = job.release.unwrap();
            seen.push((now.as_ns(), job.run.as_ns()));
        }
        seen
    }

    #[test]
    fn jobs_end_with_the_horizon() {
        let set = set(|_| {}, vec![]);
        assert_eq!(all(&set, 30), [(0, 2), (10, 2), (20, 2)]);
        assert_eq!(all(&set, 31).len(), 4);
        assert_eq!(all(&set, 0), []);
    }

    #[test]
    fn changes_apply_to_jobs_released_from_then_on() {
        let change = |at, cost, period| {
            let (task, deadline) = (id(), None);
            (
                at,
                Change::SetAttributes {
                    task,
                    cost,
                    period,
                    deadline,
                },
            )
        };
        let set = set(
            |_| {},
            vec![
                change(10, Some(NS(3)), None),
                change(15, None, Some(NS(20))),
            ],
        );
        assert_eq!(all(&set, 60), [(0, 2), (10, 3), (20, 3), (40, 3)]);
    }

    #[test]
    fn task_that_leaves_and_enters_again_starts_over() {
        let set = set(
            |task| task.arrival = Arrival::Periodic,
            vec![
                (5, Change::Enter(id())),
                (7, Change::Enter(id())),
                (20, Change::Leave(id())),
                (33, Change::Enter(id())),
            ],
        );
        assert_eq!(all(&set, 50), [(5, 2), (15, 2), (33, 2), (43, 2)]);
        // The first job takes so long that the second is never started.
        let mut jobs = Jobs::new(&set, id(), 1, AT(50));
        assert_eq!(jobs.next(AT(0)).map(|job| job.until), Some(AT(20)));
        assert_eq!(jobs.next(AT(20)).and_then(|job| job.release), Some(AT(33)));
    }

    #[test]
    fn second_interval_does_not_depend_on_unfinished_jobs_of_the_first() {
        let actions = vec![(95, Change::Leave(id())), (100, Change::Enter(id()))];
        let set = set(|task| task.arrival = Arrival::Sporadic, actions);
        let expected = all(&set, 200);
        let second = expected.iter().position(|&(at, _)| at >= 100).unwrap();
        let mut late = Jobs::new(&set, id(), 1, AT(200));
        late.next(AT(0));
        // The first job took until the task left.
        let releases = std::iter::from_fn(|| late.next(AT(95)));
        let releases: Vec<u64> = releases
            .filter_map(|job| Some(job.release?.as_ns()))
            .collect();
        let expected: Vec<u64> = expected[second..].iter().map(|&(at, _)| at).collect();
        assert_eq!(releases, expected);
    }

    #[test]
    fn task_that_never_enters_has_no_jobs() {
        let gone = vec![(0, Change::Leave(id()))];
        assert_eq!(all(&set(|_| {}, gone), 50), []);
    }

    #[test]
    fn rests_follow_the_first_run() {
        let phases = |phases: Vec<Phase>| {
            let set = set(|task| task.work = Work::Phases(phases), vec![]);
            let mut jobs = Jobs::new(&set, id(), 1, AT(50));
            let first = jobs.next(AT(0)).unwrap().run.as_ns();
            let rests: Vec<_> = jobs
                .rests()
                .map(|(step, run)| (step, run.as_ns()))
                .collect();
            (first, rests)
        };
        let (run, sleep) = (|ns| Phase::Run(NS(ns)), |ns| Phase::Sleep(NS(ns)));
        let sleeps = Step::Sleep(NS(2));
        assert_eq!(
            phases(vec![run(1), sleep(2), run(3)]),
            (1, vec![(sleeps, 3)])
        );
        assert_eq!(phases(vec![sleep(2), run(3)]), (0, vec![(sleeps, 3)]));
        assert_eq!(phases(vec![run(1), sleep(2)]), (1, vec![(sleeps, 0)]));
        let other = TaskId::from_index(1);
        assert_eq!(
            phases(vec![run(1), Phase::Trigger(other), run(3)]),
            (1, vec![(Step::Trigger(other), 3)])
        );
        assert_eq!(phases(vec![run(1)]), (1, vec![]));
        let (_, none) = {
            let set = set(|_| {}, vec![]);
            let jobs = Jobs::new(&set, id(), 1, AT(50));
            ((), jobs.rests().count())
        };
        assert_eq!(none, 0);
    }
}
