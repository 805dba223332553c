//! The priority inversion of Mars Pathfinder, live: an urgent job waits for a mutex of a low one, which a job in between keeps
//! from its CPU.
//!
//! Without a protocol the urgent job waits for as long as that job takes; with one as long as the section is, as threads of
//! `SCHED_FIFO` do that share a futex with priority inheritance. Those of `SCHED_DEADLINE` wait for the job in between also
//! then: the kernel gives a holder that has a deadline of its own the parameters of the thread that waits only when it next
//! replenishes its budget.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::time::ClockId;
use shiftwork_live::{Class, set_class};
use shiftwork_model::{CpuSet, Protocol, Record, RecordKind, Span, TaskId, TaskSet};

use super::futex::InheritingMutex;
use crate::command::{on_three_cpus, run_with_trace};
use crate::deadline::work::{bind, burn, enter, now_ns, sleep_until};
use crate::long;

const fn ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

/// For how long the job in between computes, in two runs.
const BETWEEN: [Span; 2] = [ms(8), ms(24)];
/// The urgent job waits for the rest of a section of 6 ms.
const SECTION: Span = ms(6);
/// It is released 2 ms after the low one, and computes for 1 ms: with a protocol it takes about 5 ms.
const BOUNDED: Span = ms(6);

const SET: &str = r#"
[platform]
cpus = 3

[[resource]]
name = "bus"

[[task]]
name = "low"
cost = "8ms"
period = "100ms"
affinity = "0"
work = { phases = [{ lock = "bus" }, { run = "6ms" }, { unlock = "bus" }] }

[[task]]
name = "between"
cost = "30ms"
period = "100ms"
deadline = "90ms"
offset = "3ms"
affinity = "0"

[[task]]
name = "urgent"
cost = "2ms"
period = "100ms"
deadline = "80ms"
offset = "2ms"
affinity = "0"
work = { phases = [{ lock = "bus" }, { run = "1ms" }, { unlock = "bus" }] }
"#;

/// How long the urgent job takes, by how the mutex is shared and what computes in between.
pub fn priority_inversion_is_bounded_as_under_sched_fifo() -> Result<(), String> {
    crate::deadline::allow_affinities()?;
    let count = if long() { WAYS.len() } else { OFTEN };
    for &(name, is_bounded, response) in &WAYS[..count] {
        let [short, long] = BETWEEN;
        let (short, long) = (response(short)?, response(long)?);
        println!("{name}: {short} and {long}");
        let grows = long >= short + ms(15);
        let is_short = short.max(long) <= BOUNDED;
        if is_bounded != is_short || is_bounded == grows {
            return Err(format!("{name}: {short} and {long}"));
        }
    }
    Ok(())
}

type Response = fn(Span) -> Result<Span, String>;

/// With what is said of each, whether it bounds how long the urgent job waits.
const WAYS: [(&str, bool, Response); 8] = [
    ("no protocol", false, |between| run(Protocol::None, between)),
    ("inheritance", true, |between| {
        run(Protocol::Inheritance, between)
    }),
    ("SCHED_FIFO, plain", false, |between| {
        threads(become_fifo, false, between)
    }),
    ("SCHED_FIFO, inheritance", true, |between| {
        threads(become_fifo, true, between)
    }),
    ("SCHED_DEADLINE, plain", false, |between| {
        threads(become_deadline, false, between)
    }),
    ("SCHED_DEADLINE, inheritance", false, |between| {
        threads(become_deadline, true, between)
    }),
    ("ceiling", true, |between| run(Protocol::Ceiling, between)),
    ("non-preemptive", true, |between| {
        run(Protocol::NonPreemptive, between)
    }),
];

/// So many of them without `SHIFTWORK_LONG`.
const OFTEN: usize = 6;

/// In the kernel machine.
fn run(protocol: Protocol, between: Span) -> Result<Span, String> {
    let mut set: TaskSet = shiftwork_taskset::read(SET).map_err(|error| error.to_string())?;
    set.resources[0].protocol = protocol;
    set.tasks[1].cost = between;
    let (_, trace) = run_with_trace(&set, "strong-fp", 100, &on_three_cpus("kernel"))?;
    let urgent = TaskId::from_index(2);
    let of = |record: &Record| match record.kind {
        RecordKind::Released { job, .. } | RecordKind::Completed { job } => job.task == urgent,
        _ => false,
    };
    let at: Vec<_> = trace.records.iter().filter(|record| of(record)).collect();
    match at[..] {
        [released, completed] => Ok(completed.at.since(released.at).unwrap_or_default()),
        _ => Err(format!("not one job: {at:?}")),
    }
}

/// How the threads are scheduled, by how urgent: 0 is the least.
type Become = fn(usize) -> Result<(), String>;

fn become_fifo(urgency: usize) -> Result<(), String> {
    let priority = 10 + 10 * u8::try_from(urgency).unwrap_or(0);
    set_class(None, Class::Fifo(priority)).map_err(|error| error.to_string())
}

fn become_deadline(urgency: usize) -> Result<(), String> {
    enter(ms(40), ms(200 - 50 * urgency as u64), ms(200))
}

/// A mutex of the kernel, with priority inheritance or without.
struct Bus {
    plain: Mutex<()>,
    inheriting: InheritingMutex,
    inherits: bool,
}

impl Bus {
    fn lock(&self) -> Result<Option<MutexGuard<'_, ()>>, String> {
        match self.inherits {
            true => self.inheriting.lock().map(|()| None),
            false => Ok(Some(
                self.plain.lock().unwrap_or_else(PoisonError::into_inner),
            )),
        }
    }

    fn unlock(&self, guard: Option<MutexGuard<'_, ()>>) -> Result<(), String> {
        match guard {
            Some(_) => Ok(()),
            None => self.inheriting.unlock(),
        }
    }
}

/// The same three jobs as threads of the kernel's own classes, on CPU 1.
fn threads(become_urgent: Become, inherits: bool, between: Span) -> Result<Span, String> {
    let bus = Arc::new(Bus {
        plain: Mutex::new(()),
        inheriting: InheritingMutex::default(),
        inherits,
    });
    let origin_ns = now_ns(ClockId::Monotonic) + ms(50).as_ns();
    let job = |urgency: usize, offset: Span, locks: bool, run: Span| {
        let bus = Arc::clone(&bus);
        thread::spawn(move || -> Result<Span, String> {
            bind(&CpuSet::first(1), 1)?;
            become_urgent(urgency)?;
            sleep_until(origin_ns + offset.as_ns());
            if locks {
                let guard = bus.lock()?;
                burn(run);
                bus.unlock(guard)?;
            } else {
                burn(run);
            }
            let response = now_ns(ClockId::Monotonic) - origin_ns - offset.as_ns();
            Ok(Span::from_ns(response))
        })
    };
    let low = job(0, Span::ZERO, true, SECTION);
    let middle = job(1, ms(3), false, between);
    let urgent = job(2, ms(2), true, ms(1));
    let ended = |thread: thread::JoinHandle<Result<Span, String>>| {
        thread.join().map_err(|_| "a thread failed".to_owned())?
    };
    ended(low)?;
    ended(middle)?;
    ended(urgent)
}
