//! Numbers and lengths of inversions.

use serde_json::{Value, json};
use shiftwork_model::Span;

use super::InversionKind;
use crate::statistics::Distribution;

/// Inversions of one kind, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InversionStatistics {
    /// Number of inversions.
    pub count: u64,
    /// The sum of their lengths, saturating.
    pub total_ns: u64,
    /// The length that at least 99% do not exceed, to three digits; `None` if there are none.
    pub p99_ns: Option<u64>,
    /// The length of the longest; `None` if there are none.
    pub longest_ns: Option<u64>,
}

/// The inversions of a run, or of one task in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InversionCounts {
    /// Both kinds.
    pub all: InversionStatistics,
    /// Inversions that also violate the weak invariant.
    pub direct: InversionStatistics,
    /// Inversions that only shifts would end.
    pub affinity_related: InversionStatistics,
}

/// The result of [`Inversions`](super::Inversions).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InversionSummary {
    /// The whole run.
    pub run: InversionCounts,
    /// By the task of the waiting job, in the order of the task set.
    pub tasks: Vec<InversionCounts>,
}

impl InversionCounts {
    /// The counts under the keys of `simulate --json`.
    pub fn to_json(&self) -> Value {
        let mut value = self.all.to_json();
        value["direct"] = self.direct.to_json();
        value["affinity_related"] = self.affinity_related.to_json();
        value
    }
}

impl InversionStatistics {
    fn to_json(self) -> Value {
        json!({
            "count": self.count,
            "total_ns": self.total_ns,
            "p99_ns": self.p99_ns,
            "longest_ns": self.longest_ns,
        })
    }
}

/// Lengths by kind, in memory that does not grow with their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    all: Lengths,
    direct: Lengths,
    affinity_related: Lengths,
}

#[derive(Clone, Debug, Default)]
struct Lengths {
    count: u64,
    lengths: Distribution,
}

impl Tally {
    pub fn add(&mut self, kind: InversionKind, length: Span) {
        self.all.add(length);
        match kind {
            InversionKind::Direct => self.direct.add(length),
            InversionKind::AffinityRelated => self.affinity_related.add(length),
        }
    }

    pub fn counts(&self) -> InversionCounts {
        InversionCounts {
            all: self.all.statistics(),
            direct: self.direct.statistics(),
            affinity_related: self.affinity_related.statistics(),
        }
    }
}

impl Lengths {
    fn add(&mut self, length: Span) {
        self.count += 1;
        self.lengths.add(length);
    }

    fn statistics(&self) -> InversionStatistics {
        let lengths = self.lengths.statistics(self.count);
        InversionStatistics {
            count: self.count,
            total_ns: self.lengths.sum_ns(),
            p99_ns: lengths.map(|lengths| lengths.p99_ns),
            longest_ns: lengths.map(|lengths| lengths.max_ns),
        }
    }
}
