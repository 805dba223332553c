//! A job runs on CPUs of its affinity only.

use shiftwork_model::TaskId;

use super::Findings;
use super::state::State;

/// Judges whoever started somewhere, and whoever may have got another affinity while running.
pub(super) fn judge(state: &State, found: &mut Findings) {
    let started = state
        .changes()
        .filter_map(|change| Some(change.after?.task));
    started.for_each(|task| judge_task(state, task, found));
    for &task in &state.ready {
        if state.tasks[task.index()].changed == Some(state.now()) {
            judge_task(state, task, found);
        }
    }
}

fn judge_task(state: &State, id: TaskId, found: &mut Findings) {
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
