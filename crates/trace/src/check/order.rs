//! No job waits for a less urgent one, as far as the policy's invariant promises it.

use shiftwork_model::{CpuId, JobId, TaskId};

use super::reach::{Survey, key};
use super::state::{State, TaskState};
use super::{Facts, Findings, Invariant, Order};

/// Judges the instant that is over.
pub(super) fn judge(facts: &Facts, state: &State, survey: &Survey, found: &mut Findings) {
    if facts.invariant == Invariant::NonPreemptive {
        judge_preemptions(state, found);
        judge_starts(facts.order, state, found);
        return;
    }
    for front in survey.fronts() {
        let Some((least, task, cpu)) = front.least_urgent.filter(|&(least, ..)| front.key < least)
        else {
            continue;
        };
        found.add(state.now(), || {
            let what = match facts.order {
                Order::Edf => "deadline",
                Order::FixedPriority => "priority",
            };
            format!(
                "{} ({what} {}) waits, and could get CPU {cpu} from {} ({what} {least}){}",
                state.ready_name(front.waiting),
                front.key,
                state.ready_name(task),
                match facts.invariant {
                    Invariant::Strong => ", if need be over shifts",
                    _ => "",
                }
            )
        });
    }
}

/// Whoever ran and is still ready must run, unless the CPU or the right to it was taken away.
fn judge_preemptions(state: &State, found: &mut Findings) {
    let available = state.available();
    for change in state.changes() {
        let Some(job) = change.before else { continue };
        let Some(task) = state.tasks.get(job.task.index()) else {
            continue;
        };
        let preempted = task.ready == Some(job.number)
            && task.waits()
            && available.contains(change.cpu)
            && task.affinity.contains(change.cpu);
        if preempted {
            found.add(state.now(), || {
                format!("{} was preempted on CPU {}", state.name(job), change.cpu)
            });
        }
    }
}

/// Whoever starts must not be less urgent than a job that was waiting for the CPU before. Jobs
/// that became ready or were changed at this instant are left out: the start may have come first.
fn judge_starts(order: Order, state: &State, found: &mut Findings) {
    for change in state.changes() {
        let Some(job) = change.after else { continue };
        let Some(task) = state.tasks.get(job.task.index()) else {
            continue;
        };
        let waited = state.ready.iter().filter(|id| {
            let other = &state.tasks[id.index()];
            other.waits() && settled(state, other) && other.affinity.contains(change.cpu)
        });
        let first = waited.min_by_key(|id| key(order, &state.tasks[id.index()]));
        if let Some(&first) = first
            && settled(state, task)
            && key(order, &state.tasks[first.index()]) < key(order, task)
        {
            found.add(state.now(), || wronged(state, first, job, change.cpu));
        }
    }
}

fn wronged(state: &State, first: TaskId, job: JobId, cpu: CpuId) -> String {
    format!(
        "{} starts on CPU {cpu}, for which the more urgent {} waits",
        state.name(job),
        state.ready_name(first)
    )
}

/// Whether the task is as urgent, ready and restricted as before the instant.
fn settled(state: &State, task: &TaskState) -> bool {
    task.changed != Some(state.now())
}
