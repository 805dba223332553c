//! Faults of an agent that enacts its decisions by fixed priorities: no thread may be left at one
//! of them.

use std::fs;
use std::panic;

use rustix::process::Signal;
use shiftwork_cli::catalogue;
use shiftwork_live::{Attention, Backend, Ended as RunEnded};
use shiftwork_model::{Order, Span};

use super::actor::Actor;
use super::agent::Fails;
use super::others::bound;
use super::{Live, all_is_well, file, goes_on, wait_for};
use crate::running::run_as_it_comes;

/// The scheduling policy of a thread at a fixed priority, in `/proc/PID/stat`.
const FIFO: &str = "1";

/// Two tasks that want all of one CPU, so that one of them is always held in the middle of its job,
/// and one that has another CPU.
fn crowded() -> String {
    file(&[
        &bound("first", 0, "9ms", "9ms"),
        &bound("second", 0, "9ms", "9ms"),
        &bound("third", 1, "3ms", "3ms"),
    ])
}

/// The threads at a fixed priority now, but for the kernel's own: name and process.
fn at_fifo() -> Vec<String> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let threads = fs::read_dir(process.path().join("task"));
        for thread in threads.into_iter().flatten().flatten() {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            found.extend(is_at_fifo(&stat).then_some(stat));
        }
    }
    found
}

/// By `man 5 proc_pid_stat`: field 9 has a flag for threads of the kernel, field 41 is the policy. The name,
/// which may hold anything, ends with the last bracket; after it comes field 3.
fn is_at_fifo(stat: &str) -> bool {
    const OF_KERNEL: u64 = 0x0020_0000;
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let field = |number: usize| fields.split(' ').nth(number - 3).unwrap_or_default();
    let flags: u64 = field(9).parse().unwrap_or_default();
    field(41) == FIFO && flags & OF_KERNEL == 0
}

/// Waits until no thread is at a fixed priority.
fn no_thread_is_at_fifo() -> Result<(), String> {
    let gone = wait_for("all threads to be ordinary", || {
        at_fifo().is_empty().then_some(())
    });
    gone.map_err(|why| format!("{why}: {:?}", at_fifo()))
}

/// Killed in the middle of a run: all threads are ordinary again.
pub fn killed_command_leaves_no_thread_at_fifo() -> Result<(), String> {
    const MACHINES: [&[&str]; 2] = [
        &["--machine", "fifo"],
        &["--machine", "fifo", "--agent", "shared"],
    ];
    for machine in &MACHINES[..if crate::long() { 2 } else { 1 }] {
        let other = Actor::start("hog 1")?;
        let arguments = [machine, &["--for", "100s", "--best-effort"][..]].concat();
        let live = Live::begin(&crowded(), &arguments)?;
        wait_for("all to be at work", || {
            let mut all = ["first", "second", "third"].into_iter();
            all.all(|task| live.is_at_work(task)).then_some(())
        })?;
        // The agent, its watch, three tasks and three blockers.
        if at_fifo().len() != 8 {
            return Err(format!("at fixed priorities are {:?}", at_fifo()));
        }
        live.signal(Signal::KILL)?;
        let ended = live.end()?;
        if ended.code != -Signal::KILL.as_raw() {
            return Err(format!("it ended by {}: {}", ended.code, ended.said));
        }
        no_thread_is_at_fifo()?;
        goes_on(other.id(), 20)?;
        drop(other);
        all_is_well()?;
    }
    Ok(())
}

/// Where the agent fails, the run is over and says why, and its threads are ordinary.
pub fn failing_agent_leaves_no_thread_at_fifo() -> Result<(), String> {
    // One line is enough of it: to find out all that could be said takes longer than the agent may be silent.
    panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let policies = &mut catalogue::policies();
    let strong = policies.find(|entry| entry.name == "strong-edf");
    let strong = strong.ok_or("there is no such policy")?;
    for attention in [Attention::Dedicated, Attention::Shared] {
        let ran = run_as_it_comes(&crowded(), Order::Edf, Span::from_s(100), |set| {
            let inner = strong.build(set).map_err(|error| error.to_string())?;
            let failing = Box::new(Fails { inner, left: 60 });
            Ok(Backend::Fifo(failing, attention))
        })?;
        let RunEnded::Unloaded { reason } = &ran.report.ended else {
            return Err(format!("it ended by {:?}", ran.report.ended));
        };
        println!("{reason}; {:?}", ran.report.notes);
        let done: u64 = ran.summary.tasks.iter().map(|task| task.completed).sum();
        if !reason.contains("the agent failed") || done == 0 {
            return Err(format!("{done} jobs were done, and then: {reason}"));
        }
        let mut notes = ran.report.notes.iter();
        if notes.any(|note| note.contains("could not be stopped")) {
            return Err("a thread or program did not end".to_owned());
        }
        no_thread_is_at_fifo()?;
        all_is_well()?;
    }
    Ok(())
}
