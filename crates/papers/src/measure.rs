//! What evaluations count of a run, beside what every run counts. It keeps no records.

use std::collections::VecDeque;

use shiftwork_model::{CpuId, Instant, JobId, RecordKind, Recorder, TaskSet};

/// Tardiness is counted in thousandths of a period, up to so many periods.
const PERIODS_MAX: usize = 20;

/// Counts of one run, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Completed jobs.
    pub completed: u64,
    /// How often a server was replenished in the moment in which its job ended, because it was late already:
    /// where a repaired Linux throttles and pushes, and Linux goes on.
    pub late_replenishments: u64,
    /// How often a task began to run on another CPU than it last ran on, with another job than there.
    pub moves_between_jobs: u64,
    /// The same with the same job.
    pub moves_within_jobs: u64,
    /// How many jobs were late by so many thousandths of their period, rounded up; the last is that or more.
    pub tardiness: Vec<u64>,
    /// The sum of all tardiness, each divided by the period, in millionths.
    pub tardiness_sum: u128,
}

impl Counts {
    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.late_replenishments += other.late_replenishments;
        self.moves_between_jobs += other.moves_between_jobs;
        self.moves_within_jobs += other.moves_within_jobs;
        self.tardiness_sum += other.tardiness_sum;
        let length = self.tardiness.len().max(other.tardiness.len());
        self.tardiness.resize(length, 0);
        for (sum, more) in self.tardiness.iter_mut().zip(&other.tardiness) {
            *sum += more;
        }
    }

    /// Moves of tasks from CPU to CPU, whatever the job.
    pub const fn moves(&self) -> u64 {
        self.moves_between_jobs + self.moves_within_jobs
    }

    /// The tardiness, in thousandths of the period, that at least this many of 1000 jobs do not exceed.
    pub fn percentile(&self, permille: u64) -> u64 {
        let rank = (self.completed * permille).div_ceil(1_000).max(1);
        let mut seen = 0;
        let reached = self.tardiness.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        reached.unwrap_or(0) as u64
    }

    /// The mean, in millionths of the period.
    pub fn mean(&self) -> u128 {
        self.tardiness_sum / u128::from(self.completed.max(1))
    }

    /// How many jobs were late by more than `from` and at most `to` thousandths of their period.
    pub fn between(&self, from: usize, to: usize) -> u64 {
        let last = self.tardiness.len();
        let range = (from + 1).min(last)..(to + 1).min(last);
        self.tardiness[range].iter().sum()
    }

    /// How many jobs were not late.
    pub fn in_time(&self) -> u64 {
        self.tardiness.first().copied().unwrap_or(0)
    }
}

/// Counts while it records.
#[derive(Clone, Debug)]
pub struct Measure {
    tasks: Vec<Seen>,
    /// By CPU what runs there, and since when.
    on: Vec<Option<(JobId, Instant)>>,
}

/// What was seen of a task.
#[derive(Clone, Debug, Default)]
struct Seen {
    period_ns: u64,
    /// Of its unfinished jobs, the first first.
    deadlines: VecDeque<Instant>,
    /// When a job of it last ended, or a budget did.
    ended: Option<Instant>,
    /// What it ran last, and where.
    ran: Option<(JobId, CpuId)>,
    counts: Counts,
}

impl Measure {
    /// Nothing counted yet.
    pub fn new(set: &TaskSet) -> Self {
        let seen = |period_ns| Seen {
            period_ns,
            ..Seen::default()
        };
        let periods = set.tasks.iter().map(|task| task.period.as_ns());
        Self {
            tasks: periods.map(seen).collect(),
            on: vec![None; set.platform.cpus],
        }
    }

    /// The counts of each task.
    pub fn of_tasks(&self) -> impl Iterator<Item = &Counts> {
        self.tasks.iter().map(|seen| &seen.counts)
    }

    /// The counts of all tasks together.
    pub fn all(&self) -> Counts {
        self.of_tasks().fold(Counts::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }

    /// A job ran without a break, and on this CPU.
    fn ran(&mut self, job: JobId, cpu: CpuId) {
        let seen = &mut self.tasks[job.task.index()];
        match seen.ran {
            Some((before, there)) if there != cpu && before == job => {
                seen.counts.moves_within_jobs += 1;
            }
            Some((_, there)) if there != cpu => seen.counts.moves_between_jobs += 1,
            _ => {}
        }
        seen.ran = Some((job, cpu));
    }
}

impl Seen {
    fn complete(&mut self, at: Instant) {
        self.ended = Some(at);
        let Some(deadline) = self.deadlines.pop_front() else {
            return;
        };
        let late = at.late_since(deadline).as_ns();
        let period = self.period_ns.max(1);
        let permille = (u128::from(late) * 1_000).div_ceil(period.into());
        let place = usize::try_from(permille)
            .unwrap_or(usize::MAX)
            .min(1_000 * PERIODS_MAX);
        let counts = &mut self.counts;
        if counts.tardiness.len() <= place {
            counts.tardiness.resize(place + 1, 0);
        }
        counts.tardiness[place] += 1;
        counts.completed += 1;
        counts.tardiness_sum += u128::from(late) * 1_000_000 / u128::from(period);
    }
}

impl Recorder for Measure {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } => {
                self.tasks[job.task.index()].deadlines.push_back(deadline);
            }
            RecordKind::Completed { job } => self.tasks[job.task.index()].complete(at),
            RecordKind::BudgetSpent { job } => self.tasks[job.task.index()].ended = Some(at),
            RecordKind::Replenished { task, .. } => {
                let seen = &mut self.tasks[task.index()];
                seen.counts.late_replenishments += u64::from(seen.ended == Some(at));
            }
            RecordKind::Switched { cpu, to, .. } => {
                let before = self.on[cpu.index()].take();
                if let Some((job, _)) = before.filter(|(_, start)| *start < at) {
                    self.ran(job, cpu);
                }
                self.on[cpu.index()] = to.map(|job| (job, at));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{Affinity, CpuSet, Span, Task, TaskId};

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn lateness_and_moves_are_counted() {
        let all = Affinity::new(CpuSet::first(2)).expect("two CPUs are some");
        let task = Task::periodic("t", Span::from_ns(5), Span::from_ns(10), all);
        let mut measure = Measure::new(&TaskSet::new("", 2, vec![task]));
        let task = TaskId::from_index(0);
        let job = |number| JobId { task, number };
        let switched = |cpu, to| RecordKind::Switched {
            cpu: CpuId::from_index(cpu),
            from: None,
            to,
        };
        for (when, kind) in [
            (
                0,
                RecordKind::Released {
                    job: job(1),
                    deadline: at(10),
                },
            ),
            (0, switched(0, Some(job(1)))),
            (4, switched(0, None)),
            // Not long enough to have run there.
            (4, switched(0, Some(job(1)))),
            (4, switched(0, None)),
            (6, switched(1, Some(job(1)))),
            (
                10,
                RecordKind::Released {
                    job: job(2),
                    deadline: at(20),
                },
            ),
            (11, RecordKind::Completed { job: job(1) }),
            (
                11,
                RecordKind::Replenished {
                    task,
                    budget: Span::from_ns(5),
                    deadline: at(20),
                },
            ),
            (11, switched(1, None)),
            (11, switched(0, Some(job(2)))),
            (16, RecordKind::Completed { job: job(2) }),
            (16, switched(0, None)),
            (
                20,
                RecordKind::Replenished {
                    task,
                    budget: Span::from_ns(5),
                    deadline: at(30),
                },
            ),
        ] {
            measure.record(at(when), &kind);
        }
        let counts = measure.all();
        assert_eq!((counts.completed, counts.in_time()), (2, 1));
        assert_eq!(
            (counts.moves_within_jobs, counts.moves_between_jobs),
            (1, 1)
        );
        assert_eq!(counts.late_replenishments, 1);
        assert_eq!((counts.percentile(500), counts.percentile(510)), (0, 100));
        assert_eq!((counts.between(0, 99), counts.between(99, 100)), (0, 1));
        assert_eq!(counts.mean(), 50_000);
    }
}
