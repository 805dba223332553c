//! What runs pay for: preemptions, migrations and shifts.

use shiftwork_model::{Affinity, Instant, Span};
use shiftwork_sim::{Options, Simulation};
use shiftwork_study::Plan;
use shiftwork_trace::Counters;

/// Counts of several runs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Paid {
    pub jobs: u64,
    pub preemptions: u64,
    pub migrations: u64,
    pub shifts: u64,
}

/// For how long each set runs.
const LENGTH: Span = Span::from_ms(500);

/// What the first `sets` sets of a cell pay for under this contender, which packs nothing, with the worst overheads.
///
/// # Errors
/// In words, if there is no such contender, or a set cannot be drawn or run.
pub(super) fn paid(plan: &Plan, cell: usize, label: &str, sets: u64) -> Result<Paid, String> {
    let mut all = plan.contenders.iter();
    let contender = all
        .find(|one| one.file.label == label)
        .ok_or_else(|| format!("no contender {label}"))?;
    let mut paid = Paid::default();
    for index in 0..sets {
        let set = plan.draw(&plan.cells[cell], index);
        let mut set = set.map_err(|error| error.to_string())?;
        if contender.ignores_affinities() {
            let all = Affinity::new(set.platform.all()).ok_or("a platform has CPUs")?;
            set.tasks.iter_mut().for_each(|task| task.affinity = all);
        }
        let policy = contender.entry.build(&set);
        let policy = policy.map_err(|error| error.to_string())?;
        let horizon = Instant::ZERO + LENGTH;
        let options = Options {
            seed: index,
            horizon,
            overheads: contender.worst.clone(),
            reserve_server: false,
        };
        let mut counters = Counters::new(&set, set.platform.cpus);
        Simulation::new(&set, policy, &contender.entry.traits, options).run(&mut counters);
        let summary = counters.finish(horizon);
        paid.jobs += summary.jobs;
        paid.preemptions += summary.preemptions;
        paid.migrations += summary.migrations;
        paid.shifts += summary.shifts;
    }
    Ok(paid)
}

impl Paid {
    /// For each 100 jobs, to a tenth: preemptions, migrations and shifts.
    pub fn per_100_jobs(&self) -> [String; 3] {
        [self.preemptions, self.migrations, self.shifts].map(|count| {
            let tenths = (count * 1_000).div_ceil(self.jobs.max(1));
            format!("{}.{}", tenths / 10, tenths % 10)
        })
    }
}
