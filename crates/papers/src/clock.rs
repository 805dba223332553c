//! The clock that measured pages are measured with.

use rustix::time::{ClockId, clock_gettime};
use shiftwork_model::Span;

/// The time since some instant; it never goes back.
pub(crate) fn now() -> Span {
    let time = clock_gettime(ClockId::Monotonic);
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(|part| part.unsigned_abs());
    Span::from_ns(seconds * 1_000_000_000 + nanoseconds)
}
