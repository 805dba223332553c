//! Times of a chain: how many ended, the longest, and what was wanted.

use serde_json::{Value, json};
use shiftwork_model::{Instant, Span};

/// Times from a read or an arrival of the first task of a chain to an effect of its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndToEnd {
    /// Number of times that ended by the horizon.
    pub samples: u64,
    /// The longest of them; `None` without samples.
    pub max: Option<Span>,
    /// The length up to the horizon of the longest that had not ended by then; `None` if there is none.
    pub pending: Option<Span>,
    /// The longest that is wanted; `None` if any is.
    pub wanted: Option<Span>,
}

impl EndToEnd {
    /// Whether none was longer than wanted, including those that had not ended; `None` if any length is wanted.
    pub fn is_met(&self) -> Option<bool> {
        let wanted = self.wanted?;
        Some(
            self.max
                .max(self.pending)
                .is_none_or(|longest| longest <= wanted),
        )
    }

    pub(super) fn to_json(self) -> Value {
        let ns = |span: Option<Span>| span.map(Span::as_ns);
        json!({
            "max_ns": ns(self.max),
            "samples": self.samples,
            "pending_ns": ns(self.pending),
            "wanted_ns": ns(self.wanted),
            "met": self.is_met(),
        })
    }
}

/// One time of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    /// A read or an arrival of the first task.
    pub from: Instant,
    /// The effect of the last task, or the horizon.
    pub to: Instant,
}

impl Interval {
    pub(super) const fn new(from: Instant, to: Instant) -> Self {
        Self { from, to }
    }

    pub const fn length(self) -> Span {
        self.to.late_since(self.from)
    }
}

/// Collects the times of one kind of one chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    samples: u64,
    /// The first of the longest that ended.
    longest: Option<Interval>,
    /// The longest that had not ended by the horizon.
    pub(super) pending: Option<Interval>,
    /// The longest that is wanted.
    pub wanted: Option<Span>,
}

impl Times {
    pub(super) const fn new(wanted: Option<Span>) -> Self {
        Self {
            samples: 0,
            longest: None,
            pending: None,
            wanted,
        }
    }

    /// Adds so many times, of which the longest is given. Returns whether it is longer than all before.
    pub(super) fn add(&mut self, samples: u64, longest: Interval) -> bool {
        self.samples += samples;
        let is_longer = self
            .longest
            .is_none_or(|before| before.length() < longest.length());
        if is_longer {
            self.longest = Some(longest);
        }
        is_longer
    }

    pub(super) fn summary(self) -> EndToEnd {
        EndToEnd {
            samples: self.samples,
            max: self.longest.map(Interval::length),
            pending: self.pending.map(Interval::length),
            wanted: self.wanted,
        }
    }

    /// The longest of all if it is longer than wanted, and whether it had ended by the horizon.
    pub fn excessive(&self) -> Option<(Interval, bool)> {
        let pending = self.pending.map(|pending| (pending, false));
        let longest = self.longest.map(|longest| (longest, true));
        // Of equally long ones that which had ended: its path is complete.
        let worst = pending
            .into_iter()
            .chain(longest)
            .max_by_key(|(time, _)| time.length())?;
        (worst.0.length() > self.wanted?).then_some(worst)
    }
}
