//! What triggers do, by the definition.

use std::collections::VecDeque;

use shiftwork_model::{Join, TaskId, TaskSet};

use super::Definition;

/// Of each triggered task, by source, or for all sources together: the instants of the triggers whose jobs have not begun.
pub(super) type Waiting = Vec<Vec<VecDeque<u64>>>;

pub(super) fn waiting(set: &TaskSet) -> Waiting {
    let places = |task: &shiftwork_model::Task| match task.trigger() {
        None => 0,
        Some(trigger) => match trigger.join {
            Join::Any => 1,
            Join::All => trigger.sources.len(),
        },
    };
    let tasks = set.tasks.iter();
    tasks
        .map(|task| vec![VecDeque::new(); places(task)])
        .collect()
}

impl Definition<'_> {
    /// A job of the task has completed: it triggers those that it has not triggered before.
    pub(super) fn trigger_others(&mut self, task: usize) {
        let source = TaskId::from_index(task);
        for (target, of) in self.set.iter() {
            let sources = of.trigger().map_or(&[][..], |it| &it.sources);
            let mut earlier = self.set.tasks[task].triggers();
            if sources.contains(&source) && !earlier.any(|it| it == target) {
                self.fired.push((task, target.index()));
            }
        }
    }

    /// Delivers what was triggered in this round.
    pub(super) fn deliver_all(&mut self, now: u64) {
        for (source, target) in std::mem::take(&mut self.fired) {
            let is_kept = self.deliver(source, target, now);
            self.triggers.push((now, source, target, !is_kept));
        }
    }

    fn deliver(&mut self, source: usize, target: usize, now: u64) -> bool {
        let trigger = self.set.tasks[target].trigger().unwrap().clone();
        let place = match trigger.join {
            Join::Any => 0,
            Join::All => trigger
                .sources
                .iter()
                .position(|it| it.index() == source)
                .unwrap(),
        };
        // Pending jobs but the first have their triggers waiting.
        let pending = self.jobs[target].len().saturating_sub(1);
        let waiting = &mut self.waiting[target];
        waiting[place].push_back(now);
        let is_idle = self.jobs[target].is_empty();
        let releases = waiting.iter().all(|place| place.len() > pending);
        let limit = trigger.queue.map_or(usize::MAX, |limit| limit as usize);
        if waiting[place].len() > limit && !(is_idle && releases) {
            waiting[place].pop_back();
            return false;
        }
        if releases {
            self.release(target, now);
        }
        true
    }
}
