//! JSON of an explanation.

use serde_json::{Map, Value, json};
use shiftwork_model::{CpuSet, Span, TaskId};

use super::timeline::{Occupant, Slice};
use super::{Cause, Culprit, End, Explanation, Part, Share};

/// A name, and the other task that it concerns, if any.
type Named = (&'static str, Option<TaskId>);

const fn part(part: Part) -> Named {
    match part {
        Part::CarryIn => ("carry-in", None),
        Part::Executing => ("executing", None),
        Part::OwnOverrun => ("own-overrun", None),
        Part::Interrupted => ("interrupted", None),
        Part::Throttled => ("throttled", None),
        Part::Suspended => ("suspended", None),
        Part::Blocked(task) => ("blocked", task),
        Part::Spinning(task) => ("spinning", task),
        Part::Stalled => ("stalled", None),
        Part::HeldBack => ("held-back", None),
        Part::Taken => ("cpu-taken", None),
        Part::Offline => ("cpu-offline", None),
        Part::Background => ("background", None),
        Part::Overrun(task) => ("overrun", Some(task)),
        Part::MoreUrgent(task) => ("more-urgent", Some(task)),
    }
}

const fn culprit(culprit: Culprit) -> Named {
    match culprit {
        Culprit::TaskLeft => ("task-left", None),
        Culprit::CpuOffline => ("cpu-offline", None),
        Culprit::CpuTaken => ("cpu-taken", None),
        Culprit::Stall => ("stall", None),
        Culprit::Interrupts => ("interrupts", None),
        Culprit::OwnOverrun => ("own-overrun", None),
        Culprit::Overrun(task) => ("overrun", Some(task)),
        Culprit::Reserve => ("reserve", None),
        Culprit::NoShift => ("no-shift", None),
        Culprit::NarrowAffinity => ("narrow-affinity", None),
        Culprit::NarrowPacking => ("narrow-packing", None),
        Culprit::Rule => ("rule", None),
        Culprit::Overload => ("overload", None),
        Culprit::Suspension => ("suspension", None),
        Culprit::Mutex(task) => ("mutex", task),
    }
}

impl Explanation {
    /// As one JSON object; `names` are those of the tasks, by their index. Times are whole nanoseconds.
    ///
    /// The times of `parts` add up to `until_ns` - `release_ns`. `cause` is a list: one entry if one culprit
    /// suffices, several if only all of them do, none if the job's own demand is too high.
    pub fn to_json(&self, names: &[&str]) -> Value {
        let mut value = json!({
            "task": names.get(self.job.task.index()),
            "job": self.job.number,
            "release_ns": self.release.as_ns(),
            "deadline_ns": self.deadline.as_ns(),
            "until_ns": self.until.as_ns(),
            "end": match self.end {
                End::Finished => "finished",
                End::Dropped => "dropped",
                End::Unfinished => "unfinished",
            },
            "tardiness_ns": self.tardiness().as_ns(),
            "remaining_ns": self.remaining.as_ns(),
            "since_ns": self.since.as_ns(),
            "cause": cause(&self.cause, names),
            "parts": parts(&self.parts, names),
            "culprits": shares(&self.shares, names),
            "text": self.paragraph(names),
            "timeline": self.timeline.iter().map(|it| slice(it, names)).collect::<Vec<_>>(),
        });
        if !self.mutexes.is_empty() {
            let waits = self.mutexes.iter().map(|wait| wait.to_json(names));
            value["mutexes"] = waits.collect();
        }
        if let Some(origin) = &self.origin {
            value["trigger"] = origin.to_json(names);
        }
        value
    }
}

fn named((kind, task): Named, names: &[&str]) -> Map<String, Value> {
    let mut value = Map::new();
    value.insert("kind".into(), kind.into());
    if let Some(task) = task {
        value.insert("task".into(), names.get(task.index()).copied().into());
    }
    value
}

pub(super) fn parts(parts: &[(Part, Span)], names: &[&str]) -> Vec<Map<String, Value>> {
    let parts = parts.iter().map(|&(it, time)| {
        let mut value = named(part(it), names);
        value.insert("time_ns".into(), time.as_ns().into());
        value
    });
    parts.collect()
}

pub(super) fn shares(shares: &[Share], names: &[&str]) -> Vec<Map<String, Value>> {
    let shares = shares.iter().map(|share| {
        let mut value = named(culprit(share.culprit), names);
        value.insert("time_ns".into(), share.time.as_ns().into());
        value.insert("suffices".into(), share.suffices.into());
        if !share.cpus.is_empty() {
            value.insert("cpus".into(), list(&share.cpus));
        }
        value
    });
    shares.collect()
}

pub(super) fn cause(cause: &Cause, names: &[&str]) -> Vec<Map<String, Value>> {
    let all = match cause {
        Cause::One(it) => std::slice::from_ref(it),
        Cause::Several(all) => all,
        Cause::OwnDemand => &[],
    };
    all.iter().map(|&it| named(culprit(it), names)).collect()
}

fn slice(slice: &Slice, names: &[&str]) -> Value {
    let mut value = json!({
        "cpu": slice.cpu.index(),
        "from_ns": slice.from.as_ns(),
        "to_ns": slice.to.as_ns(),
        "state": match slice.occupant {
            Occupant::Idle => "idle",
            Occupant::Job(_) => "job",
            Occupant::Offline => "offline",
            Occupant::Taken => "taken",
            Occupant::Background => "background",
        },
    });
    if let Occupant::Job(job) = slice.occupant {
        value["task"] = names.get(job.task.index()).copied().into();
        value["job"] = job.number.into();
    }
    if let Some(from) = slice.shifted_from {
        value["shifted_from"] = from.index().into();
    }
    value
}

fn list(cpus: &CpuSet) -> Value {
    cpus.iter().map(|cpu| cpu.index()).collect()
}
