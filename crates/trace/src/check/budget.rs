//! A job never executes for longer than its budget between replenishments.
//!
//! A job begins with at most the cost that its task had when the job was released; under a server
//! it may begin with less, which is not in the records. Tasks whose overruns are not throttled
//! have no budget. The servers of SCHED_DEADLINE are not checked.

use shiftwork_model::{Instant, Invariant, OnOverrun, RecordKind, Span, TaskId, TaskSet};

use super::state::State;
use super::{Findings, PolicyContract};

/// The remaining budgets of all tasks.
#[derive(Clone, Debug)]
pub(super) struct Budgets(Vec<Budget>);

#[derive(Clone, Debug)]
struct Budget {
    enforced: bool,
    /// Number of the last job released.
    released: u64,
    /// Costs, each with the first job to which it applies, ascending. Never empty; entries that no incomplete
    /// job needs are dropped, so there are never more than pending changes of attributes.
    costs: Vec<(u64, Span)>,
    /// The job to which the budget belongs.
    job: u64,
    limit: Span,
    executed: Span,
    /// Start of the job's current execution; `None` if it does not run.
    since: Option<Instant>,
    /// It spins, which is no execution.
    spins: bool,
}

impl Budgets {
    pub fn new(set: &TaskSet, contract: &PolicyContract) -> Self {
        // The budgets of SCHED_DEADLINE's servers do not follow jobs, and are not fully in the records.
        let follow_jobs = contract.invariant != Invariant::PushPull;
        let budgets = set.tasks.iter().map(|task| Budget {
            enforced: follow_jobs && task.on_overrun == OnOverrun::Throttle,
            released: 0,
            costs: vec![(1, task.cost)],
            job: 0,
            limit: task.cost,
            executed: Span::ZERO,
            since: None,
            spins: false,
        });
        Self(budgets.collect())
    }

    /// Takes a record of the current instant.
    pub fn take(&mut self, state: &State, kind: &RecordKind, found: &mut Findings) {
        match *kind {
            RecordKind::Released { job, .. } => {
                if let Some(budget) = self.0.get_mut(job.task.index()) {
                    budget.released = job.number;
                }
            }
            RecordKind::Ready { job, .. } => {
                if let Some(budget) = self.0.get_mut(job.task.index())
                    && budget.job != job.number
                {
                    budget.charge(state, job.task.index(), found);
                    budget.begin(job.number);
                }
            }
            RecordKind::Replenished {
                task,
                budget: limit,
                ..
            } => {
                if let Some(budget) = self.0.get_mut(task.index()) {
                    budget.charge(state, task.index(), found);
                    budget.executed = Span::ZERO;
                    budget.limit = limit;
                }
            }
            RecordKind::Spinning { job, .. } | RecordKind::Locked { job, .. } => {
                if let Some(budget) = self.0.get_mut(job.task.index()) {
                    budget.charge(state, job.task.index(), found);
                    budget.spins = matches!(kind, RecordKind::Spinning { .. });
                }
            }
            RecordKind::AttributesSet { task, cost, .. } => {
                if let Some(budget) = self.0.get_mut(task.index()) {
                    budget.costs.push((budget.released + 1, cost));
                }
            }
            _ => {}
        }
    }

    /// Ends the instant: charges the jobs that stopped, and notes those that started.
    pub fn check(&mut self, state: &State, found: &mut Findings) {
        for job in state.changes().filter_map(|change| change.before) {
            if let Some(budget) = self.0.get_mut(job.task.index()) {
                budget.charge(state, job.task.index(), found);
                budget.since = None;
            }
        }
        for job in state.changes().filter_map(|change| change.after) {
            if let Some(budget) = self.0.get_mut(job.task.index()) {
                budget.since = Some(state.now());
            }
        }
    }

    /// What is left of the cost of the task's job, or of its last budget, at the present instant.
    pub fn left(&self, now: Instant, task: TaskId) -> Span {
        self.0.get(task.index()).map_or(Span::ZERO, |budget| {
            let running = budget
                .since
                .filter(|_| !budget.spins)
                .map_or(Span::ZERO, |since| now.late_since(since));
            budget.limit.saturating_sub(budget.executed + running)
        })
    }

    /// Ends the run: charges the jobs that still run.
    pub fn close(&mut self, state: &State, found: &mut Findings) {
        for (task, budget) in self.0.iter_mut().enumerate() {
            budget.charge(state, task, found);
        }
    }
}

impl Budget {
    fn begin(&mut self, number: u64) {
        let later = self.costs.partition_point(|&(from, _)| from <= number);
        self.costs.drain(..later.saturating_sub(1));
        self.limit = self.costs[0].1;
        self.executed = Span::ZERO;
        self.job = number;
    }

    /// Charges the execution of the job up to now.
    fn charge(&mut self, state: &State, task: usize, found: &mut Findings) {
        let Some(since) = self.since.replace(state.now()) else {
            self.since = None;
            return;
        };
        if self.spins {
            return;
        }
        let before = self.executed;
        self.executed += state.now().late_since(since);
        if self.enforced && self.executed > self.limit && before <= self.limit {
            found.add(state.now(), || {
                format!(
                    "job {} of {} has executed {} on a budget of {}",
                    self.job, state.tasks[task].name, self.executed, self.limit
                )
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{edf, found};
    use crate::testing::{Script, at, set};

    /// One task with a budget of 10 ns.
    fn one_task(on_overrun: OnOverrun) -> TaskSet {
        let mut set = set(2, &[("a", "0-1")]);
        set.tasks[0].on_overrun = on_overrun;
        set
    }

    fn judged(script: &Script, horizon: u64) -> Vec<String> {
        found(
            &one_task(OnOverrun::Throttle),
            edf(Invariant::Weak),
            script,
            horizon,
        )
    }

    fn running() -> Script {
        Script::default()
            .at(0)
            .release(0, 1, 90)
            .switch(0, Some((0, 1)))
    }

    #[test]
    fn execution_beyond_the_budget_is_a_violation_also_in_pieces() {
        let pieces = running()
            .at(6)
            .switch(0, None)
            .at(6)
            .switch(1, Some((0, 1)));
        let script = pieces.at(11).switch(1, None).at(11).complete(0, 1);
        assert_eq!(
            judged(&script, 50),
            ["at 11ns: job 1 of a has executed 11ns on a budget of 10ns"]
        );
    }

    #[test]
    fn job_that_runs_at_the_horizon_is_charged_up_to_it() {
        assert_eq!(judged(&running(), 10), [""; 0]);
        assert_eq!(
            judged(&running(), 12),
            ["at 12ns: job 1 of a has executed 12ns on a budget of 10ns"]
        );
    }

    #[test]
    fn replenishment_gives_a_running_job_a_new_budget() {
        let replenished = |budget| RecordKind::Replenished {
            task: TaskId::from_index(0),
            budget: Span::from_ns(budget),
            deadline: at(190),
        };
        let script = running()
            .at(10)
            .record(replenished(5))
            .at(15)
            .complete(0, 1)
            .switch(0, None);
        assert_eq!(judged(&script, 50), [""; 0]);
        let script = running()
            .at(10)
            .record(replenished(4))
            .at(15)
            .complete(0, 1)
            .switch(0, None);
        assert_eq!(
            judged(&script, 50),
            ["at 15ns: job 1 of a has executed 5ns on a budget of 4ns"]
        );
    }

    #[test]
    fn changed_cost_applies_to_later_releases() {
        let attributes = RecordKind::AttributesSet {
            task: TaskId::from_index(0),
            cost: Span::from_ns(3),
            period: Span::from_ns(100),
            deadline: Span::from_ns(100),
        };
        let script = running()
            .at(2)
            .record(attributes)
            .at(9)
            .complete(0, 1)
            .switch(0, None);
        let script = script
            .release(0, 2, 99)
            .switch(0, Some((0, 2)))
            .at(13)
            .complete(0, 2);
        assert_eq!(
            judged(&script.switch(0, None), 50),
            ["at 13ns: job 2 of a has executed 4ns on a budget of 3ns"]
        );
    }

    #[test]
    fn only_throttled_tasks_have_a_budget() {
        let set = one_task(OnOverrun::Continue);
        assert_eq!(found(&set, edf(Invariant::Weak), &running(), 50), [""; 0]);
    }
}
