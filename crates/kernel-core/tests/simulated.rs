//! A machine around the core, with exact timers, runs every job exactly as the simulator does: the
//! same jobs at every instant, including overruns and suspensions.

#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;

use shiftwork_kernel_core::{Core, TaskNumber};
use shiftwork_machine::{ReleasePattern, Step, Stretch, WorkSource};
use shiftwork_model::{
    Affinity, Arrival, CpuId, CpuSet, Instant, JobId, OnOverrun, Order, Phase, Priority,
    RandomStream, RecordKind, Recorder, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry::find;
use shiftwork_sim::{Options, Simulation};

const HORIZON: Instant = Instant::from_ns(2_000);

/// The compared part of a run: the jobs that run after each instant, and the completion of each job.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    /// Only instants at which the set of running jobs changes.
    running: BTreeMap<Instant, Vec<JobId>>,
    finished: BTreeMap<JobId, Instant>,
}

impl Run {
    /// Sets the jobs that run from `now` on; a later call for the same instant replaces them.
    fn note(&mut self, now: Instant, jobs: impl Iterator<Item = JobId>) {
        let mut jobs: Vec<JobId> = jobs.collect();
        jobs.sort_unstable();
        self.running.remove(&now);
        let before = self.running.values().next_back();
        if before.map_or(!jobs.is_empty(), |before| *before != jobs) {
            self.running.insert(now, jobs);
        }
    }
}

/// The simulator's run, from its records.
struct RunRecorder {
    on: Vec<Option<JobId>>,
    run: Run,
    throttled: usize,
}

impl Recorder for RunRecorder {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match kind {
            RecordKind::Switched { cpu, to, .. } => {
                self.on[cpu.index()] = *to;
                self.run.note(at, self.on.iter().flatten().copied());
            }
            RecordKind::Completed { job } if at < HORIZON => {
                self.run.finished.insert(*job, at);
            }
            RecordKind::BudgetSpent { .. } => self.throttled += 1,
            _ => {}
        }
    }
}

/// The thread of a task.
struct Thread {
    task: Task,
    releases: ReleasePattern,
    work: WorkSource,
    number: u64,
    remaining: Span,
    stretch: usize,
    sleeps_until: Option<Instant>,
}

impl Thread {
    fn stretches(&self) -> &[Stretch] {
        self.work.stretches()
    }

    /// Length of the suspension after the current stretch, which the job has executed; `None` if the job has
    /// completed.
    fn sleep(&self) -> Option<Span> {
        match self.stretches().get(self.stretch)?.then {
            Step::Sleep(span) => Some(span),
            Step::Lock(_) | Step::Unlock(_) | Step::Trigger(_) | Step::Complete => None,
        }
    }
}

/// A live machine whose timers are exact and whose switches take no time.
struct Machine {
    core: Core,
    threads: Vec<Thread>,
    cpus: usize,
    now: Instant,
    run: Run,
}

fn number(index: usize) -> TaskNumber {
    TaskNumber::of(TaskId::from_index(index)).unwrap()
}

impl Machine {
    fn new(set: &TaskSet, order: Order, seed: u64) -> Self {
        let cpus = set.platform.cpus;
        let mut machine = Self {
            core: Core::new(order, (1 << cpus) - 1),
            threads: Vec::new(),
            cpus,
            now: Instant::ZERO,
            run: Run::default(),
        };
        let priorities = set.priorities();
        for (id, task) in set.iter() {
            let (index, core) = (number(id.index()), &mut machine.core);
            let throttles = task.on_overrun == OnOverrun::Throttle;
            let budget = if throttles { task.cost } else { Span::ZERO };
            core.enter(index, task.affinity.cpus().words()[0], None);
            core.set_priority(index, priorities[id.index()]);
            core.follow(index);
            core.set_server(index, budget, task.period, task.deadline)
                .unwrap();
            core.wake(index, Instant::ZERO);
            machine.threads.push(Thread {
                task: task.clone(),
                releases: ReleasePattern::new(set, id, seed, Instant::ZERO),
                work: WorkSource::new(task, id, seed),
                number: 0,
                remaining: Span::ZERO,
                stretch: 0,
                sleeps_until: None,
            });
            machine.next_job(id.index());
        }
        machine.settle();
        machine
    }

    fn next_job(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        thread.number += 1;
        thread.stretch = 0;
        thread.remaining = thread.work.next_job(thread.task.cost);
        let release = thread.releases.next();
        thread.releases.advance(&thread.task, thread.task.period);
        self.core.next_job(number(index), release, self.now);
    }

    fn running(&self) -> Vec<usize> {
        let runner = |cpu| Some(self.core.runner(CpuId::from_index(cpu))?.task().index());
        (0..self.cpus).filter_map(runner).collect()
    }

    /// The next timer, end of a stretch or end of a suspension.
    fn next_instant(&mut self) -> Instant {
        let mut next = self.core.next_replenishment();
        for index in self.running() {
            let finish = self.now + self.threads[index].remaining;
            let spent = self.core.budget_end(number(index), self.now);
            next = next.min(finish).min(spent);
        }
        let sleeps = self.threads.iter().filter_map(|thread| thread.sleeps_until);
        sleeps.fold(next, Instant::min)
    }

    fn go_to(&mut self, now: Instant) {
        let ran = now.since(self.now).unwrap();
        self.now = now;
        for index in self.running() {
            self.threads[index].remaining -= ran;
            if self.threads[index].remaining.is_zero() {
                self.core.spend(number(index), ran);
                self.end_stretch(index);
            } else {
                self.core.charge(number(index), ran, now);
            }
        }
        for index in 0..self.threads.len() {
            if self.threads[index].sleeps_until == Some(now) {
                self.end_sleep(index);
            }
        }
        self.settle();
    }

    fn end_stretch(&mut self, index: usize) {
        match self.threads[index].sleep() {
            Some(sleep) => {
                self.threads[index].sleeps_until = Some(self.now + sleep);
                self.core.sleep(number(index));
            }
            None => self.finish(index),
        }
    }

    fn end_sleep(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        thread.sleeps_until = None;
        thread.stretch += 1;
        match thread.stretches().get(thread.stretch) {
            Some(stretch) => thread.remaining = stretch.run,
            None => self.finish(index),
        }
        self.core.wake(number(index), self.now);
    }

    fn finish(&mut self, index: usize) {
        let job = JobId {
            task: TaskId::from_index(index),
            number: self.threads[index].number,
        };
        self.run.finished.insert(job, self.now);
        self.next_job(index);
    }

    /// The timers that are due.
    fn settle(&mut self) {
        while self.core.next_replenishment() <= self.now {
            self.core.replenish_next(self.now);
        }
        let threads = &self.threads;
        let jobs = self.running().into_iter().map(|index| JobId {
            task: TaskId::from_index(index),
            number: threads[index].number,
        });
        self.run.note(self.now, jobs);
    }
}

/// Work of jobs that sometimes overrun, and that suspend themselves.
fn work(random: &mut RandomStream, cost: u64) -> Work {
    let mut upto = |most: u64| Span::from_ns(1 + random.below(most));
    match upto(5).as_ns() {
        1 => Work::Cost,
        2 => Work::Uniform(Span::from_ns(1), Span::from_ns(cost + cost / 2)),
        3 => Work::Trace((0..4).map(|_| upto(cost + 2)).collect()),
        4 => Work::Constant(upto(2 * cost)),
        _ => {
            let mut phases = vec![Phase::Run(upto(cost)), Phase::Sleep(upto(9))];
            if upto(2).as_ns() == 1 {
                phases.push(Phase::Run(upto(cost)));
            }
            Work::Phases(phases)
        }
    }
}

fn task_set(random: &mut RandomStream) -> TaskSet {
    let cpus = 1 + random.below(3) as usize;
    let tasks = (0..2 + random.below(6)).map(|index| {
        let mask = CpuSet::from_bits(1 + random.below((1 << cpus) - 1));
        let affinity = Affinity::new(mask).unwrap();
        let period = 4 + random.below(30);
        let cost = 1 + random.below(period / 3 + 1);
        let [span_cost, span_period] = [cost, period].map(Span::from_ns);
        let mut task = Task::periodic(&format!("t{index}"), span_cost, span_period, affinity);
        task.deadline = Span::from_ns(cost + random.below(2 * period));
        task.offset = Span::from_ns(random.below(2) * random.below(20));
        task.priority = Priority::new(1 + random.below(9) as u32);
        task.work = work(random, cost);
        if random.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        if random.below(5) == 0 {
            task.on_overrun = OnOverrun::Continue;
        }
        task
    });
    TaskSet::new("test", cpus, tasks.collect())
}

fn simulated(set: &TaskSet, policy: &str, seed: u64) -> RunRecorder {
    let entry = find(policy).unwrap();
    let options = Options {
        seed,
        horizon: HORIZON,
        overheads: None,
        reserve_server: false,
    };
    let mut listener = RunRecorder {
        on: vec![None; set.platform.cpus],
        run: Run::default(),
        throttled: 0,
    };
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(&mut listener);
    listener
}

#[test]
fn machine_around_the_core_equals_the_simulator() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        20_000
    } else {
        600
    };
    let (mut throttled, mut finished) = (0, 0);
    for seed in 1..=seeds {
        let mut random = RandomStream::new(seed, 0, 0);
        let set = task_set(&mut random);
        for (policy, order) in [
            ("strong-edf", Order::Edf),
            ("strong-fp", Order::FixedPriority),
        ] {
            let expected = simulated(&set, policy, seed);
            let mut machine = Machine::new(&set, order, seed);
            loop {
                let next = machine.next_instant();
                if next >= HORIZON {
                    break;
                }
                machine.go_to(next);
            }
            assert_eq!(machine.core.fault(), None, "{policy}, seed {seed}");
            let differs = machine.run.running.iter().zip(&expected.run.running);
            let first = differs.into_iter().find(|(found, wanted)| found != wanted);
            assert_eq!(first, None, "{policy}, seed {seed}: {:?}", set.tasks);
            assert_eq!(machine.run, expected.run, "{policy}, seed {seed}");
            throttled += expected.throttled;
            finished += expected.run.finished.len();
        }
    }
    assert!(throttled > 10 * seeds as usize && finished > 100 * seeds as usize);
}
