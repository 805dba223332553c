//! All that can be said of a task set: every test that applies, for every policy, and what follows.
//!
//! [`TESTS`] is the catalogue. A policy is known by its properties and by where it binds each task; so
//! partitioned, clustered and global scheduling are affinities like any other. The tasks fall into
//! *parts*: CPUs and tasks that no task connects with any others. A test passes if it passes for every
//! part. A criterion is shown if every part is shown by some test, perhaps each by another.
//!
//! Where scheduling costs something ([`analyse_under`]), tests are asked about tasks that pay for it.
//!
//! "No" needs a proof: demand that does not fit, or the failure of an exact test. Everything else that
//! is not shown is unknown.

mod analyse;
mod ask;
mod audsley;
mod case;
mod catalogue;
mod conclude;
mod curves;
mod decide;
mod divide;
mod ground;
mod hope;
mod jitter;
mod judge;
mod priorities;
mod question;
mod reserved;
mod scale;
#[cfg(test)]
mod tests;
mod under;
mod waiting;
mod words;

pub use analyse::analyse;
pub use case::Deadlines;
pub use catalogue::{Criterion, TESTS, Test};
pub use decide::{Decision, Question};
pub use priorities::{priority_order, with_priorities};
pub use question::decide;
pub use reserved::bounds_beside_reserve;
pub(crate) use scale::scaled;
pub use scale::{Factor, largest_factor};
pub use under::{Account, Charged, Price, Table, analyse_under, under_overheads};
pub use words::{Names, decimal, fraction, witness};

use shiftwork_model::{Affinity, PolicyTraits, Span, TaskSet};

use crate::affinity::Feasibility;
use crate::{Demand, Witness};

/// A policy about which is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The name.
    pub policy: String,
    /// Its properties.
    pub traits: PolicyTraits,
    /// The CPUs to which it binds each task, in the order of the tasks; or why it refuses them.
    pub bound: Result<Vec<Affinity>, String>,
}

/// What a test found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its condition holds.
    Pass,
    /// It does not.
    Fail,
    /// The tasks, or those of some part, are outside its domain.
    NotApplicable,
    /// The steps were used up before either was known.
    StepLimit,
}

impl Found {
    /// The name in JSON: `pass`, `fail`, `not-applicable` or `step-limit`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotApplicable => "not-applicable",
            Self::StepLimit => "step-limit",
        }
    }
}

/// Whether a criterion is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Always.
    Schedulable,
    /// Not always, and something proves it.
    Unschedulable,
    /// Nothing decides.
    Unknown,
}

impl Answer {
    /// The name in JSON: `schedulable`, `unschedulable` or `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schedulable => "schedulable",
            Self::Unschedulable => "unschedulable",
            Self::Unknown => "unknown",
        }
    }
}

/// What is known of one criterion under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it is met.
    pub answer: Answer,
    /// The tests that decide, each once, the cheapest of each part; `feasibility` where the demand does
    /// not fit. Empty if nothing decides.
    pub by: Vec<&'static str>,
    /// Of an unschedulable set: what proves it.
    pub witness: Option<Witness>,
    /// Every test that speaks of the policy and the criterion.
    pub tests: Vec<(&'static str, Found)>,
}

/// Bounds on response times that one test shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The test.
    pub test: &'static str,
    /// By task; `None` for tasks of parts of which the test shows nothing.
    pub responses: Vec<Option<Span>>,
}

/// The best that is known of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// No response is longer.
    pub response: Span,
    /// The test that shows it.
    pub by: &'static str,
}

/// What is known of a task set under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyAnalysis {
    /// The policy.
    pub policy: String,
    /// Its properties.
    pub traits: PolicyTraits,
    /// Why it refuses the task set, if it does.
    pub refusal: Option<String>,
    /// Whether all deadlines are met.
    pub hard: Judgement,
    /// Whether tardiness is bounded.
    pub soft: Judgement,
    /// What tests show of response times.
    pub bounds: Vec<Bounds>,
    /// The least of all bounds, by task; a task that meets all deadlines responds by its deadline.
    pub best: Vec<Option<Best>>,
}

impl PolicyAnalysis {
    /// What is known of this criterion.
    pub const fn judgement(&self, criterion: Criterion) -> &Judgement {
        match criterion {
            Criterion::Hard => &self.hard,
            Criterion::Soft => &self.soft,
        }
    }

    /// The largest bound on the tardiness of a task of the set; `None` if some task has none.
    pub fn tardiness(&self, set: &TaskSet) -> Option<Span> {
        let late = self.best.iter().zip(&set.tasks).map(|(best, task)| {
            let response = best.as_ref()?.response;
            Some(response.saturating_sub(task.deadline))
        });
        let late: Option<Vec<Span>> = late.collect();
        Some(late?.into_iter().max().unwrap_or_default())
    }
}

/// What is known of a task set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The sum of all C/T.
    pub utilization: Demand,
    /// Whether any scheduler meets all deadlines.
    pub feasibility: Feasibility,
    /// Policy by policy, in the order in which they were asked about.
    pub policies: Vec<PolicyAnalysis>,
}

/// What in a task set no test takes into account, in words, one sentence each; verdicts and bounds are
/// those of the set without it. Tests take tasks as sporadic: released a period or more apart, from any
/// time on, and never longer than their cost. For tasks with jitter, arrival curves or suspensions within
/// jobs, others stand: see
/// [`stand_ins`](crate::stand_ins).
pub fn left_out(set: &TaskSet) -> Vec<String> {
    use shiftwork_model::{Change, Frequency, Share};
    let mut found = Vec::new();
    for task in &set.tasks {
        let name = &task.name;
        let longest = task.longest_run();
        if longest > task.cost {
            let cost = task.cost;
            found.push(format!(
                "jobs of task `{name}` may run for {longest}, longer than its cost of {cost}"
            ));
        }
    }
    let changes = |change: &&Change| !matches!(change, Change::Enter(_));
    let timed = set.actions.iter().map(|action| &action.change);
    match timed.filter(changes).count() {
        0 => {}
        1 => found.push("a timed change".to_owned()),
        some => found.push(format!("{some} timed changes")),
    }
    let is_slow = |capacity: &Share| capacity.billionths() < Share::WHOLE;
    if set.platform.capacities.iter().any(is_slow) {
        found.push("CPUs that are not at full speed".to_owned());
    }
    if set.platform.frequency == Frequency::GrubPa {
        found.push("frequencies that follow the load".to_owned());
    }
    if set.scheduler.reserve_server {
        found.push("the reserve that `reserve-server` takes".to_owned());
    }
    found
}
