//! What callers are answered.

use std::collections::BTreeSet;

use shiftwork_client::{
    Admit, Admitted, Answer, Call, Change, Changed, Cpu, Dismiss, Dismissed, EndObservation, Error,
    Explain, Explained, GetRecord, GotRecord, GotStatus, ObservationEnded, Observe, Observing,
    Room, State, Status, Task,
};
use shiftwork_model::{CpuSet, Instant, Share, Span, TaskId};

use super::Agent;
use super::asked::{check_name, check_thread, error, reservation, shown};
use crate::ledger::Holder;
use crate::limits::share_ppm;
use crate::reservation::{Denial, Owner};
use crate::run::unix_ns;
use crate::socket::{Peer, Service};
use crate::threads;

/// How many threads of one user may be observed.
const OBSERVED_MAX: usize = 64;

/// How many misses are explained if nobody says how many.
const EXPLAINED: usize = 3;

/// A reply has to fit into what a client takes.
const REPLY_BYTES: usize = 24 << 20;

/// What room is told for: shares are the same for every period.
const PERIOD: Span = Span::from_ms(100);

impl Service for Agent {
    fn call(&mut self, peer: &Peer<'_>, call: Call) -> Result<Answer, Error> {
        let now = self.now;
        match call {
            Call::Admit(asked) => self.admit(peer, &asked).map(Answer::Admit),
            Call::Change(asked) => self.change(peer, &asked).map(Answer::Change),
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
                    .clerk
                    .explanations(count.map_or(EXPLAINED, |count| count as usize)),
            })),
        }
        .map_err(error)
    }
}

impl Agent {
    fn admit(&mut self, peer: &Peer<'_>, asked: &Admit) -> Result<Admitted, Denial> {
        check_name(&asked.name)?;
        let found = self.found(peer, asked.thread)?;
        check_thread(peer, &found)?;
        let wanted = reservation(&asked.reservation, found.cpus, self.ledger.rules().cpus)?;
        let owner = Owner {
            user: found.user.unwrap_or(peer.user),
            cgroup: found.cgroup,
        };
        let deadline = wanted.deadline;
        let admitted =
            self.ledger
                .admit(owner, found.thread, &asked.name, wanted, &mut self.kernel);
        let (task, guarantee) = admitted?;
        self.accounts.open(task, deadline);
        self.remember(task);
        self.is_unsaved = true;
        Ok(Admitted {
            task: number_of(task),
            guarantee: guarantee.name().to_owned(),
        })
    }

    fn change(&mut self, peer: &Peer<'_>, asked: &Change) -> Result<Changed, Denial> {
        let (task, holder) = self.own(peer, asked.task)?;
        let (had, ours) = (holder.reservation.cpus, self.ledger.rules().cpus);
        let wanted = reservation(&asked.reservation, had, ours)?;
        let deadline = wanted.deadline;
        let guarantee = self.ledger.change(task, wanted, &mut self.kernel)?;
        self.accounts.open(task, deadline);
        self.remember(task);
        self.is_unsaved = true;
        Ok(Changed {
            guarantee: guarantee.name().to_owned(),
        })
    }

    fn dismiss(&mut self, peer: &Peer<'_>, task: u32) -> Result<Dismissed, Denial> {
        let (task, _) = self.own(peer, task)?;
        self.ledger.dismiss(task, &mut self.kernel)?;
        self.accounts.close(task);
        self.recorder.forget(task, self.now);
        self.is_unsaved = true;
        Ok(Dismissed {})
    }

    fn observe(&mut self, peer: &Peer<'_>, thread: Option<u32>) -> Result<Observing, Denial> {
        let found = self.found(peer, thread)?;
        check_thread(peer, &found)?;
        let user = found.user.unwrap_or(peer.user);
        if self.observations.count_of(user) >= OBSERVED_MAX {
            return Err(Denial::Exhausted(format!(
                "user {user} has {OBSERVED_MAX} threads observed, and may have no more; end some of that first"
            )));
        }
        let task = self.ledger.lend_number()?;
        if let Err(denial) = self.kernel.observe(task, &found.thread) {
            self.ledger.take_back_number(task);
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
        let missing = || Denial::Missing(format!("observation by the number {number}"));
        let task = TaskId::from_index(usize::try_from(number).map_err(|_| missing())?);
        let observed = self.observations.of(task).ok_or_else(missing)?;
        if peer.user != 0 && observed.owner.user != peer.user {
            return Err(Denial::Forbidden(format!(
                "what is observed by the number {number} is not user {}'s",
                peer.user
            )));
        }
        let observation = self.observations.end(task, self.now).ok_or_else(missing)?;
        self.end_observing(task);
        Ok(ObservationEnded { observation })
    }

    /// What programs of others do is root's to know.
    fn record(&self, peer: &Peer<'_>, seconds: Option<f64>) -> Result<GotRecord, Denial> {
        if peer.user != 0 {
            return Err(Denial::Forbidden(
                "the record tells of everybody's threads, and only root may read it".to_owned(),
            ));
        }
        let seconds = seconds.unwrap_or(f64::INFINITY);
        if seconds.is_nan() || seconds < 0.0 {
            return Err(Denial::Invalid {
                parameter: "seconds",
                reason: format!("{seconds} is no time; 0 or more is"),
            });
        }
        // More than there is of the clock is all of it.
        let before_ns = (seconds * 1e9) as u64;
        let since = Instant::from_ns(self.now.as_ns().saturating_sub(before_ns));
        let recording = self.recorder.recording(since, REPLY_BYTES, unix_ns());
        Ok(GotRecord {
            record: recording.lines(self.records().to_str()),
        })
    }

    /// The thread that a call is about: the caller's first where it names none.
    fn found(&self, peer: &Peer<'_>, thread: Option<u32>) -> Result<threads::Found, Denial> {
        let number = thread.or(peer.process).ok_or_else(|| Denial::Invalid {
            parameter: "thread",
            reason: String::from("is needed, since the caller's process is not seen from here"),
        })?;
        threads::find(number)
    }

    /// The task, if it is the peer's.
    fn own(&self, peer: &Peer<'_>, number: u32) -> Result<(TaskId, &Holder), Denial> {
        let missing = || Denial::Missing(format!("task {number}"));
        let index = usize::try_from(number).map_err(|_| missing())?;
        if index >= super::TASKS_MAX {
            return Err(missing());
        }
        let task = TaskId::from_index(index);
        let holder = self.ledger.holder(task).ok_or_else(missing)?;
        if peer.user != 0 && holder.owner.user != peer.user {
            return Err(Denial::Forbidden(format!(
                "task {number} is not user {}'s, who may change their own",
                peer.user
            )));
        }
        Ok((task, holder))
    }

    pub(super) fn status(&mut self, now: Instant) -> Status {
        let since = std::mem::replace(&mut self.asked_at, now);
        let elapsed = now.late_since(since).as_ns().max(1);
        let cpus = self.ledger.rules().cpus;
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: self.config.policy.clone(),
            guarantee: self.ledger.rules().promising.name().to_owned(),
            cpus: cpus.iter().map(|cpu| self.cpu(cpu, elapsed)).collect(),
            rooms: self.rooms(),
            tasks: self.tasks(),
            misses: self.accounts.misses(),
            since: self.since,
            now,
            lost: self.kernel.standing.facts_lost(),
        }
    }

    fn cpu(&mut self, cpu: shiftwork_model::CpuId, elapsed_ns: u64) -> Cpu {
        let reserve = as_float(self.ledger.rules().terms.reserve);
        let load = self.accounts.take_load(cpu).as_ns() as f64 / elapsed_ns as f64;
        let running = self.accounts.running_on(cpu);
        Cpu {
            cpu: cpu.index() as u32,
            online: self.ledger.online().contains(cpu),
            running: running.map(number_of),
            // What began before the time that is asked about counts when it ends.
            load: load.min(1.0),
            share: 1.0 - reserve,
            reserve,
        }
    }

    /// For each set of CPUs that anybody uses, and for all.
    fn rooms(&mut self) -> Vec<Room> {
        let used = self.ledger.holders().map(|(_, it)| it.reservation.cpus);
        let all: BTreeSet<Vec<usize>> = used
            .chain([self.ledger.rules().cpus])
            .map(|cpus| cpus.iter().map(|cpu| cpu.index()).collect())
            .collect();
        let sets = all.into_iter().map(|numbers| {
            let cpus = numbers.into_iter().map(shiftwork_model::CpuId::from_index);
            cpus.collect::<CpuSet>()
        });
        sets.map(|cpus| {
            let within = self
                .ledger
                .holders()
                .filter(|(_, it)| it.is_served && it.reservation.cpus.is_subset(&cpus));
            let reserved: u64 = within.map(|(_, it)| share_ppm(&it.reservation)).sum();
            let free = self.ledger.room(cpus, PERIOD);
            Room {
                cpus: cpus.to_string(),
                reserved: reserved as f64 / 1e6,
                free: free.as_ns() as f64 / PERIOD.as_ns() as f64,
            }
        })
        .collect()
    }

    fn tasks(&self) -> Vec<Task> {
        let task = |(task, holder): (TaskId, &Holder)| {
            let account = self.accounts.of(task).copied().unwrap_or_default();
            Task {
                task: number_of(task),
                name: holder.name.clone(),
                process: holder.thread.process,
                thread: holder.thread.thread,
                user: holder.owner.user,
                cgroup: holder.owner.cgroup.clone(),
                reservation: shown(&holder.reservation),
                state: match holder.is_served {
                    true => State::Admitted,
                    false => State::Demoted,
                },
                guarantee: self
                    .ledger
                    .promise(task)
                    .map_or("none", |guarantee| guarantee.name())
                    .to_owned(),
                cpu: account.cpu.map(|cpu| cpu.index() as u32),
                jobs: account.jobs,
                misses: account.misses,
                overruns: account.overruns,
                tardiness_max: account.tardiness_max,
                response_max: account.response_max,
                ran: account.ran,
            }
        };
        self.ledger.holders().map(task).collect()
    }
}

fn number_of(task: TaskId) -> u32 {
    task.index() as u32
}

fn as_float(share: Share) -> f64 {
    f64::from(share.billionths()) / f64::from(Share::WHOLE)
}
