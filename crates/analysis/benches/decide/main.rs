//! What a study like that of RTSS 2008 takes: task sets per CPU second, one thread, from drawing to the answers, and
//! how long SchedCAT takes for the tests alone, from what it takes for each.
//!
//! `cargo bench -p shiftwork-analysis --bench decide [-- NAME [SETS]]`: the distributions whose name contains NAME,
//! SETS task sets for each cap instead of 20.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark that cannot go on fails"
)]

mod cells;
mod reference;

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use shiftwork_analysis::overheads::{Structure, inflate};
use shiftwork_analysis::packing::pack_under;
use shiftwork_analysis::verdicts::{Answer, Criterion, Question, decide};
use shiftwork_model::{Affinity, CpuSet, Overheads, TaskSet};
use shiftwork_policy::registry;
use shiftwork_taskset::generate::Distribution;

use cells::{CRITERIA, POLICIES, clusters, overheads, singles, task_set};

/// How much each test may do.
const STEPS: u64 = 20_000_000;

/// Seconds of CPU time.
#[derive(Clone, Copy, Default)]
struct Spent {
    drawing: f64,
    packing: f64,
    inflating: f64,
    deciding: f64,
    /// Of SchedCAT: the tests, and charging overheads.
    reference: f64,
    charging: f64,
    questions: u64,
    yes: u64,
}

impl Spent {
    fn ours(&self) -> f64 {
        self.packing + self.deciding
    }

    fn add(&mut self, other: &Self) {
        self.drawing += other.drawing;
        self.packing += other.packing;
        self.inflating += other.inflating;
        self.deciding += other.deciding;
        self.reference += other.reference;
        self.charging += other.charging;
        self.questions += other.questions;
        self.yes += other.yes;
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The result, and how long it took.
fn timed<T>(run: impl FnOnce() -> T) -> (T, f64) {
    let start = cpu_seconds();
    let result = black_box(run());
    (result, cpu_seconds() - start)
}

/// One policy, all sets.
fn policy(sets: &[TaskSet], name: &str, criterion: Criterion) -> Spent {
    let mut spent = Spent::default();
    let overheads = overheads(name, criterion);
    let traits = &registry::find(name).unwrap().traits;
    let structure = Structure::of(traits, &sets[0]);
    let price = (&structure, &overheads);
    // What was found is dropped at once, as it is in a study.
    let ((), time) = timed(|| {
        for set in sets {
            black_box(bound(set, name, price));
        }
    });
    spent.packing = time;
    let bound: Vec<Vec<Affinity>> = sets.iter().map(|set| bound(set, name, price)).collect();
    let cpus: Vec<Vec<CpuSet>> = bound
        .iter()
        .map(|bound| bound.iter().map(|affinity| *affinity.cpus()).collect())
        .collect();
    let ((), time) = timed(|| {
        for (set, cpus) in sets.iter().zip(&cpus) {
            black_box(inflate(set, (traits, &structure), cpus, &overheads));
        }
    });
    spent.inflating = time;
    let (answers, time) = timed(|| {
        let asked = sets.iter().zip(&bound);
        asked
            .map(|(set, bound)| {
                let question = Question {
                    price: Some((&structure, &overheads)),
                    ..Question::new(*traits, bound, criterion, STEPS)
                };
                decide(set, &question).answer
            })
            .collect::<Vec<_>>()
    });
    spent.deciding = time;
    spent.questions = sets.len() as u64;
    spent.yes = answers
        .iter()
        .filter(|&&answer| answer == Answer::Schedulable)
        .count() as u64;
    let taken = sets.iter().zip(&bound).map(|(set, bound)| {
        reference::seconds(set, bound, (traits, &structure, &overheads), criterion)
    });
    spent.reference = taken.sum();
    spent.charging = sets.iter().map(reference::charging).sum();
    spent
}

fn bound(set: &TaskSet, name: &str, price: (&Structure, &Overheads)) -> Vec<Affinity> {
    let traits = &registry::find(name).unwrap().traits;
    match name {
        "p-edf" => pack_under(set, traits, &singles(), price).unwrap(),
        "c-edf" | "c-pd2" | "cs-pd2" => pack_under(set, traits, &clusters(), price).unwrap(),
        _ => set.tasks.iter().map(|task| task.affinity).collect(),
    }
}

fn report(name: &str, spent: &Spent) {
    let each = |seconds: f64| 1e6 * seconds / spent.questions as f64;
    let tests = spent.reference;
    println!(
        "{name:<20} {:>8.0} {:>8.2} {:>8.2} {:>8.2} {:>8.2} {:>9.1} {:>9.1} {:>7.1}x {:>7.1}x {:>5.0}%",
        spent.questions as f64 / (spent.drawing + spent.ours()),
        each(spent.drawing),
        each(spent.packing),
        each(spent.inflating),
        each(spent.deciding),
        each(tests),
        each(spent.charging),
        tests / spent.ours(),
        (tests + spent.charging) / spent.ours(),
        100.0 * spent.yes as f64 / spent.questions as f64,
    );
}

fn main() {
    let mut args = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"));
    let name = args.next().unwrap_or_default();
    let each: u64 = args.next().map_or(20, |number| number.parse().unwrap());
    println!("CPU time of one thread, microseconds a question; inflating is a part of deciding");
    println!(
        "{:<20} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8} {:>8} {:>6}",
        "",
        "per s",
        "drawing",
        "packing",
        "inflat.",
        "deciding",
        "SchedCAT",
        "charging",
        "tests",
        "both",
        "yes"
    );
    for (of, distribution) in Distribution::ALL
        .into_iter()
        .filter(|(of, _)| of.contains(&name))
    {
        let mut all = Spent::default();
        let mut by_policy = [[Spent::default(); 2]; POLICIES.len()];
        for cap in 1..=cells::CPUS {
            let ((), drawing) = timed(|| {
                for index in 0..each {
                    black_box(task_set(distribution, cap, index));
                }
            });
            let sets = (0..each).map(|index| task_set(distribution, cap, index));
            let sets: Vec<TaskSet> = sets.collect();
            for (place, policy_name) in POLICIES.into_iter().enumerate() {
                for (criterion, of) in CRITERIA.into_iter().zip(0..) {
                    by_policy[place][of].add(&policy(&sets, policy_name, criterion));
                }
            }
            all.drawing += drawing;
        }
        for (policy_name, spent) in POLICIES.into_iter().zip(&by_policy) {
            for (criterion, spent) in CRITERIA.into_iter().zip(spent) {
                report(&format!("  {policy_name} {}", criterion.name()), spent);
                all.add(spent);
            }
        }
        report(of, &all);
    }
}
