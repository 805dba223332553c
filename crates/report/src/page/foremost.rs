//! The order of tasks on a page. Of many tasks those come first that matter: with missed deadlines, then with little slack.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{RunView, plural};
use crate::misses::Misses;
use crate::overview::Overview;
use crate::run::{Limits, Run};
use crate::units;

/// How many tasks are shown at first.
pub(super) struct Foremost {
    /// `None` for all of them.
    shown: Option<usize>,
    /// The most tasks of a run.
    tasks: usize,
}

impl Foremost {
    pub fn of(views: &[RunView<'_>], limits: &Limits) -> Self {
        let tasks = views.iter().map(|view| view.run.set.tasks.len());
        let tasks = tasks.max().unwrap_or(0);
        Self {
            shown: (tasks > limits.tasks).then_some(limits.foremost),
            tasks,
        }
    }

    /// Whether all tasks are shown at first.
    pub const fn is_all(&self) -> bool {
        self.shown.is_none()
    }

    /// The most tasks of a run.
    pub const fn tasks(&self) -> usize {
        self.tasks
    }

    /// The tasks that are shown at first, and the others.
    pub fn split<'a>(&self, view: &'a RunView<'_>) -> (&'a [usize], &'a [usize]) {
        let order = &view.order;
        order.split_at(self.shown.unwrap_or(order.len()).min(order.len()))
    }

    /// A sentence about what is shown of which tasks, where they are shown first; empty if it is shown of all.
    pub fn remark(&self, what: &str) -> String {
        let Some(shown) = self.shown else {
            return String::new();
        };
        format!(
            "<p class=\"lead\">{what} of {} of the {}: first those that missed most deadlines, then those with the least \
             slack, the part of the deadline that was left after the longest response.</p>\n",
            units::count(shown as u64),
            plural(self.tasks as u64, "task"),
        )
    }

    /// The same, shorter, where they are shown again.
    pub fn remark_again(&self, what: &str) -> String {
        self.shown.map_or_else(String::new, |shown| {
            let shown = units::count(shown as u64);
            format!(
                "<p class=\"lead\">{what} of the same {shown} tasks, and of the others below.</p>\n"
            )
        })
    }
}

/// More missed deadlines over all runs come first; of as many, less slack.
type Rank = (Reverse<usize>, i64);

/// The order of the tasks of each run: that of their files, or if they are many, by what matters in all runs together.
pub(super) fn orders(
    runs: &[Run<'_>],
    found: &[(Overview, Misses)],
    limits: &Limits,
) -> Vec<Vec<usize>> {
    let is_many = runs.iter().any(|run| run.set.tasks.len() > limits.tasks);
    let mut ranks: BTreeMap<&str, Rank> = BTreeMap::new();
    for (run, (overview, _)) in runs.iter().zip(found).filter(|_| is_many) {
        let mut late = vec![0; run.set.tasks.len()];
        for job in &overview.late {
            late[job.task.index()] += 1;
        }
        for ((task, late), responses) in run.set.tasks.iter().zip(late).zip(&overview.responses) {
            let slack = slack(task.deadline.as_ns(), responses.longest().unwrap_or(0));
            let rank = ranks.entry(&task.name).or_insert((Reverse(0), slack));
            rank.0.0 += late;
            rank.1 = rank.1.min(slack);
        }
    }
    let order = |run: &Run<'_>| {
        let mut order: Vec<usize> = (0..run.set.tasks.len()).collect();
        order.sort_by_key(|&task| ranks.get(&*run.set.tasks[task].name));
        order
    };
    runs.iter().map(order).collect()
}

/// The part of the deadline that is left after a response, in millionths; negative if it was late.
fn slack(deadline_ns: u64, response_ns: u64) -> i64 {
    let (deadline, response) = (i128::from(deadline_ns), i128::from(response_ns));
    let part = (deadline - response) * 1_000_000 / deadline.max(1);
    i64::try_from(part).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_is_a_part_of_the_deadline() {
        assert_eq!(slack(100, 25), 750_000);
        assert_eq!(slack(100, 0), 1_000_000);
        assert_eq!(slack(10, 15), -500_000);
        assert_eq!(slack(0, u64::MAX), i64::MIN);
    }
}
