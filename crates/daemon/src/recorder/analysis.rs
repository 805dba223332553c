//! What follows from a recording: which jobs missed their deadlines, and why.

use std::collections::BTreeSet;

use serde_json::Value;
use shiftwork_model::{CpuSet, Instant, JobId, Record, RecordKind};
use shiftwork_policy::registry;
use shiftwork_policy::registry::traits::STRONG;
use shiftwork_trace::JobTracker;
use shiftwork_trace::check::PolicyContract;
use shiftwork_trace::explain::{Cause, Culprit, Explanation, explain, first_misses, readable_at};

use super::Recording;
use crate::reservation::OTHER;

/// What follows from a recording.
#[derive(Debug)]
pub struct RecordingAnalysis<'a> {
    recording: &'a Recording,
    promises: PolicyContract,
    losses: Vec<Loss>,
}

/// A job that was pending when its task lost its reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loss {
    job: JobId,
    at: Instant,
    reason: LossReason,
}

/// Why a task has no reservation any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossReason {
    /// Its thread has ended, or its owner gave the reservation back.
    Gone,
    /// The thread asked for these CPUs.
    Asked(CpuSet),
    /// These CPUs were offline, and not all had room on the others.
    Offline(CpuSet),
    /// The daemon took it back.
    Dismissed,
}

/// What led to one miss.
#[derive(Debug)]
pub struct MissReport {
    /// Where its time went.
    pub explanation: Explanation,
    /// Facts that records do not contain, as sentences.
    pub notes: Vec<String>,
    names: Vec<String>,
    loss: Option<LossReason>,
}

impl<'a> RecordingAnalysis<'a> {
    /// Analyses the recording.
    ///
    /// # Cost
    /// O(n) for n records, some nanoseconds for each.
    pub fn new(recording: &'a Recording) -> Self {
        Self {
            recording,
            promises: promises(&recording.policy),
            losses: losses(recording),
        }
    }

    /// All jobs that were late, by their deadlines, but for those that began before everything was known.
    pub fn late(&self) -> Vec<JobId> {
        let it = self.recording;
        let mut late = first_misses(&it.set, &it.records, it.until, usize::MAX);
        let before = |at: &&Record| at.at < it.since();
        let early: BTreeSet<JobId> = it
            .records
            .iter()
            .take_while(before)
            .filter_map(|record| match record.kind {
                RecordKind::Released { job, .. } => Some(job),
                _ => None,
            })
            .collect();
        late.retain(|job| !early.contains(job));
        late
    }

    /// Why this job was late; `None` if it was not.
    pub fn explain(&self, job: JobId) -> Option<MissReport> {
        let it = self.recording;
        let explained = explain(&it.set, &self.promises, &it.records, job, it.until);
        let explanation = explained.ok()?;
        let mut losses = self.losses.iter();
        let loss = losses.find(|loss| loss.job == job);
        let mut notes: Vec<String> = loss.map(|loss| loss.note()).into_iter().collect();
        notes.extend(self.notes(&explanation));
        Some(MissReport {
            notes,
            names: it.set.tasks.iter().map(|task| task.name.clone()).collect(),
            loss: loss.map(|loss| loss.reason),
            explanation,
        })
    }

    /// What the recorder knows of itself that matters here.
    fn notes(&self, of: &Explanation) -> Vec<String> {
        let metadata = &self.recording.metadata;
        let at = Instant::from_ns;
        let absences = metadata.absences.iter();
        let absences =
            absences.filter(|it| at(it.since_ns) < of.until && at(it.until_ns) > of.since);
        let mut notes: Vec<String> = absences
            .map(|it| {
                let (since, until) = (readable_at(at(it.since_ns)), readable_at(at(it.until_ns)));
                format!(
                    "The daemon did not run from {since} to {until}, stopped or without a CPU: the kernel went on \
                     scheduling, but meanwhile no task was admitted, demoted or given back its reservation."
                )
            })
            .collect();
        // They may have been lost before the job began, or about it.
        notes.extend(metadata.losses.iter().map(|it| {
            format!(
                "{} events were lost: the daemon took them too late, and what is said here may be wrong.",
                it.events
            )
        }));
        let since = self.recording.since();
        if of.since < since {
            notes.push(format!(
                "It began before the recording does: what ran until {} is not known, and is shown as idle.",
                readable_at(since)
            ));
        }
        notes
    }
}

impl Loss {
    fn note(&self) -> String {
        let at = readable_at(self.at);
        match self.reason {
            LossReason::Gone => {
                format!("Its reservation ended at {at}: its thread did, or its owner gave it back.")
            }
            LossReason::Asked(cpus) => format!(
                "It lost its reservation at {at}: it asked for CPUs {cpus}, which it was not admitted for, and went on \
                 in the background."
            ),
            LossReason::Offline(cpus) => format!(
                "It lost its reservation at {at}: CPU {cpus} was offline, on the others it had no room, and it went on \
                 in the background."
            ),
            LossReason::Dismissed => {
                format!("It lost its reservation at {at}, and went on in the background.")
            }
        }
    }
}

impl MissReport {
    /// The cause in a few words: `overrun of hog`.
    pub fn cause(&self) -> String {
        let left = self.explanation.cause == Cause::One(Culprit::TaskLeft);
        match self.loss.filter(|_| left) {
            Some(LossReason::Asked(cpus)) => {
                format!("it lost its reservation, since it asked for CPUs {cpus}")
            }
            Some(LossReason::Offline(cpus)) => {
                format!("it lost its reservation, since CPU {cpus} was offline")
            }
            Some(LossReason::Dismissed) => "it lost its reservation".to_owned(),
            Some(LossReason::Gone) | None => self.explanation.cause_name(&self.names()),
        }
    }

    /// As text: the cause, where the time went, notes, and which task had which CPU. Ends with a
    /// line feed.
    pub fn text(&self) -> String {
        let names = self.names();
        let it = &self.explanation;
        let mut text = format!(
            "{} missed its deadline; cause: {}\n  {}\n",
            it.job_name(&names),
            self.cause(),
            it.paragraph(&names)
        );
        for note in &self.notes {
            text.push_str(&format!("  {note}\n"));
        }
        text + &it.timeline_text(&names)
    }

    /// As one JSON object: that of [`Explanation::to_json`], and `notes`.
    pub fn to_json(&self) -> Value {
        let mut value = self.explanation.to_json(&self.names());
        value["notes"] = self.notes.clone().into();
        value
    }

    /// The job: `job 3 of imu`.
    pub fn job_name(&self) -> String {
        self.explanation.job_name(&self.names())
    }

    /// The same without the names of tasks of other users than this one; `users` has that of each task.
    pub fn for_user(mut self, user: u32, users: &[u32]) -> Self {
        for (name, _) in self
            .names
            .iter_mut()
            .zip(users)
            .filter(|(_, it)| **it != user)
        {
            OTHER.clone_into(name);
        }
        self
    }

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

/// What the policy keeps, as checkers judge it; those of the daemon keep the strong invariant.
fn promises(policy: &str) -> PolicyContract {
    let traits = registry::find(policy).map_or(STRONG, |entry| entry.traits);
    PolicyContract {
        immediate: false,
        ..PolicyContract::of(&traits, None)
    }
}

/// The jobs that were pending when their tasks lost their reservations.
fn losses(recording: &Recording) -> Vec<Loss> {
    let cpus = recording.metadata.cpu_set();
    let mut tracker = JobTracker::default();
    let (mut offline, mut demoted) = (CpuSet::EMPTY, None);
    let mut losses = Vec::new();
    for record in &recording.records {
        let ended = tracker.take(record.at, &record.kind);
        match record.kind {
            RecordKind::CpuOffline { cpu } if cpus.contains(cpu) => offline.insert(cpu),
            RecordKind::CpuOnline { cpu } => offline.remove(cpu),
            RecordKind::Demoted { task, ref asked } => demoted = Some((task, **asked)),
            RecordKind::Left { task } => {
                let asked = demoted.take().filter(|(demoted, _)| *demoted == task);
                let is_gone = recording.metadata.has_ended(task, record.at);
                let reason = match asked {
                    Some((_, asked)) => LossReason::Asked(asked),
                    None if is_gone => LossReason::Gone,
                    None if !offline.is_empty() => LossReason::Offline(offline),
                    None => LossReason::Dismissed,
                };
                losses.extend(ended.map(|job| Loss {
                    job: JobId {
                        task,
                        number: job.number,
                    },
                    at: record.at,
                    reason,
                }));
            }
            _ => {}
        }
    }
    losses
}
