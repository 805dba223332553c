//! What people are told of a task: so much in a second, however often things happen. A program may ask for other CPUs, and be
//! late, thousands of times in a second, and each line of a log is written while the agent does nothing else.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Span, TaskId};

/// For so long what is told is counted.
const WINDOW: Span = Span::from_s(1);

/// So much is told of a task meanwhile.
const LINES_MAX: u32 = 5;

/// How much was told of each task.
#[derive(Debug, Default)]
pub(crate) struct LogRateLimit {
    of: BTreeMap<TaskId, Window>,
}

/// What was told of one since an instant.
#[derive(Debug)]
struct Window {
    since: Instant,
    logged: u32,
    suppressed: u64,
}

impl LogRateLimit {
    /// Whether one more thing is to be told of the task; if not, it is counted.
    pub fn allow(&mut self, task: TaskId, now: Instant) -> bool {
        let window = self.of.entry(task).or_insert(Window {
            since: now,
            logged: 0,
            suppressed: 0,
        });
        let may = window.logged < LINES_MAX;
        window.logged += u32::from(may);
        window.suppressed += u64::from(!may);
        may
    }

    /// Of whom something was left out, and how much, now that its time is over. To be asked again and again.
    pub fn take_suppressed(&mut self, now: Instant) -> Vec<(TaskId, u64)> {
        let mut over = Vec::new();
        self.of.retain(|&task, it| {
            let goes_on = it.since + WINDOW > now;
            if !goes_on && it.suppressed > 0 {
                over.push((task, it.suppressed));
            }
            goes_on
        });
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted_for_each_task() {
        let mut limit = LogRateLimit::default();
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
            "nothing of it was left out"
        );
        assert!(limit.allow(noisy, at(1500)), "a new second begins");
    }
}
