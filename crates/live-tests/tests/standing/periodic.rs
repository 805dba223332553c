//! Threads with jobs that the clock releases.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{gettid, set_current_timer_slack};
use rustix::time::ClockId;

use crate::deadline::work;
use crate::faults::compute;
use crate::mutexes::futex::InheritingMutex;

/// Instant of the first release, in ns of the monotonic clock, or what the thread is to do instead.
const WAIT: u64 = 0;
const END: u64 = u64::MAX;
/// How often a thread that waits looks for jobs, in ns.
const LOOK_NS: u64 = 500_000;

/// What a thread is to do next, once.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// When the first is released, in ns of the monotonic clock.
    pub first_ns: u64,
    pub period_ns: u64,
    pub count: u64,
    /// How long each computes.
    pub run_us: u64,
    /// For how long of that it holds the mutex, from its middle on.
    pub locked_us: u64,
}

#[derive(Default)]
struct Orders {
    first_ns: AtomicU64,
    period_ns: AtomicU64,
    count: AtomicU64,
    run_us: AtomicU64,
    locked_us: AtomicU64,
}

/// A thread with periodic jobs. It ends at the latest when this is dropped.
pub struct Periodic {
    pub id: Pid,
    pub mutex: Arc<InheritingMutex>,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

impl Periodic {
    pub fn start() -> Self {
        let (orders, mutex) = (Arc::<Orders>::default(), Arc::default());
        let (sender, receiver) = mpsc::channel();
        let (heard, own) = (Arc::clone(&orders), Arc::clone(&mutex));
        let thread = thread::spawn(move || {
            // Every kernel has it.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            // The receiver waits for this.
            let _ = sender.send(gettid());
            run_jobs(&heard, &own);
        });
        Self {
            id: receiver.recv().unwrap(),
            mutex,
            orders,
            thread: Some(thread),
        }
    }

    /// To be called while it has no jobs.
    pub fn does(&self, jobs: &Jobs) {
        let orders = &self.orders;
        orders.period_ns.store(jobs.period_ns, Ordering::SeqCst);
        orders.count.store(jobs.count, Ordering::SeqCst);
        orders.run_us.store(jobs.run_us, Ordering::SeqCst);
        orders.locked_us.store(jobs.locked_us, Ordering::SeqCst);
        orders.first_ns.store(jobs.first_ns, Ordering::SeqCst);
    }

    /// Ends it after its present job.
    pub fn ends(&self) {
        self.orders.first_ns.store(END, Ordering::SeqCst);
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        self.ends();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// The monotonic clock.
pub fn now_ns() -> u64 {
    work::now_ns(ClockId::Monotonic)
}

fn run_jobs(orders: &Orders, mutex: &InheritingMutex) {
    loop {
        match orders.first_ns.load(Ordering::SeqCst) {
            END => return,
            WAIT => work::sleep_until(now_ns() + LOOK_NS),
            first => {
                for round in 0..orders.count.load(Ordering::SeqCst) {
                    if orders.first_ns.load(Ordering::SeqCst) == END {
                        return;
                    }
                    let period_ns = orders.period_ns.load(Ordering::SeqCst);
                    work::sleep_until(first + round * period_ns);
                    run_job(orders, mutex);
                }
                let set = &orders.first_ns;
                let _ = set.compare_exchange(first, WAIT, Ordering::SeqCst, Ordering::SeqCst);
            }
        }
    }
}

fn run_job(orders: &Orders, mutex: &InheritingMutex) {
    let run_us = orders.run_us.load(Ordering::SeqCst);
    let locked_us = orders.locked_us.load(Ordering::SeqCst).min(run_us);
    compute(Duration::from_micros(run_us - locked_us));
    if locked_us > 0 {
        mutex.lock().unwrap();
        compute(Duration::from_micros(locked_us));
        mutex.unlock().unwrap();
    }
}
