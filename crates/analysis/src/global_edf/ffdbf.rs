use num_bigint::BigInt;

use crate::filter::Interval;
use crate::uniprocessor::qpa;
use crate::{NotShown, Outcome, Sporadic, Steps, exact};

use super::demand::{Capacity, Due, Horizon, horizon};
use super::{CPUS_AT_MOST, Deadlines, densest, misfit, outcome, shorter};

/// Whether global EDF is shown to meet all deadlines: for some speed s, no less than the greatest
/// density, what is due in an interval of any length t, and what jobs from before it that ran at speed
/// s until then have left, is at most (m - (m - 1) s) t.
///
/// The demand of a task is the cost of what is due within t, and max(0, C - s r) if the next job is due
/// r later. For D <= T that is the published forced-forward demand. For D > T the published proof is
/// applied to a whole backlog of a task instead of a job, as jobs of a task run in order: a task that
/// has been busy for x ran s x of it at least, or the interval is extended to include it, and no
/// x above r leaves more, as C <= s T.
///
/// # Which speeds are tried
/// All that are real, in effect. For any one t the difference of both sides is convex in s, so a
/// violation at some s that falls as s grows excludes all s up to where its tangent is zero, and one
/// that does not fall excludes all greater ones. So Newton's method goes up from the greatest
/// density to the least speed that is not excluded, in exact fractions, and fails if there is none. For
/// one CPU all speeds have the same capacity, so that the limit of great speeds decides: [`qpa`].
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; arbitrary deadlines.
///
/// # Cost
/// One step per task and interval that is looked at, for each speed; pseudo-polynomial, linear if no
/// deadline is before the end of the period, where the condition is that of [`gfb`](super::gfb()).
///
/// # Source
/// S. Baruah, V. Bonifaci, A. Marchetti-Spaccamela, S. Stiller, "Improved Multiprocessor Global
/// Schedulability Analysis", Real-Time Systems 46, 2010. The published algorithm tries some speeds,
/// by steps and up to a margin; this passes whatever passes that, for any steps and margin. Equality
/// passes.
pub fn ffdbf(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown> {
    if let Some(misfit) = misfit(tasks, cpus, Deadlines::Arbitrary) {
        return Outcome::Fail(misfit);
    }
    if tasks.is_empty() {
        return Outcome::Pass(());
    }
    let failure = densest(tasks);
    if cpus == 1 {
        return match qpa(tasks, exact::whole(), steps) {
            Outcome::Pass(()) => Outcome::Pass(()),
            Outcome::Fail(_) => Outcome::Fail(failure),
            Outcome::StepLimit => Outcome::StepLimit,
        };
    }
    let found = some_speed(tasks, cpus.min(CPUS_AT_MOST), &tasks[failure.place], steps);
    let found = found.map(|found| if found { Ok(()) } else { Err(failure) });
    outcome(found)
}

/// A speed, as a fraction.
#[derive(Clone, Copy)]
struct Speed {
    n: i128,
    d: u128,
}

/// A length of interval that violates the condition at some speed: the demand less m t is at least
/// `excess` - `slope` s - (m - 1) s t at any speed s, and more than that capacity at the one tried.
struct Violation {
    excess: i128,
    slope: i128,
}

/// Whether the condition holds for some speed.
fn some_speed(
    tasks: &[Sporadic],
    cpus: usize,
    densest: &Sporadic,
    steps: &mut Steps,
) -> Option<bool> {
    let due = Due::of(tasks);
    let costs = tasks.iter().map(|task| task.cost.as_ns() as f64).sum();
    let mut speed = Speed {
        n: densest.cost_ns() as i128,
        d: u128::from(shorter(densest).as_ns()),
    };
    loop {
        let trial = Trial::new(&due, cpus as i128, costs, speed);
        let longest = match horizon(tasks, trial.capacity, steps)? {
            // No greater speed leaves more capacity.
            Horizon::Overload => return Some(false),
            Horizon::None => return Some(true),
            Horizon::UpTo(longest) => longest,
        };
        match trial.violation(longest, steps)? {
            None => return Some(true),
            Some(Violation { slope, .. }) if slope <= 0 => return Some(false),
            Some(Violation { excess, slope }) => {
                speed = Speed {
                    n: excess,
                    d: slope.unsigned_abs(),
                };
            }
        }
    }
}

/// The condition at one speed.
struct Trial<'a> {
    tasks: &'a [Due],
    cpus: i128,
    speed: Speed,
    speed_nearly: f64,
    capacity: Capacity,
    /// How far the computed sum of what jobs have left may be off.
    error: f64,
}

impl<'a> Trial<'a> {
    /// `costs` is the sum of all costs, nearly.
    fn new(tasks: &'a [Due], cpus: i128, costs: f64, speed: Speed) -> Self {
        let one = Interval::ratio(speed.n.unsigned_abs(), speed.d);
        let others = Interval::of(cpus.unsigned_abs() - 1);
        let capacity = cpus * speed.d as i128 - (cpus - 1) * speed.n;
        Self {
            tasks,
            cpus,
            speed,
            speed_nearly: speed.n as f64 / speed.d as f64,
            capacity: Capacity {
                nearly: Interval::of(cpus.unsigned_abs()) - others * one,
                exactly: (capacity, speed.d),
            },
            // A job has at most C left, after at most eight roundings of something no greater; then
            // they are added.
            error: costs * (tasks.len() as f64 + 16.0) * f64::EPSILON,
        }
    }

    /// A violation by some interval up to the longest, if there is one.
    fn violation(&self, longest: u64, steps: &mut Steps) -> Option<Option<Violation>> {
        let mut length = longest;
        while length > 0 {
            steps.take(self.tasks.len())?;
            let cleared = (self.demand(length) / self.capacity.nearly).high();
            // Rounding down is right: between two instants at which a job is due the demand is convex,
            // so whole lengths are all that matters.
            let cleared = cleared as u64;
            if cleared < length {
                length = cleared;
                continue;
            }
            steps.take(2 * self.tasks.len())?;
            if let Some(violation) = self.violation_at(length) {
                return Some(Some(violation));
            }
            let before = self.tasks.iter().map(|task| task.before(length)).max();
            length = before.unwrap_or(0);
        }
        Some(None)
    }

    /// The demand of all tasks.
    fn demand(&self, length: u64) -> Interval {
        let (mut due, mut left) = (0, 0.0);
        for task in self.tasks {
            let (cost, next) = task.within(length);
            due += u128::from(cost);
            let more = task.cost as f64 - self.speed_nearly * next as f64;
            left += if more > 0.0 { more } else { 0.0 };
        }
        Interval::of(due) + Interval::about(left, self.error)
    }

    /// Whether the demand of an interval exceeds the capacity, exactly.
    fn violation_at(&self, length: u64) -> Option<Violation> {
        let length = (length, i128::from(length));
        let mut violation = Violation {
            excess: -self.cpus * length.1,
            slope: -(self.cpus - 1) * length.1,
        };
        for task in self.tasks {
            let (cost, next) = task.within(length.0);
            violation.excess += i128::from(cost);
            if self.has_left(task, next) {
                violation.excess += i128::from(task.cost);
                violation.slope += i128::from(next);
            }
        }
        let [excess, slope, n] =
            [violation.excess, violation.slope, self.speed.n].map(BigInt::from);
        (excess * self.speed.d > slope * n).then_some(violation)
    }

    /// Whether a job that is due so much after the interval has work left in it: C > s r.
    fn has_left(&self, task: &Due, next: u64) -> bool {
        let products = (
            u128::from(task.cost).checked_mul(self.speed.d),
            u128::from(next).checked_mul(self.speed.n.unsigned_abs()),
        );
        if let (Some(cost), Some(run)) = products {
            return cost > run;
        }
        BigInt::from(task.cost) * self.speed.d > BigInt::from(next) * self.speed.n
    }
}
