//! A simulation, as the kernel's trace would show the threads of its tasks.

use std::collections::{BTreeMap, BTreeSet};

use shiftwork_model::{
    CpuId, Instant, JobId, NotReadyReason, RandomStream, Record, RecordKind, Span, TaskId, TaskSet,
};
use shiftwork_observe::{Event, EventKind, Recording, SwitchedOut, Thread, Waker};
use shiftwork_policy::registry::Entry;
use shiftwork_sim::{Options, Simulation};

/// Number of the first thread.
const FIRST: u32 = 100;
/// Jobs of the task with the longest period.
const JOBS: u64 = 60;

/// A simulation, and its trace.
pub struct Traced {
    pub records: Vec<Record>,
    pub recording: Recording,
    /// For each task that had to wait for mutexes, how often.
    pub blocked: BTreeMap<TaskId, u64>,
}

fn thread(task: TaskId) -> u32 {
    FIRST + u32::try_from(task.index()).unwrap()
}

/// `None` if the policy refuses the set, or if a job is released before the one before it is complete: its thread would not
/// go to sleep between them.
pub fn trace(set: &TaskSet, entry: &Entry, seed: u64) -> Option<Traced> {
    let policy = entry.build(set).ok()?;
    let longest = set.tasks.iter().map(|task| task.period.as_ns()).max()?;
    let horizon = Instant::from_ns(longest * JOBS);
    let options = Options {
        seed,
        horizon,
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    Simulation::new(set, policy, &entry.traits, options).run(&mut records);
    let mut kernel = Kernel {
        stream: RandomStream::new(seed, 903, 0),
        pending: BTreeMap::new(),
        running: BTreeMap::new(),
        blocked: BTreeMap::new(),
        waiting: BTreeSet::new(),
        events: Vec::new(),
    };
    for instant in records.chunk_by(|a, b| a.at == b.at) {
        kernel.take(instant)?;
    }
    let threads = set.iter().map(|(id, task)| {
        let facts = Thread {
            process: FIRST,
            process_name: "simulated".to_owned(),
            name: task.name.clone(),
            affinity: *task.affinity.cpus(),
            cpu_time: None,
            started: 0,
            has_ended: false,
        };
        (thread(id), facts)
    });
    let recording = Recording {
        process: FIRST,
        threads: threads.collect(),
        from: Instant::ZERO,
        until: horizon + Span::from_ns(1),
        events: kernel.events,
        gaps: Vec::new(),
        unreadable: 0,
    };
    let blocked = kernel.blocked;
    Some(Traced {
        records,
        recording,
        blocked,
    })
}

struct Kernel {
    stream: RandomStream,
    /// Jobs that are not complete, by task.
    pending: BTreeMap<TaskId, JobId>,
    running: BTreeMap<CpuId, JobId>,
    /// How often jobs of each task waited for a mutex.
    blocked: BTreeMap<TaskId, u64>,
    /// Jobs that wait for a mutex.
    waiting: BTreeSet<JobId>,
    events: Vec<Event>,
}

impl Kernel {
    /// What happens at an instant: first threads are woken, by threads that still run; then CPUs switch.
    fn take(&mut self, records: &[Record]) -> Option<()> {
        let at = records.first()?.at;
        let mut wakeups: Vec<EventKind> = Vec::new();
        let mut left: BTreeMap<JobId, SwitchedOut> = BTreeMap::new();
        let mut after = self.running.clone();
        let (mut trigger, mut unlocked) = (None, None);
        for record in records {
            match &record.kind {
                RecordKind::Triggered { by, task, .. } => trigger = Some((*by, *task)),
                RecordKind::Released { job, .. } => {
                    if self.pending.insert(job.task, *job).is_some() {
                        return None;
                    }
                    let by = trigger.take().filter(|(_, task)| *task == job.task);
                    let thread_of = |(by, _): (JobId, TaskId)| Waker::Thread(thread(by.task));
                    wakeups.push(EventKind::Wakeup {
                        thread: thread(job.task),
                        by: by.map_or(Waker::Interrupt, thread_of),
                    });
                }
                RecordKind::Completed { job } => {
                    self.pending.remove(&job.task);
                    left.insert(*job, SwitchedOut::Asleep);
                }
                RecordKind::NotReady {
                    job,
                    reason: NotReadyReason::Suspended,
                } => drop(left.insert(*job, SwitchedOut::Suspended)),
                // As by a futex: the thread sleeps, and the one that unlocks wakes it.
                RecordKind::NotReady {
                    job,
                    reason: NotReadyReason::Blocked(_),
                } => {
                    left.insert(*job, SwitchedOut::Asleep);
                    self.waiting.insert(*job);
                    *self.blocked.entry(job.task).or_default() += 1;
                }
                RecordKind::Unlocked { job, .. } => unlocked = Some(*job),
                RecordKind::Ready { job, .. } => {
                    let by = unlocked.filter(|_| self.waiting.remove(job));
                    wakeups.push(EventKind::Wakeup {
                        thread: thread(job.task),
                        by: by.map_or(Waker::Interrupt, |by| Waker::Thread(thread(by.task))),
                    });
                }
                RecordKind::Switched { cpu, to, .. } => {
                    match to {
                        Some(to) => after.insert(*cpu, *to),
                        None => after.remove(cpu),
                    };
                }
                _ => {}
            }
        }
        self.events
            .extend(wakeups.into_iter().map(|kind| Event { at, kind }));
        let before = std::mem::replace(&mut self.running, after);
        let changed = |a: &BTreeMap<CpuId, JobId>, b: &BTreeMap<CpuId, JobId>| {
            let changed = a.iter().filter(|(cpu, job)| b.get(*cpu) != Some(*job));
            changed.map(|(_, job)| *job).collect::<Vec<JobId>>()
        };
        for job in changed(&before, &self.running) {
            let out = left.get(&job).copied().unwrap_or(SwitchedOut::Ready);
            self.switch(at, thread(job.task), out, 0);
        }
        for job in changed(&self.running, &before) {
            self.switch(at, 0, SwitchedOut::Ready, thread(job.task));
        }
        self.disturb(at);
        Some(())
    }

    fn switch(&mut self, at: Instant, from: u32, out: SwitchedOut, to: u32) {
        let kind = EventKind::Switch { from, out, to };
        self.events.push(Event { at, kind });
    }

    /// Wakes a thread that does not sleep, which has no effect.
    fn disturb(&mut self, at: Instant) {
        let running: Vec<JobId> = self.running.values().copied().collect();
        if running.is_empty() || self.stream.below(4) > 0 {
            return;
        }
        let chosen = self.stream.below(running.len() as u64);
        let thread = thread(running[usize::try_from(chosen).unwrap_or(0)].task);
        let by = Waker::Thread(FIRST + u32::try_from(self.stream.below(8)).unwrap_or(0));
        let kind = EventKind::Wakeup { thread, by };
        self.events.push(Event { at, kind });
    }
}
