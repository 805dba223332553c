//! A thread on its own: when it wakes up and how long it computes then, with a CPU whenever it wants
//! one, until it ends or repeats itself.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use shiftwork_model::{Phase, Span};

use super::program::{Late, Program, Rounds, Step};

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
}

/// What a thread does between two cuts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// When it may begin, in ns since the thread started: when its timer was due, even if the thread
    /// still computed then.
    pub(super) release_ns: i128,
    /// What it does. A final sleep is left out; without a run there is nothing to do.
    pub(super) phases: Vec<Phase>,
}

/// What a thread does on its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Alone {
    /// In order of time.
    pub(super) stretches: Vec<Stretch>,
    /// How it goes on after them.
    pub(super) then: Then,
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
pub(super) enum Unknown {
    /// It neither ends nor repeats itself in time.
    TooLong,
    /// It comes to an absolute timer later every time.
    EverLater,
}

/// Where a round begins: what all that follows depends on.
type State = (usize, bool, Vec<i128>, i128, Vec<Phase>);

struct Execution<'a> {
    program: &'a Program,
    cut: Cut,
    now_ns: i128,
    /// When it last computed.
    computed_ns: i128,
    /// When each timer was or is due.
    due_ns: Vec<i128>,
    current: Stretch,
    stretches: Vec<Stretch>,
    steps: usize,
    /// The states so far, with the number of stretches and the time.
    seen: BTreeMap<State, (usize, i128)>,
}

/// Executes the thread. Where `endless`, its rounds have no end, whatever it says.
///
/// Time O(k log k) for k executed steps, of which there are at most 200,000.
///
/// # Errors
/// If it neither ends within [`JOBS_MAX`] jobs nor repeats itself within [`ROUNDS_MAX`] rounds.
pub(super) fn execute(program: &Program, cut: Cut, endless: bool) -> Result<Alone, Unknown> {
    let mut execution = Execution {
        program,
        cut,
        now_ns: 0,
        computed_ns: 0,
        due_ns: vec![0; program.timers],
        current: Stretch::at(0),
        stretches: Vec::new(),
        steps: 0,
        seen: BTreeMap::new(),
    };
    let then = execution.run(endless)?;
    let mut stretches = execution.stretches;
    if matches!(then, Then::Ends { .. }) {
        stretches.push(execution.current);
    }
    for stretch in &mut stretches {
        stretch.drop_final_sleep();
    }
    Ok(Alone { stretches, then })
}

impl Execution<'_> {
    fn run(&mut self, endless: bool) -> Result<Then, Unknown> {
        let program = self.program;
        let rounds = match program.rounds {
            Rounds::Times(rounds) if !endless => Some(rounds),
            _ => None,
        };
        for _ in 0..rounds.unwrap_or(u64::MAX) {
            self.cut_at_round();
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
    fn run_for_ever(&mut self, phase: usize, steps: &[Step]) -> Result<Then, Unknown> {
        loop {
            self.cut_at_round();
            if let Some(repeats) = self.begin_round(phase)? {
                return Ok(repeats);
            }
            self.run_steps(steps)?;
        }
    }

    fn cut_at_round(&mut self) {
        if self.cut == Cut::Rounds {
            self.cut_at(self.now_ns);
        }
    }

    /// Notes the state in which a round begins; how the thread goes on if it was in this one before.
    fn begin_round(&mut self, round: usize) -> Result<Option<Then>, Unknown> {
        let late = self.due_ns.iter().any(|&due| due < self.now_ns);
        if self.seen.len() > ROUNDS_MAX {
            return Err(match late {
                true => Unknown::EverLater,
                false => Unknown::TooLong,
            });
        }
        let state = (
            round,
            self.computed_ns == self.now_ns,
            self.due_ns.iter().map(|due| due - self.now_ns).collect(),
            self.current.release_ns - self.now_ns,
            self.current.phases.clone(),
        );
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

    fn run_steps(&mut self, steps: &[Step]) -> Result<(), Unknown> {
        self.steps += steps.len().max(1);
        if self.steps > STEPS_MAX || self.stretches.len() > JOBS_MAX {
            return Err(Unknown::TooLong);
        }
        for &step in steps {
            self.run_step(step);
        }
        match self.now_ns <= i128::from(Span::MAX.as_ns()) {
            true => Ok(()),
            false => Err(Unknown::TooLong),
        }
    }

    fn run_step(&mut self, step: Step) {
        match step {
            Step::Run(span) => {
                if !span.is_zero() {
                    self.now_ns += i128::from(span.as_ns());
                    self.computed_ns = self.now_ns;
                    self.current.add(Phase::Run(span));
                }
            }
            Step::Sleep(span) => {
                self.now_ns += i128::from(span.as_ns());
                self.current.add(Phase::Sleep(span));
                if self.cut == Cut::Sleeps && !span.is_zero() {
                    self.cut_at(self.now_ns);
                }
            }
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
                if self.cut == Cut::Timers {
                    self.cut_at(release_ns);
                }
            }
        }
    }

    /// Ends the stretch, and begins one that is released then.
    fn cut_at(&mut self, release_ns: i128) {
        let ended = std::mem::replace(&mut self.current, Stretch::at(release_ns));
        if ended.computes() {
            self.stretches.push(ended);
        }
    }
}

impl Stretch {
    fn at(release_ns: i128) -> Self {
        let phases = Vec::new();
        Self { release_ns, phases }
    }

    /// Whether it has anything to do.
    pub(super) fn computes(&self) -> bool {
        self.phases
            .iter()
            .any(|phase| matches!(phase, Phase::Run(_)))
    }

    /// Adds a phase; joins it with the last one if that is of its kind.
    fn add(&mut self, phase: Phase) {
        match (self.phases.last_mut(), phase) {
            (_, Phase::Run(span) | Phase::Sleep(span)) if span.is_zero() => {}
            (Some(Phase::Run(before)), Phase::Run(more))
            | (Some(Phase::Sleep(before)), Phase::Sleep(more)) => *before += more,
            _ => self.phases.push(phase),
        }
    }

    fn drop_final_sleep(&mut self) {
        if let Some(Phase::Sleep(_)) = self.phases.last() {
            self.phases.pop();
        }
    }
}
