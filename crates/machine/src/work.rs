//! The execution demand of jobs.

use shiftwork_model::{
    Change, OnOverrun, Phase, RandomStream, ResourceId, Span, Task, TaskId, TaskSet, Work,
};

/// The `cell` of [`RandomStream::new`] for execution times.
const RUNS: u64 = 0x7275_6e73;

/// What a job does when it has executed a part of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It suspends itself for this long, above zero.
    Sleep(Span),
    /// It locks this mutex.
    Lock(ResourceId),
    /// It unlocks this mutex.
    Unlock(ResourceId),
    /// It triggers this task.
    Trigger(TaskId),
    /// It completes.
    Complete,
}

/// A part of a job: it executes, then takes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Execution time. Zero if the job begins with its step, or one step follows the other.
    pub run: Span,
    /// What follows; that it completes only in the last stretch, or after a suspension at its end.
    pub then: Step,
}

/// The execution demand of the jobs of one task, job by job in their order.
#[derive(Clone, Debug)]
pub struct WorkSource {
    kind: Kind,
    /// Random execution times are the shortest one plus a multiple of this.
    unit: Span,
    stretches: Vec<Stretch>,
}

#[derive(Clone, Debug)]
enum Kind {
    Cost,
    Constant(Span),
    Uniform(RandomStream, Span, Span),
    Trace(Vec<Span>, usize),
    Phases,
}

impl WorkSource {
    /// The demand of this task's jobs, beginning with the first. Random execution times depend on
    /// the seed and the task's index alone.
    pub fn new(task: &Task, id: TaskId, seed: u64) -> Self {
        let kind = match &task.work {
            Work::Cost => Kind::Cost,
            Work::Constant(run) => Kind::Constant(*run),
            Work::Uniform(shortest, longest) => {
                let stream = RandomStream::new(seed, RUNS, id.index() as u64);
                Kind::Uniform(stream, *shortest, *longest)
            }
            Work::Trace(runs) if runs.is_empty() => Kind::Cost,
            Work::Trace(runs) => Kind::Trace(runs.clone(), 0),
            Work::Phases(_) => Kind::Phases,
        };
        let stretches = match &task.work {
            Work::Phases(phases) => stretches(phases),
            _ => Vec::new(),
        };
        let unit = Span::from_ns(1);
        Self {
            kind,
            unit,
            stretches,
        }
    }

    /// Rounds random execution times to multiples of `unit`, which must not be zero. Without this call the
    /// unit is one nanosecond.
    #[must_use]
    pub fn in_units(self, unit: Span) -> Self {
        Self { unit, ..self }
    }

    /// Execution time of the next job until it suspends itself or completes. `cost` is the declared cost at
    /// its release. Advances to the job after it.
    pub fn next_job(&mut self, cost: Span) -> Span {
        match &mut self.kind {
            Kind::Cost => cost,
            Kind::Constant(run) => *run,
            Kind::Uniform(stream, shortest, longest) => {
                stream.span_in_units(self.unit, *shortest, *longest)
            }
            Kind::Trace(runs, next) => {
                let run = runs[*next];
                *next = (*next + 1) % runs.len();
                run
            }
            Kind::Phases => self.stretches[0].run,
        }
    }

    /// The stretches of every job if jobs suspend themselves; empty if they only execute.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// Whether every job executes for exactly the declared cost, without suspending itself.
    pub const fn is_cost(&self) -> bool {
        matches!(self.kind, Kind::Cost)
    }

    /// Whether some job may run for longer than `cost`.
    pub fn may_exceed(&self, cost: Span) -> bool {
        match &self.kind {
            Kind::Cost => false,
            Kind::Constant(run) => *run > cost,
            Kind::Uniform(_, _, longest) => *longest > cost,
            Kind::Trace(runs, _) => runs.iter().any(|&run| run > cost),
            Kind::Phases => {
                let runs = self.stretches.iter().map(|part| part.run);
                let total = runs.fold(Span::ZERO, |sum, run| sum + run);
                total > cost
            }
        }
    }
}

/// Merges adjacent phases of one kind, and drops phases of zero length. A suspension at the end is the last stretch.
fn stretches(phases: &[Phase]) -> Vec<Stretch> {
    let mut parts: Vec<Stretch> = Vec::new();
    let mut run = Span::ZERO;
    for phase in phases {
        let then = match *phase {
            Phase::Run(more) => {
                run += more;
                continue;
            }
            Phase::Sleep(span) if span.is_zero() => continue,
            Phase::Sleep(span) => Step::Sleep(span),
            Phase::Lock(resource) => Step::Lock(resource),
            Phase::Unlock(resource) => Step::Unlock(resource),
            Phase::Trigger(task) => Step::Trigger(task),
        };
        match (parts.last_mut().map(|part| &mut part.then), then) {
            (Some(Step::Sleep(before)), Step::Sleep(span)) if run.is_zero() => *before += span,
            _ => parts.push(Stretch { run, then }),
        }
        run = Span::ZERO;
    }
    if !run.is_zero()
        || !matches!(
            parts.last(),
            Some(Stretch {
                then: Step::Sleep(_),
                ..
            })
        )
    {
        let then = Step::Complete;
        parts.push(Stretch { run, then });
    }
    parts
}

/// Whether a budget has to be enforced for the task: overruns are to be throttled, and the task's work in
/// the file may exceed the smallest cost that the task declares during the run.
///
/// Without this possibility the task needs no server. Then the overheads that a machine adds to a job that
/// executes for exactly its cost (a switch, an interrupt) cannot delay the job by a period.
pub fn may_be_throttled(set: &TaskSet, id: TaskId) -> bool {
    let task = &set.tasks[id.index()];
    let changed = set.actions.iter().filter_map(|action| match action.change {
        Change::SetAttributes { task, cost, .. } if task == id => cost,
        _ => None,
    });
    let least = changed.fold(task.cost, Span::min);
    // The upper bound of a job's work does not depend on the seed.
    task.on_overrun == OnOverrun::Throttle && WorkSource::new(task, id, 0).may_exceed(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{Action, Instant};
    use shiftwork_model::{Affinity, CpuId};

    const NS: fn(u64) -> Span = Span::from_ns;

    fn source(work: Work) -> WorkSource {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let mut task = Task::periodic("t", NS(5), NS(10), cpu);
        task.work = work;
        WorkSource::new(&task, TaskId::from_index(0), 1)
    }

    fn runs(work: Work, count: usize) -> Vec<u64> {
        let mut source = source(work);
        (0..count).map(|_| source.next_job(NS(5)).as_ns()).collect()
    }

    #[test]
    fn jobs_execute_for_the_work_in_the_file() {
        assert_eq!(runs(Work::Cost, 2), [5, 5]);
        assert_eq!(runs(Work::Constant(NS(7)), 2), [7, 7]);
        assert_eq!(runs(Work::Trace(vec![NS(1), NS(2)]), 3), [1, 2, 1]);
        let drawn = runs(Work::Uniform(NS(3), NS(6)), 1_000);
        assert_eq!(
            (drawn.iter().min(), drawn.iter().max()),
            (Some(&3), Some(&6))
        );
        assert_eq!(drawn, runs(Work::Uniform(NS(3), NS(6)), 1_000));
    }

    #[test]
    fn phases_are_merged_into_stretches() {
        let phases = vec![
            Phase::Sleep(NS(1)),
            Phase::Run(NS(2)),
            Phase::Run(NS(3)),
            Phase::Sleep(NS(0)),
            Phase::Run(NS(1)),
            Phase::Sleep(NS(4)),
            Phase::Run(NS(0)),
            Phase::Sleep(NS(5)),
            Phase::Run(NS(1)),
        ];
        let source = source(Work::Phases(phases));
        let parts = source.stretches().iter();
        let parts: Vec<(u64, Step)> = parts.map(|part| (part.run.as_ns(), part.then)).collect();
        let sleep = |ns| Step::Sleep(NS(ns));
        assert_eq!(parts, [(0, sleep(1)), (6, sleep(9)), (1, Step::Complete)]);
    }

    #[test]
    fn work_exceeds_cost_only_if_its_bound_does() {
        assert!(!source(Work::Cost).may_exceed(NS(1)));
        assert!(!source(Work::Constant(NS(5))).may_exceed(NS(5)));
        assert!(source(Work::Trace(vec![NS(1), NS(6)])).may_exceed(NS(5)));
        assert!(source(Work::Uniform(NS(1), NS(6))).may_exceed(NS(5)));
        let phases = vec![Phase::Run(NS(3)), Phase::Sleep(NS(1)), Phase::Run(NS(3))];
        assert!(source(Work::Phases(phases)).may_exceed(NS(5)));
    }

    #[test]
    fn task_may_be_throttled_if_work_may_exceed_its_smallest_cost() {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let mut task = Task::periodic("t", NS(5), NS(10), cpu);
        task.work = Work::Constant(NS(4));
        let id = TaskId::from_index(0);
        let mut set = TaskSet::new("s", 1, vec![task]);
        assert!(!may_be_throttled(&set, id));
        set.actions.push(Action {
            at: Instant::from_ns(7),
            change: Change::SetAttributes {
                task: id,
                cost: Some(NS(3)),
                period: None,
                deadline: None,
            },
        });
        assert!(may_be_throttled(&set, id));
        set.tasks[0].on_overrun = OnOverrun::Continue;
        assert!(!may_be_throttled(&set, id));
    }
}
