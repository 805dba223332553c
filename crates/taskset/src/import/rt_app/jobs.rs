//! The jobs of a task that does what a thread does on its own.

use shiftwork_model::{Arrival, Instant, Phase, Span, Work};

use super::alone::{Alone, Cut, JOBS_MAX, ROUNDS_MAX, Stretch, Then, Unknown, execute};
use super::program::{Program, Rounds, Step};

/// When a task releases its jobs, and what they do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Jobs {
    /// When the first one is released, since the thread started.
    pub(super) offset: Span,
    pub(super) period: Span,
    pub(super) arrival: Arrival,
    /// What each job does, in turn, again and again. Not empty; each has a run.
    phases: Vec<Vec<Phase>>,
    /// Whether timers release them, and not the end of a sleep or a round.
    pub(super) by_timer: bool,
    /// What is lost, a line each.
    pub(super) lost: Vec<String>,
}

/// The jobs of a thread; `None` if it never computes.
///
/// # Errors
/// Why no task does the same.
pub(super) fn find(program: &Program) -> Result<Option<Jobs>, String> {
    let recurring = |wanted: fn(&Step) -> bool| {
        let steps = program.recurring().iter().flat_map(|phase| &phase.steps);
        steps.into_iter().any(wanted)
    };
    if recurring(|step| matches!(step, Step::Timer { .. })) {
        return jobs(program, Cut::Timers);
    }
    // From sleep to sleep, if that is a task: its jobs are the shortest that there are.
    if recurring(|step| matches!(step, Step::Sleep(span) if !span.is_zero()))
        && let Ok(Some(jobs)) = jobs(program, Cut::Sleeps)
        && jobs.is_even()
    {
        return Ok(Some(jobs));
    }
    jobs(program, Cut::Rounds)
}

fn jobs(program: &Program, cut: Cut) -> Result<Option<Jobs>, String> {
    let mut lost = Vec::new();
    let alone = match (execute(program, cut, false), program.rounds) {
        (Err(Unknown::TooLong), Rounds::Times(rounds)) => {
            lost.push(format!("`loop` {rounds}; it goes on for ever"));
            execute(program, cut, true)
        }
        (alone, _) => alone,
    };
    let alone = alone.map_err(|reason| match reason {
        Unknown::TooLong => format!(
            "it neither ends within {JOBS_MAX} jobs nor repeats itself within {ROUNDS_MAX} rounds"
        ),
        Unknown::EverLater => {
            "it comes to an absolute timer later every time, since it does more than the timer leaves time for"
                .to_string()
        }
    })?;
    let Alone { stretches, then } = alone;
    let jobs = match then {
        Then::Ends { ns } => of_ending(&stretches, ns),
        Then::Repeats { first, ns } => of_repeating(&stretches, first, ns, &mut lost),
    }?;
    Ok(jobs.map(|jobs| Jobs {
        by_timer: cut == Cut::Timers,
        lost,
        ..jobs
    }))
}

/// The jobs of a thread that ends after `ns`.
fn of_ending(stretches: &[Stretch], ns: i128) -> Result<Option<Jobs>, String> {
    let stretches: Vec<&Stretch> = stretches.iter().filter(|one| one.computes()).collect();
    let Some(last) = stretches.last() else {
        return Ok(None);
    };
    let gaps = stretches
        .windows(2)
        .map(|pair| pair[1].release_ns - pair[0].release_ns);
    let period_ns = gaps.min().unwrap_or(ns - last.release_ns);
    let releases = stretches.iter().map(|one| instant(one.release_ns));
    Ok(Some(Jobs {
        offset: Span::ZERO,
        period: period(period_ns)?,
        arrival: Arrival::Releases(releases.collect()),
        phases: in_turn(stretches.iter().map(|one| one.phases.clone()).collect()),
        by_timer: false,
        lost: Vec::new(),
    }))
}

/// The jobs of a thread whose stretches from `first` on come again every `ns`.
fn of_repeating(
    stretches: &[Stretch],
    first: usize,
    ns: i128,
    lost: &mut Vec<String>,
) -> Result<Option<Jobs>, String> {
    let computing = |stretches: &[Stretch]| -> Vec<Stretch> {
        let computing = stretches.iter().filter(|one| one.computes());
        computing.cloned().collect()
    };
    let (before, again) = stretches.split_at(first);
    let (before, again) = (computing(before), computing(again));
    let Some(one) = again.first() else {
        return match before.is_empty() {
            true => Ok(None),
            false => Err("it computes at first and then never again".to_string()),
        };
    };
    let period_ns = ns / again.len() as i128;
    let due = |job: usize| one.release_ns + period_ns * (job as i128 - before.len() as i128);
    let uneven = before
        .iter()
        .chain(&again)
        .enumerate()
        .find(|(job, stretch)| stretch.release_ns != due(*job));
    if uneven.is_some() || period_ns * again.len() as i128 != ns {
        return Err("its jobs are not released at equal distances".to_string());
    }
    // In turn from the first job on: what comes again, turned back by the jobs before it.
    let length = again.len();
    let phases: Vec<Vec<Phase>> = (0..length)
        .map(|job| {
            again[(job + length - before.len() % length) % length]
                .phases
                .clone()
        })
        .collect();
    let unlike = |(job, stretch): &(usize, &Stretch)| stretch.phases != phases[job % length];
    match before.iter().enumerate().filter(unlike).count() {
        0 => {}
        1 if before.len() == 1 => lost.push("its first job is not like the later ones".to_string()),
        count => lost.push(format!(
            "{count} of its first jobs are not like the later ones"
        )),
    }
    Ok(Some(Jobs {
        offset: instant(due(0))
            .since(Instant::from_ns(0))
            .unwrap_or_default(),
        period: period(period_ns)?,
        arrival: Arrival::Periodic,
        phases: in_turn(phases),
        by_timer: false,
        lost: Vec::new(),
    }))
}

/// The fewest of these that, again and again, are all of them.
fn in_turn(mut phases: Vec<Vec<Phase>>) -> Vec<Vec<Phase>> {
    let all = phases.len();
    let repeats =
        |length: &usize| all.is_multiple_of(*length) && phases[*length..] == phases[..all - length];
    let length = (1..all).find(repeats).unwrap_or(all);
    phases.truncate(length);
    phases
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

impl Jobs {
    /// How long the longest job computes.
    pub(super) fn longest(&self) -> Span {
        self.runs().max().unwrap_or_default()
    }

    /// Whether it computes all the time: no job leaves its CPU before the next one is released.
    pub(super) fn never_waits(&self) -> bool {
        matches!(self.arrival, Arrival::Periodic) && self.runs().all(|run| run >= self.period)
    }

    fn runs(&self) -> impl Iterator<Item = Span> {
        self.phases.iter().map(|phases| {
            let runs = phases.iter().map(|phase| match phase {
                Phase::Run(length) => *length,
                Phase::Sleep(_) | Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => {
                    Span::ZERO
                }
            });
            runs.fold(Span::ZERO, |sum, run| sum + run)
        })
    }

    /// Whether all jobs are released at equal distances.
    fn is_even(&self) -> bool {
        match &self.arrival {
            Arrival::Releases(releases) => releases
                .windows(2)
                .all(|pair| pair[0] + self.period == pair[1]),
            _ => true,
        }
    }

    /// What the jobs do, if the declared cost is `cost`.
    ///
    /// # Errors
    /// Why no task does the same.
    pub(super) fn work(&self, cost: Span) -> Result<Work, String> {
        let first = &self.phases[0];
        let alike = self.phases.iter().all(|phases| phases == first);
        match first.as_slice() {
            [Phase::Run(run)] if alike && *run == cost => Ok(Work::Cost),
            [Phase::Run(run)] if alike => Ok(Work::Constant(*run)),
            phases if alike => Ok(Work::Phases(phases.to_vec())),
            _ if self.phases.iter().all(|phases| phases.len() == 1) => {
                Ok(Work::Trace(self.runs().collect()))
            }
            _ => Err("its jobs sleep in their midst and are not alike".to_string()),
        }
    }
}
