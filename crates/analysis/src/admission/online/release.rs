//! Releasing capacity, and granting it to waiting tasks.

use shiftwork_model::{Instant, TaskId};

use super::super::books::{Books, Line};
use super::super::lingering::{Former, aftermath, is_linear};
use super::super::{Claim, Guarantee};
use super::{Admitted, Entry};
use crate::Steps;

impl Admitted {
    /// What lingered long enough counts no more.
    pub(super) fn release(&mut self) {
        let now = self.now;
        let entries = self.entries.values().flat_map(|entry| &entry.former);
        let departed = self.departed.iter().flat_map(|departed| &departed.former);
        let all = entries.chain(departed);
        let due: Vec<Former> = all.filter(|former| former.until <= now).cloned().collect();
        if due.is_empty() {
            return;
        }
        let over: Vec<(TaskId, Instant)> = due
            .iter()
            .filter(|former| self.is_over(former))
            .map(|former| (former.claim.task, former.until))
            .collect();
        let is_over = |former: &Former| over.contains(&(former.claim.task, former.until));
        let mut changed: Vec<TaskId> = Vec::new();
        for (&task, entry) in &mut self.entries {
            let before = entry.former.len();
            entry.former.retain(|former| !is_over(former));
            if entry.former.len() != before {
                changed.push(task);
            }
        }
        for task in changed {
            self.freed = true;
            self.rebook(task);
        }
        for mut departed in std::mem::take(&mut self.departed) {
            let before = departed.former.len();
            departed.former.retain(|former| !is_over(former));
            if departed.former.len() != before {
                self.freed = true;
                self.books.remove(departed.task, &departed.line);
                departed.line = Line::of(departed.stay(), self.terms, &self.online);
                self.books.add(departed.task, &departed.line);
            }
            if !departed.former.is_empty() {
                self.departed.push(departed);
            }
        }
    }

    /// Whether nothing depends any more on a claim whose instant is past.
    pub(super) fn is_over(&self, former: &Former) -> bool {
        let held = self.entries.values().filter_map(Entry::held);
        let entries = self.entries.values().flat_map(|entry| &entry.former);
        let departed = self.departed.iter().flat_map(|departed| &departed.former);
        let others: Vec<&Former> = entries.chain(departed).collect();
        let lingering = others.iter().map(|other| &other.claim);
        if is_linear(self.terms, held.clone().chain(lingering)) {
            return true;
        }
        let others = others
            .into_iter()
            .map(|other| (&other.claim, other.until > former.until));
        let counted: Vec<(&Claim, bool)> = held.map(|claim| (claim, true)).chain(others).collect();
        let more = aftermath(former, &counted, &self.online, self.terms);
        former.until + more <= self.now
    }

    /// Nothing lingers any more, since there is no room for it.
    pub(super) fn forget_former(&mut self) {
        for entry in self.entries.values_mut() {
            entry.former.clear();
        }
        self.departed.clear();
    }

    /// Grants reservations to waiting tasks that fit, in the order of their last grants.
    pub(super) fn regain(&mut self) -> Vec<(TaskId, Guarantee)> {
        let waiting = self.entries.iter();
        let waiting = waiting.filter(|(_, entry)| entry.promise.is_none());
        let mut waiting: Vec<(u64, TaskId)> =
            waiting.map(|(&task, entry)| (entry.since, task)).collect();
        waiting.sort_unstable();
        let mut regained = Vec::new();
        for (_, task) in waiting {
            let claim = self.entries[&task].claim.clone();
            if let Ok(promise) = self.weigh(&claim, &mut Steps::ordinary()) {
                self.grant(claim, promise, self.now);
                regained.push((task, promise));
            }
        }
        regained
    }

    /// The books say of the task what is.
    pub(super) fn rebook(&mut self, task: TaskId) {
        if let Some(entry) = self.entries.get_mut(&task) {
            let line = Line::of(entry.stay(), self.terms, &self.online);
            self.books.remove(task, &entry.line);
            self.books.add(task, &line);
            entry.line = line;
        }
    }

    pub(super) fn rebook_all(&mut self) {
        self.books = Books::default();
        for (&task, entry) in &mut self.entries {
            entry.line = Line::of(entry.stay(), self.terms, &self.online);
            self.books.add(task, &entry.line);
        }
        for departed in &mut self.departed {
            departed.line = Line::of(departed.stay(), self.terms, &self.online);
            self.books.add(departed.task, &departed.line);
        }
    }
}
