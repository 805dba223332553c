//! What people are told of a task: so much in a second, however often things happen. A program may ask for other CPUs, and be
//! late, thousands of times in a second, and each line of a log is written while the agent does nothing else.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Span, TaskId};

/// For so long what is told is counted.
const WHILE: Span = Span::from_s(1);

/// So much is told of a task meanwhile.
const REPORTS_MAX: u32 = 5;

/// How much was told of each task.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    of: BTreeMap<TaskId, Recent>,
}

/// What was told of one since an instant.
#[derive(Debug)]
struct Recent {
    since: Instant,
    told: u32,
    left_out: u64,
}

impl Reports {
    /// Whether one more thing is to be told of the task; if not, it is counted.
    pub fn may_tell(&mut self, task: TaskId, now: Instant) -> bool {
        let recent = self.of.entry(task).or_insert(Recent {
            since: now,
            told: 0,
            left_out: 0,
        });
        let may = recent.told < REPORTS_MAX;
        recent.told += u32::from(may);
        recent.left_out += u64::from(!may);
        may
    }

    /// Of whom something was left out, and how much, now that its time is over. To be asked again and again.
    pub fn left_out(&mut self, now: Instant) -> Vec<(TaskId, u64)> {
        let mut over = Vec::new();
        self.of.retain(|&task, it| {
            let goes_on = it.since + WHILE > now;
            if !goes_on && it.left_out > 0 {
                over.push((task, it.left_out));
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
        let mut reports = Reports::default();
        let (noisy, calm) = (TaskId::from_index(0), TaskId::from_index(1));
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        for ms in 0..8 {
            assert_eq!(reports.may_tell(noisy, at(ms)), ms < 5, "{ms}");
        }
        assert!(reports.may_tell(calm, at(500)));
        assert_eq!(reports.left_out(at(999)), []);
        assert_eq!(reports.left_out(at(1000)), [(noisy, 3)]);
        assert_eq!(reports.left_out(at(1500)), [], "nothing of it was left out");
        assert!(reports.may_tell(noisy, at(1500)), "a new second begins");
    }
}
