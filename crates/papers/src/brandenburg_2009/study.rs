//! Which task sets can be shown to be schedulable, overheads and all.

use shiftwork_analysis::global_edf::{bar, bcl, gfb};
use shiftwork_analysis::overheads::{Inflated, Structure, inflate};
use shiftwork_analysis::response::devi_anderson;
use shiftwork_analysis::verdicts::{Criterion, Rule};
use shiftwork_analysis::{Outcome, Sporadic, Steps};
use shiftwork_model::{Overheads, Span, TaskSet};
use shiftwork_taskset::generate::{self, Distribution, Key, Periods, Spread, Utilizations};

use super::CPUS;
use super::variants::Variant;

/// How many task sets are drawn for each utilization cap.
pub const SETS: u64 = 30;
/// How much each test may do.
const STEPS: u64 = 200_000;

/// The task sets of one picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// For people.
    pub name: &'static str,
    /// For files.
    pub file: &'static str,
    /// How utilizations are drawn.
    pub distribution: Distribution,
    /// Periods are uniform between these, in ms.
    pub periods_ms: [u64; 2],
}

impl Family {
    /// One set: tasks are drawn until the next would exceed the cap.
    ///
    /// # Errors
    /// In words, if none could be drawn.
    pub fn set(&self, cap: usize, index: u64) -> Result<TaskSet, String> {
        let [shortest, longest] = self.periods_ms.map(Span::from_ms);
        let options = generate::Options {
            cpus: CPUS,
            utilizations: Utilizations::UntilCap {
                distribution: self.distribution,
                cap: cap as f64,
            },
            periods: Periods {
                shortest,
                longest,
                granularity: Span::from_ms(1),
                spread: Spread::Uniform,
            },
            ..generate::Options::default()
        };
        let key = Key {
            seed: 2009 + shortest.as_ns() / 1_000_000,
            cell: cap as u64,
            index,
        };
        generate::generate(&options, key).map_err(|error| error.to_string())
    }
}

/// Whether the set can be shown to meet the criterion under the variant, with these overheads of it.
pub fn is_schedulable(
    set: &TaskSet,
    variant: &Variant,
    overheads: &Overheads,
    criterion: Criterion,
) -> bool {
    let cpus = variant.serving();
    let known = Rule::of_policy(variant.name).zip(Structure::of_policy(variant.name, set));
    let inflated = known.and_then(|(rule, structure)| {
        let bound = vec![cpus; set.tasks.len()];
        inflate(set, (rule, &structure), &bound, overheads)
    });
    let Some(inflated) = inflated else {
        return false;
    };
    let stand_in = |task: &Inflated| {
        let hard = criterion == Criterion::Hard;
        task.task.filter(|_| !hard || task.obstacle.is_none())
    };
    let tasks: Option<Vec<Sporadic>> = inflated.iter().map(stand_in).collect();
    let cpus = cpus.len();
    tasks.is_some_and(|tasks| match criterion {
        Criterion::Hard => meets_deadlines(&tasks, cpus),
        Criterion::Soft => is_bounded(&tasks, cpus),
    })
}

/// By any of three tests, the cheapest first: one for many light tasks, two for heavy ones.
fn meets_deadlines(tasks: &[Sporadic], cpus: usize) -> bool {
    let steps = || Steps::at_most(STEPS);
    matches!(gfb(tasks, cpus, &mut steps()), Outcome::Pass(()))
        || matches!(bcl(tasks, cpus, &mut steps()), Outcome::Pass(()))
        || matches!(bar(tasks, cpus, &mut steps()), Outcome::Pass(()))
}

/// Under G-EDF tardiness is bounded unless a task needs more than a CPU, or all need more than there is (Devi and
/// Anderson, RTSS 2005).
fn is_bounded(tasks: &[Sporadic], cpus: usize) -> bool {
    let bounds = devi_anderson(tasks, cpus, &mut Steps::at_most(STEPS));
    matches!(bounds, Outcome::Pass(_))
}
