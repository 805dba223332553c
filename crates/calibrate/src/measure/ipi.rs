//! Ipi: until a CPU that is told to run somebody else does so.
//!
//! A thread on one CPU wakes another, which is bound to a second CPU and says when it runs. That CPU is idle,
//! or computes for somebody less urgent. From both the call that wakes is a part, and at the end a switch:
//! overhead files have a key for that, so what goes into `ipi` is the busy one without a switch.

use std::sync::atomic::{AtomicU64, Ordering};

use shiftwork_live::probe::{Probe, Word, monotonic_ns, ring, sleep_until};
use shiftwork_model::CpuId;

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, collected, join, note};
use crate::quantity::{Kind, Quantity};

/// From one to the next: the one that was woken sleeps again by then.
const PERIOD_NS: u64 = 200_000;

/// So often at least, also if a slice is over before it has begun.
const WAKES_MIN: u32 = 20;

/// The word when everybody is to stop.
const OVER: u32 = u32::MAX;

pub(super) struct Ipi {
    pub(super) from: CpuId,
    pub(super) to: CpuId,
    pub(super) rank: Rank,
}

impl Measurement for Ipi {
    fn name(&self) -> &'static str {
        "ipi"
    }

    fn share(&self) -> u64 {
        4
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let now_ns = monotonic_ns();
        let half_ns = now_ns + slice.until_ns.saturating_sub(now_ns) / 2;
        for (kind, until_ns) in [(Kind::IpiIdle, half_ns), (Kind::IpiBusy, slice.until_ns)] {
            let (samples, lost) = self.wake(kind == Kind::IpiBusy, until_ns)?;
            into.push((Quantity::of(kind), samples, lost));
        }
        Ok(())
    }
}

impl Ipi {
    fn wake(&self, is_busy: bool, until_ns: u64) -> Result<(Vec<i64>, u64), String> {
        let place = |cpu, urgency| Place {
            cpu,
            rank: self.rank,
            urgency,
        };
        let (word, told_ns) = (Word::new(0), AtomicU64::new(0));
        let (word, told_ns) = (&word, &told_ns);
        let (probe, collector) = ring(1 << 16);
        std::thread::scope(|scope| {
            let woken =
                place(self.to, Urgency::High).spawn(scope, move || answer(word, told_ns, &probe));
            let busy = is_busy.then(|| {
                place(self.to, Urgency::Low).spawn(scope, move || {
                    while word.get() != OVER {
                        std::hint::spin_loop();
                    }
                })
            });
            let waking = place(self.from, Urgency::High)
                .spawn(scope, move || wake_again_and_again(word, told_ns, until_ns));
            let waked = join(waking);
            // Also if there was no thread to say so.
            word.set(OVER);
            let answered = join(woken);
            busy.map_or(Ok(()), join)?;
            answered.and(waked)
        })?;
        Ok(collected(&collector))
    }
}

fn wake_again_and_again(word: &Word, told_ns: &AtomicU64, until_ns: u64) {
    for number in 1..OVER {
        let now_ns = monotonic_ns();
        let is_over = number > WAKES_MIN && now_ns >= until_ns;
        if is_over || sleep_until(now_ns + PERIOD_NS).is_err() {
            break;
        }
        told_ns.store(monotonic_ns(), Ordering::Relaxed);
        word.set(number);
    }
    word.set(OVER);
}

/// Waits for each number and notes how long ago it was told.
fn answer(word: &Word, told_ns: &AtomicU64, probe: &Probe) {
    let mut seen = 0;
    loop {
        word.wait_while(seen);
        let now_ns = monotonic_ns();
        let number = word.get();
        if number == OVER {
            return;
        }
        // What was told later belongs to a number that this one has not seen.
        if number == seen + 1 {
            let told_ns = told_ns.load(Ordering::Relaxed);
            if told_ns <= now_ns {
                note(probe, (now_ns - told_ns) as i64);
            }
        }
        seen = number;
    }
}
