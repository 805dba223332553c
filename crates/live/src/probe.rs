//! Tools for measurements on this machine: threads on a CPU of their own, clocks, futex words, and rings for samples.
//!
//! The system calls and channels are those of live runs. A ring has
//! one sender: a thread that is bound to a CPU, as in the tracing of B. Brandenburg, J. Anderson,
//! "Feather-Trace: A Light-Weight Event Tracing Toolkit", OSPERT 2007.

use shiftwork_model::{CpuSet, Span};

use crate::agent::channel::{Receiver, Sender, channel, sending_cost};
use crate::event::{Event, Kind};
use crate::host::System;

pub use crate::sys::clock::{monotonic_ns, sleep_until};
pub use crate::sys::thread::{Class, set_affinity, set_class, set_exact_timers};
pub use crate::sys::word::Word;

/// A measured sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was measured, on the monotonic clock, in ns.
    pub at_ns: u64,
    /// The measured time in ns. Negative if it is a difference smaller than the noise.
    pub ns: i64,
}

/// The sending end of a ring, for the thread that measures.
#[derive(Debug)]
pub struct Probe(Sender);

/// The receiving end.
#[derive(Debug)]
pub struct Collector(Receiver);

/// A ring for `capacity` samples, rounded up to a power of two. Samples that find no room are dropped and counted.
pub fn ring(capacity: usize) -> (Probe, Collector) {
    let (sender, receiver) = channel(capacity);
    (Probe(sender), Collector(receiver))
}

/// The measured cost of recording a sample, with the reading of the clock that dates it.
pub fn sample_cost() -> Span {
    sending_cost()
}

impl Probe {
    /// Records a sample, if there is room. No lock, no system call, no allocation. Only one thread at a time may call
    /// this.
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
    /// The samples since the last call, in their order.
    pub fn collect(&self) -> Vec<Sample> {
        let mut events = Vec::new();
        self.0.take(&mut events);
        let sample = |event: Event| Sample {
            at_ns: event.at,
            ns: event.value as i64,
        };
        events.into_iter().map(sample).collect()
    }

    /// Number of samples that found no room so far.
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
    fn collector_returns_recorded_samples_and_counts_dropped_ones() {
        let (probe, collector) = ring(4);
        let all = [0, 1, -1, i64::MIN, 7].map(|ns| Sample { at_ns: 3, ns });
        all.iter().for_each(|&sample| probe.record(sample));
        assert_eq!(collector.collect(), all[..4]);
        assert_eq!((collector.collect(), collector.lost()), (Vec::new(), 1));
    }

    #[test]
    fn usable_cpus_are_those_of_the_calling_thread() {
        let cpus = usable_cpus();
        let first = cpus.lowest().expect("this thread runs on a CPU");
        std::thread::spawn(move || {
            set_affinity(None, &CpuSet::single(first)).unwrap();
            assert_eq!(usable_cpus(), CpuSet::single(first));
        })
        .join()
        .unwrap();
    }
}
