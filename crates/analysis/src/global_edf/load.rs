use num_bigint::BigInt;

use crate::filter::Interval;
use crate::{NotShown, Outcome, Sporadic, Steps};

use super::demand::{Capacity, Due, Horizon, horizon};
use super::{CPUS_AT_MOST, Deadlines, densest, misfit, outcome, shorter};

/// Whether global EDF is shown to meet all deadlines: no interval has more due in it than a number of
/// CPUs' worth that hangs on the greatest density d.
///
/// With n = m - (m - 1) d and c = ceil(n), the load, which is the greatest dbf(t)/t of all t, is at
/// most the greater one of n - (c - 1) d and (c - 1) - (c - 2) d.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; arbitrary deadlines.
///
/// # Cost
/// One step per task and interval that is looked at; pseudo-polynomial, linear if no deadline is
/// before the end of the period.
///
/// # Source
/// T. Baker, S. Baruah, "An Analysis of Global EDF Schedulability for Arbitrary-Deadline Sporadic Task
/// Systems", Real-Time Systems 43, 2009, Corollary 2. The load is not approximated. Densities above 1
/// fail, as for one CPU the bound would allow them. Equality passes.
pub fn load(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Arbitrary) {
        return Outcome::Fail(misfit);
    }
    outcome(verdict(tasks, cpus.min(CPUS_AT_MOST), steps))
}

fn verdict(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Option<Result<(), NotShown>> {
    if tasks.is_empty() {
        return Some(Ok(()));
    }
    let failure = densest(tasks);
    let capacity = capacity(&tasks[failure.place], cpus);
    let holds = match horizon(tasks, capacity, steps)? {
        Horizon::Overload => false,
        Horizon::None => true,
        Horizon::UpTo(longest) => fits_within(&Due::of(tasks), longest, capacity, steps)?,
    };
    Some(if holds { Ok(()) } else { Err(failure) })
}

/// What the load may be. In units of 1/(length of the densest task), everything is whole.
fn capacity(densest: &Sporadic, cpus: usize) -> Capacity {
    let [cost, length] = [densest.cost, shorter(densest)].map(|span| i128::from(span.as_ns()));
    let cpus = cpus as i128;
    let room = cpus * length - (cpus - 1) * cost;
    // C <= min(D, T), so there is room for one CPU at least.
    let whole = (room + length - 1) / length;
    let fractional = room - (whole - 1) * cost;
    let rounded = (whole - 1) * length - (whole - 2) * cost;
    let most = fractional.max(rounded);
    Capacity {
        nearly: Interval::ratio(most.unsigned_abs(), length.unsigned_abs()),
        exactly: (most, length.unsigned_abs()),
    }
}

/// Whether what is due within any t, up to the longest, is at most t times the capacity.
fn fits_within(tasks: &[Due], longest: u64, capacity: Capacity, steps: &mut Steps) -> Option<bool> {
    let mut length = longest;
    while length > 0 {
        steps.take(tasks.len())?;
        let due = tasks.iter().map(|task| u128::from(task.within(length).0));
        let due = due.sum::<u128>();
        // Rounding down is right: what is above the quotient and whole is above the rounded one.
        let cleared = (Interval::of(due) / capacity.nearly).high() as u64;
        if cleared < length {
            length = cleared;
            continue;
        }
        let (n, d) = capacity.exactly;
        if BigInt::from(due) * d > BigInt::from(length) * n {
            return Some(false);
        }
        steps.take(tasks.len())?;
        let before = tasks.iter().map(|task| task.before(length)).max();
        length = before.unwrap_or(0);
    }
    Some(true)
}
