//! Durations of the calls of a whole scheduler: each thread is a CPU whose jobs complete at once.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use shiftwork_queue::{Ipi, Job, QUEUE_KINDS, QueueKind, Rank, ReadyQueue, Scheduler, Timer};

use crate::race::percentiles;

/// A machine whose interrupts and timers cost as little as possible.
#[derive(Default)]
struct Machine(AtomicU64);

impl Ipi for Machine {
    fn send(&self, _cpu: usize) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Timer for Machine {
    fn arm(&self, _at_ns: u64) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

const CALLS: [&str; 4] = ["complete", "switch", "add", "release of 8"];
const ROUNDS: usize = 100_000;
const BATCH: usize = 8;

type Taken = [Vec<u32>; CALLS.len()];

struct Cpu<'a> {
    scheduler: &'a Scheduler<Rank, Box<dyn ReadyQueue<Rank> + Send>>,
    machine: &'a Machine,
    cpu: usize,
    taken_ns: Taken,
}

impl Cpu<'_> {
    fn timed<R>(&mut self, name: usize, call: impl FnOnce(&Self) -> R) -> R {
        let start = Instant::now();
        let result = call(self);
        let taken = u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX);
        self.taken_ns[name].push(taken);
        result
    }

    /// Completes the job; its next one is released together with others of this CPU.
    fn round(&mut self, round: usize) {
        let job = self.timed(0, |own| own.scheduler.complete(own.cpu, own.machine));
        self.timed(1, |own| own.scheduler.switch(own.cpu));
        // Distinct times per CPU, so that no CPU handles a release of another.
        let at_ns = ((round / BATCH) << 8 | self.cpu) as u64;
        if let Some(mut job) = job {
            let rank = job.key();
            // Different periods, in proportion to the number of tasks.
            let period = 10_000 + 977 * u64::from(rank.task);
            job.set_key(Rank {
                deadline_ns: rank.deadline_ns + period,
                release_ns: rank.deadline_ns,
                ..rank
            });
            self.timed(2, |own| own.scheduler.add(job, at_ns, own.machine));
        }
        if round % BATCH == BATCH - 1 {
            self.timed(3, |own| own.scheduler.release(own.cpu, at_ns, own.machine));
        }
    }
}

fn run(kind: QueueKind, cpus: usize, tasks: usize) -> Taken {
    let scheduler = Scheduler::with(kind.build(cpus, tasks), cpus, tasks, None);
    let machine = Machine::default();
    for task in 0..tasks as u32 {
        let rank = Rank {
            deadline_ns: u64::from(task) * 31,
            release_ns: 0,
            task,
        };
        scheduler.wake(0, Job::new(rank, task), &machine);
    }
    let start = Barrier::new(cpus);
    let mut all = Taken::default();
    let run = |cpu| {
        let mut own = Cpu {
            scheduler: &scheduler,
            machine: &machine,
            cpu,
            taken_ns: CALLS.map(|_| Vec::with_capacity(ROUNDS)),
        };
        own.scheduler.switch(cpu);
        start.wait();
        (0..ROUNDS).for_each(|round| own.round(round));
        own.taken_ns
    };
    let run = &run;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cpus).map(|cpu| scope.spawn(move || run(cpu))).collect();
        for thread in threads {
            for (all, own) in all.iter_mut().zip(thread.join().unwrap()) {
                all.extend(own);
            }
        }
    });
    all
}

pub fn table(cpus: usize, wanted: impl Fn(&str) -> bool) {
    println!("\nwhole scheduler, {cpus} thread(s)");
    println!(
        "| queue | n | call | median ns | p99 | p99.9 | longest us |\n|---|---:|---|---:|---:|---:|---:|"
    );
    for kind in QUEUE_KINDS.into_iter().filter(|kind| wanted(kind.name())) {
        for tasks in [40, 400] {
            let taken = run(kind, cpus, tasks);
            for (name, taken_ns) in CALLS.iter().zip(taken) {
                println!(
                    "| {} | {tasks} | {name} | {} |",
                    kind.name(),
                    percentiles(taken_ns)
                );
            }
        }
    }
}
