//! Who runs where: what each CPU should run, what it does run, and how decisions become switches.

use std::cmp::Reverse;

use crate::job::{Job, Key};
use crate::ready::ReadyQueue;
use crate::sync::Lock;
use crate::tournament::Tournament;

/// What tells a CPU that it should run something else: an inter-processor interrupt.
pub trait Ipi: Sync {
    /// Will have [`Mapping::switch`] called by that CPU. Must not wait, nor call the mapping.
    fn send(&self, cpu: usize);
}

/// The job-to-CPU mapping of a global scheduler: one lock puts all decisions in one order.
///
/// A job is *linked* to the CPU that should run it, and *scheduled* on the CPU that runs it. Decisions change
/// links at once; a CPU follows when it gets to it ([`Self::switch`]). If a decision is revised before, nothing
/// was switched for it: whoever is still scheduled somewhere is only ever linked to that CPU, and what was
/// to run there goes elsewhere.
///
/// A job that lost its link but is still scheduled is *leaving*: it waits in the mapping rather than in the ready
/// queue until its CPU switches, for its CPU may finish it first, and no ready queue finds a job in the middle.
/// Whenever nobody holds the lock and all releases were followed by [`Self::decide`]:
///
/// - no job that waits, there or here, goes before one that is linked, and none waits while a CPU has no link;
/// - a job that is linked is scheduled on no other CPU;
/// - a job that is scheduled is linked to that CPU or leaving it.
///
/// # Source
/// Brandenburg and Anderson, RTSS 2009, "job-to-processor mapping"; that what is scheduled stays where it is
/// comes from LITMUS^RT.
#[derive(Debug)]
pub struct Mapping<K>(Lock<Cpus<K>>);

#[derive(Debug)]
struct Cpus<K> {
    by_cpu: Box<[Cpu<K>]>,
    /// On which CPU each task is scheduled.
    scheduled_on: Box<[Option<usize>]>,
    /// The first of them is the one to take from. A CPU that serves interrupts alone has no entry.
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

/// What a CPU was to do: the tasks that it stopped and started running, none for idle. The same twice if nothing
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// What ran.
    pub from: Option<u32>,
    /// What runs from now on.
    pub to: Option<u32>,
}

/// What a CPU is about, with the key and the task of each job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuState<K> {
    /// What it should run.
    pub linked: Option<(K, u32)>,
    /// What it still runs, but should not.
    pub leaving: Option<(K, u32)>,
    /// The task that it runs.
    pub scheduled: Option<u32>,
}

impl<K: Key> Mapping<K> {
    /// Idle CPUs `0..cpus` for the tasks `0..tasks`, which run on all of them but `dedicated`.
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

    /// Links whoever waits and goes before somebody who is linked. To be called after each release, by any
    /// CPU; O(log m) and a look at the ready queue for each link that changes.
    pub fn decide(&self, cpu: usize, ready: &impl ReadyQueue<K>, ipi: &impl Ipi) {
        self.0.lock().decide(cpu, ready, ipi);
    }

    /// The CPU takes up what it should run. What ran until now waits from now on, so the CPU must have
    /// stopped running it.
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

    /// The job that the CPU runs is over, for now: it leaves, and somebody else is linked if anybody waits.
    /// `None` if the CPU runs nothing. The CPU has to [`Self::switch`] next.
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
            // Who comes next was decided already.
            return leaves;
        }
        let job = cpus.set_link(cpu, None);
        cpus.decide(cpu, ready, ipi);
        job
    }

    /// What each CPU should run and what it runs, at one moment.
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

    /// The most urgent job that waits, in the queue or leaving, if it goes before `limit`.
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

    /// Gives `target` a link less, and the job one: on `target`, or where it is still scheduled, from where
    /// the job that was to run there goes to `target`. Gives back who lost its link and is scheduled nowhere.
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

    /// Gives back what was linked.
    fn set_link(&mut self, cpu: usize, job: Option<Job<K>>) -> Option<Job<K>> {
        let link = job
            .as_ref()
            .map_or(Link::Idle, |job| Link::To(Reverse(job.key())));
        self.last.set(cpu, Some(link));
        std::mem::replace(&mut self.by_cpu[cpu].linked, job)
    }
}
