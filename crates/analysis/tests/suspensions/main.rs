//! Tasks that suspend themselves, on one CPU and on several: response times under fixed priorities against the recurrence with every choice
//! tried, the tests of EDF and of several CPUs against their definitions, and all against schedules in which jobs suspend themselves at any times.
//!
//! `docs/theory/suspensions.md` has the proof.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod acceptance;
mod definition;
mod edf;
mod edf_responses;
mod published;
mod schedules;
mod several_cpus;
mod verdicts;

use definition::Variant;
use schedules::{Order, longest_responses};
use shiftwork_analysis::uniprocessor::{Suspending, fp_rta_with_suspensions};
use shiftwork_analysis::{Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Priority, RandomStream, Span};

/// A task in whole units of time.
#[derive(Clone, Copy, Debug)]
struct Plain {
    cost: u64,
    suspension: u64,
    period: u64,
    deadline: u64,
    priority: u32,
}

impl Plain {
    /// The most that the theorem speaks of.
    fn limit(&self) -> u64 {
        self.deadline.min(self.period)
    }

    fn suspending(&self) -> Suspending {
        let [cost, period, deadline] = [self.cost, self.period, self.deadline].map(Span::from_ns);
        let task = Sporadic {
            cost,
            period,
            deadline,
        };
        Suspending {
            ranked: Ranked {
                task,
                priority: Priority::new(self.priority).unwrap(),
            },
            suspension: Span::from_ns(self.suspension),
        }
    }
}

/// What the test shows: a bound for each task, or the place of one for which it has none.
fn shown(tasks: &[Plain]) -> Result<Vec<u64>, usize> {
    let tasks: Vec<Suspending> = tasks.iter().map(Plain::suspending).collect();
    match fp_rta_with_suspensions(&tasks, &mut Steps::ordinary()) {
        Outcome::Pass(bounds) => Ok(bounds.into_iter().map(Span::as_ns).collect()),
        Outcome::Fail(failure) => Err(failure.place),
        Outcome::StepLimit => panic!("out of steps: {tasks:?}"),
    }
}

/// How many cases, where `SHIFTWORK_LONG` asks for more.
fn count(ordinary: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => ordinary * 50,
        None => ordinary,
    }
}

/// Two to `most` tasks, the most urgent first; priorities are by deadline, and may be equal if `ties`.
fn random_tasks(stream: &mut RandomStream, most: u64, ties: bool) -> Vec<Plain> {
    let number = 2 + stream.below(most - 1);
    let mut tasks: Vec<Plain> = (0..number)
        .map(|_| {
            let period = 3 + stream.below(22);
            let cost = 1 + stream.below((period / 3).max(1));
            let suspension = match stream.below(3) {
                0 => 0,
                _ => stream.below((period - cost) / 2 + 1),
            };
            let least = cost + suspension;
            let deadline = match stream.below(3) {
                0 => least + stream.below(period + 5 - least),
                _ => period,
            };
            Plain {
                cost,
                suspension,
                period,
                deadline,
                priority: 0,
            }
        })
        .collect();
    tasks.sort_by_key(|task| task.deadline);
    for place in 0..tasks.len() {
        let is_tied = place > 0 && ties && stream.below(2) == 0;
        tasks[place].priority = match (place.checked_sub(1), is_tied) {
            (Some(last), true) => tasks[last].priority,
            _ => place as u32 + 1,
        };
    }
    tasks
}

/// The most urgent tasks for all of which there are bounds, with these. Less urgent ones cannot delay them.
fn bounded(tasks: &[Plain], bounds: &[Option<u64>]) -> (Vec<Plain>, Vec<u64>) {
    let missing = bounds.iter().position(Option::is_none);
    let missing = missing.map(|place| tasks[place].priority);
    let is_bounded = |task: &Plain| missing.is_none_or(|missing| task.priority < missing);
    let kept = tasks
        .iter()
        .zip(bounds)
        .filter(|(task, _)| is_bounded(task));
    kept.map(|(task, bound)| (*task, bound.unwrap())).unzip()
}

#[test]
fn bounds_are_those_of_the_recurrence_with_every_choice_tried() {
    let (mut exact, mut longer) = (0, 0);
    for seed in 0..count(4_000) {
        let stream = &mut RandomStream::new(seed, 141, 0);
        let ties = stream.below(3) == 0;
        let tasks = random_tasks(stream, 6, ties);
        let expected = definition::bounds(&tasks, Variant::Proved);
        // The order in which tasks are given matters to nothing else.
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        stream.shuffle(&mut order);
        let given: Vec<Plain> = order.iter().map(|&place| tasks[place]).collect();
        match shown(&given) {
            Ok(bounds) => {
                for (&place, &bound) in order.iter().zip(&bounds) {
                    let least = expected[place];
                    assert!(
                        least.is_some_and(|least| least <= bound),
                        "seed {seed}: {tasks:?}"
                    );
                    match least == Some(bound) {
                        true => exact += 1,
                        false => longer += 1,
                    }
                }
            }
            // All that the search over a linear number of choices may do is to miss the best.
            Err(given) => match expected[order[given]] {
                Some(_) => longer += 1,
                None => exact += 1,
            },
        }
    }
    println!("{exact} bounds are the least, {longer} are longer");
    assert!(exact > 2_000 && longer * 3_000 < exact);
}

/// Bounds compared with the longest responses in schedules.
#[derive(Default)]
struct Compared {
    checked: u64,
    reached: u64,
}

impl Compared {
    fn add(&mut self, longest: &[u64], bounds: &[u64], context: &str) {
        for (place, (response, bound)) in longest.iter().zip(bounds).enumerate() {
            self.checked += 1;
            self.reached += u64::from(response == bound);
            assert!(response <= bound, "{context} {bounds:?}, task {place}");
        }
    }

    /// Schedules come near enough for the comparison to mean something: more than one bound of so many is reached.
    fn conclude(self, of: u64) {
        let Self { checked, reached } = self;
        println!("{checked} bounds, of which {reached} are reached");
        assert!(reached * of > checked);
    }
}

#[test]
fn no_schedule_exceeds_a_bound() {
    let mut compared = Compared::default();
    for seed in 0..count(1_500) {
        let stream = &mut RandomStream::new(seed, 142, 0);
        let ties = stream.below(3) == 0;
        let tasks = random_tasks(stream, 4, ties);
        let bounds = match shown(&tasks) {
            Ok(bounds) => bounds.into_iter().map(Some).collect(),
            Err(_) => definition::bounds(&tasks, Variant::Proved),
        };
        let (tasks, bounds) = bounded(&tasks, &bounds);
        let longest = longest_responses(&tasks, Order::Priority, stream, 150);
        compared.add(&longest, &bounds, &format!("seed {seed}: {tasks:?}"));
    }
    compared.conclude(3);
}

/// Each of these drops or changes one term of the recurrence, and schedules show it to be wrong.
#[test]
fn schedules_refute_each_variant_with_a_term_less() {
    for variant in Variant::WRONG {
        let refuted = (0..count(4_000)).find(|&seed| {
            let stream = &mut RandomStream::new(seed, 143, 0);
            let ties = variant.needs_ties() || stream.below(3) == 0;
            let tasks = random_tasks(stream, 4, ties);
            let bounds = definition::bounds(&tasks, variant);
            let (tasks, bounds) = bounded(&tasks, &bounds);
            let longest = longest_responses(&tasks, Order::Priority, stream, 150);
            let exceeded = longest
                .iter()
                .zip(&bounds)
                .position(|(response, bound)| response > bound);
            if let Some(place) = exceeded {
                println!(
                    "{variant:?}: seed {seed}, task {place}: {longest:?} > {bounds:?} {tasks:?}"
                );
            }
            exceeded.is_some()
        });
        assert!(refuted.is_some(), "{variant:?}");
    }
}
