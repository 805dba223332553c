//! The handlers of the calls of clients.

use std::collections::BTreeSet;

use shiftwork_client::{
    Admit, Admitted, Answer, Call, Change, Changed, Cpu, Dismiss, Dismissed, EndObservation, Error,
    Explain, Explained, GetRecord, GotRecord, GotStatus, ObservationEnded, Observe, Observing,
    Room, State, Status, Task,
};
use shiftwork_model::{CpuSet, Instant, Share, Span, TaskId};

use super::Daemon;
use super::request_validation::{check_name, check_thread, reservation, to_client, to_error};
use crate::clock::unix_ns;
use crate::quotas::share_ppm;
use crate::reservation::{Denial, Owner};
use crate::reservation_table::ReservedTask;
use crate::socket::{Peer, Service};
use crate::threads;

/// Maximum number of observed threads of a user.
const OBSERVED_MAX: usize = 64;

/// Default number of explained misses.
const EXPLAINED: usize = 3;

/// Approximate maximum size of a recording in a reply; clients accept longer replies.
const REPLY_BYTES: usize = 24 << 20;

/// Period for which the available share is computed; the share is the same for every period.
const PERIOD: Span = Span::from_ms(100);

impl Service for Daemon {
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error> {
        let now = self.now;
        match call {
            Call::Admit(request) => self.admit(peer, &request).map(Answer::Admit),
            Call::Change(request) => self.change(peer, &request).map(Answer::Change),
            Call::Dismiss(Dismiss { task }) => self.dismiss(peer, task).map(Answer::Dismiss),
            Call::GetStatus(_) => Ok(Answer::GetStatus(GotStatus {
                status: self.status(now),
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
                    .explanations(count.map_or(EXPLAINED, |count| count as usize)),
            })),
        }
        .map_err(to_error)
    }
}

impl Daemon {
    fn admit(&mut self, peer: &Peer<'_>, request: &Admit) -> Result<Admitted, Denial> {
        check_name(&request.name)?;
        let found = self.find_thread(peer, request.thread)?;
        check_thread(peer, &found)?;
        let wanted = reservation(&request.reservation, found.cpus, self.table.rules().cpus)?;
        let owner = Owner {
            user: found.user.unwrap_or(peer.user),
            cgroup: found.cgroup,
        };
        let admitted = self.table.admit(
            owner,
            found.thread,
            &request.name,
            wanted,
            &mut self.backend,
        );
        let (task, guarantee) = admitted?;
        self.statistics.insert(task);
        self.register_task(task);
        self.is_unsaved = true;
        Ok(Admitted {
            task: number_of(task),
            guarantee: guarantee.name().to_owned(),
        })
    }

    fn change(&mut self, peer: &Peer<'_>, request: &Change) -> Result<Changed, Denial> {
        let (task, reserved) = self.owned_task(peer, request.task)?;
        let (current, available) = (reserved.reservation.cpus, self.table.rules().cpus);
        let wanted = reservation(&request.reservation, current, available)?;
        let guarantee = self.table.change(task, wanted, &mut self.backend)?;
        self.statistics.insert(task);
        self.register_task(task);
        self.is_unsaved = true;
        Ok(Changed {
            guarantee: guarantee.name().to_owned(),
        })
    }

    fn dismiss(&mut self, peer: &Peer<'_>, task: u32) -> Result<Dismissed, Denial> {
        let (task, _) = self.owned_task(peer, task)?;
        self.table.dismiss(task, &mut self.backend)?;
        self.statistics.remove(task);
        self.recorder.forget(task, self.now);
        self.is_unsaved = true;
        Ok(Dismissed {})
    }

    fn observe(&mut self, peer: &Peer<'_>, thread: Option<u32>) -> Result<Observing, Denial> {
        let found = self.find_thread(peer, thread)?;
        check_thread(peer, &found)?;
        let user = found.user.unwrap_or(peer.user);
        if self.observations.count_of(user) >= OBSERVED_MAX {
            return Err(Denial::Exhausted(format!(
                "user {user} observes {OBSERVED_MAX} threads, which is the maximum; end an observation first"
            )));
        }
        let task = self.table.allocate_number()?;
        if let Err(denial) = self.backend.observe(task, &found.thread) {
            self.table.release_number(task);
            return Err(denial);
        }
        let owner = Owner {
            user,
            cgroup: found.cgroup,
        };
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

    /// The thread that a call names; by default the main thread of the caller's process.
    fn find_thread(
        &self,
        peer: &Peer<'_>,
        thread: Option<u32>,
    ) -> Result<threads::ThreadInfo, Denial> {
        let number = thread.or(peer.process).ok_or_else(|| Denial::Invalid {
            parameter: "thread",
            reason: String::from("is required: the caller's process is in another PID namespace"),
        })?;
        threads::look_up(number)
    }

    /// The task, if the peer may change it.
    fn owned_task(&self, peer: &Peer<'_>, number: u32) -> Result<(TaskId, &ReservedTask), Denial> {
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
        Ok((task, reserved))
    }

    pub(super) fn status(&mut self, now: Instant) -> Status {
        let since = std::mem::replace(&mut self.status_at, now);
        let elapsed = now.late_since(since).as_ns().max(1);
        let cpus = self.table.rules().cpus;
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.config.policy.clone(),
            guarantee: self.table.rules().guarantee.name().to_owned(),
            cpus: cpus.iter().map(|cpu| self.cpu(cpu, elapsed)).collect(),
            rooms: self.rooms(),
            tasks: self.tasks(),
            misses: self.statistics.misses(),
            since: self.since,
            now,
            lost: self.backend.scheduler.events_lost(),
        }
    }

    fn cpu(&mut self, cpu: shiftwork_model::CpuId, elapsed_ns: u64) -> Cpu {
        let reserve = as_float(self.table.rules().terms.reserve);
        let load = self.statistics.take_load(cpu).as_ns() as f64 / elapsed_ns as f64;
        let running = self.statistics.running_on(cpu);
        Cpu {
            cpu: cpu.index() as u32,
            online: self.table.online().contains(cpu),
            running: running.map(number_of),
            // A stretch of execution counts as a whole when it ends, with what lies before the previous status.
            load: load.min(1.0),
            share: 1.0 - reserve,
            reserve,
        }
    }

    /// For each set of CPUs that a reservation names, and for all CPUs.
    fn rooms(&mut self) -> Vec<Room> {
        let used = self.table.tasks().map(|(_, it)| it.reservation.cpus);
        let all: BTreeSet<Vec<usize>> = used
            .chain([self.table.rules().cpus])
            .map(|cpus| cpus.iter().map(|cpu| cpu.index()).collect())
            .collect();
        let sets = all.into_iter().map(|numbers| {
            let cpus = numbers.into_iter().map(shiftwork_model::CpuId::from_index);
            cpus.collect::<CpuSet>()
        });
        sets.map(|cpus| {
            let within = self
                .table
                .tasks()
                .filter(|(_, it)| it.is_served && it.reservation.cpus.is_subset(&cpus));
            let reserved: u64 = within.map(|(_, it)| share_ppm(&it.reservation)).sum();
            let free = self.table.available_cost(cpus, PERIOD);
            Room {
                cpus: cpus.to_string(),
                reserved: reserved as f64 / 1e6,
                free: free.as_ns() as f64 / PERIOD.as_ns() as f64,
            }
        })
        .collect()
    }

    fn tasks(&self) -> Vec<Task> {
        let task = |(task, reserved): (TaskId, &ReservedTask)| {
            let counters = self.statistics.of(task).copied().unwrap_or_default();
            Task {
                task: number_of(task),
                name: reserved.name.clone(),
                process: reserved.thread.process,
                thread: reserved.thread.thread,
                user: reserved.owner.user,
                cgroup: reserved.owner.cgroup.clone(),
                reservation: to_client(&reserved.reservation),
                state: match reserved.is_served {
                    true => State::Admitted,
                    false => State::Demoted,
                },
                guarantee: self
                    .table
                    .guarantee(task)
                    .map_or("none", |guarantee| guarantee.name())
                    .to_owned(),
                cpu: counters.cpu.map(|cpu| cpu.index() as u32),
                jobs: counters.jobs,
                misses: counters.misses,
                overruns: counters.overruns,
                tardiness_max: counters.tardiness_max,
                response_max: counters.response_max,
                ran: counters.ran,
            }
        };
        self.table.tasks().map(task).collect()
    }
}

fn number_of(task: TaskId) -> u32 {
    task.index() as u32
}

fn as_float(share: Share) -> f64 {
    f64::from(share.billionths()) / f64::from(Share::WHOLE)
}
