//! Rate limit of log messages, for each task or user. A program may request other CPUs, or miss deadlines, thousands of times in a
//! second, and the daemon writes the log synchronously.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Span};

/// Length of the window in which messages are counted.
const WINDOW: Span = Span::from_s(1);

/// Counts of the messages about each subject.
#[derive(Debug)]
pub(crate) struct LogRateLimit<K> {
    /// Maximum number of messages about a subject in a window.
    messages_max: u32,
    windows: BTreeMap<K, Window>,
}

/// Messages about one subject since an instant.
#[derive(Debug)]
struct Window {
    since: Instant,
    logged: u32,
    suppressed: u64,
}

impl<K: Copy + Ord> LogRateLimit<K> {
    /// At most so many messages about each subject in a second.
    pub const fn new(messages_max: u32) -> Self {
        Self {
            messages_max,
            windows: BTreeMap::new(),
        }
    }

    /// Whether one more message about the subject may be logged; otherwise counts it as suppressed.
    pub fn allow(&mut self, subject: K, now: Instant) -> bool {
        let window = self.windows.entry(subject).or_insert(Window {
            since: now,
            logged: 0,
            suppressed: 0,
        });
        let is_allowed = window.logged < self.messages_max;
        window.logged += u32::from(is_allowed);
        window.suppressed += u64::from(!is_allowed);
        is_allowed
    }

    /// Closes windows that have ended; returns the number of suppressed messages by subject. To be called periodically.
    pub fn take_suppressed(&mut self, now: Instant) -> Vec<(K, u64)> {
        let mut suppressed = Vec::new();
        self.windows.retain(|&subject, it| {
            let is_open = it.since + WINDOW > now;
            if !is_open && it.suppressed > 0 {
                suppressed.push((subject, it.suppressed));
            }
            is_open
        });
        suppressed
    }
}

#[cfg(test)]
mod tests {
    use shiftwork_model::TaskId;

    use super::*;

    #[test]
    fn messages_beyond_limit_are_counted_by_task() {
        let mut limit = LogRateLimit::new(5);
        let (noisy, calm) = (TaskId::from_index(0), TaskId::from_index(1));
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        for ms in 0..8 {
            assert_eq!(limit.allow(noisy, at(ms)), ms < 5, "{ms}");
        }
        assert!(limit.allow(calm, at(500)));
        assert_eq!(limit.take_suppressed(at(999)), []);
        assert_eq!(limit.take_suppressed(at(1000)), [(noisy, 3)]);
        assert_eq!(
            limit.take_suppressed(at(1500)),
            [],
            "none was suppressed since"
        );
        assert!(limit.allow(noisy, at(1500)), "a new window begins");
    }
}
