//! Scripted runs for tests: the records are written by hand, not scheduled.
#![allow(dead_code, missing_docs, reason = "each test crate uses a part of it")]

use std::collections::BTreeMap;

use shiftwork_model::{
    Affinity, CpuId, Instant, JobId, NotReadyReason, Priority, Record, RecordKind, Recorder, Span,
    Task, TaskId, TaskSet,
};
use shiftwork_trace::{Counters, RunSummary};

/// A task as `(name, cost in ms, period in ms, CPUs)`.
pub type Entry<'a> = (&'a str, u64, u64, &'a str);

/// The task set of these tasks.
pub fn tasks(name: &str, cpus: usize, entries: &[Entry<'_>]) -> TaskSet {
    let task = |&(name, cost, period, list): &Entry<'_>| {
        let affinity = Affinity::new(list.parse().unwrap()).unwrap();
        Task::periodic(name, Span::from_ms(cost), Span::from_ms(period), affinity)
    };
    TaskSet::new(name, cpus, entries.iter().map(task).collect())
}

/// A run under construction. Times are milliseconds.
pub struct RunScript {
    pub set: TaskSet,
    pub records: Vec<Record>,
    now: Instant,
    /// Per task: number of released jobs, and the deadlines of the pending ones.
    released: Vec<u64>,
    pending: Vec<BTreeMap<u64, Instant>>,
    running: Vec<Option<JobId>>,
}

impl RunScript {
    pub fn new(cpus: usize, entries: &[Entry<'_>]) -> Self {
        Self::of(tasks("script", cpus, entries))
    }

    pub fn of(set: TaskSet) -> Self {
        Self {
            records: Vec::new(),
            now: Instant::ZERO,
            released: vec![0; set.tasks.len()],
            pending: vec![BTreeMap::new(); set.tasks.len()],
            running: vec![None; set.platform.cpus],
            set,
        }
    }

    pub fn at(&mut self, ms: u64) -> &mut Self {
        self.at_ns(ms * 1_000_000)
    }

    pub fn at_ns(&mut self, ns: u64) -> &mut Self {
        self.now = Instant::from_ns(ns);
        self
    }

    pub fn record(&mut self, kind: RecordKind) -> &mut Self {
        self.records.push(Record { at: self.now, kind });
        self
    }

    pub fn id(&self, task: &str) -> TaskId {
        self.set.find(task).unwrap()
    }

    fn current(&self, task: TaskId) -> JobId {
        let number = *self.pending[task.index()].keys().next().unwrap();
        JobId { task, number }
    }

    /// A job is released; it is ready if its predecessor has completed.
    pub fn release(&mut self, task: &str) -> &mut Self {
        let task = self.id(task);
        self.released[task.index()] += 1;
        let number = self.released[task.index()];
        let job = JobId { task, number };
        let deadline = self.now + self.set.tasks[task.index()].deadline;
        self.record(RecordKind::Released { job, deadline });
        self.pending[task.index()].insert(number, deadline);
        if self.pending[task.index()].len() == 1 {
            self.ready(task);
        }
        self
    }

    fn ready(&mut self, task: TaskId) {
        let job = self.current(task);
        let deadline = self.pending[task.index()][&job.number];
        let priority: Priority = self.set.priorities()[task.index()];
        self.record(RecordKind::Ready {
            job,
            deadline,
            priority,
        });
    }

    /// The task's current job is ready again.
    pub fn wake(&mut self, task: &str) -> &mut Self {
        self.ready(self.id(task));
        self
    }

    /// The CPU switches to the task's current job; `""` is idle.
    pub fn run(&mut self, cpu: usize, task: &str) -> &mut Self {
        let to = (!task.is_empty()).then(|| self.current(self.id(task)));
        let from = std::mem::replace(&mut self.running[cpu], to);
        let cpu = CpuId::from_index(cpu);
        self.record(RecordKind::Switched { cpu, from, to })
    }

    pub fn complete(&mut self, task: &str) -> &mut Self {
        let task = self.id(task);
        let job = self.current(task);
        self.record(RecordKind::Completed { job });
        self.pending[task.index()].remove(&job.number);
        if !self.pending[task.index()].is_empty() {
            self.ready(task);
        }
        self
    }

    /// The task's current job is no longer ready.
    pub fn stop(&mut self, task: &str, reason: NotReadyReason) -> &mut Self {
        let job = self.current(self.id(task));
        self.record(RecordKind::NotReady { job, reason })
    }

    pub fn summary(&self, horizon_ms: u64) -> RunSummary {
        let horizon = Instant::from_ns(horizon_ms * 1_000_000);
        let mut counters = Counters::new(&self.set, self.set.platform.cpus);
        for record in self.records.iter().filter(|record| record.at <= horizon) {
            counters.record(record.at, &record.kind);
        }
        counters.finish(horizon)
    }
}

/// Dubey et al. 2021, Fig. 1, with a deadline that only the strong schedule meets: T1 may use any
/// CPU, T2, T3 and T4 one each, priorities in that order.
pub fn fig_1() -> TaskSet {
    let entries = [
        ("T1", 31, 100, "0-2"),
        ("T2", 31, 100, "1"),
        ("T3", 31, 100, "0"),
        ("T4", 31, 100, "2"),
    ];
    let mut set = tasks("Dubey et al. 2021, Fig. 1", 3, &entries);
    for (index, task) in set.tasks.iter_mut().enumerate() {
        task.priority = Priority::new(index as u32 + 1);
    }
    set.tasks[2].deadline = Span::from_ms(50);
    set
}

/// The schedule without shifts: T3 waits for the completion of T1, and is late.
pub fn fig_1_weak() -> RunScript {
    let mut script = RunScript::of(fig_1());
    script.at(0).release("T1").release("T2").release("T4");
    script.run(0, "T1").run(1, "T2").run(2, "T4");
    script.at(1).release("T3");
    script.at(31).complete("T1").complete("T2").complete("T4");
    script.run(0, "T3").run(1, "").run(2, "");
    script.at(62).complete("T3").run(0, "");
    script
}

/// The strong schedule: T1 shifts to CPU 2 in place of T4, and T3 runs at once.
pub fn fig_1_strong() -> RunScript {
    let mut script = RunScript::of(fig_1());
    script.at(0).release("T1").release("T2").release("T4");
    script.run(0, "T1").run(1, "T2").run(2, "T4");
    script.at(1).release("T3").run(0, "T3").run(2, "T1");
    script
        .at(31)
        .complete("T1")
        .complete("T2")
        .run(2, "T4")
        .run(1, "");
    script.at(32).complete("T3").run(0, "");
    script.at(61).complete("T4").run(2, "");
    script
}

/// A busy run of many tasks, from a small earliest-deadline-first scheduler on a grid of 100 us, with occasional
/// overruns.
pub fn crowd(task_count: usize, cpus: usize, horizon_ms: u64) -> RunScript {
    let names: Vec<String> = (0..task_count)
        .map(|index| format!("worker-{index:02}"))
        .collect();
    let (all, half) = (format!("0-{}", cpus - 1), format!("0-{}", cpus / 2 - 1));
    let entry = |(index, name): (usize, &'_ String)| {
        let period = [10, 20, 25, 40, 50][index % 5];
        let cost =
            (period * cpus as u64 * 4 / 3 / task_count as u64).max(1) + (index as u64 % 3) / 2;
        (
            name.clone(),
            cost,
            period,
            if index.is_multiple_of(4) { &half } else { &all },
        )
    };
    let entries: Vec<_> = names.iter().enumerate().map(entry).collect();
    let entries: Vec<Entry<'_>> = entries
        .iter()
        .map(|(name, cost, period, list)| (name.as_str(), *cost, *period, list.as_str()))
        .collect();
    let mut script = RunScript::of(tasks("crowd", cpus, &entries));
    let mut left = vec![BTreeMap::new(); task_count];
    for tick in 0..horizon_ms * 10 {
        script.at_ns(tick * 100_000);
        crowd_works(&mut script, &names, &mut left);
        crowd_arrives(&mut script, &names, &mut left, tick);
        crowd_is_placed(&mut script, &names);
    }
    script
}

/// Per task, the remaining ticks of work of each pending job.
type Left = Vec<BTreeMap<u64, u64>>;

fn crowd_works(script: &mut RunScript, names: &[String], left: &mut Left) {
    for cpu in 0..script.running.len() {
        let Some(job) = script.running[cpu] else {
            continue;
        };
        let work = left[job.task.index()].get_mut(&job.number).unwrap();
        *work -= 1;
        if *work == 0 {
            left[job.task.index()].remove(&job.number);
            script.complete(&names[job.task.index()]);
        }
    }
}

fn crowd_arrives(script: &mut RunScript, names: &[String], left: &mut Left, tick: u64) {
    for (index, name) in names.iter().enumerate() {
        let task = &script.set.tasks[index];
        let (period, cost) = (task.period.as_ns() / 100_000, task.cost.as_ns() / 100_000);
        if !(tick + 7 * index as u64).is_multiple_of(period) {
            continue;
        }
        script.release(name);
        let number = script.released[index];
        let share = [6, 8, 7, 9, 5, 10, 14][(number as usize * 5 + index) % 7];
        left[index].insert(number, (cost * share / 10).max(1));
    }
}

fn crowd_is_placed(script: &mut RunScript, names: &[String]) {
    let first_due = |index: usize| Some((*script.pending[index].values().next()?, index));
    let mut ready: Vec<(Instant, usize)> = (0..names.len()).filter_map(first_due).collect();
    ready.sort_unstable();
    let mut next: Vec<Option<usize>> = vec![None; script.running.len()];
    for (_, index) in ready {
        let is_it = |job: &Option<JobId>| job.is_some_and(|job| job.task.index() == index);
        let now = script.running.iter().position(is_it);
        let affinity = script.set.tasks[index].affinity;
        let free = affinity
            .cpus()
            .iter()
            .map(CpuId::index)
            .filter(|&cpu| next[cpu].is_none());
        let free: Vec<usize> = free.collect();
        let place = now
            .filter(|cpu| free.contains(cpu))
            .or(free.first().copied());
        if let Some(cpu) = place {
            next[cpu] = Some(index);
        }
    }
    for (cpu, task) in next.into_iter().enumerate() {
        let to = task.map(|index| script.current(TaskId::from_index(index)));
        if to != script.running[cpu] {
            script.run(cpu, task.map_or("", |index| &names[index]));
        }
    }
}

/// A run with one of each element of a chart: suspension, throttling, a late successor, background work, a CPU
/// that goes offline, a dropped job, an unfinished one. To 50 ms.
pub fn everything() -> RunScript {
    let log = "<b>&\"log'";
    let entries = [
        ("sensor", 2, 10, "0"),
        ("filter", 4, 20, "0-1"),
        (log, 3, 10, "1"),
        ("planner", 12, 40, "0-1"),
    ];
    let mut script = RunScript::of(tasks("one of everything </script>", 2, &entries));
    let cpu = CpuId::from_index(1);
    script
        .at(0)
        .release("sensor")
        .release("filter")
        .release(log)
        .release("planner");
    script.run(0, "sensor").run(1, log);
    script.at(2).complete("sensor").run(0, "filter");
    script.at(3).complete(log).run(1, "planner");
    script
        .at(4)
        .stop("filter", NotReadyReason::Suspended)
        .run(0, "planner")
        .run(1, "");
    script.at(7).wake("filter").run(1, "filter");
    script.at(9).complete("filter").run(1, "");
    script
        .at(10)
        .release("sensor")
        .release(log)
        .run(0, "sensor")
        .run(1, log);
    script.at(12).complete("sensor").run(0, "planner");
    script
        .at(13)
        .stop(log, NotReadyReason::Throttled)
        .run(1, "");
    script
        .at(20)
        .release("sensor")
        .release("filter")
        .release(log);
    script.run(0, "sensor").run(1, "filter");
    script
        .at(22)
        .complete("sensor")
        .run(0, "planner")
        .wake(log)
        .run(1, log);
    script.at(24).complete(log).run(1, log);
    script.at(27).complete(log).run(1, "filter");
    script
        .at(28)
        .complete("planner")
        .complete("filter")
        .run(0, "")
        .run(1, "");
    script.record(RecordKind::BackgroundStarted { cpu });
    script
        .at(30)
        .release("sensor")
        .release(log)
        .run(0, "sensor");
    script
        .at(31)
        .record(RecordKind::BackgroundEnded { cpu })
        .run(1, log);
    script.at(32).complete("sensor").run(0, "").run(1, "");
    script.record(RecordKind::CpuOffline { cpu });
    script
        .at(36)
        .record(RecordKind::CpuOnline { cpu })
        .run(1, log);
    script.at(38).complete(log).run(1, "");
    script
        .at(40)
        .release("sensor")
        .release("filter")
        .release(log)
        .release("planner");
    script.run(0, "sensor").run(1, "planner");
    let (planner, reason) = (
        script.id("planner"),
        "no partition has room <for it>".into(),
    );
    script
        .at(41)
        .record(RecordKind::Refused { action: 0, reason });
    script.at(42).complete("sensor").run(0, "filter");
    script
        .at(43)
        .run(1, "")
        .record(RecordKind::Left { task: planner });
    script.at(46).complete("filter").run(0, "");
    script
}
