//! Histories of real threads.

use std::sync::Barrier;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Event, Number, Recorder, explained};
use crate::job::Job;
use crate::ready::{QUEUE_KINDS, QueueKind, ReadyQueue};
use crate::sync::atomic::AtomicU64;

const THREADS: usize = 3;

/// The number of repetitions; more if `SHIFTWORK_LONG` is set.
fn factor() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 50,
        None => 1,
    }
}

/// The random part of a key, or a limit.
fn draw(random: &mut Pcg64Mcg) -> u64 {
    u64::from(random.next_u32() % 6) << 20
}

/// A unique key: random bits, then the number of the draw and of the thread.
fn key(random: &mut Pcg64Mcg, thread: usize, number: usize) -> u64 {
    draw(random) | (number * THREADS + thread) as u64
}

/// Makes random calls, and yields the CPU now and then.
fn calls(recorder: &mut Recorder<'_>, random: &mut Pcg64Mcg, steps: std::ops::Range<usize>) {
    let thread = recorder.cpu;
    for step in steps {
        let held = recorder.held.len();
        match random.next_u32() % 8 {
            0..=2 if held > 0 => recorder.insert(&[key(random, thread, 2 * step)]),
            3 if held > 1 => {
                let keys = [0, 1].map(|part| key(random, thread, 2 * step + part));
                recorder.insert(&keys);
            }
            0..=4 => recorder.take(),
            _ => recorder.take_if_before(draw(random)),
        }
        if random.next_u32().is_multiple_of(4) {
            std::thread::yield_now();
        }
    }
}

struct Round<'a> {
    kind: QueueKind,
    seed: u64,
    queue: &'a dyn ReadyQueue<Number>,
    jobs_each: u32,
    calls_each: usize,
}

/// Runs all threads concurrently; returns the held jobs and the events of each.
fn round(round: &Round<'_>) -> Vec<(Vec<Job<Number>>, Vec<Event>)> {
    let (clock, barrier) = (AtomicU64::new(0), Barrier::new(THREADS));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|cpu| {
                let (clock, barrier) = (&clock, &barrier);
                scope.spawn(move || {
                    let mut random =
                        Pcg64Mcg::seed_from_u64(round.seed * THREADS as u64 + cpu as u64);
                    let task = |own| own * THREADS as u32 + cpu as u32;
                    let mut recorder = Recorder {
                        queue: round.queue,
                        clock,
                        cpu,
                        merges_at_once: round.kind != QueueKind::Fine,
                        held: (0..round.jobs_each)
                            .map(|own| Job::new(Number(0), task(own)))
                            .collect(),
                        events: Vec::new(),
                    };
                    barrier.wait();
                    calls(&mut recorder, &mut random, 0..round.calls_each);
                    (recorder.held, recorder.events)
                })
            })
            .collect();
        let threads = threads.into_iter();
        threads.map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn every_history_of_threads_is_linearizable() {
    let mut overlaps = 0;
    for kind in QUEUE_KINDS {
        for seed in 1..=250 * factor() {
            let queue = kind.build(THREADS, 3 * THREADS);
            let results = round(&Round {
                kind,
                seed,
                queue: &*queue,
                jobs_each: 3,
                calls_each: 7,
            });
            let mut events: Vec<_> = results.into_iter().flat_map(|result| result.1).collect();
            events.sort_by_key(|event| event.start);
            overlaps += events
                .windows(2)
                .filter(|pair| pair[1].start < pair[0].end)
                .count();
            assert!(
                explained(&[], &events),
                "{}, seed {seed}: {events:#?}",
                kind.name()
            );
        }
    }
    assert!(overlaps > 100, "only {overlaps} calls overlapped another");
}

#[test]
fn many_concurrent_calls_lose_no_job_and_the_rest_drains_in_order() {
    for kind in QUEUE_KINDS {
        for seed in 1..=4 * factor() {
            let what = format!("{}, seed {seed}", kind.name());
            let queue = kind.build(THREADS, 40 * THREADS);
            let results = round(&Round {
                kind,
                seed,
                queue: &*queue,
                jobs_each: 40,
                calls_each: 3_000,
            });
            let inserted = |event: &Event| match &event.call {
                super::Call::Insert(keys) => keys.clone(),
                _ => Vec::new(),
            };
            let (mut tasks, mut left, mut taken) = (Vec::new(), Vec::new(), Vec::new());
            for (held, events) in results {
                tasks.extend(held.iter().map(Job::task));
                left.extend(events.iter().flat_map(inserted));
                taken.extend(events.iter().filter_map(|event| event.taken));
            }
            let mut rest = Vec::new();
            while let Some(job) = queue.take(0) {
                tasks.push(job.task());
                rest.push(job.key().0);
            }
            assert!(rest.is_sorted(), "{what}: {rest:?}");
            tasks.sort_unstable();
            assert_eq!(
                tasks,
                (0..40 * THREADS as u32).collect::<Vec<_>>(),
                "{what}"
            );
            // The inserted keys are exactly the taken and the remaining ones.
            taken.extend(rest);
            taken.sort_unstable();
            left.sort_unstable();
            assert_eq!(taken, left, "{what}");
        }
    }
}
