//! How long a test may take, counted so that it is the same on every machine.

/// The number of elementary steps (one term of one sum) that a test may still take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps(u64);

impl Steps {
    /// The number of [`ordinary`](Self::ordinary).
    pub const ORDINARY: u64 = 20_000_000;

    /// Enough for any task set of ordinary periods, and well under a second.
    pub const fn ordinary() -> Self {
        Self(Self::ORDINARY)
    }

    /// At most this many steps.
    pub const fn at_most(steps: u64) -> Self {
        Self(steps)
    }

    /// Takes `steps` of those that are left; `None`, and none are left, if there are fewer.
    pub(crate) fn take(&mut self, steps: usize) -> Option<()> {
        let left = u64::try_from(steps)
            .ok()
            .and_then(|steps| self.0.checked_sub(steps));
        self.0 = left.unwrap_or(0);
        left.map(|_| ())
    }

    /// Takes one of `parts` equal parts of what is left, to be used later.
    pub(crate) const fn set_aside(&mut self, parts: u64) -> Self {
        let part = self.0 / parts;
        self.0 -= part;
        Self(part)
    }

    /// Adds what was set aside and not used.
    pub(crate) const fn give_back(&mut self, unused: Self) {
        self.0 += unused.0;
    }

    /// Whether none are left.
    pub(crate) const fn are_used_up(self) -> bool {
        self.0 == 0
    }
}

/// What a test found. A test that is not exact says in its documentation what a failure means.
///
/// A test that shows more than that its condition holds, such as bounds on response times, says it
/// in its `Proof`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<Failure, Proof = ()> {
    /// The condition holds.
    Pass(Proof),
    /// It does not, and this shows it.
    Fail(Failure),
    /// The steps were used up before either was known.
    StepLimit,
}

impl<Failure, Proof> Outcome<Failure, Proof> {
    /// Whether the condition holds.
    pub const fn passes(&self) -> bool {
        matches!(self, Self::Pass(_))
    }
}
