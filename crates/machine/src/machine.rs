//! The interface of all machines.

use shiftwork_model::{PolicyTraits, Recorder, TaskSet};
use shiftwork_policy::Policy;

/// The input of a run: the tasks, and the policy that schedules them.
pub struct Workload<'a> {
    /// The tasks, the platform and the timed changes.
    pub set: &'a TaskSet,
    /// The policy, built for this task set, with no job ready.
    pub policy: Box<dyn Policy>,
    /// The properties of the policy. Arrivals at one instant are passed to it in its order.
    pub traits: PolicyTraits,
}

/// The result of a run beyond its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of events that were passed to the policy.
    pub events: u64,
}

/// Runs jobs: in simulated time, or on CPUs.
///
/// A machine turns the passage of time into events of the policy, carries the policy's switches out, and
/// records what really happened, in order. Several events may share an instant; only the assignment after
/// the last of them takes effect. At one instant completions and budget ends come first, then departures
/// and parameter changes in the file's order, then arrivals, most urgent first.
pub trait Machine {
    /// Why the machine could not run the workload.
    type Error: core::error::Error;

    /// Runs the workload to the machine's horizon.
    ///
    /// # Errors
    /// If the machine cannot carry the workload out; what was recorded until then stays valid.
    fn run<R: Recorder>(
        &mut self,
        workload: Workload<'_>,
        recorder: &mut R,
    ) -> Result<Outcome, Self::Error>;
}
