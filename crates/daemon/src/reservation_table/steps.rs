//! Several requests at once: all of them are carried out, or none.
//!
//! They are tried on a copy of the table first, without the scheduler, so that a refusal changes nothing. What the copy grants
//! the table grants, too, since nothing comes in between; but the scheduler may fail, as when a thread has just ended. Then
//! what was carried out is undone: a reservation that was given up for it, and does not fit any more beside what still counts,
//! waits for that to be over, as after a CPU went offline.

use shiftwork_analysis::admission::Guarantee;
use shiftwork_model::{Span, TaskId};

use super::{ReservationTable, ReservedTask, TaskNotice};
use crate::backend::{AcceptsAll, SchedulerBackend};
use crate::reservation::{Denial, Owner, Reservation, Thread};

/// Longer than anything counts that has ended or changed.
const SETTLED: Span = Span::from_s(3_600);

/// One of several requests.
#[derive(Clone, Debug)]
pub enum Step {
    /// Admits a thread.
    Admit {
        /// The user and control group that it counts for.
        owner: Owner,
        /// The thread.
        thread: Thread,
        /// The name of the task.
        name: String,
        /// The reservation.
        reservation: Reservation,
    },
    /// Replaces the reservation of a task.
    Change {
        /// The task.
        task: TaskId,
        /// Its new reservation.
        to: Reservation,
    },
    /// Ends the reservation of a task.
    Dismiss {
        /// The task.
        task: TaskId,
    },
}

/// A step that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The task.
    pub task: TaskId,
    /// Its guarantee; `None` if it has none now.
    pub guarantee: Option<Guarantee>,
    /// Whether it had another reservation before, or none.
    pub changed: bool,
    /// The task as it was before; `None` if it is new.
    pub before: Option<ReservedTask>,
}

/// Why steps were not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The steps before the one that failed, as they would have been, or were until they were undone.
    pub done: Vec<Done>,
    /// Why the next one was not carried out, without [names](ReservationTable::with_names).
    pub denial: Denial,
    /// What became of tasks when it was undone.
    pub notices: Vec<TaskNotice>,
}

impl ReservationTable {
    /// What would become of the steps; nothing is carried out. Also returns the table that there would be, for names.
    pub fn try_steps(&self, steps: &[Step]) -> (Self, Result<Vec<Done>, Failed>) {
        let mut trial = self.clone();
        let mut done = Vec::new();
        for step in steps {
            match trial.carry_out(step, &mut AcceptsAll) {
                Ok(it) => done.push(it),
                Err(denial) => {
                    let failed = Failed {
                        done,
                        denial,
                        notices: Vec::new(),
                    };
                    return (trial, Err(failed));
                }
            }
        }
        (trial, Ok(done))
    }

    /// Whether the steps would be carried out if nothing counted any more that has ended or changed, also by them.
    pub fn fit_once_settled(&self, steps: &[Step]) -> bool {
        let mut trial = self.clone();
        steps.iter().all(|step| {
            let settled = trial.now + SETTLED;
            trial.advance(settled, &mut AcceptsAll);
            trial.carry_out(step, &mut AcceptsAll).is_ok()
        })
    }

    /// Carries out all steps in their order, or none. `check` is called for each task that was admitted or changed; one that
    /// it refuses has no reservation afterwards.
    ///
    /// # Errors
    /// The first step that fails.
    pub fn carry_out_steps(
        &mut self,
        steps: &[Step],
        backend: &mut dyn SchedulerBackend,
        mut check: impl FnMut(&ReservedTask) -> Result<(), Denial>,
    ) -> Result<Vec<Done>, Failed> {
        let mut done: Vec<Done> = Vec::new();
        for step in steps {
            let carried_out = self.carry_out(step, backend).and_then(|it| {
                let checked = self.task(it.task).map_or(Ok(()), &mut check);
                if checked.is_err() {
                    // What it had before is not restored to such a thread. Fails only if there is no such task.
                    let _ = self.dismiss(it.task, backend);
                }
                checked.map(|()| it)
            });
            match carried_out {
                Ok(it) => done.push(it),
                Err(denial) => {
                    let undone = done.iter().rev();
                    let notices = undone.filter_map(|it| self.undo(it, backend)).collect();
                    return Err(Failed {
                        done,
                        denial,
                        notices,
                    });
                }
            }
        }
        Ok(done)
    }

    fn carry_out(
        &mut self,
        step: &Step,
        backend: &mut dyn SchedulerBackend,
    ) -> Result<Done, Denial> {
        match step {
            Step::Admit {
                owner,
                thread,
                name,
                reservation,
            } => {
                let (owner, thread) = (owner.clone(), thread.clone());
                let admitted = self.admit(owner, thread, name, reservation.clone(), backend);
                admitted.map(|(task, guarantee)| Done {
                    task,
                    guarantee: Some(guarantee),
                    changed: true,
                    before: None,
                })
            }
            Step::Change { task, to } => {
                let before = self.task(*task).cloned();
                let changed = before.as_ref().is_none_or(|it| it.reservation != *to);
                let guarantee = match changed {
                    true => Some(self.change(*task, to.clone(), backend)?),
                    false => self.guarantee(*task),
                };
                Ok(Done {
                    task: *task,
                    guarantee,
                    changed,
                    before,
                })
            }
            Step::Dismiss { task } => {
                let before = self.task(*task).cloned();
                self.dismiss(*task, backend)?;
                Ok(Done {
                    task: *task,
                    guarantee: None,
                    changed: true,
                    before,
                })
            }
        }
    }

    /// Undoes a step that was carried out, the last of those that were not yet undone. What the task had meanwhile still
    /// counts.
    fn undo(&mut self, done: &Done, backend: &mut dyn SchedulerBackend) -> Option<TaskNotice> {
        let Some(before) = &done.before else {
            // Fails only if the task has been removed meanwhile.
            let _ = self.dismiss(done.task, backend);
            return None;
        };
        if !done.changed {
            return None;
        }
        if self.task(done.task).is_some() {
            let back = before.reservation.clone();
            if self.change(done.task, back, backend).is_ok() {
                return None;
            }
            let _ = self.dismiss(done.task, backend);
        }
        self.restore(before.clone(), backend)
    }
}
