//! A job runs only on CPUs of its affinity.

use shiftwork_model::TaskId;

use super::Findings;
use super::state::State;

/// Checks the jobs that started on a CPU, and those whose affinity may have changed while they ran.
pub(super) fn check(state: &State, found: &mut Findings) {
    let started = state
        .changes()
        .filter_map(|change| Some(change.after?.task));
    started.for_each(|task| check_task(state, task, found));
    for &task in &state.ready {
        if state.tasks[task.index()].changed == Some(state.now()) {
            check_task(state, task, found);
        }
    }
}

fn check_task(state: &State, id: TaskId, found: &mut Findings) {
    let Some(task) = state.tasks.get(id.index()) else {
        return;
    };
    if let Some((number, cpu)) = task.runs
        && !task.affinity.contains(cpu)
    {
        found.add(state.now(), || {
            format!(
                "job {number} of {} runs on CPU {cpu}, and its affinity is {{{}}}",
                task.name, task.affinity
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::check::testing::{edf, found};
    use crate::testing::{Script, cpu, set};
    use shiftwork_model::{Affinity, Invariant, RecordKind, TaskId};

    #[test]
    fn job_outside_its_affinity_is_a_violation() {
        let script = Script::default()
            .at(3)
            .release(0, 1, 20)
            .switch(1, Some((0, 1)));
        assert_eq!(
            found(&set(2, &[("a", "0")]), edf(Invariant::Weak), &script, 9)[0],
            "at 3ns: job 1 of a runs on CPU 1, and its affinity is {0}"
        );
    }

    #[test]
    fn job_that_stays_outside_its_changed_affinity_is_a_violation() {
        let affinity = Box::new(Affinity::pinned(cpu(1)));
        let script = Script::default()
            .at(0)
            .release(0, 1, 20)
            .switch(0, Some((0, 1)))
            .at(4)
            .record(RecordKind::AffinitySet {
                task: TaskId::from_index(0),
                affinity,
            });
        let set = set(2, &[("a", "0")]);
        assert_eq!(
            found(&set, edf(Invariant::Weak), &script, 9)[0],
            "at 4ns: job 1 of a runs on CPU 0, and its affinity is {1}"
        );
        let moved = script.switch(0, None).switch(1, Some((0, 1)));
        assert_eq!(found(&set, edf(Invariant::Weak), &moved, 9), [""; 0]);
    }
}
