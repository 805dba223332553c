//! A job in a queue: its key and its task.

/// The urgency of a job: the smaller key goes first.
///
/// Keys in one queue must be distinct; the order of two equal keys is unspecified.
pub trait Key: Copy + Ord + Send + Sync {
    /// The most significant part of the key: of two keys the smaller one never has the larger prefix.
    ///
    /// It may be coarse, even constant; a comparison that the prefix decides needs no lock.
    fn prefix(self) -> u64;
}

/// The rank of a job under earliest deadline first: the earlier deadline, then the earlier release, then
/// the lower task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// Absolute deadline of the job, in nanoseconds.
    pub deadline_ns: u64,
    /// Release of the job, in nanoseconds.
    pub release_ns: u64,
    /// Task of the job.
    pub task: u32,
}

impl Key for Rank {
    fn prefix(self) -> u64 {
        self.deadline_ns
    }
}

impl Key for u64 {
    fn prefix(self) -> u64 {
        self
    }
}

/// A job, owned by the queue in which it waits or by the caller that took it out.
///
/// It is also the node of heaps and lists, so that moving it between queues allocates nothing, and it
/// cannot be in two of them. Each task has one for its whole lifetime and gives it a new key for each
/// release.
#[derive(Debug)]
pub struct Job<K>(pub(crate) Box<Node<K>>);

/// A node of a heap or list. Outside of them it has neither child nor sibling, and degree 0.
#[derive(Debug)]
pub(crate) struct Node<K> {
    pub(crate) key: K,
    pub(crate) task: u32,
    pub(crate) degree: u32,
    pub(crate) child: Option<Box<Node<K>>>,
    pub(crate) sibling: Option<Box<Node<K>>>,
}

impl<K: Copy> Job<K> {
    /// The job of a task; tasks are numbered from 0.
    #[must_use]
    pub fn new(key: K, task: u32) -> Self {
        Self(Box::new(Node {
            key,
            task,
            degree: 0,
            child: None,
            sibling: None,
        }))
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> K {
        self.0.key
    }

    /// Makes it the next job of its task.
    pub fn set_key(&mut self, key: K) {
        self.0.key = key;
    }

    /// Its task.
    #[must_use]
    pub fn task(&self) -> u32 {
        self.0.task
    }
}
