//! No CPU is idle while a ready job waits that could get it: directly, or under the strong
//! invariant over a chain of shifts. SCHED_DEADLINE promises it only if all tasks that may use several CPUs
//! have the same affinity: of the waiting jobs of a CPU it pushes the earliest or none.

use super::state::State;
use super::survey::Survey;
use super::{Findings, PolicyContract};
use shiftwork_model::Invariant;

/// Checks the state after the instant.
pub(super) fn check(
    contract: &PolicyContract,
    state: &State,
    survey: &Survey,
    found: &mut Findings,
) {
    match contract.invariant {
        Invariant::Quanta => return,
        Invariant::PushPull if !is_semi_partitioned(state) => return,
        _ => {}
    }
    for front in survey.fronts() {
        if let Some(cpu) = front.reach.idle {
            found.add(state.now(), || {
                format!(
                    "CPU {cpu} is idle, and {} waits for it",
                    state.ready_name(front.waiting)
                )
            });
        }
    }
}

/// Whether each task may use one CPU, or all those that any other may use that is not bound to one.
fn is_semi_partitioned(state: &State) -> bool {
    let mut wide = state
        .tasks
        .iter()
        .map(|task| &task.affinity)
        .filter(|cpus| cpus.len() > 1);
    let first = wide.next();
    wide.all(|cpus| Some(cpus) == first)
}

#[cfg(test)]
mod tests {
    use crate::check::testing::{edf, found};
    use crate::testing::{Script, cpu, set};
    use shiftwork_model::{Invariant, RecordKind};

    #[test]
    fn an_idle_cpu_is_found_as_long_as_one_of_its_jobs_waits() {
        let set = set(2, &[("a", "0")]);
        let script = Script::default().at(1).release(0, 1, 9);
        for invariant in [Invariant::Weak, Invariant::Strong, Invariant::NonPreemptive] {
            assert_eq!(
                found(&set, edf(invariant), &script, 9),
                ["at 1ns: CPU 0 is idle, and job 1 of a waits for it"]
            );
        }
    }

    #[test]
    fn an_idle_cpu_at_the_end_of_a_chain_of_shifts_is_found_under_the_strong_invariant() {
        let set = set(3, &[("a", "0-1"), ("b", "1-2"), ("c", "0")]);
        let script = Script::default()
            .at(1)
            .release(0, 1, 9)
            .switch(0, Some((0, 1)))
            .release(1, 1, 9)
            .switch(1, Some((1, 1)))
            .release(2, 1, 90);
        assert_eq!(
            found(&set, edf(Invariant::Strong), &script, 9),
            ["at 1ns: CPU 2 is idle, and job 1 of c waits for it"]
        );
        assert_eq!(found(&set, edf(Invariant::Weak), &script, 9), [""; 0]);
    }

    #[test]
    fn a_cpu_that_is_away_may_be_idle() {
        let script = Script::default()
            .at(1)
            .record(RecordKind::CpuOffline { cpu: cpu(0) });
        let script = script.release(0, 1, 9);
        assert_eq!(
            found(&set(1, &[("a", "0")]), edf(Invariant::Strong), &script, 9),
            [""; 0]
        );
    }
}
