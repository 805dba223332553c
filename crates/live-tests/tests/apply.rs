//! `init`, `analyze`, `apply` and `release` with one and the same file, for a program that runs and for one that is started.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use shiftwork_model::Span;

use crate::command::{folder, shiftwork};
use crate::faults::{self, Actor, compute, wait_for};
use crate::init::{spawn, timed};
use crate::service::{Daemon, both, kill};

/// The threads of the program: name, period and CPU time of each job in milliseconds.
const THREADS: [(&str, u64, u64); 3] = [("camera", 40, 2), ("control", 20, 1), ("logger", 100, 3)];

/// The part of the program. The main thread sleeps.
pub fn three_threads() {
    for (name, period_ms, run_ms) in THREADS {
        spawn(name, move || {
            timed(period_ms, || compute(Duration::from_millis(run_ms)));
        });
    }
    loop {
        thread::park();
    }
}

/// Runs the verb with `--json`, which has to succeed; returns the object.
fn json(command: &mut Command) -> Result<Value, String> {
    // Programs that it starts go on, and keep its stderr open: a pipe would not end with the command.
    let output = command.arg("--json").stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| error.to_string())?;
    let value = serde_json::from_slice(&output.stdout);
    match (output.status.success(), value) {
        (true, Ok(value)) => Ok(value),
        _ => Err(format!("{}: {}", output.status, both(&output))),
    }
}

/// What became of each task, by the name of its reservation.
fn what(applied: &Value) -> Vec<(&str, &str)> {
    let tasks = applied["tasks"].as_array().into_iter().flatten();
    tasks
        .filter_map(|it| Some((it["name"].as_str()?, it["what"].as_str()?)))
        .collect()
}

/// Waits until each task has had so many jobs since it was admitted, of which none may have been late.
fn keep_deadlines(daemon: &Daemon, tasks: usize, jobs: u64) -> Result<(), String> {
    let mut last = Value::Null;
    let kept = wait_for("jobs of all tasks", || {
        last = daemon.status().ok()?["tasks"].clone();
        let all = last.as_array()?;
        let have_run = all.iter().all(|it| it["jobs"].as_u64() >= Some(jobs));
        (all.len() == tasks && have_run).then(|| all.iter().all(|it| it["misses"] == 0))
    });
    match kept {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("a deadline was missed: {last:#}")),
        Err(why) => Err(format!("{why}: {last:#}")),
    }
}

/// A program with three threads is looked at, the file is analysed and applied; beside hogs all deadlines are kept. Edited and
/// applied again, it changes one task only. Released, the program goes on as ordinary work.
pub fn measured_program_gets_its_reservations_from_its_file() -> Result<(), String> {
    let program = Actor::start("three-threads")?;
    thread::sleep(Duration::from_millis(100));
    fs::create_dir_all(folder()).map_err(|error| error.to_string())?;
    let file = folder().join("rover.toml");
    let (path, process) = (file.to_string_lossy(), program.id().to_string());
    let measure = [
        "init", "--pid", &process, "--for", "1s", "--margin", "100%", "--output", &path,
    ];
    shiftwork(&measure)?;
    let analyzed = shiftwork(&["analyze", &path, "--policy", "strong-edf", "--json"])?;
    let analyzed: Value = serde_json::from_slice(&analyzed).map_err(|error| error.to_string())?;
    if analyzed["admission"]["verdict"] != "admitted" {
        return Err(format!("{:#}", analyzed["admission"]));
    }
    let daemon = Daemon::start("")?;
    let mut hogs = Vec::new();
    for _ in 0..3 {
        hogs.push(Actor::start("hog 1 2 3")?);
    }
    let apply = |file: &Path| daemon.command("apply").arg(file).output();
    let shown = apply(&file).map_err(|error| error.to_string())?;
    println!(
        "{}{}",
        fs::read_to_string(&file).unwrap_or_default(),
        both(&shown)
    );
    if !shown.status.success() {
        return Err(format!("it ended by {}", shown.status));
    }
    keep_deadlines(&daemon, THREADS.len(), 8)?;

    let set = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let mut set = shiftwork_taskset::read(&set).map_err(|error| error.to_string())?;
    let logger = set.find("logger").ok_or("there is no logger")?;
    set.tasks[logger.index()].cost += Span::from_ms(5);
    fs::write(&file, shiftwork_taskset::write(&set)).map_err(|error| error.to_string())?;
    let applied = json(daemon.command("apply").arg(&file))?;
    for (name, what) in what(&applied) {
        let is_edited = name.ends_with("/logger");
        if what != if is_edited { "changed" } else { "unchanged" } {
            return Err(format!("{applied:#}"));
        }
    }
    let programs = apply_program(&daemon)?;
    keep_deadlines(&daemon, THREADS.len() + 1, 12)?;
    for file in [&file, &programs.0] {
        json(daemon.command("release").arg("--file").arg(file))?;
    }
    kill(programs.1, Signal::KILL)?;
    match daemon.tasks()?.is_empty() {
        true => {}
        false => return Err("reservations are left".to_owned()),
    }
    drop(hogs);
    // Its main thread sleeps.
    let threads =
        fs::read_dir(format!("/proc/{process}/task")).map_err(|error| error.to_string())?;
    let threads = threads
        .flatten()
        .filter_map(|it| it.file_name().to_str()?.parse().ok());
    let threads: Vec<u32> = threads.filter(|id: &u32| *id != program.id()).collect();
    threads
        .into_iter()
        .try_for_each(|id| faults::goes_on(id, 2))
}

/// Applies a file with a program; returns the file, and the process.
fn apply_program(daemon: &Daemon) -> Result<(std::path::PathBuf, u32), String> {
    let file = folder().join("program.toml");
    let text = format!(
        "name = \"program\"\nplatform.cpus = 4\n[[task]]\nname = \"beats\"\ncost = \"3ms\"\nperiod = \"20ms\"\n\
         affinity = \"2-3\"\n{}\n",
        faults::command("beats 1000 20000")
    );
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let applied = json(daemon.command("apply").arg(&file))?;
    let process = applied["tasks"][0]["process"].as_u64();
    let process = process.and_then(|it| u32::try_from(it).ok());
    process
        .map(|it| (file, it))
        .ok_or_else(|| format!("{applied:#}"))
}
