//! Whether deadlines are met on one CPU. One file per published test.
//!
//! Every test takes the supply of the CPU: with less than 1 it is the test of the same tasks on a
//! CPU that is slower by that factor.

mod demand;
mod fp_rta;
mod qpa;

pub use fp_rta::{TooLate, WithJitter, fp_rta, fp_rta_with_jitter};
pub use qpa::{Overfull, qpa};

use shiftwork_model::{Share, Span};

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
