//! Global EDF and other orders by a point in time, soft: a bound for every task from one number.

use num_bigint::{BigInt, BigUint, Sign};
use shiftwork_model::Span;

use super::{as_spans, cpus_needed, demand};
use crate::exact::common_multiple;
use crate::filter::{Interval, RATIO, ratio};
use crate::{NotShown, Outcome, Sporadic, Steps};

/// Bounds on the response times under global EDF, in the order of the tasks, rounded up. A job is
/// tardy by the bound minus D at most. Fails if U > m, with the first task that is too much.
///
/// # Assumes
/// As [`gel_with_points`]; deadlines are arbitrary.
///
/// # Cost
/// As [`gel_with_points`].
///
/// # Source
/// As [`gel_with_points`].
pub fn gel(tasks: &[Sporadic], cpus: usize, steps: &mut Steps) -> Outcome<NotShown, Vec<Span>> {
    gel_with_points(tasks, cpus, |task| task.deadline, steps)
}

/// The same where the most urgent job is the one with the earliest *priority point*: its release
/// plus what `point` says of its task. With D it is global EDF, with D - (m-1)/m C global fair
/// lateness, with 0 first come, first served.
///
/// With Y the points, reduced by the least of them, and S = C max(0, 1 - Y/T), the bound is
/// Y + C + ceil(s - C/m) for the least s with
///
/// > m s = the sum of all S + the ceil(U) - 1 largest of (u s - u C/m + C - S)
///
/// which is exact for this analysis: Newton's method from 0 arrives at it after few steps, as the
/// right-hand side is convex in s and less steep than the left.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension; the jobs of a task run one after the
/// other. A task with C > T is not shown.
///
/// # Cost
/// One step per task and iteration, each O(n), in floats whose error is bounded: only the digits
/// before the point of m s matter to the bounds, since C and m are whole. Where these hang on more
/// digits than there are, exact integers of the size of the least common multiple of the periods,
/// with a step for each product of two words.
///
/// # Source
/// J. Erickson, U. Devi, S. Baruah, "Improved tardiness bounds for Global EDF", ECRTS 2010;
/// J. Erickson, N. Guan, S. Baruah, "Tardiness Bounds for Global EDF with Deadlines Different from
/// Periods", OPODIS 2010; J. Erickson, J. Anderson, "Fair Lateness Scheduling: Reducing Maximum Lateness
/// in G-EDF-like Scheduling", ECRTS 2012. s - C/m may be below zero and is then rounded towards zero.
pub fn gel_with_points(
    tasks: &[Sporadic],
    cpus: usize,
    point: impl Fn(&Sporadic) -> Span,
    steps: &mut Steps,
) -> Outcome<NotShown, Vec<Span>> {
    if tasks.is_empty() {
        return Outcome::Pass(Vec::new());
    }
    let needed = match cpus_needed(tasks, cpus) {
        Ok(needed) => needed,
        Err(not_shown) => return Outcome::Fail(not_shown),
    };
    let mut points: Vec<u64> = tasks.iter().map(|task| point(task).as_ns()).collect();
    let least = points.iter().min().copied().unwrap_or(0);
    points.iter_mut().for_each(|point| *point -= least);
    let system = System {
        tasks,
        points: &points,
        cpus,
        lines: needed - 1,
    };
    let Some(z) = system.solution(steps) else {
        return Outcome::StepLimit;
    };
    let bounds = tasks.iter().zip(&points).map(|(task, &point)| {
        // ceil((z - C) / m), of either sign.
        let beyond = match z.checked_sub(task.cost_ns()) {
            Some(more) => more.div_ceil(cpus as u128),
            None => 0,
        };
        let short = task.cost_ns().saturating_sub(z) / cpus as u128;
        (u128::from(point) + task.cost_ns()).saturating_add(beyond) - short
    });
    match as_spans(bounds) {
        Ok(bounds) => Outcome::Pass(bounds),
        Err(not_shown) => Outcome::Fail(not_shown),
    }
}

/// The equation for z = m s. With g the lesser of Y and T, C - S is u g, so that it reads
///
/// > m z = m (the sum of all u (T - g)) + the largest `lines` of u (z + m g - C)
///
/// Only z rounded up is needed. That is Z if z > Z - 1, which any choice of lines can show, as the
/// solution for it is not above z; and if the right-hand side at Z is at most m Z.
struct System<'a> {
    tasks: &'a [Sporadic],
    /// Y, reduced.
    points: &'a [u64],
    cpus: usize,
    lines: usize,
}

/// A task in floats: u and m g within [`RATIO`] roundings, C within one.
struct Line {
    rate: f64,
    rise: f64,
    cost: f64,
}

impl Line {
    fn at(&self, z: f64) -> f64 {
        self.rate * (z + (self.rise - self.cost))
    }

    /// No less than the line. Each of the terms has gone through RATIO roundings or fewer, and the
    /// result through RATIO of the rate and three more: in all less than 16 units of 2^-53 of their
    /// sizes, and here are 32.
    fn above(&self, z: f64) -> f64 {
        let size = self.rate * (z + self.rise + self.cost);
        self.at(z) + 16.0 * f64::EPSILON * size
    }
}

/// Fixed-point places that decide unless z is a whole number, or as good as one.
const PLACES: u32 = 192;

impl System<'_> {
    /// z rounded up, by the cheapest arithmetic that knows it; `None` when out of steps.
    fn solution(&self, steps: &mut Steps) -> Option<u128> {
        if let Some(z) = self.in_floats(steps)? {
            return Some(z);
        }
        let parts = BigUint::from(1u8) << PLACES;
        if let Some(z) = self.in_parts(&parts, 1, steps)? {
            return Some(z);
        }
        let parts = common_multiple([&demand(self.tasks)]);
        self.in_parts(&parts, 0, steps)?
    }

    /// g.
    fn reach(&self, place: usize) -> u64 {
        self.points[place].min(self.tasks[place].period.as_ns())
    }

    /// T - g.
    fn rest(&self, place: usize) -> u64 {
        self.tasks[place].period.as_ns() - self.reach(place)
    }

    /// Newton's method in floats, then a proof of what it found, if there is one; `None` when out of
    /// steps.
    fn in_floats(&self, steps: &mut Steps) -> Option<Option<u128>> {
        let cpus = self.cpus as f64;
        let line = |(place, task): (usize, &Sporadic)| Line {
            rate: ratio(task.cost.as_ns(), task.period.as_ns()),
            rise: cpus * self.reach(place) as f64,
            cost: task.cost.as_ns() as f64,
        };
        let lines: Vec<Line> = self.tasks.iter().enumerate().map(line).collect();
        let waits: Vec<f64> = (0..lines.len())
            .map(|place| lines[place].rate * self.rest(place) as f64)
            .collect();
        let waits = Interval::sum_over(&waits, RATIO + 2, |&wait| wait);
        let waits = Interval::of(self.cpus as u128) * waits;
        let mut order = Vec::with_capacity(lines.len());
        let mut z = 0.0;
        let found = loop {
            steps.take(lines.len())?;
            self.choose(&mut order, |place| lines[place].at(z));
            let sum = |roundings, term: fn(&Line) -> f64| {
                let chosen = &order[..self.lines];
                Interval::sum_over(chosen, roundings, |&(_, place)| term(&lines[place]))
            };
            let left = Interval::of(self.cpus as u128) - sum(RATIO, |line| line.rate);
            let above = sum(RATIO + 4, |line| line.rate * line.rise);
            let below = sum(RATIO + 2, |line| line.rate * line.cost);
            let next = (waits + above - below) / left;
            // z grows at every turn, and there are only so many choices.
            if next.high() <= z {
                break next;
            }
            z = next.high();
        };
        let least = found.low().ceil();
        if !(0.0 <= least && least < (1u64 << f64::MANTISSA_DIGITS) as f64) {
            return Some(None);
        }
        self.choose(&mut order, |place| lines[place].above(least));
        let largest = order[..self.lines].iter().map(|&(line, _)| line);
        let sizes = largest.clone().map(f64::abs).sum::<f64>();
        let rounded = sizes * (self.lines + 2) as f64 * f64::EPSILON;
        // `rounded` is twice what the sum is off by, which covers that it is added, too.
        let right = (waits.high() + (largest.sum::<f64>() + rounded)).next_up();
        let left = Interval::of(self.cpus as u128) * Interval::of(least as u128);
        Some((right <= left.low()).then_some(least as u128))
    }

    /// Puts the places with the largest values first, as many as there are lines.
    fn choose(&self, order: &mut Vec<(f64, usize)>, value: impl Fn(usize) -> f64) {
        order.clear();
        order.extend((0..self.tasks.len()).map(|place| (value(place), place)));
        if self.lines > 0 {
            order.select_nth_unstable_by(self.lines - 1, |a, b| b.0.total_cmp(&a.0));
        }
    }

    /// Newton's method in whole numbers, `parts` to one, of which every rate is rounded down and is
    /// too small by no more than `slack`; nothing if that is too much. `None` when out of steps.
    fn in_parts(&self, parts: &BigUint, slack: u8, steps: &mut Steps) -> Option<Option<u128>> {
        let words = usize::try_from(parts.bits() / 64 + 2).ok()?;
        let turn = words.checked_mul(self.tasks.len())?;
        // The rates first: a long division each.
        steps.take(turn)?;
        let places = 0..self.tasks.len();
        let cpus = BigInt::from(self.cpus);
        let parts = BigInt::from(parts.clone());
        let rate = |task: &Sporadic| &parts * task.cost.as_ns() / task.period.as_ns();
        let rates: Vec<BigInt> = self.tasks.iter().map(rate).collect();
        let rise = |place: usize| &cpus * self.reach(place) - self.tasks[place].cost.as_ns();
        let rises: Vec<BigInt> = places.clone().map(rise).collect();
        // A rate times a whole number: not more, and not less, than that.
        let low = |place: usize, factor: &BigInt| match factor.sign() {
            Sign::Minus => (&rates[place] + slack) * factor,
            _ => &rates[place] * factor,
        };
        let high = |place: usize, factor: &BigInt| match factor.sign() {
            Sign::Minus => &rates[place] * factor,
            _ => (&rates[place] + slack) * factor,
        };
        let rests: Vec<BigInt> = places
            .clone()
            .map(|place| &cpus * self.rest(place))
            .collect();
        let [waits_low, waits_high] = [
            places
                .clone()
                .map(|place| low(place, &rests[place]))
                .sum::<BigInt>(),
            places.clone().map(|place| high(place, &rests[place])).sum(),
        ];
        let mut z = BigInt::ZERO;
        loop {
            steps.take(turn)?;
            let mut lines: Vec<(BigInt, usize)> = places
                .clone()
                .map(|place| (high(place, &(&z + &rises[place])), place))
                .collect();
            lines.sort_unstable_by(|a, b| b.cmp(a));
            lines.truncate(self.lines);
            let right: BigInt = &waits_high + lines.iter().map(|(line, _)| line).sum::<BigInt>();
            if right <= &cpus * &parts * &z {
                return Some(u128::try_from(z).ok());
            }
            let chosen = lines.iter().map(|&(_, place)| place);
            let above: BigInt = chosen.clone().map(|place| low(place, &rises[place])).sum();
            let taken: BigInt = chosen.map(|place| &rates[place]).sum();
            let left = &cpus * &parts - taken;
            let next = (&waits_low + above + &left - 1u8) / left;
            if next <= z {
                return Some(None);
            }
            z = next;
        }
    }
}
