//! A job becomes ready with the deadline that follows from its release.
//!
//! Once a server has replenished the budget of a task or its attributes have changed, its server may be behind
//! the releases, and the deadlines of later jobs are not known here. Nor are they of a job that becomes ready
//! only after the release of the next one.

use shiftwork_model::{Instant, Invariant, JobId, Order, RecordKind, Span, Task, TaskSet};

use super::state::State;
use super::{Findings, PolicyContract};

/// What is known of the deadlines of all tasks.
#[derive(Clone, Debug)]
pub(super) struct SchedulingDeadlines {
    order: Order,
    cpus: usize,
    tasks: Vec<Known>,
}

#[derive(Clone, Debug)]
struct Known {
    /// Cost and relative deadline; `None` if the deadlines are not known.
    attributes: Option<(Span, Span)>,
    /// The job that was released last, and the instant at which it is due.
    last: Option<(JobId, Instant)>,
    /// By what the protocol of a mutex had the present job scheduled last, if one did.
    ranked: Option<Instant>,
}

impl SchedulingDeadlines {
    pub fn new(set: &TaskSet, contract: &PolicyContract) -> Self {
        // The deadlines of SCHED_DEADLINE's servers do not follow releases.
        let follow_releases = contract.invariant != Invariant::PushPull;
        // A server falls behind the arrivals of a triggered task where these are less than a period apart.
        let is_known =
            |task: &Task| follow_releases && (task.trigger().is_none() || !task.may_be_throttled());
        let tasks = set.tasks.iter().map(|task| Known {
            attributes: is_known(task).then_some((task.cost, task.deadline)),
            last: None,
            ranked: None,
        });
        Self {
            order: contract.order,
            cpus: set.platform.cpus,
            tasks: tasks.collect(),
        }
    }

    /// Takes a record of the current instant.
    pub fn take(&mut self, state: &State, kind: &RecordKind, found: &mut Findings) {
        match *kind {
            RecordKind::Released { job, deadline } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.last = Some((job, deadline));
                }
            }
            RecordKind::Replenished { task, .. } | RecordKind::AttributesSet { task, .. } => {
                if let Some(task) = self.tasks.get_mut(task.index()) {
                    task.attributes = None;
                }
            }
            RecordKind::RankChanged { task, deadline, .. } => {
                if let Some(task) = self.tasks.get_mut(task.index()) {
                    task.ranked = Some(deadline);
                }
            }
            RecordKind::Completed { job } => {
                if let Some(task) = self.tasks.get_mut(job.task.index()) {
                    task.ranked = None;
                }
            }
            RecordKind::Ready { job, deadline, .. } => {
                let Some(right) = self.right(job).filter(|right| *right != deadline) else {
                    return;
                };
                found.add(state.now(), || {
                    format!(
                        "{} is scheduled by {deadline}, and its {} is {right}",
                        state.name(job),
                        match self.order {
                            Order::FairLateness => "priority point",
                            _ => "deadline",
                        }
                    )
                });
            }
            _ => {}
        }
    }

    /// The deadline by which the job is to be scheduled; `None` if it is not known.
    fn right(&self, job: JobId) -> Option<Instant> {
        let task = self.tasks.get(job.task.index())?;
        if task.ranked.is_some() {
            return task.ranked;
        }
        let (_, due) = task.last.filter(|(last, _)| *last == job)?;
        let right = self
            .order
            .scheduling_deadline(due, task.attributes?, self.cpus);
        Some(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::check::testing::edf;
    use crate::testing::{at, set};
    use shiftwork_model::{Priority, Record, TaskId};

    /// A job with C = 10 and D = 100 that is scheduled by `deadline`, on 4 CPUs.
    fn found(order: Order, deadline: u64, before: Option<RecordKind>) -> Vec<String> {
        let job = JobId {
            task: TaskId::from_index(0),
            number: 1,
        };
        let kinds = [
            RecordKind::Released {
                job,
                deadline: at(105),
            },
            RecordKind::Ready {
                job,
                deadline: at(deadline),
                priority: Priority::LEAST_URGENT,
            },
            RecordKind::Completed { job },
        ];
        let records: Vec<Record> = before
            .into_iter()
            .chain(kinds)
            .map(|kind| Record { at: at(5), kind })
            .collect();
        let contract = PolicyContract {
            order,
            ..edf(Invariant::Strong)
        };
        let found = check(&set(4, &[("a", "0-3")]), contract, at(9), &records);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn job_is_scheduled_by_its_own_deadline_or_priority_point() {
        assert_eq!(found(Order::Edf, 105, None), [""; 0]);
        assert_eq!(found(Order::FixedPriority, 105, None), [""; 0]);
        // 105 - 3/4 of 10, rounded up.
        assert_eq!(found(Order::FairLateness, 98, None), [""; 0]);
        assert_eq!(
            found(Order::Edf, 98, None),
            ["at 5ns: job 1 of a is scheduled by 98ns, and its deadline is 105ns"]
        );
        assert_eq!(
            found(Order::FairLateness, 97, None),
            ["at 5ns: job 1 of a is scheduled by 97ns, and its priority point is 98ns"]
        );
    }

    #[test]
    fn deadlines_of_servers_and_of_changed_tasks_are_not_known() {
        let task = TaskId::from_index(0);
        let replenished = RecordKind::Replenished {
            task,
            budget: Span::from_ns(10),
            deadline: at(205),
        };
        assert_eq!(found(Order::Edf, 205, Some(replenished)), [""; 0]);
        let changed = RecordKind::AttributesSet {
            task,
            cost: Span::from_ns(5),
            period: Span::from_ns(100),
            deadline: Span::from_ns(100),
        };
        assert_eq!(found(Order::Edf, 205, Some(changed)), [""; 0]);
    }
}
