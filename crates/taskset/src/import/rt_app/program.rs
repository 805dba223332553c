//! What an rt-app thread does: its phases and their events, in order, and what of them no task can
//! do.
//!
//! An event that waits for other threads at a barrier, or takes as long as the machine needs, is a
//! reason to refuse the thread.

use std::collections::BTreeSet;

use shiftwork_model::Span;

use super::event::{Kind, condition_and_mutex, kind_of, timer_name};
use super::users::Users;
use super::value::Json;
use crate::error::TasksetError;

/// A thread: its phases in turn, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program<'a> {
    pub(super) phases: Vec<Phases<'a>>,
    pub(super) rounds: Rounds,
    /// How many timers its steps name.
    pub(super) timers: usize,
}

/// A phase, repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phases<'a> {
    pub(super) steps: Vec<Step<'a>>,
    pub(super) rounds: Rounds,
}

/// How often a phase or all of them are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    Endless,
    Times(u64),
}

/// What threads wait for and other threads make happen, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Awaited<'a> {
    /// What wakes a thread that waits there is lost where none does.
    Condition(&'a str),
    /// It counts.
    Semaphore(&'a str),
}

impl<'a> Awaited<'a> {
    /// As it is called in the file.
    pub(super) const fn name(self) -> &'a str {
        match self {
            Self::Condition(name) | Self::Semaphore(name) => name,
        }
    }
}

/// What a thread does by itself, at once or for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act<'a> {
    /// Computes for this long.
    Run(Span),
    /// Suspends itself for this long.
    Sleep(Span),
    /// Locks this mutex.
    Lock(&'a str),
    /// Unlocks this mutex.
    Unlock(&'a str),
    /// Wakes what waits for this.
    Wake(Awaited<'a>),
}

/// One event or a part of it, as far as a task does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Act(Act<'a>),
    /// Wakes one of those that wait for this.
    WakeOne(Awaited<'a>),
    /// Adds the period to the time of the timer, and waits for that time if it is to come.
    Timer {
        timer: usize,
        period: Span,
        late: Late,
    },
    /// Waits until another thread makes this happen; what the key of the event is.
    Wait {
        key: &'a str,
        for_what: Awaited<'a>,
    },
}

impl<'a> Step<'a> {
    /// What it waits for.
    pub(super) const fn awaited(self) -> Option<Awaited<'a>> {
        match self {
            Self::Wait { for_what, .. } => Some(for_what),
            Self::Act(_) | Self::WakeOne(_) | Self::Timer { .. } => None,
        }
    }

    /// What it makes happen.
    pub(super) const fn woken(self) -> Option<Awaited<'a>> {
        match self {
            Self::WakeOne(awaited) | Self::Act(Act::Wake(awaited)) => Some(awaited),
            Self::Act(_) | Self::Timer { .. } | Self::Wait { .. } => None,
        }
    }
}

/// Where a timer counts from after a thread came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// From its own time: mode absolute.
    FromTimer,
    /// From when the thread came: mode relative.
    FromNow,
}

/// The events of a thread as they were read.
pub(super) struct Events<'a> {
    pub(super) program: Program<'a>,
    /// What is lost, a line each.
    pub(super) lost: Vec<String>,
    /// Why the thread cannot be a task, a line each; empty if it can.
    pub(super) refused: Vec<String>,
    /// Whether a timer of it is relative.
    pub(super) relative: bool,
}

/// Keys of a thread or a phase that are no events and that other code reads.
const PARAMETERS: [&str; 12] = [
    "instance",
    "delay",
    "loop",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "deadline",
    "period",
    "cpus",
    "phases",
];

/// Whether the file is of before there were events: a thread has one `exec` and a `period`, and
/// its `runtime` is a budget. Where it has events, too, rt-app knows no `exec`.
fn is_before_events(thread: Json<'_>) -> Result<bool, TasksetError> {
    let is_event = |key: &str| key != "runtime" && kind_of(key).is_some();
    let has_events = thread.members()?.any(|member| is_event(member.key));
    let has_phases = thread.get("phases")?.is_some();
    Ok(thread.get("exec")?.is_some() && !has_events && !has_phases)
}

/// Reads what a thread does. `deadline_server`: whether it runs under SCHED_DEADLINE.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub(super) fn read<'a>(
    thread: Json<'a>,
    users: &Users<'_>,
    deadline_server: bool,
) -> Result<Events<'a>, TasksetError> {
    let mut reader = Reader {
        thread: thread.key,
        users,
        deadline_server,
        locked: BTreeSet::new(),
        timers: Vec::new(),
        lost: Vec::new(),
        refused: Vec::new(),
        relative: false,
    };
    let rounds = |value: Option<Json<'_>>, default| match value {
        Some(value) => value.integer(-1, i64::MAX).map(Rounds::of),
        None => Ok(default),
    };
    let mut program = Program {
        phases: Vec::new(),
        rounds: Rounds::Times(1),
        timers: 0,
    };
    if is_before_events(thread)? {
        program.phases.push(Phases {
            steps: reader.read_exec(thread)?,
            rounds: Rounds::Endless,
        });
    } else if let Some(phases) = thread.get("phases")? {
        for member in thread.members()? {
            if !PARAMETERS.contains(&member.key) && member.key != "runtime" {
                reader.lost.push(format!("`{}`", member.key));
            }
        }
        for phase in phases.members()? {
            let steps = reader.read_steps(phase)?;
            let rounds = rounds(phase.get("loop")?, Rounds::Times(1))?;
            for key in [
                "policy",
                "priority",
                "dl-runtime",
                "dl-period",
                "dl-deadline",
            ] {
                if phase.get(key)?.is_some() {
                    let reason = format!("phase `{}` changes its `{key}`", phase.key);
                    reader.refused.push(reason);
                }
            }
            program.phases.push(Phases { steps, rounds });
        }
        program.rounds = rounds(thread.get("loop")?, Rounds::Endless)?;
    } else {
        let steps = reader.read_steps(thread)?;
        let rounds = rounds(thread.get("loop")?, Rounds::Endless)?;
        program.phases.push(Phases { steps, rounds });
    }
    program.settle_rounds();
    program.timers = reader.timers.len();
    reader.refused.dedup();
    Ok(Events {
        program,
        lost: reader.lost,
        refused: reader.refused,
        relative: reader.relative,
    })
}

impl<'a> Program<'a> {
    /// A phase of no rounds is without an end, since rt-app compares after a round. A single phase
    /// of several rounds is as many rounds of the thread.
    fn settle_rounds(&mut self) {
        for phase in &mut self.phases {
            if phase.rounds == Rounds::Times(0) {
                phase.rounds = Rounds::Endless;
            }
        }
        if let [phase] = self.phases.as_mut_slice() {
            let rounds = match (self.rounds, phase.rounds) {
                (Rounds::Times(0), _) => Rounds::Times(0),
                (Rounds::Times(outer), Rounds::Times(inner)) => {
                    Rounds::Times(outer.saturating_mul(inner))
                }
                _ => Rounds::Endless,
            };
            self.rounds = rounds;
            phase.rounds = Rounds::Times(1);
        }
    }

    /// The phases that are run again and again, if the thread has no end; else all.
    pub(super) fn recurring(&self) -> &[Phases<'a>] {
        let endless = |phase: &Phases| phase.rounds == Rounds::Endless;
        match self.phases.iter().position(endless) {
            Some(last) => &self.phases[last..=last],
            None => &self.phases,
        }
    }

    /// What it waits for, each once.
    pub(super) fn awaited(&self) -> BTreeSet<Awaited<'a>> {
        self.steps().filter_map(Step::awaited).collect()
    }

    /// Leaves out where the thread wakes those that wait at these conditions.
    pub(super) fn drop_wakes(&mut self, conditions: &BTreeSet<Awaited<'a>>) {
        let is_dropped = |step: &Step<'a>| step.woken().is_some_and(|it| conditions.contains(&it));
        for phase in &mut self.phases {
            phase.steps.retain(|step| !is_dropped(step));
        }
    }

    /// All steps, in the order of the file.
    pub(super) fn steps(&self) -> impl Iterator<Item = Step<'a>> {
        self.phases.iter().flat_map(|phase| &phase.steps).copied()
    }
}

impl Rounds {
    fn of(number: i64) -> Self {
        u64::try_from(number).map_or(Self::Endless, Self::Times)
    }
}

struct Reader<'a, 'u> {
    thread: &'a str,
    users: &'u Users<'u>,
    deadline_server: bool,
    /// The mutexes that this phase has locked and not unlocked so far.
    locked: BTreeSet<&'a str>,
    /// The names of the timers, each at its number.
    timers: Vec<&'a str>,
    lost: Vec<String>,
    refused: Vec<String>,
    relative: bool,
}

impl<'a> Reader<'a, '_> {
    /// The round of a thread from before there were events.
    fn read_exec(&mut self, thread: Json<'a>) -> Result<Vec<Step<'a>>, TasksetError> {
        let mut steps = Vec::new();
        for member in thread.members()? {
            match member.key {
                "exec" => steps.push(Step::Act(Act::Run(member.microseconds()?))),
                "runtime" => {}
                key if PARAMETERS.contains(&key) => {}
                key => self.lost.push(format!("`{key}`")),
            }
        }
        if let Some(period) = thread.get("period")? {
            steps.push(Step::Timer {
                timer: self.timer("exec"),
                period: positive(period)?,
                late: Late::FromTimer,
            });
        }
        Ok(steps)
    }

    /// The events of a phase, or of a thread without phases.
    fn read_steps(&mut self, phase: Json<'a>) -> Result<Vec<Step<'a>>, TasksetError> {
        self.locked.clear();
        let mut steps = Vec::new();
        for member in phase.members()? {
            match kind_of(member.key) {
                Some(kind) => steps.extend(self.read_event(member, kind)?),
                None if PARAMETERS.contains(&member.key) => {}
                None => self.lost.push(format!("`{}`", member.key)),
            }
        }
        Ok(steps)
    }

    /// The steps of an event: none for one without an effect on any thread, and for one that is a
    /// reason to refuse the thread.
    fn read_event(&mut self, event: Json<'a>, kind: Kind) -> Result<Vec<Step<'a>>, TasksetError> {
        let key = event.key;
        let lock = |mutex| Step::Act(Act::Lock(mutex));
        let unlock = |mutex| Step::Act(Act::Unlock(mutex));
        let wait = |for_what| Step::Wait { key, for_what };
        let condition = || event.name().map(Awaited::Condition);
        let semaphore = || event.name().map(Awaited::Semaphore);
        Ok(match kind {
            Kind::Run => vec![Step::Act(Act::Run(event.microseconds()?))],
            Kind::Sleep => vec![Step::Act(Act::Sleep(event.microseconds()?))],
            Kind::Timer => vec![self.read_timer(event)?],
            Kind::Lock => {
                let mutex = event.name()?;
                self.locked.insert(mutex);
                vec![lock(mutex)]
            }
            Kind::Unlock => {
                let mutex = event.name()?;
                self.locked.remove(mutex);
                vec![unlock(mutex)]
            }
            Kind::Signal => vec![Step::WakeOne(condition()?)],
            Kind::Broadcast => vec![Step::Act(Act::Wake(condition()?))],
            Kind::SemPost => vec![Step::WakeOne(semaphore()?)],
            Kind::SemWait => vec![wait(semaphore()?)],
            Kind::Wait => {
                let (condition, mutex) = condition_and_mutex(event)?;
                let wait = wait(Awaited::Condition(condition));
                vec![unlock(mutex), wait, lock(mutex)]
            }
            Kind::Sync => {
                let (condition, mutex) = condition_and_mutex(event)?;
                let condition = Awaited::Condition(condition);
                let sync = [
                    Step::WakeOne(condition),
                    unlock(mutex),
                    wait(condition),
                    lock(mutex),
                ];
                // By its documentation it locks the mutex; its examples do so before it.
                match self.locked.contains(mutex) {
                    true => sync.to_vec(),
                    false => [&[lock(mutex)], sync.as_slice(), &[unlock(mutex)]].concat(),
                }
            }
            Kind::Suspend => {
                let name = match event.name()? {
                    "" => self.thread,
                    name => name,
                };
                let wait = wait(Awaited::Condition(name));
                vec![lock(name), unlock(name), wait, lock(name), unlock(name)]
            }
            Kind::Resume => {
                let name = event.name()?;
                let wake = Step::Act(Act::Wake(Awaited::Condition(name)));
                vec![lock(name), wake, unlock(name)]
            }
            Kind::Barrier => {
                let barrier = event.name()?;
                if self.users.of_barrier(barrier) > 1 {
                    let reason = format!("`{key}` waits for other threads at `{barrier}`");
                    self.refused.push(reason);
                }
                Vec::new()
            }
            Kind::TakesUnknownTime => {
                let reason = format!("`{key}` takes as long as the machine needs");
                self.refused.push(reason);
                Vec::new()
            }
            Kind::Fork => {
                let reason = format!("`{key}` starts threads while it runs");
                self.refused.push(reason);
                Vec::new()
            }
            Kind::Yield if self.deadline_server => {
                let reason = format!("`{key}` gives back the rest of the budget");
                self.refused.push(reason);
                Vec::new()
            }
            Kind::Yield => {
                let lost = format!("`{key}`; threads of equal priority do not take turns");
                self.lost.push(lost);
                Vec::new()
            }
        })
    }

    fn read_timer(&mut self, timer: Json<'a>) -> Result<Step<'a>, TasksetError> {
        let period = timer
            .get("period")?
            .ok_or_else(|| TasksetError::MissingKey {
                place: timer.place(),
                key: "period",
                within: format!("`{}`", timer.key),
                example: "\"period\": 2000",
            })?;
        let name = timer_name(timer)?;
        let threads = self.users.of_timer(name);
        if threads > 1 {
            self.refused.push(format!(
                "`{}` is a timer that {threads} threads share; a `ref` that begins with \"unique\" makes one for each",
                timer.key
            ));
        }
        let late = match timer.get("mode")?.map(|mode| mode.text_value(MODES)) {
            None => Late::FromNow,
            Some(mode) => match mode? {
                // As rt-app reads it: what is not absolute is relative.
                mode if mode.starts_with("absolute") => Late::FromTimer,
                _ => Late::FromNow,
            },
        };
        self.relative |= late == Late::FromNow;
        Ok(Step::Timer {
            timer: self.timer(name),
            period: positive(period)?,
            late,
        })
    }

    /// The number of the timer of this name.
    fn timer(&mut self, name: &'a str) -> usize {
        let known = self.timers.iter().position(|&known| known == name);
        known.unwrap_or_else(|| {
            self.timers.push(name);
            self.timers.len() - 1
        })
    }
}

const MODES: &str = "a mode, \"relative\" or \"absolute\"";

/// A number of microseconds that is not zero.
fn positive(value: Json<'_>) -> Result<Span, TasksetError> {
    match value.microseconds()? {
        Span::ZERO => Err(TasksetError::Zero {
            place: value.place(),
            key: value.key.to_string(),
        }),
        span => Ok(span),
    }
}
