//! The flight recorder: the records of the last seconds, and what they say of a miss.
//!
//! [`Recorder`] keeps records, [`Recording`] is what it kept at some instant, [`RecordingAnalysis`] what follows from that.
//! [`MissExplainer`] explains misses and keeps recordings of them in files, in a thread of its own: nothing of it may delay
//! an answer, and it must never touch the scheduler.

mod analysis;
mod checkpoint;
mod explainer;
mod folder;
mod incarnations;
mod recording;

use std::collections::{BTreeMap, VecDeque};

use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, JobId, Record, RecordKind, Span, Task, TaskId, TaskSet,
};
use shiftwork_trace::perfetto::{Absence, EndedTask, Loss, MissedJob, RecorderMetadata};

use crate::reservation::Reservation;
use crate::statistics::Miss;
pub use analysis::{MissReport, RecordingAnalysis};
use checkpoint::StateCheckpoint;
pub use explainer::MissExplainer;
pub use folder::{Folder, list};
use incarnations::{Incarnations, TaskIncarnation};
pub use recording::{Recording, RecordingError, RecordingHead, utc};

/// Upper bound of the records that are kept: about 40 MB.
const RECORDS_MAX: usize = 500_000;

/// A record takes about so many bytes of a trace, with what Perfetto shows of it.
const RECORD_BYTES: usize = 128;

/// A job that is not finished so long after its deadline is explained as far as it came.
const PATIENCE: Span = Span::from_s(1);

/// Interval between two explanations of one task: its misses mostly have one cause.
const EXPLAINED_EVERY: Span = Span::from_s(1);

/// How many tasks may wait for an explanation; later misses are only counted.
const WAITING_MAX: usize = 8;

/// A longer time between two polls is an absence. Otherwise the daemon polls at least every 50 ms.
const AWAY_MIN: Span = Span::from_ms(200);

/// Keeps records for some time. Tasks have the numbers of incarnations here.
#[derive(Debug)]
pub struct Recorder {
    span: Span,
    policy: String,
    cpus: CpuSet,
    checkpoint: StateCheckpoint,
    records: VecDeque<Record>,
    incarnations: Incarnations,
    /// On the monotonic clock.
    absences: VecDeque<Absence>,
    losses: VecDeque<Loss>,
    /// Misses to be explained.
    waiting: VecDeque<Waiting>,
    /// When a miss of this incarnation was explained last.
    explained: BTreeMap<TaskId, Instant>,
    /// How many events were lost until now.
    lost: u64,
    /// When the daemon polled last, and from when on all records are kept.
    polled: Instant,
    since: Instant,
}

/// A miss that is to be explained.
#[derive(Debug)]
struct Waiting {
    miss: Miss,
    /// The job has ended: there is nothing to wait for.
    is_over: bool,
}

impl Recorder {
    /// Keeps records for this long at most; `cpus` are the daemon's, which decides by `policy`.
    pub fn new(span: Span, cpus: CpuSet, policy: &str, now: Instant) -> Self {
        Self {
            span,
            policy: policy.to_owned(),
            cpus,
            checkpoint: StateCheckpoint::default(),
            records: VecDeque::new(),
            incarnations: Incarnations::default(),
            absences: VecDeque::new(),
            losses: VecDeque::new(),
            waiting: VecDeque::new(),
            explained: BTreeMap::new(),
            lost: 0,
            polled: now,
            since: now,
        }
    }

    /// The task of this user has this reservation from now on.
    pub fn know(&mut self, task: TaskId, name: &str, user: u32, reservation: &Reservation) {
        self.incarnations.know(task, name, user, reservation);
    }

    /// The incarnation that has this number now, by its own.
    pub fn incarnation_of(&self, task: TaskId) -> Option<TaskId> {
        let number = self.incarnations.of(task)?;
        Some(TaskId::from_index(number as usize))
    }

    /// The task's reservation has ended.
    pub fn forget(&mut self, task: TaskId, now: Instant) {
        let number = self.incarnations.of(task);
        let left = self.records.back().filter(|last| match last.kind {
            RecordKind::Left { task } => Some(task.index() as u32) == number,
            _ => false,
        });
        let gone = left.map_or(now, |left| left.at);
        self.incarnations.forget(task, gone.as_ns());
    }

    /// Takes a record; records come in the order of their instants.
    pub fn record(&mut self, record: &Record) {
        if self.span.is_zero() {
            return;
        }
        let Some(record) = self.incarnations.renumber(record) else {
            return;
        };
        if self.records.len() == RECORDS_MAX
            && let Some(old) = self.records.pop_front()
        {
            self.since = old.at;
            self.checkpoint.take(&old);
        }
        for waiting in &mut self.waiting {
            waiting.is_over |= ends(&record, &waiting.miss);
        }
        self.records.push_back(record);
    }

    /// The daemon polls now, and so many events were lost so far: drops what is older than the retention span.
    pub fn advance(&mut self, now: Instant, lost: u64) {
        let now_ns = now.as_ns();
        if now.late_since(self.polled) >= AWAY_MIN {
            self.absences.push_back(Absence {
                since_ns: self.polled.as_ns(),
                until_ns: now_ns,
            });
        }
        self.polled = now;
        if let Some(events) = lost.checked_sub(self.lost).filter(|&events| events > 0) {
            let loss = Loss {
                at_ns: now_ns,
                events,
            };
            self.losses.push_back(loss);
        }
        self.lost = lost;
        let oldest = Instant::from_ns(now_ns.saturating_sub(self.span.as_ns()));
        let oldest_ns = oldest.as_ns();
        self.since = self.since.max(oldest);
        let old = self.records.partition_point(|record| record.at < oldest);
        for record in self.records.drain(..old) {
            self.checkpoint.take(&record);
        }
        self.absences.retain(|it| it.until_ns >= oldest_ns);
        self.losses.retain(|it| it.at_ns >= oldest_ns);
        self.explained.retain(|_, at| *at + EXPLAINED_EVERY > now);
        if self.incarnations.expire(oldest_ns) {
            let known = self.incarnations.all();
            self.checkpoint
                .retain(|task| known.contains_key(&(task.index() as u32)));
        }
    }

    /// A deadline was missed.
    pub fn missed(&mut self, miss: &Miss) {
        let Some(number) = self.incarnations.of(miss.job.task) else {
            return;
        };
        if self.span.is_zero() {
            return;
        }
        let task = TaskId::from_index(number as usize);
        let job = JobId { task, ..miss.job };
        let miss = Miss { job, ..*miss };
        let waits = self.waiting.iter().any(|it| it.miss.job.task == task);
        if waits || self.waiting.len() == WAITING_MAX || self.explained.contains_key(&task) {
            return;
        }
        let since = self.records.iter().rev();
        let mut since = since.take_while(|record| record.at > miss.release);
        let is_over = since.any(|record| ends(record, &miss));
        self.waiting.push_back(Waiting { miss, is_over });
    }

    /// The next miss that is to be explained: one of a job that has ended, or has not for a second.
    pub fn take_missed(&mut self, now: Instant) -> Option<Miss> {
        let is_due = |it: &Waiting| it.is_over || now >= it.miss.due + PATIENCE;
        // How a job began that is over and too old is not known any more; there will be others.
        let since = self.since;
        self.waiting
            .retain(|it| !it.is_over || it.miss.release >= since);
        let index = self.waiting.iter().position(is_due)?;
        let Waiting { miss, .. } = self.waiting.remove(index)?;
        self.explained.insert(miss.job.task, now);
        Some(miss)
    }

    /// What is kept since then; at most about so many bytes of it, the newest. `unix_ns` is the instant on the wall clock,
    /// `missed` the job that it is kept for.
    ///
    /// # Cost
    /// O(n log n) for n records, some ten nanoseconds for each.
    pub fn recording(
        &self,
        since: Instant,
        bytes_max: usize,
        unix_ns: u64,
        missed: Option<JobId>,
    ) -> Recording {
        let mut first = self.records.partition_point(|record| record.at < since);
        let mut since = since.max(self.since);
        let newest = self.records.len().saturating_sub(bytes_max / RECORD_BYTES);
        if newest > first {
            since = since.max(self.records[newest - 1].at);
            first = newest;
        }
        let mut checkpoint = self.checkpoint.clone();
        for record in self.records.iter().take(first) {
            checkpoint.take(record);
        }
        let mut records = checkpoint.records();
        records.extend(self.records.iter().skip(first).cloned());
        let since = since.min(self.polled);
        let origin = origin(&records, since, self.polled);
        let tasks = present(&self.incarnations, &mut records);
        for record in &mut records {
            rebase(record, origin);
        }
        let cpus = self.cpus.iter().last().map_or(1, |cpu| cpu.index() + 1);
        let mut at_first: Vec<Record> = (CpuSet::first(cpus) - self.cpus)
            .iter()
            .map(|cpu| Record {
                at: Instant::ZERO,
                kind: RecordKind::CpuOffline { cpu },
            })
            .collect();
        at_first.extend(records);
        let set = tasks.iter().map(|(_, name, it)| self.task(name, it));
        let of_trace = |ns: u64| ns.saturating_sub(origin.as_ns());
        let index = |task: TaskId| tasks.iter().position(|(number, ..)| *number == task);
        let ended = tasks.iter().zip(0..).filter_map(|((_, _, it), task)| {
            let at_ns = of_trace(it.gone_ns?);
            Some(EndedTask { task, at_ns })
        });
        Recording {
            tool: format!("shiftworkd {}", env!("CARGO_PKG_VERSION")),
            policy: self.policy.clone(),
            set: TaskSet::new("daemon", cpus, set.collect()),
            users: tasks.iter().map(|(_, _, it)| it.user).collect(),
            records: at_first,
            until: Instant::from_ns(of_trace(self.polled.as_ns())),
            metadata: RecorderMetadata {
                origin_ns: origin.as_ns(),
                since_ns: of_trace(since.as_ns()),
                unix_ns,
                cpus: self.cpus.to_string(),
                missed: missed.and_then(|job| {
                    let task = index(job.task)?;
                    let (_, _, incarnation) = &tasks[task];
                    Some(MissedJob {
                        task: task as u32,
                        number: job.number,
                        cause: String::new(),
                        name: incarnation.name.clone(),
                    })
                }),
                absences: self
                    .absences
                    .iter()
                    .filter(|it| it.until_ns >= since.as_ns())
                    .map(|it| Absence {
                        since_ns: of_trace(it.since_ns),
                        until_ns: of_trace(it.until_ns),
                    })
                    .collect(),
                losses: self
                    .losses
                    .iter()
                    .filter(|it| it.at_ns >= since.as_ns())
                    .map(|it| Loss {
                        at_ns: of_trace(it.at_ns),
                        ..*it
                    })
                    .collect(),
                ended: ended.collect(),
                numbers: tasks.iter().map(|(_, _, it)| it.number).collect(),
            },
        }
    }

    fn task(&self, name: &str, of: &TaskIncarnation) -> Task {
        let it = &of.reservation;
        // A task that asked for CPUs that are not the daemon's is bound to none of them.
        let affinity = Affinity::new(it.cpus & self.cpus).or_else(|| Affinity::new(self.cpus));
        let affinity = affinity.expect("the daemon has a CPU");
        Task {
            deadline: it.deadline,
            arrival: Arrival::Sporadic,
            priority: Some(it.priority),
            ..Task::periodic(name, it.cost, it.period, affinity)
        }
    }
}

/// Whether the missed job ends by this.
fn ends(record: &Record, miss: &Miss) -> bool {
    match record.kind {
        RecordKind::Completed { job } => job == miss.job,
        RecordKind::Left { task } => task == miss.job.task && record.at > miss.release,
        _ => false,
    }
}

/// Jobs that are pending at the beginning are shown from their releases on, but for at most as long as the recording is.
fn origin(records: &[Record], since: Instant, until: Instant) -> Instant {
    let is_release = |record: &&Record| matches!(record.kind, RecordKind::Released { .. });
    let first = records.iter().find(is_release);
    let span = until.late_since(since).max(Span::from_s(1));
    let earliest = Instant::from_ns(since.as_ns().saturating_sub(span.as_ns()));
    first
        .map_or(since, |record| record.at.min(since))
        .max(earliest)
}

/// The tasks that are there or appear in a record, with their names; the records are about these from now on. Tasks that
/// share a name have their numbers behind it.
fn present<'a>(
    incarnations: &'a Incarnations,
    records: &mut Vec<Record>,
) -> Vec<(TaskId, String, &'a TaskIncarnation)> {
    let all = incarnations.all();
    let number = |task: TaskId| task.index() as u32;
    records.retain_mut(|record| {
        let mut tasks = record.kind.tasks_mut().into_iter().flatten();
        tasks.all(|task| all.contains_key(&number(*task)))
    });
    let mut index: BTreeMap<u32, TaskId> = BTreeMap::new();
    for (&number, it) in all {
        if it.gone_ns.is_none() {
            index.insert(number, TaskId::LAST);
        }
    }
    for record in records.iter_mut() {
        for task in record.kind.tasks_mut().into_iter().flatten() {
            index.insert(number(*task), TaskId::LAST);
        }
    }
    for (place, task) in index.values_mut().enumerate() {
        *task = TaskId::from_index(place);
    }
    for record in records {
        for task in record.kind.tasks_mut().into_iter().flatten() {
            *task = index[&number(*task)];
        }
    }
    let named = |&number: &u32| {
        let it = &all[&number];
        let alike = index.keys().filter(|other| all[other].name == it.name);
        let name = match alike.count() {
            1 => it.name.clone(),
            _ => format!("{}#{number}", it.name),
        };
        (TaskId::from_index(number as usize), name, it)
    };
    index.keys().map(named).collect()
}

/// Counts the record's instants from this one.
fn rebase(record: &mut Record, origin: Instant) {
    let from_origin = |at: Instant| Instant::from_ns(at.as_ns().saturating_sub(origin.as_ns()));
    record.at = from_origin(record.at);
    if let Some(deadline) = record.kind.deadline_mut() {
        *deadline = from_origin(*deadline);
    }
}

#[cfg(test)]
mod tests;
