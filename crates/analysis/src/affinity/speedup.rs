//! Deadlines under EDF on a tree of affinities of two levels, by how much faster CPUs would have to
//! be than those on which another scheduler can do it.

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_model::CpuSet;

use super::parts::parts;
use crate::exact::{Demand, Rate, units_of, whole};
use crate::{NotShown, Outcome, Placed, Steps};

/// The speed s at which EDF with the strong invariant schedules every set that is feasible at speed
/// 1, if tasks may use all of m CPUs or one of several disjoint clusters of at most k CPUs each.
///
/// s is the positive root of m s² - ((m - 2) s' + m) s - m s' = 0 with s' = 2 - 1/k. It grows with m
/// and k, for k = 1 up to 1 + sqrt 2 and for k = m up to (3 + sqrt 17) / 2. The polynomial is
/// negative at 0, so a positive number is at least s exactly if the polynomial is not negative there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    cpus: u32,
    cluster: u32,
}

impl Speed {
    /// For so many CPUs and clusters of at most `cluster` of them; `None` unless
    /// 1 <= `cluster` <= `cpus` < 2^20.
    pub fn new(cpus: usize, cluster: usize) -> Option<Self> {
        let in_range = 1 <= cluster && cluster <= cpus && cpus < 1 << 20;
        let [cpus, cluster] = [cpus, cluster].map(u32::try_from);
        in_range.then_some(Self {
            cpus: cpus.ok()?,
            cluster: cluster.ok()?,
        })
    }

    /// Whether the speed is at most `numerator` / `denominator`, both above zero. Exact.
    pub fn at_most(self, numerator: &BigInt, denominator: &BigInt) -> bool {
        let [m, k] = [self.cpus, self.cluster].map(BigInt::from);
        // The polynomial times k and the denominator squared.
        let twice: BigInt = &k * 2 - 1;
        let linear = (&m - 2) * &twice + &m * &k;
        let square = &m * &k * numerator * numerator;
        square >= (linear * numerator + m * twice * denominator) * denominator
    }

    /// The speed, for people.
    pub fn as_f64(self) -> f64 {
        let [m, k] = [self.cpus, self.cluster].map(f64::from);
        let s = 2.0 - 1.0 / k;
        let linear = (m - 2.0) * s + m;
        (linear + (linear * linear + 4.0 * m * m * s).sqrt()) / (2.0 * m)
    }

    /// The speed in multiples of 2^-32, rounded down; it is less than one such unit above.
    fn floor(self) -> u128 {
        let [m, k] = [self.cpus, self.cluster].map(i128::from);
        let linear = (m - 2) * (2 * k - 1) + m * k;
        // With numbers of 20 bits and units of 34, nothing here is above 2^110.
        let is_below = |units: i128| {
            m * k * units * units - ((linear * units) << 32) - ((m * (2 * k - 1)) << 64) <= 0
        };
        let (mut low, mut high) = (0, 1i128 << 34);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if is_below(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.unsigned_abs()
    }

    /// Whether these demands would fit so many CPUs if all were multiplied by the speed. Exact.
    fn leaves_room(self, demand: &Demand, cpus: usize) -> bool {
        let room = (units_of(whole()) * cpus as u128) << 32;
        let speed = self.floor();
        // At most 2^10 CPUs of 2^64 units, and speeds of 34 bits: the products are below 2^128
        // unless far more is demanded than there is.
        if demand.units_max().saturating_mul(speed + 1) <= room {
            return true;
        }
        if demand.units_min().saturating_mul(speed) > room {
            return false;
        }
        let needed: Ratio<BigInt> = demand.to_fraction();
        self.at_most(&(needed.denom() * BigInt::from(cpus)), needed.numer())
    }
}

/// Whether every task meets its deadlines under EDF with the strong invariant (`hpa-edf`,
/// `strong-edf`), because all would still fit their CPUs if they cost s times as much, which makes
/// them feasible on CPUs of speed 1, and so schedulable on CPUs of speed s; then divide all by s.
/// Sufficient, not exact; the comparison with the irrational s is.
///
/// CPUs that no task connects are looked at by themselves. Where one affinity holds all CPUs of a
/// part, the largest of the other affinities there makes the cluster of [`Speed`]; CPUs that no
/// other affinity holds are clusters of one.
///
/// Fails with a task that is none, or that has a deadline beyond its period, or an affinity that
/// makes a third level or overlaps another without nesting; otherwise with one of those that would
/// not fit.
///
/// # Assumes
/// Sporadic tasks, independent, preemptive, no self-suspension, deadlines not beyond the period,
/// which count with their densities. Affinities of two levels, bi-level or clustered: for deeper
/// trees nothing is claimed, although the abstract of the paper says "hierarchical".
///
/// # Cost
/// One step per task and CPU; fractions only where 64 binary places cannot decide.
///
/// # Source
/// V. Bonifaci, B. Brandenburg, G. D'Angelo, A. Marchetti-Spaccamela, "Multiprocessor Real-Time
/// Scheduling with Hierarchical Processor Affinities", ECRTS 2016, Theorem IV.8. It states the
/// limits 2.415 and 3.562; its proof has the s above for the given m and k.
pub fn speedup(tasks: &[Placed], steps: &mut Steps) -> Outcome<NotShown> {
    if let Some(place) = tasks.iter().position(|placed| density(placed).is_none()) {
        return Outcome::Fail(NotShown { place });
    }
    let masks: Vec<CpuSet> = tasks.iter().map(|placed| placed.cpus).collect();
    for part in parts(&masks) {
        let Some(()) = steps.take(part.members.len() * part.cpus.len()) else {
            return Outcome::StepLimit;
        };
        if let Err(place) = part_fits(tasks, &part.members, &part.cpus) {
            return Outcome::Fail(NotShown { place });
        }
    }
    Outcome::Pass(())
}

/// C / min(D, T), if it is a rate of at most 1 and the deadline is not beyond the period.
fn density(placed: &Placed) -> Option<Rate> {
    let task = &placed.task;
    let rate = Rate::new(task.cost, task.deadline)?;
    let possible = task.is_possible() && !rate.exceeds_one() && task.deadline <= task.period;
    (possible && !placed.cpus.is_empty()).then_some(rate)
}

/// Whether the tasks of a connected part would fit at its speed; the place of one that does not.
fn part_fits(tasks: &[Placed], members: &[usize], cpus: &CpuSet) -> Result<(), usize> {
    let mut clusters: Vec<(CpuSet, Demand)> = Vec::new();
    let mut cluster_of: Vec<Option<usize>> = vec![None; shiftwork_model::CPUS_MAX];
    let mut all = Demand::default();
    for &place in members {
        let mask = &tasks[place].cpus;
        let rate = density(&tasks[place]).ok_or(place)?;
        all.add(rate);
        if mask == cpus {
            continue;
        }
        // Of two levels: each CPU is in one cluster, and a cluster is one mask.
        let mut known = mask.iter().map(|cpu| cluster_of[cpu.index()]);
        match known.next().flatten() {
            Some(found) if clusters[found].0 == *mask => clusters[found].1.add(rate),
            Some(_) => return Err(place),
            None if known.any(|cluster| cluster.is_some()) => return Err(place),
            None => {
                mask.iter()
                    .for_each(|cpu| cluster_of[cpu.index()] = Some(clusters.len()));
                let mut demand = Demand::default();
                demand.add(rate);
                clusters.push((*mask, demand));
            }
        }
    }
    let largest = clusters.iter().map(|(mask, _)| mask.len()).max();
    let first = members.first().copied().unwrap_or_default();
    let speed = Speed::new(cpus.len(), largest.unwrap_or(1)).ok_or(first)?;
    let alone = |place: &usize| {
        let mut demand = Demand::default();
        density(&tasks[*place])
            .into_iter()
            .for_each(|rate| demand.add(rate));
        !speed.leaves_room(&demand, 1)
    };
    if let Some(&place) = members.iter().find(|place| alone(place)) {
        return Err(place);
    }
    for (mask, demand) in &clusters {
        if !speed.leaves_room(demand, mask.len()) {
            let inside = members.iter().find(|&&place| tasks[place].cpus == *mask);
            return Err(inside.copied().unwrap_or(first));
        }
    }
    match speed.leaves_room(&all, cpus.len()) {
        true => Ok(()),
        false => Err(first),
    }
}
