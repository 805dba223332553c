//! Records for tests: scripted or random.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Instant, JobId, NotReadyReason, Priority, RandomStream, Record,
    RecordKind, Recorder, ResourceId, Span, Task, TaskId, TaskSet,
};

/// A task set of these tasks with their affinities; the first is the most urgent by priority.
pub(crate) fn set(cpus: usize, tasks: &[(&str, &str)]) -> TaskSet {
    let task = |(index, &(name, affinity)): (usize, &(&str, &str))| {
        let affinity = Affinity::new(affinity.parse().unwrap()).unwrap();
        let mut task = Task::periodic(name, Span::from_ns(10), Span::from_ns(100), affinity);
        task.priority = Priority::new(index as u32 + 1);
        task
    };
    TaskSet::new("script", cpus, tasks.iter().enumerate().map(task).collect())
}

pub(crate) fn job(task: usize, number: u64) -> JobId {
    JobId {
        task: TaskId::from_index(task),
        number,
    }
}

pub(crate) fn cpu(index: usize) -> CpuId {
    CpuId::from_index(index)
}

pub(crate) fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

/// A builder of records, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub records: Vec<Record>,
    now: Instant,
}

impl Script {
    /// Sets the instant of the following records.
    pub fn at(mut self, ns: u64) -> Self {
        self.now = at(ns);
        self
    }

    pub fn record(mut self, kind: RecordKind) -> Self {
        self.records.push(Record { at: self.now, kind });
        self
    }

    /// A job is released and ready; its priority is given by the index of its task.
    pub fn release(self, task: usize, number: u64, deadline: u64) -> Self {
        self.record(RecordKind::Released {
            job: job(task, number),
            deadline: at(deadline),
        })
        .ready(task, number, deadline)
    }

    pub fn ready(self, task: usize, number: u64, deadline: u64) -> Self {
        self.record(RecordKind::Ready {
            job: job(task, number),
            deadline: at(deadline),
            priority: Priority::new(task as u32 + 1).unwrap(),
        })
    }

    pub fn not_ready(self, task: usize, number: u64, reason: NotReadyReason) -> Self {
        self.record(RecordKind::NotReady {
            job: job(task, number),
            reason,
        })
    }

    pub fn complete(self, task: usize, number: u64) -> Self {
        self.record(RecordKind::Completed {
            job: job(task, number),
        })
    }

    /// The CPU switches to the job `to` (task, number); the previous job follows from the script.
    pub fn switch(self, on: usize, to: Option<(usize, u64)>) -> Self {
        let before = self
            .records
            .iter()
            .rev()
            .find_map(|record| match record.kind {
                RecordKind::Switched { cpu, to, .. } if cpu.index() == on => Some(to),
                _ => None,
            });
        self.record(RecordKind::Switched {
            cpu: cpu(on),
            from: before.flatten(),
            to: to.map(|(task, number)| job(task, number)),
        })
    }

    pub fn play(&self, recorder: &mut impl Recorder) {
        for record in &self.records {
            recorder.record(record.at, &record.kind);
        }
    }
}

/// Random records of every kind, without any consistency.
pub(crate) fn noise(random: &mut RandomStream, tasks: u64, cpus: u64, count: u64) -> Vec<Record> {
    let mut now = 0;
    (0..count)
        .map(|_| {
            now += random.below(3) * (random.bits() >> (24 + random.below(40)));
            Record {
                at: at(now),
                kind: nonsense(random, tasks, cpus),
            }
        })
        .collect()
}

fn nonsense(random: &mut RandomStream, tasks: u64, cpus: u64) -> RecordKind {
    let task = TaskId::from_index(random.below(tasks) as usize);
    let cpu = CpuId::from_index(random.below(cpus) as usize);
    let job = JobId {
        task,
        number: random.bits() >> random.below(64),
    };
    let other = (random.below(3) > 0).then_some(JobId {
        number: random.below(9),
        ..job
    });
    let deadline = at(random.bits() >> random.below(64));
    let span = Span::from_ns(random.bits() >> random.below(64));
    let priority = Priority::new(1 + random.below((1 << 31) - 1) as u32).unwrap();
    let resource = ResourceId::from_index(random.below(1 << 32) as usize);
    match random.below(28) {
        0 => RecordKind::Released { job, deadline },
        1 => RecordKind::Ready {
            job,
            deadline,
            priority,
        },
        2 => RecordKind::NotReady {
            job,
            reason: NotReadyReason::Suspended,
        },
        3 => RecordKind::NotReady {
            job,
            reason: NotReadyReason::Throttled,
        },
        4 => RecordKind::Completed { job },
        5 => RecordKind::Switched {
            cpu,
            from: other,
            to: Some(job),
        },
        6 => RecordKind::Switched {
            cpu,
            from: Some(job),
            to: other,
        },
        7 => RecordKind::BudgetSpent { job },
        8 => RecordKind::Replenished {
            task,
            budget: span,
            deadline,
        },
        9 => RecordKind::Entered { task },
        10 => RecordKind::Left { task },
        11 => RecordKind::AffinitySet {
            task,
            affinity: Box::new(some_affinity(random)),
        },
        12 => RecordKind::PrioritySet { task, priority },
        13 => RecordKind::AttributesSet {
            task,
            cost: span,
            period: span,
            deadline: span,
        },
        14 => RecordKind::CpuOffline { cpu },
        15 => RecordKind::CpuOnline { cpu },
        16 if random.below(2) == 0 => RecordKind::BackgroundStarted { cpu },
        16 => RecordKind::BackgroundEnded { cpu },
        17 => RecordKind::CpuTaken { cpu },
        18 => RecordKind::CpuReturned { cpu },
        19 => RecordKind::Interrupted { job, time: span },
        20 => RecordKind::Demoted {
            task,
            asked: Box::new(*some_affinity(random).cpus()),
        },
        21 => RecordKind::NotReady {
            job,
            reason: NotReadyReason::Blocked(resource),
        },
        22 => RecordKind::Locked { job, resource },
        23 => RecordKind::Unlocked { job, resource },
        24 => RecordKind::RankChanged {
            task,
            priority,
            deadline,
        },
        25 => RecordKind::Triggered {
            by: job,
            task,
            is_lost: random.below(2) == 0,
        },
        26 => RecordKind::Spinning { job, resource },
        _ => RecordKind::Refused {
            action: random.below(9) as usize,
            reason: "weiß nicht".repeat(random.below(30) as usize).into(),
        },
    }
}

fn some_affinity(random: &mut RandomStream) -> Affinity {
    let cpus: CpuSet = (0..=random.below(5))
        .map(|_| CpuId::from_index(random.below(1024) as usize))
        .collect();
    Affinity::new(cpus).unwrap()
}

/// A consistent random run that no policy would produce: jobs wait, run and migrate without reason, also several
/// times at one instant. Tasks have indices below `tasks`.
pub(crate) fn random_run(
    random: &mut RandomStream,
    tasks: usize,
    cpus: usize,
    steps: u64,
) -> Script {
    let mut run = RandomRun {
        script: Script::default(),
        pending: vec![Vec::new(); tasks],
        released: vec![0; tasks],
        ready: vec![false; tasks],
        on: vec![None; cpus],
    };
    for _ in 0..steps {
        let now = run.script.now.as_ns() + random.below(4).saturating_sub(1);
        run.script = std::mem::take(&mut run.script).at(now);
        let task = random.below(tasks as u64) as usize;
        let cpu = random.below(cpus as u64) as usize;
        match random.below(16) {
            0..4 => run.release(task, now + random.below(12)),
            4..7 => run.complete(cpu),
            7 => run.block(task),
            8..10 => run.wake(task),
            10 if random.below(8) == 0 => run.leave(task),
            _ => run.place(task, cpu),
        }
    }
    run.script
}

struct RandomRun {
    script: Script,
    pending: Vec<Vec<u64>>,
    released: Vec<u64>,
    ready: Vec<bool>,
    on: Vec<Option<(usize, u64)>>,
}

impl RandomRun {
    fn record(&mut self, kind: RecordKind) {
        self.script = std::mem::take(&mut self.script).record(kind);
    }

    fn release(&mut self, task: usize, deadline: u64) {
        self.released[task] += 1;
        let number = self.released[task];
        self.record(RecordKind::Released {
            job: job(task, number),
            deadline: at(deadline),
        });
        self.pending[task].push(number);
        if self.pending[task].len() == 1 {
            self.wake(task);
        }
    }

    fn wake(&mut self, task: usize) {
        if let (false, Some(&number)) = (self.ready[task], self.pending[task].first()) {
            self.ready[task] = true;
            self.script = std::mem::take(&mut self.script).ready(task, number, 99);
        }
    }

    fn complete(&mut self, cpu: usize) {
        let Some((task, number)) = self.on[cpu] else {
            return;
        };
        self.record(RecordKind::Completed {
            job: job(task, number),
        });
        self.pending[task].remove(0);
        self.ready[task] = false;
        self.switch(cpu, None);
        self.wake(task);
    }

    fn block(&mut self, task: usize) {
        if std::mem::take(&mut self.ready[task]) {
            let job = job(task, self.pending[task][0]);
            self.record(RecordKind::NotReady {
                job,
                reason: NotReadyReason::Suspended,
            });
            self.vacate(task);
        }
    }

    fn leave(&mut self, task: usize) {
        self.record(RecordKind::Left {
            task: TaskId::from_index(task),
        });
        self.pending[task].clear();
        self.ready[task] = false;
        self.vacate(task);
    }

    fn place(&mut self, task: usize, cpu: usize) {
        if self.ready[task] {
            self.vacate(task);
            self.switch(cpu, Some((task, self.pending[task][0])));
        }
    }

    fn vacate(&mut self, task: usize) {
        if let Some(cpu) = self
            .on
            .iter()
            .position(|on| on.is_some_and(|(it, _)| it == task))
        {
            self.switch(cpu, None);
        }
    }

    fn switch(&mut self, on: usize, to: Option<(usize, u64)>) {
        let named = |(task, number)| job(task, number);
        let from = std::mem::replace(&mut self.on[on], to).map(named);
        self.record(RecordKind::Switched {
            cpu: cpu(on),
            from,
            to: to.map(named),
        });
    }
}
