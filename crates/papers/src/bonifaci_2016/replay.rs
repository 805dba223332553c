//! What policies take for the events of a run, measured around each of them.

use std::sync::{Arc, Mutex, PoisonError};

use shiftwork_model::{CpuId, Instant, Job, Span, TaskId, TaskSet};
use shiftwork_policy::registry;
use shiftwork_policy::{Event, Policy, PolicyError, Switches};
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::Distribution;

use crate::clock::now;

/// How long the events of runs took.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    /// How many there were.
    pub count: u64,
    /// How long they took, without what reading the clock takes.
    pub spans: Distribution,
}

/// Simulates the set under the policy of this name to the horizon, and adds what each event took.
///
/// # Errors
/// In words, if there is no such policy, or it does not take the set.
pub fn replay(
    set: &TaskSet,
    policy: &str,
    length: Span,
    decisions: &mut Decisions,
) -> Result<(), String> {
    let entry = registry::find(policy).map_err(|error| error.to_string())?;
    let inner = entry.build(set).map_err(|error| error.to_string())?;
    let taken = Arc::new(Mutex::new(std::mem::take(decisions)));
    let timed = Timed {
        inner,
        taken: taken.clone(),
        clock: cost_of_clock(),
    };
    let options = Options {
        seed: 1,
        horizon: Instant::ZERO + length,
        overheads: None,
        reserve_server: false,
    };
    Simulation::new(set, Box::new(timed), &entry.traits, options).run(&mut ());
    *decisions = std::mem::take(&mut *taken.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// A policy that decides at events, with a clock around it.
struct Timed {
    inner: Box<dyn Policy>,
    taken: Arc<Mutex<Decisions>>,
    /// What two readings of the clock take.
    clock: Span,
}

impl Timed {
    fn measured<T>(&mut self, what: impl FnOnce(&mut dyn Policy) -> T) -> T {
        let before = now();
        let result = what(self.inner.as_mut());
        let took = now().saturating_sub(before).saturating_sub(self.clock);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.count += 1;
        taken.spans.add(took);
        result
    }
}

impl Policy for Timed {
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches) {
        self.measured(|policy| policy.on_event(event, out));
    }

    fn succeed(&mut self, next: Job, out: &mut Switches) -> bool {
        self.inner.succeed(next, out)
    }

    /// Not measured: the policies of this paper decide at events.
    fn end_instant(&mut self, out: &mut Switches) {
        self.inner.end_instant(out);
    }

    fn assigned(&self, cpu: CpuId) -> Option<TaskId> {
        self.inner.assigned(cpu)
    }

    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError> {
        self.inner.accepts(event)
    }
}

/// What two readings of the clock show where nothing happens between them: the median.
fn cost_of_clock() -> Span {
    let mut spans = [Span::ZERO; 1_001];
    for span in &mut spans {
        let before = now();
        *span = now().saturating_sub(before);
    }
    spans.sort_unstable();
    spans[spans.len() / 2]
}
