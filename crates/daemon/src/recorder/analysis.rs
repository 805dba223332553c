//! A recording as a run: what happened in it, who was late, and why.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shiftwork_analysis::admission::{Order, Terms as Admission};
use shiftwork_model::{
    Affinity, Arrival, CpuSet, Happening, Instant, JobId, Record, Share, Span, Task, TaskSet,
};
use shiftwork_trace::check::{Invariant, Order as ByWhat, PolicyContract};
use shiftwork_trace::explain::{Cause, Culprit, Explanation, explain, first_misses, readable_at};

use super::story::Story;
use super::{Missed, Own, Recording};

/// What a recording tells, in the words of a run. Its instants count from [`Tale::origin_ns`].
#[derive(Debug)]
pub struct Tale {
    /// The tasks, on the machine's CPUs.
    pub set: TaskSet,
    /// What happened.
    pub records: Vec<Record>,
    /// The end of what is known.
    pub until: Instant,
    /// The first instant, of the monotonic clock in ns.
    pub origin_ns: u64,
    /// From here on everything is known.
    since: Instant,
    promises: PolicyContract,
    jobs: BTreeMap<(u32, u64), JobId>,
    losses: Vec<Loss>,
    own: Vec<Own>,
}

/// A job that was under way when its task's reservation was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub job: JobId,
    pub at: Instant,
    pub why: Why,
}

/// Why a task has no reservation any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Its thread has ended, or its owner gave the reservation back.
    Gone,
    /// The thread asked for these CPUs.
    Asked(CpuSet),
    /// These CPUs were offline, and not all had room on the others.
    Offline(CpuSet),
    /// The agent took it back.
    Dismissed,
}

/// What led to one miss.
#[derive(Debug)]
pub struct Told {
    /// Where its time went.
    pub explanation: Explanation,
    /// What records do not tell, as sentences.
    pub notes: Vec<String>,
    names: Vec<String>,
    loss: Option<Why>,
}

impl Tale {
    /// Reads the recording.
    ///
    /// # Cost
    /// O(n log n) for n facts; half a microsecond for each.
    pub fn of(recording: &Recording) -> Self {
        let lives: Vec<u32> = present(recording).into_iter().collect();
        let tasks = lives.iter().filter_map(|&life| task(recording, life));
        let set = TaskSet::new("agent", recording.cpu_count(), tasks.collect());
        let origin_ns = origin(recording);
        let story = Story::of(recording, &lives, origin_ns);
        Self {
            set,
            until: Instant::from_ns(recording.until_ns.saturating_sub(origin_ns)),
            since: Instant::from_ns(recording.since_ns.saturating_sub(origin_ns)),
            origin_ns,
            promises: promises(&recording.policy),
            records: story.records,
            jobs: story.jobs,
            losses: story.losses,
            own: recording.own.clone(),
        }
    }

    /// The job that was missed; `None` if its beginning is not recorded.
    pub fn job(&self, missed: &Missed) -> Option<JobId> {
        self.jobs.get(&(missed.life, missed.began_ns)).copied()
    }

    /// All jobs that were late, by their deadlines, but for those that began before everything was known.
    pub fn late(&self) -> Vec<JobId> {
        let mut late = first_misses(&self.set, &self.records, self.until, usize::MAX);
        let before = |at: &&Record| at.at < self.since;
        let early: BTreeSet<JobId> = self
            .records
            .iter()
            .take_while(before)
            .filter_map(|record| match record.what {
                Happening::Released { job, .. } => Some(job),
                _ => None,
            })
            .collect();
        late.retain(|job| !early.contains(job));
        late
    }

    /// Why this job was late; `None` if it was not.
    pub fn explain(&self, job: JobId) -> Option<Told> {
        let explained = explain(&self.set, &self.promises, &self.records, job, self.until);
        let explanation = explained.ok()?;
        let mut losses = self.losses.iter();
        let loss = losses.find(|loss| loss.job == job);
        let mut notes: Vec<String> = loss.map(|loss| loss.note()).into_iter().collect();
        let own = self.own.iter();
        notes.extend(own.filter_map(|own| self.note(own, &explanation)));
        if explanation.since < self.since {
            notes.push(format!(
                "It began before the record does: who ran until {} is not known, and is shown as idle.",
                readable_at(self.since)
            ));
        }
        Some(Told {
            notes,
            names: self
                .set
                .tasks
                .iter()
                .map(|task| task.name.clone())
                .collect(),
            loss: loss.map(|loss| loss.why),
            explanation,
        })
    }

    /// What the agent tells of itself that matters here.
    fn note(&self, own: &Own, of: &Explanation) -> Option<String> {
        let instant = |ns: u64| Instant::from_ns(ns.saturating_sub(self.origin_ns));
        match *own {
            Own::Away { since_ns, until_ns } => {
                let (since, until) = (instant(since_ns), instant(until_ns));
                (since < of.until && until > of.since).then(|| {
                    let (since, until) = (readable_at(since), readable_at(until));
                    format!(
                        "The agent was away from {since} to {until}, stopped or without a CPU: the kernel went on \
                         scheduling, but meanwhile nobody was admitted, demoted or given back a reservation."
                    )
                })
            }
            // They may have been told before the job began, or of it.
            Own::Lost { facts, .. } => Some(format!(
                "{facts} facts were lost: the agent took them too late, and what is said here may be wrong."
            )),
        }
    }
}

impl Loss {
    fn note(&self) -> String {
        let at = readable_at(self.at);
        match self.why {
            Why::Gone => {
                format!("Its reservation ended at {at}: its thread did, or its owner gave it back.")
            }
            Why::Asked(cpus) => format!(
                "It lost its reservation at {at}: it asked for CPUs {cpus}, which it was not admitted for, and went on \
                 in the background."
            ),
            Why::Offline(cpus) => format!(
                "It lost its reservation at {at}: CPU {cpus} was offline, on the others it had no room, and it went on \
                 in the background."
            ),
            Why::Dismissed => {
                format!("It lost its reservation at {at}, and went on in the background.")
            }
        }
    }
}

impl Told {
    /// The cause in a few words: `overrun of hog`.
    pub fn cause(&self) -> String {
        let left = self.explanation.cause == Cause::One(Culprit::TaskLeft);
        match self.loss.filter(|_| left) {
            Some(Why::Asked(cpus)) => {
                format!("it lost its reservation, since it asked for CPUs {cpus}")
            }
            Some(Why::Offline(cpus)) => {
                format!("it lost its reservation, since CPU {cpus} was offline")
            }
            Some(Why::Dismissed) => "it lost its reservation".to_owned(),
            Some(Why::Gone) | None => self.explanation.cause_name(&self.names()),
        }
    }

    /// In words: the cause, where the time went, notes, and who had which CPU. Ends with a line feed.
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

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

/// What the agent's policies keep, as checkers judge it: strong affinities, by deadlines or priorities.
fn promises(policy: &str) -> PolicyContract {
    let admission = Admission::of_policy(policy, Share::DEFAULT_RESERVE);
    PolicyContract {
        invariant: Invariant::Strong,
        order: match admission.map(|terms| terms.order) {
            Some(Order::FixedPriority) => ByWhat::FixedPriority,
            Some(Order::Edf) | None => ByWhat::Edf,
        },
        packing: None,
        immediate: false,
    }
}

/// Who is there, or appears in a fact.
fn present(recording: &Recording) -> BTreeSet<u32> {
    let there = recording
        .lives
        .iter()
        .filter(|(_, it)| it.gone_ns.is_none());
    let told = recording.facts.iter().filter_map(|noted| noted.life);
    let told = told.filter(|life| recording.lives.contains_key(life));
    there.map(|(&life, _)| life).chain(told).collect()
}

fn task(recording: &Recording, life: u32) -> Option<Task> {
    let terms = recording.lives.get(&life)?.terms.first()?;
    // A reservation has CPUs, and one that asked for none of the agent's is bound to nobody's.
    let affinity = Affinity::new(terms.cpus & recording.cpus);
    let affinity = affinity.or_else(|| Affinity::new(recording.cpus))?;
    Some(Task {
        deadline: terms.deadline,
        arrival: Arrival::Sporadic,
        priority: Some(terms.priority),
        ..Task::periodic(&recording.name(life), terms.cost, terms.period, affinity)
    })
}

/// Jobs that are under way at the beginning of the record are shown from theirs on, but for at most as long as the
/// record is.
fn origin(recording: &Recording) -> u64 {
    let span = recording.until_ns.saturating_sub(recording.since_ns);
    let first = recording.facts.iter().find(|noted| {
        use shiftwork_live::standing::FactKind::{Ready, Woken};
        matches!(noted.fact.what, Woken | Ready { .. })
    });
    let began_ns = first.map_or(recording.since_ns, |noted| noted.fact.at_ns);
    began_ns.min(recording.since_ns).max(
        recording
            .since_ns
            .saturating_sub(span.max(Span::from_s(1).as_ns())),
    )
}
