//! A binomial heap: merging two heaps takes O(log n) steps.

use crate::job::{Job, Node};

/// A mergeable heap of jobs, not shared between threads.
///
/// A list of trees with growing degrees. A tree of degree d has 2^d nodes, none more urgent than its root,
/// and the children of the root are trees of degree d-1, ..., 1, 0. So n jobs are stored in trees that
/// correspond to the binary digits of n, and merging is adding two binary numbers:
///
/// ```text
///   trees -> o (degree 0) -> o (degree 2) -> ...
///                            | child
///                            o (1) -> o (0)
///                            |
///                            o (0)
/// ```
///
/// # Source
/// J. Vuillemin, "A data structure for manipulating priority queues", CACM 21(4), 1978.
#[derive(Debug)]
pub struct Heap<K> {
    trees: Trees<K>,
}

/// Trees linked by their siblings.
type Trees<K> = Option<Box<Node<K>>>;

impl<K> Default for Heap<K> {
    fn default() -> Self {
        Self { trees: None }
    }
}

impl<K: Copy> From<Job<K>> for Heap<K> {
    fn from(job: Job<K>) -> Self {
        Self { trees: Some(job.0) }
    }
}

impl<K: Ord + Copy> Heap<K> {
    /// Whether there is no job.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trees.is_none()
    }

    /// Number of jobs, in O(log n): the degrees are the binary digits.
    #[must_use]
    pub fn len(&self) -> usize {
        roots(&self.trees).map(|root| 1 << root.degree).sum()
    }

    /// The key and task of the most urgent job, in O(log n).
    #[must_use]
    pub fn first(&self) -> Option<(K, u32)> {
        let first = roots(&self.trees).min_by_key(|root| root.key)?;
        Some((first.key, first.task))
    }

    /// Inserts a job: O(log n), O(1) on average.
    pub fn insert(&mut self, job: Job<K>) {
        self.merge(Self::from(job));
    }

    /// Takes all jobs of the other heap: at most log2(n) comparisons of keys, n being the number of jobs
    /// afterwards.
    pub fn merge(&mut self, other: Self) {
        self.trees = sum(self.trees.take(), other.trees);
    }

    /// Takes the most urgent job out, in O(log n).
    pub fn take(&mut self) -> Option<Job<K>> {
        let (place, _) = roots(&self.trees)
            .enumerate()
            .min_by_key(|(_, root)| root.key)?;
        let mut link = &mut self.trees;
        for _ in 0..place {
            link = &mut link.as_mut()?.sibling;
        }
        let mut first = link.take()?;
        *link = first.sibling.take();
        first.degree = 0;
        self.trees = sum(self.trees.take(), reversed(first.child.take()));
        Some(Job(first))
    }

    /// Takes the most urgent job out if it goes before `limit`; otherwise changes nothing.
    pub fn take_if_before(&mut self, limit: &K) -> Option<Job<K>> {
        let (key, _) = self.first()?;
        if key < *limit { self.take() } else { None }
    }
}

fn roots<K>(trees: &Trees<K>) -> impl Iterator<Item = &Node<K>> {
    std::iter::successors(trees.as_deref(), |root| root.sibling.as_deref())
}

/// Reverses a list: children are linked by falling degrees, trees by growing degrees.
fn reversed<K>(mut trees: Trees<K>) -> Trees<K> {
    let mut done = None;
    while let Some(mut root) = trees {
        trees = root.sibling.take();
        root.sibling = done;
        done = Some(root);
    }
    done
}

/// Takes the first tree if it has this degree.
fn pop_if<K>(trees: &mut Trees<K>, degree: u32) -> Option<Box<Node<K>>> {
    let mut root = trees.take_if(|root| root.degree == degree)?;
    *trees = root.sibling.take();
    Some(root)
}

/// Links two trees of one degree into a tree of the next degree.
fn linked<K: Ord>(mut one: Box<Node<K>>, mut other: Box<Node<K>>) -> Box<Node<K>> {
    if other.key < one.key {
        std::mem::swap(&mut one, &mut other);
    }
    other.sibling = one.child.take();
    one.child = Some(other);
    one.degree += 1;
    one
}

/// Adds like binary numbers, from the lowest degree on, with a carry. With neither a carry nor a second
/// summand left, the remaining trees are unchanged.
fn sum<K: Ord>(mut one: Trees<K>, mut other: Trees<K>) -> Trees<K> {
    let mut result = None;
    let mut end = &mut result;
    let mut carry: Option<Box<Node<K>>> = None;
    loop {
        if carry.is_none() && (one.is_none() || other.is_none()) {
            *end = one.or(other);
            return result;
        }
        let lowest = [&carry, &one, &other];
        let lowest = lowest.into_iter().flatten().map(|root| root.degree).min();
        // There is a carry, or both summands have trees left.
        let Some(degree) = lowest else { return result };
        let carried = carry.take_if(|root| root.degree == degree);
        let digit = match (
            carried,
            pop_if(&mut one, degree),
            pop_if(&mut other, degree),
        ) {
            (digit, Some(left), Some(right)) => {
                carry = Some(linked(left, right));
                digit
            }
            (Some(left), Some(right), None) | (Some(left), None, Some(right)) => {
                carry = Some(linked(left, right));
                None
            }
            (left, middle, right) => left.or(middle).or(right),
        };
        if let Some(digit) = digit {
            end = &mut end.insert(digit).sibling;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that degrees grow, each tree has the shape of its degree, and no child precedes its parent.
    fn check(heap: &Heap<u64>) {
        let degrees: Vec<_> = roots(&heap.trees).map(|root| root.degree).collect();
        assert!(
            degrees.is_sorted_by(|left, right| left < right),
            "{degrees:?}"
        );
        roots(&heap.trees).for_each(check_tree);
    }

    fn check_tree(root: &Node<u64>) {
        let children: Vec<_> = roots(&root.child).collect();
        let degrees: Vec<_> = children.iter().map(|child| child.degree).collect();
        assert_eq!(degrees, (0..root.degree).rev().collect::<Vec<_>>());
        assert!(children.iter().all(|child| child.key >= root.key));
        children.into_iter().for_each(check_tree);
    }

    fn heap(keys: impl IntoIterator<Item = u64>) -> Heap<u64> {
        let mut heap = Heap::default();
        for key in keys {
            heap.insert(Job::new(key, key as u32));
            check(&heap);
        }
        heap
    }

    fn drained(mut heap: Heap<u64>) -> Vec<u64> {
        std::iter::from_fn(|| {
            let job = heap.take();
            check(&heap);
            let job = job?;
            let node = &*job.0;
            assert!(node.child.is_none() && node.sibling.is_none() && node.degree == 0);
            Some(job.key())
        })
        .collect()
    }

    #[test]
    fn merged_heaps_of_any_sizes_drain_in_order() {
        for left in 0..20 {
            for right in 0..20 {
                // Both parts are unsorted, and their keys interleave.
                let mut one = heap((0..left).map(|step| step * 7 % 20 * 2));
                let two = heap((0..right).map(|step| step * 13 % 20 * 2 + 1));
                one.merge(two);
                check(&one);
                assert_eq!(one.len() as u64, left + right);
                assert_eq!(one.is_empty(), left + right == 0);
                let keys = drained(one);
                assert_eq!(keys.len() as u64, left + right);
                assert!(keys.is_sorted());
            }
        }
    }

    #[test]
    fn first_job_is_taken_only_if_it_precedes_the_limit() {
        let mut heap = heap([5, 3, 9]);
        assert_eq!(heap.first(), Some((3, 3)));
        assert!(heap.take_if_before(&3).is_none());
        assert_eq!(heap.take_if_before(&4).map(|job| job.key()), Some(3));
        assert_eq!(drained(heap), [5, 9]);
        assert!(Heap::<u64>::default().take_if_before(&u64::MAX).is_none());
    }
}
