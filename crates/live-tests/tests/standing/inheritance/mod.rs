//! A reserved thread waits for a futex with priority inheritance: what is reserved for it serves the thread that holds it.

pub mod asleep;
pub mod random;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use shiftwork_live::standing::Reservation;
use shiftwork_model::{CpuSet, OnOverrun, Span};

use super::periodic::now_ns;
use super::stage::{Stage, wish_of};
use super::worker::{Doing, Worker};
use crate::deadline::work::sleep_until;
use crate::faults::{compute, wait_for};
use crate::kernel::is_realtime;
use crate::mutexes::futex::InheritingMutex;

/// The only CPU of the threads that compete, and two of them.
const ONE: u64 = 0b0010;
const TWO: u64 = 0b0110;
/// For how long a holder computes that was just about to begin.
const SECTION: Duration = Duration::from_millis(1);
/// For how long the urgent thread may wait beyond the time that threads compute in their sections: what it takes to begin.
const BOUND: Span = Span::from_us(500);
/// The same with `PREEMPT_RT`, where a thread is the scheduler's timer.
const BOUND_RT: Span = Span::from_us(1_500);
const PERIOD_NS: u64 = 10_000_000;
/// So much later each time.
const LATER_NS: u64 = 230_000;
const ROUNDS: u64 = 40;
/// How many tasks a case has at most.
const TASKS: usize = 3;

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

/// What threads that hold mutexes share with the urgent one.
#[derive(Default)]
struct Sections {
    /// The outer one: it is what the urgent thread waits for.
    mutex: InheritingMutex,
    /// How much processor time all sections have used until now. In the emulator time passes on a CPU while another one is
    /// executed, so a section may take longer than its instructions; what counts is that nothing else runs meanwhile.
    used_ns: AtomicU64,
}

impl Sections {
    /// Computes as part of a section.
    fn compute(&self, span: Duration) {
        let begin_ns = processor_ns();
        let mut last_ns = begin_ns;
        while last_ns - begin_ns < span.as_nanos() as u64 {
            // Not more of it: each pause takes a turn of every other CPU that computes.
            std::hint::spin_loop();
            let now_ns = processor_ns();
            self.used_ns.fetch_add(now_ns - last_ns, Ordering::SeqCst);
            last_ns = now_ns;
        }
    }
}

/// What the calling thread has computed.
fn processor_ns() -> u64 {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime))
        .unwrap()
        .as_nanos() as u64
}

/// What the urgent thread found.
#[derive(Default)]
struct Waits {
    rounds: AtomicU64,
    /// The longest, and how much of one was beyond what sections computed, at most.
    longest_ns: AtomicU64,
    beyond_ns: AtomicU64,
}

/// Requests the mutex in each period, a little later each time, so that the holder is anywhere in its section, and notes how long it waits.
fn urgent(sections: Arc<Sections>, waits: Arc<Waits>) -> Again {
    let mut next_ns = now_ns();
    Again::start(move || {
        next_ns += PERIOD_NS;
        let round = waits.rounds.load(Ordering::SeqCst);
        sleep_until(next_ns + round * LATER_NS % PERIOD_NS);
        let used_before_ns = sections.used_ns.load(Ordering::SeqCst);
        let asked_ns = now_ns();
        locked(&sections.mutex, || {
            let waited_ns = now_ns() - asked_ns;
            let used_ns = sections.used_ns.load(Ordering::SeqCst) - used_before_ns;
            waits.longest_ns.fetch_max(waited_ns, Ordering::SeqCst);
            let beyond_ns = waited_ns.saturating_sub(used_ns);
            waits.beyond_ns.fetch_max(beyond_ns, Ordering::SeqCst);
            compute(Duration::from_micros(100));
        });
        waits.rounds.fetch_add(1, Ordering::SeqCst);
    })
}

/// Holds the mutex for a section at a time, and computes a little in between.
fn holder(sections: &Arc<Sections>) -> Again {
    let sections = Arc::clone(sections);
    Again::start(move || {
        locked(&sections.mutex, || sections.compute(SECTION));
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

/// Threads that hold what the urgent one waits for, beside others: as tasks from this number on, on these CPUs.
type Holders = fn(&mut Stage, usize, &Arc<Sections>, u64) -> Result<Vec<Again>, String>;

/// Ordinary work.
fn ordinary(
    stage: &mut Stage,
    _: usize,
    sections: &Arc<Sections>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let holder = holder(sections);
    bind(stage, holder.id, cpus)?;
    Ok(vec![holder])
}

/// Less urgent than a thread in between that computes all the time.
fn less_urgent(
    stage: &mut Stage,
    task: usize,
    sections: &Arc<Sections>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let holder = holder(sections);
    let between = Again::start(|| compute(Duration::from_micros(100)));
    let reserved = |of: &Again, cost: u64, period: u64| Reservation {
        cost: Span::from_ms(cost),
        period: Span::from_ms(period),
        deadline: Span::from_ms(period),
        on_overrun: OnOverrun::Continue,
        ..wish_of(of.id, cpus)
    };
    let [low, middle] = [reserved(&holder, 10, 100), reserved(&between, 20, 60)];
    stage.must_admit(task, &low)?;
    stage.must_admit(task + 1, &middle)?;
    Ok(vec![holder, between])
}

/// One that waits for its next period most of the time.
fn throttled(
    stage: &mut Stage,
    task: usize,
    sections: &Arc<Sections>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let holder = holder(sections);
    let little = Reservation {
        cost: Span::from_us(300),
        period: Span::from_ms(100),
        deadline: Span::from_ms(100),
        on_overrun: OnOverrun::Throttle,
        ..wish_of(holder.id, cpus)
    };
    stage.must_admit(task, &little)?;
    Ok(vec![holder])
}

/// One that waits for another mutex itself, which ordinary work holds.
fn in_a_row(
    stage: &mut Stage,
    _: usize,
    sections: &Arc<Sections>,
    cpus: u64,
) -> Result<Vec<Again>, String> {
    let other = Arc::<InheritingMutex>::default();
    let (outer, inner) = (Arc::clone(sections), Arc::clone(&other));
    let middle = Again::start(move || {
        locked(&outer.mutex, || {
            locked(&inner, || outer.compute(SECTION / 4));
        });
        compute(Duration::from_micros(200));
    });
    let sections = Arc::clone(sections);
    let last = Again::start(move || locked(&other, || sections.compute(SECTION / 2)));
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

/// However busy the CPUs are, the urgent thread waits for no longer than the sections compute that it waits for.
pub fn reservations_serve_the_holder_of_a_lock() -> Result<(), String> {
    let bound = match is_realtime()? {
        true => BOUND_RT,
        false => BOUND,
    };
    let mut stage = Stage::load()?;
    for (case, (name, cpus, holders)) in CASES.into_iter().enumerate() {
        let waits = longest_waits(&mut stage, case * TASKS, cpus, holders)?;
        let [longest, beyond] = [&waits.longest_ns, &waits.beyond_ns]
            .map(|found| Span::from_ns(found.load(Ordering::SeqCst)));
        println!("{name}: {longest} at most, {beyond} beyond the sections");
        if beyond > bound {
            return Err(format!(
                "{name}: beyond the sections the urgent thread waited for {beyond}"
            ));
        }
    }
    stage.end()
}

/// Its tasks have numbers from this one on.
fn longest_waits(
    stage: &mut Stage,
    task: usize,
    cpus: u64,
    holders: Holders,
) -> Result<Arc<Waits>, String> {
    let (sections, waits) = (Arc::default(), Arc::<Waits>::default());
    let hogs: Vec<Worker> = (0..4).map(|_| Worker::start(Doing::Hogs)).collect();
    for hog in &hogs {
        bind(stage, hog.id, cpus)?;
    }
    let held = holders(stage, task + 1, &sections, cpus)?;
    let urgent = urgent(Arc::clone(&sections), Arc::clone(&waits));
    stage.must_admit(task, &first(urgent.id, cpus))?;
    // The first rounds are those before it was admitted.
    let begins = waits.rounds.load(Ordering::SeqCst) + 2;
    wait_for("the first rounds", || {
        (waits.rounds.load(Ordering::SeqCst) >= begins).then_some(())
    })?;
    for found in [&waits.longest_ns, &waits.beyond_ns] {
        found.store(0, Ordering::SeqCst);
    }
    // What holds the mutex may wait for its next period for a while.
    wait_for("all rounds, and a section to be waited for", || {
        let longest = Span::from_ns(waits.longest_ns.load(Ordering::SeqCst));
        let are_done = waits.rounds.load(Ordering::SeqCst) >= begins + ROUNDS;
        (are_done && longest >= Span::from_us(500)).then_some(())
    })?;
    drop((urgent, held, hogs));
    Ok(waits)
}
