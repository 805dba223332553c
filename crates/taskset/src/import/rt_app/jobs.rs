//! The jobs of a task that does what a thread does on its own, from timer to timer or from one wait for
//! others to the next.

use std::collections::BTreeMap;

use shiftwork_model::{Arrival, Instant, Span};

use super::alone::{Alone, Cut, JOBS_MAX, ROUNDS_MAX, Stretch, Then, Unknown, execute};
use super::program::{Act, Awaited, Program, Rounds, Step};
use super::shared::Shared;

/// When a task releases its jobs, and what they do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Jobs<'a> {
    pub(super) release: Release<'a>,
    pub(super) work: Work<'a>,
    /// What each job wakes when it is done.
    pub(super) wakes: Vec<Awaited<'a>>,
    /// What is lost, a line each.
    pub(super) lost: Vec<String>,
}

/// What releases jobs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Release<'a> {
    ByTime {
        /// When the first one is released, since the thread started.
        offset: Span,
        period: Span,
        arrival: Arrival,
        /// Whether timers release them, and not the end of a sleep or a round.
        by_timer: bool,
    },
    /// Other threads.
    Awaited {
        /// The key of the first event by which the thread waits.
        key: &'a str,
        /// One condition, or all these semaphores.
        all: Vec<Awaited<'a>>,
    },
}

/// What jobs do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work<'a> {
    /// They compute for so long, in turn, again and again. Not empty.
    Runs(Vec<Span>),
    /// All do the same, and compute.
    Acts(Vec<Act<'a>>),
}

/// What a job computes that only acts on others: the least that there is.
const LEAST_RUN: Span = Span::from_ns(1);

/// The jobs of a thread; `None` if it never computes and does nothing to others.
///
/// # Errors
/// Why no task does the same.
pub(super) fn find<'a>(
    program: &Program<'a>,
    shared: &Shared<'a>,
) -> Result<Option<Jobs<'a>>, String> {
    let recurring = |wanted: fn(&Step<'_>) -> bool| {
        let mut steps = program.recurring().iter().flat_map(|phase| &phase.steps);
        steps.find(|step| wanted(step)).copied()
    };
    let timer = recurring(|step| matches!(step, Step::Timer { .. }));
    if let Some(Step::Wait { key, .. }) = recurring(|step| step.awaited().is_some()) {
        return match timer {
            Some(_) => Err(format!(
                "`{key}` waits for another thread between its timers; a task is released by time or by other tasks"
            )),
            None => awaited_jobs(program, shared, key),
        };
    }
    if let Some(Step::Wait { key, .. }) = program.steps().find(|step| step.awaited().is_some()) {
        return Err(format!(
            "`{key}` waits for another thread once, before its jobs"
        ));
    }
    if timer.is_some() {
        return jobs(program, shared, Cut::Timers);
    }
    // From sleep to sleep, if that is a task: its jobs are the shortest that there are.
    if recurring(|step| matches!(step, Step::Act(Act::Sleep(span)) if !span.is_zero())).is_some()
        && let Ok(Some(jobs)) = jobs(program, shared, Cut::Sleeps)
        && jobs.is_even()
    {
        return Ok(Some(jobs));
    }
    jobs(program, shared, Cut::Rounds)
}

fn jobs<'a>(
    program: &Program<'a>,
    shared: &Shared<'a>,
    cut: Cut,
) -> Result<Option<Jobs<'a>>, String> {
    let mut lost = Vec::new();
    let alone = match (execute(program, shared, cut, false), program.rounds) {
        (Err(Unknown::TooLong), Rounds::Times(rounds)) => {
            lost.push(format!("`loop` {rounds}; it goes on for ever"));
            execute(program, shared, cut, true)
        }
        (alone, _) => alone,
    };
    let Alone {
        stretches,
        then,
        dropped_sleep,
    } = alone.map_err(reason)?;
    let by_timer = cut == Cut::Timers;
    if by_timer && dropped_sleep {
        let what = "its sleep before a timer; after a job that ends late, the next one does not wait for it";
        lost.push(what.to_string());
    }
    match then {
        Then::Ends { ns } => of_ending(stretches, ns, by_timer, lost),
        Then::Repeats { first, ns } => of_repeating(&stretches, (first, ns), by_timer, lost),
    }
}

/// Why no task does the same as a thread of which what it does is not known.
fn reason(unknown: Unknown<'_>) -> String {
    match unknown {
        Unknown::TooLong => format!(
            "it neither ends within {JOBS_MAX} jobs nor repeats itself within {ROUNDS_MAX} rounds"
        ),
        Unknown::EverLater => {
            "it comes to an absolute timer later every time, since it does more than the timer leaves time for"
                .to_string()
        }
        Unknown::LockedTwice(mutex) => format!("it locks mutex `{mutex}` while it holds it"),
        Unknown::NotLocked(mutex) => format!("it unlocks mutex `{mutex}`, which it does not hold"),
        Unknown::HeldBetween(mutex) => {
            format!("it holds mutex `{mutex}`, which other threads lock, from one job to the next")
        }
    }
}

/// The jobs of a thread that ends after `ns`.
fn of_ending(
    stretches: Vec<Stretch<'_>>,
    ns: i128,
    by_timer: bool,
    lost: Vec<String>,
) -> Result<Option<Jobs<'_>>, String> {
    let Some(last) = stretches.last() else {
        return Ok(None);
    };
    let gaps = stretches
        .windows(2)
        .map(|pair| pair[1].release_ns - pair[0].release_ns);
    let period_ns = gaps.min().unwrap_or((ns - last.release_ns).max(1));
    let releases = stretches.iter().map(|one| instant(one.release_ns));
    let release = Release::ByTime {
        offset: Span::ZERO,
        period: period(period_ns)?,
        arrival: Arrival::Releases(releases.collect()),
        by_timer,
    };
    let acts = stretches.into_iter().map(|one| one.acts).collect();
    Jobs::new(release, acts, lost).map(Some)
}

/// The jobs of a thread whose stretches from `first` on come again every `ns`.
fn of_repeating<'a>(
    stretches: &[Stretch<'a>],
    (first, ns): (usize, i128),
    by_timer: bool,
    mut lost: Vec<String>,
) -> Result<Option<Jobs<'a>>, String> {
    let (before, again) = stretches.split_at(first);
    let Some(one) = again.first() else {
        return match before.is_empty() {
            true => Ok(None),
            false => Err("it computes at first and then never again".to_string()),
        };
    };
    let period_ns = ns / again.len() as i128;
    let due = |job: usize| one.release_ns + period_ns * (job as i128 - before.len() as i128);
    let mut due_at_once = stretches.iter().enumerate();
    let uneven = due_at_once.find(|(job, stretch)| stretch.release_ns != due(*job));
    if uneven.is_some() || period_ns * again.len() as i128 != ns {
        return Err("its jobs are not released at equal distances".to_string());
    }
    let release = Release::ByTime {
        offset: instant(due(0))
            .since(Instant::from_ns(0))
            .unwrap_or_default(),
        period: period(period_ns)?,
        arrival: Arrival::Periodic,
        by_timer,
    };
    let acts = from_first_on(before, again, &mut lost);
    Jobs::new(release, acts, lost).map(Some)
}

/// What the jobs do in turn, from the first one on: what comes again, turned back by the jobs before it.
fn from_first_on<'a>(
    before: &[Stretch<'a>],
    again: &[Stretch<'a>],
    lost: &mut Vec<String>,
) -> Vec<Vec<Act<'a>>> {
    let length = again.len();
    let acts: Vec<Vec<Act<'_>>> = (0..length)
        .map(|job| {
            again[(job + length - before.len() % length) % length]
                .acts
                .clone()
        })
        .collect();
    let unlike = |(job, stretch): &(usize, &Stretch<'_>)| stretch.acts != acts[job % length];
    match before.iter().enumerate().filter(unlike).count() {
        0 => {}
        1 if before.len() == 1 => lost.push("its first job is not like the later ones".to_string()),
        count => lost.push(format!(
            "{count} of its first jobs are not like the later ones"
        )),
    }
    acts
}

/// The jobs of a thread that waits for others, of which `key` is the first event to do so.
fn awaited_jobs<'a>(
    program: &Program<'a>,
    shared: &Shared<'a>,
    key: &'a str,
) -> Result<Option<Jobs<'a>>, String> {
    let mut lost = Vec::new();
    // How often others wake it is not known, so that it has no end here.
    match (
        program.recurring().len() == program.phases.len(),
        program.rounds,
    ) {
        (true, Rounds::Times(0)) => return Ok(None),
        (true, Rounds::Times(rounds)) => lost.push(format!("`loop` {rounds}; it goes on for ever")),
        _ => {}
    }
    let alone = execute(program, shared, Cut::Waits, true).map_err(reason)?;
    let Alone {
        stretches,
        then: Then::Repeats { first, .. },
        ..
    } = alone
    else {
        return Ok(None);
    };
    let Some((start, stretches)) = stretches.split_first() else {
        return Ok(None);
    };
    if !start.acts.is_empty() {
        lost.push(format!(
            "what it does before its first `{key}`, for which it waits from the start"
        ));
    }
    let (before, again) = stretches.split_at(first.saturating_sub(1));
    let all = &again[0].after;
    if let Some(other) = stretches.iter().find(|one| one.after != *all) {
        let name = |after: &[Awaited<'_>]| {
            let names: Vec<String> = after.iter().map(|it| format!("`{}`", it.name())).collect();
            names.join(" and ")
        };
        return Err(format!(
            "it waits for {} and for {} in turn",
            name(all),
            name(&other.after)
        ));
    }
    let release = Release::Awaited {
        key,
        all: all.clone(),
    };
    let acts = from_first_on(before, again, &mut lost);
    Jobs::new(release, acts, lost).map(Some)
}

/// The fewest of these that, again and again, are all of them.
fn in_turn<T: PartialEq>(mut jobs: Vec<T>) -> Vec<T> {
    let all = jobs.len();
    let repeats =
        |length: &usize| all.is_multiple_of(*length) && jobs[*length..] == jobs[..all - length];
    let length = (1..all).find(repeats).unwrap_or(all);
    jobs.truncate(length);
    jobs
}

fn instant(ns: i128) -> Instant {
    Instant::from_ns(u64::try_from(ns).unwrap_or_default())
}

fn period(ns: i128) -> Result<Span, String> {
    match u64::try_from(ns) {
        Ok(ns) if ns > 0 => Ok(Span::from_ns(ns)),
        _ => Err("it releases jobs at one instant".to_string()),
    }
}

impl<'a> Jobs<'a> {
    /// Jobs that do this in turn.
    ///
    /// # Errors
    /// Why no task does the same.
    fn new(
        release: Release<'a>,
        mut jobs: Vec<Vec<Act<'a>>>,
        mut lost: Vec<String>,
    ) -> Result<Self, String> {
        let wakes = take_final_wakes(&mut jobs);
        let computes = |acts: &[Act<'_>]| acts.iter().any(|act| matches!(act, Act::Run(_)));
        if !jobs.iter().all(|acts| computes(acts)) {
            lost.push(format!(
                "jobs that do not compute; they run for {LEAST_RUN} when all else is done"
            ));
            let idle = jobs.iter_mut().filter(|acts| !computes(acts));
            idle.for_each(|acts| acts.push(Act::Run(LEAST_RUN)));
        }
        let only_run = |acts: &Vec<Act<'_>>| match acts.as_slice() {
            [Act::Run(run)] => Some(*run),
            _ => None,
        };
        let runs: Option<Vec<Span>> = jobs.iter().map(only_run).collect();
        let work = match (runs, in_turn(jobs)) {
            (Some(runs), _) => Work::Runs(in_turn(runs)),
            (None, mut jobs) if jobs.len() == 1 => Work::Acts(jobs.swap_remove(0)),
            _ => {
                return Err(
                    "its jobs sleep, lock or wake others in their midst and are not alike"
                        .to_string(),
                );
            }
        };
        Ok(Self {
            release,
            work,
            wakes,
            lost,
        })
    }

    /// How long the longest job computes.
    pub(super) fn longest(&self) -> Span {
        match &self.work {
            Work::Runs(runs) => runs.iter().copied().max().unwrap_or_default(),
            Work::Acts(acts) => {
                let runs = acts.iter().map(|act| match act {
                    Act::Run(length) => *length,
                    Act::Sleep(_) | Act::Lock(_) | Act::Unlock(_) | Act::Wake(_) => Span::ZERO,
                });
                runs.fold(Span::ZERO, |sum, run| sum + run)
            }
        }
    }

    /// Whether it computes all the time: no job leaves its CPU before the next one is released.
    pub(super) fn never_waits(&self) -> bool {
        let Release::ByTime {
            arrival: Arrival::Periodic,
            period,
            ..
        } = self.release
        else {
            return false;
        };
        match &self.work {
            Work::Runs(runs) => runs.iter().all(|run| *run >= period),
            Work::Acts(_) => self.longest() >= period,
        }
    }

    /// Whether it computes all the time and has no timers, so that a server's budget is all that ends
    /// what it does.
    pub(super) fn takes_every_budget(&self) -> bool {
        let by_timer = matches!(self.release, Release::ByTime { by_timer: true, .. });
        self.never_waits()
            && !by_timer
            && matches!(self.work, Work::Runs(_))
            && self.wakes.is_empty()
    }

    /// Whether all jobs are released at equal distances.
    fn is_even(&self) -> bool {
        match &self.release {
            Release::ByTime {
                arrival: Arrival::Releases(releases),
                period,
                ..
            } => releases.windows(2).all(|pair| pair[0] + *period == pair[1]),
            Release::ByTime { .. } | Release::Awaited { .. } => true,
        }
    }

    /// Whether its jobs lock a mutex.
    pub(super) fn locks(&self) -> bool {
        let is_lock = |act: &Act<'_>| matches!(act, Act::Lock(_));
        matches!(&self.work, Work::Acts(acts) if acts.iter().any(is_lock))
    }

    /// All that a job wakes, in order.
    pub(super) fn woken(&self) -> impl Iterator<Item = Awaited<'a>> {
        let acts = match &self.work {
            Work::Runs(_) => &[],
            Work::Acts(acts) => acts.as_slice(),
        };
        let within = acts.iter().filter_map(|act| match act {
            Act::Wake(awaited) => Some(*awaited),
            _ => None,
        });
        within.chain(self.wakes.iter().copied())
    }
}

/// Takes what all jobs wake when they have nothing else left to do, if that is the same for all: it is as
/// well done by their completion, which wakes each only once.
fn take_final_wakes<'a>(jobs: &mut [Vec<Act<'a>>]) -> Vec<Awaited<'a>> {
    let finals = |acts: &Vec<Act<'a>>| -> Vec<Awaited<'a>> {
        let mut count: BTreeMap<Act<'a>, usize> = BTreeMap::new();
        for act in acts {
            *count.entry(*act).or_default() += 1;
        }
        let once = |act: &Act<'a>| match act {
            Act::Wake(awaited) if count[act] == 1 => Some(*awaited),
            _ => None,
        };
        let mut finals: Vec<_> = acts.iter().rev().map_while(once).collect();
        finals.reverse();
        finals
    };
    let wakes = finals(&jobs[0]);
    let computes = |acts: &Vec<Act<'_>>| acts.iter().any(|act| matches!(act, Act::Run(_)));
    let mut all = jobs.iter();
    if !all.all(|acts| computes(acts) && finals(acts) == wakes) {
        return Vec::new();
    }
    for acts in jobs {
        acts.truncate(acts.len() - wakes.len());
    }
    wakes
}
