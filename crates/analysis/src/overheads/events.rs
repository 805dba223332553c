//! Schedulers that decide when something happens.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::{Span, TaskSet};

use super::charges::Charges;
use super::{Inflated, Obstacle};
use crate::affinity::parts::Part;
use crate::exact::{Demand, Rate, units_of, whole};
use crate::verdicts::Rule;

/// The tasks of the part, in its order.
pub(super) fn inflate(set: &TaskSet, rule: Rule, part: &Part, charges: &Charges) -> Vec<Inflated> {
    let interrupts = Interruptions::of(set, part, charges);
    // What a job does to others: another one is switched to when it is done, and refills its caches.
    let is_preemptive = rule != Rule::NonPreemptive;
    let stretches = if is_preemptive { 2 } else { 1 };
    let refill = if is_preemptive { charges.refill } else { 0 };
    let own = stretches * (charges.switch + interrupts.once) + refill;
    let beside = match charges.dedicated {
        true => charges.ipi + charges.release,
        false => charges.ipi,
    };
    let inflated = |&place: &usize| {
        let task = &set.tasks[place];
        let work = u128::from(task.cost.as_ns()) + own;
        match interrupts.stretch(work).zip(charges.queued) {
            None => Inflated::none(Obstacle::Interrupts),
            Some((cost, queued)) => {
                let left = |span: Span| u128::from(span.as_ns()).saturating_sub(queued);
                let [period, deadline] = [task.period, task.deadline].map(left);
                Inflated::new(queued, [cost + beside, period, deadline])
            }
        }
    };
    part.members.iter().map(inflated).collect()
}

/// What interrupts take of each CPU.
struct Interruptions {
    /// In the long run.
    load: Demand,
    /// Beyond that in any stretch of time: one of each source.
    once: u128,
}

impl Interruptions {
    fn of(set: &TaskSet, part: &Part, charges: &Charges) -> Self {
        let mut load = Demand::default();
        let mut once = charges.tick;
        let mut add = |cost: u128, every: Span| {
            // A cost that is longer than any span takes all of every CPU, as the longest does.
            let cost = Span::from_ns(u64::try_from(cost).unwrap_or(u64::MAX));
            if let Some(rate) = Rate::new(cost, every) {
                load.add(rate);
            }
        };
        add(charges.tick, charges.quantum);
        if !charges.dedicated {
            for &place in &part.members {
                add(charges.release, set.tasks[place].period);
                once += charges.release;
            }
        }
        Self { load, once }
    }

    /// How long so much work takes in the long run, rounded up; `None` if nothing is left for it.
    fn stretch(&self, work: u128) -> Option<u128> {
        let all = units_of(whole());
        let takes = |units: u128| {
            let left = all.checked_sub(units).filter(|&left| left > 0)?;
            Some(work.checked_mul(all)?.div_ceil(left))
        };
        // Nearly always both ends of what is known of the load agree.
        let (least, most) = (takes(self.load.units_min()), takes(self.load.units_max()));
        match (least, most) {
            (Some(least), Some(most)) if least == most => Some(least),
            _ => self.stretch_exactly(work),
        }
    }

    fn stretch_exactly(&self, work: u128) -> Option<u128> {
        let one = Ratio::from_integer(BigInt::from(1));
        let left = one - self.load.to_fraction();
        if left <= Ratio::from_integer(BigInt::from(0)) {
            return None;
        }
        let time = Ratio::from_integer(BigInt::from(work)) / left;
        // What does not fit is longer than any period, and is found to be so.
        Some(u128::try_from(time.ceil().to_integer()).unwrap_or(u128::MAX >> 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interruptions(sources: &[(u64, u64)]) -> Interruptions {
        let mut load = Demand::default();
        for &(cost, every) in sources {
            load.add(Rate::new(Span::from_ns(cost), Span::from_ns(every)).unwrap());
        }
        Interruptions { load, once: 0 }
    }

    #[test]
    fn what_is_whole_is_not_rounded() {
        // 1 - 1/3 - 1/6 = 1/2: neither source is a whole number of binary units.
        let half = interruptions(&[(1, 3), (1, 6)]);
        assert_eq!(half.stretch(500), Some(1_000));
        assert_eq!(half.stretch(501), Some(1_002));
        assert_eq!(interruptions(&[(1, 3)]).stretch(500), Some(750));
        assert_eq!(interruptions(&[(1, 3)]).stretch(501), Some(752));
        assert_eq!(interruptions(&[]).stretch(7), Some(7));
    }

    #[test]
    fn interrupts_that_take_all_leave_nothing() {
        assert_eq!(interruptions(&[(1, 3), (2, 3)]).stretch(1), None);
        assert_eq!(interruptions(&[(1, 3), (1, 1)]).stretch(1), None);
        let nearly = interruptions(&[(u64::MAX - 1, u64::MAX)]);
        assert_eq!(nearly.stretch(1), Some(u128::from(u64::MAX)));
    }
}
