//! The call `Apply`: several reservations at once, all of them or none.

use shiftwork_client::{
    Admit, Admitted, Answer, Applied, Apply, Call, Cause, Change, Changed, Dismiss, Dismissed,
    Outcome, Step as ClientStep,
};
use shiftwork_model::TaskId;

use super::Daemon;
use super::handlers::number_of;
use crate::audit::AuditLine;
use crate::reservation::Denial;
use crate::reservation_table::{Done, Failed, ReservationTable, ReservedTask, Step, TaskNotice};
use crate::socket::Peer;

/// A step as a call of its own.
struct Requested {
    call: Result<Call, Denial>,
    /// The task that it is about, as it was before.
    before: Option<(TaskId, ReservedTask)>,
}

/// A step that failed, and those before it.
struct Refused {
    done: Vec<Done>,
    /// With names of tasks.
    denial: Denial,
    /// It would not have failed if nothing counted any more that has ended or changed.
    later: bool,
}

impl Daemon {
    pub(super) fn apply(&mut self, peer: &Peer<'_>, request: &Apply) -> Result<Applied, Denial> {
        if request.steps.len() > Apply::STEPS_MAX {
            return Err(Denial::Invalid {
                parameter: "steps",
                reason: format!(
                    "there are {} of them, at most {} at once",
                    request.steps.len(),
                    Apply::STEPS_MAX
                ),
            });
        }
        let is_dry = request.dry_run == Some(true);
        let requested = request.steps.iter().map(|step| {
            let call = call_of(step);
            let before = call.as_ref().ok().and_then(|call| self.reserved_in(call));
            Requested { call, before }
        });
        let requested: Vec<Requested> = requested.collect();
        let (done, refused) = match self.carry_out(peer, &requested, is_dry) {
            Ok(done) => (done, None),
            Err(refused) => (refused.done, Some((refused.denial, refused.later))),
        };
        let applied = refused.is_none();
        if !is_dry {
            let denial = refused.as_ref().map(|(denial, _)| denial);
            self.conclude(peer, requested, &done, denial);
            self.is_unsaved |= applied;
        }
        let later = refused.as_ref().is_some_and(|(_, later)| *later);
        let shown = done.iter().zip(&request.steps);
        let outcomes = shown.map(|(done, step)| {
            let is_new = step.task.is_none();
            Outcome {
                // Its number is not known before it is admitted.
                task: (applied && !is_dry || !is_new).then(|| number_of(done.task)),
                guarantee: done.guarantee.map(|it| it.name().to_owned()),
                changed: done.changed,
                cause: None,
                reason: None,
            }
        });
        let failed = refused.map(|(denial, _)| outcome_of(&denial));
        Ok(Applied {
            applied,
            outcomes: outcomes.chain(failed).collect(),
            later,
        })
    }

    /// Carries out all of them, or none; if `is_dry` none in any case.
    fn carry_out(
        &mut self,
        peer: &Peer<'_>,
        requested: &[Requested],
        is_dry: bool,
    ) -> Result<Vec<Done>, Refused> {
        // Up to the first that may not be requested. If one before it is refused that is what is said.
        let mut steps = Vec::new();
        let mut invalid = None;
        for it in requested {
            let step = it.call.clone();
            match step.and_then(|call| self.step_of(peer, &call)) {
                Ok(step) => steps.push(step),
                Err(denial) => {
                    invalid = Some(denial);
                    break;
                }
            }
        }
        let (trial, tried) = self.table.try_steps(&steps);
        let refused = |table: &ReservationTable, failed: Failed, later: bool| {
            let step = steps.get(failed.done.len());
            let denial = with_names(table, failed.denial, peer.user, step);
            Refused {
                done: failed.done,
                denial,
                later,
            }
        };
        let done = match tried {
            Ok(done) => done,
            Err(failed) => {
                let may_be_later =
                    matches!(failed.denial, Denial::Refused(_) | Denial::Exhausted(_));
                let later =
                    may_be_later && invalid.is_none() && self.table.fit_once_settled(&steps);
                return Err(refused(&trial, failed, later));
            }
        };
        if let Some(denial) = invalid {
            return Err(Refused {
                done,
                denial,
                later: false,
            });
        }
        if is_dry {
            return Ok(done);
        }
        let threads = &self.threads;
        let check = |reserved: &ReservedTask| match threads.credentials(&reserved.thread) {
            // The thread may have changed them since it was looked up.
            Some(found) if !reserved.owner.allows(found) => Err(Denial::Forbidden(format!(
                "thread {} has changed its user or group",
                reserved.thread.thread
            ))),
            _ => Ok(()),
        };
        let carried_out = self
            .table
            .carry_out_steps(&steps, &mut *self.backend, check);
        carried_out.map_err(|mut failed| {
            let notices = std::mem::take(&mut failed.notices);
            let refused = refused(&self.table, failed, false);
            let is_there = |notice: &&TaskNotice| self.table.task(notice.task).is_some();
            for notice in notices.iter().filter(is_there).collect::<Vec<_>>() {
                self.statistics.insert(notice.task);
                self.register_task(notice.task);
            }
            // What was admitted for a moment is gone.
            for done in &refused.done {
                if self.table.task(done.task).is_none() {
                    self.forget(done.task);
                }
            }
            self.notices.extend(notices);
            self.is_unsaved = true;
            refused
        })
    }

    /// What the peer may request by the call.
    fn step_of(&mut self, peer: &Peer<'_>, call: &Call) -> Result<Step, Denial> {
        match call {
            Call::Admit(request) => {
                let (owner, thread, reservation) = self.admission(peer, request)?;
                Ok(Step::Admit {
                    owner,
                    thread,
                    name: request.name.clone(),
                    reservation,
                })
            }
            Call::Change(request) => {
                let (task, to) = self.replacement(peer, request)?;
                Ok(Step::Change { task, to })
            }
            Call::Dismiss(request) => {
                let task = self.owned_task(peer, request.task)?;
                Ok(Step::Dismiss { task })
            }
            _ => Err(nothing()),
        }
    }

    /// Accounts for what was carried out, and adds it, or the step that failed, to the audit log.
    fn conclude(
        &mut self,
        peer: &Peer<'_>,
        requested: Vec<Requested>,
        done: &[Done],
        refused: Option<&Denial>,
    ) {
        for (index, Requested { call, before }) in requested.into_iter().enumerate() {
            let Ok(call) = call else {
                continue;
            };
            let answer = match (done.get(index), refused) {
                (None, Some(denial)) if index == done.len() => Err(denial.clone()),
                (Some(done), None) if done.changed => {
                    self.account_for(&call, done.task);
                    Ok(answer_of(&call, done))
                }
                _ => continue,
            };
            if let Some(line) = AuditLine::of_call(peer, &call) {
                self.audit_call(peer, line, before, &answer);
            }
        }
    }

    fn account_for(&mut self, call: &Call, task: TaskId) {
        match call {
            Call::Dismiss(_) => self.forget(task),
            _ => {
                self.statistics.insert(task);
                self.register_task(task);
            }
        }
    }

    fn forget(&mut self, task: TaskId) {
        self.statistics.remove(task);
        self.recorder.forget(task, self.now);
    }
}

/// The call that does the same as the step.
fn call_of(step: &ClientStep) -> Result<Call, Denial> {
    match step.clone() {
        ClientStep {
            name: Some(name),
            thread,
            task: None,
            reservation: Some(reservation),
        } => Ok(Call::Admit(Admit {
            name,
            thread,
            reservation,
        })),
        ClientStep {
            name: None,
            thread: None,
            task: Some(task),
            reservation,
        } => Ok(match reservation {
            Some(reservation) => Call::Change(Change { task, reservation }),
            None => Call::Dismiss(Dismiss { task }),
        }),
        _ => Err(nothing()),
    }
}

fn nothing() -> Denial {
    Denial::Invalid {
        parameter: "steps",
        reason: "a step has `name` and `reservation`, and `thread` if it is not the main thread; or `task`, and its new \
                 `reservation` if it is not to end"
            .to_owned(),
    }
}

fn answer_of(call: &Call, done: &Done) -> Answer {
    let guarantee = done.guarantee.map_or("none", |it| it.name()).to_owned();
    match call {
        Call::Admit(_) => Answer::Admit(Admitted {
            task: number_of(done.task),
            guarantee,
        }),
        Call::Change(_) => Answer::Change(Changed { guarantee }),
        _ => Answer::Dismiss(Dismissed {}),
    }
}

fn outcome_of(denial: &Denial) -> Outcome {
    let (cause, reason) = match denial {
        Denial::Refused(reason) => (Cause::Refused, reason.clone()),
        Denial::Exhausted(reason) => (Cause::Exhausted, reason.clone()),
        Denial::Forbidden(reason) => (Cause::Forbidden, reason.clone()),
        Denial::Broken(reason) => (Cause::Broken, reason.clone()),
        Denial::Missing(_) => (Cause::Missing, denial.to_string()),
        Denial::Invalid { .. } => (Cause::Invalid, denial.to_string()),
    };
    Outcome {
        task: None,
        guarantee: None,
        changed: false,
        cause: Some(cause),
        reason: Some(reason),
    }
}

/// The denial of the step with the names of tasks that the user may see.
fn with_names(table: &ReservationTable, denial: Denial, user: u32, step: Option<&Step>) -> Denial {
    let requested = match step {
        Some(Step::Admit { name, .. }) => Some(name.as_str()),
        _ => None,
    };
    match denial {
        Denial::Refused(reason) => Denial::Refused(table.with_names(&reason, user, requested)),
        other => other,
    }
}
