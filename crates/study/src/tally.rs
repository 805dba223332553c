//! Answers, counted.

use shiftwork_model::Span;

/// What is known of one question about one task set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Whether the criterion was shown to be met; of simulations, whether no deadline was missed.
    pub is_met: bool,
    /// Whether it was shown that it is not.
    pub is_refuted: bool,
    /// The bound on tardiness, the largest of all tasks, if one was asked for and there is one.
    pub tardiness: Option<Span>,
}

/// The answers to one question about many task sets. Whole numbers alone, so that it does not matter in which order
/// they are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// How many task sets were asked about.
    pub sets: u64,
    /// For how many the criterion was shown to be met.
    pub met: u64,
    /// For how many it was shown not to be met.
    pub refuted: u64,
    /// For how many there is a bound on tardiness.
    pub bounded: u64,
    /// The sum of these bounds, in nanoseconds; at most 2⁶³ - 1.
    pub tardiness_sum_ns: u64,
    /// The largest of them, in nanoseconds.
    pub tardiness_max_ns: u64,
}

/// Sums end here: tables have signed numbers. It takes 292 years of tardiness.
const SUM_MAX: u64 = i64::MAX as u64;

impl Tally {
    /// Counts one more task set.
    pub fn count(&mut self, reply: Reply) {
        self.add(&Self {
            sets: 1,
            met: u64::from(reply.is_met),
            refuted: u64::from(reply.is_refuted),
            bounded: u64::from(reply.tardiness.is_some()),
            tardiness_sum_ns: reply.tardiness.map_or(0, Span::as_ns),
            tardiness_max_ns: reply.tardiness.map_or(0, Span::as_ns).min(SUM_MAX),
        });
    }

    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.sets += other.sets;
        self.met += other.met;
        self.refuted += other.refuted;
        self.bounded += other.bounded;
        let sum = self.tardiness_sum_ns.saturating_add(other.tardiness_sum_ns);
        self.tardiness_sum_ns = sum.min(SUM_MAX);
        self.tardiness_max_ns = self.tardiness_max_ns.max(other.tardiness_max_ns);
    }
}
