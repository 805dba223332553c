//! What happens to the command that has loaded the scheduler.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::actor::{command, processes_with_role};
use super::{
    Live, all_is_well, every_cpu_serves, file, goes_on, processor_time, state, wait_for,
    wait_for_state,
};

/// A thread that computes half of the time.
const THREAD: &str = "name = \"thread\"\ncost = \"5ms\"\nperiod = \"10ms\"";

/// A program that computes for 1 ms of every 10.
fn program() -> String {
    let command = command("punctual 1000");
    format!("name = \"program\"\ncost = \"3ms\"\nperiod = \"10ms\"\n{command}")
}

/// A program that never ends a job, on CPU 1 of the machine, and may use a fifth of it.
fn greedy() -> String {
    let command = command("hog");
    format!("name = \"greedy\"\ncost = \"2ms\"\nperiod = \"10ms\"\naffinity = \"0\"\n{command}")
}

/// The process that plays the part, once it has computed for a while.
fn at_work(part: &str) -> Result<u32, String> {
    wait_for(&format!("{part} to be at work"), || {
        let process = *processes_with_role(part).first()?;
        (processor_time(process)? > Duration::from_millis(5)).then_some(process)
    })
}

/// Killed by a signal that it cannot catch, or by one that says that it has gone wrong: the kernel
/// unloads the scheduler, threads and programs end with the command, and the trace is there as far as
/// it was written.
pub fn killed_command_takes_its_scheduler_and_tasks_with_it() -> Result<(), String> {
    for signal in [Signal::KILL, Signal::ABORT] {
        let live = Live::start(&file(&[THREAD, &program()]), &["--for", "100s"])?;
        // Long enough for some of the trace to be in the file.
        goes_on(at_work("punctual")?, 20)?;
        thread::sleep(Duration::from_secs(1));
        live.signal(signal)?;
        let ended = live.end()?;
        if ended.code != -signal.as_raw() {
            return Err(format!("it ended by {}: {}", ended.code, ended.said));
        }
        let trace = ended.trace?;
        if trace.records.is_empty() || trace.ended.is_some() {
            return Err(format!(
                "{} records, to {:?}",
                trace.records.len(),
                trace.ended
            ));
        }
        all_is_well()?;
    }
    Ok(())
}

/// How much of a CPU the program has for a second, while the other one goes on; `None` if one of them is gone.
#[allow(clippy::disallowed_methods, reason = "a share is one of time")]
fn share_of(greedy: u32, punctual: u32) -> Option<f64> {
    let (before, began) = (processor_time(greedy)?, Instant::now());
    goes_on(punctual, 5).ok()?;
    thread::sleep(Duration::from_secs(1));
    let (after, took) = (processor_time(greedy)?, began.elapsed());
    let share = (after - before).as_secs_f64() / took.as_secs_f64();
    println!("the greedy program had {share:.3} of its CPU");
    Some(share)
}

/// The same with the scheduler pinned: it stays, and keeps the budgets of programs, which go on. It
/// ends when its folder is removed, and the programs go on under the kernel's own.
pub fn pinned_scheduler_outlives_the_command() -> Result<(), String> {
    const FOLDER: &str = "/sys/fs/bpf/faults";
    let tasks = file(&[THREAD, &program(), &greedy()]);
    let live = Live::start(&tasks, &["--for", "100s", "--pin", FOLDER])?;
    let (punctual, greedy) = (at_work("punctual")?, at_work("hog")?);
    live.signal(Signal::KILL)?;
    live.end()?;
    // It may use 2 ms of every 10. In the emulator a CPU may stand still while it seems to compute, for as long as a
    // second when the command has just gone; it pays for that, five times as long, and then the rule holds.
    let is_kept = (0..9)
        .any(|_| matches!(share_of(greedy, punctual), Some(share) if (0.01..0.5).contains(&share)));
    if state() != "enabled" {
        return Err(format!("sched_ext is {} although it is pinned", state()));
    }
    if !is_kept {
        return Err("a fifth was promised, and never given".to_owned());
    }
    every_cpu_serves()?;
    fs::remove_dir_all(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))?;
    wait_for_state("disabled")?;
    for process in [punctual, greedy] {
        goes_on(process, 5)?;
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::KILL).map_err(|error| error.to_string())?;
    }
    all_is_well()
}

/// Stopped for a while: the kernel goes on scheduling programs. Events that find no room in the
/// trace meanwhile are counted, and a note says how many; then the run ends as any.
pub fn tasks_are_scheduled_while_the_command_is_stopped() -> Result<(), String> {
    let quick = command("punctual 300");
    let quick = format!("name = \"quick\"\ncost = \"1ms\"\nperiod = \"2ms\"\n{quick}");
    let live = Live::start(
        &file(&[THREAD, &quick]),
        &["--for", "3s", "--trace-buffer", "4"],
    )?;
    let punctual = at_work("punctual")?;
    live.signal(Signal::STOP)?;
    goes_on(punctual, 60)?;
    every_cpu_serves()?;
    live.signal(Signal::CONT)?;
    let ended = live.end()?.well()?;
    let lost = ended.number("/lost_records")?;
    // There is room for 170. Each of the 200 jobs of the program that it slept through has a handful.
    if !(200..100_000).contains(&lost) {
        return Err(format!("{lost} events were lost"));
    }
    ended.says(&format!("note: {lost} events of the trace found no room"))?;
    all_is_well()
}

/// The trace has no room for the events between two polls: lost events are counted, a note says how
/// many, and scheduling does not depend on them.
pub fn events_without_room_in_the_trace_are_counted() -> Result<(), String> {
    let quick = "name = \"quick\"\ncost = \"400us\"\nperiod = \"1ms\"\nwork = { run = \"50us\" }";
    let tasks = file(&[quick, &program()]);
    let ended = Live::start(&tasks, &["--for", "1s", "--trace-buffer", "4"])?
        .end()?
        .well()?;
    let lost = ended.number("/lost_records")?;
    println!("{lost} events were lost");
    // Each of 1000 jobs has at least the events of the next release, of its start and of its stop,
    // and there are at most 20 for each; 170 fit.
    if !(100..40_000).contains(&lost) {
        return Err(format!("{lost} events were lost"));
    }
    ended.says(&format!("note: {lost} events of the trace found no room"))?;
    // Releases are known without events.
    let released = ended.of_task("quick", "jobs")?;
    if released != 1000 {
        return Err(format!("{released} of 1000 releases are known"));
    }
    all_is_well()
}

/// Ctrl-C in the middle: the run stops, and shows what there was until then.
pub fn interrupted_run_shows_what_was_measured() -> Result<(), String> {
    let live = Live::start(&file(&[THREAD, &program()]), &["--for", "100s"])?;
    at_work("punctual")?;
    live.signal(Signal::INT)?;
    let ended = live.end()?.well()?;
    let reached = ended.number("/horizon_ns")?;
    let done = ended.of_task("thread", "completed")?;
    if done == 0 || reached >= 100_000_000_000 {
        return Err(format!("{done} jobs were done in {reached} ns"));
    }
    all_is_well()
}
