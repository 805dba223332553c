//! Quantum-driven policies: when quanta begin, and jobs that wait for the previous one of their task.

use shiftwork_machine::Ticks;
use shiftwork_model::{Arrival, Instant, Job, TaskId};
use shiftwork_policy::Event as PolicyEvent;

use super::Decider;
use super::task_state::Stage;

/// The quanta of the policy, and future releases as far as they are known: those of periodic tasks that follow the
/// run. Any other release before the end of the present job is known only when that job ends.
pub(super) struct Quanta {
    ticks: Ticks,
    /// Nothing after this instant matters.
    end: Instant,
    /// Which tasks are periodic.
    periodic: Vec<bool>,
}

impl Quanta {
    /// The quanta of the policy; `None` if it decides at events alone.
    pub(super) fn new(
        policy: &dyn shiftwork_policy::Policy,
        tasks: &[shiftwork_model::Task],
        end: Instant,
    ) -> Option<Self> {
        let quanta = policy.quanta()?;
        let periodic = tasks
            .iter()
            .map(|task| matches!(task.arrival, Arrival::Periodic));
        Some(Self {
            ticks: Ticks::new(&quanta, 0),
            end,
            periodic: periodic.collect(),
        })
    }

    /// When the next quantum begins.
    pub(super) fn next(&self) -> Instant {
        Some(self.ticks.next())
            .filter(|&next| next < self.end)
            .unwrap_or(Instant::NEVER)
    }

    /// Skips the quanta that are over.
    pub(super) fn skip_to(&mut self, now: Instant) {
        self.ticks.skip_to(now);
    }
}

impl Decider {
    /// Passes all quanta that begin at this instant to the policy.
    pub(super) fn tick(&mut self, due: Instant) {
        while let Some((cpu, quantum)) = self
            .quanta
            .as_mut()
            .and_then(|quanta| quanta.ticks.take(due))
        {
            self.apply(PolicyEvent::Tick { cpu, quantum });
        }
    }

    /// Sets the timer of the next release after this one: it may come before the present job is finished.
    pub(super) fn predict_release(&mut self, id: TaskId, release: Instant) {
        let Some(quanta) = &self.quanta else { return };
        let state = &mut self.states[id.index()];
        if !quanta.periodic[id.index()] || !state.follows || state.predicted_release > release {
            return;
        }
        let next = release + state.parameters.period;
        if next >= quanta.end {
            return;
        }
        state.predicted_release = next;
        let at = self.cpus.len() + self.states.len() + id.index();
        self.timers
            .set(at, self.states[id.index()].predicted_release);
    }

    /// The timer of a predicted release: passes a job that waits for the previous one to the policy.
    pub(super) fn on_predicted_release(&mut self, due: Instant, id: TaskId) {
        let state = &self.states[id.index()];
        let waits = match state.stage {
            Stage::Ready | Stage::Suspended | Stage::Throttled(_) | Stage::Blocked => {
                state.release < due
            }
            Stage::Idle | Stage::Unreleased(_) => false,
        };
        if !state.is_present || !waits {
            return;
        }
        let job = Job {
            task: id,
            ready: due,
            deadline: due + state.parameters.deadline,
            priority: state.priority,
        };
        self.apply(PolicyEvent::Released(job));
        self.predict_release(id, due);
    }
}
