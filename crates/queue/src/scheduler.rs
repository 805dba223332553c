//! A global scheduler from ready queue, release queue and mapping, for real CPUs.

use crate::job::{Job, Key};
use crate::mapping::{CpuState, Ipi, Mapping, Switch};
use crate::ready::{Coarse, Fine, Published, ReadyQueue};
use crate::release::{ReleaseQueue, Timer};

/// An event-driven global scheduler: the CPUs call it when a release timer expires, when a job completes
/// and when they receive an IPI. It has neither clock nor thread.
///
/// Under global EDF keys are [`Rank`](crate::Rank)s; another key is another order.
///
/// # Source
/// Brandenburg and Anderson, RTSS 2009: CEm ([`Scheduler::cem`]), CE1 ([`Scheduler::ce1`]) and FE1
/// ([`Scheduler::fe1`]). There the coarse-grained queue and the mapping share one lock; here each has its own,
/// so that a merge does not wait for a decision.
#[derive(Debug)]
pub struct Scheduler<K, Q> {
    ready: Q,
    releases: ReleaseQueue<K>,
    mapping: Mapping<K>,
    dedicated: Option<usize>,
}

impl<K: Key> Scheduler<K, Coarse<K>> {
    /// Coarse-grained heap, event-driven, release interrupts on all CPUs `0..cpus`; for the tasks `0..tasks`.
    #[must_use]
    pub fn cem(cpus: usize, tasks: usize) -> Self {
        Self::with(Coarse::new(), cpus, tasks, None)
    }

    /// The same, with release interrupts on the last CPU only, which runs no jobs.
    #[must_use]
    pub fn ce1(cpus: usize, tasks: usize) -> Self {
        Self::with(Coarse::new(), cpus, tasks, cpus.checked_sub(1))
    }
}

impl<K: Key> Scheduler<K, Fine<K>> {
    /// Fine-grained heap, event-driven, release interrupts on the last CPU only, which runs no jobs.
    #[must_use]
    pub fn fe1(cpus: usize, tasks: usize) -> Self {
        Self::with(Fine::new(tasks), cpus, tasks, cpus.checked_sub(1))
    }
}

impl<K: Key> Scheduler<K, Published<K>> {
    /// As [`Self::ce1`], with the queue whose minimum is published.
    #[must_use]
    pub fn pe1(cpus: usize, tasks: usize) -> Self {
        Self::with(Published::new(tasks), cpus, tasks, cpus.checked_sub(1))
    }
}

impl<K: Key, Q: ReadyQueue<K>> Scheduler<K, Q> {
    /// A scheduler with any queue. `dedicated` is the only CPU that handles release interrupts, `None` if all do.
    #[must_use]
    pub fn with(ready: Q, cpus: usize, tasks: usize, dedicated: Option<usize>) -> Self {
        Self {
            ready,
            releases: ReleaseQueue::new(tasks),
            mapping: Mapping::new(cpus, tasks, dedicated),
            dedicated,
        }
    }

    /// The CPU that handles release interrupts and runs no jobs; `None` if all CPUs do both.
    #[must_use]
    pub fn dedicated(&self) -> Option<usize> {
        self.dedicated
    }

    /// Adds a job that is to be released at `at_ns`.
    pub fn add(&self, job: Job<K>, at_ns: u64, timer: &impl Timer) {
        self.releases.add(job, at_ns, timer);
    }

    /// Handles the timer for `at_ns` on this CPU: the jobs released then become ready, and are linked if they are
    /// urgent enough.
    ///
    /// # Panics
    ///
    /// If another CPU is dedicated to release interrupts.
    pub fn release(&self, cpu: usize, at_ns: u64, ipi: &impl Ipi) {
        assert!(
            self.dedicated.is_none_or(|dedicated| dedicated == cpu),
            "CPU {cpu} handles a release, to which CPU {:?} is dedicated",
            self.dedicated
        );
        self.ready.merge(cpu, self.releases.due(at_ns));
        self.mapping.decide(cpu, &self.ready, ipi);
    }

    /// Completes the job that the CPU runs; the next job of its task may be added. The CPU must call
    /// [`Self::switch`] next. `None` if the CPU is idle.
    pub fn complete(&self, cpu: usize, ipi: &impl Ipi) -> Option<Job<K>> {
        self.mapping.complete(cpu, &self.ready, ipi)
    }

    /// Switches the CPU to its linked job; it must have stopped running the previous one.
    pub fn switch(&self, cpu: usize) -> Switch {
        self.mapping.switch(cpu, &self.ready)
    }

    /// The jobs of all CPUs at one moment.
    #[must_use]
    pub fn state(&self) -> Vec<CpuState<K>> {
        self.mapping.state()
    }

    /// Takes all waiting jobs, most urgent first, at the end of a run.
    pub fn drain(&self, cpu: usize) -> impl Iterator<Item = Job<K>> {
        std::iter::from_fn(move || self.ready.take(cpu))
    }

    /// Makes a job ready at once, as at its release.
    pub fn wake(&self, cpu: usize, job: Job<K>, ipi: &impl Ipi) {
        self.ready.insert(cpu, job);
        self.mapping.decide(cpu, &self.ready, ipi);
    }
}
