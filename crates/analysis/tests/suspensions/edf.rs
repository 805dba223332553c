//! Whether tasks that suspend themselves meet their deadlines under EDF: the test against its definition, with every choice and every length
//! tried, and against schedules.

use shiftwork_analysis::uniprocessor::{Suspending, edf_with_suspensions};
use shiftwork_analysis::{Outcome, Steps};
use shiftwork_model::RandomStream;

use super::schedules::{Order, longest_responses};
use super::{Plain, count, random_tasks};

/// Only sets are looked at whose periods have a common multiple up to this: so much longer than all deadlines nothing new comes.
const LARGEST_MULTIPLE: u64 = 2_000;

/// The condition of the theorem, or one that differs from it in one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Proved,
    /// The task's own suspension is left out.
    NoOwnSuspension,
    /// Those that count as computing do not while they are suspended.
    NoSuspensions,
    /// Of the others only jobs count that are released and due within the length.
    NothingCarriedIn,
    /// Of the others whole periods alone count.
    WholePeriods,
    /// Only lengths of the deadline itself matter.
    DeadlineAlone,
}

impl Variant {
    const WRONG: [Self; 5] = [
        Self::NoOwnSuspension,
        Self::NoSuspensions,
        Self::NothingCarriedIn,
        Self::WholePeriods,
        Self::DeadlineAlone,
    ];
}

/// Whether the set passes.
pub fn passes(tasks: &[Plain]) -> bool {
    let tasks: Vec<Suspending> = tasks.iter().map(Plain::suspending).collect();
    match edf_with_suspensions(&tasks, &mut Steps::ordinary()) {
        Outcome::Pass(()) => true,
        Outcome::Fail(_) => false,
        Outcome::StepLimit => panic!("out of steps: {tasks:?}"),
    }
}

/// Random tasks, and a common multiple of their periods.
fn random(stream: &mut RandomStream) -> Option<(Vec<Plain>, u64)> {
    let tasks = random_tasks(stream, 4, false);
    let is_multiple = |of: &u64| tasks.iter().all(|task| of.is_multiple_of(task.period));
    let multiple = (1..=LARGEST_MULTIPLE).find(is_multiple)?;
    Some((tasks, multiple))
}

/// How many jobs are released and due within the length.
fn due(task: &Plain, length: u64) -> u64 {
    let beyond = length.checked_sub(task.deadline);
    beyond.map_or(0, |beyond| beyond / task.period + 1)
}

/// What a task adds that is not one of those that count as computing.
fn interferes(task: &Plain, length: u64, variant: Variant) -> u64 {
    let (whole, part) = (length / task.period, length % task.period);
    match variant {
        Variant::NothingCarriedIn => due(task, length) * task.cost,
        Variant::WholePeriods => whole * task.cost,
        _ => whole * task.cost + task.cost.min(part),
    }
}

/// Whether a task is in time by a choice, a bit for each task that counts as computing.
fn is_in_time(
    (tasks, multiple): (&[Plain], u64),
    own: usize,
    choice: u32,
    variant: Variant,
) -> bool {
    let sum = |length: u64| -> u64 {
        let adds = |(place, task): (usize, &Plain)| {
            let suspension = match variant {
                Variant::NoSuspensions if place != own => 0,
                Variant::NoOwnSuspension if place == own => 0,
                _ => task.suspension,
            };
            match choice >> place & 1 {
                1 => due(task, length) * (task.cost + suspension),
                _ => interferes(task, length, variant),
            }
        };
        tasks.iter().enumerate().map(adds).sum()
    };
    let deadline = tasks[own].deadline;
    match variant {
        Variant::DeadlineAlone => sum(deadline) <= deadline,
        _ => {
            // After that the same comes again, and more of it if in the multiple more comes than fits.
            let longest = tasks.iter().map(|task| task.deadline).max().unwrap_or(0) + multiple;
            let repeats = sum(longest + multiple) - sum(longest);
            repeats < multiple && (deadline..=longest).all(|length| sum(length) <= length)
        }
    }
}

/// Whether each task is in time by some choice.
fn by_definition(set: (&[Plain], u64), variant: Variant) -> bool {
    let number = set.0.len();
    (0..number).all(|own| {
        let mut choices = (0_u32..1 << number).filter(|choice| choice >> own & 1 == 1);
        choices.any(|choice| is_in_time(set, own, choice, variant))
    })
}

fn misses(tasks: &[Plain], stream: &mut RandomStream) -> bool {
    let longest = longest_responses(tasks, Order::Deadline, stream, 100);
    let mut all = tasks.iter().zip(longest);
    all.any(|(task, response)| response > task.deadline)
}

#[test]
fn no_schedule_contradicts_and_the_search_misses_few_choices() {
    let [mut passed, mut missed, mut beyond] = [0; 3];
    for seed in 0..count(4_000) {
        let stream = &mut RandomStream::new(seed, 145, 0);
        let Some((tasks, multiple)) = random(stream) else {
            continue;
        };
        let set = (&tasks[..], multiple);
        let [defined, found] = [by_definition(set, Variant::Proved), passes(&tasks)];
        assert!(defined || !found, "seed {seed}: {tasks:?}");
        passed += u64::from(found);
        missed += u64::from(defined && !found);
        let all = (1 << tasks.len()) - 1;
        let computing = (0..tasks.len()).all(|own| is_in_time(set, own, all, Variant::Proved));
        beyond += u64::from(found && !computing);
        if defined {
            assert!(!misses(&tasks, stream), "seed {seed}: {tasks:?}");
        }
    }
    println!(
        "{passed} pass, {beyond} of them not if suspensions count as computing; {missed} would by another choice"
    );
    assert!(passed * 10 > count(1_500) && beyond * 20 > passed && missed * 50 < passed);
}

/// Each of these drops one term or condition, and schedules show it to be wrong.
#[test]
fn schedules_refute_each_variant_with_a_term_less() {
    for variant in Variant::WRONG {
        let refuted = (0..count(8_000)).find(|&seed| {
            let stream = &mut RandomStream::new(seed, 146, 0);
            let drawn = random(stream);
            drawn.is_some_and(|(tasks, multiple)| {
                by_definition((&tasks, multiple), variant) && misses(&tasks, stream)
            })
        });
        println!("{variant:?}: seed {refuted:?}");
        assert!(refuted.is_some(), "{variant:?}");
    }
}
