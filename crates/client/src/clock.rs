//! The clock of the releases.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use shiftwork_model::Instant;

const BILLION: u64 = 1_000_000_000;

/// The current instant on the monotonic clock.
pub(crate) fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    // Never negative; 64 bits of nanoseconds last for 584 years.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    Instant::from_ns(seconds.saturating_mul(BILLION).saturating_add(rest))
}

/// Sleeps until this instant on the monotonic clock; returns at once if it is past. After each signal handler that ran
/// meanwhile `keep_waiting` decides whether to continue. Returns whether the instant was reached.
pub(crate) fn sleep_until(at: Instant, keep_waiting: &mut dyn FnMut() -> bool) -> bool {
    let request = Timespec {
        // 2^64 ns are less than 2^35 s, so neither part can overflow.
        tv_sec: (at.as_ns() / BILLION) as i64,
        tv_nsec: (at.as_ns() % BILLION) as _,
    };
    // No other error is possible: the clock and the instant are valid.
    while clock_nanosleep_absolute(ClockId::Monotonic, &request) == Err(Errno::INTR) {
        if !keep_waiting() {
            return false;
        }
    }
    true
}
