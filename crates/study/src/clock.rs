//! The one place where this crate reads clocks.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A stopwatch.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

#[allow(
    clippy::disallowed_methods,
    reason = "times are shown as progress and decide how work is cut; results do not depend on them"
)]
impl Clock {
    /// Starts.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// How long ago that was.
    pub fn elapsed(self) -> Duration {
        Instant::now() - self.0
    }
}

/// What this thread has used of its CPUs: the same however busy the computer is.
#[derive(Clone, Copy, Debug)]
pub struct Effort(Duration);

impl Effort {
    /// Starts.
    pub fn start() -> Self {
        Self(Self::now())
    }

    /// How much it has been since.
    pub fn spent(self) -> Duration {
        Self::now().saturating_sub(self.0)
    }

    fn now() -> Duration {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        // A thread's own clock begins with it, so that neither is negative.
        Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
    }
}
