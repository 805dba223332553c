//! Who runs where: what each CPU should run, what it does run, and how decisions become switches.

use std::cmp::Reverse;

use crate::job::{Job, Key};
use crate::ready::ReadyQueue;
use crate::sync::Lock;
use crate::tournament::Tournament;

/// What tells a CPU that it should run something else: an inter-processor interrupt.
pub trait Bell: Sync {
    /// Will have [`Mapping::switch`] called by that CPU. Must not wait, nor call the mapping.
    fn ring(&self, cpu: usize);
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
    seats: Box<[Seat<K>]>,
    /// On which CPU each task is scheduled.
    scheduled_on: Box<[Option<usize>]>,
    /// The first of them is the one to take from. A CPU that serves interrupts alone has no entry.
    last: Tournament<Link<K>>,
    leaving: Tournament<K>,
}

#[derive(Debug)]
struct Seat<K> {
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
pub struct State<K> {
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
        let seat = |_| Seat {
            linked: None,
            leaving: None,
            scheduled: None,
        };
        Self(Lock::new(Cpus {
            seats: (0..cpus).map(seat).collect(),
            scheduled_on: vec![None; tasks].into(),
            last,
            leaving: Tournament::new(cpus),
        }))
    }

    /// Links whoever waits and goes before somebody who is linked. To be called after each release, by any
    /// CPU; O(log m) and a look at the ready queue for each link that changes.
    pub fn decide(&self, cpu: usize, ready: &impl ReadyQueue<K>, bell: &impl Bell) {
        self.0.lock().decide(cpu, ready, bell);
    }

    /// The CPU takes up what it should run. What ran until now waits from now on, so the CPU must have
    /// stopped running it.
    pub fn switch(&self, cpu: usize, ready: &impl ReadyQueue<K>) -> Switch {
        let mut cpus = self.0.lock();
        let seat = &mut cpus.seats[cpu];
        let to = seat.linked.as_ref().map(Job::task);
        let from = std::mem::replace(&mut seat.scheduled, to);
        let leaves = seat.leaving.take();
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
        bell: &impl Bell,
    ) -> Option<Job<K>> {
        let mut cpus = self.0.lock();
        let seat = &mut cpus.seats[cpu];
        let task = seat.scheduled.take()?;
        let leaves = seat.leaving.take();
        cpus.scheduled_on[task as usize] = None;
        cpus.leaving.set(cpu, None);
        if leaves.is_some() {
            // Who comes next was decided already.
            return leaves;
        }
        let job = cpus.set_link(cpu, None);
        cpus.decide(cpu, ready, bell);
        job
    }

    /// What each CPU should run and what it runs, at one moment.
    #[must_use]
    pub fn state(&self) -> Vec<State<K>> {
        let named = |job: &Option<Job<K>>| job.as_ref().map(|job| (job.key(), job.task()));
        let cpus = self.0.lock();
        let seats = cpus.seats.iter();
        let state = |seat: &Seat<K>| State {
            linked: named(&seat.linked),
            leaving: named(&seat.leaving),
            scheduled: seat.scheduled,
        };
        seats.map(state).collect()
    }
}

impl<K: Key> Cpus<K> {
    fn decide(&mut self, cpu: usize, ready: &impl ReadyQueue<K>, bell: &impl Bell) {
        while let Some((target, link)) = self.last.first() {
            let limit = match link {
                Link::Idle => None,
                Link::To(Reverse(key)) => Some(key),
            };
            let Some(job) = self.next(cpu, limit, ready) else {
                return;
            };
            if let Some(displaced) = self.link(job, target, bell) {
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
        let (seat, _) = leaving?;
        self.leaving.set(seat, None);
        self.seats[seat].leaving.take()
    }

    /// Gives `target` a link less, and the job one: on `target`, or where it is still scheduled, from where
    /// the job that was to run there goes to `target`. Gives back who lost its link and is scheduled nowhere.
    fn link(&mut self, job: Job<K>, target: usize, bell: &impl Bell) -> Option<Job<K>> {
        let displaced = self.set_link(target, None);
        match self.scheduled_on[job.task() as usize] {
            Some(stays) => {
                let moved = self.set_link(stays, Some(job));
                if let Some(moved) = moved {
                    self.set_link(target, Some(moved));
                    bell.ring(target);
                }
            }
            None => {
                self.set_link(target, Some(job));
                bell.ring(target);
            }
        }
        let displaced = displaced?;
        if self.scheduled_on[displaced.task() as usize].is_none() {
            return Some(displaced);
        }
        self.leaving.set(target, Some(displaced.key()));
        self.seats[target].leaving = Some(displaced);
        None
    }

    /// Gives back what was linked.
    fn set_link(&mut self, cpu: usize, job: Option<Job<K>>) -> Option<Job<K>> {
        let link = job
            .as_ref()
            .map_or(Link::Idle, |job| Link::To(Reverse(job.key())));
        self.last.set(cpu, Some(link));
        std::mem::replace(&mut self.seats[cpu].linked, job)
    }
}
