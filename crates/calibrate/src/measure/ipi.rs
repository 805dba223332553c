//! Ipi: the time from a reschedule request to a CPU until it runs the new thread.
//!
//! A thread on one CPU wakes another, which is bound to a second CPU and notes when it runs. The
//! second CPU is idle, or runs a less urgent thread. Both times include the call that wakes, and a
//! switch at the end: overhead files have a key for the switch, so `ipi` is the busy time without a
//! switch.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shiftwork_live::probe::{Probe, Word, monotonic_ns, ring, sleep_until};
use shiftwork_model::CpuId;

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, collected, join, note};
use crate::quantity::{Kind, Quantity};

/// From one to the next: the one that was woken sleeps again by then.
const PERIOD_NS: u64 = 200_000;

/// So often at least, also if a slice is over before it has begun.
const WAKES_MIN: u32 = 20;

/// So long it goes on for that, where others have the CPU.
const PATIENCE_NS: u64 = 2_000_000_000;

/// The word when all threads are to stop.
const OVER: u32 = u32::MAX;

/// What both threads write beside the word.
#[derive(Debug, Default)]
struct WakeState {
    /// When the waking thread began the wake-up, in ns of the monotonic clock.
    wake_ns: AtomicU64,
    /// The last number that was answered.
    answered: AtomicU32,
}

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
        let (word, state) = (Word::new(0), WakeState::default());
        let (word, state) = (&word, &state);
        let (probe, collector) = ring(1 << 16);
        std::thread::scope(|scope| {
            let woken =
                place(self.to, Urgency::High).spawn(scope, move || answer(word, state, &probe));
            let busy = is_busy.then(|| {
                place(self.to, Urgency::Low).spawn(scope, move || {
                    while word.get() != OVER {
                        std::hint::spin_loop();
                    }
                })
            });
            let waking = place(self.from, Urgency::High)
                .spawn(scope, move || wake_again_and_again(word, state, until_ns));
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

/// Wakes the other thread each time that it has answered, until the end of the slice.
fn wake_again_and_again(word: &Word, state: &WakeState, until_ns: u64) {
    let mut number = 0;
    loop {
        let now_ns = monotonic_ns();
        let is_enough = number >= WAKES_MIN || now_ns >= until_ns + PATIENCE_NS;
        if (now_ns >= until_ns && is_enough) || sleep_until(now_ns + PERIOD_NS).is_err() {
            break;
        }
        if state.answered.load(Ordering::Acquire) == number {
            number += 1;
            state.wake_ns.store(monotonic_ns(), Ordering::Relaxed);
            word.set(number);
        }
    }
    word.set(OVER);
}

/// Waits for each number and notes the time since its wake-up began.
fn answer(word: &Word, state: &WakeState, probe: &Probe) {
    let mut seen = 0;
    loop {
        word.wait_while(seen);
        let now_ns = monotonic_ns();
        let number = word.get();
        if number == OVER {
            return;
        }
        // The waking thread does not write this again before the answer.
        let wake_ns = state.wake_ns.load(Ordering::Relaxed);
        note(probe, now_ns as i64 - wake_ns as i64);
        seen = number;
        state.answered.store(number, Ordering::Release);
    }
}
