//! Measures by the daemon, which observes threads one by one and needs no privilege.

use std::collections::BTreeMap;

use shiftwork_client::{Client, Failure as Unanswered, Observation};
use shiftwork_model::Span;
use shiftwork_observe::{
    Costs, Distances, Measurement, ProcessTree, Source, Thread, ThreadMeasurement,
};

use crate::failure::Failure;
use crate::output::Console;
use crate::verb::daemon_client;

/// Has the daemon observe all threads of some processes.
pub struct DaemonSession {
    client: Client,
    tree: ProcessTree,
    /// Of these threads this one only, if there is a number.
    only: Option<u32>,
    observed: BTreeMap<u32, Observed>,
    /// Of threads that have ended, and for how long each was observed.
    measured: Vec<(ThreadMeasurement, Span)>,
    /// Threads that the daemon does not observe, and why.
    refused: BTreeMap<u32, Unanswered>,
}

/// A thread that the daemon observes.
struct Observed {
    /// The number of the observation.
    number: u32,
    thread: Thread,
}

impl DaemonSession {
    /// Begins with what there is at the first [`poll`](Self::poll).
    pub fn new(client: Client, tree: ProcessTree, only: Option<u32>) -> Self {
        Self {
            client,
            tree,
            only,
            observed: BTreeMap::new(),
            measured: Vec::new(),
            refused: BTreeMap::new(),
        }
    }

    /// Begins to observe new threads, and takes the results of those that have ended; returns whether any process is there.
    ///
    /// # Errors
    /// If the daemon does not answer, or observes none of the threads.
    pub fn poll(&mut self) -> Result<bool, Failure> {
        let mut there = self.tree.threads();
        there.retain(|id, _| self.only.is_none_or(|only| only == *id));
        let mut ended = Vec::new();
        for (&id, observed) in &mut self.observed {
            let process = there.contains_key(&id).then_some(observed.thread.process);
            match process.and_then(|process| self.tree.thread(process, id)) {
                // Another program may be executed, with other names.
                Some(thread) => observed.thread = thread,
                None => ended.push(id),
            }
        }
        for id in ended {
            self.end(id, true)?;
        }
        for (id, process) in there {
            if self.observed.contains_key(&id) || self.refused.contains_key(&id) {
                continue;
            }
            let Some(thread) = self.tree.thread(process, id) else {
                continue;
            };
            match self.client.observe(Some(id)) {
                Ok(number) => {
                    self.observed.insert(id, Observed { number, thread });
                }
                // It may have ended meanwhile.
                Err(Unanswered::Agent(_)) if self.tree.thread(process, id).is_none() => {}
                Err(why @ Unanswered::Agent(_)) => {
                    self.refused.insert(id, why);
                }
                Err(why) => return Err(daemon_client::of(&why)),
            }
        }
        match self.refused.values().next() {
            Some(why) if self.observed.is_empty() && self.measured.is_empty() => {
                Err(daemon_client::of(why))
            }
            _ => Ok(self.tree.has_processes()),
        }
    }

    fn end(&mut self, id: u32, has_ended: bool) -> Result<(), Failure> {
        let Some(Observed { number, thread }) = self.observed.remove(&id) else {
            return Ok(());
        };
        match self.client.end_observation(number) {
            Ok(seen) => self.measured.push(measured(id, thread, has_ended, &seen)),
            // The daemon has ended it, such as for another user ID.
            Err(why @ Unanswered::Agent(_)) => {
                self.refused.insert(id, why);
            }
            Err(why) => return Err(daemon_client::of(&why)),
        }
        Ok(())
    }

    /// Ends all observations. Threads that were not observed are named on stderr.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub fn finish(mut self, console: &Console) -> Result<Measurement, Failure> {
        let open: Vec<u32> = self.observed.keys().copied().collect();
        for id in open {
            self.end(id, false)?;
        }
        if let Some((id, why)) = self.refused.first_key_value() {
            let others = match self.refused.len() {
                1 => String::new(),
                count => format!(", nor were {} others", count - 1),
            };
            console.note(format!("note: thread {id} was not observed{others}: {why}"));
        }
        self.measured.sort_by_key(|(it, _)| it.id);
        let lengths = self.measured.iter().map(|(_, length)| *length);
        Ok(Measurement {
            process: self.tree.main(),
            length: lengths.max().unwrap_or(Span::ZERO),
            source: Source::Daemon,
            threads: self.measured.into_iter().map(|(it, _)| it).collect(),
            paths: Vec::new(),
            gaps: 0,
            unreadable: 0,
        })
    }
}

/// The result of an observation. How regular the wake-ups are is not known.
fn measured(
    id: u32,
    thread: Thread,
    has_ended: bool,
    seen: &Observation,
) -> (ThreadMeasurement, Span) {
    let thread = Thread {
        cpu_time: Some(seen.ran),
        has_ended,
        ..thread
    };
    let costs = Costs {
        p50: seen.cost_p50,
        p99: seen.cost_p99,
        max: seen.cost_max,
        chosen: seen.cost_max,
    };
    let distances = (seen.jobs > 1).then_some(Distances {
        min: seen.period_min,
        median: seen.period_p50,
        regular: seen.period_p50,
        regular_percent: 0,
    });
    let measured =
        ThreadMeasurement::counted(id, thread, seen.jobs, costs, distances, seen.observed);
    (measured, seen.observed)
}
