//! Every interleaving of few threads that the memory model allows.

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;

use super::{Number, Recorder, explained};
use crate::job::Job;
use crate::ready::QueueKind;

/// A call of a thread.
#[derive(Clone, Copy)]
enum Step {
    Insert(&'static [u64]),
    Take,
    TakeIfBefore(u64),
}

use Step::{Insert, Take, TakeIfBefore};

/// Asserts that all interleavings of these threads' calls, on a queue that holds `keys` at first, are
/// linearizable. The number of preemptions is bounded to limit the number of interleavings.
fn check(
    kind: QueueKind,
    keys: &'static [u64],
    threads: &'static [&'static [Step]],
    switches: usize,
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(switches);
    model.check(move || {
        let tasks = keys.len() + 4 * threads.len();
        let queue = Arc::new(kind.build(threads.len(), tasks));
        for (task, &key) in keys.iter().enumerate() {
            queue.insert(0, Job::new(Number(key), task as u32));
        }
        let clock = Arc::new(AtomicU64::new(0));
        let run = |cpu: usize| {
            let (queue, clock) = (Arc::clone(&queue), Arc::clone(&clock));
            move || {
                let first = keys.len() + 4 * cpu;
                let mut recorder = Recorder {
                    queue: &**queue,
                    clock: &clock,
                    cpu,
                    merges_at_once: kind != QueueKind::Fine,
                    held: (first..first + 4)
                        .map(|task| Job::new(Number(0), task as u32))
                        .collect(),
                    events: Vec::new(),
                };
                for &step in threads[cpu] {
                    match step {
                        Insert(keys) => recorder.insert(keys),
                        Take => recorder.take(),
                        TakeIfBefore(limit) => recorder.take_if_before(limit),
                    }
                }
                recorder.events
            }
        };
        let others: Vec<_> = (1..threads.len())
            .map(|cpu| loom::thread::spawn(run(cpu)))
            .collect();
        let mut events = run(0)();
        for other in others {
            events.extend(other.join().unwrap());
        }
        // The remaining jobs are taken in order, and the queue becomes empty.
        let mut last = Recorder {
            queue: &**queue,
            clock: &clock,
            cpu: 0,
            merges_at_once: true,
            held: Vec::new(),
            events,
        };
        for _ in 0..=tasks {
            last.take();
        }
        assert!(explained(keys, &last.events), "{:#?}", last.events);
    });
}

/// Insertions of the most urgent job and of others while jobs are taken.
fn arrivals(kind: QueueKind, switches: usize) {
    check(
        kind,
        &[10, 20],
        &[&[Insert(&[5]), Take], &[Insert(&[15]), TakeIfBefore(12)]],
        switches,
    );
}

/// Releases of several jobs at once, while two CPUs take.
fn batches(kind: QueueKind, switches: usize) {
    check(
        kind,
        &[10],
        &[&[Insert(&[3, 12])], &[Take, TakeIfBefore(11)], &[Take]],
        switches,
    );
}

/// A queue that becomes empty and is filled again.
fn empty(kind: QueueKind, switches: usize) {
    check(
        kind,
        &[],
        &[&[Insert(&[8]), Take], &[TakeIfBefore(9), Insert(&[2])]],
        switches,
    );
}

#[test]
fn models_of_the_coarse_queue() {
    arrivals(QueueKind::Coarse, 3);
    batches(QueueKind::Coarse, 3);
    empty(QueueKind::Coarse, 3);
}

#[test]
fn models_of_the_queues_with_one_lock() {
    for kind in [QueueKind::List, QueueKind::Binary] {
        arrivals(kind, 2);
        batches(kind, 2);
    }
}

#[test]
fn models_of_the_hierarchical_queue() {
    arrivals(QueueKind::Hierarchical, 3);
    batches(QueueKind::Hierarchical, 2);
    empty(QueueKind::Hierarchical, 3);
}

#[test]
fn models_of_the_published_queue() {
    arrivals(QueueKind::Published, 3);
    batches(QueueKind::Published, 3);
    empty(QueueKind::Published, 3);
}

#[test]
fn models_of_the_fine_queue() {
    arrivals(QueueKind::Fine, 2);
    batches(QueueKind::Fine, 2);
    empty(QueueKind::Fine, 3);
}

/// Jobs rise in the heap while other calls move jobs beside and above them to the root.
#[test]
fn models_of_rising_jobs_in_the_fine_queue() {
    check(
        QueueKind::Fine,
        &[1, 40, 50],
        &[&[Insert(&[2])], &[Take, Take], &[Take]],
        2,
    );
}
