//! What every machine is to the rest of the system.

use shiftwork_model::{Recorder, TaskSet};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::OrderName;

/// What a machine is to run: tasks, and who decides about them.
pub struct Workload<'a> {
    /// The tasks, the platform and the timed changes.
    pub set: &'a TaskSet,
    /// The policy, built for this task set, with no job ready.
    pub policy: Box<dyn Policy>,
    /// By what the policy ranks jobs: arrivals at one instant are told in this order.
    pub order: OrderName,
}

/// What a run amounts to beyond its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many events the policy was told.
    pub events: u64,
}

/// Runs jobs: in simulated time, or on CPUs.
///
/// A machine turns time into the policy's events, carries its switches out, and tells the recorder
/// what really happened, in order. Several events may share an instant; what runs after all of them
/// is what counts. At one instant completions and budget ends come first, then departures and
/// parameter changes in the file's order, then arrivals, most urgent first.
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
