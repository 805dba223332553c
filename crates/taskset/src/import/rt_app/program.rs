//! What an rt-app thread does: its phases and their events, in order, and what of them no task can
//! do.
//!
//! An event that waits for another thread, or takes as long as the machine needs, is a reason to
//! refuse the thread.

use shiftwork_model::Span;

use super::event::{Kind, kind_of, timer_name};
use super::users::Users;
use super::value::Json;
use crate::error::TasksetError;

/// A thread: its phases in turn, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) phases: Vec<Phases>,
    pub(super) rounds: Rounds,
    /// How many timers its steps name.
    pub(super) timers: usize,
}

/// A phase, repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phases {
    pub(super) steps: Vec<Step>,
    pub(super) rounds: Rounds,
}

/// How often a phase or all of them are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    Endless,
    Times(u64),
}

/// One event, as far as a task does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Computes for this long.
    Run(Span),
    /// Suspends itself for this long.
    Sleep(Span),
    /// Adds the period to the time of the timer, and waits for that time if it is to come.
    Timer {
        timer: usize,
        period: Span,
        late: Late,
    },
}

/// Where a timer counts from after a thread came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// From its own time: mode absolute.
    FromTimer,
    /// From when the thread came: mode relative.
    FromNow,
}

/// A thread as it was read.
pub(super) struct Thread {
    pub(super) program: Program,
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
pub(super) fn read(
    thread: Json<'_>,
    users: &Users<'_>,
    deadline_server: bool,
) -> Result<Thread, TasksetError> {
    let mut reader = Reader {
        users,
        deadline_server,
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
    Ok(Thread {
        program,
        lost: reader.lost,
        refused: reader.refused,
        relative: reader.relative,
    })
}

impl Program {
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
    pub(super) fn recurring(&self) -> &[Phases] {
        let endless = |phase: &Phases| phase.rounds == Rounds::Endless;
        match self.phases.iter().position(endless) {
            Some(last) => &self.phases[last..=last],
            None => &self.phases,
        }
    }
}

impl Rounds {
    fn of(number: i64) -> Self {
        u64::try_from(number).map_or(Self::Endless, Self::Times)
    }
}

struct Reader<'a> {
    users: &'a Users<'a>,
    deadline_server: bool,
    /// The names of the timers, each at its number.
    timers: Vec<&'a str>,
    lost: Vec<String>,
    refused: Vec<String>,
    relative: bool,
}

impl<'a> Reader<'a> {
    /// The round of a thread from before there were events.
    fn read_exec(&mut self, thread: Json<'a>) -> Result<Vec<Step>, TasksetError> {
        let mut steps = Vec::new();
        for member in thread.members()? {
            match member.key {
                "exec" => steps.push(Step::Run(member.microseconds()?)),
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
    fn read_steps(&mut self, phase: Json<'a>) -> Result<Vec<Step>, TasksetError> {
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

    /// An event as a step; `None` for one without an effect on the thread, and for one that is a
    /// reason to refuse it.
    fn read_event(&mut self, event: Json<'a>, kind: Kind) -> Result<Option<Step>, TasksetError> {
        let key = event.key;
        let reason = match kind {
            Kind::Run => return Ok(Some(Step::Run(event.microseconds()?))),
            Kind::Sleep => return Ok(Some(Step::Sleep(event.microseconds()?))),
            Kind::Timer => return self.read_timer(event).map(Some),
            Kind::Wakes => return Ok(None),
            Kind::Mutex => match event.text_or_empty() {
                mutex if self.users.of_mutex(mutex) > 1 => {
                    format!("`{key}` takes mutex `{mutex}`, as other threads do")
                }
                _ => return Ok(None),
            },
            Kind::Barrier => match event.text_or_empty() {
                barrier if self.users.of_barrier(barrier) > 1 => {
                    format!("`{key}` waits for other threads at `{barrier}`")
                }
                _ => return Ok(None),
            },
            Kind::Waits => format!("`{key}` waits for another thread"),
            Kind::TakesUnknownTime => format!("`{key}` takes as long as the machine needs"),
            Kind::Fork => format!("`{key}` starts threads while it runs"),
            Kind::Yield if self.deadline_server => {
                format!("`{key}` gives back the rest of the budget")
            }
            Kind::Yield => {
                let lost = format!("`{key}`; threads of equal priority do not take turns");
                self.lost.push(lost);
                return Ok(None);
            }
        };
        self.refused.push(reason);
        Ok(None)
    }

    fn read_timer(&mut self, timer: Json<'a>) -> Result<Step, TasksetError> {
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
