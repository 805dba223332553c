//! Section 6: random task sets under Linux and under the repaired Linux.

use shiftwork_model::{
    Affinity, CpuId, CpuSet, Fit, Heuristic, Instant, Order, Parcel, Span, TaskSet, Utilization,
    Work, pack_by,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_taskset::generate::{self, Key, Periods, Spread, Utilizations};
use shiftwork_trace::{Counters, InversionStatistics, Inversions};

use crate::measure::{Counts, Measure};

/// How many CPUs.
pub const CPUS: usize = 8;
/// Just below 95% of eight CPUs.
pub const UTILIZATION: f64 = 7.52;
/// How many tasks a set has.
pub const TASKS: [usize; 2] = [16, 40];
/// How many sets there are for each number of tasks.
pub const SETS: u64 = 10;
/// For how long each is run.
pub const LENGTH: Span = Span::from_s(600);
/// Linux, and the repaired Linux.
pub const POLICIES: [&str; 2] = ["dl-linux", "dl-sp"];

/// A set of the evaluation: periods log-uniform from 10 ms to 100 ms in steps of 1 ms, worst-fit packing in
/// the order of the tasks; a task that fits on no CPU migrates.
///
/// # Errors
/// In words, if no such set could be drawn.
pub fn set(tasks: usize, index: u64) -> Result<TaskSet, String> {
    let options = generate::Options {
        cpus: CPUS,
        utilizations: Utilizations::RandFixedSum {
            tasks,
            total: UTILIZATION,
        },
        periods: Periods {
            shortest: Span::from_ms(10),
            longest: Span::from_ms(100),
            granularity: Span::from_ms(1),
            spread: Spread::LogUniform,
        },
        ..generate::Options::default()
    };
    let key = Key {
        seed: 2021,
        cell: tasks as u64,
        index,
    };
    let mut set = generate::generate(&options, key).map_err(|error| error.to_string())?;
    bind(&mut set);
    Ok(set)
}

/// Binds tasks to CPUs, worst fit, as long as those have room beside the reserve; the others migrate.
fn bind(set: &mut TaskSet) {
    let groups: Vec<CpuSet> = set.platform.all().iter().map(CpuSet::single).collect();
    let worst_fit = Heuristic {
        fit: Fit::Worst,
        decreasing: false,
    };
    let reserve = set.scheduler.reserve;
    let mut bound: Vec<usize> = (0..set.tasks.len()).collect();
    // A task that does not fit takes no room from those after it.
    let packing = loop {
        let parcels = bound.iter().map(|&task| &set.tasks[task]).map(|task| {
            let beside = task.period - reserve.of(task.period);
            Parcel {
                utilization: Utilization::new(task.cost, beside)
                    .expect("a reserve leaves something of a period"),
                cpus: task.affinity.cpus(),
            }
        });
        let packing = pack_by(worst_fit, parcels, &groups);
        match packing.overflowed.first() {
            Some(&first) => bound.remove(first),
            None => break packing,
        };
    };
    for (task, group) in bound.into_iter().zip(packing.group_of) {
        let cpu = group.expect("every task may use every CPU");
        set.tasks[task].affinity = Affinity::pinned(CpuId::from_index(cpu));
    }
}

/// The same tasks with jobs that use only so many percent of their budgets.
pub fn using(percent: u64, mut set: TaskSet) -> TaskSet {
    for task in &mut set.tasks {
        // Rounded down; costs are milliseconds long.
        let work = u128::from(task.cost.as_ns()) * u128::from(percent) / 100;
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        task.work = Work::Constant(Span::from_ns(work));
    }
    set
}

/// What came out of one run, or of several together.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Lateness, moves and late replenishments.
    pub counts: Counts,
    /// Jobs that were late.
    pub misses: u64,
    /// Running jobs that had to wait.
    pub preemptions: u64,
    /// Stretches of time in which a job waited that only a shift would have let run.
    pub inversions: u64,
    /// The sum of their lengths.
    pub inverted_ns: u64,
    /// The length of the longest.
    pub inverted_longest_ns: u64,
}

impl Outcome {
    /// Both together.
    pub fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.misses += other.misses;
        self.preemptions += other.preemptions;
        self.inversions += other.inversions;
        self.inverted_ns += other.inverted_ns;
        self.inverted_longest_ns = self.inverted_longest_ns.max(other.inverted_longest_ns);
    }
}

/// Runs a set under the policy of this name.
///
/// # Errors
/// In words, if there is no such policy, or it does not take the set.
pub fn run(set: &TaskSet, policy: &str, length: Span) -> Result<Outcome, String> {
    let entry = registry::find(policy).map_err(|error| error.to_string())?;
    let built = entry.build(set).map_err(|error| error.to_string())?;
    let horizon = Instant::ZERO + length;
    let options = Options {
        seed: 1,
        horizon,
        overheads: None,
        reserve_server: false,
    };
    let measure = Measure::new(set);
    let counters = Counters::new(set, set.platform.cpus);
    let mut recorder = ((measure, counters), Inversions::new(set, Order::Edf));
    Simulation::new(set, built, &entry.traits, options).run(&mut recorder);
    let ((measure, counters), inversions) = recorder;
    let summary = counters.finish(horizon);
    let InversionStatistics {
        count,
        total_ns,
        longest_ns,
        ..
    } = inversions.finish(horizon).run.affinity_related;
    Ok(Outcome {
        counts: measure.all(),
        misses: summary.deadline_misses,
        preemptions: summary.preemptions,
        inversions: count,
        inverted_ns: total_ns,
        inverted_longest_ns: longest_ns.unwrap_or(0),
    })
}
