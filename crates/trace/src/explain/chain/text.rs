//! Text of the explanation of a chain: what it missed, a line for each link, and the slowest one.

use shiftwork_model::Instant;

use super::{ChainExplanation, Link, Slowest};
use crate::chains::ChainTime;
use crate::explain::attribution::named;
use crate::explain::text::{part_text, readable, readable_at};

impl ChainExplanation {
    /// What was missed, and the slowest link.
    pub fn paragraph(&self, names: &[&str]) -> String {
        format!("{}. {}", self.heading(names), self.slowest(names))
    }

    /// What was missed, the links and the slowest of them; ends with a line feed.
    pub fn text(&self, names: &[&str]) -> String {
        let mut text = format!("{}\n", self.heading(names));
        let lengths = self.links.iter().map(|link| readable(link.length()));
        let lengths: Vec<String> = lengths.collect();
        let width = lengths.iter().map(String::len).max().unwrap_or(0);
        for (place, length) in lengths.iter().enumerate() {
            text.push_str(&format!(
                "  {length:>width$}  {}\n",
                self.link(place, names)
            ));
        }
        text.push_str(&format!("  {}\n", self.slowest(names)));
        if let Slowest::Late(explanation) = &self.why {
            text.push_str(&explanation.timeline_text(names));
        }
        text
    }

    /// What the chain missed, and from when to when.
    fn heading(&self, names: &[&str]) -> String {
        let miss = &self.miss;
        let name = &self.name;
        let wanted = readable(miss.wanted);
        let (from, to) = (readable_at(miss.from), readable_at(miss.to));
        let length = readable(miss.length());
        let first = self.links.first().map(|link| name_of(link, names));
        let first = first.unwrap_or_default();
        let (what, begin) = match miss.time {
            ChainTime::Latency => ("latency", format!("the arrival of {first} at {from}")),
            ChainTime::Reaction => {
                let task = self
                    .links
                    .first()
                    .and_then(|link| names.get(link.task.index()));
                let task = task.copied().unwrap_or("?");
                (
                    "reaction time",
                    format!("an event just after a read of {task} at {from}"),
                )
            }
            ChainTime::Age => ("data age", format!("what {first} read at {from}")),
        };
        let last = self.links.last().map(|link| name_of(link, names));
        let last = last.unwrap_or_default();
        let end = match (miss.has_ended, miss.time) {
            (false, _) => format!("to the end of the run at {to}, without an end"),
            (true, ChainTime::Age) => format!("until {last} replaced the output at {to}"),
            (true, _) => format!("to the completion of {last} at {to}"),
        };
        format!("chain {name} missed its {what} of {wanted}: {length}, from {begin} {end}")
    }

    fn link(&self, place: usize, names: &[&str]) -> String {
        let link = &self.links[place];
        let mut events = Vec::new();
        let mut event = |name: &str, at: Option<Instant>| {
            events.extend(at.map(|at| format!("{name} at {}", readable_at(at))));
        };
        let release = match self.is_triggered[place] {
            true => "triggered",
            false => "released",
        };
        event(release, link.release.filter(|at| *at <= link.to));
        event("started", link.start);
        if link.is_over && link.completion != Some(link.to) {
            event("triggered the next", Some(link.to));
        }
        event("completed", link.completion);
        let waited = (!link.waited.is_zero())
            .then(|| format!("{} {}", readable(link.waited), self.wait(place, names)));
        let parts = link.parts.iter();
        let parts =
            parts.map(|&(part, time)| format!("{} {}", readable(time), part_text(names, part)));
        let times: Vec<String> = waited.into_iter().chain(parts).collect();
        let mut text = name_of(link, names);
        for event in events {
            text.push_str(", ");
            text.push_str(&event);
        }
        if !times.is_empty() {
            text.push_str(": ");
            text.push_str(&times.join(", "));
        }
        text
    }

    /// Until when the job of the link was not released.
    fn wait(&self, place: usize, names: &[&str]) -> String {
        let link = &self.links[place];
        match (link.origin, self.miss.time, self.is_triggered[place]) {
            (Some(origin), ..) => format!("until {} triggered it", named(names, origin.by)),
            (None, _, true) => "until it was triggered".into(),
            (None, ChainTime::Latency, false) => "of jitter of its release".into(),
            (None, _, false) => "until its release".into(),
        }
    }

    fn slowest(&self, names: &[&str]) -> String {
        let link = &self.links[self.slowest];
        let name = name_of(link, names);
        let wanted = readable(self.miss.wanted);
        let delay = link.delay();
        if delay.is_zero() {
            let length = readable(link.length());
            return format!(
                "No link was delayed: the executions alone take more than {wanted}. The slowest link is {name}, with {length}."
            );
        }
        let waited = match (link.waited, self.wait(self.slowest, names)) {
            (waited, wait) if waited == delay => format!(", all of them {wait}"),
            (waited, wait) if waited > delay - waited => {
                format!(", {} of them {wait}", readable(waited))
            }
            _ => String::new(),
        };
        let slowest = format!(
            "The slowest link is {name}, with {} beyond its own execution{waited}.",
            readable(delay)
        );
        match &self.why {
            Slowest::Late(explanation) => {
                let otherwise = format!("the chain would have met its {wanted}");
                let why = explanation.verdict_on(names, &readable, &otherwise);
                format!("{slowest} {why}")
            }
            Slowest::NotEnough => {
                format!(
                    "{slowest} Also without them the chain would have taken more than {wanted}."
                )
            }
            Slowest::Unknown => slowest,
        }
    }
}

/// The job of the link, or its task.
fn name_of(link: &Link, names: &[&str]) -> String {
    match link.job {
        Some(number) => named(
            names,
            shiftwork_model::JobId {
                task: link.task,
                number,
            },
        ),
        None => {
            let name = names.get(link.task.index()).copied().unwrap_or("?");
            format!("the next job of {name}")
        }
    }
}
