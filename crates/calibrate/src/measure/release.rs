//! Release: what handling the release of a job takes from the job that runs meanwhile.
//!
//! A thread computes and looks at the clock all the time. On the same CPU a less urgent thread sleeps until
//! an instant; at it the timer's interrupt comes, the kernel makes that thread ready, and goes back to the
//! first one, which sees a gap between two looks. That gap is what the simulator steals from the CPU of a
//! released task: interrupt and wake-up, without deciding or switching, which are charged by themselves where
//! they happen.
//!
//! The release overhead of B. Brandenburg, J. Anderson, "On the Implementation of Global Real-Time
//! Schedulers", RTSS 2009, seen from outside of the kernel.

use shiftwork_live::probe::{Probe, monotonic_ns, ring, sleep_until};
use shiftwork_model::CpuId;

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, clock_ns, collected, join, note};
use crate::quantity::{Kind, Quantity};

/// From one release to the next.
const PERIOD_NS: u64 = 400_000;

/// So long before the release the first thread computes.
const BEFORE_NS: u64 = 60_000;

/// So late the interrupt may come; what interrupts later is something else.
const AFTER_NS: u64 = 60_000;

/// A gap is no interrupt below so many times the usual one.
const GAPS: u64 = 4;

pub(super) struct Release {
    pub(super) cpu: CpuId,
    pub(super) rank: Rank,
}

impl Measurement for Release {
    fn name(&self) -> &'static str {
        "release"
    }

    fn share(&self) -> u64 {
        4
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let place = |urgency| Place {
            cpu: self.cpu,
            rank: self.rank,
            urgency,
        };
        let begin_ns = monotonic_ns() + 1_000_000;
        let count = slice.until_ns.saturating_sub(begin_ns) / PERIOD_NS;
        let releases = move || (1..=count).map(move |number| begin_ns + number * PERIOD_NS);
        let (probe, collector) = ring(count as usize);
        std::thread::scope(|scope| {
            let released = place(Urgency::Low).spawn(scope, move || {
                // Only that it is made ready matters.
                releases().try_for_each(sleep_until)
            });
            let computing = place(Urgency::High).spawn(scope, move || {
                let clock_ns = clock_ns();
                releases().for_each(|at_ns| watch(at_ns, clock_ns, &probe));
            });
            join(computing)?;
            join(released)?.map_err(|error| format!("a thread cannot sleep: {error}"))
        })?;
        let (samples, lost) = collected(&collector);
        into.push((Quantity::of(Kind::Release), samples, lost));
        Ok(())
    }
}

/// Computes around a release, and notes how long the first interruption after it is.
fn watch(at_ns: u64, clock_ns: u64, probe: &Probe) {
    if sleep_until(at_ns - BEFORE_NS).is_err() {
        return;
    }
    let mut before_ns = monotonic_ns();
    if before_ns >= at_ns {
        // It was not there in time.
        return;
    }
    while before_ns < at_ns + AFTER_NS {
        let now_ns = monotonic_ns();
        let gap_ns = now_ns - before_ns;
        if now_ns >= at_ns && gap_ns >= GAPS * clock_ns.max(25) {
            note(probe, (gap_ns - clock_ns) as i64);
            return;
        }
        before_ns = now_ns;
    }
}
