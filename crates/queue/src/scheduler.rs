//! A global scheduler of ready queue, release queue and mapping, for CPUs that are not simulated.

use crate::job::{Job, Key};
use crate::mapping::{CpuState, Ipi, Mapping, Switch};
use crate::ready::{Coarse, Fine, Published, ReadyQueue};
use crate::release::{ReleaseQueue, Timer};

/// An event-driven global scheduler: the CPUs that run jobs call it when a release is due, when a job is over
/// and when their bell rang. It has neither clock nor thread.
///
/// Under global EDF keys are [`Rank`](crate::Rank)s; another key is another order.
///
/// # Source
/// Brandenburg and Anderson, RTSS 2009: CEm ([`Scheduler::cem`]), CE1 ([`Scheduler::ce1`]) and FE1
/// ([`Scheduler::fe1`]). There one lock is that of the coarse-grained queue and of the mapping; here each
/// has its own, so that who merges does not wait for who decides.
#[derive(Debug)]
pub struct Scheduler<K, Q> {
    ready: Q,
    releases: ReleaseQueue<K>,
    mapping: Mapping<K>,
    dedicated: Option<usize>,
}

impl<K: Key> Scheduler<K, Coarse<K>> {
    /// Coarse-grained heap, event-driven, releases on all CPUs `0..cpus`; for the tasks `0..tasks`.
    #[must_use]
    pub fn cem(cpus: usize, tasks: usize) -> Self {
        Self::with(Coarse::new(), cpus, tasks, None)
    }

    /// The same, with releases on the last CPU alone, which runs no jobs.
    #[must_use]
    pub fn ce1(cpus: usize, tasks: usize) -> Self {
        Self::with(Coarse::new(), cpus, tasks, cpus.checked_sub(1))
    }
}

impl<K: Key> Scheduler<K, Fine<K>> {
    /// Fine-grained heap, event-driven, releases on the last CPU alone, which runs no jobs.
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
    /// With any queue. `dedicated` is the CPU that serves releases alone, `None` if all do.
    #[must_use]
    pub fn with(ready: Q, cpus: usize, tasks: usize, dedicated: Option<usize>) -> Self {
        Self {
            ready,
            releases: ReleaseQueue::new(tasks),
            mapping: Mapping::new(cpus, tasks, dedicated),
            dedicated,
        }
    }

    /// The CPU that serves releases and runs no jobs; `None` if all CPUs do both.
    #[must_use]
    pub fn dedicated(&self) -> Option<usize> {
        self.dedicated
    }

    /// A job that is to be released at `at_ns`.
    pub fn add(&self, job: Job<K>, at_ns: u64, timer: &impl Timer) {
        self.releases.add(job, at_ns, timer);
    }

    /// The timer for `at_ns` rang on this CPU: what is released then is ready, and runs if it is urgent
    /// enough.
    ///
    /// # Panics
    ///
    /// If releases are another CPU's business.
    pub fn release(&self, cpu: usize, at_ns: u64, ipi: &impl Ipi) {
        assert!(
            self.dedicated.is_none_or(|dedicated| dedicated == cpu),
            "CPU {cpu} serves a release, which CPU {:?} does alone",
            self.dedicated
        );
        self.ready.merge(cpu, self.releases.due(at_ns));
        self.mapping.decide(cpu, &self.ready, ipi);
    }

    /// The job that the CPU runs is over; the next one of its task may be added. The CPU has to
    /// [`Self::switch`] next. `None` if it runs nothing.
    pub fn complete(&self, cpu: usize, ipi: &impl Ipi) -> Option<Job<K>> {
        self.mapping.complete(cpu, &self.ready, ipi)
    }

    /// What the CPU runs from now on; it must have stopped running what it ran.
    pub fn switch(&self, cpu: usize) -> Switch {
        self.mapping.switch(cpu, &self.ready)
    }

    /// What each CPU should run and what it runs, at one moment.
    #[must_use]
    pub fn state(&self) -> Vec<CpuState<K>> {
        self.mapping.state()
    }

    /// Takes whoever waits out, most urgent first, to end it all.
    pub fn drain(&self, cpu: usize) -> impl Iterator<Item = Job<K>> {
        std::iter::from_fn(move || self.ready.take(cpu))
    }

    /// Makes a job ready at once, as at its release.
    pub fn wake(&self, cpu: usize, job: Job<K>, ipi: &impl Ipi) {
        self.ready.insert(cpu, job);
        self.mapping.decide(cpu, &self.ready, ipi);
    }
}
