//! Random task sets, as the literature draws them.
//!
//! Floating point is used here and nowhere else, and only operations that give the same bits on
//! every machine: the four basic ones, comparison, rounding, and `libm`'s own logarithm and powers.

mod affinities;
mod feasible;
mod periods;
mod utilizations;

use shiftwork_model::{CPUS_MAX, RandomStream, Span, Task, TaskSet};

pub use affinities::{Shape, clusters_of};
pub use feasible::is_feasible;
pub use periods::{Deadlines, Periods, Spread};
pub use utilizations::{Distribution, Utilizations};

use crate::error::TasksetError;

/// What to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many CPUs the platform has.
    pub cpus: usize,
    /// How many tasks there are and how much each uses.
    pub utilizations: Utilizations,
    /// How periods are drawn.
    pub periods: Periods,
    /// How deadlines are drawn.
    pub deadlines: Deadlines,
    /// What the affinities look like.
    pub shape: Shape,
    /// No cost is below this. A period is drawn among those that make the cost long enough; only
    /// where none does, the cost is raised, and the utilization with it.
    pub min_cost: Span,
    /// Whether to draw again until the affinities leave enough room for every task, by the exact
    /// test [`is_feasible`].
    pub feasible: bool,
    /// How often to draw before giving up, where something has to be drawn again.
    pub attempts: u32,
}

/// Ten tasks that use half of four CPUs, periods log-uniform from 1 ms to 1 s, nothing else asked.
impl Default for Options {
    fn default() -> Self {
        Self {
            cpus: 4,
            utilizations: Utilizations::RandFixedSum {
                tasks: 10,
                total: 2.0,
            },
            periods: Periods::default(),
            deadlines: Deadlines::Implicit,
            shape: Shape::Global,
            min_cost: Span::from_ns(1),
            feasible: false,
            attempts: 10_000,
        }
    }
}

/// Which task set: the same key always gives the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The seed of everything.
    pub seed: u64,
    /// The cell of a study.
    pub cell: u64,
    /// Which task set of the cell.
    pub index: u64,
}

/// Draws a task set.
///
/// # Errors
/// [`TasksetError::Impossible`] if no task set is as the options say, or if none was found in as
/// many attempts as they allow.
pub fn generate(options: &Options, key: Key) -> Result<TaskSet, TasksetError> {
    check(options)?;
    let mut stream = RandomStream::new(key.seed, key.cell, key.index);
    let prepared = options.utilizations.prepare();
    for _ in 0..options.attempts.max(1) {
        let utilizations = prepared.draw(&mut stream, options.attempts)?;
        let set = draw(options, key, &utilizations, &mut stream);
        if !options.feasible || is_feasible(&set) {
            return Ok(set);
        }
    }
    Err(TasksetError::Impossible {
        what: format!("none of {} task sets was feasible", options.attempts.max(1)),
        accepted: "lower the utilization, choose wider affinities or allow more attempts"
            .to_string(),
    })
}

/// A task set with a task for each affinity that may be drawn by these options, and with the latest deadlines; of
/// shapes with more than one set of affinities, an example of all kinds. A policy that takes it takes every set
/// that [`generate`] draws.
///
/// Costs are as short as they can be: it says nothing about load.
pub fn every_affinity(options: &Options) -> TaskSet {
    let mut stream = RandomStream::new(0, 0, 0);
    let affinities = options.shape.prepare(options.cpus, &mut stream);
    let (cost, period) = (Span::from_ns(1), options.periods.longest);
    let deadline = options.deadlines.latest(period);
    let tasks = affinities
        .every()
        .enumerate()
        .map(|(index, affinity)| Task {
            deadline,
            ..Task::periodic(&format!("T{}", index + 1), cost, period, affinity)
        });
    let mut set = TaskSet::new("every affinity", options.cpus, tasks.collect());
    set.platform.clusters = affinities.clusters();
    set
}

fn check(options: &Options) -> Result<(), TasksetError> {
    let impossible = |what: String, accepted: String| TasksetError::Impossible { what, accepted };
    if options.cpus == 0 || options.cpus > CPUS_MAX {
        return Err(impossible(
            format!("a platform cannot have {} CPUs", options.cpus),
            format!("write 1 to {CPUS_MAX}"),
        ));
    }
    options.periods.check()?;
    options.shape.check(options.cpus)?;
    let longest = options.periods.longest_multiple();
    if options.min_cost > longest {
        return Err(impossible(
            format!("no task costs {} or more", options.min_cost),
            format!(
                "write at most {}, the longest period",
                options.periods.longest
            ),
        ));
    }
    options.utilizations.check()
}

/// One attempt at a task set.
fn draw(options: &Options, key: Key, utilizations: &[f64], stream: &mut RandomStream) -> TaskSet {
    let mut affinities = options.shape.prepare(options.cpus, stream);
    let tasks = utilizations
        .iter()
        .enumerate()
        .map(|(index, &utilization)| {
            let (cost, period) = options.periods.draw(utilization, options.min_cost, stream);
            let deadline = options.deadlines.draw(cost, period, stream);
            let affinity = affinities.draw(stream);
            Task {
                deadline,
                ..Task::periodic(&format!("T{}", index + 1), cost, period, affinity)
            }
        });
    let tasks = tasks.collect();
    let name = format!("generated {}-{}-{}", key.seed, key.cell, key.index);
    let mut set = TaskSet::new(&name, options.cpus, tasks);
    set.platform.clusters = affinities.clusters();
    set
}
