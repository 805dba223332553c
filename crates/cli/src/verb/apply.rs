//! `shiftwork apply`: reserves for every task of a task-set file, all or none.
//!
//! # Which reservations are a file's
//! A reservation belongs to its thread, not to the command that requested it or its connection: it stays when `apply` ends, over
//! a restart of the daemon, too, and ends with the thread. Which ones a file has is in their names, `SET/TASK`, so there is no
//! state to keep beside the daemon's. SET is the `name` of the file, or else the name of the file without its extension.
//!
//! # Steps
//! 1. `threads.rs` finds the one running thread that the names of a task mean.
//! 2. `plan.rs` compares the file with the reservations that there are: threads without one are admitted; those with one of this
//!    set get the new parameters, which the daemon finds to be unchanged or not; what a task had elsewhere, as with a thread of
//!    an earlier run or under another name, ends, and with `--prune` what the file does not have any more. It is a function of
//!    its input.
//! 3. `programs.rs` starts the programs of tasks with a `command` that do not run yet, once the daemon has said that all would
//!    be admitted, and waits until they sleep.
//! 4. `negotiate.rs` has the daemon carry out all of it by one call, or none. What is given back and requested again elsewhere
//!    may have to wait for the end of a period; only then there are two calls, and what was given back is restored if the second
//!    fails.
//! 5. `output.rs` shows what became of it.

mod negotiate;
mod output;
mod plan;
mod programs;
mod threads;

use std::collections::BTreeSet;

use rustix::process::geteuid;
use shiftwork_client::{Applied, Cause, Client, Outcome, Step};
use shiftwork_model::TaskSet;
use shiftwork_observe::running_threads;

use super::daemon_client;
use crate::args::ApplyArgs;
use crate::failure::{Answer, Failure};
use crate::input::{self, Input};
use crate::output::{Console, tell};
use crate::verb::watch::{catch_interrupts, is_interrupted};
use negotiate::{Answered, attempt, carry_out, patiently};
use output::Shown;
use plan::{Plan, SEPARATOR, Situation};
use programs::{Beginning, Programs, StandIns};
use threads::Choice;

pub use output::ApplyOutput;
pub use plan::task_name;

/// Plans, asks the daemon, and shows what became of it.
pub fn run(args: &ApplyArgs, console: &mut Console) -> Result<Answer, Failure> {
    let input = Input::read(&args.file)?;
    let mut set = input::task_set(&input, console)?;
    input.locate_programs(&mut set);
    let name = set_name(&input, &set)?;
    let mut client = daemon_client::connect()?;
    let status = client.status();
    let status = status.map_err(|failure| daemon_client::of(&failure))?;
    let named = set.tasks.iter().filter_map(|it| it.thread.as_ref());
    let processes: BTreeSet<String> = named.map(|it| it.process.clone()).collect();
    let threads = match processes.is_empty() {
        true => Vec::new(),
        false => running_threads(&processes),
    };
    let plan = plan::plan(&Situation {
        set: &set,
        name: &name,
        threads: &threads,
        status: &status,
        choice: Choice {
            user: geteuid().as_raw(),
            processes: &args.pid,
        },
        prune: args.prune,
    })
    .map_err(|mistakes| Failure::in_file_each(&input.path, &mistakes))?;
    note_ignored(&set, &plan, args, console);
    let mut applying = Applying {
        set: &name,
        input: &input,
        plan: &plan,
        client: &mut client,
        console,
    };
    match args.dry_run {
        true => applying.attempt(true),
        false => applying.apply(),
    }
}

/// The name of the set: that in the file, or else that of the file.
///
/// # Errors
/// If there is none, or one that no reservation can have.
pub fn set_name(input: &Input, set: &TaskSet) -> Result<String, Failure> {
    let name = input::named_after(input, set.clone()).name;
    let found = match name.as_str() {
        "" => "has no `name`".to_owned(),
        _ if name.contains(SEPARATOR) || name.chars().any(char::is_control) => {
            format!("has the name {name:?}")
        }
        _ => return Ok(name),
    };
    Err(Failure::in_file(
        &input.path,
        format_args!(
            "{found}; write a name without `{SEPARATOR}` on one line, by which its reservations are found again, like name = \
             \"rover\""
        ),
    ))
}

/// Says what of the file has no effect.
fn note_ignored(set: &TaskSet, plan: &Plan, args: &ApplyArgs, console: &Console) {
    if !set.actions.is_empty() {
        console.note("note: timed changes ([[action]]) are not carried out");
    }
    if !plan.kept.is_empty() && !args.prune {
        console.note(format!(
            "note: not in the file any more, and kept: {}; `--prune` gives them back",
            plan.kept.join(", ")
        ));
    }
}

/// One step for the daemon.
pub struct Request {
    /// What is requested.
    pub step: Step,
    /// Whether it is only asked what would become of it.
    pub dry_run: bool,
}

/// Has the daemon carry out one step, and waits a moment for what still counts.
///
/// # Errors
/// If the daemon does not answer.
pub fn request(client: &mut Client, request: Request) -> Result<Outcome, Failure> {
    let steps = [request.step];
    let mut call = |steps: &[Step], is_dry: bool| {
        let answer = client.apply(steps, is_dry);
        answer.map_err(|failure| daemon_client::of(&failure))
    };
    let answer = match request.dry_run {
        true => call(&steps, true)?,
        false => patiently(&steps, &mut call)?,
    };
    let outcome = answer.outcomes.into_iter().next();
    outcome.ok_or_else(|| Failure::Machine("the daemon does not say what became of it".to_owned()))
}

struct Applying<'a> {
    set: &'a str,
    input: &'a Input,
    plan: &'a Plan,
    client: &'a mut Client,
    console: &'a mut Console,
}

impl Applying<'_> {
    /// Asks what would be admitted; the programs are not started. Shown unless it is only asked whether to go on.
    fn attempt(&mut self, is_shown: bool) -> Result<Answer, Failure> {
        let stand_ins = StandIns::start(self.plan.programs.len())
            .map_err(|error| Failure::Machine(format!("no thread can be created: {error}")))?;
        let requests = self.plan.requests(stand_ins.threads());
        let answered = attempt(&requests, &mut |steps, is_dry| self.call(steps, is_dry))?;
        // What still counts is waited for later.
        let goes_on = answered.applied || answered.later;
        if !is_shown && goes_on {
            return Ok(Answer::Yes);
        }
        if is_shown && answered.later {
            self.console.note(
                "note: it is admitted within moments, as soon as what has ended or changed counts no more",
            );
        }
        let answered = Answered {
            applied: goes_on,
            ..answered
        };
        let (plan, set) = (self.plan, self.set);
        let shown = Shown {
            set,
            plan,
            requests: &requests,
            answered: &answered,
            programs: &[],
            dry_run: is_shown,
        };
        let answer = self.conclude(&shown);
        if is_shown && goes_on {
            self.console.note("dry run: nothing is changed");
        }
        answer
    }

    fn apply(&mut self) -> Result<Answer, Failure> {
        let mut programs = Programs::default();
        if !self.plan.programs.is_empty() {
            // None is started that would not be admitted.
            match self.attempt(false)? {
                Answer::Yes => {}
                other => return Ok(other),
            }
            if let Some(answer) = self.start(&mut programs)? {
                return Ok(answer);
            }
        }
        let threads = programs.threads();
        let (plan, set) = (self.plan, self.set);
        let requests = plan.requests(&threads);
        let answered = carry_out(plan, &requests, &mut |steps, is_dry| {
            self.call(steps, is_dry)
        })?;
        if answered.applied {
            programs.leave();
        }
        let shown = Shown {
            set,
            plan,
            requests: &requests,
            answered: &answered,
            programs: &threads,
            dry_run: false,
        };
        self.conclude(&shown)
    }

    /// Starts the programs, and waits until they sleep; an answer if that is the end.
    fn start(&mut self, programs: &mut Programs) -> Result<Option<Answer>, Failure> {
        catch_interrupts();
        let plan = self.plan;
        let name = |place: usize| {
            let is_it = |it: &&plan::Entry| it.target == plan::Target::Program(place);
            let task = plan.entries.iter().find(is_it).map(|it| it.task.clone());
            let program = plan.programs[place].first().cloned().unwrap_or_default();
            format!("task `{}`: `{program}`", task.unwrap_or_default())
        };
        for (place, command) in plan.programs.iter().enumerate() {
            programs.start(command).map_err(|error| {
                let what = format!("{} cannot be started: {error}", name(place));
                Failure::in_file(&self.input.path, what)
            })?;
        }
        match programs.wait_until_begun() {
            Beginning::Interrupted => Ok(Some(Answer::Interrupted)),
            Beginning::Ended(place, how) => Err(Failure::in_file(
                &self.input.path,
                format_args!(
                    "{} ended by itself before it had a reservation: {how}; nothing is changed",
                    name(place)
                ),
            )),
            Beginning::Begun(awake) => {
                for place in awake {
                    self.console.note(format!(
                        "note: {} has not slept since it was started; what it does is a job from now on",
                        name(place)
                    ));
                }
                Ok(is_interrupted().then_some(Answer::Interrupted))
            }
        }
    }

    fn call(&mut self, steps: &[Step], is_dry: bool) -> Result<Applied, Failure> {
        let answer = self.client.apply(steps, is_dry);
        answer.map_err(|failure| daemon_client::of(&failure))
    }

    /// Shows what became of it. What could not be requested is a failure.
    fn conclude(&mut self, shown: &Shown<'_>) -> Result<Answer, Failure> {
        let Some((entry, outcome)) = shown.refused().filter(|_| !shown.answered.applied) else {
            shown.print(self.console)?;
            return Ok(Answer::Yes);
        };
        let reason = outcome.reason.as_deref().unwrap_or_default();
        let of = match entry.target {
            plan::Target::Thread { thread, .. } => {
                format!("task `{}` (thread {thread})", entry.task)
            }
            plan::Target::Program(_) => format!("task `{}`", entry.task),
        };
        for (name, why) in &shown.answered.not_restored {
            tell(&format!(
                "`{name}` was given back for this, and is not admitted again: {why}"
            ));
        }
        match outcome.cause {
            Some(Cause::Refused | Cause::Exhausted) | None => {
                shown.print(self.console)?;
                let changed = match shown.answered.not_restored.is_empty() {
                    true => "nothing is changed",
                    false => "the rest is as before",
                };
                tell(&format!("{of} is refused, {changed}: {reason}"));
                Ok(Answer::No)
            }
            Some(Cause::Invalid | Cause::Forbidden | Cause::Missing) => Err(Failure::in_file(
                &self.input.path,
                format_args!("{of}: {reason}; nothing is changed"),
            )),
            Some(Cause::Broken) => Err(Failure::Machine(format!("the daemon failed: {reason}"))),
        }
    }
}
