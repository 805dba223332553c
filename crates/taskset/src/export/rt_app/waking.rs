//! By which events the threads of triggered tasks wait, and those of other tasks wake them.
//!
//! A task without a queue suspends itself, as what would resume it is lost where it does not; one with a
//! queue takes from a semaphore, or from one of each of its sources if it waits for all.

use std::collections::BTreeSet;

use shiftwork_model::{Join, TaskId, TaskSet, Trigger};

/// An event of a thread: its key, and what it names.
pub(super) type Event = (&'static str, String);

/// What the threads of triggered tasks wait for.
pub(super) struct Waking<'a> {
    set: &'a TaskSet,
    /// Of each triggered task the names of what it waits for, as many as its sources if it waits for all of
    /// several.
    names: Vec<Vec<String>>,
}

impl<'a> Waking<'a> {
    /// Chooses the names. What suspends itself uses a mutex of the same name, so that none is that of a resource.
    pub(super) fn new(set: &'a TaskSet) -> Self {
        let resources = set.resources.iter().map(|resource| resource.name.clone());
        let mut taken: BTreeSet<String> = resources.collect();
        let mut take = |mut name: String| {
            while !taken.insert(name.clone()) {
                name.push_str("-wake");
            }
            name
        };
        let mut names = Vec::new();
        for task in &set.tasks {
            names.push(match task.trigger() {
                None => Vec::new(),
                Some(trigger) if waits_for_all(trigger) => {
                    let sources = trigger.sources.iter();
                    let of = |source: &TaskId| &set.tasks[source.index()].name;
                    let each = sources.map(|source| format!("{}:{}", task.name, of(source)));
                    each.map(&mut take).collect()
                }
                Some(_) => vec![take(task.name.clone())],
            });
        }
        Self { set, names }
    }

    /// How the thread of the task waits for its next job, in order; nothing if its jobs arrive by time.
    pub(super) fn waits(&self, task: TaskId) -> Vec<Event> {
        let Some(trigger) = self.set.tasks[task.index()].trigger() else {
            return Vec::new();
        };
        let key = match suspends(trigger) {
            true => "suspend",
            false => "sem_wait",
        };
        let names = self.names[task.index()].iter();
        names.map(|name| (key, name.clone())).collect()
    }

    /// How a job of `source` triggers `target`; `None` if it does not.
    pub(super) fn wake(&self, source: TaskId, target: TaskId) -> Option<Event> {
        let trigger = self.set.tasks[target.index()].trigger()?;
        let place = trigger.sources.iter().position(|it| *it == source)?;
        let names = &self.names[target.index()];
        let name = match waits_for_all(trigger) {
            true => names[place].clone(),
            false => names[0].clone(),
        };
        match suspends(trigger) {
            true => Some(("resume", name)),
            false => Some(("sem_post", name)),
        }
    }
}

fn waits_for_all(trigger: &Trigger) -> bool {
    trigger.join == Join::All && trigger.sources.len() > 1
}

fn suspends(trigger: &Trigger) -> bool {
    trigger.queue == Some(0) && !waits_for_all(trigger)
}
