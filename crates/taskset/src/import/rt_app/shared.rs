//! What threads have in common: the mutexes for which one may wait for another, and what some wait for.

use std::collections::{BTreeMap, BTreeSet};

use super::program::{Act, Awaited, Program, Step};

/// What matters of what threads do to each other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shared<'a> {
    mutexes: BTreeSet<&'a str>,
    awaited: BTreeSet<Awaited<'a>>,
}

impl<'a> Shared<'a> {
    /// What these threads have in common, each with how often it is started.
    ///
    /// A mutex matters if two lock it and one of them does anything that takes time meanwhile, or
    /// that may. Otherwise no thread ever waits for it.
    pub(super) fn of<'p>(threads: impl Iterator<Item = (&'p Program<'a>, usize)>) -> Self
    where
        'a: 'p,
    {
        let mut users: BTreeMap<&str, usize> = BTreeMap::new();
        let mut busy = BTreeSet::new();
        let mut awaited = BTreeSet::new();
        for (program, instances) in threads {
            for mutex in note_busy(program, &mut busy) {
                *users.entry(mutex).or_default() += instances;
            }
            awaited.extend(program.awaited());
        }
        let is_shared = |mutex: &&str| users.get(mutex).is_some_and(|users| *users > 1);
        Self {
            mutexes: busy.into_iter().filter(is_shared).collect(),
            awaited,
        }
    }

    /// Whether a thread may have to wait for this mutex.
    pub(super) fn has_mutex(&self, mutex: &str) -> bool {
        self.mutexes.contains(mutex)
    }

    /// The mutexes for which a thread may have to wait.
    pub(super) fn mutexes(&self) -> impl Iterator<Item = &'a str> {
        self.mutexes.iter().copied()
    }

    /// Whether it makes a difference to any thread.
    pub(super) fn matters(&self, act: Act<'_>) -> bool {
        match act {
            Act::Run(_) | Act::Sleep(_) => true,
            Act::Lock(mutex) | Act::Unlock(mutex) => self.mutexes.contains(mutex),
            Act::Wake(awaited) => self.awaited.contains(&awaited),
        }
    }
}

/// The mutexes that the thread locks; those that it may hold while time passes are added to `busy`.
fn note_busy<'a>(program: &Program<'a>, busy: &mut BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let mut used = BTreeSet::new();
    // Held, and so far for no time.
    let mut held = BTreeSet::new();
    // What is held at the end of a round or of all phases is held at the beginning of the next.
    for _ in 0..2 {
        for phase in &program.phases {
            for _ in 0..2 {
                for step in &phase.steps {
                    match *step {
                        Step::Act(Act::Lock(mutex)) => {
                            used.insert(mutex);
                            busy.extend(std::mem::take(&mut held));
                            held.insert(mutex);
                        }
                        Step::Act(Act::Unlock(mutex)) => drop(held.remove(mutex)),
                        Step::Act(Act::Run(span) | Act::Sleep(span)) if span.is_zero() => {}
                        Step::Act(Act::Wake(_)) | Step::WakeOne(_) => {}
                        Step::Act(Act::Run(_) | Act::Sleep(_))
                        | Step::Timer { .. }
                        | Step::Wait { .. } => busy.extend(std::mem::take(&mut held)),
                    }
                }
            }
        }
    }
    used
}
