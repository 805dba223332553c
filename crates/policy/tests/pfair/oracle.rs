//! PD2 by its definition: subtasks with windows, each compared with each by the rules as they are written.

use std::cmp::Ordering;

/// Rounded up.
pub fn ceiling(numerator: i128, denominator: i128) -> i128 {
    -(-numerator).div_euclid(denominator)
}

/// A subtask of a job of weight e/p that is seen in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subtask {
    pub task: usize,
    pub job: usize,
    /// From 1, within the job.
    pub index: i128,
    pub e: i128,
    pub p: i128,
    pub seen: i128,
}

impl Subtask {
    pub fn release(&self) -> i128 {
        self.seen + ((self.index - 1) * self.p).div_euclid(self.e)
    }

    pub fn deadline(&self) -> i128 {
        self.seen + ceiling(self.index * self.p, self.e)
    }

    fn next(self) -> Self {
        Self {
            index: self.index + 1,
            ..self
        }
    }

    /// The b-bit: whether the window overlaps the next.
    fn overlaps(&self) -> bool {
        self.deadline() > self.next().release()
    }

    /// The end of the cascade of windows of two slots that overlap, window by window; 0 for light tasks.
    fn group_deadline(self) -> i128 {
        if 2 * self.e < self.p {
            return 0;
        }
        if self.e == self.p {
            return i128::MAX;
        }
        let mut last = self;
        loop {
            if !last.overlaps() {
                return last.deadline();
            }
            let next = last.next();
            if next.deadline() - next.release() > 2 {
                return last.deadline() + 1;
            }
            last = next;
        }
    }

    /// PD2: less is first. Ties that it leaves open are broken by release and by task.
    fn compare(&self, other: &Self) -> Ordering {
        if self.deadline() != other.deadline() {
            return self.deadline().cmp(&other.deadline());
        }
        match (self.overlaps(), other.overlaps()) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (true, true) if self.group_deadline() != other.group_deadline() => {
                return other.group_deadline().cmp(&self.group_deadline());
            }
            _ => {}
        }
        (self.release(), self.task).cmp(&(other.release(), other.task))
    }
}

/// A job as the definition sees it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The slot in which it is seen.
    pub seen: u64,
    /// How many quanta it runs; as many as it declares, or more, or less.
    pub runs: u64,
}

/// A task: e, p and its jobs.
#[derive(Clone, Debug)]
pub struct Task {
    pub e: u64,
    pub p: u64,
    pub jobs: Vec<Job>,
}

/// The progress of all tasks.
pub struct Oracle {
    tasks: Vec<Task>,
    cpus: usize,
    early: bool,
    /// By task: the job it is at, and how many quanta that had.
    done: Vec<(usize, u64)>,
}

impl Oracle {
    pub fn new(tasks: Vec<Task>, cpus: usize, early: bool) -> Self {
        Self {
            done: vec![(0, 0); tasks.len()],
            tasks,
            cpus,
            early,
        }
    }

    /// The subtask of the task that is next, if it may be scheduled in the slot.
    fn eligible(&self, task: usize, slot: u64) -> Option<Subtask> {
        let (job, had) = self.done[task];
        let of = &self.tasks[task];
        let seen = of.jobs.get(job)?.seen;
        let subtask = Subtask {
            task,
            job,
            index: i128::from(had) + 1,
            e: of.e.into(),
            p: of.p.into(),
            seen: seen.into(),
        };
        let from = if self.early && had > 0 {
            i128::from(seen)
        } else {
            subtask.release()
        };
        (from <= slot.into()).then_some(subtask)
    }

    /// Schedules the slot: the subtasks, the most urgent first.
    pub fn slot(&mut self, slot: u64) -> Vec<Subtask> {
        let tasks = 0..self.tasks.len();
        let mut all: Vec<Subtask> = tasks.filter_map(|task| self.eligible(task, slot)).collect();
        all.sort_by(Subtask::compare);
        all.truncate(self.cpus);
        for subtask in &all {
            let (job, had) = &mut self.done[subtask.task];
            *had += 1;
            if *had == self.tasks[subtask.task].jobs[*job].runs {
                (*job, *had) = (*job + 1, 0);
            }
        }
        all
    }

    pub fn is_done(&self) -> bool {
        let mut all = self.done.iter().zip(&self.tasks);
        all.all(|(&(job, _), task)| job == task.jobs.len())
    }
}
