//! Spreads the seeds of a campaign over the CPUs of the machine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What a worker has counted, which is to be added to what others have.
pub trait Counts: Default + Send {
    fn add(&mut self, other: Self);
}

/// Runs `check` once for each seed of `seeds`, each worker with counts of its own; the sum of these. If one
/// panics, the others end after the seed that they are at, and this panics as well.
pub fn over_seeds<C: Counts>(seeds: std::ops::Range<u64>, check: impl Fn(u64, &mut C) + Sync) -> C {
    let workers = match std::env::var_os("SHIFTWORK_LONG") {
        // Other tests run beside this one.
        None => 1,
        Some(_) => thread::available_parallelism().map_or(1, usize::from),
    };
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let stop = StopIfPanicking(&next);
        let mut counts = C::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            check(seed, &mut counts);
            let done = seed - seeds.start + 1;
            if done.is_multiple_of(1_000) {
                println!("{done} seeds");
            }
        }
        drop(stop);
        counts
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut sum = C::default();
        for thread in threads {
            match thread.join() {
                Ok(counts) => sum.add(counts),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        sum
    })
}

/// Lets no worker take another seed after a panic.
struct StopIfPanicking<'a>(&'a AtomicU64);

impl Drop for StopIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // Far above any seed, and far from wrapping.
            self.0.store(u64::MAX / 2, Ordering::Relaxed);
        }
    }
}
