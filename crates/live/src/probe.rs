//! What it takes to measure this machine: threads on a CPU of their own, its clocks, words to wait for, and
//! rings for what is measured.
//!
//! The same system calls as those of live runs, and the same channels as between their threads. A ring has
//! one sender: a thread that is bound to a CPU, as in the tracing of B. Brandenburg, J. Anderson,
//! "Feather-Trace: A Light-Weight Event Tracing Toolkit", OSPERT 2007.

use shiftwork_model::{CpuSet, Span};

use crate::agent::channel::{Receiver, Sender, channel, sending_cost};
use crate::event::{Event, Kind};
use crate::host::System;

pub use crate::sys::clock::{monotonic_ns, sleep_until};
pub use crate::sys::thread::{Class, set_affinity, set_class, set_exact_timers};
pub use crate::sys::word::Word;

/// Something that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, of the monotonic clock, in ns.
    pub at_ns: u64,
    /// How long it took, in ns. Negative where it is a difference that noise has turned round.
    pub ns: i64,
}

/// The end of a ring at which one thread puts in what it measures.
#[derive(Debug)]
pub struct Probe(Sender);

/// The other end.
#[derive(Debug)]
pub struct Collector(Receiver);

/// A ring for `capacity` samples, rounded up to a power of two. What finds no room is lost, and counted.
pub fn ring(capacity: usize) -> (Probe, Collector) {
    let (sender, receiver) = channel(capacity);
    (Probe(sender), Collector(receiver))
}

/// What it takes here to record a sample, with the clock that it is dated by.
pub fn sample_cost() -> Span {
    sending_cost()
}

impl Probe {
    /// Records a sample, if there is room. No lock, no system call, no allocation. Only one thread may do
    /// so at a time.
    pub fn record(&self, sample: Sample) {
        self.0.send(Event {
            at: sample.at_ns,
            value: sample.ns as u64,
            task: 0,
            cpu: None,
            kind: Kind::Probe,
        });
    }
}

impl Collector {
    /// What was recorded until now and not collected yet, in its order.
    pub fn collect(&self) -> Vec<Sample> {
        let mut events = Vec::new();
        self.0.take(&mut events);
        let sample = |event: Event| Sample {
            at_ns: event.at,
            ns: event.value as i64,
        };
        events.into_iter().map(sample).collect()
    }

    /// How many samples found no room so far.
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }
}

/// The CPUs of this machine that are online and that the calling thread may use.
pub fn usable_cpus() -> CpuSet {
    let allowed = crate::sys::thread::affinity(None).unwrap_or(CpuSet::EMPTY);
    System::this()
        .online()
        .map_or(allowed, |online| online & allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_arrive_as_they_were_recorded_and_those_without_room_are_counted() {
        let (probe, collector) = ring(4);
        let all = [0, 1, -1, i64::MIN, 7].map(|ns| Sample { at_ns: 3, ns });
        all.iter().for_each(|&sample| probe.record(sample));
        assert_eq!(collector.collect(), all[..4]);
        assert_eq!((collector.collect(), collector.lost()), (Vec::new(), 1));
    }

    #[test]
    fn there_is_a_cpu_to_measure_on() {
        let cpus = usable_cpus();
        let first = cpus.lowest().expect("this thread runs somewhere");
        std::thread::spawn(move || {
            set_affinity(None, &CpuSet::single(first)).unwrap();
            assert_eq!(usable_cpus(), CpuSet::single(first));
        })
        .join()
        .unwrap();
    }
}
