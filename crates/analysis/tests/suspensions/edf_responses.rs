//! Response times of tasks that suspend themselves under EDF: the bounds against their definition, with every choice, every offset and every time
//! tried, and against schedules.

use shiftwork_analysis::uniprocessor::{Suspending, edf_rta_with_suspensions};
use shiftwork_analysis::{Outcome, Steps};
use shiftwork_model::RandomStream;

use super::schedules::{Order, longest_responses};
use super::{Compared, Plain, count, edf, random_tasks};

/// Sets with a longer window are not looked at.
const LONGEST_WINDOW: u64 = 250;

/// The condition of the theorem, or one that differs from it in one term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Proved,
    /// The task's own suspension is left out.
    NoOwnSuspension,
    /// Those that count as computing do not while they are suspended.
    NoSuspensions,
    /// Jobs of the others are not left from before.
    NoDelay,
    /// Jobs of the others are late by their suspension.
    DelayOfSuspension,
    /// By their response, but for their suspension.
    DelayWithoutSuspension,
    /// Of the others only jobs count that are released and due in the window.
    NothingCarriedIn,
    /// Of the others whole periods alone count.
    WholePeriods,
    /// Windows begin with the job.
    OffsetZero,
    /// Earlier jobs of the task are left out.
    LastJobAlone,
    /// The others respond as if nothing interfered with them.
    ResponsesAlone,
}

impl Variant {
    const WRONG: [Self; 10] = [
        Self::NoOwnSuspension,
        Self::NoSuspensions,
        Self::NoDelay,
        Self::DelayOfSuspension,
        Self::DelayWithoutSuspension,
        Self::NothingCarriedIn,
        Self::WholePeriods,
        Self::OffsetZero,
        Self::LastJobAlone,
        Self::ResponsesAlone,
    ];
}

/// What is shown, a bound for each task; `None` if nothing is, or not with so many steps: windows are long where the CPU is almost used up.
pub fn responses(tasks: &[Plain]) -> Option<Vec<u64>> {
    let tasks: Vec<Suspending> = tasks.iter().map(Plain::suspending).collect();
    match edf_rta_with_suspensions(&tasks, &mut Steps::ordinary()) {
        Outcome::Pass(bounds) => Some(bounds.iter().map(|bound| bound.as_ns()).collect()),
        Outcome::Fail(_) | Outcome::StepLimit => None,
    }
}

/// Whether that shows that all are in time.
pub fn are_in_time(tasks: &[Plain]) -> bool {
    responses(tasks).is_some_and(|bounds| are_within_deadlines(tasks, &bounds))
}

fn are_within_deadlines(tasks: &[Plain], bounds: &[u64]) -> bool {
    let mut all = tasks.iter().zip(bounds);
    all.all(|(task, &bound)| bound <= task.deadline)
}

/// The windows of a task by one choice, a bit for each task that counts as computing.
struct Windows<'a> {
    tasks: &'a [Plain],
    responses: &'a [u64],
    own: usize,
    choice: u32,
    variant: Variant,
}

impl Windows<'_> {
    fn computes(&self, place: usize) -> bool {
        self.choice >> place & 1 == 1
    }

    /// When the last job that counts is released at the latest, after the begin of the window.
    fn last_release(&self, place: usize, offset: u64) -> i64 {
        let task = &self.tasks[place];
        let signed = |time: u64| i64::try_from(time).unwrap();
        match place == self.own {
            true => signed(offset) - signed(task.period),
            false => signed(offset + self.tasks[self.own].deadline) - signed(task.deadline),
        }
    }

    /// What jobs take that are due in time; without `offset` all are.
    fn due(&self, place: usize, offset: u64) -> u64 {
        let task = &self.tasks[place];
        let last = self.last_release(place, offset);
        let jobs = u64::try_from(last).map_or(0, |last| last / task.period + 1);
        if self.computes(place) {
            return jobs * self.cost(place);
        }
        let reach = last + i64::try_from(self.responses[place]).unwrap();
        let reach = u64::try_from(reach).unwrap_or(0);
        let (whole, part) = (reach / task.period, reach % task.period);
        match self.variant {
            Variant::NothingCarriedIn => jobs * task.cost,
            Variant::WholePeriods => whole * task.cost,
            _ => whole * task.cost + part.min(task.cost),
        }
    }

    fn cost(&self, place: usize) -> u64 {
        let task = &self.tasks[place];
        match self.computes(place) && self.variant != Variant::NoSuspensions {
            true => task.cost + task.suspension,
            false => task.cost,
        }
    }

    fn released(&self, place: usize, time: u64) -> u64 {
        let task = &self.tasks[place];
        let delay = match self.variant {
            _ if self.computes(place) => 0,
            Variant::NoDelay => 0,
            Variant::DelayOfSuspension => task.suspension,
            Variant::DelayWithoutSuspension => self.responses[place] - task.cost - task.suspension,
            _ => self.responses[place] - task.cost,
        };
        (time + delay).div_ceil(task.period) * self.cost(place)
    }

    /// `None` for the offset: all jobs are due in time.
    fn sum(&self, offset: Option<u64>, time: u64) -> u64 {
        let own = &self.tasks[self.own];
        let suspension = match self.variant {
            Variant::NoOwnSuspension => 0,
            _ => own.suspension,
        };
        let adds = |place: usize| match offset {
            _ if place == self.own && self.variant == Variant::LastJobAlone => 0,
            Some(offset) => self.released(place, time).min(self.due(place, offset)),
            None => self.released(place, time),
        };
        own.cost + suspension + (0..self.tasks.len()).map(adds).sum::<u64>()
    }

    fn finish(&self, offset: Option<u64>, last: u64) -> Option<u64> {
        (1..=last).find(|&time| self.sum(offset, time) <= time)
    }

    /// The longest response for any offset; `None` if it is beyond the period, or windows do not end.
    fn response(&self) -> Option<u64> {
        let period = self.tasks[self.own].period;
        let others = self.choice & !(1 << self.own);
        let last = match others == 0 || self.variant == Variant::OffsetZero {
            true => 0,
            false => self.finish(None, LONGEST_WINDOW)?,
        };
        let response = |offset: u64| {
            Some(
                self.finish(Some(offset), offset + period)?
                    .saturating_sub(offset),
            )
        };
        let responses: Option<Vec<u64>> = (0..=last).map(response).collect();
        responses?.into_iter().max()
    }
}

/// The least bounds by any choices, from those of jobs with which nothing interferes.
fn by_definition(tasks: &[Plain], variant: Variant) -> Option<Vec<u64>> {
    let mut bounds: Vec<u64> = tasks.iter().map(|of| of.cost + of.suspension).collect();
    if tasks
        .iter()
        .zip(&bounds)
        .any(|(of, &bound)| bound > of.period)
    {
        return None;
    }
    loop {
        let least = |own: usize| {
            let choices = 0_u32..1 << tasks.len();
            let responses = choices.filter_map(|choice| {
                let windows = Windows {
                    tasks,
                    responses: &bounds,
                    own,
                    choice,
                    variant,
                };
                windows.response()
            });
            responses.min()
        };
        let next: Vec<u64> = (0..tasks.len()).map(least).collect::<Option<_>>()?;
        if next == bounds || variant == Variant::ResponsesAlone {
            return Some(next);
        }
        bounds = next;
    }
}

/// Whether windows end within what is looked at, by each choice by which they end, whatever the bounds are.
fn windows_are_short(tasks: &[Plain]) -> bool {
    let periods: Vec<u64> = tasks.iter().map(|of| of.period).collect();
    let longest = (0..tasks.len()).max_by_key(|&own| tasks[own].cost + tasks[own].suspension);
    (0_u32..1 << tasks.len()).all(|choice| {
        let windows = Windows {
            tasks,
            responses: &periods,
            own: longest.unwrap(),
            choice,
            variant: Variant::Proved,
        };
        let rate = |place: usize| windows.cost(place) as f64 / tasks[place].period as f64;
        let rates: f64 = (0..tasks.len()).map(rate).sum();
        rates >= 1.0 || windows.finish(None, LONGEST_WINDOW).is_some()
    })
}

#[test]
fn bounds_are_those_of_the_definition_with_every_choice_tried() {
    let [mut exact, mut longer, mut missed, mut beyond] = [0; 4];
    for seed in 0..count(400) {
        let stream = &mut RandomStream::new(seed, 147, 0);
        let tasks = random_tasks(stream, 4, false);
        if !windows_are_short(&tasks) {
            continue;
        }
        let defined = by_definition(&tasks, Variant::Proved);
        let found = responses(&tasks);
        let is_constrained = tasks.iter().all(|of| of.deadline <= of.period);
        if is_constrained && edf::passes(&tasks) {
            let is_shown = defined
                .as_ref()
                .is_some_and(|bounds| are_within_deadlines(&tasks, bounds));
            assert!(is_shown, "seed {seed}: {tasks:?}");
        }
        let Some(defined) = defined else {
            assert_eq!(found, None, "seed {seed}: {tasks:?}");
            continue;
        };
        match found {
            None => missed += 1,
            Some(found) => {
                let is_sound = defined
                    .iter()
                    .zip(&found)
                    .all(|(least, bound)| least <= bound);
                assert!(is_sound, "seed {seed}: {tasks:?} {defined:?} {found:?}");
                exact += u64::from(found == defined);
                longer += u64::from(found != defined);
                beyond += u64::from(are_in_time(&tasks) && !edf::passes(&tasks));
            }
        }
    }
    println!(
        "{exact} sets with the least bounds, {longer} with longer ones, {missed} without; {beyond} in time that the demand does not show"
    );
    assert!(exact > count(100) && (longer + missed) * 100 < exact && beyond * 40 > exact);
}

/// A unit of time is arbitrary, so offsets between whole ones matter to nothing, nor does it take more steps.
#[test]
fn bounds_scale_with_the_unit_of_time() {
    for seed in 0..count(1_000) {
        let stream = &mut RandomStream::new(seed, 148, 0);
        let tasks = random_tasks(stream, 6, false);
        let factor = [2, 3, 7, 1_000_003][stream.below(4) as usize];
        let scale = |of: &Plain| Plain {
            cost: of.cost * factor,
            suspension: of.suspension * factor,
            period: of.period * factor,
            deadline: of.deadline * factor,
            ..*of
        };
        let scaled: Vec<Plain> = tasks.iter().map(scale).collect();
        let expected = responses(&tasks).map(|bounds| {
            bounds
                .iter()
                .map(|bound| bound * factor)
                .collect::<Vec<_>>()
        });
        assert_eq!(responses(&scaled), expected, "seed {seed}: {tasks:?}");
    }
}

#[test]
fn no_schedule_exceeds_a_bound() {
    let mut compared = Compared::default();
    for seed in 0..count(1_500) {
        let stream = &mut RandomStream::new(seed, 149, 0);
        let tasks = random_tasks(stream, 4, false);
        let Some(bounds) = responses(&tasks) else {
            continue;
        };
        let longest = longest_responses(&tasks, Order::Deadline, stream, 150);
        compared.add(&longest, &bounds, &format!("seed {seed}: {tasks:?}"));
    }
    compared.conclude(3);
}

/// Each of these drops or changes one term of the condition, and schedules show it to be wrong.
#[test]
fn schedules_refute_each_variant_with_a_term_less() {
    for variant in Variant::WRONG {
        let refuted = (0..count(4_000)).find(|&seed| {
            let stream = &mut RandomStream::new(seed, 150, 0);
            let tasks = random_tasks(stream, 4, false);
            let Some(bounds) = by_definition(&tasks, variant) else {
                return false;
            };
            let longest = longest_responses(&tasks, Order::Deadline, stream, 150);
            let is_exceeded = longest
                .iter()
                .zip(&bounds)
                .any(|(response, bound)| response > bound);
            if is_exceeded {
                println!("{variant:?}: seed {seed}: {longest:?} > {bounds:?} {tasks:?}");
            }
            is_exceeded
        });
        assert!(refuted.is_some(), "{variant:?}");
    }
}
