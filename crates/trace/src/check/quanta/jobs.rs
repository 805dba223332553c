//! Quanta allocated to jobs by their order.

use shiftwork_model::{CpuSet, Instant, Order, TaskId};

use crate::check::Findings;
use crate::check::state::State;
use crate::shift_chain::key;

/// The state at a boundary.
struct Boundary<'a> {
    now: Instant,
    state: &'a State,
    due: &'a CpuSet,
    /// The CPUs that run jobs.
    served: CpuSet,
    /// The most urgent ready jobs, as many as there are such CPUs; the most urgent first.
    selected: Vec<TaskId>,
}

/// Checks the instant. `due`: the CPUs whose quanta begin.
pub(super) fn check(
    order: Order,
    served: &CpuSet,
    due: &CpuSet,
    (now, state): (Instant, &State),
    found: &mut Findings,
) {
    for change in state.changes() {
        if let Some(job) = change.after.filter(|_| !served.contains(change.cpu)) {
            let (name, cpu) = (state.name(job), change.cpu);
            found.add(now, || {
                format!("{name} starts on CPU {cpu}, which runs no jobs")
            });
        }
    }
    let served = state.available() & *served;
    let mut selected = state.ready.clone();
    selected.sort_unstable_by_key(|&id| {
        let task = &state.tasks[id.index()];
        (key(order, task), task.since, id)
    });
    selected.truncate(served.len());
    let boundary = Boundary {
        now,
        state,
        due,
        served,
        selected,
    };
    boundary.check_changes(found);
    boundary.check_quanta(found);
}

impl Boundary<'_> {
    fn is_selected(&self, task: TaskId) -> bool {
        self.selected.contains(&task)
    }

    /// Jobs start only at boundaries, and lose their CPUs only there and only to selected jobs.
    fn check_changes(&self, found: &mut Findings) {
        let (now, state, room) = (self.now, self.state, self.served.len());
        for change in state.changes() {
            let cpu = change.cpu;
            if !self.served.contains(cpu) {
                continue;
            }
            let is_due = self.due.contains(cpu);
            if let Some(job) = change.before
                && let Some(task) = state.tasks.get(job.task.index())
                && task.ready == Some(job.number)
                && task.since < now
                && !state.lost.contains(cpu)
            {
                if self.is_selected(job.task) {
                    found.add(now, || {
                        let name = state.name(job);
                        format!("{name} loses CPU {cpu}, and is one of the {room} most urgent jobs")
                    });
                } else if !is_due {
                    found.add(now, || {
                        format!("{} loses CPU {cpu} within a quantum", state.name(job))
                    });
                }
            }
            if let Some(job) = change.after.filter(|_| !is_due) {
                found.add(now, || {
                    format!("{} starts on CPU {cpu} within a quantum", state.name(job))
                });
            }
        }
    }

    /// Quanta that begin are allocated to selected jobs, the most urgent first, as long as one waits.
    fn check_quanta(&self, found: &mut Findings) {
        let (now, state, room) = (self.now, self.state, self.served.len());
        let mut waiting = self.selected.iter();
        let first = waiting.position(|id| state.tasks[id.index()].waits());
        for cpu in (*self.due & self.served).iter() {
            let Some(job) = state.on(cpu) else {
                if let Some(first) = first {
                    let name = state.ready_name(self.selected[first]);
                    found.add(now, || {
                        format!("a quantum of CPU {cpu} begins idle, and {name} waits")
                    });
                }
                continue;
            };
            let place = self.selected.iter().position(|&id| id == job.task);
            let Some(place) = place else {
                found.add(now, || {
                    let name = state.name(job);
                    format!("{name} has a quantum of CPU {cpu}, and is not one of the {room} most urgent jobs")
                });
                continue;
            };
            let starts = state.changes().any(|change| change.after == Some(job));
            if let Some(first) = first.filter(|&first| starts && first < place) {
                let wronged = state.ready_name(self.selected[first]);
                found.add(now, || {
                    let name = state.name(job);
                    format!("{name} starts on CPU {cpu}, and the more urgent {wronged} waits")
                });
            }
        }
    }
}
