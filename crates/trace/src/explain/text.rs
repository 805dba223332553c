//! Text of an explanation: a paragraph, and the occupants of CPUs.

use shiftwork_model::{CpuSet, Instant, Span, TaskId};

use super::attribution::named;
use super::timeline::{Occupant, Slice};
use super::{Cause, Culprit, End, Explanation, MutexWait, Part};

/// Maximum number of stretches of each CPU in the text, the last ones; the JSON has all.
const SLICES_MAX: usize = 12;

/// A span as text, rounded to microseconds if it is long. The JSON has nanoseconds.
pub fn readable(time: Span) -> String {
    let ns = time.as_ns();
    if ns < 10_000 || ns.is_multiple_of(1_000_000) {
        return time.to_string();
    }
    let us = ns / 1_000 + u64::from(ns % 1_000 >= 500);
    Span::from_us(us).to_string()
}

/// The same for an instant, relative to the begin of the records.
pub fn readable_at(at: Instant) -> String {
    readable(at.late_since(Instant::ZERO))
}

impl Explanation {
    /// The events as a paragraph; `names` are those of the tasks, by their index.
    pub fn paragraph(&self, names: &[&str]) -> String {
        let job = named(names, self.job);
        let late = readable(self.tardiness());
        let until = readable_at(self.until);
        let ended = match self.end {
            End::Finished => format!("finished at {until}, {late} late"),
            End::Dropped => format!("was dropped at {until} when its task left"),
            End::Unfinished => format!(
                "was not finished at {until}, {late} after that, with {} to go",
                readable(self.remaining)
            ),
        };
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|&(part, time)| format!("{} {}", readable(time), part_text(names, part)))
            .collect();
        let went = match parts.is_empty() {
            true => String::new(),
            false => format!(
                " Of the {} from its release it spent {}.",
                readable(self.until.late_since(self.release)),
                parts.join(", ")
            ),
        };
        let mutexes: String = self
            .mutexes
            .iter()
            .map(|wait| format!(" {}", wait.sentence(names, &readable)))
            .collect();
        let origin = self.origin.filter(|origin| origin.is_late());
        let origin = origin.map_or_else(String::new, |origin| origin.text(names));
        format!(
            "{job}, released at {} and due at {}, {ended}.{origin}{went}{mutexes} {}",
            readable_at(self.release),
            readable_at(self.deadline),
            self.verdict(names, &readable)
        )
    }

    /// The cause as a heading: `overrun of hog`.
    pub fn cause_name(&self, names: &[&str]) -> String {
        let name = |culprit: &Culprit| culprit_name(names, *culprit);
        match &self.cause {
            Cause::One(culprit) => name(culprit),
            Cause::Several(all) => all.iter().map(name).collect::<Vec<_>>().join(" and "),
            Cause::OwnDemand => "its own cost".into(),
        }
    }

    /// The name of the job in texts: `job 3 of imu`.
    pub fn job_name(&self, names: &[&str]) -> String {
        named(names, self.job)
    }

    /// The cause, the paragraph, and the timeline; ends with a line feed.
    pub fn text(&self, names: &[&str]) -> String {
        format!(
            "{} missed its deadline; cause: {}\n  {}\n{}",
            self.job_name(names),
            self.cause_name(names),
            self.paragraph(names),
            self.timeline_text(names)
        )
    }

    /// The occupants of CPUs, the last stretches of each; a line for each, with a line feed at its end.
    pub fn timeline_text(&self, names: &[&str]) -> String {
        let mut text = String::new();
        for of_cpu in self.timeline.chunk_by(|a, b| a.cpu == b.cpu) {
            let hidden = of_cpu.len().saturating_sub(SLICES_MAX);
            text.push_str(&format!("  CPU {}:\n", of_cpu[0].cpu));
            if hidden > 0 {
                text.push_str(&format!("    ({hidden} earlier stretches)\n"));
            }
            for slice in &of_cpu[hidden..] {
                text.push_str(&format!("    {}\n", slice_text(names, slice)));
            }
        }
        text
    }

    /// The cause in a sentence, with spans formatted by `time`.
    pub fn verdict(&self, names: &[&str], time: &dyn Fn(Span) -> String) -> String {
        self.verdict_on(names, time, "it would have met its deadline")
    }

    /// The same, where without the cause would have been what `otherwise` says.
    pub(super) fn verdict_on(
        &self,
        names: &[&str],
        time: &dyn Fn(Span) -> String,
        otherwise: &str,
    ) -> String {
        let describe = |culprit: &Culprit| {
            let share = self.share(*culprit);
            share.map_or_else(String::new, |share| {
                let at = match share.cpus.len() {
                    0 => String::new(),
                    1 => format!(" (CPU {})", share.cpus),
                    _ => format!(" (CPUs {})", share.cpus),
                };
                let lost = time(share.time);
                format!("{lost} {}{at}", culprit_text(names, *culprit))
            })
        };
        let since = if self.since < self.release {
            format!(
                ", counted from {}, when the row of late jobs began",
                time(self.since.late_since(Instant::ZERO))
            )
        } else {
            String::new()
        };
        match &self.cause {
            Cause::One(Culprit::TaskLeft) => "It was given up, since its task left.".into(),
            Cause::One(culprit) => {
                format!("Without {} {otherwise}{since}.", describe(culprit))
            }
            Cause::Several(all) => format!(
                "Nothing alone is enough: only without {} {otherwise}{since}.",
                all.iter().map(describe).collect::<Vec<_>>().join(" and ")
            ),
            Cause::OwnDemand => "Its own execution, within its cost, is longer than its deadline \
                                 allows."
                .into(),
        }
    }
}

/// More tasks are too many for a sentence.
const NAMED_MAX: usize = 4;

impl MutexWait {
    /// A sentence, with spans formatted by `time`.
    pub fn sentence(&self, names: &[&str], time: &dyn Fn(Span) -> String) -> String {
        let (mutex, holder) = (&self.mutex, task(names, self.holder));
        let waited = format!(
            "It waited {} for the mutex {mutex}, which {holder} held",
            time(self.time)
        );
        if self.without_cpu.is_zero() {
            return format!("{waited}.");
        }
        let lost = match self.without_cpu == self.time {
            true => "had no CPU".to_owned(),
            false => format!("had no CPU for {} of that", time(self.without_cpu)),
        };
        let named = self.instead.iter().take(NAMED_MAX);
        let mut executed: Vec<String> = named
            .map(|&(other, span)| format!("{} ({})", task(names, other), time(span)))
            .collect();
        match self.instead.len().saturating_sub(NAMED_MAX) {
            0 => {}
            more => executed.push(format!("{more} more")),
        }
        let last = executed.pop();
        let executed = match (executed.is_empty(), last) {
            (_, None) => return format!("{waited}; {holder} {lost}."),
            (true, Some(only)) => only,
            (false, Some(last)) => format!("{} and {last}", executed.join(", ")),
        };
        format!("{waited}; {holder} {lost}, while {executed} executed instead.")
    }
}

fn task(names: &[&str], task: TaskId) -> String {
    names.get(task.index()).copied().unwrap_or("?").to_owned()
}

pub(super) fn part_text(names: &[&str], part: Part) -> String {
    match part {
        Part::CarryIn => "behind earlier jobs of its own task".into(),
        Part::Executing => "executing".into(),
        Part::OwnOverrun => "executing beyond its cost".into(),
        Part::Interrupted => "on a CPU that interrupts or scheduling had".into(),
        Part::Throttled => "out of budget".into(),
        Part::Suspended => "suspended by itself".into(),
        Part::Blocked(None) => "waiting for a mutex".into(),
        Part::Spinning(None) => "spinning for a mutex".into(),
        Part::Spinning(Some(other)) => format!("spinning for a mutex of {}", task(names, other)),
        Part::Blocked(Some(other)) => format!("waiting for a mutex of {}", task(names, other)),
        Part::Stalled => "waiting though it should have run".into(),
        Part::HeldBack => "waiting as the policy's rule has it".into(),
        Part::Taken => "waiting while a CPU was taken by a higher scheduling class".into(),
        Part::Offline => "waiting while a CPU was offline".into(),
        Part::Background => "waiting while a CPU was given to background work".into(),
        Part::Overrun(other) => format!("waiting for {} beyond its cost", task(names, other)),
        Part::MoreUrgent(other) => format!("waiting for the more urgent {}", task(names, other)),
    }
}

/// The short name of the cause.
fn culprit_name(names: &[&str], culprit: Culprit) -> String {
    match culprit {
        Culprit::TaskLeft => "its task left".into(),
        Culprit::CpuOffline => "CPU went offline".into(),
        Culprit::CpuTaken => "CPU taken by a higher class".into(),
        Culprit::Stall => "scheduler stall".into(),
        Culprit::Interrupts => "interrupts".into(),
        Culprit::OwnOverrun => "own overrun".into(),
        Culprit::Overrun(other) => format!("overrun of {}", task(names, other)),
        Culprit::Reserve => "background reserve".into(),
        Culprit::NoShift => "no shift".into(),
        Culprit::NarrowAffinity => "affinity too narrow".into(),
        Culprit::NarrowPacking => "packing too narrow".into(),
        Culprit::Rule => "the policy's rule".into(),
        Culprit::Overload => "overload".into(),
        Culprit::Suspension => "its own suspensions".into(),
        Culprit::Mutex(None) => "a mutex".into(),
        Culprit::Mutex(Some(other)) => format!("a mutex of {}", task(names, other)),
    }
}

/// The phrase for the culprit that follows `without 3ms`.
fn culprit_text(names: &[&str], culprit: Culprit) -> String {
    match culprit {
        Culprit::TaskLeft => "of absence".into(),
        Culprit::CpuOffline => "in which a CPU was offline".into(),
        Culprit::CpuTaken => "in which a higher scheduling class had a CPU".into(),
        Culprit::Stall => "in which nothing was decided or carried out for it".into(),
        Culprit::Interrupts => "of interrupts and scheduling".into(),
        Culprit::OwnOverrun => "in which its task overran its own cost or was out of budget".into(),
        Culprit::Overrun(other) => format!("of overrun of {}", task(names, other)),
        Culprit::Reserve => "in which background work had its reserve".into(),
        Culprit::NoShift => {
            "in which moving more urgent jobs to other CPUs, which the policy does not do, would have made room"
                .into()
        }
        Culprit::NarrowAffinity => {
            "in which CPUs outside of its affinity were idle or less urgently used".into()
        }
        Culprit::NarrowPacking => {
            "in which CPUs of its affinity, but not of its partition, were idle or less urgently used"
                .into()
        }
        Culprit::Rule => "in which the policy's rule let others go on or CPUs be idle".into(),
        Culprit::Overload => "of more urgent work, all of it within its costs,".into(),
        Culprit::Suspension => "of its own suspensions".into(),
        Culprit::Mutex(None) => "of waiting for a mutex".into(),
        Culprit::Mutex(Some(other)) => {
            format!("of waiting for a mutex of {}", task(names, other))
        }
    }
}

fn slice_text(names: &[&str], slice: &Slice) -> String {
    let occupant = match slice.occupant {
        Occupant::Idle => "idle".into(),
        Occupant::Job(job) => named(names, job),
        Occupant::Offline => "offline".into(),
        Occupant::Taken => "taken by a higher scheduling class".into(),
        Occupant::Background => "background work".into(),
    };
    let shift = slice.shifted_from.map_or_else(String::new, |cpu| {
        format!(" (shifted from CPU {})", CpuSet::single(cpu))
    });
    let (from, to) = (readable_at(slice.from), readable_at(slice.to));
    format!("{from} - {to}: {occupant}{shift}")
}
