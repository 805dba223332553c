//! What others see of the simulated machine.

use core::convert::Infallible;

use shiftwork_machine::{Machine, Outcome, Workload};
use shiftwork_model::{Instant, Overheads, Recorder, TaskSet};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::OrderName;

use crate::costs::{Costs, QueueUse};
use crate::engine::Engine;

/// How to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of all random numbers: sporadic gaps and random execution times.
    pub seed: u64,
    /// The run covers everything before this instant, and what finishes exactly at it.
    pub horizon: Instant,
    /// What scheduling costs; `None`: nothing.
    pub overheads: Option<Overheads>,
    /// Whether background work that has waited a second gets its reserve.
    pub reserve_server: bool,
}

/// A machine without noise: time is an integer, and the same input gives the same records.
#[derive(Clone, Debug)]
pub struct SimulatedMachine {
    /// How it simulates.
    pub options: Options,
}

impl Machine for SimulatedMachine {
    type Error = Infallible;

    fn run<R: Recorder>(
        &mut self,
        workload: Workload<'_>,
        recorder: &mut R,
    ) -> Result<Outcome, Infallible> {
        Ok(Engine::new(workload, self.options.clone(), recorder).run())
    }
}

/// One run of one task set under one policy.
pub struct Simulation<'a> {
    workload: Workload<'a>,
    options: Options,
}

impl<'a> Simulation<'a> {
    /// The run of `set` under `policy`, which was built for it and has no job ready. `order` is by
    /// what the policy ranks jobs (its registry entry says).
    pub fn new(
        set: &'a TaskSet,
        policy: Box<dyn Policy>,
        order: OrderName,
        options: Options,
    ) -> Self {
        Self {
            workload: Workload { set, policy, order },
            options,
        }
    }

    /// Simulates to the horizon and tells the recorder everything that happens. Never refuses for
    /// load. Memory does not grow with the horizon.
    ///
    /// At the horizon itself only completions are recorded: a finish exactly there is a finish,
    /// but what would run afterwards is not part of the run.
    pub fn run<R: Recorder>(self, recorder: &mut R) -> Outcome {
        Engine::new(self.workload, self.options, recorder).run()
    }

    /// As [`run`](Self::run), and returns what operations on the ready queue took; `None` if the policy says
    /// nothing of its structure, or nothing costs anything. Memory grows with the horizon.
    pub fn run_measuring_queue<R: Recorder>(self, recorder: &mut R) -> (Outcome, Option<QueueUse>) {
        let mut engine = Engine::new(self.workload, self.options, recorder);
        if let Some(used) = engine.costs.as_mut().and_then(Costs::queue_use) {
            *used = Some(QueueUse::default());
        }
        let outcome = engine.run();
        let used = engine.costs.as_mut().and_then(Costs::queue_use);
        (outcome, used.and_then(Option::take))
    }

    /// As [`run`](Self::run), but asks `go_on` before every instant, and stops at the first for
    /// which the answer is no: what was simulated until then is a whole run with that instant as
    /// its horizon. Returns the horizon that was reached.
    pub fn run_while<R: Recorder>(
        self,
        recorder: &mut R,
        go_on: impl FnMut(Instant) -> bool,
    ) -> (Outcome, Instant) {
        Engine::new(self.workload, self.options, recorder).run_while(go_on)
    }
}
