//! The interface of the simulated machine.

use shiftwork_model::{Instant, PolicyTraits, Recorder, TaskSet};
use shiftwork_policy::Policy;

use crate::engine::{Costs, Engine, Outcome, QueueUse, Workload};
use crate::options::Options;

/// One run of one task set under one policy.
pub struct Simulation<'a> {
    workload: Workload<'a>,
    options: Options,
}

impl<'a> Simulation<'a> {
    /// The run of `set` under `policy`, which was built for it and has no ready job. `traits` are the
    /// properties of the policy, from its registry entry.
    pub fn new(
        set: &'a TaskSet,
        policy: Box<dyn Policy>,
        traits: &PolicyTraits,
        options: Options,
    ) -> Self {
        let workload = Workload {
            set,
            policy,
            traits: *traits,
        };
        Self { workload, options }
    }

    /// Simulates to the horizon and records all events. Never refuses for load. Memory does not grow with the
    /// horizon.
    ///
    /// At the horizon itself only completions are recorded: a completion exactly there is part of the run,
    /// but the jobs that would run afterwards are not.
    pub fn run<R: Recorder>(self, recorder: &mut R) -> Outcome {
        Engine::new(self.workload, self.options, recorder).run()
    }

    /// As [`run`](Self::run), and returns the durations of operations on the ready queue; `None` if the policy has
    /// no known structure, or scheduling costs nothing. Memory grows with the horizon.
    pub fn run_measuring_queue<R: Recorder>(self, recorder: &mut R) -> (Outcome, Option<QueueUse>) {
        let mut engine = Engine::new(self.workload, self.options, recorder);
        if let Some(used) = engine.costs.as_mut().and_then(Costs::queue_use) {
            *used = Some(QueueUse::default());
        }
        let outcome = engine.run();
        let used = engine.costs.as_mut().and_then(Costs::queue_use);
        (outcome, used.and_then(Option::take))
    }

    /// As [`run`](Self::run), but calls `go_on` before every instant, and stops at the first for which it is
    /// false: the simulation until then is a complete run with that instant as its horizon. Returns the horizon
    /// that was reached.
    pub fn run_while<R: Recorder>(
        self,
        recorder: &mut R,
        go_on: impl FnMut(Instant) -> bool,
    ) -> (Outcome, Instant) {
        Engine::new(self.workload, self.options, recorder).run_while(go_on)
    }
}
