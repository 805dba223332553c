//! Every interleaving of few decisions: no job is lost, and the most urgent jobs are linked.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::job::Job;
use crate::mapping::Ipi;
use crate::ready::{Coarse, Published, ReadyQueue};
use crate::release::{ReleaseQueue, Timer};
use crate::scheduler::Scheduler;

/// The interrupts sent, a bit for each CPU, and the number of timers armed.
struct Machine {
    interrupted: AtomicU64,
    armed: AtomicU64,
}

impl Machine {
    fn new() -> Self {
        Self {
            interrupted: AtomicU64::new(0),
            armed: AtomicU64::new(0),
        }
    }
}

impl Ipi for Machine {
    fn send(&self, cpu: usize) {
        self.interrupted.fetch_or(1 << cpu, Ordering::AcqRel);
    }
}

impl Timer for Machine {
    fn arm(&self, _at_ns: u64) {
        self.armed.fetch_add(1, Ordering::AcqRel);
    }
}

/// Job 10 runs on one CPU, 20 on the other, 30 waits. One thread wakes `woken`, the other completes the job of
/// CPU 0.
fn wake_and_complete<Q>(woken: u64, build: fn() -> Q)
where
    Q: ReadyQueue<u64> + Send + 'static,
{
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let machine = Arc::new(Machine::new());
        let scheduler = Arc::new(Scheduler::with(build(), 2, 4, None));
        for (task, key) in [10, 20, 30].into_iter().enumerate() {
            scheduler.wake(0, Job::new(key, task as u32), &*machine);
        }
        for cpu in 0..2 {
            scheduler.switch(cpu);
        }
        machine.interrupted.store(0, Ordering::Release);
        let other = {
            let (machine, scheduler) = (Arc::clone(&machine), Arc::clone(&scheduler));
            loom::thread::spawn(move || scheduler.wake(1, Job::new(woken, 3), &*machine))
        };
        let ended = scheduler.complete(0, &*machine).map(|job| job.key());
        scheduler.switch(0);
        other.join().unwrap();
        let state = scheduler.state();
        let mut linked: Vec<_> = state
            .iter()
            .filter_map(|cpu| cpu.linked.map(|link| link.0))
            .collect();
        linked.sort_unstable();
        let mut all = vec![10, 20, 30, woken];
        all.retain(|key| Some(*key) != ended);
        all.sort_unstable();
        assert_eq!(linked, all[..2], "{ended:?} ended, {state:?}");
        let interrupted = machine.interrupted.load(Ordering::Acquire);
        for (cpu, state) in state.iter().enumerate() {
            let will_switch = interrupted >> cpu & 1 == 1;
            let follows = will_switch || state.scheduled == state.linked.map(|link| link.1);
            assert!(follows, "CPU {cpu} was not interrupted for {state:?}");
        }
        for cpu in 0..2 {
            scheduler.switch(cpu);
        }
        let rest: Vec<_> = scheduler.drain(0).map(|job| job.key()).collect();
        assert_eq!(rest, all[2..]);
    });
}

#[test]
fn models_of_a_wake_beside_a_completion() {
    for woken in [5, 15, 25, 40] {
        wake_and_complete(woken, Coarse::new);
        wake_and_complete(woken, || Published::new(4));
    }
}

/// The timer of a new heap is armed exactly once, by the first thread that adds a job; no job is lost.
#[test]
fn models_of_a_release_queue() {
    loom::model(|| {
        let machine = Arc::new(Machine::new());
        let queue = Arc::new(ReleaseQueue::new(3));
        let other = {
            let (machine, queue) = (Arc::clone(&machine), Arc::clone(&queue));
            loom::thread::spawn(move || {
                queue.add(Job::new(1_u64, 0), 7, &*machine);
                queue.add(Job::new(2, 1), 9, &*machine);
            })
        };
        queue.add(Job::new(3, 2), 7, &*machine);
        // This thread's job has armed the timer, so it may expire.
        let mut found = queue.due(7).len();
        other.join().unwrap();
        let begun = 1 + usize::from(found == 1);
        found += queue.due(7).len();
        assert_eq!(found, 2);
        let armed = machine.armed.load(Ordering::Acquire);
        assert_eq!(armed as usize, begun + 1);
        assert_eq!(queue.due(9).len(), 1);
    });
}
