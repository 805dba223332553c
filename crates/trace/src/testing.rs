//! Records for tests: told by hand, or at random.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Happening, Instant, JobId, NotReadyReason, Priority, RandomStream,
    Record, Recorder, Span, Task, TaskId, TaskSet,
};

/// A task set of these tasks with their affinities; the first is the most urgent by priority.
pub(crate) fn set(cpus: usize, tasks: &[(&str, &str)]) -> TaskSet {
    let task = |(index, &(name, affinity)): (usize, &(&str, &str))| {
        let affinity = Affinity::new(affinity.parse().unwrap()).unwrap();
        let mut task = Task::periodic(name, Span::from_ns(10), Span::from_ns(100), affinity);
        task.priority = Priority::new(index as u32 + 1);
        task
    };
    TaskSet::new("story", cpus, tasks.iter().enumerate().map(task).collect())
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

/// Records, told in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub records: Vec<Record>,
    now: Instant,
}

impl Story {
    /// What follows happens at this instant.
    pub fn at(mut self, ns: u64) -> Self {
        self.now = at(ns);
        self
    }

    pub fn tell(mut self, what: Happening) -> Self {
        self.records.push(Record { at: self.now, what });
        self
    }

    /// A job is released and ready; its priority is its task's place.
    pub fn release(self, task: usize, number: u64, deadline: u64) -> Self {
        self.tell(Happening::Released {
            job: job(task, number),
            deadline: at(deadline),
        })
        .ready(task, number, deadline)
    }

    pub fn ready(self, task: usize, number: u64, deadline: u64) -> Self {
        self.tell(Happening::Ready {
            job: job(task, number),
            deadline: at(deadline),
            priority: Priority::new(task as u32 + 1).unwrap(),
        })
    }

    pub fn not_ready(self, task: usize, number: u64, reason: NotReadyReason) -> Self {
        self.tell(Happening::NotReady {
            job: job(task, number),
            reason,
        })
    }

    pub fn complete(self, task: usize, number: u64) -> Self {
        self.tell(Happening::Completed {
            job: job(task, number),
        })
    }

    /// The CPU runs the job `to` (task, number); what it ran before follows from the story.
    pub fn switch(self, on: usize, to: Option<(usize, u64)>) -> Self {
        let before = self
            .records
            .iter()
            .rev()
            .find_map(|record| match record.what {
                Happening::Switched { cpu, to, .. } if cpu.index() == on => Some(to),
                _ => None,
            });
        self.tell(Happening::Switched {
            cpu: cpu(on),
            from: before.flatten(),
            to: to.map(|(task, number)| job(task, number)),
        })
    }

    pub fn play(&self, recorder: &mut impl Recorder) {
        for record in &self.records {
            recorder.record(record.at, &record.what);
        }
    }
}

/// Records of every kind and of no sense at all.
pub(crate) fn noise(random: &mut RandomStream, tasks: u64, cpus: u64, count: u64) -> Vec<Record> {
    let mut now = 0;
    (0..count)
        .map(|_| {
            now += random.below(3) * (random.bits() >> (24 + random.below(40)));
            Record {
                at: at(now),
                what: nonsense(random, tasks, cpus),
            }
        })
        .collect()
}

fn nonsense(random: &mut RandomStream, tasks: u64, cpus: u64) -> Happening {
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
    match random.below(18) {
        0 => Happening::Released { job, deadline },
        1 => Happening::Ready {
            job,
            deadline,
            priority,
        },
        2 => Happening::NotReady {
            job,
            reason: NotReadyReason::Suspended,
        },
        3 => Happening::NotReady {
            job,
            reason: NotReadyReason::Throttled,
        },
        4 => Happening::Completed { job },
        5 => Happening::Switched {
            cpu,
            from: other,
            to: Some(job),
        },
        6 => Happening::Switched {
            cpu,
            from: Some(job),
            to: other,
        },
        7 => Happening::BudgetSpent { job },
        8 => Happening::Replenished {
            task,
            budget: span,
            deadline,
        },
        9 => Happening::Entered { task },
        10 => Happening::Left { task },
        11 => Happening::AffinitySet {
            task,
            affinity: Box::new(some_affinity(random)),
        },
        12 => Happening::PrioritySet { task, priority },
        13 => Happening::AttributesSet {
            task,
            cost: span,
            period: span,
            deadline: span,
        },
        14 => Happening::CpuOffline { cpu },
        15 => Happening::CpuOnline { cpu },
        16 if random.below(2) == 0 => Happening::BackgroundStarted { cpu },
        16 => Happening::BackgroundEnded { cpu },
        _ => Happening::Refused {
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
