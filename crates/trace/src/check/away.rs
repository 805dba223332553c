//! A CPU that is offline, taken by a higher scheduling class, or given to background work, runs no real-time job.

use super::Findings;
use super::state::State;

/// Checks every CPU that is away after the instant.
pub(super) fn check(state: &State, found: &mut Findings) {
    if (state.offline | state.taken | state.background).is_empty() {
        return;
    }
    for (away, why) in [
        (&state.offline, "is offline"),
        (&state.taken, "others have taken"),
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

#[cfg(test)]
mod tests {
    use crate::check::testing::{edf, found};
    use crate::testing::{Script, cpu, set};
    use shiftwork_model::{Invariant, RecordKind};

    #[test]
    fn job_on_a_cpu_that_is_away_is_a_violation() {
        let set = set(1, &[("a", "0")]);
        for (goes, returns, why) in [
            (
                RecordKind::CpuOffline { cpu: cpu(0) },
                RecordKind::CpuOnline { cpu: cpu(0) },
                "is offline",
            ),
            (
                RecordKind::CpuTaken { cpu: cpu(0) },
                RecordKind::CpuReturned { cpu: cpu(0) },
                "others have taken",
            ),
            (
                RecordKind::BackgroundStarted { cpu: cpu(0) },
                RecordKind::BackgroundEnded { cpu: cpu(0) },
                "is given to background work",
            ),
        ] {
            let stays = Script::default()
                .at(0)
                .release(0, 1, 9)
                .switch(0, Some((0, 1)))
                .at(2);
            let stays = stays.record(goes);
            let leaves = stays.clone().switch(0, None);
            assert_eq!(
                found(&set, edf(Invariant::Strong), &stays, 9),
                [format!("at 2ns: job 1 of a runs on CPU 0, which {why}")]
            );
            let back = leaves.at(5).record(returns).switch(0, Some((0, 1)));
            assert_eq!(found(&set, edf(Invariant::Strong), &back, 9), [""; 0]);
        }
    }
}
