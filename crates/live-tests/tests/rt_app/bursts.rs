//! When threads compute and for how long, as the kernel saw it and as records of a run say it.

use std::collections::BTreeMap;

use shiftwork_model::{Record, RecordKind};
use shiftwork_observe::SwitchedOut;

use crate::ftrace::Switch;

/// A shorter wait does not end a burst: a thread may wait for a lock of the kernel.
const GAP_NS: u64 = 500_000;
/// Shorter bursts do not count: of threads that start or end, and of those that only wake others.
const SHORT_NS: u64 = 800_000;

/// A thread computes, perhaps preempted in between, until it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// When it begins, from the beginning of the first burst of all threads.
    pub begin_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// For how long it has a CPU.
    pub computed_ns: u64,
}

/// Bursts of each thread, by the place of the thread in its file.
pub type Bursts = BTreeMap<usize, Vec<Burst>>;

/// What a thread is doing.
#[derive(Default)]
struct Thread {
    bursts: Vec<Burst>,
    /// Since when it has a CPU.
    since_ns: Option<u64>,
    /// Whether the last burst goes on.
    is_open: bool,
}

impl Thread {
    fn runs(&mut self, at_ns: u64) {
        let goes_on =
            self.is_open || (self.bursts.last()).is_some_and(|last| at_ns - last.end_ns < GAP_NS);
        if !goes_on {
            self.bursts.push(Burst {
                begin_ns: at_ns,
                end_ns: at_ns,
                computed_ns: 0,
            });
        }
        self.is_open = true;
        self.since_ns = Some(at_ns);
    }

    /// It runs no more; if it `waits` its burst is over.
    fn stops(&mut self, at_ns: u64, waits: bool) {
        if let (Some(since), Some(burst)) = (self.since_ns.take(), self.bursts.last_mut()) {
            burst.computed_ns += at_ns - since;
            burst.end_ns = at_ns;
        }
        self.is_open &= !waits;
    }
}

/// From the first of all, without those that do not count and one that is not over.
fn finish(threads: BTreeMap<usize, Thread>) -> Bursts {
    let mut bursts: Bursts = BTreeMap::new();
    for (place, mut thread) in threads {
        if thread.is_open {
            thread.bursts.pop();
        }
        thread.bursts.retain(|burst| burst.computed_ns >= SHORT_NS);
        bursts.insert(place, thread.bursts);
    }
    let begins = bursts.values().flatten().map(|burst| burst.begin_ns);
    let first = begins.min().unwrap_or(0);
    for burst in bursts.values_mut().flatten() {
        burst.begin_ns -= first;
        burst.end_ns -= first;
    }
    bursts
}

/// Of a trace of the kernel, in which the threads have these places.
pub fn of_trace(switches: &[Switch], places: &BTreeMap<u32, usize>) -> Bursts {
    let mut threads: BTreeMap<usize, Thread> = BTreeMap::new();
    for switch in switches {
        if let Some(place) = places.get(&switch.from) {
            let waits = matches!(switch.out, SwitchedOut::Asleep | SwitchedOut::Ended);
            let thread = threads.entry(*place).or_default();
            thread.stops(switch.at_ns, waits);
        }
        if let Some(place) = places.get(&switch.to) {
            threads.entry(*place).or_default().runs(switch.at_ns);
        }
    }
    finish(threads)
}

/// Of the records of a run.
pub fn of_records(records: &[Record]) -> Bursts {
    let mut threads: BTreeMap<usize, Thread> = BTreeMap::new();
    for record in records {
        let at_ns = record.at.as_ns();
        match &record.kind {
            RecordKind::Switched { from, to, .. } => {
                if let Some(job) = from {
                    let thread = threads.entry(job.task.index()).or_default();
                    thread.stops(at_ns, false);
                }
                if let Some(job) = to {
                    threads.entry(job.task.index()).or_default().runs(at_ns);
                }
            }
            RecordKind::Completed { job } | RecordKind::NotReady { job, .. } => {
                let thread = threads.entry(job.task.index()).or_default();
                thread.stops(at_ns, true);
            }
            _ => {}
        }
    }
    finish(threads)
}
