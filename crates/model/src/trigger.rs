//! Tasks that other tasks trigger: what releases their jobs, and how often.

use alloc::vec::Vec;

use crate::chain::Chain;
use crate::task::{Arrival, Join, Phase, Task, TaskId, Trigger};
use crate::taskset::TaskSet;
use crate::time::Span;

impl Trigger {
    /// How many queues its triggers have: under [`Join::All`] one for each source, otherwise one for all together.
    pub const fn places(&self) -> usize {
        match self.join {
            Join::Any => 1,
            Join::All => self.sources.len(),
        }
    }

    /// In which of these queues triggers by this source are; 0 if it is none.
    pub fn place(&self, source: TaskId) -> usize {
        let place = match self.join {
            Join::Any => None,
            Join::All => self.sources.iter().position(|id| *id == source),
        };
        place.unwrap_or(0)
    }
}

impl Task {
    /// What triggers the task's jobs; `None` if they arrive by time.
    pub const fn trigger(&self) -> Option<&Trigger> {
        match &self.arrival {
            Arrival::Triggered(trigger) => Some(trigger),
            Arrival::Periodic | Arrival::Sporadic | Arrival::Curve(..) | Arrival::Releases(_) => {
                None
            }
        }
    }

    /// The tasks that its jobs trigger before they complete, in the order of its phases, with repetitions.
    pub fn triggers(&self) -> impl Iterator<Item = TaskId> {
        self.phases().iter().filter_map(|phase| match phase {
            Phase::Trigger(task) => Some(*task),
            _ => None,
        })
    }
}

impl Chain {
    /// Whether each task of the chain is triggered by the one before.
    pub fn is_triggered(&self, set: &TaskSet) -> bool {
        self.tasks.windows(2).all(|pair| {
            let after = set.tasks.get(pair[1].index()).and_then(Task::trigger);
            after.is_some_and(|trigger| trigger.sources.contains(&pair[0]))
        })
    }
}

impl TaskSet {
    /// The first task that others trigger.
    pub fn first_triggered(&self) -> Option<&Task> {
        self.tasks.iter().find(|task| task.trigger().is_some())
    }

    /// The tasks that a job of `source` triggers when it completes.
    pub fn triggered_at_completion(&self, source: TaskId) -> impl Iterator<Item = TaskId> {
        let is_target = move |task: &Task| {
            let trigger = task.trigger();
            trigger.is_some_and(|trigger| trigger.sources.contains(&source))
        };
        let targets = self.iter().filter(move |(_, task)| is_target(task));
        let earlier = move |id: &TaskId| {
            let mut triggers = self.tasks[source.index()].triggers();
            triggers.any(|other| other == *id)
        };
        targets.map(|(id, _)| id).filter(move |id| !earlier(id))
    }

    /// How often each job of `source` triggers `target`, of which it must be a source.
    pub fn triggers_per_job(&self, source: TaskId, target: TaskId) -> u64 {
        let triggers = self.tasks[source.index()].triggers();
        let written = triggers.filter(|other| *other == target).count();
        u64::try_from(written).unwrap_or(u64::MAX).max(1)
    }

    /// The mean separation of the arrivals of a triggered task if those of its sources are their [mean periods](Task::mean_period)
    /// apart, rounded down, at least a nanosecond: of one source its period, under [`Join::All`] the longest, under
    /// [`Join::Any`] the rates of all add up. `None` if the task arrives by time.
    pub fn triggered_period(&self, target: TaskId) -> Option<Span> {
        let trigger = self.tasks[target.index()].trigger()?;
        let each = trigger.sources.iter().map(|&source| {
            let period = self.tasks[source.index()].mean_period().as_ns();
            (period / self.triggers_per_job(source, target)).max(1)
        });
        let together = |a: u64, b: u64| {
            let (a, b) = (u128::from(a), u128::from(b));
            u64::try_from(a * b / (a + b)).unwrap_or(u64::MAX).max(1)
        };
        let period = match trigger.join {
            Join::Any => each.reduce(together),
            Join::All => each.max(),
        };
        period.map(Span::from_ns)
    }

    /// The tasks so that each follows all that trigger it.
    ///
    /// # Errors
    /// Tasks that trigger one another in a circle, each the next, the last the first.
    pub fn trigger_order(&self) -> Result<Vec<TaskId>, Vec<TaskId>> {
        let mut order = Vec::with_capacity(self.tasks.len());
        let mut is_done = alloc::vec![false; self.tasks.len()];
        for (id, _) in self.iter() {
            // The tasks on the way from one task to one of its sources, each with the number of sources seen.
            let mut path = alloc::vec![(id, 0)];
            while let Some((task, seen)) = path.last_mut() {
                let task = *task;
                let sources = self.tasks[task.index()].trigger();
                let source = sources.and_then(|it| it.sources.get(*seen));
                *seen += 1;
                match source {
                    Some(source) if is_done[source.index()] => {}
                    Some(&source) => {
                        if let Some(at) = path.iter().position(|(on_path, _)| *on_path == source) {
                            let mut circle: Vec<TaskId> =
                                path[at..].iter().map(|(task, _)| *task).collect();
                            circle.reverse();
                            return Err(circle);
                        }
                        path.push((source, 0));
                    }
                    None => {
                        if !is_done[task.index()] {
                            is_done[task.index()] = true;
                            order.push(task);
                        }
                        path.pop();
                    }
                }
            }
        }
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::Affinity;
    use crate::cpu::CpuId;
    use crate::task::Work;

    const ID: fn(usize) -> TaskId = TaskId::from_index;

    /// Tasks with these periods in milliseconds and these sources.
    fn set(tasks: &[(u64, &[usize])], join: Join) -> TaskSet {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let tasks = tasks.iter().map(|&(period, sources)| {
            let period = Span::from_ms(period);
            let mut task = Task::periodic("t", Span::from_us(1), period, cpu);
            if !sources.is_empty() {
                task.arrival = Arrival::Triggered(Trigger {
                    sources: sources.iter().map(|&index| ID(index)).collect(),
                    join,
                    queue: None,
                });
            }
            task
        });
        TaskSet::new("", 1, tasks.collect())
    }

    #[test]
    fn order_has_sources_first_and_circles_are_found() {
        let sources: [(u64, &[usize]); 4] = [(1, &[2, 3]), (1, &[]), (1, &[3]), (1, &[1])];
        let order = set(&sources, Join::Any).trigger_order();
        assert_eq!(order, Ok([1, 3, 2, 0].map(ID).to_vec()));
        let sources: [(u64, &[usize]); 4] = [(1, &[1]), (1, &[2]), (1, &[3]), (1, &[1])];
        let circle = set(&sources, Join::Any).trigger_order();
        assert_eq!(circle, Err([3, 2, 1].map(ID).to_vec()));
    }

    #[test]
    fn periods_follow_from_the_sources() {
        let tasks: [(u64, &[usize]); 3] = [(10, &[]), (15, &[]), (1, &[0, 1])];
        for (join, period) in [(Join::Any, 6), (Join::All, 15)] {
            let mut set = set(&tasks, join);
            assert_eq!(set.triggered_period(ID(2)), Some(Span::from_ms(period)));
            assert_eq!(set.triggered_period(ID(1)), None);
            let run = Phase::Run(Span::from_us(1));
            set.tasks[1].work = Work::Phases([run, Phase::Trigger(ID(2)), run].to_vec());
            assert_eq!(set.triggers_per_job(ID(1), ID(2)), 1);
            assert_eq!(set.triggered_at_completion(ID(1)).count(), 0);
            assert!(set.triggered_at_completion(ID(0)).eq([ID(2)]));
        }
    }
}
