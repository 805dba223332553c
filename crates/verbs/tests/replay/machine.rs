//! A machine for tests that needs time to react, and schedulers that are wrong. It decides by the
//! definition, executed directly, and shares no code with the policies.

use shiftwork_model::{
    CpuId, Instant, JobId, Priority, RandomStream, Record, RecordKind, Span, TaskId, TaskSet,
};

/// How the machine's scheduler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// As strong EDF does.
    Strong,
    /// By the weak invariant: running jobs are not moved to other CPUs.
    Weak,
    /// By fixed priorities.
    FixedPriority,
    /// The deadlines of this task are taken to be 30% shorter.
    Deadline(usize),
    /// This CPU of this task's affinity is not used.
    Affinity(usize, usize),
    /// A job that is preempted goes behind those of its deadline.
    Fifo,
    /// The CPU that is the first to be given a job after so many others stands still for 5 ms then.
    Stall(u64),
}

/// What came of a run.
pub struct Run {
    pub records: Vec<Record>,
    /// The longest time for which the scheduler wanted other jobs than strong EDF does, equal
    /// deadlines by becoming ready; for a stall, for how long the job was to run where it could not.
    pub differed: Span,
}

#[derive(Clone, Debug, Default)]
struct Task {
    released: u64,
    done: u64,
    /// When the next job is noticed.
    noticed: u64,
    ready: bool,
    since: u64,
    queued: u64,
    left: u64,
}

/// A CPU that goes on with what it has.
#[derive(Clone, Copy, Debug)]
struct Stalled {
    cpu: usize,
    until: u64,
    /// What it is to run, and since when.
    wanted: Option<usize>,
    since: u64,
}

struct Machine<'a> {
    set: &'a TaskSet,
    scheduler: Scheduler,
    reaction: u64,
    random: &'a mut RandomStream,
    records: Vec<Record>,
    now: u64,
    tasks: Vec<Task>,
    runs: Vec<Option<usize>>,
    target: Vec<Option<usize>>,
    due: Vec<u64>,
    switches: u64,
    stalled: Option<Stalled>,
    differs_since: Option<u64>,
    differed: u64,
}

/// Runs the task set, periodic with constant work, where each reaction takes up to `reaction_ns`.
pub fn run(
    set: &TaskSet,
    scheduler: Scheduler,
    reaction_ns: u64,
    random: &mut RandomStream,
    horizon: Instant,
) -> Run {
    let cpus = set.platform.cpus;
    let mut machine = Machine {
        set,
        scheduler,
        reaction: reaction_ns,
        random,
        records: Vec::new(),
        now: 0,
        tasks: vec![Task::default(); set.tasks.len()],
        runs: vec![None; cpus],
        target: vec![None; cpus],
        due: vec![0; cpus],
        switches: 0,
        stalled: None,
        differs_since: None,
        differed: 0,
    };
    while machine.now < horizon.as_ns() {
        let changed = machine.complete() | machine.release();
        if changed {
            machine.decide();
        }
        machine.switch();
        machine.advance(horizon.as_ns());
    }
    machine.note_difference(false);
    if let Some(stalled) = machine.stalled.filter(|it| it.until > machine.now) {
        machine.note_stall(stalled, machine.now);
    }
    Run {
        records: machine.records,
        differed: Span::from_ns(machine.differed),
    }
}

impl Machine<'_> {
    fn record(&mut self, kind: RecordKind) {
        let at = Instant::from_ns(self.now);
        self.records.push(Record { at, kind });
    }

    fn late(&mut self) -> u64 {
        self.now + self.random.below(self.reaction + 1)
    }

    fn job(&self, index: usize) -> JobId {
        let number = self.tasks[index].done + 1;
        JobId {
            task: TaskId::from_index(index),
            number,
        }
    }

    fn offset(&self, index: usize) -> u64 {
        self.set.tasks[index].offset.as_ns()
    }

    fn deadline(&self, index: usize, number: u64) -> u64 {
        let task = &self.set.tasks[index];
        self.offset(index) + (number - 1) * task.period.as_ns() + task.deadline.as_ns()
    }

    fn next_release(&self, index: usize) -> u64 {
        self.offset(index) + self.tasks[index].released * self.set.tasks[index].period.as_ns()
    }

    fn complete(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.tasks.len() {
            if self.tasks[index].ready && self.tasks[index].left == 0 {
                let job = self.job(index);
                self.record(RecordKind::Completed { job });
                let task = &mut self.tasks[index];
                (task.ready, task.done, task.noticed) = (false, task.done + 1, self.now);
                for cpu in 0..self.runs.len() {
                    if self.runs[cpu] == Some(index) {
                        self.put(cpu, None, Some(job));
                    }
                    if self.target[cpu] == Some(index) {
                        self.target[cpu] = None;
                        self.stand_still(cpu);
                    }
                }
                any = true;
            }
        }
        any
    }

    fn release(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.tasks.len() {
            if self.next_release(index) == self.now {
                self.tasks[index].released += 1;
                let number = self.tasks[index].released;
                let job = JobId {
                    number,
                    ..self.job(index)
                };
                let deadline = Instant::from_ns(self.deadline(index, number));
                self.record(RecordKind::Released { job, deadline });
                if number == self.tasks[index].done + 1 {
                    self.tasks[index].noticed = self.late();
                }
            }
            let task = &self.tasks[index];
            if !task.ready && task.released > task.done && task.noticed <= self.now {
                let job = self.job(index);
                let deadline = Instant::from_ns(self.deadline(index, job.number));
                let priority = self.set.tasks[index]
                    .priority
                    .unwrap_or(Priority::MOST_URGENT);
                self.record(RecordKind::Ready {
                    job,
                    deadline,
                    priority,
                });
                let now = self.now;
                let task = &mut self.tasks[index];
                (task.ready, task.since, task.queued) = (true, now, now);
                task.left = self.set.tasks[index].cost.as_ns();
                any = true;
            }
        }
        any
    }

    /// By what the scheduler ranks the task's job; the second number is since when it counts.
    fn key(&self, scheduler: Scheduler, index: usize) -> (u64, u64, usize) {
        let task = &self.tasks[index];
        let deadline = self.deadline(index, task.done + 1);
        match scheduler {
            Scheduler::FixedPriority => {
                let priority = self.set.tasks[index].priority;
                (
                    priority.map_or(0, |it| u64::from(it.number())),
                    task.since,
                    index,
                )
            }
            Scheduler::Deadline(which) if which == index => {
                let shorter = self.set.tasks[index].deadline.as_ns() * 3 / 10;
                (deadline - shorter, task.since, index)
            }
            Scheduler::Fifo => (deadline, task.queued, index),
            _ => (deadline, task.since, index),
        }
    }

    fn may_use(&self, scheduler: Scheduler, index: usize, cpu: usize) -> bool {
        let may = self.set.tasks[index]
            .affinity
            .cpus()
            .contains(CpuId::from_index(cpu));
        may && scheduler != Scheduler::Affinity(index, cpu)
    }

    fn decide(&mut self) {
        let wanted = match self.scheduler {
            Scheduler::Weak => self.weak(),
            other => self.strong(other),
        };
        for (cpu, to) in wanted.into_iter().enumerate() {
            if to == self.target[cpu] {
                continue;
            }
            let leaves = self.target[cpu].filter(|&index| self.tasks[index].ready);
            if let Some(index) = leaves {
                self.tasks[index].queued = self.now;
            }
            self.target[cpu] = to;
            self.due[cpu] = self.late();
            self.switches += u64::from(to.is_some());
            if self.scheduler == Scheduler::Stall(self.switches) && to.is_some() {
                self.stalled = Some(Stalled {
                    cpu,
                    until: self.now + 5_000_000,
                    wanted: to,
                    since: self.now,
                });
            }
            self.stand_still(cpu);
        }
        let differs = self.differs();
        self.note_difference(differs);
    }

    /// The CPU is to run another job. If it stands still, that comes to nothing for now.
    fn stand_still(&mut self, on: usize) {
        let Some(stalled) = self
            .stalled
            .filter(|it| it.cpu == on && it.until > self.now)
        else {
            return;
        };
        self.note_stall(stalled, self.now);
        self.stalled = Some(Stalled {
            wanted: self.target[on],
            since: self.now,
            ..stalled
        });
        self.due[on] = stalled.until;
    }

    /// For how long the CPU was to run what it did not.
    fn note_stall(&mut self, it: Stalled, now: u64) {
        if it.wanted.is_some() && it.wanted != self.runs[it.cpu] {
            self.differed = self.differed.max(now - it.since);
        }
    }

    /// Whether the scheduler wants jobs of other ranks than strong EDF does; equal deadlines count as equal if the
    /// jobs became ready within 200 us of each other.
    fn differs(&self) -> bool {
        let right = self.strong(Scheduler::Strong);
        let only = |these: &[Option<usize>], those: &[Option<usize>]| -> Vec<usize> {
            let these = these.iter().flatten().copied();
            these
                .filter(|index| !those.contains(&Some(*index)))
                .collect()
        };
        let mut more = only(&self.target, &right);
        let mut less = only(&right, &self.target);
        let key = |index: &usize| self.key(Scheduler::Strong, *index);
        more.sort_by_key(key);
        less.sort_by_key(key);
        let equal = |(a, b): (&usize, &usize)| {
            let (a, b) = (key(a), key(b));
            a.0 == b.0 && a.1.abs_diff(b.1) <= 200_000
        };
        more.len() != less.len() || !more.iter().zip(&less).all(equal)
    }

    fn note_difference(&mut self, differs: bool) {
        if matches!(self.scheduler, Scheduler::Stall(_)) {
            return;
        }
        if let Some(since) = self.differs_since.take() {
            self.differed = self.differed.max(self.now - since);
            self.differs_since = differs.then_some(since);
        } else if differs {
            self.differs_since = Some(self.now);
        }
    }

    /// The ready tasks, the most urgent first.
    fn ranked(&self, scheduler: Scheduler) -> Vec<usize> {
        let ready = (0..self.tasks.len()).filter(|&index| self.tasks[index].ready);
        let mut ready: Vec<usize> = ready.collect();
        ready.sort_by_key(|&index| self.key(scheduler, index));
        ready
    }

    /// The most urgent jobs first, as far as the chosen ones fit on the CPUs; where they are if that can be.
    fn strong(&self, scheduler: Scheduler) -> Vec<Option<usize>> {
        let mut place = vec![None; self.target.len()];
        for index in self.ranked(scheduler) {
            let here = self.target.iter().position(|&it| it == Some(index));
            match here {
                Some(cpu) if place[cpu].is_none() && self.may_use(scheduler, index, cpu) => {
                    place[cpu] = Some(index);
                }
                _ => {
                    let mut seen = vec![false; place.len()];
                    self.augment(scheduler, index, &mut place, &mut seen);
                }
            }
        }
        place
    }

    fn augment(
        &self,
        scheduler: Scheduler,
        index: usize,
        place: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        for cpu in 0..place.len() {
            if !self.may_use(scheduler, index, cpu) || std::mem::replace(&mut seen[cpu], true) {
                continue;
            }
            let free = match place[cpu] {
                None => true,
                Some(other) => self.augment(scheduler, other, place, seen),
            };
            if free {
                place[cpu] = Some(index);
                return true;
            }
        }
        false
    }

    /// Each waiting job takes an idle CPU, or the one of the least urgent job that it may displace.
    fn weak(&self) -> Vec<Option<usize>> {
        let key = |index: usize| self.key(Scheduler::Weak, index);
        let mut place = self.target.clone();
        loop {
            let waiting = self.ranked(Scheduler::Weak);
            let better = waiting.into_iter().filter(|&it| !place.contains(&Some(it)));
            let taken = better.into_iter().find_map(|index| {
                let cpus =
                    (0..place.len()).filter(|&cpu| self.may_use(Scheduler::Weak, index, cpu));
                let worst = cpus.max_by_key(|&cpu| match place[cpu] {
                    None => (1, (0, 0, 0)),
                    Some(other) => (0, key(other)),
                })?;
                let takes = place[worst].is_none_or(|other| key(index) < key(other));
                takes.then_some((index, worst))
            });
            match taken {
                Some((index, cpu)) => place[cpu] = Some(index),
                None => return place,
            }
        }
    }

    /// CPUs that are due leave the jobs that they should not run, then take the assigned jobs that
    /// no other CPU runs.
    fn switch(&mut self) {
        if let Some(stalled) = self.stalled.filter(|it| it.until <= self.now) {
            self.note_stall(stalled, stalled.until);
            self.stalled = None;
        }
        for cpu in 0..self.runs.len() {
            if let Some(index) = self.runs[cpu]
                && self.due[cpu] <= self.now
                && self.target[cpu] != Some(index)
            {
                let from = self.job(index);
                self.put(cpu, None, Some(from));
            }
        }
        for cpu in 0..self.runs.len() {
            if let Some(index) = self.target[cpu]
                && self.due[cpu] <= self.now
                && self.tasks[index].ready
                && !self.runs.contains(&Some(index))
            {
                self.put(cpu, Some(index), None);
            }
        }
    }

    fn put(&mut self, cpu: usize, to: Option<usize>, from: Option<JobId>) {
        self.runs[cpu] = to;
        let to = to.map(|index| self.job(index));
        let cpu = CpuId::from_index(cpu);
        self.record(RecordKind::Switched { cpu, from, to });
    }

    /// To the next instant at which something happens.
    fn advance(&mut self, horizon: u64) {
        let releases = (0..self.tasks.len()).map(|index| self.next_release(index));
        let notices =
            self.tasks
                .iter()
                .map(|task| match task.ready || task.released == task.done {
                    true => u64::MAX,
                    false => task.noticed,
                });
        let ends = self
            .runs
            .iter()
            .flatten()
            .map(|&index| self.now + self.tasks[index].left);
        let all = releases
            .chain(notices)
            .chain(ends)
            .chain(self.due.iter().copied());
        let next = all
            .filter(|&at| at > self.now)
            .min()
            .unwrap_or(horizon)
            .min(horizon);
        for &index in self.runs.iter().flatten() {
            self.tasks[index].left -= next - self.now;
        }
        self.now = next;
    }
}
