//! Threads as CPUs, countdowns as jobs: scheduled jobs, linked jobs, and that no job is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shiftwork_queue::ready::{Fine, Hierarchical};
use shiftwork_queue::{Ipi, Job, Rank, ReadyQueue, Scheduler, Timer};

/// The number of repetitions; more if `SHIFTWORK_LONG` is set.
fn factor() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 40,
        None => 1,
    }
}

const NO_CPU: usize = usize::MAX;

/// Pending timers and interrupts, which CPUs poll.
struct Machine {
    now: AtomicU64,
    timers: Mutex<BinaryHeap<Reverse<u64>>>,
    interrupts: Box<[AtomicBool]>,
}

impl Timer for Machine {
    fn arm(&self, at_ns: u64) {
        self.timers.lock().unwrap().push(Reverse(at_ns));
    }
}

impl Ipi for Machine {
    fn send(&self, cpu: usize) {
        self.interrupts[cpu].store(true, SeqCst);
    }
}

impl Machine {
    fn due(&self) -> Option<u64> {
        let mut timers = self.timers.lock().unwrap();
        let first = timers.peek()?.0;
        if first > self.now.load(SeqCst) {
            return None;
        }
        timers.pop().map(|Reverse(at)| at)
    }
}

/// A task; periods and costs are in turns of a CPU.
struct Task {
    period: u64,
    cost: u64,
    /// The CPU that runs it now.
    runs_on: AtomicUsize,
    /// Remaining turns of its job, and the number of jobs left.
    left: AtomicU64,
    jobs: AtomicU64,
}

/// A barrier that panics instead of waiting for a thread that failed.
struct TurnBarrier {
    threads: usize,
    arrived: AtomicUsize,
    failed: AtomicBool,
}

impl TurnBarrier {
    fn wait(&self) {
        let number = self.arrived.fetch_add(1, SeqCst);
        let complete = (number / self.threads + 1) * self.threads;
        while self.arrived.load(SeqCst) < complete {
            assert!(!self.failed.load(SeqCst), "another thread failed");
            std::thread::yield_now();
        }
    }
}

/// Marks the barrier as failed when its thread panics.
struct FailureFlag<'a>(&'a TurnBarrier);

impl Drop for FailureFlag<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, SeqCst);
        }
    }
}

struct Run<'a, Q> {
    what: String,
    scheduler: &'a Scheduler<Rank, Q>,
    machine: Machine,
    tasks: Vec<Task>,
    barrier: TurnBarrier,
    switches: AtomicU64,
    cpus: usize,
    jobs_each: u64,
}

const TURNS_BETWEEN_CHECKS: u64 = 200;

impl<Q: ReadyQueue<Rank>> Run<'_, Q> {
    /// The loop of one thread, until all jobs are completed.
    fn cpu(&self, cpu: usize, mut random: Pcg64Mcg) {
        let _flag = FailureFlag(&self.barrier);
        let mut runs = None;
        for round in 0.. {
            assert!(round < 100_000, "{}: a job was lost", self.what);
            for _ in 0..TURNS_BETWEEN_CHECKS {
                runs = self.turn(cpu, runs);
                if random.next_u32().is_multiple_of(64) {
                    std::thread::yield_now();
                }
            }
            self.barrier.wait();
            if cpu == 0 {
                self.check_mapping();
            }
            // No thread changes anything between the two barriers, so that all get the same result.
            let over = self.tasks.iter().all(|task| task.jobs.load(SeqCst) == 0);
            self.barrier.wait();
            if over {
                return;
            }
        }
    }

    /// Handles interrupts, then executes one turn of the running job.
    fn turn(&self, cpu: usize, mut runs: Option<usize>) -> Option<usize> {
        let releases_here = self.scheduler.dedicated().is_none_or(|only| only == cpu);
        if releases_here {
            self.machine.now.fetch_add(1, SeqCst);
            if let Some(at) = self.machine.due() {
                self.scheduler.release(cpu, at, &self.machine);
            }
        }
        if self.machine.interrupts[cpu].swap(false, SeqCst) {
            runs = self.switch(cpu, runs);
        }
        let task = runs?;
        let owner = self.tasks[task].runs_on.load(SeqCst);
        assert_eq!(owner, cpu, "{}: task {task} runs twice", self.what);
        if self.tasks[task].left.fetch_sub(1, SeqCst) > 1 {
            return runs;
        }
        self.complete(cpu, task);
        self.switch(cpu, None)
    }

    fn switch(&self, cpu: usize, runs: Option<usize>) -> Option<usize> {
        self.stop(cpu, runs);
        let switch = self.scheduler.switch(cpu);
        assert_eq!(switch.from.map(|task| task as usize), runs, "{}", self.what);
        self.switches
            .fetch_add(u64::from(switch.from != switch.to), SeqCst);
        let to = switch.to.map(|task| task as usize);
        if let Some(task) = to {
            let before = self.tasks[task].runs_on.swap(cpu, SeqCst);
            assert_eq!(before, NO_CPU, "{}: task {task} runs twice", self.what);
        }
        to
    }

    fn stop(&self, cpu: usize, runs: Option<usize>) {
        if let Some(task) = runs {
            let before = self.tasks[task].runs_on.swap(NO_CPU, SeqCst);
            assert_eq!(
                before, cpu,
                "{}: task {task} runs on another CPU",
                self.what
            );
        }
    }

    fn complete(&self, cpu: usize, task: usize) {
        self.stop(cpu, Some(task));
        let mut job = self.scheduler.complete(cpu, &self.machine).unwrap();
        assert_eq!(job.task() as usize, task, "{}", self.what);
        let Task { period, cost, .. } = self.tasks[task];
        self.tasks[task].left.store(cost, SeqCst);
        if self.tasks[task].jobs.fetch_sub(1, SeqCst) > 1 {
            let release_ns = job.key().release_ns + period;
            job.set_key(Rank {
                deadline_ns: release_ns + period,
                release_ns,
                ..job.key()
            });
            self.scheduler.add(job, release_ns, &self.machine);
        }
    }

    /// Checks the mapping while no other thread makes calls: the most urgent jobs are linked, and every CPU whose
    /// scheduled job differs has a pending interrupt.
    fn check_mapping(&self) {
        let state = self.scheduler.state();
        let waiting: Vec<_> = self.scheduler.drain(0).collect();
        let linked = state.iter().filter_map(|cpu| cpu.linked.map(|link| link.0));
        let mut linked: Vec<_> = linked.collect();
        linked.sort_unstable();
        let leaving = state
            .iter()
            .filter_map(|cpu| cpu.leaving.map(|link| link.0));
        let mut all: Vec<_> = linked.iter().copied().chain(leaving).collect();
        all.extend(waiting.iter().map(Job::key));
        all.sort_unstable();
        all.truncate(self.cpus - usize::from(self.scheduler.dedicated().is_some()));
        assert_eq!(linked, all, "{}: {state:?}", self.what);
        for (cpu, state) in state.iter().enumerate() {
            let linked = state.linked.map(|link| link.1);
            let follows = self.machine.interrupts[cpu].load(SeqCst) || state.scheduled == linked;
            assert!(
                follows,
                "{}: CPU {cpu} was not interrupted for {state:?}",
                self.what
            );
        }
        // Inserting them again changes no link.
        for job in waiting {
            self.scheduler
                .wake(self.scheduler.dedicated().unwrap_or(0), job, &self.machine);
        }
        assert_eq!(self.scheduler.state(), state, "{}", self.what);
    }
}

fn live<Q: ReadyQueue<Rank> + Send>(
    what: &str,
    seed: u64,
    cpus: usize,
    build: impl Fn(usize, usize) -> Scheduler<Rank, Q>,
) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut draw = |from: u64, to: u64| from + random.next_u64() % (to - from + 1);
    let tasks = 3 * cpus;
    let scheduler = build(cpus, tasks);
    let jobs_each = 30;
    let task = |_| {
        // Periods from few values, so that releases coincide; load around 80 %.
        let cost = draw(1, 12);
        Task {
            period: (cost * 4).next_multiple_of(16),
            cost,
            runs_on: AtomicUsize::new(NO_CPU),
            left: AtomicU64::new(cost),
            jobs: AtomicU64::new(jobs_each),
        }
    };
    let world = Run {
        what: format!("{what}, seed {seed}, {cpus} CPUs"),
        scheduler: &scheduler,
        machine: Machine {
            now: AtomicU64::new(0),
            timers: Mutex::new(BinaryHeap::new()),
            interrupts: (0..cpus).map(|_| AtomicBool::new(false)).collect(),
        },
        tasks: (0..tasks).map(task).collect(),
        barrier: TurnBarrier {
            threads: cpus,
            arrived: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        },
        switches: AtomicU64::new(0),
        cpus,
        jobs_each,
    };
    for (number, task) in world.tasks.iter().enumerate() {
        let rank = Rank {
            deadline_ns: task.period,
            release_ns: 0,
            task: number as u32,
        };
        scheduler.add(Job::new(rank, number as u32), 0, &world.machine);
    }
    std::thread::scope(|scope| {
        for cpu in 0..cpus {
            let world = &world;
            let random = Pcg64Mcg::seed_from_u64(seed << 8 | cpu as u64);
            scope.spawn(move || world.cpu(cpu, random));
        }
    });
    let switches = world.switches.load(SeqCst);
    assert!(switches >= tasks as u64 * world.jobs_each, "{}", world.what);
    assert_eq!(scheduler.drain(0).count(), 0, "{}", world.what);
}

#[test]
fn cem_links_the_most_urgent_jobs_and_runs_each_on_one_cpu() {
    for seed in 1..=10 * factor() {
        live("CEm", seed, 1 + (seed % 4) as usize, Scheduler::cem);
    }
}

#[test]
fn ce1_and_fe1_link_the_most_urgent_jobs_with_a_dedicated_cpu() {
    for seed in 1..=10 * factor() {
        let cpus = 2 + (seed % 3) as usize;
        live("CE1", seed, cpus, Scheduler::ce1);
        live("FE1", seed, cpus, Scheduler::fe1);
        live("PE1", seed, cpus, Scheduler::pe1);
    }
}

#[test]
fn every_queue_kind_links_the_most_urgent_jobs() {
    for seed in 1..=6 * factor() {
        let cpus = 1 + (seed % 4) as usize;
        live("HEm", seed, cpus, |cpus, tasks| {
            Scheduler::with(Hierarchical::new(cpus), cpus, tasks, None)
        });
        live("FEm", seed, cpus, |cpus, tasks| {
            Scheduler::with(Fine::new(tasks), cpus, tasks, None)
        });
    }
}

/// Counts interrupts and timers.
#[derive(Default)]
struct Counting {
    interrupts: AtomicU64,
    armed: AtomicU64,
}

impl Ipi for Counting {
    fn send(&self, _cpu: usize) {
        self.interrupts.fetch_add(1, SeqCst);
    }
}

impl Timer for Counting {
    fn arm(&self, _at_ns: u64) {
        self.armed.fetch_add(1, SeqCst);
    }
}

#[test]
fn decision_revised_before_the_switch_causes_no_switch() {
    let (scheduler, machine) = (Scheduler::cem(1, 3), Counting::default());
    let switched = || {
        let switch = scheduler.switch(0);
        (switch.from, switch.to)
    };
    scheduler.wake(0, Job::new(50, 0), &machine);
    assert_eq!(switched(), (None, Some(0)));
    // Task 1 is to preempt task 0, whose job completes before its CPU switches.
    scheduler.wake(0, Job::new(40, 1), &machine);
    assert_eq!(scheduler.state()[0].leaving, Some((50, 0)));
    assert_eq!(
        scheduler.complete(0, &machine).map(|job| job.task()),
        Some(0)
    );
    assert_eq!(switched(), (None, Some(1)));
    // Task 2 is to preempt task 1, but an even more urgent task displaces it; task 1 still waits.
    scheduler.wake(0, Job::new(30, 2), &machine);
    scheduler.wake(0, Job::new(20, 0), &machine);
    assert_eq!(switched(), (Some(1), Some(0)));
    assert!(scheduler.complete(0, &machine).is_some());
    assert_eq!(switched(), (None, Some(2)));
    assert_eq!(machine.interrupts.load(SeqCst), 5);
}

#[test]
fn job_that_is_still_scheduled_is_linked_to_its_cpu_again() {
    let (scheduler, machine) = (Scheduler::cem(2, 4), Counting::default());
    scheduler.wake(0, Job::new(10, 0), &machine);
    scheduler.wake(0, Job::new(50, 1), &machine);
    let running = [0, 1].map(|cpu| scheduler.switch(cpu).to);
    assert_eq!(running, [Some(0), Some(1)]);
    // Task 2 is to preempt task 1, but then the job of task 0 completes: task 1 stays, and task 2 gets the CPU of 0.
    scheduler.wake(0, Job::new(20, 2), &machine);
    assert_eq!(scheduler.state()[1].leaving, Some((50, 1)));
    assert!(scheduler.complete(0, &machine).is_some());
    let linked: Vec<_> = scheduler.state().iter().map(|cpu| cpu.linked).collect();
    assert_eq!(linked, [Some((20, 2)), Some((50, 1))]);
    let switch = scheduler.switch(1);
    assert_eq!((switch.from, switch.to), (Some(1), Some(1)));
    assert_eq!(scheduler.switch(0).to, Some(2));
}

#[test]
fn releases_of_one_time_need_one_timer_and_preempt_together() {
    let (scheduler, machine) = (Scheduler::ce1(3, 5), Counting::default());
    for task in 0..5_u32 {
        scheduler.add(Job::new(u64::from(10 - task), task), 7, &machine);
    }
    assert_eq!(machine.armed.load(SeqCst), 1);
    scheduler.release(2, 7, &machine);
    let mut running = [0, 1].map(|cpu| scheduler.switch(cpu).to);
    running.sort_unstable();
    assert_eq!(running, [Some(3), Some(4)]);
    assert_eq!(scheduler.switch(2).to, None);
    assert_eq!(machine.interrupts.load(SeqCst), 2);
}

#[test]
#[should_panic(expected = "CPU 0 handles a release, to which CPU Some(2) is dedicated")]
fn release_on_another_than_the_dedicated_cpu_panics() {
    Scheduler::<u64, _>::ce1(3, 1).release(0, 7, &Counting::default());
}
