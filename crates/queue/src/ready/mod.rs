//! Ready queues: jobs that wait for a CPU, most urgent first. One file per implementation; [`QueueKind`] lists
//! them.

mod binary;
mod coarse;
mod entry;
mod fine;
mod hierarchical;
mod list;
mod published;

pub use binary::Binary;
pub use coarse::Coarse;
pub use fine::Fine;
pub use hierarchical::Hierarchical;
pub use list::List;
pub use published::Published;

use crate::heap::Heap;
use crate::job::{Job, Key};

/// A priority queue that several CPUs use at once, in strict order.
///
/// Each call takes effect at one moment between its start and its end (the queue is linearizable), and no call
/// returns a job while a more urgent one waits. `cpu` is the number of the calling CPU, from 0. No call allocates.
pub trait ReadyQueue<K: Key>: Sync {
    /// Inserts a job.
    fn insert(&self, cpu: usize, job: Job<K>);

    /// Inserts all jobs of the heap at one moment.
    ///
    /// Exception: [`Fine`] inserts them one after the other.
    fn merge(&self, cpu: usize, batch: Heap<K>);

    /// Takes the most urgent job. `None` if there is none.
    fn take(&self, cpu: usize) -> Option<Job<K>>;

    /// Takes the most urgent job if it precedes `limit`: the decision to preempt and the preempting job in one
    /// call. `None` if there is no such job.
    fn take_if_before(&self, cpu: usize, limit: &K) -> Option<Job<K>>;
}

/// A queue that is chosen at run time.
impl<K: Key, Q: ReadyQueue<K> + ?Sized> ReadyQueue<K> for Box<Q>
where
    Self: Sync,
{
    fn insert(&self, cpu: usize, job: Job<K>) {
        (**self).insert(cpu, job);
    }

    fn merge(&self, cpu: usize, batch: Heap<K>) {
        (**self).merge(cpu, batch);
    }

    fn take(&self, cpu: usize) -> Option<Job<K>> {
        (**self).take(cpu)
    }

    fn take_if_before(&self, cpu: usize, limit: &K) -> Option<Job<K>> {
        (**self).take_if_before(cpu, limit)
    }
}

/// The implementations of ready queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// [`List`].
    List,
    /// [`Binary`].
    Binary,
    /// [`Coarse`].
    Coarse,
    /// [`Hierarchical`].
    Hierarchical,
    /// [`Fine`].
    Fine,
    /// [`Published`].
    Published,
}

/// All of them.
pub const QUEUE_KINDS: [QueueKind; 6] = [
    QueueKind::List,
    QueueKind::Binary,
    QueueKind::Coarse,
    QueueKind::Hierarchical,
    QueueKind::Fine,
    QueueKind::Published,
];

impl QueueKind {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Binary => "binary",
            Self::Coarse => "coarse",
            Self::Hierarchical => "hierarchical",
            Self::Fine => "fine",
            Self::Published => "published",
        }
    }

    /// An empty queue for the CPUs `0..cpus` and the tasks `0..tasks`, each of which is in it at most once.
    #[must_use]
    pub fn build<K: Key + 'static>(
        self,
        cpus: usize,
        tasks: usize,
    ) -> Box<dyn ReadyQueue<K> + Send> {
        match self {
            Self::List => Box::new(List::new()),
            Self::Binary => Box::new(Binary::new(tasks)),
            Self::Coarse => Box::new(Coarse::new()),
            Self::Hierarchical => Box::new(Hierarchical::new(cpus)),
            Self::Fine => Box::new(Fine::new(tasks)),
            Self::Published => Box::new(Published::new(tasks)),
        }
    }
}
