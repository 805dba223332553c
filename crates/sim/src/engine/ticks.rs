//! Ticks: the quanta of policies that decide at their boundaries, and the costs of ticks.

use shiftwork_machine::Ticks;
use shiftwork_model::{Instant, Recorder, Span, TaskSet};
use shiftwork_policy::{Event, Policy, Quanta};

use super::{Costs, Engine};

/// The ticks of a run, if there are any: those of the policy's quanta. For other policies, if ticks have a
/// cost: at the same instants on all CPUs, the first after one quantum.
pub(crate) fn ticks(set: &TaskSet, policy: &dyn Policy, costs: Option<&Costs>) -> Option<Ticks> {
    if let Some(quanta) = policy.quanta() {
        return Some(Ticks::new(&quanta, 0));
    }
    let quanta = Quanta {
        length: set.scheduler.quantum_or_default(),
        phases: vec![Span::ZERO; set.platform.cpus],
    };
    let ticks = costs.is_some_and(Costs::has_ticks);
    ticks.then(|| Ticks::new(&quanta, 1))
}

impl<R: Recorder> Engine<'_, R> {
    /// Handles the ticks of all CPUs that are due.
    pub(crate) fn tick(&mut self, now: Instant) {
        while let Some((cpu, quantum)) = self.ticks.as_mut().and_then(|ticks| ticks.take(now)) {
            let cost = self.costs.as_ref().map(|costs| costs.tick(cpu));
            self.steal(now, cpu, cost.unwrap_or(Span::ZERO));
            if self.in_quanta {
                self.notify_policy(Event::Tick { cpu, quantum }, Some(cpu));
            }
        }
    }
}
