//! How many threads of a file use each timer and each barrier.

use std::collections::BTreeMap;

use super::event::{Kind, kind_of, timer_name};
use super::value::Json;
use crate::error::TasksetError;

/// Threads per name.
#[derive(Default)]
pub(super) struct Users<'a> {
    timers: BTreeMap<&'a str, u64>,
    barriers: BTreeMap<&'a str, u64>,
}

impl<'a> Users<'a> {
    /// Counts a thread that is started `instances` times.
    ///
    /// # Errors
    /// What is wrong in it, with its place.
    pub(super) fn count(&mut self, thread: Json<'a>, instances: u64) -> Result<(), TasksetError> {
        let mut used = Used::default();
        match thread.get("phases")? {
            Some(phases) => {
                for phase in phases.members()? {
                    used.collect(phase)?;
                }
            }
            None => used.collect(thread)?,
        }
        // A thread that uses a timer twice is one user of it: its own uses follow each other. At a
        // barrier rt-app counts the places, not the threads.
        used.timers.sort_unstable();
        used.timers.dedup();
        for name in used.timers {
            *self.timers.entry(name).or_default() += instances;
        }
        for name in used.barriers {
            *self.barriers.entry(name).or_default() += instances;
        }
        Ok(())
    }

    /// The threads that share a timer: one for a name of which each thread has its own.
    pub(super) fn of_timer(&self, name: &str) -> u64 {
        self.timers.get(name).copied().unwrap_or(1)
    }

    /// The threads that a barrier waits for.
    pub(super) fn of_barrier(&self, name: &str) -> u64 {
        self.barriers.get(name).copied().unwrap_or_default()
    }
}

/// The names in one thread; those of barriers as often as they occur.
#[derive(Default)]
struct Used<'a> {
    timers: Vec<&'a str>,
    barriers: Vec<&'a str>,
}

impl<'a> Used<'a> {
    fn collect(&mut self, phase: Json<'a>) -> Result<(), TasksetError> {
        for event in phase.members()? {
            match kind_of(event.key) {
                Some(Kind::Timer) => {
                    let name = timer_name(event)?;
                    if !name.starts_with("unique") {
                        self.timers.push(name);
                    }
                }
                Some(Kind::Barrier) => self.barriers.push(event.name()?),
                _ => {}
            }
        }
        Ok(())
    }
}
