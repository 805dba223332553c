//! JSON of the explanation of a chain.

use serde_json::{Value, json};
use shiftwork_model::Instant;

use super::{ChainExplanation, Link, Slowest};
use crate::chains::ChainTime;
use crate::explain::json::{cause, parts, shares};

impl ChainExplanation {
    /// As one JSON object; `names` are those of the tasks, by their index. Times are whole nanoseconds.
    ///
    /// The times of a link, `waited_ns` and those of its `parts`, add up to `to_ns` - `from_ns`, and the links to those of the
    /// chain. `cause` and `culprits` are those of the slowest link, empty if they would not say what made the chain late.
    pub fn to_json(&self, names: &[&str]) -> Value {
        let miss = &self.miss;
        let links = self.links.iter().map(|link| link_json(link, names));
        let (cause, culprits) = match &self.why {
            Slowest::Late(why) => (cause(&why.cause, names), shares(&why.shares, names)),
            Slowest::NotEnough | Slowest::Unknown => (Vec::new(), Vec::new()),
        };
        json!({
            "chain": self.name,
            "requirement": match miss.time {
                ChainTime::Reaction => "reaction",
                ChainTime::Age => "age",
                ChainTime::Latency => "latency",
            },
            "wanted_ns": miss.wanted.as_ns(),
            "from_ns": miss.from.as_ns(),
            "to_ns": miss.to.as_ns(),
            "ended": miss.has_ended,
            "links": links.collect::<Vec<_>>(),
            "slowest": self.slowest,
            "delay_ns": self.links[self.slowest].delay().as_ns(),
            "cause": cause,
            "culprits": culprits,
            "text": self.paragraph(names),
        })
    }
}

fn link_json(link: &Link, names: &[&str]) -> Value {
    let ns = |at: Option<Instant>| at.map(Instant::as_ns);
    let mut value = json!({
        "task": names.get(link.task.index()),
        "job": link.job,
        "from_ns": link.from.as_ns(),
        "to_ns": link.to.as_ns(),
        "release_ns": ns(link.release),
        "start_ns": ns(link.start),
        "completion_ns": ns(link.completion),
        "waited_ns": link.waited.as_ns(),
        "parts": parts(&link.parts, names),
    });
    if let Some(origin) = link.origin {
        value["trigger"] = origin.to_json(names);
    }
    value
}
