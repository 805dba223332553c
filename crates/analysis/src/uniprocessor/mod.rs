//! Whether deadlines are met on one CPU. One file per published test.
//!
//! Every test takes the supply of the CPU: with less than 1 it is the test of the same tasks on a
//! CPU that is slower by that factor.

mod fp_rta;
mod qpa;

pub use fp_rta::{Ranked, TooLate, fp_rta};
pub use qpa::{Overfull, qpa};

use shiftwork_model::{Share, Span};

/// What a test on one CPU needs to know of a sporadic task. All above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sporadic {
    /// C.
    pub cost: Span,
    /// T, the least separation of releases.
    pub period: Span,
    /// D, relative to the release; shorter or longer than the period.
    pub deadline: Span,
}

impl Sporadic {
    const fn cost_ns(&self) -> u128 {
        self.cost.as_ns() as u128
    }

    const fn period_ns(&self) -> u128 {
        self.period.as_ns() as u128
    }

    const fn deadline_ns(&self) -> u128 {
        self.deadline.as_ns() as u128
    }

    const fn is_possible(&self) -> bool {
        !self.cost.is_zero() && !self.period.is_zero() && !self.deadline.is_zero()
    }
}

/// The time that a CPU of this supply takes for this much work, rounded up; `None` if it never ends.
pub(crate) fn time_for(work_ns: u128, supply: Share) -> Option<u128> {
    let supply = u128::from(supply.billionths());
    let work = work_ns.checked_mul(u128::from(Share::WHOLE))?;
    (supply > 0).then(|| work.div_ceil(supply))
}

/// A time in nanoseconds as a span; the longest span if it is longer.
fn span(ns: u128) -> Span {
    Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
}
