//! Ready queues on real threads: calls per CPU second and durations of calls, compared with the heap of `std` behind
//! one lock and with the concurrent ordered set of crossbeam.
//!
//! `cargo bench -p shiftwork-queue --bench queues -- [THREADS] [QUEUE...]`; by default one thread per CPU and all
//! queues.

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
mod race;
mod skip_list;

use race::{MIXES, Race};
use shiftwork_queue::{QUEUE_KINDS, Rank, ReadyQueue};

/// Numbers of waiting jobs.
const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let threads = words.iter().find_map(|word| word.parse().ok());
    let named = |name: &str| words.iter().any(|word| word == name);
    let any = QUEUE_KINDS.iter().any(|kind| named(kind.name()));
    let wanted = |name: &str| !any || named(name);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: usize = threads.unwrap_or(cpus);
    comparisons::table();
    let mut counts = vec![1];
    if threads > 1 {
        counts.push(threads);
    }
    for &threads in &counts {
        decisions::table(threads, wanted);
    }
    for mix in MIXES {
        for &threads in &counts {
            println!("\n{}, {threads} thread(s) on {cpus} CPU(s)", mix.name());
            println!(
                "| queue | n | million calls/CPU s | median ns | p99 | p99.9 | longest us |\n\
                 |---|---:|---:|---:|---:|---:|---:|"
            );
            for jobs in SIZES {
                for (name, queue) in queues(threads, jobs) {
                    if !wanted(name) {
                        continue;
                    }
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
    let ours = QUEUE_KINDS.map(|kind| (kind.name(), kind.build(threads, jobs)));
    let mut all: Vec<_> = ours.into_iter().collect();
    all.push(("SkipSet", Box::new(skip_list::SkipList::new(jobs))));
    all
}
