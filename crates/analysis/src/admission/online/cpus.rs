//! CPU hotplug, the only event that breaks promises.

use shiftwork_model::{CpuId, TaskId};

use super::super::Decision;
use super::{Admitted, Entry, Loss, Returned};
use crate::Witness;

impl Admitted {
    /// A CPU is gone. Tasks that no longer fit lose their reservations: among the tasks that
    /// together need too much, the one that was admitted or changed last, repeated until the rest
    /// fit. Others may keep theirs with a weaker guarantee. Claims that linger there are dropped
    /// first.
    pub fn cpu_offline(&mut self, cpu: CpuId) -> Vec<Loss> {
        self.online.remove(cpu);
        let mut losses = Vec::new();
        let mut may_linger = true;
        // Each round but one takes a reservation, so there are at most as many as tasks.
        loop {
            let decision = self.decision();
            if !decision.fits && std::mem::take(&mut may_linger) {
                self.forget_former();
                continue;
            }
            match self.last_come(&decision) {
                Some(task) => {
                    self.entries
                        .entry(task)
                        .and_modify(|entry| entry.promise = None);
                    losses.push(Loss {
                        task,
                        left: None,
                        reason: format!("CPU {cpu} is gone: {}", decision.reason),
                    });
                }
                None => {
                    losses.extend(self.weaken(&decision, &format!("CPU {cpu} is gone")));
                    self.rebook_all();
                    return losses;
                }
            }
        }
    }

    /// A CPU is back. Waiting tasks that fit now get their reservations, in the order of their last
    /// grants. Affinities that were equal without the CPU may differ with it, so that less can be
    /// shown of the tasks that hold a reservation: no task loses it, but a guarantee may be weaker.
    pub fn cpu_online(&mut self, cpu: CpuId) -> Returned {
        self.online.insert(cpu);
        self.rebook_all();
        let decision = self.decision();
        let losses = self.weaken(&decision, &format!("CPU {cpu} is back"));
        let regained = self.regain();
        Returned { regained, losses }
    }

    /// The task that has to go if the demand does not fit.
    pub(super) fn last_come(&self, decision: &Decision) -> Option<TaskId> {
        if decision.fits {
            return None;
        }
        let held = |task: &TaskId| self.promise(*task).is_some();
        let involved: Vec<TaskId> = match &decision.witness {
            Some(Witness::Crowd { tasks, .. }) => tasks.clone(),
            Some(
                Witness::NoTask { task }
                | Witness::Alone { task, .. }
                | Witness::TooLong { task, .. }
                | Witness::Nowhere { task }
                | Witness::Blocked { task, .. }
                | Witness::Late { task, .. },
            ) => vec![*task],
            Some(Witness::Interval { cpu, .. }) => {
                let there = |entry: &&Entry| entry.claim.cpus.contains(*cpu);
                let there = self.entries.values().filter(there);
                there.map(|entry| entry.claim.task).collect()
            }
            None => self.entries.keys().copied().collect(),
        };
        let since = |task: &TaskId| self.entries[task].since;
        involved.into_iter().filter(held).max_by_key(since)
    }

    /// Lowers the promises that the decision no longer keeps.
    pub(super) fn weaken(&mut self, decision: &Decision, why: &str) -> Vec<Loss> {
        let mut losses = Vec::new();
        for &(task, now) in &decision.tasks {
            let Some(entry) = self.entries.get_mut(&task) else {
                continue;
            };
            if entry.promise.is_some_and(|promise| promise > now) {
                entry.promise = Some(now);
                losses.push(Loss {
                    task,
                    left: Some(now),
                    reason: format!("{why}: {}", decision.reason),
                });
            }
        }
        losses
    }
}
