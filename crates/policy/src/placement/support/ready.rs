//! What policies remember of tasks and their ready jobs: one table of tasks, and heaps of
//! backlogged jobs.

use alloc::vec::Vec;
use core::marker::PhantomData;

use shiftwork_model::{CpuId, Instant, Job, Priority, TaskId};

use crate::order::Ranking;

/// Where the job of a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is no ready job.
    NotReady,
    /// Ready and not assigned to a CPU.
    Backlogged,
    /// Assigned to this CPU.
    Assigned(CpuId),
}

/// A task as its policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct TaskEntry {
    /// The task's current or latest job, with the task's current priority.
    pub job: Job,
    /// Where the job stands.
    pub status: Status,
    /// The CPU that last had a job of the task.
    pub last_cpu: Option<CpuId>,
}

impl TaskEntry {
    /// The task's job is this one from now on.
    ///
    /// Field by field: machines write an event's job so too, and a processor waits where what was
    /// just written in parts is read as a whole.
    #[inline]
    pub fn set_job(&mut self, job: Job) {
        debug_assert_eq!(self.job.task, job.task);
        self.job.ready = job.ready;
        self.job.deadline = job.deadline;
        self.job.priority = job.priority;
    }
}

/// All tasks, by index.
#[derive(Clone, Debug, Default)]
pub struct TaskTable {
    entries: Vec<TaskEntry>,
}

impl TaskTable {
    /// Makes room for the task, without a ready job and starting at `last_cpu`.
    pub fn enter(&mut self, task: TaskId, last_cpu: Option<CpuId>) {
        while self.entries.len() <= task.index() {
            let job = Job {
                task: TaskId::from_index(self.entries.len()),
                ready: Instant::ZERO,
                deadline: Instant::ZERO,
                priority: Priority::LEAST_URGENT,
            };
            self.entries.push(TaskEntry {
                job,
                status: Status::NotReady,
                last_cpu: None,
            });
        }
        self.entries[task.index()].last_cpu = last_cpu;
    }

    /// Number of tasks, known or skipped.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The task's job stands here; an unknown task has no ready job.
    #[inline]
    pub fn status(&self, task: TaskId) -> Status {
        self.entries
            .get(task.index())
            .map_or(Status::NotReady, |entry| entry.status)
    }

    /// The entry of a known task.
    #[inline]
    pub fn get(&self, task: TaskId) -> &TaskEntry {
        &self.entries[task.index()]
    }

    /// The entry of a known task, to change.
    #[inline]
    pub fn get_mut(&mut self, task: TaskId) -> &mut TaskEntry {
        &mut self.entries[task.index()]
    }
}

/// Not in any heap.
const NOWHERE: u32 = u32::MAX;

/// Where each task's job stands in the one heap that holds it, by task index.
#[derive(Clone, Debug, Default)]
pub struct HeapPositions(Vec<u32>);

impl HeapPositions {
    /// Makes room for the task.
    pub fn enter(&mut self, task: TaskId) {
        if self.0.len() <= task.index() {
            self.0.resize(task.index() + 1, NOWHERE);
        }
    }

    /// Number of tasks with room.
    pub const fn tasks(&self) -> usize {
        self.0.len()
    }

    /// The heap that held the task's job is gone.
    pub fn forget(&mut self, task: TaskId) {
        self.0[task.index()] = NOWHERE;
    }
}

/// Backlogged jobs, the most urgent on top: a heap of four children per node, whose entries know
/// their place so that any of them can be taken out. A task's job is in at most one heap.
#[derive(Clone, Debug)]
pub struct Backlog<O: Ranking> {
    keys: Vec<O::Key>,
    order: PhantomData<O>,
}

impl<O: Ranking> Default for Backlog<O> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            order: PhantomData,
        }
    }
}

impl<O: Ranking> Backlog<O> {
    /// Makes room, so that up to `jobs` jobs can be pushed without allocation.
    pub fn reserve(&mut self, jobs: usize) {
        self.keys.reserve(jobs.saturating_sub(self.keys.len()));
    }

    /// The most urgent job's key, [`Ranking::LAST`] if there is none.
    #[inline]
    pub fn top(&self) -> O::Key {
        self.keys.first().copied().unwrap_or(O::LAST)
    }

    /// Whether nothing is backlogged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds a job.
    pub fn push(&mut self, key: O::Key, positions: &mut HeapPositions) {
        self.keys.push(key);
        self.rise(self.keys.len() - 1, key, positions);
    }

    /// Takes a task's job out; one that is not here changes nothing.
    pub fn remove(&mut self, task: TaskId, positions: &mut HeapPositions) {
        let place = positions.0[task.index()];
        if place == NOWHERE {
            return;
        }
        positions.0[task.index()] = NOWHERE;
        let place = place as usize;
        let moved = self.keys.pop().expect("a job with a place is in the heap");
        if place == self.keys.len() {
            return;
        }
        if place > 0 && moved < self.keys[(place - 1) / 4] {
            self.rise(place, moved, positions);
        } else {
            self.sink(place, moved, positions);
        }
    }

    fn rise(&mut self, mut place: usize, key: O::Key, positions: &mut HeapPositions) {
        while place > 0 {
            let parent = (place - 1) / 4;
            if self.keys[parent] <= key {
                break;
            }
            self.put(place, self.keys[parent], positions);
            place = parent;
        }
        self.put(place, key, positions);
    }

    fn sink(&mut self, mut place: usize, key: O::Key, positions: &mut HeapPositions) {
        loop {
            let first = 4 * place + 1;
            let children = first..self.keys.len().min(first + 4);
            let Some(child) = children.min_by_key(|&child| self.keys[child]) else {
                break;
            };
            if key <= self.keys[child] {
                break;
            }
            self.put(place, self.keys[child], positions);
            place = child;
        }
        self.put(place, key, positions);
    }

    #[inline]
    fn put(&mut self, place: usize, key: O::Key, positions: &mut HeapPositions) {
        self.keys[place] = key;
        positions.0[O::task(&key).index()] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Edf;
    use shiftwork_model::RandomStream;

    #[test]
    fn the_top_is_the_most_urgent_whatever_was_pushed_and_removed() {
        for seed in 1..=50 {
            let mut random = RandomStream::new(seed, 0, 0);
            let mut heap = Backlog::<Edf>::default();
            let mut positions = HeapPositions::default();
            positions.enter(TaskId::from_index(29));
            let mut plain: Vec<<Edf as Ranking>::Key> = Vec::new();
            for step in 0..300 {
                let task = TaskId::from_index(random.below(30) as usize);
                match plain.iter().position(|key| key.2 == task) {
                    Some(place) => {
                        plain.swap_remove(place);
                        heap.remove(task, &mut positions);
                    }
                    None => {
                        let deadline = Instant::from_ns(random.below(9));
                        plain.push((deadline, Instant::ZERO, task));
                        heap.push((deadline, Instant::ZERO, task), &mut positions);
                    }
                }
                let expected = plain.iter().min().copied().unwrap_or(Edf::LAST);
                assert_eq!(heap.top(), expected, "seed {seed}, step {step}");
            }
        }
    }
}
