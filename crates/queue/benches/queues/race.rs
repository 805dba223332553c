//! A throughput benchmark: all threads call one queue for a fixed time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustix::time::{ClockId, clock_gettime};
use shiftwork_queue::{Heap, Job, Rank, ReadyQueue};

/// The sequence of calls that each thread repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Take the most urgent job, put it back with a later deadline.
    Hold,
    /// The same, after nine checks that find nothing more urgent than the running job.
    Peek,
    /// Take eight jobs, put them back as one batch of simultaneous releases.
    Batch,
}

pub const MIXES: [Mix; 3] = [Mix::Hold, Mix::Peek, Mix::Batch];

impl Mix {
    pub fn name(self) -> &'static str {
        match self {
            Self::Hold => "take, insert",
            Self::Peek => "nine failed checks, take, insert",
            Self::Batch => "take eight, merge them",
        }
    }
}

pub struct Race<'a> {
    pub queue: &'a dyn ReadyQueue<Rank>,
    pub mix: Mix,
    pub threads: usize,
    pub jobs: usize,
}

/// Length of a run. The best run counts: other work on the machine can only slow a run down.
const RUN: Duration = Duration::from_millis(15);

/// Number of runs that count calls, and of runs that time them.
const RUNS: usize = 6;

/// Maximum number of calls that a thread times in a run.
const TIMED_MAX: usize = 1 << 18;

impl Race<'_> {
    /// Prints a line; half of the runs count calls, half time each call.
    pub fn run(&self, name: &str) {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for task in 0..self.jobs as u32 {
            self.queue
                .insert(0, Job::new(self.next(0, task, &mut random), task));
        }
        let best = (0..RUNS).map(|_| self.rate()).fold(0.0, f64::max);
        let mut taken_ns = Vec::new();
        for thread in (0..RUNS).flat_map(|_| self.all(true)) {
            taken_ns.extend(thread.taken_ns);
        }
        println!(
            "| {name} | {} | {:.2} | {} |",
            self.jobs,
            best / 1e6,
            percentiles(taken_ns),
        );
        while self.queue.take(0).is_some() {}
    }

    /// Calls per second of CPU time, of one thread among the others: time in which the machine does other
    /// work does not count, time spent on waiting for a lock does.
    fn rate(&self) -> f64 {
        let threads = self.all(false);
        let calls: u64 = threads.iter().map(|thread| thread.calls).sum();
        let cpu: Duration = threads.iter().map(|thread| thread.cpu_time).sum();
        calls as f64 / cpu.as_secs_f64()
    }

    /// The calls of each thread; their durations only if `timed`.
    fn all(&self, timed: bool) -> Vec<Done> {
        let (barrier, over) = (Barrier::new(self.threads + 1), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|cpu| {
                    let (barrier, over) = (&barrier, &over);
                    scope.spawn(move || {
                        let mut caller = Caller {
                            race: self,
                            cpu,
                            random: Pcg64Mcg::seed_from_u64(cpu as u64 + 2),
                            calls: 0,
                            taken_ns: Vec::with_capacity(if timed { TIMED_MAX } else { 0 }),
                            timed,
                        };
                        barrier.wait();
                        let before = cpu_time();
                        while !over.load(Ordering::Relaxed) {
                            caller.turn();
                        }
                        Done {
                            calls: caller.calls,
                            cpu_time: cpu_time() - before,
                            taken_ns: caller.taken_ns,
                        }
                    })
                })
                .collect();
            barrier.wait();
            std::thread::sleep(RUN);
            over.store(true, Ordering::Relaxed);
            let threads = threads.into_iter();
            threads.map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// The next job of a task: due within twice the time in which all jobs pass.
    fn next(&self, now_ns: u64, task: u32, random: &mut Pcg64Mcg) -> Rank {
        Rank {
            deadline_ns: now_ns + 1 + random.next_u64() % (2_000 * self.jobs as u64),
            release_ns: now_ns,
            task,
        }
    }
}

struct Done {
    calls: u64,
    cpu_time: Duration,
    taken_ns: Vec<u32>,
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Median, 99 %, 99.9 % in nanoseconds, and the longest in microseconds, as columns.
pub fn percentiles(mut taken_ns: Vec<u32>) -> String {
    taken_ns.sort_unstable();
    let at = |share: f64| taken_ns[((taken_ns.len() - 1) as f64 * share) as usize];
    format!(
        "{} | {} | {} | {:.1}",
        at(0.5),
        at(0.99),
        at(0.999),
        f64::from(at(1.0)) / 1e3
    )
}

struct Caller<'a> {
    race: &'a Race<'a>,
    cpu: usize,
    random: Pcg64Mcg,
    calls: u64,
    taken_ns: Vec<u32>,
    timed: bool,
}

impl Caller<'_> {
    fn turn(&mut self) {
        match self.race.mix {
            Mix::Hold => self.hold(),
            Mix::Peek => {
                for _ in 0..9 {
                    // The running job precedes all waiting ones: none precedes the first instant.
                    let running = Rank {
                        deadline_ns: 0,
                        release_ns: 0,
                        task: 0,
                    };
                    self.call(|queue, cpu| queue.take_if_before(cpu, &running));
                }
                self.hold();
            }
            Mix::Batch => self.batch(),
        }
    }

    fn hold(&mut self) {
        if let Some(mut job) = self.call(|queue, cpu| queue.take(cpu)) {
            let due_ns = job.key().deadline_ns;
            job.set_key(self.race.next(due_ns, job.task(), &mut self.random));
            self.call(|queue, cpu| queue.insert(cpu, job));
        }
    }

    fn batch(&mut self) {
        let mut batch = Heap::default();
        for _ in 0..8 {
            let Some(mut job) = self.call(|queue, cpu| queue.take(cpu)) else {
                break;
            };
            let due_ns = job.key().deadline_ns;
            job.set_key(self.race.next(due_ns, job.task(), &mut self.random));
            batch.insert(job);
        }
        self.call(|queue, cpu| queue.merge(cpu, batch));
    }

    fn call<R>(&mut self, call: impl FnOnce(&dyn ReadyQueue<Rank>, usize) -> R) -> R {
        self.calls += 1;
        if !self.timed || self.taken_ns.len() == TIMED_MAX {
            return call(self.race.queue, self.cpu);
        }
        let start = Instant::now();
        let result = call(self.race.queue, self.cpu);
        let taken = start.elapsed().as_nanos();
        self.taken_ns.push(u32::try_from(taken).unwrap_or(u32::MAX));
        result
    }
}
