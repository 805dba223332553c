use crate::filter::{Interval, RATIO, ratio};
use crate::{NotShown, Outcome, Sporadic, Steps};

use super::{densest, fits_alone, fractions, shorter};

/// Whether global EDF is shown to meet all deadlines: the densities sum to at most m - (m - 1) times
/// the greatest of them.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; arbitrary deadlines, with C/min(D, T)
/// as the density.
///
/// # Cost
/// O(n), one step per task; more only if both sides agree to about twelve digits.
///
/// # Source
/// J. Goossens, S. Funk, S. Baruah, "Priority-Driven Scheduling of Periodic Task Systems on
/// Multiprocessors", Real-Time Systems 25, 2003, Theorem 5, for implicit deadlines; for others,
/// M. Bertogna, M. Cirinei, G. Lipari, "Improved Schedulability Analysis of EDF on Multiprocessor
/// Platforms", ECRTS 2005, and T. Baker, S. Baruah, "An Analysis of Global EDF Schedulability for
/// Arbitrary-Deadline Sporadic Task Systems", Real-Time Systems 43, 2009. Equality passes.
pub fn gfb(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    let misfit = |task: &Sporadic| !fits_alone(task) || cpus == 0;
    if let Some(place) = tasks.iter().position(misfit) {
        return Outcome::Fail(NotShown { place });
    }
    let nearly = nearly(tasks, cpus);
    match nearly.map_or_else(|| exactly(tasks, cpus, steps), Some) {
        None => Outcome::StepLimit,
        Some(true) => Outcome::Pass(()),
        Some(false) => Outcome::Fail(densest(tasks)),
    }
}

/// By floats, if the sides are not too close.
fn nearly(tasks: &[Sporadic], cpus: usize) -> Option<bool> {
    let mut densest: f64 = 0.0;
    let sum = Interval::sum_over(tasks, RATIO, |task| {
        let density = ratio(task.cost.as_ns(), shorter(task).as_ns());
        if density > densest {
            densest = density;
        }
        density
    });
    let most = Interval::within(densest, RATIO);
    let cpus = cpus as u128;
    let others = Interval::of(cpus.saturating_sub(1));
    sum.at_most(Interval::of(cpus) - others * most)
}

/// By integers.
fn exactly(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Option<bool> {
    let Some(most) = tasks.get(densest(tasks).place) else {
        return Some(true);
    };
    let length = u128::from(shorter(most).as_ns());
    // No machine has 2^62 CPUs, and with spans of 64 bits the product would not fit 128 bits.
    let cpus = (cpus as u128).min(1 << 62);
    let bound = (cpus * length) as i128 - ((cpus - 1) * most.cost_ns()) as i128;
    let parts = tasks
        .iter()
        .map(|task| (task.cost_ns().into(), shorter(task).as_ns()));
    fractions::compare(parts, (bound, length), steps).map(std::cmp::Ordering::is_le)
}
