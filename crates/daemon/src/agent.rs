//! The agent: calls and facts go in, and everybody has what they were promised.
//!
//! It joins the ledger, the scheduler in the kernel, the accounts and the file of what outlives it. Whoever
//! owns it waits for its socket and for facts, and calls [`Agent::look`]; it never waits itself.

mod answers;
mod asked;
mod own;

use std::io;
use std::path::PathBuf;

use shiftwork_analysis::admission::Order;
use shiftwork_live::LiveError;
use shiftwork_live::standing::{Absence, Fact, FactKind, Settings, Standing};
use shiftwork_model::{CpuId, CpuSet, Instant, OnOverrun, Span, TaskId};
use shiftwork_policy::registry::OrderName;

use crate::accounts::{Accounts, Miss};
use crate::config::Config;
use crate::kernel::Kernel;
use crate::ledger::{Holder, Ledger, Rules, Turn};
use crate::observations::Observations;
use crate::recorder::{Clerk, Folder, Recorder};
use crate::run::unix_ns;
use crate::state::StateFile;
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
pub struct Agent {
    config: Config,
    ledger: Ledger,
    kernel: Kernel,
    accounts: Accounts,
    recorder: Recorder,
    clerk: Clerk,
    observations: Observations,
    /// When that was done last which is done every second.
    chores_at: Instant,
    /// When tasks that could not be served are tried again.
    retry_at: Instant,
    state: StateFile,
    /// Its own time; `None`: it is ordinary work.
    own: Option<own::Own>,
    /// What is in the file is not what is so.
    is_unsaved: bool,
    since: Instant,
    /// When it looked last.
    now: Instant,
    /// When loads were asked for last.
    asked_at: Instant,
}

/// What came of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// What happened to tasks without their owners' asking.
    pub turns: Vec<Turn>,
    /// Who missed a deadline.
    pub misses: Vec<Miss>,
    /// What did not work, and is not worth ending for.
    pub troubles: Vec<String>,
    /// Why the scheduler is not the machine's any more; `None` as long as it is.
    pub unloaded: Option<String>,
}

impl Agent {
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
    ) -> Result<(Self, News), LiveError> {
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
        let ledger = Ledger::new(Rules {
            cpus,
            terms: config.terms,
            promising: config.promising,
            limits: config.limits,
            tasks_max: TASKS_MAX,
        });
        let seconds = Span::from_s(u64::from(config.record_seconds));
        let recorder = Recorder::new(seconds, cpus, &config.policy, now);
        let clerk = Clerk::begin(
            Some(Folder {
                path: records(&config, &state),
                files_max: config.record_files,
            }),
            config.record_gap,
        )
        .map_err(|error| LiveError::System {
            doing: "begin a thread for what led to misses".to_owned(),
            error,
        })?;
        let mut agent = Self {
            config,
            ledger,
            kernel: Kernel { standing },
            accounts: Accounts::default(),
            recorder,
            clerk,
            observations: Observations::default(),
            chores_at: now,
            retry_at: now,
            state,
            own: None,
            is_unsaved: true,
            since: now,
            now,
            asked_at: now,
        };
        let mut news = News::default();
        for cpu in (cpus - online).iter() {
            let lost = agent.ledger.cpu_offline(now, cpu, &mut agent.kernel);
            news.turns.extend(lost);
        }
        agent.ledger.advance(now, &mut agent.kernel);
        // First of all: when a CPU goes, those who came last lose.
        news.troubles.extend(agent.reserve_own(online, now));
        agent.take_in_again(&mut news);
        Ok((agent, news))
    }

    fn take_in_again(&mut self, news: &mut News) {
        let remembered = self.state.load().unwrap_or_else(|error| {
            news.turns.push(Turn {
                task: TaskId::from_index(0),
                what: format!(
                    "nobody is taken in again: {}: {error}",
                    self.state.path().display()
                ),
            });
            Vec::new()
        });
        for holder in remembered {
            if !threads::is_there(&holder.thread) {
                continue;
            }
            let (thread, deadline) = (holder.thread.clone(), holder.reservation.deadline);
            news.turns
                .extend(self.ledger.restore(holder, &mut self.kernel));
            let restored = self.ledger.holders().find(|(_, it)| it.thread == thread);
            if let Some((task, _)) = restored {
                self.accounts.open(task, deadline);
                self.remember(task);
            }
        }
    }

    /// Who has this reservation.
    pub fn holder(&self, task: TaskId) -> Option<&Holder> {
        self.ledger.holder(task)
    }

    /// How it decides.
    pub const fn rules(&self) -> &Rules {
        self.ledger.rules()
    }

    /// The name of its policy.
    pub fn policy(&self) -> &str {
        &self.config.policy
    }

    /// What wakes whoever waits for facts.
    pub fn standing(&self) -> &Standing {
        &self.kernel.standing
    }

    /// Takes what the kernel tells, and does what follows from it.
    ///
    /// # Errors
    /// If the kernel tells nothing any more, or the state cannot be saved.
    pub fn look(&mut self, now: Instant) -> Result<News, LiveError> {
        let mut news = News {
            unloaded: self.kernel.standing.unloaded(),
            ..News::default()
        };
        self.now = now;
        for fact in self.kernel.standing.take_facts()? {
            self.recorder.tell(fact);
            self.observations.tell(&fact);
            news.misses.extend(self.accounts.tell(&fact));
            news.turns.extend(self.follow(&fact));
        }
        news.misses.extend(self.accounts.look(now.as_ns()));
        for miss in &news.misses {
            self.recorder.missed(miss);
        }
        let lost = self.kernel.standing.facts_lost();
        self.recorder.advance(now, lost);
        self.explain(now);
        news.troubles.extend(self.clerk.take_news());
        news.troubles.extend(self.do_chores(now));
        let turns = self.ledger.advance(now, &mut self.kernel);
        news.turns.extend(turns);
        if self.retry_at <= now {
            self.retry_at = now + RETRY;
            news.turns.extend(self.ledger.retry(&mut self.kernel));
        }
        let holders = |task: &TaskId| self.ledger.holder(*task).is_some();
        let gone: Vec<TaskId> = news.turns.iter().map(|turn| turn.task).collect();
        for task in gone.iter().filter(|task| !holders(task)) {
            self.accounts.close(*task);
            self.recorder.forget(*task, now);
        }
        self.is_unsaved |= !news.turns.is_empty();
        if std::mem::take(&mut self.is_unsaved) {
            self.save().map_err(|error| LiveError::Machine {
                what: format!("{} cannot be written: {error}", self.state.path().display()),
                remedy: String::from("make room there, or name another file with --state"),
            })?;
        }
        Ok(news)
    }

    /// What follows from a fact for who holds what.
    fn follow(&mut self, fact: &Fact) -> Vec<Turn> {
        let now = Instant::from_ns(fact.at_ns);
        let cpu = fact.cpu.unwrap_or(CpuId::from_index(0));
        match (fact.what, fact.task) {
            (FactKind::Left, Some(task)) => {
                // One that is not served was dismissed by the ledger, or is another's by now.
                if self.ledger.holder(task).is_some_and(|it| it.is_served) {
                    self.gone(task);
                }
                Vec::new()
            }
            (FactKind::Overrun, Some(task)) => {
                let warned = self.ledger.holder(task);
                let warned = warned.filter(|it| it.reservation.on_overrun == OnOverrun::Signal);
                if let Some(holder) = warned {
                    Kernel::warn(&holder.thread);
                }
                Vec::new()
            }
            (FactKind::Demoted { asked }, Some(task)) => {
                // A fact may be older than what came of it: what counts is what the thread is bound to now.
                let holder = self.ledger.holder(task);
                let found = holder.and_then(|it| threads::find(it.thread.thread).ok());
                let cpus = found.map_or(asked, |it| it.cpus);
                let turn = self.ledger.asked(task, cpus, &mut self.kernel);
                turn.into_iter().collect()
            }
            (
                FactKind::CpuLost {
                    why: Absence::Offline,
                },
                _,
            ) => self.ledger.cpu_offline(now, cpu, &mut self.kernel),
            (
                FactKind::CpuBack {
                    why: Absence::Offline,
                },
                _,
            ) => self.ledger.cpu_online(now, cpu, &mut self.kernel),
            _ => Vec::new(),
        }
    }

    /// The recorder knows what the task is.
    fn remember(&mut self, task: TaskId) {
        if let Some(holder) = self.ledger.holder(task) {
            let (name, reservation) = (&holder.name, &holder.reservation);
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
    fn do_chores(&mut self, now: Instant) -> Option<String> {
        const OFTEN: Span = Span::from_s(1);
        if self.chores_at + OFTEN > now {
            return None;
        }
        self.chores_at = now;
        for task in self.observations.expire(now, threads::is_there) {
            self.end_observing(task);
        }
        let waiting = self.ledger.holders().filter(|(_, it)| !it.is_served);
        let gone = waiting.filter(|(_, it)| !threads::is_there(&it.thread));
        for task in gone.map(|(task, _)| task).collect::<Vec<_>>() {
            self.gone(task);
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
        let _ = self.kernel.standing.stop_observing(task);
        self.ledger.take_back_number(task);
    }

    fn gone(&mut self, task: TaskId) {
        self.ledger.left(task);
        self.accounts.close(task);
        self.recorder.forget(task, self.now);
        self.is_unsaved = true;
    }

    fn save(&self) -> io::Result<()> {
        self.state.save(self.ledger.holders().map(|(_, it)| it))
    }

    /// Where recordings of misses are kept.
    fn records(&self) -> PathBuf {
        records(&self.config, &self.state)
    }

    /// Limits and the reserve are as in this configuration from now on.
    ///
    /// # Errors
    /// What it changes that only a restart can change, or who would lose by the reserve. Then everything is as before.
    pub fn reload(&mut self, config: Config) -> Result<(), String> {
        if config.policy != self.config.policy
            || config.promising != self.config.promising
            || config
                .cpus
                .is_some_and(|cpus| cpus != self.ledger.rules().cpus)
            || config.group != self.config.group
            || config.own_share != self.config.own_share
        {
            return Err(String::from(
                "policy, guarantee, cpus, group and own-share change with a restart only; tasks keep their reservations over it",
            ));
        }
        self.ledger.set_reserve(config.terms.reserve)?;
        self.kernel.standing.set_reserve(config.terms.reserve);
        self.ledger.set_limits(config.limits);
        self.config = config;
        Ok(())
    }
}

/// Figures of an agent that is gone would be taken for those of now.
impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(path) = &self.config.metrics {
            // There is none if none could be written.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn records(config: &Config, state: &StateFile) -> PathBuf {
    let beside = || state.path().with_file_name(RECORDS);
    config.record_folder.clone().unwrap_or_else(beside)
}
