//! The clocks of the daemon.

use rustix::time::{ClockId, clock_gettime};
use shiftwork_model::{Instant, Span};

/// The current instant on the monotonic clock.
pub fn now() -> Instant {
    Instant::from_ns(ns_of(ClockId::Monotonic))
}

/// The real-time clock: ns since 1970, for output only.
pub(crate) fn unix_ns() -> u64 {
    ns_of(ClockId::Realtime)
}

/// CPU time of the calling thread so far.
pub(crate) fn thread_cpu_time() -> Span {
    Span::from_ns(ns_of(ClockId::ThreadCPUTime))
}

fn ns_of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
