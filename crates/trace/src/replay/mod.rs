//! Whether what a machine ran is what a policy decides on the events that were measured.
//!
//! The comparison with an ideal simulation cannot tell a slow machine from a wrong one: lateness of one
//! reaction moves all that follows. Here every decision is judged by itself. The measured events (releases
//! as the machine noticed them, completions, suspensions, ends of budgets, changes of parameters and CPUs)
//! are the input of the policy; the records of what CPUs ran are compared with what it decides. Later than
//! a fixed [window](Basis::window) after the last decision both are the same. Nothing accumulates, and the
//! window does not come from the run that is judged.
//!
//! How much is judged depends on the policy ([`Rule`]):
//!
//! | rule | policies | what must hold, later than the window after the last decision |
//! |---|---|---|
//! | same set | partitioned, clustered, global, strong | the running jobs are those that the policy selects; jobs of equal rank that became ready within a window of each other may be exchanged |
//! | weak invariant | weak | no ready job waits while a CPU that it may use is idle or runs a less urgent one |
//! | non-preemptive | np | no CPU idles while a job that may use it waits; a job that runs goes on; a CPU that becomes free takes the most urgent job that waits for it |
//! | work-conserving | dl | no CPU idles while a job that may use it waits |
//! | at boundaries | quanta, Pfair | a CPU begins with a task at a boundary of its quanta only |
//!
//! The set that a strong policy selects depends on the ready jobs alone, so equality is exact. What a weak
//! or non-preemptive policy selects depends on the past as well, where a window's difference may change
//! all that follows; there the definition is judged, which is less.
//!
//! A decision is an event after which the policy assigns another job to some CPU; for the rules without
//! a reference, any event. What is wrong for no longer than the window since it began, and since the last
//! decision, is a reaction. If decisions follow each other more closely than the window for long, a job that is
//! wrong without interruption for [`PATIENCE`] windows is found all the same.
//!
//! Start reading at [`replay`].

mod engine;
mod json;
mod state;
#[cfg(test)]
mod tests;
mod verdict;

use shiftwork_model::{Affinity, Happening, Instant, Record, Span, TaskId, TaskSet};

use crate::check::Order;
pub use verdict::{Disagreement, DisagreementKind, Rule, Verdict};

/// For how many windows a job may be wrong without interruption, however closely decisions follow each other.
///
/// A correct machine reacts within the window; to exceed this, ten decisions in a row would have to concern
/// one job, each before the reaction to the one before.
pub const PATIENCE: u64 = 10;

/// The window if none is chosen: 2 to 10 times what was measured on machines and in emulators, and shorter
/// than any deadline that Linux can be trusted with.
pub const WINDOW: Span = Span::from_us(200);

/// The policy of a replay. Its events are measured ones, in the order of their records.
pub trait Reference {
    /// Applies the events of one instant, which may be empty of events. Returns whether other jobs are
    /// selected now, or on other CPUs.
    fn apply(&mut self, at: Instant, events: &[Happening]) -> bool;

    /// Appends the tasks whose jobs are selected.
    fn selected(&self, tasks: &mut Vec<TaskId>);
}

/// What is judged.
pub enum Judge<'a> {
    /// [`Rule::SameSet`].
    SameSet(&'a mut dyn Reference),
    /// [`Rule::WeakInvariant`].
    WeakInvariant,
    /// [`Rule::NonPreemptive`].
    NonPreemptive,
    /// [`Rule::WorkConserving`].
    WorkConserving,
    /// [`Rule::AtBoundaries`], with the length of quanta, and for each CPU how late they begin.
    AtBoundaries(Span, Vec<Span>),
}

/// By what a run is judged, beside its task set.
#[derive(Clone, Debug)]
pub struct Basis<'a> {
    /// By what the policy ranks jobs.
    pub order: Order,
    /// Where the policy binds each task, until CPUs or affinities change; `None`: it binds none.
    pub packing: Option<&'a [Affinity]>,
    /// For each task whether its job is ready as soon as it is released and the job before it is finished:
    /// no server may hold it back, and nothing but the file says when it is released.
    pub prompt: &'a [bool],
    /// How long the machine may take to carry out a decision.
    pub window: Span,
    /// The end of what is judged.
    pub horizon: Instant,
}

/// Judges the records of a run.
///
/// # Assumes
/// Records of one machine in the order of its decisions. Unknown tasks and CPUs are ignored.
///
/// # Cost
/// Per instant a step per task and CPU, and what the policy takes.
pub fn replay(set: &TaskSet, basis: &Basis<'_>, judge: Judge<'_>, records: &[Record]) -> Verdict {
    engine::Engine::new(set, basis, judge).run(records)
}
