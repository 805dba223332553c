//! What holds the mutexes for which a job waits, and what executes instead of the holders.

use shiftwork_model::{CpuSet, NotReadyReason, ResourceId, TaskId};

use super::Walk;
use super::waiting::own;
use crate::explain::mutex_wait::Held;
use crate::explain::timeline::Occupant;

impl Walk<'_> {
    /// The mutex for which the job of the task waits now, spinning or not, with its holder; then the mutex for which the
    /// holder waits itself, and so on. Empty if the job waits for none, or the holder is unknown.
    pub(super) fn held_mutexes(&self, index: usize) -> Vec<Held> {
        let mut held: Vec<Held> = Vec::new();
        let mut task = TaskId::from_index(index);
        // Each holder once: in a deadlock they form a circle.
        while let Some(mutex) = self.awaited(task)
            && let Some(&holder) = self.holders.get(&mutex)
            && !held.iter().any(|it| it.holder == holder)
        {
            let instead = self.instead_of(holder);
            held.push(Held {
                mutex,
                holder,
                instead,
            });
            task = holder;
        }
        held
    }

    fn awaited(&self, task: TaskId) -> Option<ResourceId> {
        let history = self.histories.get(task.index())?;
        match history.reason {
            Some(NotReadyReason::Blocked(mutex)) => Some(mutex),
            _ => history.spins,
        }
    }

    /// The tasks on the CPUs that the policy lets this one use, if its job is ready and has none.
    fn instead_of(&self, task: TaskId) -> Option<Vec<TaskId>> {
        if !self.state.tasks.get(task.index())?.waits() {
            return None;
        }
        let cpus = own(self, task) & CpuSet::first(self.state.cpus());
        let tasks = cpus.iter().filter_map(|cpu| match self.occupant(cpu) {
            Occupant::Job(job) => Some(job.task),
            _ => None,
        });
        Some(tasks.collect())
    }
}
