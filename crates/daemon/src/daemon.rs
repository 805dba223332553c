//! The daemon: calls and facts go in, and everybody has what they were promised.
//!
//! It joins the table, the scheduler in the kernel, the accounts and the file of what outlives it. Whoever
//! owns it waits for its socket and for facts, and calls [`Daemon::look`]; it never waits itself.

mod handlers;
mod request_validation;
mod self_reservation;

use std::io;
use std::path::PathBuf;

use shiftwork_analysis::admission::Order;
use shiftwork_live::LiveError;
use shiftwork_live::standing::{Absence, Fact, FactKind, Settings, Standing};
use shiftwork_model::{CpuId, CpuSet, Instant, OnOverrun, Span, TaskId};
use shiftwork_policy::registry::OrderName;

use crate::backend::sched_ext::SchedExtBackend;
use crate::config::Config;
use crate::observations::Observations;
use crate::recorder::{Clerk, Folder, Recorder};
use crate::reservation_table::{ReservationTable, ReservedTask, Rules, TaskNotice};
use crate::run::unix_ns;
use crate::state::StateFile;
use crate::statistics::{Miss, TaskStatistics};
use crate::{metrics, privileges, threads};

/// Interval between two attempts to serve tasks that have their reservation and could not be served.
const RETRY: Span = Span::from_s(1);

/// How many tasks the scheduler in the kernel takes; one number is kept for questions of what would fit.
const TASKS_MAX: usize = 1_023;

/// Room for facts, in bytes: some seconds of a busy machine.
const TRACE_BYTES: u32 = 4 << 20;

/// A file of what led to a miss is hardly longer than this.
const FILE_BYTES: usize = 16 << 20;

/// The folder of those files, beside the state.
const RECORDS: &str = "records";

/// The agent at work.
pub struct Daemon {
    config: Config,
    table: ReservationTable,
    backend: SchedExtBackend,
    statistics: TaskStatistics,
    recorder: Recorder,
    clerk: Clerk,
    observations: Observations,
    /// When that was done last which is done every second.
    periodic_at: Instant,
    /// When tasks that could not be served are tried again.
    retry_at: Instant,
    state: StateFile,
    /// Its own time; `None`: it is ordinary work.
    self_reservation: Option<self_reservation::SelfReservation>,
    /// What is in the file is not what is so.
    is_unsaved: bool,
    since: Instant,
    /// When it looked last.
    now: Instant,
    /// When loads were asked for last.
    status_at: Instant,
}

/// What came of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollOutcome {
    /// What happened to tasks without their owners' asking.
    pub notices: Vec<TaskNotice>,
    /// Who missed a deadline.
    pub misses: Vec<Miss>,
    /// What did not work, and is not worth ending for.
    pub warnings: Vec<String>,
    /// Why the scheduler is not the machine's any more; `None` as long as it is.
    pub unloaded: Option<String>,
}

impl Daemon {
    /// Loads the scheduler, gives priority to the calling thread, which is to be the one that goes on with it, and takes in
    /// again who had a reservation before. `online` are the machine's CPUs that are
    /// online, `now` is of the monotonic clock.
    ///
    /// # Errors
    /// If this machine cannot, with what mends it; or the configuration names CPUs that it has not.
    pub fn start(
        config: Config,
        state: StateFile,
        online: CpuSet,
        now: Instant,
    ) -> Result<(Self, PollOutcome), LiveError> {
        let cpus = config.cpus.unwrap_or(online);
        let order = match config.terms.order {
            Order::Edf => OrderName::Edf,
            Order::FixedPriority => OrderName::FixedPriority,
        };
        let standing = Standing::load(&Settings {
            cpus,
            order,
            reserve: config.terms.reserve,
            trace_bytes: TRACE_BYTES,
        })?;
        // Before other threads begin, which would keep theirs.
        privileges::drop_others().map_err(|error| LiveError::System {
            doing: "give up privileges".to_owned(),
            error,
        })?;
        let table = ReservationTable::new(Rules {
            cpus,
            terms: config.terms,
            guarantee: config.guarantee,
            quotas: config.quotas,
            tasks_max: TASKS_MAX,
        });
        let seconds = Span::from_s(u64::from(config.record_seconds));
        let recorder = Recorder::new(seconds, cpus, &config.policy, now);
        let clerk = Clerk::begin(
            Some(Folder {
                path: records_folder(&config, &state),
                files_max: config.record_files,
            }),
            config.record_gap,
        )
        .map_err(|error| LiveError::System {
            doing: "begin a thread for what led to misses".to_owned(),
            error,
        })?;
        let mut daemon = Self {
            config,
            table,
            backend: SchedExtBackend { standing },
            statistics: TaskStatistics::default(),
            recorder,
            clerk,
            observations: Observations::default(),
            periodic_at: now,
            retry_at: now,
            state,
            self_reservation: None,
            is_unsaved: true,
            since: now,
            now,
            status_at: now,
        };
        let mut outcome = PollOutcome::default();
        for cpu in (cpus - online).iter() {
            let lost = daemon.table.cpu_offline(now, cpu, &mut daemon.backend);
            outcome.notices.extend(lost);
        }
        daemon.table.advance(now, &mut daemon.backend);
        // First of all: when a CPU goes, those who came last lose.
        outcome
            .warnings
            .extend(daemon.reserve_for_self(online, now));
        daemon.restore_reservations(&mut outcome);
        Ok((daemon, outcome))
    }

    fn restore_reservations(&mut self, outcome: &mut PollOutcome) {
        let remembered = self.state.load().unwrap_or_else(|error| {
            outcome.notices.push(TaskNotice {
                task: TaskId::from_index(0),
                what: format!(
                    "nobody is taken in again: {}: {error}",
                    self.state.path().display()
                ),
            });
            Vec::new()
        });
        for reserved in remembered {
            if !threads::is_alive(&reserved.thread) {
                continue;
            }
            let (thread, deadline) = (reserved.thread.clone(), reserved.reservation.deadline);
            outcome
                .notices
                .extend(self.table.restore(reserved, &mut self.backend));
            let restored = self.table.tasks().find(|(_, it)| it.thread == thread);
            if let Some((task, _)) = restored {
                self.statistics.insert(task, deadline);
                self.register_task(task);
            }
        }
    }

    /// Who has this reservation.
    pub fn task(&self, task: TaskId) -> Option<&ReservedTask> {
        self.table.task(task)
    }

    /// How it decides.
    pub const fn rules(&self) -> &Rules {
        self.table.rules()
    }

    /// The name of its policy.
    pub fn policy(&self) -> &str {
        &self.config.policy
    }

    /// What wakes whoever waits for facts.
    pub fn standing(&self) -> &Standing {
        &self.backend.standing
    }

    /// Takes what the kernel tells, and does what follows from it.
    ///
    /// # Errors
    /// If the kernel tells nothing any more, or the state cannot be saved.
    pub fn poll(&mut self, now: Instant) -> Result<PollOutcome, LiveError> {
        let mut outcome = PollOutcome {
            unloaded: self.backend.standing.unloaded(),
            ..PollOutcome::default()
        };
        self.now = now;
        for fact in self.backend.standing.take_facts()? {
            self.recorder.tell(fact);
            self.observations.record(&fact);
            outcome.misses.extend(self.statistics.record(&fact));
            outcome.notices.extend(self.handle_fact(&fact));
        }
        outcome
            .misses
            .extend(self.statistics.find_late(now.as_ns()));
        for miss in &outcome.misses {
            self.recorder.missed(miss);
        }
        let lost = self.backend.standing.facts_lost();
        self.recorder.advance(now, lost);
        self.explain(now);
        outcome.warnings.extend(self.clerk.take_news());
        outcome.warnings.extend(self.run_periodic(now));
        let notices = self.table.advance(now, &mut self.backend);
        outcome.notices.extend(notices);
        if self.retry_at <= now {
            self.retry_at = now + RETRY;
            outcome.notices.extend(self.table.retry(&mut self.backend));
        }
        let is_reserved = |task: &TaskId| self.table.task(*task).is_some();
        let gone: Vec<TaskId> = outcome.notices.iter().map(|notice| notice.task).collect();
        for task in gone.iter().filter(|task| !is_reserved(task)) {
            self.statistics.remove(*task);
            self.recorder.forget(*task, now);
        }
        self.is_unsaved |= !outcome.notices.is_empty();
        if std::mem::take(&mut self.is_unsaved) {
            self.save().map_err(|error| LiveError::Machine {
                what: format!("{} cannot be written: {error}", self.state.path().display()),
                remedy: String::from("make room there, or name another file with --state"),
            })?;
        }
        Ok(outcome)
    }

    /// What follows from a fact for who holds what.
    fn handle_fact(&mut self, fact: &Fact) -> Vec<TaskNotice> {
        let now = Instant::from_ns(fact.at_ns);
        let cpu = fact.cpu.unwrap_or(CpuId::from_index(0));
        match (fact.what, fact.task) {
            (FactKind::Left, Some(task)) => {
                // One that is not served was dismissed by the table, or is another's by now.
                if self.table.task(task).is_some_and(|it| it.is_served) {
                    self.remove_task(task);
                }
                Vec::new()
            }
            (FactKind::Overrun, Some(task)) => {
                let warned = self.table.task(task);
                let warned = warned.filter(|it| it.reservation.on_overrun == OnOverrun::Signal);
                if let Some(reserved) = warned {
                    SchedExtBackend::send_overrun_signal(&reserved.thread);
                }
                Vec::new()
            }
            (FactKind::Demoted { asked }, Some(task)) => {
                // A fact may be older than what came of it: what counts is what the thread is bound to now.
                let reserved = self.table.task(task);
                let found = reserved.and_then(|it| threads::look_up(it.thread.thread).ok());
                let cpus = found.map_or(asked, |it| it.cpus);
                let notice = self.table.request_affinity(task, cpus, &mut self.backend);
                notice.into_iter().collect()
            }
            (
                FactKind::CpuLost {
                    why: Absence::Offline,
                },
                _,
            ) => self.table.cpu_offline(now, cpu, &mut self.backend),
            (
                FactKind::CpuBack {
                    why: Absence::Offline,
                },
                _,
            ) => self.table.cpu_online(now, cpu, &mut self.backend),
            _ => Vec::new(),
        }
    }

    /// The recorder knows what the task is.
    fn register_task(&mut self, task: TaskId) {
        if let Some(reserved) = self.table.task(task) {
            let (name, reservation) = (&reserved.name, &reserved.reservation);
            self.recorder.know(task, name, reservation, self.now);
        }
    }

    /// What was missed is explained, one after the other.
    fn explain(&mut self, now: Instant) {
        if !self.clerk.is_idle(now) {
            return;
        }
        if let Some(missed) = self.recorder.take_missed(now) {
            let mut recording = self
                .recorder
                .recording(Instant::ZERO, FILE_BYTES, unix_ns());
            recording.missed = Some(missed);
            self.clerk.take(recording, now);
        }
    }

    /// What nobody waits for: looks whether the threads are there that the kernel does not know, and writes metrics. What went
    /// wrong.
    fn run_periodic(&mut self, now: Instant) -> Option<String> {
        const OFTEN: Span = Span::from_s(1);
        if self.periodic_at + OFTEN > now {
            return None;
        }
        self.periodic_at = now;
        for task in self.observations.expire(now, threads::is_alive) {
            self.end_observing(task);
        }
        let waiting = self.table.tasks().filter(|(_, it)| !it.is_served);
        let gone = waiting.filter(|(_, it)| !threads::is_alive(&it.thread));
        for task in gone.map(|(task, _)| task).collect::<Vec<_>>() {
            self.remove_task(task);
        }
        let path = self.config.metrics.clone()?;
        let written = metrics::write(&path, &self.status(now));
        let error = written.err()?;
        // Once is enough: it will hardly be better in a second.
        self.config.metrics = None;
        Some(format!(
            "no more metrics: {} cannot be written: {error}",
            path.display()
        ))
    }

    fn end_observing(&mut self, task: TaskId) {
        // It fails only where the scheduler is gone.
        let _ = self.backend.standing.stop_observing(task);
        self.table.release_number(task);
    }

    fn remove_task(&mut self, task: TaskId) {
        self.table.remove(task);
        self.statistics.remove(task);
        self.recorder.forget(task, self.now);
        self.is_unsaved = true;
    }

    fn save(&self) -> io::Result<()> {
        self.state.save(self.table.tasks().map(|(_, it)| it))
    }

    /// Where recordings of misses are kept.
    fn records_folder(&self) -> PathBuf {
        records_folder(&self.config, &self.state)
    }

    /// Limits and the reserve are as in this configuration from now on.
    ///
    /// # Errors
    /// What it changes that only a restart can change, or who would lose by the reserve. Then everything is as before.
    pub fn reload(&mut self, config: Config) -> Result<(), String> {
        if config.policy != self.config.policy
            || config.guarantee != self.config.guarantee
            || config
                .cpus
                .is_some_and(|cpus| cpus != self.table.rules().cpus)
            || config.group != self.config.group
            || config.own_share != self.config.own_share
        {
            return Err(String::from(
                "policy, guarantee, cpus, group and own-share change with a restart only; tasks keep their reservations over it",
            ));
        }
        self.table.set_reserve(config.terms.reserve)?;
        self.backend.standing.set_reserve(config.terms.reserve);
        self.table.set_quotas(config.quotas);
        self.config = config;
        Ok(())
    }
}

/// Figures of an agent that is gone would be taken for those of now.
impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(path) = &self.config.metrics {
            // There is none if none could be written.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn records_folder(config: &Config, state: &StateFile) -> PathBuf {
    let beside = || state.path().with_file_name(RECORDS);
    config.record_folder.clone().unwrap_or_else(beside)
}
