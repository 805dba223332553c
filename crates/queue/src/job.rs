//! A job as queues see it: who is more urgent, and whose it is.

/// How urgent a job is: the smaller key goes first.
///
/// Keys in one queue must be distinct, or which of two equal ones goes first is left open.
pub trait Key: Copy + Ord + Send + Sync {
    /// The most significant part of the key: of two keys the smaller one never has the larger prefix.
    ///
    /// It may be coarse, even constant; what can be decided by it alone needs no lock.
    fn prefix(self) -> u64;
}

/// The rank of a job under earliest deadline first: the earlier deadline, then the earlier release, then
/// the lower task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// When the job is due, in nanoseconds.
    pub deadline_ns: u64,
    /// When it was released, in nanoseconds.
    pub release_ns: u64,
    /// Whose job it is.
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

/// A job that somebody owns: a queue where it waits, or whoever took it out.
///
/// It is the node of the heaps and lists as well, so that nothing is allocated when it goes from one to the
/// other, and it cannot be in two of them. Each task has one, for as long as it lives, and gives it a
/// new key for each release.
#[derive(Debug)]
pub struct Job<K>(pub(crate) Box<Node<K>>);

/// What a heap or list links. Outside of one it has neither child nor sibling and degree 0.
#[derive(Debug)]
pub(crate) struct Node<K> {
    pub(crate) key: K,
    pub(crate) task: u32,
    pub(crate) degree: u32,
    pub(crate) child: Option<Box<Node<K>>>,
    pub(crate) sibling: Option<Box<Node<K>>>,
}

impl<K: Copy> Job<K> {
    /// The job of a task, which counts from 0.
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

    /// How urgent it is.
    #[must_use]
    pub fn key(&self) -> K {
        self.0.key
    }

    /// Makes it the next job of its task.
    pub fn set_key(&mut self, key: K) {
        self.0.key = key;
    }

    /// Whose job it is.
    #[must_use]
    pub fn task(&self) -> u32 {
        self.0.task
    }
}
