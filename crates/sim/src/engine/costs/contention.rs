//! Contention for the locks of a ready queue.
//!
//! An operation begins on a CPU at some instant, waits until every lock that it needs is free for as long as
//! it needs it, and ends after its length, `enqueue` or `dequeue`. The CPU does nothing else meanwhile. Locks
//! are reserved in the order of decisions: an operation decided at a later instant gets a lock before an earlier
//! reservation only if it fits into a gap.
//!
//! | queue | an operation holds | released together |
//! |---|---|---|
//! | coarse | the one lock, all the time | one merge |
//! | hierarchical | to enqueue: the lock of the CPU's queue, and the master's if the queue has another minimum then; to dequeue: the master's, and that of the queue with the job | one merge |
//! | fine | the root, for its share of the length: a part for each level of a heap of all tasks, rounded up | one insertion each |

use std::collections::BTreeSet;

use shiftwork_model::{CpuId, Instant, ReadyQueue, Span, TaskId};

use super::lock::{Lock, first_free_of_all};

/// The rank of a job in a queue.
pub(super) type Key = (Instant, TaskId);

/// The last insertion of a task's job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// The CPU that enqueued it; `None` before the first time.
    pub(super) by: Option<CpuId>,
    /// The end of the insertion: from then on other CPUs can take the job.
    pub(super) since: Instant,
    /// Its rank, while it is in the queue.
    key: Option<Key>,
}

/// The durations of operations on the ready queue, from begin to end: the waits for locks, and the operation's own
/// length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueUse {
    /// Operations that enqueued jobs; a merge counts as one.
    pub enqueues: Vec<Span>,
    /// Operations that took a job.
    pub dequeues: Vec<Span>,
}

/// The ready queue of all tasks.
#[derive(Debug)]
pub(super) struct Contention {
    /// `None` if it is not measured.
    pub(super) used: Option<QueueUse>,
    enqueue: Span,
    dequeue: Span,
    queue: Queue,
    entries: Vec<Entry>,
}

#[derive(Debug)]
enum Queue {
    Coarse(Lock),
    Hierarchical {
        master: Lock,
        /// By CPU.
        locks: Vec<Lock>,
        /// By CPU, the jobs that it enqueued.
        jobs: Vec<BTreeSet<Key>>,
    },
    Fine {
        root: Lock,
        levels: u64,
    },
}

/// The lengths of operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) enqueue: Span,
    pub(super) dequeue: Span,
}

impl Contention {
    pub(super) fn new(kind: ReadyQueue, lengths: Lengths, cpus: usize, tasks: usize) -> Self {
        let queue = match kind {
            ReadyQueue::Coarse => Queue::Coarse(Lock::default()),
            ReadyQueue::Hierarchical => Queue::Hierarchical {
                master: Lock::default(),
                locks: vec![Lock::default(); cpus],
                jobs: vec![BTreeSet::new(); cpus],
            },
            ReadyQueue::Fine => Queue::Fine {
                root: Lock::default(),
                levels: u64::from(tasks.max(1).ilog2()) + 1,
            },
        };
        Self {
            used: None,
            enqueue: lengths.enqueue,
            dequeue: lengths.dequeue,
            queue,
            entries: vec![Entry::default(); tasks],
        }
    }

    pub(super) fn entry(&self, task: TaskId) -> Entry {
        self.entries[task.index()]
    }

    /// Whether jobs that are released together are one operation.
    pub(super) fn merges(&self) -> bool {
        !matches!(self.queue, Queue::Fine { .. })
    }

    /// The CPU enqueues these jobs, beginning at `begin`, which is not before `now`; returns the end.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        begin: Instant,
        cpu: CpuId,
        keys: &[Key],
    ) -> Instant {
        for &(_, task) in keys {
            self.forget(task);
        }
        let length = self.enqueue;
        let end = match &mut self.queue {
            Queue::Coarse(lock) => hold(&mut [lock], (now, begin), length),
            Queue::Fine { root, levels } => pass(root, *levels, (now, begin), length),
            Queue::Hierarchical {
                master,
                locks,
                jobs,
            } => {
                let (own, lock) = (&mut jobs[cpu.index()], &mut locks[cpu.index()]);
                let before = own.first().copied();
                own.extend(keys);
                if own.first().copied() == before {
                    hold(&mut [lock], (now, begin), length)
                } else {
                    hold(&mut [lock, master], (now, begin), length)
                }
            }
        };
        if let Some(used) = &mut self.used {
            used.enqueues.push(end.late_since(begin));
        }
        for &key in keys {
            self.entries[key.1.index()] = Entry {
                by: Some(cpu),
                since: end,
                key: Some(key),
            };
        }
        end
    }

    /// The task's job is taken, beginning at `begin`, which is not before `now`; returns the end. A job that
    /// migrates without having waited is in no queue.
    pub(super) fn dequeue(&mut self, now: Instant, begin: Instant, task: TaskId) -> Instant {
        let Entry {
            by: Some(by),
            key: Some(_),
            ..
        } = self.entry(task)
        else {
            return begin;
        };
        self.forget(task);
        let length = self.dequeue;
        let end = match &mut self.queue {
            Queue::Coarse(lock) => hold(&mut [lock], (now, begin), length),
            Queue::Fine { root, levels } => pass(root, *levels, (now, begin), length),
            Queue::Hierarchical { master, locks, .. } => {
                hold(&mut [master, &mut locks[by.index()]], (now, begin), length)
            }
        };
        if let Some(used) = &mut self.used {
            used.dequeues.push(end.late_since(begin));
        }
        end
    }

    /// Removes the task's job from its queue, if it is in one, at no cost.
    pub(super) fn forget(&mut self, task: TaskId) {
        let entry = &mut self.entries[task.index()];
        let (key, by) = (entry.key.take(), entry.by);
        if let (Queue::Hierarchical { jobs, .. }, Some(key), Some(by)) = (&mut self.queue, key, by)
        {
            jobs[by.index()].remove(&key);
        }
    }
}

/// Holds all of these locks at once for the whole operation.
fn hold(locks: &mut [&mut Lock], (now, begin): (Instant, Instant), length: Span) -> Instant {
    if length.is_zero() {
        return begin;
    }
    let at = first_free_of_all(locks.iter().map(|lock| &**lock), begin, length);
    for lock in locks {
        lock.forget(now);
        lock.hold(at, length);
    }
    at + length
}

/// Holds the root for its share of the operation.
fn pass(root: &mut Lock, levels: u64, (now, begin): (Instant, Instant), length: Span) -> Instant {
    if length.is_zero() {
        return begin;
    }
    let share = Span::from_ns(length.as_ns().div_ceil(levels));
    let at = root.first_free(begin, share);
    root.forget(now);
    root.hold(at, share);
    at + length
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_ns;

    fn cpu(number: usize) -> CpuId {
        CpuId::from_index(number)
    }

    fn id(index: usize) -> TaskId {
        TaskId::from_index(index)
    }

    /// Enqueueing takes 4, dequeueing 6.
    fn queue(kind: ReadyQueue, tasks: usize) -> Contention {
        let lengths = Lengths {
            enqueue: Span::from_ns(4),
            dequeue: Span::from_ns(6),
        };
        Contention::new(kind, lengths, 2, tasks)
    }

    /// The instant at which the CPU has enqueued the task's job of this deadline, beginning at `begin`.
    fn enqueue(queue: &mut Contention, begin: u64, on: usize, task: usize, deadline: u64) -> u64 {
        let keys = [(AT(deadline), id(task))];
        let end = queue.enqueue(AT(0), AT(begin), cpu(on), &keys);
        assert_eq!(queue.entry(id(task)).by, Some(cpu(on)));
        assert_eq!(queue.entry(id(task)).since, end);
        end.as_ns()
    }

    fn dequeue(queue: &mut Contention, begin: u64, task: usize) -> u64 {
        queue.dequeue(AT(0), AT(begin), id(task)).as_ns()
    }

    #[test]
    fn only_a_new_minimum_locks_the_master() {
        let mut queue = queue(ReadyQueue::Hierarchical, 9);
        // Both queues were empty: the updates of the master are sequential.
        assert_eq!(enqueue(&mut queue, 0, 0, 0, 10), 4);
        assert_eq!(enqueue(&mut queue, 0, 1, 1, 20), 8);
        // No new minimum: each has its own lock.
        assert_eq!(enqueue(&mut queue, 10, 0, 2, 30), 14);
        assert_eq!(enqueue(&mut queue, 10, 1, 3, 40), 14);
        assert_eq!(enqueue(&mut queue, 10, 1, 4, 50), 18);
        // A new minimum of one and a dequeue from the other are sequential: both hold the master.
        assert_eq!(dequeue(&mut queue, 20, 0), 26);
        assert_eq!(enqueue(&mut queue, 20, 1, 5, 5), 30);
        // The lock of CPU 0 is free meanwhile for operations that do not need the master.
        assert_eq!(enqueue(&mut queue, 26, 0, 6, 60), 30);
        // The queue of a job is that of the CPU that enqueued it.
        assert_eq!(dequeue(&mut queue, 30, 5), 36);
        assert_eq!(enqueue(&mut queue, 30, 0, 7, 70), 34);
        assert_eq!(enqueue(&mut queue, 30, 1, 8, 80), 40);
    }

    #[test]
    fn dequeued_minimum_no_longer_counts() {
        let mut queue = queue(ReadyQueue::Hierarchical, 3);
        enqueue(&mut queue, 0, 0, 0, 10);
        enqueue(&mut queue, 0, 1, 1, 10);
        queue.forget(id(0));
        // The master is held by CPU 1 until 8, and this is a new minimum.
        assert_eq!(enqueue(&mut queue, 4, 0, 2, 30), 12);
        assert_eq!(dequeue(&mut queue, 20, 0), 20);
    }

    #[test]
    fn operations_on_a_fine_grained_heap_overlap() {
        // Three levels: the root is held for 2 of 4 and for 2 of 6.
        let mut queue = queue(ReadyQueue::Fine, 4);
        assert_eq!(enqueue(&mut queue, 0, 0, 0, 10), 4);
        assert_eq!(enqueue(&mut queue, 0, 1, 1, 20), 6);
        assert_eq!(dequeue(&mut queue, 1, 0), 10);
        assert!(!queue.merges());
    }

    #[test]
    fn operations_on_a_coarse_grained_heap_are_sequential() {
        let mut queue = queue(ReadyQueue::Coarse, 4);
        queue.used = Some(QueueUse::default());
        let keys = [(AT(10), id(0)), (AT(20), id(1))];
        assert_eq!(queue.enqueue(AT(0), AT(0), cpu(0), &keys), AT(4));
        assert_eq!(dequeue(&mut queue, 1, 0), 10);
        assert_eq!(dequeue(&mut queue, 1, 1), 16);
        // It no longer waits.
        assert_eq!(dequeue(&mut queue, 1, 1), 1);
        assert!(queue.merges());
        let spans = |all: &[u64]| all.iter().copied().map(Span::from_ns).collect();
        let used = QueueUse {
            enqueues: spans(&[4]),
            dequeues: spans(&[9, 15]),
        };
        assert_eq!(queue.used, Some(used));
    }
}
