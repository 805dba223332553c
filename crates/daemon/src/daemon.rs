//! The daemon: turns calls and scheduling events into reservations that the kernel enforces.
//!
//! It joins the reservation table, the scheduler in the kernel, the statistics and the state file. The main loop ([`run`])
//! waits for the socket and for scheduling events and calls [`Daemon::poll`]; the daemon itself never blocks.
//!
//! [`run`]: crate::run

mod affinity_requests;
mod apply;
mod capacities;
mod credentials;
mod handlers;
mod periodic;
mod request_validation;
mod saving;
mod self_reservation;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use shiftwork_live::LiveError;
use shiftwork_live::standing::{Settings, Standing};
use shiftwork_model::{CpuId, CpuSet, Instant, OnOverrun, Record, RecordKind, Span, TaskId};

use capacities::Capacities;

use crate::audit::{AuditLine, AuditLog};
use crate::backend::Scheduler;
use crate::backend::sched_ext::SchedExtBackend;
use crate::clock::unix_ns;
use crate::config::Config;
use crate::observations::Observations;
use crate::privileges;
use crate::problems::{Problems, Subject};
use crate::recorder::{Folder, MissExplainer, Recorder};
use crate::reservation_table::{NoticeKind, ReservationTable, ReservedTask, Rules, TaskNotice};
use crate::state::{StateFile, StateWriter};
use crate::statistics::{Miss, TaskStatistics};
use crate::threads::{Proc, ThreadDirectory};

/// Interval between two attempts to schedule admitted tasks that the backend refused.
const RETRY: Span = Span::from_s(1);

/// Number of tasks that the scheduler in the kernel accepts, less one number for trial admissions.
const TASKS_MAX: usize = 1_023;

/// Size of the ring buffer for scheduling events: some seconds of a busy machine.
const TRACE_BYTES: u32 = 4 << 20;

/// Maximum number of scheduling events that are processed before calls are: some milliseconds. As long as events are left it doubles,
/// to the second number at most: the daemon catches up the better the further it is behind, and answers in between.
const EVENTS_AT_ONCE: [usize; 2] = [512, 8_192];

/// Approximate maximum size of the recording of a miss.
const FILE_BYTES: usize = 16 << 20;

/// Default folder of the recordings, beside the state file.
const RECORDS: &str = "records";

/// The running daemon.
pub struct Daemon {
    config: Config,
    table: ReservationTable,
    backend: Box<dyn Scheduler>,
    threads: Box<dyn ThreadDirectory>,
    /// Whose credentials are checked next.
    credentials: credentials::Sweep,
    affinity_requests: affinity_requests::AffinityRequests,
    statistics: TaskStatistics,
    recorder: Recorder,
    explainer: MissExplainer,
    observations: Observations,
    /// When [`run_periodic`](Self::run_periodic) last ran.
    periodic_at: Instant,
    /// When to retry tasks that the backend refused.
    retry_at: Instant,
    state: Arc<StateFile>,
    writer: StateWriter,
    saving: saving::Schedule,
    problems: Problems,
    audit: AuditLog,
    /// Number of lost events that are logged.
    lost: u64,
    /// Number of reservations lost so far.
    reservations_lost: u64,
    /// CPU time of the daemon's own thread; `None`: it is ordinary work.
    self_reservation: Option<self_reservation::SelfReservation>,
    /// The table differs from the state file.
    is_unsaved: bool,
    since: Instant,
    /// When [`poll`](Self::poll) was last called.
    now: Instant,
    /// Until when it is known what tasks did: while scheduling events are pending, less than `now`.
    known_until: Instant,
    /// See [`EVENTS_AT_ONCE`].
    events_at_once: usize,
    /// What happened to tasks during calls since the last [`poll`](Self::poll).
    notices: Vec<TaskNotice>,
    capacities: Capacities,
    /// The loads of the CPUs in the last second, how long that was, and when it ended.
    loads: BTreeMap<CpuId, f64>,
    loads_over: Span,
    loads_at: Instant,
}

/// What the records of one call of [`Daemon::poll`] have in common.
#[derive(Debug, Default)]
struct Batch {
    /// The task of the record before, if it was demoted by it.
    demoted: Option<TaskId>,
    /// Tasks that used up their budgets.
    overran: BTreeSet<TaskId>,
}

/// What the daemon runs on.
pub struct Machine {
    /// The scheduler, loaded.
    pub scheduler: Box<dyn Scheduler>,
    /// The threads of callers.
    pub threads: Box<dyn ThreadDirectory>,
    /// The CPUs that are online.
    pub online: CpuSet,
}

/// Result of [`Daemon::poll`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PollOutcome {
    /// Changes of tasks that their owners did not request.
    pub notices: Vec<TaskNotice>,
    /// Missed deadlines.
    pub misses: Vec<Miss>,
    /// Lines of the audit log.
    pub audit: Vec<String>,
    /// Failures after which the daemon continues.
    pub warnings: Vec<String>,
    /// Why the kernel unloaded the scheduler; `None` while it is loaded.
    pub unloaded: Option<String>,
}

impl Daemon {
    /// Loads the scheduler, reserves time for the calling thread, which must be the one that calls [`poll`](Self::poll), and
    /// restores the saved reservations. `online` are the online CPUs of the machine; `now` is on the monotonic clock.
    ///
    /// # Errors
    /// If this machine cannot run the scheduler, with a remedy; or the configuration names CPUs that the machine lacks.
    pub fn start(
        config: Config,
        state: StateFile,
        online: CpuSet,
        now: Instant,
    ) -> Result<(Self, PollOutcome), LiveError> {
        let cpus = config.cpus.unwrap_or(online);
        let scheduler = Standing::load(&Settings {
            cpus,
            order: config.terms.policy.order,
            reserve: config.terms.reserve,
            trace_bytes: TRACE_BYTES,
        })?;
        // Before other threads are created: each would keep its own capabilities.
        privileges::drop_others().map_err(|error| LiveError::System {
            doing: "give up privileges".to_owned(),
            error,
        })?;
        let machine = Machine {
            scheduler: Box::new(SchedExtBackend { scheduler }),
            threads: Box::new(Proc),
            online,
        };
        Self::start_on(machine, config, state, now)
    }

    /// As [`start`](Self::start), on a machine with its scheduler loaded.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start_on(
        machine: Machine,
        config: Config,
        state: StateFile,
        now: Instant,
    ) -> Result<(Self, PollOutcome), LiveError> {
        let online = machine.online;
        let cpus = config.cpus.unwrap_or(online);
        let table = ReservationTable::new(Rules {
            cpus,
            terms: config.terms,
            guarantee: config.guarantee,
            quotas: config.quotas,
            tasks_max: TASKS_MAX,
        });
        let seconds = Span::from_s(u64::from(config.record_seconds));
        let recorder = Recorder::new(seconds, cpus, &config.policy, now);
        let explainer = MissExplainer::begin(
            Some(Folder {
                path: records_folder(&config, &state),
                files_max: config.record_files,
            }),
            config.record_gap,
            Arc::clone(state.files()),
        )
        .map_err(|error| LiveError::System {
            doing: "start the thread that explains missed deadlines".to_owned(),
            error,
        })?;
        let state = Arc::new(state);
        let writer = StateWriter::begin(Arc::clone(&state)).map_err(|error| LiveError::System {
            doing: "start the thread that saves reservations".to_owned(),
            error,
        })?;
        let capacities = Capacities::begin().map_err(|error| LiveError::System {
            doing: "start the thread that computes capacities".to_owned(),
            error,
        })?;
        let mut daemon = Self {
            config,
            table,
            backend: machine.scheduler,
            threads: machine.threads,
            credentials: credentials::Sweep::beginning(now),
            affinity_requests: affinity_requests::AffinityRequests::default(),
            statistics: TaskStatistics::default(),
            recorder,
            explainer,
            observations: Observations::default(),
            periodic_at: now,
            retry_at: now,
            state,
            writer,
            saving: saving::Schedule::from(now),
            problems: Problems::default(),
            audit: AuditLog::default(),
            lost: 0,
            reservations_lost: 0,
            self_reservation: None,
            is_unsaved: true,
            since: now,
            now,
            known_until: now,
            events_at_once: EVENTS_AT_ONCE[0],
            notices: Vec::new(),
            capacities,
            loads: BTreeMap::new(),
            loads_over: Span::ZERO,
            loads_at: now,
        };
        let mut outcome = PollOutcome::default();
        for cpu in (cpus - online).iter() {
            let lost = daemon.table.cpu_offline(now, cpu, &mut *daemon.backend);
            outcome.notices.extend(lost);
        }
        daemon.table.advance(now, &mut *daemon.backend);
        // Before all tasks: when a CPU goes offline, the tasks admitted last lose their reservations first.
        outcome
            .warnings
            .extend(daemon.reserve_for_self(online, now));
        daemon.restore_reservations(&mut outcome);
        daemon.audit_notices(&mut outcome);
        Ok((daemon, outcome))
    }

    /// The task with this number, and its reservation.
    pub fn task(&self, task: TaskId) -> Option<&ReservedTask> {
        self.table.task(task)
    }

    /// The rules of admission.
    pub const fn rules(&self) -> &Rules {
        self.table.rules()
    }

    /// The name of the scheduling policy.
    pub fn policy(&self) -> &str {
        &self.config.policy
    }

    /// Readable when there are scheduling events.
    pub fn events(&self) -> BorrowedFd<'_> {
        self.backend.events()
    }

    /// Whether [`poll`](Self::poll) has left scheduling events that are pending, or work that is due.
    pub fn has_more_work(&self) -> bool {
        self.backend.has_more_records() || self.has_due_affinity_requests()
    }

    /// Processes pending scheduling events and work that is due, a bounded part of both.
    ///
    /// # Errors
    /// If the events cannot be read.
    pub fn poll(&mut self, now: Instant) -> Result<PollOutcome, LiveError> {
        let mut outcome = PollOutcome {
            unloaded: self.backend.unloaded(),
            notices: std::mem::take(&mut self.notices),
            ..PollOutcome::default()
        };
        self.now = now;
        let mut batch = Batch::default();
        for record in self.backend.take_records(self.events_at_once)? {
            self.known_until = self.known_until.max(record.at);
            self.recorder.record(&record);
            outcome.misses.extend(self.statistics.record(&record));
            outcome.notices.extend(self.handle(&record, &mut batch));
        }
        self.send_overrun_signals(batch.overran);
        outcome.notices.extend(self.handle_affinity_requests(now));
        let [first, most] = EVENTS_AT_ONCE;
        if self.backend.has_more_records() {
            self.events_at_once = most.min(2 * self.events_at_once);
        } else {
            self.events_at_once = first;
            self.known_until = now;
        }
        let known_until = self.known_until;
        for did in self.backend.take_observed() {
            self.observations.record(&did);
        }
        outcome
            .misses
            .extend(self.statistics.find_late(known_until));
        for miss in &outcome.misses {
            self.recorder.missed(miss);
        }
        let lost = self.backend.events_lost();
        self.recorder.advance(known_until, lost);
        self.explain(now);
        outcome.warnings.extend(self.explainer.take_news());
        if let Some(kept) = self.explainer.take_kept() {
            let line = self.problems.note(Subject::Recordings, kept);
            outcome.warnings.extend(line);
        }
        self.run_periodic(now, &mut outcome);
        let notices = self.table.advance(now, &mut *self.backend);
        outcome.notices.extend(notices);
        outcome.notices.extend(self.check_next_credentials(now));
        if self.retry_at <= now {
            self.retry_at = now + RETRY;
            outcome.notices.extend(self.table.retry(&mut *self.backend));
        }
        let is_reserved = |task: &TaskId| self.table.task(*task).is_some();
        let gone: Vec<TaskId> = outcome.notices.iter().map(|notice| notice.task).collect();
        for task in gone.iter().filter(|task| !is_reserved(task)) {
            self.statistics.remove(*task);
            self.recorder.forget(*task, now);
        }
        self.is_unsaved |= !outcome.notices.is_empty();
        self.audit_notices(&mut outcome);
        self.save_if_due(now, &mut outcome);
        self.capacities.refresh(&self.table);
        Ok(outcome)
    }

    /// What follows from a record for reservations.
    fn handle(&mut self, record: &Record, batch: &mut Batch) -> Vec<TaskNotice> {
        let was_demoted = batch.demoted.take();
        match record.kind {
            RecordKind::Left { task } => {
                // A task that is not served was dismissed by the table, or the number is another's by now; one that was
                // demoted has its answer. If the thread is alive the table dismissed it, and has served it again since.
                let served = self.table.task(task).filter(|it| it.is_served);
                let has_ended = served.is_some_and(|it| !self.threads.is_alive(&it.thread));
                if has_ended && was_demoted != Some(task) {
                    self.remove_task(task);
                }
            }
            RecordKind::BudgetSpent { job } => {
                batch.overran.insert(job.task);
            }
            RecordKind::Demoted { task, ref asked } => {
                batch.demoted = Some(task);
                self.note_affinity_request(task, **asked);
            }
            RecordKind::CpuOffline { cpu } => {
                return self.table.cpu_offline(record.at, cpu, &mut *self.backend);
            }
            RecordKind::CpuOnline { cpu } => {
                return self.table.cpu_online(record.at, cpu, &mut *self.backend);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Signals these overruns, where that is requested: one signal says as much as several.
    fn send_overrun_signals(&self, overran: BTreeSet<TaskId>) {
        for task in overran {
            let warned = self.table.task(task);
            let warned = warned.filter(|it| it.reservation.on_overrun == OnOverrun::Signal);
            if let Some(reserved) = warned {
                self.backend.send_overrun_signal(&reserved.thread);
            }
        }
    }

    /// Describes the task to the recorder.
    fn register_task(&mut self, task: TaskId) {
        if let Some(reserved) = self.table.task(task) {
            let (name, user) = (&reserved.name, reserved.owner.user);
            self.recorder.know(task, name, user, &reserved.reservation);
        }
    }

    /// Passes the next missed deadline to the explainer when that is idle.
    fn explain(&mut self, now: Instant) {
        if !self.explainer.is_idle(now) {
            return;
        }
        if let Some(missed) = self.recorder.take_missed(self.known_until) {
            let recording =
                self.recorder
                    .recording(Instant::ZERO, FILE_BYTES, unix_ns(), Some(missed.job));
            self.explainer.take(recording, missed.job.task, now);
        }
    }

    fn end_observing(&mut self, task: TaskId) {
        self.backend.stop_observing(task);
        self.table.release_number(task);
    }

    /// Counts lost reservations, and adds the lines of the audit log.
    fn audit_notices(&mut self, outcome: &mut PollOutcome) {
        for notice in &outcome.notices {
            self.reservations_lost += u64::from(notice.kind == NoticeKind::Lost);
            let line = AuditLine::of_notice(notice);
            self.audit.note(notice.of.owner.account, &line, self.now);
        }
        outcome.audit.extend(self.audit.take(self.now));
    }

    /// The task's thread has ended.
    fn remove_task(&mut self, task: TaskId) {
        if let Some(reserved) = self.table.task(task) {
            let line = AuditLine::ended(task, reserved);
            self.audit.note(reserved.owner.account, &line, self.now);
        }
        self.table.remove(task);
        self.statistics.remove(task);
        self.recorder.forget(task, self.now);
        self.is_unsaved = true;
    }

    /// Folder of the recordings of misses.
    fn records_folder(&self) -> PathBuf {
        records_folder(&self.config, &self.state)
    }

    /// Applies the quotas, rates and reserve of this configuration.
    ///
    /// # Errors
    /// If it changes a key that only a restart can change, or the reserve would cost a task its guarantee. Then nothing has
    /// changed.
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
                "policy, guarantee, cpus, group and own-share change only at a restart; tasks keep their reservations over it",
            ));
        }
        self.table.set_reserve(config.terms.reserve)?;
        self.backend.set_reserve(config.terms.reserve);
        self.table.set_quotas(config.quotas);
        self.config = config;
        Ok(())
    }
}

/// Metrics of a stopped daemon would be taken for current ones.
impl Drop for Daemon {
    fn drop(&mut self) {
        self.finish_saving();
        if let Some(path) = &self.config.metrics {
            // Fails only if the file was never written.
            let _ = self.state.files().remove(path);
        }
    }
}

fn records_folder(config: &Config, state: &StateFile) -> PathBuf {
    let beside = || state.path().with_file_name(RECORDS);
    config.record_folder.clone().unwrap_or_else(beside)
}
