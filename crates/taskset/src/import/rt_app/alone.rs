//! A thread on its own: when it wakes up and what it does then, with a CPU and every mutex whenever it
//! wants one, until it ends or repeats itself.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use shiftwork_model::Span;

use super::program::{Act, Awaited, Late, Program, Rounds, Step};
use super::shared::Shared;

/// The most jobs after which a thread has to repeat itself or to end.
pub(super) const JOBS_MAX: usize = 10_000;

/// The most rounds in which a thread without an end has to repeat itself.
pub(super) const ROUNDS_MAX: usize = 1_000;

/// The most steps for that. Inner loops of steps that begin no job are as long as they please.
const STEPS_MAX: usize = 200_000;

/// After what a job ends and the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Timers,
    Sleeps,
    /// A round of the thread, or of its phase without an end.
    Rounds,
    /// Waits for other threads, which take no time here. Nothing depends on the time then.
    Waits,
}

/// What a thread does between two cuts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch<'a> {
    /// When it may begin, in ns since the thread started: when its timer was due, even if the thread
    /// still computed then.
    pub(super) release_ns: i128,
    /// What it has waited for before: one condition, or semaphores one after the other, in order.
    pub(super) after: Vec<Awaited<'a>>,
    /// What it does. A final sleep is left out between cuts by time.
    pub(super) acts: Vec<Act<'a>>,
}

/// What a thread does on its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Alone<'a> {
    /// In order of time.
    pub(super) stretches: Vec<Stretch<'a>>,
    /// How it goes on after them.
    pub(super) then: Then,
    /// Whether a stretch ended with a sleep, which was left out.
    pub(super) dropped_sleep: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// It ends, this many ns after it started.
    Ends { ns: i128 },
    /// The stretches from `first` on come again, each this many ns later, for ever.
    Repeats { first: usize, ns: i128 },
}

/// Why there is no such answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown<'a> {
    /// It neither ends nor repeats itself in time.
    TooLong,
    /// It comes to an absolute timer later every time.
    EverLater,
    /// It locks this mutex while it holds it.
    LockedTwice(&'a str),
    /// It unlocks this mutex, which it does not hold.
    NotLocked(&'a str),
    /// It holds this mutex between two jobs.
    HeldBetween(&'a str),
}

/// Where a round begins: what all that follows depends on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct State<'a> {
    round: usize,
    /// Whether the thread computes, how long ago timers were due, and how long ago the stretch began;
    /// nothing where time does not matter.
    times: (bool, Vec<i128>, i128),
    after: Vec<Awaited<'a>>,
    acts: Vec<Act<'a>>,
    held: Vec<&'a str>,
}

struct Execution<'a, 'p> {
    program: &'p Program<'a>,
    shared: &'p Shared<'a>,
    cut: Cut,
    now_ns: i128,
    /// When it last computed.
    computed_ns: i128,
    /// When each timer was or is due.
    due_ns: Vec<i128>,
    /// The mutexes that it holds, in order.
    held: Vec<&'a str>,
    current: Stretch<'a>,
    stretches: Vec<Stretch<'a>>,
    steps: usize,
    /// The states so far, with the number of stretches and the time.
    seen: BTreeMap<State<'a>, (usize, i128)>,
}

/// Executes the thread. Where `endless`, its rounds have no end, whatever it says.
///
/// Time O(k log k) for k executed steps, of which there are at most 200,000.
///
/// # Errors
/// If it neither ends within [`JOBS_MAX`] jobs nor repeats itself within [`ROUNDS_MAX`] rounds, or
/// does with mutexes what no job may do.
pub(super) fn execute<'a>(
    program: &Program<'a>,
    shared: &Shared<'a>,
    cut: Cut,
    endless: bool,
) -> Result<Alone<'a>, Unknown<'a>> {
    let mut execution = Execution {
        program,
        shared,
        cut,
        now_ns: 0,
        computed_ns: 0,
        due_ns: vec![0; program.timers],
        held: Vec::new(),
        current: Stretch::at(0, Vec::new()),
        stretches: Vec::new(),
        steps: 0,
        seen: BTreeMap::new(),
    };
    let then = execution.run(endless)?;
    if matches!(then, Then::Ends { .. }) {
        execution.cut_at(execution.now_ns, Vec::new())?;
    }
    let mut stretches = execution.stretches;
    let mut dropped_sleep = false;
    for stretch in stretches.iter_mut().filter(|_| cut != Cut::Waits) {
        dropped_sleep |= stretch.drop_final_sleep();
    }
    Ok(Alone {
        stretches,
        then,
        dropped_sleep,
    })
}

impl<'a> Execution<'a, '_> {
    fn run(&mut self, endless: bool) -> Result<Then, Unknown<'a>> {
        let program = self.program;
        let rounds = match program.rounds {
            Rounds::Times(rounds) if !endless => Some(rounds),
            _ => None,
        };
        for _ in 0..rounds.unwrap_or(u64::MAX) {
            self.cut_at_round()?;
            if rounds.is_none()
                && let Some(repeats) = self.begin_round(program.phases.len())?
            {
                return Ok(repeats);
            }
            for (number, phase) in program.phases.iter().enumerate() {
                let Rounds::Times(rounds) = phase.rounds else {
                    return self.run_for_ever(number, &phase.steps);
                };
                for _ in 0..rounds {
                    self.run_steps(&phase.steps)?;
                }
            }
        }
        Ok(Then::Ends { ns: self.now_ns })
    }

    /// Runs a phase without an end until it repeats itself.
    fn run_for_ever(&mut self, phase: usize, steps: &[Step<'a>]) -> Result<Then, Unknown<'a>> {
        loop {
            self.cut_at_round()?;
            if let Some(repeats) = self.begin_round(phase)? {
                return Ok(repeats);
            }
            self.run_steps(steps)?;
        }
    }

    fn cut_at_round(&mut self) -> Result<(), Unknown<'a>> {
        match self.cut {
            Cut::Rounds => self.cut_at(self.now_ns, Vec::new()),
            Cut::Timers | Cut::Sleeps | Cut::Waits => Ok(()),
        }
    }

    /// Notes the state in which a round begins; how the thread goes on if it was in this one before.
    fn begin_round(&mut self, round: usize) -> Result<Option<Then>, Unknown<'a>> {
        let late = self.due_ns.iter().any(|&due| due < self.now_ns);
        if self.seen.len() > ROUNDS_MAX {
            return Err(match late {
                true => Unknown::EverLater,
                false => Unknown::TooLong,
            });
        }
        let times = || {
            let due = self.due_ns.iter().map(|due| due - self.now_ns).collect();
            let computes = self.computed_ns == self.now_ns;
            (computes, due, self.current.release_ns - self.now_ns)
        };
        let state = State {
            round,
            times: match self.cut {
                Cut::Waits => Default::default(),
                Cut::Timers | Cut::Sleeps | Cut::Rounds => times(),
            },
            after: self.current.after.clone(),
            acts: self.current.acts.clone(),
            held: self.held.clone(),
        };
        Ok(match self.seen.entry(state) {
            Entry::Vacant(entry) => {
                entry.insert((self.stretches.len(), self.now_ns));
                None
            }
            Entry::Occupied(entry) => {
                let &(first, before_ns) = entry.get();
                let ns = self.now_ns - before_ns;
                Some(Then::Repeats { first, ns })
            }
        })
    }

    fn run_steps(&mut self, steps: &[Step<'a>]) -> Result<(), Unknown<'a>> {
        self.steps += steps.len().max(1);
        if self.steps > STEPS_MAX || self.stretches.len() > JOBS_MAX {
            return Err(Unknown::TooLong);
        }
        for &step in steps {
            self.run_step(step)?;
        }
        match self.now_ns <= i128::from(Span::MAX.as_ns()) {
            true => Ok(()),
            false => Err(Unknown::TooLong),
        }
    }

    fn run_step(&mut self, step: Step<'a>) -> Result<(), Unknown<'a>> {
        match step {
            Step::Act(act) => self.act(act),
            Step::WakeOne(awaited) => self.act(Act::Wake(awaited)),
            Step::Timer {
                timer,
                period,
                late,
            } => {
                let due = &mut self.due_ns[timer];
                *due += i128::from(period.as_ns());
                if self.now_ns <= *due {
                    self.now_ns = *due;
                } else if late == Late::FromNow {
                    *due = self.now_ns;
                }
                // A job that is late since the thread slept or waited for another timer is not
                // released before the thread comes.
                let release_ns = match self.computed_ns == self.now_ns {
                    true => *due,
                    false => self.now_ns,
                };
                match self.cut == Cut::Timers {
                    true => self.cut_at(release_ns, Vec::new()),
                    false => Ok(()),
                }
            }
            Step::Wait { for_what, .. } if self.cut == Cut::Waits => self.wait(for_what),
            Step::Wait { .. } => Ok(()),
        }
    }

    fn act(&mut self, act: Act<'a>) -> Result<(), Unknown<'a>> {
        match act {
            Act::Run(span) => {
                if !span.is_zero() {
                    self.now_ns += i128::from(span.as_ns());
                    self.computed_ns = self.now_ns;
                }
            }
            Act::Sleep(span) => {
                self.now_ns += i128::from(span.as_ns());
                if self.cut == Cut::Sleeps && !span.is_zero() {
                    self.current.add(act);
                    return self.cut_at(self.now_ns, Vec::new());
                }
            }
            Act::Lock(mutex) => match self.held.binary_search(&mutex) {
                Ok(_) => return Err(Unknown::LockedTwice(mutex)),
                Err(place) => self.held.insert(place, mutex),
            },
            Act::Unlock(mutex) => match self.held.binary_search(&mutex) {
                Ok(place) => drop(self.held.remove(place)),
                Err(_) if self.shared.has_mutex(mutex) => return Err(Unknown::NotLocked(mutex)),
                Err(_) => {}
            },
            Act::Wake(_) => {}
        }
        if self.shared.matters(act) {
            self.current.add(act);
        }
        Ok(())
    }

    /// Waits for other threads. Semaphores that are waited for one after the other are all waited for.
    fn wait(&mut self, for_what: Awaited<'a>) -> Result<(), Unknown<'a>> {
        let is_semaphore = |it: &Awaited<'_>| matches!(it, Awaited::Semaphore(_));
        let Stretch { after, acts, .. } = &mut self.current;
        let goes_on = acts.is_empty()
            && after.first().is_some_and(is_semaphore)
            && is_semaphore(&for_what)
            && !after.contains(&for_what);
        if goes_on {
            after.push(for_what);
            after.sort_unstable();
            return Ok(());
        }
        self.cut_at(self.now_ns, vec![for_what])
    }

    /// Ends the stretch, and begins one that is released then.
    fn cut_at(&mut self, release_ns: i128, after: Vec<Awaited<'a>>) -> Result<(), Unknown<'a>> {
        let mut held = self.held.iter();
        if let Some(mutex) = held.find(|mutex| self.shared.has_mutex(mutex)) {
            return Err(Unknown::HeldBetween(mutex));
        }
        let ended = std::mem::replace(&mut self.current, Stretch::at(release_ns, after));
        if ended.needs_cpu() || self.cut == Cut::Waits {
            self.stretches.push(ended);
        }
        Ok(())
    }
}

impl<'a> Stretch<'a> {
    const fn at(release_ns: i128, after: Vec<Awaited<'a>>) -> Self {
        let acts = Vec::new();
        Self {
            release_ns,
            after,
            acts,
        }
    }

    /// Whether there is anything in it for which the thread needs a CPU.
    pub(super) fn needs_cpu(&self) -> bool {
        let mut acts = self.acts.iter();
        acts.any(|act| !matches!(act, Act::Sleep(_)))
    }

    /// Adds what it does; joins it with what came last if that is of its kind.
    fn add(&mut self, act: Act<'a>) {
        match (self.acts.last_mut(), act) {
            (_, Act::Run(span) | Act::Sleep(span)) if span.is_zero() => {}
            (Some(Act::Run(before)), Act::Run(more))
            | (Some(Act::Sleep(before)), Act::Sleep(more)) => *before += more,
            _ => self.acts.push(act),
        }
    }

    /// Returns whether there was one.
    fn drop_final_sleep(&mut self) -> bool {
        let last = self.acts.pop_if(|act| matches!(act, Act::Sleep(_)));
        last.is_some()
    }
}
