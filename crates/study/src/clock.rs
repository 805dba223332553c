//! The one place where this crate reads a clock.

use std::time::{Duration, Instant};

/// A stopwatch.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

#[allow(
    clippy::disallowed_methods,
    reason = "how long things take is told, and decides how work is cut; results do not depend on it"
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
