//! Checkers: verify a run from its records alone, for any machine.
//!
//! One file per property: affinities, the order of a policy, the deadlines that it schedules by, budgets, work
//! conservation, CPUs that are away, and that a job runs on one CPU and only while it is ready. Properties are checked after each whole instant;
//! intermediate states within an instant are not.
//!
//! The promises of a policy are plain values ([`PolicyContract`]): this crate does not depend on policies.

mod affinity;
mod away;
mod budget;
mod laxity;
mod one_cpu;
mod order;
mod quanta;
mod scheduling_deadline;
pub(crate) mod state;
mod survey;
#[cfg(test)]
pub(crate) mod testing;
mod work_conservation;

use std::fmt;

use shiftwork_model::{
    Affinity, Instant, Invariant, Order, PolicyTraits, Record, RecordKind, Recorder, Span, TaskSet,
};

use budget::Budgets;
use quanta::Quanta;
pub use quanta::{PfairShare, QuantumChoice, QuantumRule};
use scheduling_deadline::SchedulingDeadlines;
use state::State;
use survey::Survey;

/// Maximum number of reported violations; the first one matters most, and a broken machine may
/// violate every property at every instant.
pub const VIOLATIONS_MAX: usize = 100;

/// A violated property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The instant after which it was violated.
    pub at: Instant,
    /// Description: the jobs, the CPUs and the property.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}", self.at, self.what)
    }
}

/// The promises of a policy, by which the records are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyContract {
    /// The invariant that the policy keeps.
    pub invariant: Invariant,
    /// The order by which it ranks jobs.
    pub order: Order,
    /// By task, the CPUs to which the policy has bound it; needed only under
    /// [`Invariant::Packed`]. `None`: the affinities.
    pub packing: Option<Vec<Affinity>>,
    /// Whether decisions are carried out at the instant of the event at no cost. If they take time (overheads,
    /// live machines), order, work conservation and budgets hold only outside of reaction windows, and are not
    /// checked.
    pub immediate: bool,
}

impl PolicyContract {
    /// That of a policy with these properties that has bound the tasks so, where decisions are immediate.
    pub const fn of(policy: &PolicyTraits, packing: Option<Vec<Affinity>>) -> Self {
        Self {
            invariant: policy.invariant,
            order: policy.order,
            packing,
            immediate: true,
        }
    }
}

/// A recorder that checks the records of a run.
///
/// # Cost
/// Per instant at which something changed, a step per ready job and CPU, whatever the affinities:
/// each CPU is examined only for the most urgent waiting job that could get it. Memory grows with tasks and
/// CPUs, not with records.
#[derive(Debug)]
pub struct Checker {
    contract: PolicyContract,
    quantum: Span,
    state: State,
    survey: Survey,
    budgets: Budgets,
    deadlines: SchedulingDeadlines,
    quanta: Option<Quanta>,
    found: Findings,
}

/// The violations so far.
#[derive(Debug, Default)]
struct Findings(Vec<Violation>);

impl Findings {
    /// Adds a violation; its text is built only if there is room for it.
    fn add(&mut self, at: Instant, what: impl FnOnce() -> String) {
        if self.0.len() < VIOLATIONS_MAX {
            self.0.push(Violation { at, what: what() });
        }
    }
}

impl Recorder for Checker {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        if at < self.state.now() {
            let now = self.state.now();
            self.found
                .add(at, || format!("a record follows one of {now}"));
        }
        if at != self.state.now() {
            self.advance(at);
        }
        one_cpu::check_record(&self.state, kind, &mut self.found);
        self.budgets.take(&self.state, kind, &mut self.found);
        if self.contract.immediate {
            self.deadlines.take(&self.state, kind, &mut self.found);
        }
        if let Some(quanta) = &mut self.quanta {
            quanta.take(at, kind);
        }
        self.survey.take(&self.state, kind);
        self.state.take(kind);
    }
}

impl Checker {
    /// A checker for a run of this task set.
    pub fn new(set: &TaskSet, contract: PolicyContract) -> Self {
        let mut state = State::new(set);
        Self {
            survey: Survey::new(&contract, &mut state),
            budgets: Budgets::new(set, &contract),
            deadlines: SchedulingDeadlines::new(set, &contract),
            quanta: None,
            quantum: set.scheduler.quantum_or_default(),
            contract,
            state,
            found: Findings::default(),
        }
    }

    /// Also checks the allocation of quanta, for runs in which decisions are carried out at once.
    #[must_use]
    pub fn with_quanta(mut self, rule: QuantumRule) -> Self {
        let quanta = Quanta::new(rule, self.contract.order, self.state.cpus());
        self.quanta = self.contract.immediate.then_some(quanta);
        self
    }

    /// Ends the run at `horizon` and returns the violations in the order of time. Records exactly at the horizon
    /// end earlier activity; the state after them is not checked.
    pub fn finish(mut self, horizon: Instant) -> Vec<Violation> {
        if self.state.now() < horizon {
            self.advance(horizon);
        }
        if self.contract.immediate {
            self.budgets.close(&self.state, &mut self.found);
        }
        self.found.0
    }

    /// Advances to an instant before which there are no more records.
    fn advance(&mut self, to: Instant) {
        self.check();
        if let Some(quanta) = &mut self.quanta {
            quanta.pass(to, &self.state, &mut self.found);
        }
        let order = self.contract.order;
        while order.is_by_laxity() && self.contract.immediate {
            let next = laxity::next_decision(order, self.quantum, &self.state, &self.budgets);
            if next >= to {
                break;
            }
            self.state.look_at(next);
            self.check();
        }
        self.state.advance(to);
    }

    /// Checks the current instant, if a relevant record belongs to it.
    fn check(&mut self) {
        if !self.state.is_changed() {
            return;
        }
        let (state, found) = (&mut self.state, &mut self.found);
        state.settle();
        one_cpu::check(state, found);
        affinity::check(state, found);
        away::check(state, found);
        if self.contract.immediate {
            self.budgets.check(state, found);
            if self.contract.order.is_by_laxity() {
                let (budgets, now) = (&self.budgets, state.now());
                state.rank(self.contract.order, |id| budgets.left(now, id));
            }
            self.survey.look(state, found);
            order::check(&self.contract, state, &self.survey, found);
            work_conservation::check(&self.contract, state, &self.survey, found);
        }
        if let Some(quanta) = &mut self.quanta {
            quanta.check(state.now(), state, found);
        }
        state.close();
    }
}

/// All violations of these records of a run up to `horizon`, at most [`VIOLATIONS_MAX`].
pub fn check(
    set: &TaskSet,
    contract: PolicyContract,
    horizon: Instant,
    records: &[Record],
) -> Vec<Violation> {
    let mut checker = Checker::new(set, contract);
    for record in records {
        checker.record(record.at, &record.kind);
    }
    checker.finish(horizon)
}

#[cfg(test)]
mod tests {
    use super::testing::{edf, found};
    use super::*;
    use crate::testing::{Script, at, noise, set};
    use shiftwork_model::RandomStream;

    #[test]
    fn violation_text_has_instant_and_description() {
        let violation = Violation {
            at: at(1_500),
            what: "it rains".into(),
        };
        assert_eq!(violation.to_string(), "at 1.5us: it rains");
    }

    #[test]
    fn correct_run_has_no_violations() {
        let set = set(2, &[("a", "0-1"), ("b", "0-1"), ("c", "1")]);
        let script = Script::default()
            .at(0)
            .release(0, 1, 10)
            .switch(0, Some((0, 1)))
            .release(1, 1, 20)
            .switch(1, Some((1, 1)))
            .at(2)
            .release(2, 1, 5)
            .switch(1, Some((2, 1)))
            .at(4)
            .complete(2, 1)
            .switch(1, Some((1, 1)))
            .at(9)
            .complete(0, 1)
            .switch(0, None)
            .at(12)
            .complete(1, 1)
            .switch(1, None);
        assert_eq!(found(&set, edf(Invariant::Strong), &script, 20), [""; 0]);
        assert_eq!(found(&set, edf(Invariant::Weak), &script, 20), [""; 0]);
    }

    #[test]
    fn records_at_the_horizon_are_not_checked() {
        let script = Script::default()
            .at(0)
            .release(0, 1, 20)
            .switch(0, Some((0, 1)))
            .at(9)
            .complete(0, 1);
        let set = set(1, &[("a", "0")]);
        assert_eq!(found(&set, edf(Invariant::Strong), &script, 9), [""; 0]);
        assert_eq!(
            found(&set, edf(Invariant::Strong), &script, 10),
            ["at 9ns: job 1 of a runs on CPU 0 and is not ready"]
        );
    }

    #[test]
    fn decreasing_instants_are_a_violation() {
        let script = Script::default()
            .at(5)
            .release(0, 1, 20)
            .switch(0, Some((0, 1)))
            .at(4);
        let script = script.switch(0, Some((0, 1)));
        let found = found(&set(1, &[("a", "0")]), edf(Invariant::Weak), &script, 9);
        assert_eq!(found, ["at 4ns: a record follows one of 5ns"]);
    }

    #[test]
    fn violations_are_bounded_and_random_records_never_panic() {
        for seed in 1..=300 {
            let mut random = RandomStream::new(seed, 0, 0);
            let records = noise(&mut random, 5, 9, 400);
            let set = set(4, &[("a", "0"), ("b", "0-1"), ("c", "2-3")]);
            let packing = set.tasks.iter().map(|task| task.affinity).collect();
            for invariant in [
                Invariant::Weak,
                Invariant::Strong,
                Invariant::Packed,
                Invariant::NonPreemptive,
            ] {
                let contract = PolicyContract {
                    packing: Some(Vec::clone(&packing)),
                    ..edf(invariant)
                };
                let found = check(&set, contract, Instant::NEVER, &records);
                assert!(
                    !found.is_empty() && found.len() <= VIOLATIONS_MAX,
                    "seed {seed}"
                );
            }
        }
    }
}
