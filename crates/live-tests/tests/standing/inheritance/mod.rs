//! A reserved thread waits for a futex with priority inheritance: what is reserved for it serves the thread that holds it.

pub mod random;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::gettid;
use shiftwork_live::standing::Reservation;
use shiftwork_model::{CpuSet, OnOverrun, Span};

use super::periodic::now_ns;
use super::stage::{Stage, wish_of};
use super::worker::{Doing, Worker};
use crate::deadline::work::sleep_until;
use crate::faults::{compute, wait_for};
use crate::mutexes::futex::InheritingMutex;

/// The only CPU of the threads that compete, and two of them.
const ONE: u64 = 0b0010;
const TWO: u64 = 0b0110;
/// For how long a holder computes that was just about to begin.
const SECTION: Duration = Duration::from_millis(1);
/// For how long the urgent thread may wait: a section, and what it takes to begin.
const BOUND: Span = Span::from_us(1_500);
const PERIOD_NS: u64 = 10_000_000;
const ROUNDS: u64 = 40;

/// A thread that does the same again and again, until this is dropped.
struct Again {
    id: Pid,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Again {
    fn start(mut step: impl FnMut() + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel();
        let ends = Arc::<AtomicBool>::default();
        let told = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            // The receiver waits for this.
            let _ = sender.send(gettid());
            while !told.load(Ordering::SeqCst) {
                step();
            }
        });
        Self {
            id: receiver.recv().unwrap(),
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for Again {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn bind(stage: &Stage, thread: Pid, cpus: u64) -> Result<(), String> {
    let bound = stage.standing.bind(thread, &CpuSet::from_bits(cpus));
    bound.map_err(|error| error.to_string())
}

/// Within the mutex.
fn locked(mutex: &InheritingMutex, what: impl FnOnce()) {
    mutex.lock().unwrap();
    what();
    mutex.unlock().unwrap();
}

/// What the urgent thread found.
#[derive(Default)]
struct Waits {
    rounds: AtomicU64,
    longest_ns: AtomicU64,
}

/// Takes the mutex in each period, and notes how long that took.
fn urgent(mutex: Arc<InheritingMutex>, waits: Arc<Waits>) -> Again {
    let mut next_ns = now_ns();
    Again::start(move || {
        next_ns += PERIOD_NS;
        sleep_until(next_ns);
        let asked_ns = now_ns();
        locked(&mutex, || compute(Duration::from_micros(100)));
        let took_ns = now_ns() - asked_ns;
        waits.longest_ns.fetch_max(took_ns, Ordering::SeqCst);
        waits.rounds.fetch_add(1, Ordering::SeqCst);
    })
}

/// Holds the mutex for a section at a time, and computes a little in between.
fn holder(mutex: &Arc<InheritingMutex>) -> Again {
    let mutex = Arc::clone(mutex);
    Again::start(move || {
        locked(&mutex, || compute(SECTION));
        compute(Duration::from_micros(200));
    })
}

/// The most urgent: 4 ms in each 10.
fn first(of: Pid, cpus: u64) -> Reservation {
    Reservation {
        cost: Span::from_ms(4),
        period: Span::from_ns(PERIOD_NS),
        deadline: Span::from_ns(PERIOD_NS),
        ..wish_of(of, cpus)
    }
}

/// Threads that hold what the urgent one waits for, beside others, on these CPUs.
type Holders = fn(&mut Stage, &Arc<InheritingMutex>, u64) -> Result<Vec<Again>, String>;

/// Ordinary work.
fn ordinary(
    stage: &mut Stage,
    mutex: &Arc<InheritingMutex>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let holder = holder(mutex);
    bind(stage, holder.id, cpus)?;
    Ok(vec![holder])
}

/// Less urgent than a thread in between that computes all the time.
fn less_urgent(
    stage: &mut Stage,
    mutex: &Arc<InheritingMutex>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let holder = holder(mutex);
    let between = Again::start(|| compute(Duration::from_micros(100)));
    let reserved = |of: &Again, cost: u64, period: u64| Reservation {
        cost: Span::from_ms(cost),
        period: Span::from_ms(period),
        deadline: Span::from_ms(period),
        on_overrun: OnOverrun::Continue,
        ..wish_of(of.id, cpus)
    };
    let [low, middle] = [reserved(&holder, 10, 100), reserved(&between, 20, 60)];
    stage.must_admit(1, &low)?;
    stage.must_admit(2, &middle)?;
    Ok(vec![holder, between])
}

/// One that waits for its next period most of the time.
fn throttled(
    stage: &mut Stage,
    mutex: &Arc<InheritingMutex>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let holder = holder(mutex);
    let little = Reservation {
        cost: Span::from_us(300),
        period: Span::from_ms(100),
        deadline: Span::from_ms(100),
        on_overrun: OnOverrun::Throttle,
        ..wish_of(holder.id, cpus)
    };
    stage.must_admit(1, &little)?;
    Ok(vec![holder])
}

/// One that waits for another mutex itself, which ordinary work holds.
fn in_a_row(
    stage: &mut Stage,
    mutex: &Arc<InheritingMutex>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let other = Arc::<InheritingMutex>::default();
    let (outer, inner) = (Arc::clone(mutex), Arc::clone(&other));
    let middle = Again::start(move || {
        locked(&outer, || locked(&inner, || compute(SECTION / 4)));
        compute(Duration::from_micros(200));
    });
    let last = Again::start(move || locked(&other, || compute(SECTION / 2)));
    bind(stage, middle.id, cpus)?;
    bind(stage, last.id, cpus)?;
    Ok(vec![middle, last])
}

const CASES: [(&str, u64, Holders); 5] = [
    ("ordinary work", ONE, ordinary),
    ("ordinary work on two CPUs", TWO, ordinary),
    ("a less urgent thread", ONE, less_urgent),
    ("a throttled thread", ONE, throttled),
    ("two in a row", ONE, in_a_row),
];

/// However busy the CPUs are, the urgent thread waits for no longer than a section takes.
pub fn reservations_serve_the_holder_of_a_lock() -> Result<(), String> {
    for (name, cpus, holders) in CASES {
        let mut stage = Stage::load()?;
        let longest = longest_wait(&mut stage, cpus, holders)?;
        println!("{name}: {longest} at most");
        if longest > BOUND {
            return Err(format!("{name}: the urgent thread waited for {longest}"));
        }
        stage.end()?;
    }
    Ok(())
}

fn longest_wait(stage: &mut Stage, cpus: u64, holders: Holders) -> Result<Span, String> {
    let (mutex, waits) = (Arc::default(), Arc::<Waits>::default());
    let hogs: Vec<Worker> = (0..4).map(|_| Worker::start(Doing::Hogs)).collect();
    for hog in &hogs {
        bind(stage, hog.id, cpus)?;
    }
    let held = holders(stage, &mutex, cpus)?;
    let urgent = urgent(Arc::clone(&mutex), Arc::clone(&waits));
    stage.must_admit(0, &first(urgent.id, cpus))?;
    // The first rounds are those before it was admitted.
    let begins = waits.rounds.load(Ordering::SeqCst) + 2;
    wait_for("the first rounds", || {
        (waits.rounds.load(Ordering::SeqCst) >= begins).then_some(())
    })?;
    waits.longest_ns.store(0, Ordering::SeqCst);
    wait_for("all rounds", || {
        (waits.rounds.load(Ordering::SeqCst) >= begins + ROUNDS).then_some(())
    })?;
    let longest = Span::from_ns(waits.longest_ns.load(Ordering::SeqCst));
    drop((urgent, held, hogs));
    Ok(longest)
}
