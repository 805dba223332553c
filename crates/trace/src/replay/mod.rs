//! Replay: whether a machine ran the jobs that its policy selects for the measured events.
//!
//! A comparison with an ideal simulation cannot distinguish a slow machine from a wrong one: the delay of one
//! reaction shifts everything after it. Here every decision is checked by itself. The measured events (releases
//! as the machine noticed them, completions, suspensions, ends of budgets, changes of parameters and CPUs)
//! are the input of the policy; the recorded running jobs are compared with its decisions. Later than a fixed
//! [window](Basis::window) after the last decision both must be equal. Nothing accumulates, and the window is not
//! derived from the run that is checked.
//!
//! The extent of the check depends on the policy ([`Rule`]):
//!
//! | rule | policies | condition later than the window after the last decision |
//! |---|---|---|
//! | same set | partitioned, clustered, global, strong | the running jobs are those that the policy selects; jobs of equal rank that became ready within a window of each other may be exchanged |
//! | weak invariant | weak | no ready job waits while a CPU that it may use is idle or runs a less urgent one |
//! | non-preemptive | np | no CPU idles while a job that may use it waits; a job that runs goes on; a CPU that becomes free takes the most urgent job that waits for it |
//! | work-conserving | dl | no CPU idles while a job that may use it waits |
//! | at boundaries | quanta, Pfair | a CPU begins with a task at a boundary of its quanta only |
//!
//! The set that a strong policy selects depends only on the ready jobs, so equality is exact. The selection of a
//! weak or non-preemptive policy also depends on the past, where a difference within a window may change all later
//! selections; for these only the definition is checked, which is weaker.
//!
//! A decision is an event after which the policy assigns another job to some CPU; for the rules without
//! a reference, any event. A deviation that lasts no longer than the window since it began, and since the last
//! decision, is a reaction. Even if decisions follow each other within the window for a long time, a job that
//! deviates without interruption for [`PATIENCE`] windows is reported.
//!
//! Start reading at [`replay`].

mod engine;
mod json;
mod state;
#[cfg(test)]
mod tests;
mod verdict;

use shiftwork_model::{Affinity, Instant, Order, Record, RecordKind, Span, TaskId, TaskSet};

pub use verdict::{Disagreement, DisagreementKind, Rule, Verdict};

/// Number of windows for which a job may deviate without interruption, however closely decisions follow each
/// other.
///
/// A correct machine reacts within the window; to exceed this limit, ten consecutive decisions would have to
/// concern one job, each before the reaction to the previous one.
pub const PATIENCE: u64 = 10;

/// The default window: 2 to 10 times the reaction times measured on machines and in emulators, and shorter than
/// the deadlines that Linux can meet reliably.
pub const WINDOW: Span = Span::from_us(200);

/// The policy of a replay. Its events are measured ones, in the order of their records.
pub trait Reference {
    /// Applies the events of one instant, which may be empty of events. Returns whether other jobs are
    /// selected now, or on other CPUs.
    fn apply(&mut self, at: Instant, events: &[RecordKind]) -> bool;

    /// Appends the tasks whose jobs are selected.
    fn selected(&self, tasks: &mut Vec<TaskId>);
}

/// The rule of a replay, with its parameters.
pub enum Judge<'a> {
    /// [`Rule::SameSet`].
    SameSet(&'a mut dyn Reference),
    /// [`Rule::WeakInvariant`].
    WeakInvariant,
    /// [`Rule::NonPreemptive`].
    NonPreemptive,
    /// [`Rule::WorkConserving`].
    WorkConserving,
    /// [`Rule::AtBoundaries`], with the length of quanta, and their phase on each CPU.
    AtBoundaries(Span, Vec<Span>),
}

/// The parameters of a replay, in addition to the task set.
#[derive(Clone, Debug)]
pub struct Basis<'a> {
    /// The order by which the policy ranks jobs.
    pub order: Order,
    /// By task, the CPUs to which the policy binds it until CPUs or affinities change; `None`: it binds none.
    pub packing: Option<&'a [Affinity]>,
    /// By task, whether its job is ready as soon as it is released and the previous job has completed: no
    /// server may throttle it, and only the file determines its releases.
    pub prompt: &'a [bool],
    /// The time that the machine may take to carry out a decision.
    pub window: Span,
    /// The end of the checked time.
    pub horizon: Instant,
}

/// Checks the records of a run.
///
/// # Assumes
/// Records of one machine in the order of its decisions. Unknown tasks and CPUs are ignored.
///
/// # Cost
/// Per instant a step per task and CPU, and the cost of the policy.
pub fn replay(set: &TaskSet, basis: &Basis<'_>, judge: Judge<'_>, records: &[Record]) -> Verdict {
    engine::Engine::new(set, basis, judge).run(records)
}
