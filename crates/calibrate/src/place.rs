//! Where measuring threads are, and what may interrupt them.

use std::io;
use std::thread::{Scope, ScopedJoinHandle};

use shiftwork_live::probe::{
    Class, Collector, Probe, Sample, monotonic_ns, ring, set_affinity, set_class, set_exact_timers,
};
use shiftwork_model::{CpuId, CpuSet};

/// How urgent measuring threads may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// This user may have real-time threads: only interrupts and the kernel's own threads interrupt them.
    RealTime,
    /// It may not, so other threads have their share of the CPUs.
    Ordinary,
}

/// Which of several threads on a CPU goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Gives way to the others.
    Low,
    /// Takes its CPU from those of low urgency.
    High,
}

impl Rank {
    /// What this user may have, tried out on a thread of its own.
    pub(crate) fn find() -> Self {
        let tried = std::thread::spawn(|| set_class(None, Class::Fifo(1)).is_ok());
        match tried.join() {
            Ok(true) => Self::RealTime,
            Ok(false) | Err(_) => Self::Ordinary,
        }
    }

    /// The scheduling class of threads of this urgency. An ordinary thread that wakes preempts an
    /// idle-class one at once, and never the other way round.
    const fn class(self, urgency: Urgency) -> Class {
        match (self, urgency) {
            (Self::RealTime, Urgency::Low) => Class::Fifo(1),
            (Self::RealTime, Urgency::High) => Class::Fifo(2),
            (Self::Ordinary, Urgency::Low) => Class::Idle,
            (Self::Ordinary, Urgency::High) => Class::Ordinary,
        }
    }
}

/// A thread's place: its CPU, and its urgency there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) cpu: CpuId,
    pub(crate) rank: Rank,
    pub(crate) urgency: Urgency,
}

impl Place {
    /// Puts the calling thread there. Its timers go off when they are due.
    fn take(self) -> io::Result<()> {
        set_affinity(None, &CpuSet::single(self.cpu))?;
        set_exact_timers()?;
        set_class(None, self.rank.class(self.urgency))
    }

    /// Runs `work` on a thread there. What it returns, or why there is no such thread.
    pub(crate) fn spawn<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, Result<T, String>> {
        scope.spawn(move || {
            self.take()
                .map_err(|error| format!("a thread cannot be put on CPU {}: {error}", self.cpu))?;
            Ok(work())
        })
    }
}

/// What a thread that was spawned did; one that panicked is a bug of ours, which is passed on.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Room for the samples of one slice.
const ROOM: usize = 1 << 16;

/// The samples of one slice that a single thread in this place takes, and how many found no room.
pub(crate) fn samples(
    place: Place,
    work: impl FnOnce(&Probe) + Send,
) -> Result<(Vec<i64>, u64), String> {
    let (probe, collector) = ring(ROOM);
    std::thread::scope(|scope| join(place.spawn(scope, move || work(&probe))))?;
    Ok(collected(&collector))
}

/// What was recorded, and how many samples found no room.
pub(crate) fn collected(collector: &Collector) -> (Vec<i64>, u64) {
    let all = collector.collect().into_iter().map(|sample| sample.ns);
    (all.collect(), collector.lost())
}

/// Records a sample that ends now.
pub(crate) fn note(probe: &Probe, ns: i64) {
    probe.record(Sample {
        at_ns: monotonic_ns(),
        ns,
    });
}

/// The time between two uninterrupted readings of the clock: the minimum of many.
pub(crate) fn clock_ns() -> u64 {
    let mut before_ns = monotonic_ns();
    let mut least_ns = u64::MAX;
    for _ in 0..1_000 {
        let now_ns = monotonic_ns();
        least_ns = least_ns.min(now_ns - before_ns);
        before_ns = now_ns;
    }
    least_ns
}
