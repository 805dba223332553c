//! Number of key comparisons of calls: which calls are logarithmic, and which are not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod counted;

use counted::{Counted, compared, scattered};
use shiftwork_queue::{Heap, Job, QueueKind, ReadyQueue};

/// Jobs of the tasks from `first` on.
fn jobs(first: usize, count: usize) -> impl Iterator<Item = Job<Counted>> {
    (first..first + count).map(|task| Job::new(scattered(task), task as u32))
}

fn batch(first: usize, count: usize) -> Heap<Counted> {
    let mut heap = Heap::default();
    jobs(first, count).for_each(|job| heap.insert(job));
    heap
}

fn filled(kind: QueueKind, waiting: usize, room: usize) -> Box<dyn ReadyQueue<Counted> + Send> {
    let queue = kind.build(1, waiting + room);
    jobs(0, waiting).for_each(|job| queue.insert(0, job));
    queue
}

/// Mergeable queues, and their limits in multiples of the logarithm of the number of jobs: a binary addition, and
/// the minimum of each part.
const MERGING: [(QueueKind, u64); 3] = [
    (QueueKind::Coarse, 1),
    (QueueKind::Hierarchical, 4),
    (QueueKind::Published, 2),
];

#[test]
fn merge_of_simultaneous_releases_takes_logarithmic_steps() {
    for (kind, factor) in MERGING {
        for waiting in [0, 1, 7, 100, 1_023, 10_000] {
            for count in [1, 2, 3, 10, 64, 100, 1_000, 1_023] {
                let queue = filled(kind, waiting, count);
                let heap = batch(waiting, count);
                let steps = compared(|| queue.merge(0, heap));
                let logarithm = u64::from((waiting + count).ilog2()) + 1;
                assert!(
                    steps <= factor * logarithm,
                    "{}: {steps} steps to merge {count} into {waiting}",
                    kind.name()
                );
            }
        }
    }
}

#[test]
fn removals_after_a_merge_take_logarithmic_steps() {
    for (kind, _) in MERGING {
        for count in [1, 10, 1_000, 10_000] {
            let queue = filled(kind, 1_000, count);
            queue.merge(0, batch(1_000, count));
            for left in (1..=1_000 + count).rev() {
                let mut job = None;
                let steps = compared(|| job = queue.take(0));
                assert!(job.is_some());
                let logarithm = u64::from(left.ilog2()) + 1;
                assert!(
                    steps <= 4 * logarithm + 4,
                    "{}: {steps} steps to take one of {left}",
                    kind.name()
                );
            }
        }
    }
}

#[test]
fn queues_without_merge_take_steps_for_each_job() {
    for kind in [QueueKind::List, QueueKind::Binary, QueueKind::Fine] {
        let queue = filled(kind, 1_000, 1_000);
        let heap = batch(1_000, 1_000);
        let steps = compared(|| queue.merge(0, heap));
        assert!(steps >= 1_000, "{}: {steps}", kind.name());
    }
}

#[test]
fn failed_check_of_the_published_minimum_compares_no_keys() {
    let queue = filled(QueueKind::Published, 1_000, 0);
    for _ in 0..1_000 {
        let first = queue.take(0).unwrap();
        // With a stale published minimum this check would compare keys.
        let limit = first.key();
        let steps = compared(|| assert!(queue.take_if_before(0, &limit).is_none()));
        assert_eq!(steps, 0);
    }
    let steps = compared(|| assert!(queue.take(0).is_none()));
    assert_eq!(steps, 0);
}
