//! Jobs that begin without a wake-up of their own, or with several in one interrupt: no CPU misses them.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use shiftwork_model::{Instant, RecordKind, Span, TaskSet};
use shiftwork_trace::perfetto::TraceFile;

use crate::command::{THREE_CPUS, run_with_trace};

/// On the first CPU a task that needs more than there is, so that a job always waits for the one before it;
/// on the others nothing, since what coincides takes longer in the emulator. Nothing is kept for ordinary work, which
/// waits there for as long.
const BACKLOGGED: &str = r#"
name = "backlogged"
[platform]
cpus = 3
[scheduler]
reserve = 0.0
[[task]]
name = "behind"
cost = "300us"
period = "300us"
affinity = "0"
on-overrun = "continue"
work = { run = "400us" }
"#;

/// From the end of a job to that of the next: what it computes, and far more than an agent takes to hear and to decide,
/// but less than a tick of 4 ms, by which a CPU that missed a job might find it.
const INTERVAL_MAX: Span = Span::from_us(400 + 1_600);

/// How long a run is. An agent that polls starves the ordinary work of its own CPU. After some time
/// the kernel's deadline server gives that work 50 ms of each second, in which the agent makes no
/// decisions.
const MS: u64 = 700;

/// How many runs.
fn runs() -> usize {
    if crate::long() { 20 } else { 2 }
}

/// Where an agent decides, on two threads that race: it assigns the next task while the CPU looks
/// for one.
pub fn job_that_waited_follows_at_once_under_an_agent() -> Result<(), String> {
    follows_at_once("agent", runs())
}

/// The same where the core decides in the kernel.
pub fn job_that_waited_follows_at_once_in_the_kernel() -> Result<(), String> {
    follows_at_once("kernel", runs())
}

/// During a run its memory stays where it is: all of it is locked, in pages that the kernel does not replace by huge ones. A
/// thread that touches a page which is being replaced sleeps for as long as ordinary work takes to copy 2 MiB.
pub fn memory_of_a_run_is_locked_in_small_pages() -> Result<(), String> {
    let set: TaskSet = shiftwork_taskset::read(BACKLOGGED).map_err(|error| error.to_string())?;
    let on = [&THREE_CPUS[..], &["--machine", "kernel", "--no-compare"]].concat();
    thread::scope(|scope| {
        let ran = scope.spawn(|| run_with_trace(&set, "p-edf", MS, &on).map(|_| ()));
        let mut status = None;
        while status.is_none() && !ran.is_finished() {
            thread::sleep(Duration::from_millis(10));
            status = status_of_process_with("behind");
        }
        ran.join().map_err(|_| "the run panicked")??;
        let status = status.ok_or("the run had no thread `behind`")?;
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::trim).ok_or(format!("no `{key}` in {status}"))
        };
        let (locked, huge) = (value("VmLck:")?, value("THP_enabled:")?);
        println!("{locked} locked, huge pages allowed: {huge}");
        match huge == "0" && locked != "0 kB" {
            true => Ok(()),
            false => Err(status),
        }
    })
}

/// What the kernel says of the process that has a thread of this name.
fn status_of_process_with(thread: &str) -> Option<String> {
    let folder = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let is_it = |task: &PathBuf| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == thread)
    };
    let processes = folder("/proc".into()).map(|process| process.path());
    let mut tasks = processes.flat_map(|process| folder(process.join("task")));
    let task = tasks.find_map(|task| Some(task.path()).filter(is_it))?;
    fs::read_to_string(task.join("status")).ok()
}

fn follows_at_once(machine: &str, runs: usize) -> Result<(), String> {
    let set: TaskSet = shiftwork_taskset::read(BACKLOGGED).map_err(|error| error.to_string())?;
    let on = [&THREE_CPUS[..], &["--machine", machine, "--no-compare"]].concat();
    let mut all = Vec::new();
    for _ in 0..runs {
        let (_, trace) = run_with_trace(&set, "p-edf", MS, &on)?;
        let found = intervals(&trace);
        let long = found.iter().find(|(_, interval)| *interval > INTERVAL_MAX);
        print_around(&trace, long);
        all.extend(found.into_iter().map(|(_, interval)| interval));
    }
    let worst = all.iter().max().ok_or("no job was finished")?;
    let long = all.iter().filter(|&&interval| interval > INTERVAL_MAX);
    let (count, long) = (all.len(), long.count());
    println!("{count} jobs, {worst} from one to the next at most, {long} above {INTERVAL_MAX}");
    match long {
        0 if count > 1_000 => Ok(()),
        _ => Err(format!(
            "{long} of {count} jobs end more than {INTERVAL_MAX} after the one before, one {worst}"
        )),
    }
}

/// From the end of each job to that of the next: when it begins, and how long it is.
fn intervals(trace: &TraceFile) -> Vec<(Instant, Span)> {
    let is_end = |kind: &RecordKind| matches!(kind, RecordKind::Completed { .. });
    let ends = trace.records.iter().filter(|record| is_end(&record.kind));
    let ends: Vec<Instant> = ends.map(|record| record.at).collect();
    let pairs = ends.windows(2);
    pairs
        .filter_map(|pair| Some((pair[0], pair[1].since(pair[0])?)))
        .collect()
}

/// What the trace says of such an interval and the time just before.
fn print_around(trace: &TraceFile, interval: Option<&(Instant, Span)>) {
    let Some(&(began, length)) = interval else {
        return;
    };
    for record in &trace.records {
        let is_near = |at: Instant| at + Span::from_ms(1) >= began && at <= began + length;
        if is_near(record.at) {
            println!("{} {:?}", record.at, record.kind);
        }
    }
}

/// Three tasks wake on one CPU within one interrupt, in the order of rising urgency. `B` is assigned to the CPU on which it
/// wakes, then to the other one, before it has run.
const COINCIDING: &str = r#"
name = "coinciding"
[platform]
cpus = 3
[[task]]
name = "C"
cost = "2ms"
period = "50ms"
affinity = "0"
priority = 1
[[task]]
name = "A"
cost = "40ms"
period = "100ms"
offset = "2us"
affinity = "1"
priority = 2
[[task]]
name = "P"
cost = "3ms"
period = "100ms"
offset = "1us"
affinity = "1"
priority = 3
[[task]]
name = "B"
cost = "5ms"
period = "50ms"
deadline = "30ms"
affinity = "0-1"
priority = 4
"#;

/// A task that is assigned elsewhere before it has run does not stay where it woke.
pub fn task_reassigned_before_it_runs_does_not_wait() -> Result<(), String> {
    let set: TaskSet = shiftwork_taskset::read(COINCIDING).map_err(|error| error.to_string())?;
    for machine in ["kernel", "agent"] {
        let on = [&THREE_CPUS[..], &["--machine", machine]].concat();
        let (json, _) = run_with_trace(&set, "strong-fp", 1_000, &on)?;
        let misses = json["deadline_misses"].as_u64();
        println!("{machine}: {misses:?} deadlines missed");
        if misses != Some(0) {
            return Err(format!("{machine}: {json:#}"));
        }
    }
    Ok(())
}
