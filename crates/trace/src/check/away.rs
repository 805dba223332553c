//! A CPU that is offline, or that background work has, runs no real-time job.

use super::Findings;
use super::state::State;

/// Judges every CPU that is away after the instant.
pub(super) fn judge(state: &State, found: &mut Findings) {
    if state.offline.is_empty() && state.background.is_empty() {
        return;
    }
    for (away, why) in [
        (&state.offline, "is offline"),
        (&state.background, "is given to background work"),
    ] {
        for cpu in away.iter() {
            if let Some(job) = state.on(cpu) {
                found.add(state.now(), || {
                    format!("{} runs on CPU {cpu}, which {why}", state.name(job))
                });
            }
        }
    }
}
