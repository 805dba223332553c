//! Schedulers that decide when something happens.

use std::cell::OnceCell;

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::{PolicyTraits, Preemption, Span};

use super::charges::Charges;
use super::{Obstacle, StandIn};
use crate::Sporadic;
use crate::exact::{Demand, Rate, units_of, whole};
use crate::filter::Interval;

/// The tasks of the part, in its order.
pub(super) fn inflate(
    policy: &PolicyTraits,
    tasks: &[Sporadic],
    charges: &Charges,
) -> Vec<StandIn> {
    let interrupts = Interruptions::of(policy, tasks, charges);
    let Terms { own, beside } = Terms::new(policy, charges, tasks.len());
    let inflated = |task: &Sporadic| {
        let work = task.cost_ns() + own;
        match interrupts.stretch(work).zip(charges.queued) {
            None => StandIn::none(Obstacle::Interrupts),
            Some((cost, queued)) => {
                let left = |span: Span| u128::from(span.as_ns()).saturating_sub(queued);
                let [period, deadline] = [task.period, task.deadline].map(left);
                StandIn::new(queued, [cost + beside, period, deadline])
            }
        }
    };
    tasks.iter().map(inflated).collect()
}

/// What is charged to each job, whatever it costs: C' = (C + own) / (1 - u) + beside.
#[derive(Clone, Copy, Debug)]
struct Terms {
    own: u128,
    beside: u128,
}

/// The same in floats, for sums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NearTerms {
    pub own: Interval,
    beside: Interval,
    tick: Interval,
    /// Of each release; zero with a dedicated CPU.
    release: Interval,
}

impl NearTerms {
    /// In a part with so many tasks.
    pub fn new(policy: &PolicyTraits, charges: &Charges, tasks: usize) -> Self {
        let Terms { own, beside } = Terms::new(policy, charges, tasks);
        let release = if charges.dedicated {
            0
        } else {
            charges.release
        };
        Self {
            own: Interval::of(own),
            beside: Interval::of(beside),
            tick: Interval::ratio(charges.tick, charges.quantum.as_ns().into()),
            release: Interval::of(release),
        }
    }

    /// What interrupts leave of each CPU in the long run, where the sum of all 1 / T of its tasks is this.
    pub fn left(&self, often: Interval) -> Interval {
        Interval::of(1) - (self.tick + self.release * often)
    }

    /// The sum of all C' / T, costs not rounded up, from what is left and the sums of all C / T and 1 / T.
    pub fn stretched(&self, left: Interval, [sizes, windows]: [Interval; 2]) -> Interval {
        (sizes + self.own * windows) / left + self.beside * windows
    }
}

impl Terms {
    /// In a part with so many tasks.
    fn new(policy: &PolicyTraits, charges: &Charges, tasks: usize) -> Self {
        // What a job does to others: another one is switched to when it is done, and refills its caches.
        let is_preemptive = policy.preemption != Preemption::Never;
        let stretches = if is_preemptive { 2 } else { 1 };
        let refill = if is_preemptive { charges.refill } else { 0 };
        Self {
            own: stretches * (charges.switch + once(charges, tasks)) + refill,
            beside: match charges.dedicated {
                true => charges.ipi + charges.release,
                false => charges.ipi,
            },
        }
    }
}

/// What interrupts may take of any stretch of time beyond what they take in the long run: one of each source.
fn once(charges: &Charges, tasks: usize) -> u128 {
    match charges.dedicated {
        true => charges.tick,
        false => charges.tick + charges.release * tasks as u128,
    }
}

/// What interrupts take of each CPU of a part.
struct Interruptions<'a> {
    tasks: &'a [Sporadic],
    charges: &'a Charges,
    /// Time that a job takes as a multiple of its work in the long run, in floating point; `None`
    /// if nothing is left.
    factor: Option<Interval>,
    /// In the long run, exactly: summed up only where that is in doubt.
    load: OnceCell<Load>,
}

impl<'a> Interruptions<'a> {
    fn of(policy: &PolicyTraits, tasks: &'a [Sporadic], charges: &'a Charges) -> Self {
        // Two roundings: the period as a float, and the quotient.
        let often = Interval::sum_over(tasks, 2, |task| match task.period.as_ns() {
            0 => 0.0,
            period => 1.0 / period as f64,
        });
        let left = NearTerms::new(policy, charges, tasks.len()).left(often);
        Self {
            tasks,
            charges,
            factor: (left.high() > 0.0).then(|| Interval::of(1) / left),
            load: OnceCell::new(),
        }
    }

    /// How long so much work takes in the long run, rounded up; `None` if nothing is left for it.
    fn stretch(&self, work: u128) -> Option<u128> {
        if self.charges.tick == 0 && (self.charges.dedicated || self.charges.release == 0) {
            return Some(work);
        }
        let factor = self.factor?;
        // Where something may or may not be left, anything is possible.
        let time = match factor.low() > 0.0 {
            true => (factor * Interval::of(work)).ceil(),
            false => None,
        };
        match time {
            Some(time) => Some(time.into()),
            None => self.load.get_or_init(|| self.exactly()).stretch(work),
        }
    }

    fn exactly(&self) -> Load {
        let mut load = Demand::default();
        let mut add = |cost: u128, every: Span| {
            // A cost that is longer than any span takes all of every CPU, as the longest does.
            let cost = Span::from_ns(u64::try_from(cost).unwrap_or(u64::MAX));
            if let Some(rate) = Rate::new(cost, every) {
                load.add(rate);
            }
        };
        add(self.charges.tick, self.charges.quantum);
        if !self.charges.dedicated {
            for task in self.tasks {
                add(self.charges.release, task.period);
            }
        }
        Load(load)
    }
}

/// What interrupts take in the long run, exactly.
struct Load(Demand);

impl Load {
    /// How long so much work takes in the long run, rounded up; `None` if nothing is left for it.
    fn stretch(&self, work: u128) -> Option<u128> {
        let all = units_of(whole());
        let takes = |units: u128| {
            let left = all.checked_sub(units).filter(|&left| left > 0)?;
            Some(work.checked_mul(all)?.div_ceil(left))
        };
        // Nearly always both ends of what is known of the load agree.
        let (least, most) = (takes(self.0.units_min()), takes(self.0.units_max()));
        match (least, most) {
            (Some(least), Some(most)) if least == most => Some(least),
            _ => self.stretch_exactly(work),
        }
    }

    fn stretch_exactly(&self, work: u128) -> Option<u128> {
        let one = Ratio::from_integer(BigInt::from(1));
        let left = one - self.0.to_fraction();
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

    fn load_of(sources: &[(u64, u64)]) -> Load {
        let mut load = Demand::default();
        for &(cost, every) in sources {
            load.add(Rate::new(Span::from_ns(cost), Span::from_ns(every)).unwrap());
        }
        Load(load)
    }

    #[test]
    fn what_is_whole_is_not_rounded() {
        // 1 - 1/3 - 1/6 = 1/2: neither source is a whole number of binary units.
        let half = load_of(&[(1, 3), (1, 6)]);
        assert_eq!(half.stretch(500), Some(1_000));
        assert_eq!(half.stretch(501), Some(1_002));
        assert_eq!(load_of(&[(1, 3)]).stretch(500), Some(750));
        assert_eq!(load_of(&[(1, 3)]).stretch(501), Some(752));
        assert_eq!(load_of(&[]).stretch(7), Some(7));
    }

    #[test]
    fn interrupts_that_take_all_leave_nothing() {
        assert_eq!(load_of(&[(1, 3), (2, 3)]).stretch(1), None);
        assert_eq!(load_of(&[(1, 3), (1, 1)]).stretch(1), None);
        let nearly = load_of(&[(u64::MAX - 1, u64::MAX)]);
        assert_eq!(nearly.stretch(1), Some(u128::from(u64::MAX)));
    }

    #[test]
    fn floats_stretch_as_fractions_do() {
        use shiftwork_model::{CpuSet, LinearCost, Overheads, RandomStream, TaskSet};

        use crate::overheads::{Site, Structure};

        let set = TaskSet::new("", 2, Vec::new());
        let mut nothing_left = 0;
        for seed in 0..300 {
            let mut stream = RandomStream::new(seed, 97, 0);
            let task = |stream: &mut RandomStream| {
                let period = Span::from_us(100 + 100 * stream.below(50));
                Sporadic {
                    cost: Span::from_us(1),
                    period,
                    deadline: period,
                }
            };
            let tasks: Vec<Sporadic> = (0..1 + stream.below(20))
                .map(|_| task(&mut stream))
                .collect();
            let mut cost = |most| LinearCost {
                base: Span::from_us(stream.below(most)),
                per_task: Span::ZERO,
            };
            let overheads = Overheads {
                tick: cost(4),
                release: cost(80),
                ..Overheads::default()
            };
            let policy = &shiftwork_policy::registry::find("g-edf").unwrap().traits;
            let structure = Structure::of(policy, &set);
            let site = Site::new(&set.platform, &CpuSet::first(2));
            let members = (&site, tasks.len());
            let charges = Charges::new(&set, (policy, &structure), members, &overheads);
            let found = Interruptions::of(policy, &tasks, &charges);
            for _ in 0..20 {
                let work = u128::from(stream.below(50_000_000));
                let expected = found.exactly().stretch_exactly(work);
                assert_eq!(found.stretch(work), expected, "seed {seed}, {work}");
                nothing_left += usize::from(expected.is_none());
            }
        }
        assert!((200..4_000).contains(&nothing_left), "{nothing_left}");
    }
}
