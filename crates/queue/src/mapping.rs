//! The job-to-CPU mapping: the job that each CPU should run, the job that it runs, and the switches between
//! them.

use std::cmp::Reverse;

use crate::job::{Job, Key};
use crate::ready::ReadyQueue;
use crate::sync::Lock;
use crate::tournament::Tournament;

/// Inter-processor interrupts, which make a CPU switch jobs.
pub trait Ipi: Sync {
    /// Makes that CPU call [`Mapping::switch`]. Must neither wait nor call the mapping.
    fn send(&self, cpu: usize);
}

/// The job-to-CPU mapping of a global scheduler: one lock puts all decisions in one order.
///
/// A job is *linked* to the CPU that should run it, and *scheduled* on the CPU that runs it. Decisions change
/// links at once; the CPU follows with [`Self::switch`]. A decision that is revised before the switch causes no
/// switch: a job that is still scheduled on a CPU is linked only to that CPU, and the job that was linked
/// there is linked to another CPU.
///
/// A job that lost its link but is still scheduled is *leaving*: it waits in the mapping instead of the ready
/// queue until its CPU switches, because its CPU may complete it first, and ready queues cannot remove a job
/// that is not the most urgent. Whenever no caller holds the lock and all releases were followed by
/// [`Self::decide`]:
///
/// - no waiting job, in the queue or in the mapping, precedes a linked job, and none waits while a CPU has no
///   link;
/// - a linked job is scheduled on no other CPU;
/// - a scheduled job is linked to that CPU or leaving it.
///
/// # Source
/// Brandenburg and Anderson, RTSS 2009, "job-to-processor mapping"; the rule that a scheduled job stays on its
/// CPU comes from LITMUS^RT.
#[derive(Debug)]
pub struct Mapping<K>(Lock<Cpus<K>>);

#[derive(Debug)]
struct Cpus<K> {
    by_cpu: Box<[Cpu<K>]>,
    /// The CPU on which each task is scheduled.
    scheduled_on: Box<[Option<usize>]>,
    /// The first is the CPU with the least urgent link. A CPU dedicated to interrupts has no entry.
    last: Tournament<Link<K>>,
    leaving: Tournament<K>,
}

#[derive(Debug)]
struct Cpu<K> {
    linked: Option<Job<K>>,
    leaving: Option<Job<K>>,
    scheduled: Option<u32>,
}

/// Idle CPUs first, then the least urgent link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Link<K> {
    Idle,
    To(Reverse<K>),
}

/// A switch of a CPU: the task that it stops running and the task that it starts running, `None` for idle. Both
/// are equal if nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The task that ran before.
    pub from: Option<u32>,
    /// The task that runs from now on.
    pub to: Option<u32>,
}

/// The jobs of a CPU, each with its key and its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuState<K> {
    /// The job that it should run.
    pub linked: Option<(K, u32)>,
    /// The job that it still runs, but should not.
    pub leaving: Option<(K, u32)>,
    /// The task that it runs.
    pub scheduled: Option<u32>,
}

impl<K: Key> Mapping<K> {
    /// Idle CPUs `0..cpus` for the tasks `0..tasks`, which run on all CPUs except `dedicated`.
    #[must_use]
    pub fn new(cpus: usize, tasks: usize, dedicated: Option<usize>) -> Self {
        let mut last = Tournament::new(cpus);
        for cpu in (0..cpus).filter(|cpu| dedicated != Some(*cpu)) {
            last.set(cpu, Some(Link::Idle));
        }
        let entry = |_| Cpu {
            linked: None,
            leaving: None,
            scheduled: None,
        };
        Self(Lock::new(Cpus {
            by_cpu: (0..cpus).map(entry).collect(),
            scheduled_on: vec![None; tasks].into(),
            last,
            leaving: Tournament::new(cpus),
        }))
    }

    /// Links waiting jobs that precede linked ones. To be called after each release, by any CPU; O(log m) and one
    /// access to the ready queue for each changed link.
    pub fn decide(&self, cpu: usize, ready: &impl ReadyQueue<K>, ipi: &impl Ipi) {
        self.0.lock().decide(cpu, ready, ipi);
    }

    /// Switches the CPU to its linked job. The previous job may wait from now on, so the CPU must have stopped
    /// running it.
    pub fn switch(&self, cpu: usize, ready: &impl ReadyQueue<K>) -> Switch {
        let mut cpus = self.0.lock();
        let entry = &mut cpus.by_cpu[cpu];
        let to = entry.linked.as_ref().map(Job::task);
        let from = std::mem::replace(&mut entry.scheduled, to);
        let leaves = entry.leaving.take();
        cpus.leaving.set(cpu, None);
        if let Some(task) = from {
            cpus.scheduled_on[task as usize] = None;
        }
        if let Some(task) = to {
            cpus.scheduled_on[task as usize] = Some(cpu);
        }
        if let Some(job) = leaves {
            ready.insert(cpu, job);
        }
        Switch { from, to }
    }

    /// Removes and returns the job that the CPU runs, which has completed, and links the next waiting job.
    /// `None` if the CPU is idle. The CPU must call [`Self::switch`] next.
    pub fn complete(
        &self,
        cpu: usize,
        ready: &impl ReadyQueue<K>,
        ipi: &impl Ipi,
    ) -> Option<Job<K>> {
        let mut cpus = self.0.lock();
        let entry = &mut cpus.by_cpu[cpu];
        let task = entry.scheduled.take()?;
        let leaves = entry.leaving.take();
        cpus.scheduled_on[task as usize] = None;
        cpus.leaving.set(cpu, None);
        if leaves.is_some() {
            // The next job is linked already.
            return leaves;
        }
        let job = cpus.set_link(cpu, None);
        cpus.decide(cpu, ready, ipi);
        job
    }

    /// The jobs of all CPUs at one moment.
    #[must_use]
    pub fn state(&self) -> Vec<CpuState<K>> {
        let named = |job: &Option<Job<K>>| job.as_ref().map(|job| (job.key(), job.task()));
        let cpus = self.0.lock();
        let entries = cpus.by_cpu.iter();
        let state = |entry: &Cpu<K>| CpuState {
            linked: named(&entry.linked),
            leaving: named(&entry.leaving),
            scheduled: entry.scheduled,
        };
        entries.map(state).collect()
    }
}

impl<K: Key> Cpus<K> {
    fn decide(&mut self, cpu: usize, ready: &impl ReadyQueue<K>, ipi: &impl Ipi) {
        while let Some((target, link)) = self.last.first() {
            let limit = match link {
                Link::Idle => None,
                Link::To(Reverse(key)) => Some(key),
            };
            let Some(job) = self.next(cpu, limit, ready) else {
                return;
            };
            if let Some(displaced) = self.link(job, target, ipi) {
                ready.insert(cpu, displaced);
            }
        }
    }

    /// The most urgent waiting job, in the queue or leaving, if it precedes `limit`.
    fn next(&mut self, cpu: usize, limit: Option<K>, ready: &impl ReadyQueue<K>) -> Option<Job<K>> {
        let leaving = self.leaving.first();
        let leaving = leaving.filter(|(_, key)| limit.is_none_or(|limit| *key < limit));
        let bound = leaving.map(|(_, key)| key).or(limit);
        let waiting = match bound {
            Some(bound) => ready.take_if_before(cpu, &bound),
            None => ready.take(cpu),
        };
        if waiting.is_some() {
            return waiting;
        }
        let (entry, _) = leaving?;
        self.leaving.set(entry, None);
        self.by_cpu[entry].leaving.take()
    }

    /// Removes the link of `target` and links the job: to `target`, or to the CPU where it is still scheduled; then
    /// the job linked to that CPU moves to `target`. Returns the job that lost its link if it is not scheduled.
    fn link(&mut self, job: Job<K>, target: usize, ipi: &impl Ipi) -> Option<Job<K>> {
        let displaced = self.set_link(target, None);
        match self.scheduled_on[job.task() as usize] {
            Some(stays) => {
                let moved = self.set_link(stays, Some(job));
                if let Some(moved) = moved {
                    self.set_link(target, Some(moved));
                    ipi.send(target);
                }
            }
            None => {
                self.set_link(target, Some(job));
                ipi.send(target);
            }
        }
        let displaced = displaced?;
        if self.scheduled_on[displaced.task() as usize].is_none() {
            return Some(displaced);
        }
        self.leaving.set(target, Some(displaced.key()));
        self.by_cpu[target].leaving = Some(displaced);
        None
    }

    /// Sets the link of a CPU; returns the job that was linked.
    fn set_link(&mut self, cpu: usize, job: Option<Job<K>>) -> Option<Job<K>> {
        let link = job
            .as_ref()
            .map_or(Link::Idle, |job| Link::To(Reverse(job.key())));
        self.last.set(cpu, Some(link));
        std::mem::replace(&mut self.by_cpu[cpu].linked, job)
    }
}
