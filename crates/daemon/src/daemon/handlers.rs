//! The handlers of the calls of clients.

use shiftwork_client::{
    Admit, Admitted, Answer, Call, Change, Changed, Dismiss, Dismissed, EndObservation, Error,
    Explain, Explained, GetMisses, GetRecord, GotMisses, GotRecord, GotStatus, ObservationEnded,
    Observe, Observing,
};
use shiftwork_model::{CpuSet, Instant, TaskId};

use super::Daemon;
use super::request_validation::{check_name, check_thread, reservation, to_error};
use crate::audit::AuditLine;
use crate::clock::unix_ns;
use crate::reservation::{Denial, Owner, Reservation, Thread};
use crate::reservation_table::ReservedTask;
use crate::socket::{Peer, Service};
use crate::threads::{ThreadInfo, account_of};

/// Maximum number of observed threads of a user.
const OBSERVED_MAX: usize = 64;

/// Default number of explained misses.
const EXPLAINED: usize = 3;

/// Approximate maximum size of a recording in a reply; clients accept longer replies.
const REPLY_BYTES: usize = 24 << 20;

impl Service for Daemon {
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error> {
        let now = self.now;
        let line = AuditLine::of_call(peer, &call);
        let before = self.reserved_in(&call);
        let requested = match &call {
            Call::Admit(request) => Some(request.name.clone()),
            _ => None,
        };
        let answer = match call {
            Call::Admit(request) => self.admit(peer, &request).map(Answer::Admit),
            Call::Change(request) => self.change(peer, &request).map(Answer::Change),
            Call::Dismiss(Dismiss { task }) => self.dismiss(peer, task).map(Answer::Dismiss),
            Call::Apply(request) => self.apply(peer, &request).map(Answer::Apply),
            Call::GetStatus(_) => Ok(Answer::GetStatus(GotStatus {
                status: self.status(peer.user, now),
            })),
            Call::Observe(Observe { thread }) => self.observe(peer, thread).map(Answer::Observe),
            Call::EndObservation(EndObservation { task }) => {
                let ended = self.end_observation(peer, task);
                ended.map(Answer::EndObservation)
            }
            Call::GetRecord(GetRecord { seconds }) => {
                self.record(peer, seconds).map(Answer::GetRecord)
            }
            Call::Explain(Explain { count }) => Ok(Answer::Explain(Explained {
                explanations: self
                    .explainer
                    .explanations(peer.user, explained_count(count)),
            })),
            Call::GetMisses(request) => self.misses(peer, &request).map(Answer::GetMisses),
        }
        .map_err(|denial| self.named(denial, peer.user, requested.as_deref()));
        if let Some(line) = line {
            self.audit_call(peer, line, before, &answer);
        }
        answer.map_err(to_error)
    }
}

impl Daemon {
    fn admit(&mut self, peer: &Peer<'_>, request: &Admit) -> Result<Admitted, Denial> {
        let (owner, thread, wanted) = self.admission(peer, request)?;
        let admitted = self
            .table
            .admit(owner, thread, &request.name, wanted, &mut *self.backend);
        let (task, guarantee) = admitted?;
        // The thread may have changed them since it was looked up.
        self.check_credentials(task)?;
        self.statistics.insert(task);
        self.register_task(task);
        self.is_unsaved = true;
        Ok(Admitted {
            task: number_of(task),
            guarantee: guarantee.name().to_owned(),
        })
    }

    fn change(&mut self, peer: &Peer<'_>, request: &Change) -> Result<Changed, Denial> {
        let (task, wanted) = self.replacement(peer, request)?;
        let guarantee = self.table.change(task, wanted, &mut *self.backend)?;
        // The thread may have changed them since.
        self.check_credentials(task)?;
        self.statistics.insert(task);
        self.register_task(task);
        self.is_unsaved = true;
        Ok(Changed {
            guarantee: guarantee.name().to_owned(),
        })
    }

    /// The explained misses of a task of the peer.
    fn misses(&mut self, peer: &Peer<'_>, request: &GetMisses) -> Result<GotMisses, Denial> {
        let task = self.owned_task(peer, request.task)?;
        let count = explained_count(request.count);
        let incarnation = self.recorder.incarnation_of(task);
        let misses = incarnation.map(|of| self.explainer.misses(peer.user, of, count));
        Ok(GotMisses {
            misses: misses.unwrap_or_default(),
        })
    }

    /// What the peer requests for a thread that it may reserve for.
    pub(super) fn admission(
        &self,
        peer: &Peer<'_>,
        request: &Admit,
    ) -> Result<(Owner, Thread, Reservation), Denial> {
        check_name(&request.name)?;
        let found = self.find_thread(peer, request.thread)?;
        check_thread(peer, &found)?;
        let owner = owner_of(peer, &found);
        let available = self.available(peer, &owner);
        let wanted = reservation(&request.reservation, found.cpus, available)?;
        self.check_request(peer, &owner, &wanted)?;
        Ok((owner, found.thread, wanted))
    }

    /// What the peer requests for a task that it may change.
    pub(super) fn replacement(
        &mut self,
        peer: &Peer<'_>,
        request: &Change,
    ) -> Result<(TaskId, Reservation), Denial> {
        let task = self.owned_task(peer, request.task)?;
        self.settle_affinity_request(task);
        let reserved = self.table.task(task);
        let reserved = reserved.ok_or_else(|| Denial::Missing(format!("task {}", request.task)))?;
        let available = self.available(peer, &reserved.owner);
        let current = reserved.reservation.cpus;
        let wanted = reservation(&request.reservation, current, available)?;
        self.check_request(peer, &reserved.owner, &wanted)?;
        Ok((task, wanted))
    }

    /// The CPUs that the peer may reserve for this owner.
    fn available(&self, peer: &Peer<'_>, owner: &Owner) -> CpuSet {
        match peer.user {
            0 => self.table.rules().cpus,
            _ => self.cpus_of(owner),
        }
    }

    fn check_request(
        &self,
        peer: &Peer<'_>,
        owner: &Owner,
        wanted: &Reservation,
    ) -> Result<(), Denial> {
        if peer.user == 0 {
            return Ok(());
        }
        let rules = self.config.requests.of_user(owner.account);
        rules.check(owner.account, wanted)
    }

    /// The CPUs that the owner may use by itself.
    pub(super) fn cpus_of(&self, owner: &Owner) -> CpuSet {
        let all = self.table.rules().cpus;
        let own = match owner.account {
            0 => None,
            account => self.config.requests.of_user(account).cpus,
        };
        own.map_or(all, |own| own & all)
    }

    fn dismiss(&mut self, peer: &Peer<'_>, task: u32) -> Result<Dismissed, Denial> {
        let task = self.owned_task(peer, task)?;
        self.table.dismiss(task, &mut *self.backend)?;
        self.statistics.remove(task);
        self.recorder.forget(task, self.now);
        self.is_unsaved = true;
        Ok(Dismissed {})
    }

    fn observe(&mut self, peer: &Peer<'_>, thread: Option<u32>) -> Result<Observing, Denial> {
        let found = self.find_thread(peer, thread)?;
        check_thread(peer, &found)?;
        let owner = owner_of(peer, &found);
        if self.observations.count_of(owner.account) >= OBSERVED_MAX {
            let user = owner.account;
            return Err(Denial::Exhausted(format!(
                "user {user} observes {OBSERVED_MAX} threads, which is the maximum; end an observation first"
            )));
        }
        let task = self.table.allocate_number()?;
        if let Err(denial) = self.backend.observe(task, &found.thread) {
            self.table.release_number(task);
            return Err(denial);
        }
        self.observations.begin(task, owner, found.thread, self.now);
        Ok(Observing {
            task: number_of(task),
        })
    }

    fn end_observation(
        &mut self,
        peer: &Peer<'_>,
        number: u32,
    ) -> Result<ObservationEnded, Denial> {
        let missing = || Denial::Missing(format!("observation with number {number}"));
        let task = TaskId::from_index(usize::try_from(number).map_err(|_| missing())?);
        self.check_observed_credentials();
        let observed = self.observations.of(task).ok_or_else(missing)?;
        if peer.user != 0 && observed.owner.user != peer.user {
            return Err(Denial::Forbidden(format!(
                "observation {number} does not belong to user {}",
                peer.user
            )));
        }
        let observation = self.observations.end(task, self.now).ok_or_else(missing)?;
        self.end_observing(task);
        Ok(ObservationEnded { observation })
    }

    /// Only root may read recordings: they contain events of all users' threads.
    fn record(&self, peer: &Peer<'_>, seconds: Option<f64>) -> Result<GotRecord, Denial> {
        if peer.user != 0 {
            return Err(Denial::Forbidden(
                "the recording contains events of all users' threads; only root may read it"
                    .to_owned(),
            ));
        }
        let seconds = seconds.unwrap_or(f64::INFINITY);
        if seconds.is_nan() || seconds < 0.0 {
            return Err(Denial::Invalid {
                parameter: "seconds",
                reason: format!("{seconds} is not a duration; write 0 or more"),
            });
        }
        // The cast saturates: a longer time than the clock can represent means everything.
        let before_ns = (seconds * 1e9) as u64;
        let since = Instant::from_ns(self.now.as_ns().saturating_sub(before_ns));
        let recording = self.recorder.recording(since, REPLY_BYTES, unix_ns(), None);
        Ok(GotRecord {
            record: recording.trace(),
            folder: self.records_folder().to_str().map(str::to_owned),
        })
    }

    /// The task that the call is about, if it is there.
    pub(super) fn reserved_in(&self, call: &Call) -> Option<(TaskId, ReservedTask)> {
        let number = match call {
            Call::Change(request) => request.task,
            Call::Dismiss(request) => request.task,
            _ => return None,
        };
        let index = usize::try_from(number).ok()?;
        let task = (index < super::TASKS_MAX).then(|| TaskId::from_index(index))?;
        Some((task, self.table.task(task)?.clone()))
    }

    /// Adds the call to the audit log. `before` is the task that it was about.
    pub(super) fn audit_call(
        &mut self,
        peer: &Peer<'_>,
        line: AuditLine,
        before: Option<(TaskId, ReservedTask)>,
        answer: &Result<Answer, Denial>,
    ) {
        let task = match answer {
            Ok(Answer::Admit(admitted)) => Some(TaskId::from_index(admitted.task as usize)),
            Ok(_) => before.as_ref().map(|(task, _)| *task),
            Err(_) => None,
        };
        let now = task.and_then(|task| Some((task, self.table.task(task)?.clone())));
        let line = match (answer, now.or(before)) {
            (Err(denial), _) => line.refused(&denial.to_string()),
            (Ok(_), Some((task, reserved))) => line.about(task, &reserved),
            (Ok(_), None) => line,
        };
        let account = account_of(peer.process, peer.user);
        self.audit.note(account, &line, self.now);
    }

    /// The denial with the names of tasks that the user may see.
    fn named(&self, denial: Denial, user: u32, requested: Option<&str>) -> Denial {
        match denial {
            Denial::Refused(reason) => {
                Denial::Refused(self.table.with_names(&reason, user, requested))
            }
            other => other,
        }
    }

    /// The thread that a call names; by default the main thread of the caller's process.
    fn find_thread(&self, peer: &Peer<'_>, thread: Option<u32>) -> Result<ThreadInfo, Denial> {
        let number = thread.or(peer.process).ok_or_else(|| Denial::Invalid {
            parameter: "thread",
            reason: String::from("is required: the caller's process is in another PID namespace"),
        })?;
        self.threads.look_up(number)
    }

    /// The task, if the peer may change it and its thread is still the one that was admitted.
    pub(super) fn owned_task(&mut self, peer: &Peer<'_>, number: u32) -> Result<TaskId, Denial> {
        let missing = || Denial::Missing(format!("task {number}"));
        let index = usize::try_from(number).map_err(|_| missing())?;
        if index >= super::TASKS_MAX {
            return Err(missing());
        }
        let task = TaskId::from_index(index);
        let reserved = self.table.task(task).ok_or_else(missing)?;
        if peer.user != 0 && reserved.owner.user != peer.user {
            return Err(Denial::Forbidden(format!(
                "task {number} does not belong to user {}",
                peer.user
            )));
        }
        self.check_credentials(task)?;
        Ok(task)
    }
}

fn explained_count(requested: Option<u32>) -> usize {
    requested.map_or(EXPLAINED, |count| count as usize)
}

/// Who controls a reservation or observation of this thread, and what it counts for.
fn owner_of(peer: &Peer<'_>, found: &ThreadInfo) -> Owner {
    Owner {
        user: found.credentials.user.unwrap_or(peer.user),
        group: found.credentials.group,
        account: found.account,
        cgroup: found.cgroup.clone(),
    }
}

pub(super) fn number_of(task: TaskId) -> u32 {
    task.index() as u32
}
