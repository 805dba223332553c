//! Semi-partitioned affinities, every task on one CPU or on all: the two conditions under which the
//! repaired SCHED_DEADLINE bounds tardiness.

use shiftwork_model::{CpuId, CpuSet, Share};

use crate::exact::{Demand, Rate, fit};
use crate::{Outcome, Placed, Sporadic, Steps};

/// How utilizations and the limit are rounded before they are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Not at all.
    Exact,
    /// As the Linux kernel does (`to_ratio`): down to multiples of 2^-20. So the kernel lets in up to
    /// 2^-20 more per task than the limit says, and as its limit is rounded down too, up to 2^-20 per
    /// CPU less.
    Kernel,
}

/// What is more than its limit, or why the conditions do not speak of the tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TooMuch {
    /// This task is none (a cost or period of zero), needs more than a CPU, has a deadline that is
    /// not its period, or is bound to neither one CPU nor all.
    OutOfDomain {
        /// Its place among the tasks.
        place: usize,
    },
    /// Condition (1): all tasks together need more than the limit times the number of CPUs.
    Total {
        /// The sum of the utilizations.
        needed: Demand,
        /// For how many CPUs.
        cpus: usize,
    },
    /// Condition (2): those that are bound to this CPU need more than the limit.
    OneCpu {
        /// The CPU, the lowest of those where it is so.
        cpu: CpuId,
        /// The sum of the utilizations there.
        needed: Demand,
    },
}

/// Whether the tasks, each bound to one of these CPUs or to all of them, meet both conditions of
/// Tang et al.: (1) all of them together need at most `limit` of each CPU, and (2) so do those bound
/// to any one CPU. What fits a limit exactly passes.
///
/// With exact rounding a pass means that tardiness is bounded under EDF with the strong invariant
/// (`strong-edf`) and under SCHED_DEADLINE with the four repairs (`dl-sp`), and at a limit of 1 both
/// conditions are exact: if one fails, tardiness grows without bound under every scheduler. The
/// kernel's rounding says what such a kernel lets in. That promises the same as long as the limit
/// leaves 2^-20 per task free, at the default of 95% up to 52,000 tasks per CPU.
///
/// # Assumes
/// Sporadic tasks with implicit deadlines, CPUs alike.
///
/// # Cost
/// One step per task; fractions only where 64 binary places cannot decide.
///
/// # Source
/// S. Tang, J. Anderson, L. Abeni, "On the Defectiveness of SCHED_DEADLINE w.r.t. Tardiness and
/// Affinities, and a Partial Fix", RTNS 2021, conditions (1) and (2); for affinities of this shape
/// they are Hall's condition. The kernel's rounding: `to_ratio` and `__dl_overflow` of Linux, there
/// with 64 bits, here without overflow for runtimes above 4.8 hours.
pub fn spl(
    tasks: &[Placed],
    cpus: &CpuSet,
    terms: (Share, Rounding),
    steps: &mut Steps,
) -> Outcome<TooMuch> {
    if steps.take(tasks.len()).is_none() {
        return Outcome::StepLimit;
    }
    let (limit, rounding) = terms;
    let mut total = Sum::default();
    let mut pinned: Vec<(CpuId, Sum)> = cpus.iter().map(|cpu| (cpu, Sum::default())).collect();
    for (place, placed) in tasks.iter().enumerate() {
        let Some(rate) = rate_in_domain(placed, cpus) else {
            return Outcome::Fail(TooMuch::OutOfDomain { place });
        };
        total.add(&placed.task, rate);
        if placed.cpus.len() == 1
            && let Some(cpu) = placed.cpus.lowest()
            && let Ok(found) = pinned.binary_search_by_key(&cpu, |&(cpu, _)| cpu)
        {
            pinned[found].1.add(&placed.task, rate);
        }
    }
    let count = cpus.len();
    if !total.fits(count, limit, rounding) {
        let needed = total.exact;
        return Outcome::Fail(TooMuch::Total {
            needed,
            cpus: count,
        });
    }
    match pinned
        .into_iter()
        .find(|(_, sum)| !sum.fits(1, limit, rounding))
    {
        None => Outcome::Pass(()),
        Some((cpu, sum)) => Outcome::Fail(TooMuch::OneCpu {
            cpu,
            needed: sum.exact,
        }),
    }
}

fn rate_in_domain(placed: &Placed, cpus: &CpuSet) -> Option<Rate> {
    let task = &placed.task;
    let one = placed.cpus.len() == 1 && placed.cpus.is_subset(cpus);
    let rate = Rate::new(task.cost, task.period)?;
    let possible = task.is_possible() && !rate.exceeds_one() && task.deadline == task.period;
    (possible && (one || placed.cpus == *cpus)).then_some(rate)
}

/// Bits after the binary point in the kernel's ratios (`BW_SHIFT`).
const KERNEL_BITS: u32 = 20;

/// A sum of utilizations, both ways.
#[derive(Clone, Debug, Default)]
struct Sum {
    exact: Demand,
    kernel: u128,
}

impl Sum {
    /// The rate is that of the task, whose period is above zero.
    fn add(&mut self, task: &Sporadic, rate: Rate) {
        self.exact.add(rate);
        self.kernel += (task.cost_ns() << KERNEL_BITS) / task.period_ns();
    }

    fn fits(&self, cpus: usize, limit: Share, rounding: Rounding) -> bool {
        match rounding {
            Rounding::Exact => fit([&self.exact], cpus, limit),
            Rounding::Kernel => {
                let cpu =
                    (u128::from(limit.billionths()) << KERNEL_BITS) / u128::from(Share::WHOLE);
                self.kernel <= cpu * cpus as u128
            }
        }
    }
}
