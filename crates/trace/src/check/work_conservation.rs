//! No CPU is idle while a ready job waits that could get it: directly, or under the strong
//! invariant over a chain of shifts.

use super::Findings;
use super::reach::Survey;
use super::state::State;

/// Judges the instant that is over.
pub(super) fn judge(state: &State, survey: &Survey, found: &mut Findings) {
    for front in survey.fronts() {
        if let Some(cpu) = front.idle {
            found.add(state.now(), || {
                format!(
                    "CPU {cpu} is idle, and {} waits for it",
                    state.ready_name(front.waiting)
                )
            });
        }
    }
}
