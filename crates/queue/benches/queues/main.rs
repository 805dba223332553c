//! Ready queues on real threads: calls per second and how long calls take, beside the heap of `std` behind one
//! lock and a published concurrent queue.
//!
//! `cargo bench -p shiftwork-queue --bench queues -- [THREADS]`; as many threads as there are CPUs if not said.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a benchmark reads clocks, and if it cannot go on it fails"
)]

mod comparisons;
#[path = "../../tests/counted/mod.rs"]
mod counted;
mod decisions;
mod published_elsewhere;
mod race;

use race::{MIXES, Race};
use shiftwork_queue::{KINDS, Rank, ReadyQueue};

/// How many jobs wait.
const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];

fn main() {
    let threads = std::env::args().find_map(|word| word.parse().ok());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: usize = threads.unwrap_or(cpus);
    comparisons::table();
    let mut counts = vec![1];
    if threads > 1 {
        counts.push(threads);
    }
    counts.iter().copied().for_each(decisions::table);
    for mix in MIXES {
        for &threads in &counts {
            println!("\n{}, {threads} thread(s) on {cpus} CPU(s)", mix.name());
            println!(
                "| queue | n | million calls/s | median ns | p99 | p99.9 | longest us |\n\
                 |---|---:|---:|---:|---:|---:|---:|"
            );
            for jobs in SIZES {
                for (name, queue) in queues(threads, jobs) {
                    let race = Race {
                        queue: &*queue,
                        mix,
                        threads,
                        jobs,
                    };
                    race.run(name);
                }
            }
        }
    }
}

fn queues(threads: usize, jobs: usize) -> Vec<(&'static str, Box<dyn ReadyQueue<Rank> + Send>)> {
    let ours = KINDS.map(|kind| (kind.name(), kind.build(threads, jobs)));
    let mut all: Vec<_> = ours.into_iter().collect();
    all.push((
        "SkipSet",
        Box::new(published_elsewhere::SkipList::new(jobs)),
    ));
    all
}
