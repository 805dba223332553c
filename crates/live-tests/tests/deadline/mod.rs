//! Linux's own `SCHED_DEADLINE` beside its model: the schedules of the same task sets are compared.
//!
//! Threads execute a task set, one for each task; the kernel traces their switches. The set is also
//! simulated under `dl-linux`. Both schedules have to be the same but for [`TOLERANCE_NS`] a
//! switch. What the model leaves open has a name in [`variants`], and then one of these has to be
//! the kernel's schedule.
//!
//! Random task sets are taken only where nothing is left open, so that all of their switches count.

mod cpusets;
pub mod schedule;
mod sets;
mod stage;
pub mod work;

use shiftwork_model::{Instant, Span, Task, TaskSet};

use self::cpusets::Halves;
use self::schedule::{Difference, Schedule};
use self::sets::Kind;
use self::work::NOT_ADMITTED;
use crate::common::run as simulate;
use crate::long;

/// By so much a switch of the kernel may come earlier or later than the model's.
const TOLERANCE_NS: u64 = 500_000;
/// How long task sets run.
const HORIZON: Instant = Instant::from_ns(1_000_000_000);
/// The CPU of the machine that is CPU 0 of the task sets, where those leave one to the test
/// process.
const FIRST: usize = 1;
/// Work takes longer than the model knows by something like this.
const LONGER: [Span; 3] = [Span::from_us(20), Span::from_us(60), Span::from_us(100)];

/// The schedule of the model.
fn modelled(set: &TaskSet, end: Instant) -> Schedule {
    let done = simulate(set, "dl-linux", end);
    Schedule::of_records(&done.records, set.platform.cpus, end.as_ns())
}

/// The differences that are more than switches a little earlier or later.
fn beyond_tolerance(model: &Schedule, other: &Schedule) -> Vec<Difference> {
    let mut found = model.differences(other);
    found.retain(|difference| difference.exceeds(TOLERANCE_NS));
    found
}

/// What the model may do instead, each with what it does not say or that the kernel does otherwise.
fn variants(set: &TaskSet, end: Instant) -> Vec<(String, Schedule)> {
    let mirrored = modelled(&sets::mirrored(set), end).mirrored();
    let mut variants = vec![("which of several free CPUs is taken".to_owned(), mirrored)];
    for by in LONGER {
        let longer = modelled(&sets::longer(set, by), end);
        variants.push((format!("work takes longer by {by}"), longer));
    }
    for count in 1..set.tasks.len() {
        for by in LONGER {
            let later = modelled(&sets::later_from(set, count, by), end);
            variants.push((
                format!("order of ties (from task {count} on {by} later)"),
                later,
            ));
        }
    }
    variants
}

/// Whether the order of the model's switches follows from what it says.
fn is_determined(set: &TaskSet, end: Instant) -> bool {
    let model = modelled(set, end);
    let agrees = |(_, variant): &(String, Schedule)| beyond_tolerance(&model, variant).is_empty();
    variants(set, end).iter().all(agrees)
}

/// Seeds of task sets with a determined schedule, by kind. Without `SHIFTWORK_LONG` only the first
/// of each kind is used.
const SEEDS: [(Kind, [u64; 10]); 3] = [
    (Kind::Clustered, [4, 5, 7, 8, 9, 10, 13, 16, 17, 18]),
    (
        Kind::SemiPartitioned,
        [2, 9, 29, 32, 39, 41, 47, 62, 75, 84],
    ),
    (
        Kind::Suspending,
        [51, 136, 141, 143, 149, 170, 174, 281, 282, 291],
    ),
];

/// The random task sets of a kind.
fn random_sets(kind: Kind) -> impl Iterator<Item = TaskSet> {
    let seeds = SEEDS.into_iter().filter(move |(of, _)| *of == kind);
    let count = if long() { 10 } else { 1 };
    let seeds = seeds.flat_map(|(_, seeds)| seeds);
    seeds.take(count).map(move |seed| sets::random(kind, seed))
}

/// The seeds are of task sets that leave the kernel no choice, and that it admits.
pub fn random_sets_leave_sched_deadline_nothing_open() -> Result<(), String> {
    let mut others = Vec::new();
    for (kind, seeds) in SEEDS {
        for seed in seeds {
            let set = sets::random(kind, seed);
            if !is_determined(&set, HORIZON) || kind == Kind::Clustered && !is_admitted(&set) {
                others.push(set.name);
            }
        }
    }
    match others.is_empty() {
        true => Ok(()),
        false => Err(format!("none of those: {others:?}")),
    }
}

/// Whether the tasks of each cluster need at most 95% of it.
fn is_admitted(set: &TaskSet) -> bool {
    set.platform.clusters.iter().all(|cluster| {
        let within = |task: &&Task| (*task.affinity.cpus() - *cluster).is_empty();
        let percent = |task: &Task| (task.cost.as_ns() * 100).div_ceil(task.period.as_ns());
        let needed: u64 = set.tasks.iter().filter(within).map(percent).sum();
        needed <= 95 * cluster.len() as u64
    })
}

/// Lets the kernel take threads of `SCHED_DEADLINE` with any affinity.
///
/// # Errors
/// If it does not.
pub fn allow_affinities() -> Result<(), String> {
    stage::prepare(false)
}

/// Clusters of two CPUs, with the kernel's admission.
pub fn sched_deadline_in_clusters_switches_as_its_model() -> Result<(), String> {
    stage::prepare(true)?;
    let _halves = Halves::make()?;
    all_agree(&random_sets(Kind::Clustered).collect::<Vec<_>>(), 0)
}

/// Bound and migrating tasks without admission, and suspensions.
pub fn sched_deadline_with_affinities_switches_as_its_model() -> Result<(), String> {
    stage::prepare(false)?;
    let mut sets = vec![sets::tang_5(), sets::tang_6(), sets::tang_6_asleep()];
    if long() {
        sets.extend([
            sets::tang_4(),
            sets::blind(),
            sets::overrunning(),
            sets::two_free(),
            sets::tie(),
        ]);
    }
    sets.extend(random_sets(Kind::SemiPartitioned));
    sets.extend(random_sets(Kind::Suspending));
    all_agree(&sets, FIRST)
}

/// Kernels before 7 go on counting threads that have ended, and then refuse some of the sets that
/// they would admit alone. Those sets are reported as left out, and more than half have to be
/// compared.
fn all_agree(sets: &[TaskSet], first: usize) -> Result<(), String> {
    let mut different = Vec::new();
    let mut left_out = 0;
    for set in sets {
        if let Err(why) = agree(set, first) {
            if why.contains(NOT_ADMITTED) && is_admitted(set) {
                println!("LEFT OUT, {}: {why}", set.name);
                left_out += 1;
                continue;
            }
            println!("{why}\n{}", shiftwork_taskset::write(set));
            different.push(set.name.clone());
        }
    }
    if 2 * left_out >= sets.len() {
        return Err(format!("{left_out} of {} are not admitted", sets.len()));
    }
    match different.is_empty() {
        true => Ok(()),
        false => Err(format!("differ, see above: {different:?}")),
    }
}

/// Performs the task set; the error shows both around the first difference that has no name.
fn agree(set: &TaskSet, first: usize) -> Result<(), String> {
    let kernel = stage::perform(set, first, HORIZON)?;
    let model = modelled(set, HORIZON);
    let longest = |model: &Schedule| {
        let spans = model.differences(&kernel).into_iter();
        spans
            .map(|difference| difference.to_ns - difference.from_ns)
            .max()
            .unwrap_or(0)
            / 1_000
    };
    let found = beyond_tolerance(&model, &kernel);
    let says = format!(
        "{}: {} switches of the model, {} of the kernel",
        set.name,
        model.switches(),
        kernel.switches()
    );
    let Some(first) = found.first() else {
        println!("{says}, longest disagreement {} us", longest(&model));
        return Ok(());
    };
    let explains =
        |(_, variant): &(String, Schedule)| beyond_tolerance(variant, &kernel).is_empty();
    if let Some((name, variant)) = variants(set, HORIZON).into_iter().find(explains) {
        println!(
            "{says}, {} differences: {name}; else {} us",
            found.len(),
            longest(&variant)
        );
        return Ok(());
    }
    let names: Vec<String> = set.tasks.iter().map(|task| task.name.clone()).collect();
    let (from_ns, to_ns) = (
        first.from_ns.saturating_sub(60_000_000),
        first.from_ns + 60_000_000,
    );
    let shown = |schedule: &Schedule| schedule.show(from_ns, to_ns, &names).join("\n");
    Err(format!(
        "{says}, {} differences, the first {first:?}\nmodel\n{}\nkernel\n{}",
        found.len(),
        shown(&model),
        shown(&kernel),
    ))
}
