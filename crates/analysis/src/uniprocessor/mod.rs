//! Whether deadlines are met on one CPU, and how long jobs take there. One file per published test.
//!
//! Every test of preemptive scheduling but that of tasks that suspend themselves takes the supply of the CPU: with less than 1
//! it is the test of the same tasks on a CPU that is slower by that factor.

mod demand;
mod edf_rta;
mod edf_suspension_rta;
mod edf_suspensions;
mod fp_rta;
mod fp_suspensions;
mod np_edf;
mod np_fp;
mod qpa;

pub use edf_rta::edf_rta;
pub use edf_suspension_rta::edf_rta_with_suspensions;
pub use edf_suspensions::edf_with_suspensions;
pub(crate) use fp_rta::{Response, fp_in_time, fp_response_time, fp_responses_with_jitter};
pub use fp_rta::{TooLate, WithJitter, fp_response_times, fp_rta, fp_rta_with_jitter};
pub use fp_suspensions::{Suspending, fp_rta_with_suspensions};
pub use np_edf::{BlockedInterval, np_edf};
pub(crate) use np_fp::np_fp_in_time;
pub use np_fp::{np_fp_response_times, np_fp_rta};
pub use qpa::{Overfull, WithCurve, qpa, qpa_with_curves};

use shiftwork_model::{Share, Span};

use crate::NotShown;
use crate::arrivals::Arriving;
use crate::exact::{Demand, fit};

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

/// The first task that is none, or with which the tasks need more than the supply; `None` if all fit.
pub(crate) fn too_much<T: Arriving>(tasks: &[T], supply: Share) -> Option<NotShown> {
    let mut used = Demand::default();
    let mut fits = |one: &T| match one.rate() {
        Some(rate) if one.task().is_possible() => {
            used.add(rate);
            fit([&used], 1, supply)
        }
        _ => false,
    };
    let place = tasks.iter().position(|one| !fits(one))?;
    Some(NotShown { place })
}
