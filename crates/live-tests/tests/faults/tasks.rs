//! What tasks do that they should not, or what is done to them.

use std::time::Duration;

use shiftwork_model::{NotReadyReason, RecordKind, TaskId};

use super::actor::{command, processes_with_role};
use super::{Ended, Live, all_is_well, file, processor_time, wait_for};

/// A program that is as it should be, first of the file.
fn good() -> String {
    let command = command("punctual 1000");
    format!("name = \"good\"\ncost = \"3ms\"\nperiod = \"10ms\"\n{command}")
}

/// A task named `bad` that plays this part.
fn bad(part: &str) -> String {
    let command = command(part);
    format!("name = \"bad\"\ncost = \"5ms\"\nperiod = \"20ms\"\n{command}")
}

/// Runs both for a second; what came of it. The good one did its work.
fn beside_good(bad: &str) -> Result<Ended, String> {
    let ended = Live::start(&file(&[&good(), bad]), &["--for", "1s"])?
        .end()?
        .well()?;
    all_is_well()?;
    match ended.of_task("good", "completed")? {
        // In the emulator it may be late, but it is not alone with its time.
        10.. => Ok(ended),
        few => Err(format!("only {few} jobs of the good task were done")),
    }
}

fn left(ended: &Ended) -> Result<(), String> {
    let task = TaskId::from_index(1);
    match ended.has(|kind| *kind == RecordKind::Left { task }) {
        true => Ok(()),
        false => Err("no record says that the bad task left".to_owned()),
    }
}

/// A program that ends in the middle of a job leaves, and a note says how it ended.
pub fn program_that_ends_within_a_job_leaves() -> Result<(), String> {
    let ended = beside_good(&bad("quits 2000"))?;
    ended.says("note: the program of task bad ended: exit status: 7")?;
    left(&ended)
}

/// The same for one that is killed.
pub fn program_that_is_killed_within_a_job_leaves() -> Result<(), String> {
    let ended = beside_good(&bad("dies 2000"))?;
    ended.says("note: the program of task bad ended: signal: 9 (SIGKILL)")?;
    left(&ended)
}

/// A program that requests a signal on overrun gets it. The signal ends the program, which does not
/// handle it.
pub fn program_is_warned_of_its_overrun() -> Result<(), String> {
    let ended = beside_good(&(bad("hog") + "\non-overrun = \"signal\""))?;
    ended.says("note: the program of task bad ended: signal: 24 (SIGXCPU)")?;
    match ended.has(|kind| matches!(kind, RecordKind::BudgetSpent { job } if job.task.index() == 1))
    {
        true => left(&ended),
        false => Err("no record says that the budget was used up".to_owned()),
    }
}

/// A task that is only warned is not throttled after a change of its attributes either.
pub fn task_that_is_only_warned_is_not_throttled_after_a_change() -> Result<(), String> {
    let bad = "name = \"bad\"\ncost = \"5ms\"\nperiod = \"20ms\"\nwork = { run = \"12ms\" }\n\
               on-overrun = \"signal\"\n[[action]]\nat = \"100ms\"\n\
               set-attr = { task = \"bad\", cost = \"6ms\" }";
    let ended = beside_good(bad)?;
    let throttled = NotReadyReason::Throttled;
    let is_throttled = |kind: &RecordKind| matches!(kind, RecordKind::NotReady { job, reason } if job.task.index() == 1 && *reason == throttled);
    let is_changed = |kind: &RecordKind| matches!(kind, RecordKind::AttributesSet { .. });
    match (ended.has(is_changed), ended.has(is_throttled)) {
        (true, false) => Ok(()),
        found => Err(format!("changed, and throttled: {found:?}")),
    }
}

/// The children of a program are ordinary work, bound as it is: they run when no task does, and
/// when one ends the program goes on. All end with the run.
pub fn children_of_a_program_are_ordinary_work() -> Result<(), String> {
    let live = Live::start(&file(&[&good(), &bad("parent 1000")]), &["--for", "2s"])?;
    let hog = wait_for("a child", || processes_with_role("hog").first().copied())?;
    wait_for("the child to run", || {
        (processor_time(hog)? > Duration::from_millis(20)).then_some(())
    })?;
    let ended = live.end()?.well()?;
    all_is_well()?;
    let jobs = ended.of_task("bad", "completed")?;
    match jobs {
        5.. => Ok(()),
        few => Err(format!(
            "only {few} jobs of the parent were done: {}",
            ended.said
        )),
    }
}
