//! `shiftwork init --pid` and `exec --measure`: what is measured of a program with three threads in a row.

use std::fs;
use std::io::{PipeReader, PipeWriter, Read as _, Write as _, pipe};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use rustix::time::ClockId;
use serde_json::Value;
use shiftwork_model::{Arrival, Span, Task, TaskSet};

use crate::command::{folder, shiftwork};
use crate::deadline::work::{now_ns, sleep_until};
use crate::faults::{Actor, compute, wait_for};
use crate::service::{Daemon, both, kill};

/// Where the kernel keeps its traces.
const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Period of `sensor`.
const PERIOD_MS: u64 = 20;

/// The part of the program: `sensor` wakes `filter` by a pipe in each period, well before the end of its job, and that one
/// `actor` at the end. `logger` is timed as well, and holds a mutex that `sensor` locks, too. The main thread sleeps.
pub fn pipeline() {
    let (to_filter, from_sensor) = pipe().unwrap();
    let (to_actor, from_filter) = pipe().unwrap();
    let lock = Arc::new(Mutex::new(()));
    let shared = Arc::clone(&lock);
    spawn("sensor", move || sensor(&shared, from_sensor));
    spawn("filter", move || {
        passes_on(to_filter, 2_000, Some(from_filter))
    });
    spawn("actor", move || passes_on(to_actor, 500, None));
    spawn("logger", move || {
        timed(5 * PERIOD_MS, || {
            let _locked = lock.lock();
            compute(Duration::from_millis(3));
        });
    });
    loop {
        thread::park();
    }
}

pub fn spawn(name: &str, run: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .unwrap();
}

/// Runs at all multiples of the period.
pub fn timed(period_ms: u64, mut run: impl FnMut()) {
    let period = period_ms * 1_000_000;
    loop {
        sleep_until((now_ns(ClockId::Monotonic) / period + 1) * period);
        run();
    }
}

fn sensor(lock: &Mutex<()>, mut to: PipeWriter) {
    timed(PERIOD_MS, || {
        {
            let _locked = lock.lock();
            compute(Duration::from_micros(300));
        }
        to.write_all(&[1]).unwrap();
        compute(Duration::from_micros(1_500));
    });
}

fn passes_on(mut from: PipeReader, run_us: u64, mut to: Option<PipeWriter>) {
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() {
        compute(Duration::from_micros(run_us));
        if let Some(to) = &mut to {
            to.write_all(&byte).unwrap();
        }
    }
}

/// A part: starts [`pipeline`] as a program of its own, for so long.
pub fn launcher(ms: u64) {
    // It is killed when dropped.
    let _program = Actor::start("pipeline").unwrap();
    thread::sleep(Duration::from_millis(ms));
}

/// What is left of measurements in the kernel.
fn assert_nothing_left() -> Result<(), String> {
    let left = fs::read_dir(INSTANCES).map_err(|error| format!("{INSTANCES}: {error}"))?;
    match left.count() {
        0 => Ok(()),
        count => Err(format!("{count} traces are left")),
    }
}

/// That the task's cost is at least so long, and no more than twice as long: the emulator executes its CPUs in turn.
fn costs(task: &Task, least_us: u64) -> bool {
    let least = Span::from_us(least_us).as_ns();
    (least..=2 * least).contains(&task.cost.as_ns())
}

fn find<'a>(set: &'a TaskSet, name: &str) -> Result<&'a Task, String> {
    let found = set.tasks.iter().find(|task| task.name == name);
    found.ok_or_else(|| format!("there is no task {name}"))
}

fn is_as_programmed(set: &TaskSet) -> Result<(), String> {
    let [sensor, filter, actor, logger] =
        ["sensor", "filter", "actor", "logger"].map(|name| find(set, name));
    let (sensor, filter, actor, logger) = (sensor?, filter?, actor?, logger?);
    let source = |task: &Task| {
        let id = *task.trigger()?.sources.first()?;
        Some(set.tasks[id.index()].name.clone())
    };
    let is_timed = |task: &Task, period_ms| {
        task.arrival == Arrival::Periodic && task.period == Span::from_ms(period_ms)
    };
    let [chain] = &set.chains[..] else {
        return Err("there is not one chain".to_owned());
    };
    let chain = chain.tasks.iter();
    let chain: Vec<&str> = chain.map(|id| &*set.tasks[id.index()].name).collect();
    for (holds, what) in [
        (set.tasks.len() == 4, "four tasks"),
        (is_timed(sensor, PERIOD_MS), "the period of sensor"),
        (is_timed(logger, 5 * PERIOD_MS), "the period of logger"),
        (
            source(filter).as_deref() == Some("sensor"),
            "sensor triggers filter",
        ),
        (
            source(actor).as_deref() == Some("filter"),
            "filter triggers actor",
        ),
        (
            sensor.triggers().count() == 1,
            "sensor triggers within its jobs",
        ),
        (filter.triggers().count() == 0, "filter triggers at the end"),
        (chain == ["sensor", "filter", "actor"], "the chain"),
        (costs(sensor, 1_800), "the cost of sensor"),
        (costs(filter, 2_000), "the cost of filter"),
        (costs(actor, 500), "the cost of actor"),
        (costs(logger, 3_000), "the cost of logger"),
    ] {
        if !holds {
            return Err(format!("{what} is not as programmed"));
        }
    }
    Ok(())
}

/// Periods, triggers and the chain of a running program are found, and what is proposed is admitted.
pub fn program_is_measured_and_its_task_set_is_admitted() -> Result<(), String> {
    let program = Actor::start("pipeline")?;
    thread::sleep(Duration::from_millis(200));
    let folder = folder();
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let file = folder.join("proposed.toml");
    let (path, process) = (file.to_string_lossy(), program.id().to_string());
    let measured = ["init", "--pid", &process, "--for", "3s", "--output", &path];
    let output = Command::new("shiftwork").args(measured).output();
    let output = output.map_err(|error| error.to_string())?;
    let toml = fs::read_to_string(&file).unwrap_or_default();
    println!("{}{toml}", both(&output));
    if !output.status.success() {
        return Err(format!("init ended by {}", output.status));
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !said.contains("main thread idle; busiest: ") || !said.contains("sensor 50") {
        return Err("the summary is missing".to_owned());
    }
    let set = shiftwork_taskset::read(&toml).map_err(|error| error.to_string())?;
    is_as_programmed(&set)?;
    assert_nothing_left()?;
    let analyzed = shiftwork(&["analyze", &path, "--policy", "strong-edf", "--json"])?;
    let analyzed: Value = serde_json::from_slice(&analyzed).map_err(|error| error.to_string())?;
    match analyzed["admission"]["verdict"] == "admitted" {
        true => Ok(()),
        false => Err(format!("{:#}", analyzed["admission"])),
    }
}

/// What a launcher starts is measured, by the daemon and, without one, by the kernel's trace.
pub fn launched_program_is_measured_with_what_it_starts() -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let measured = |command: &mut Command| {
        let launched = command.args(["--measure", "--json", "--"]).arg(&own);
        let output = launched.args(["--act", "launcher", "3000"]).output();
        let output = output.map_err(|error| error.to_string())?;
        println!("{}", both(&output));
        match output.status.code() {
            Some(0) => serde_json::from_slice(&output.stdout).map_err(|error| error.to_string()),
            _ => Err(both(&output)),
        }
    };
    measures_pipeline(&measured(Command::new("shiftwork").arg("exec"))?, "trace")?;
    assert_nothing_left()?;
    let mut daemon = Daemon::start("")?;
    measures_pipeline(&measured(&mut daemon.command("exec"))?, "daemon")?;
    match daemon.end(Signal::TERM)? {
        Some(0) => Ok(()),
        other => Err(format!("the daemon ended by {other:?}: {}", daemon.log())),
    }
}

/// That the threads of the program, and not of the launcher, have the costs and periods that are programmed.
fn measures_pipeline(found: &Value, source: &str) -> Result<(), String> {
    let threads = found["threads"].as_array().ok_or("no threads")?;
    let of_launcher = |it: &&Value| it["process"] == found["process"];
    if found["source"] != source || threads.iter().filter(of_launcher).count() != 1 {
        return Err(format!("not by {source}, or not one launcher"));
    }
    for (name, run_us) in [("sensor", 1_800), ("filter", 2_000), ("actor", 500)] {
        let thread = threads.iter().find(|it| it["name"] == name);
        let thread = thread.ok_or_else(|| format!("{name} was not found"))?;
        let number = |it: &Value| it.as_u64().unwrap_or(0);
        let (jobs, median) = (number(&thread["jobs"]), number(&thread["cost_ns"]["p50"]));
        let cost = number(&thread["proposed"]["cost_ns"]);
        let period = number(&thread["proposed"]["period_ns"]);
        // The daemon takes a mutex that is handed over for the beginning of a job.
        let is_right = (130..=200).contains(&jobs)
            && (run_us * 1_000..2 * run_us * 1_000).contains(&median)
            && median < cost
            && period.abs_diff(PERIOD_MS * 1_000_000) < 500_000;
        if !is_right || of_launcher(&thread) {
            return Err(format!("{source}: {thread}"));
        }
    }
    Ok(())
}

/// A measurement that is interrupted, or of which the process ends, keeps what was measured, and leaves nothing in the kernel.
pub fn measurement_that_ends_early_keeps_what_was_measured() -> Result<(), String> {
    for (ends, status, says) in [
        ("the process", 0, "ended after"),
        ("the measurement", 130, "interrupted after"),
    ] {
        let program = Actor::start("pipeline")?;
        let process = program.id().to_string();
        let measuring = Command::new("shiftwork")
            .args(["init", "--pid", &process, "--for", "50s", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let instance = format!("{INSTANCES}/shiftwork-init-{}", measuring.id());
        wait_for("the trace to begin", || {
            Path::new(&instance).exists().then_some(())
        })?;
        thread::sleep(Duration::from_secs(1));
        match ends {
            "the process" => drop(program),
            _ => kill(measuring.id(), Signal::INT)?,
        }
        let output = measuring.wait_with_output();
        let output = output.map_err(|error| error.to_string())?;
        let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let toml = found["toml"].as_str().unwrap_or_default();
        let has_tasks = shiftwork_taskset::read(toml).is_ok_and(|set| set.tasks.len() >= 3);
        let said = String::from_utf8_lossy(&output.stderr).contains(says);
        if output.status.code() != Some(status) || !said || !has_tasks {
            return Err(format!(
                "{ends} ended, {}: {}",
                output.status,
                both(&output)
            ));
        }
        assert_nothing_left()?;
    }
    Ok(())
}

/// Without privileges the command says what it needs, and counters give a proposal all the same.
pub fn measurement_without_privileges_names_what_helps() -> Result<(), String> {
    let program = Actor::start("unprivileged pipeline")?;
    let process = program.id().to_string();
    thread::sleep(Duration::from_millis(500));
    let run = |more: &[&str]| {
        let command = ["init", "--pid", &process, "--for", "1s"];
        let output = Command::new("shiftwork")
            .args(command)
            .args(more)
            .uid(65_534)
            .output();
        output.map_err(|error| error.to_string())
    };
    let refused = run(&[])?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    if refused.status.code() != Some(3)
        || !said.contains("takes root")
        || !said.contains("--sampled")
    {
        return Err(both(&refused));
    }
    let sampled = run(&["--sampled"])?;
    let set = shiftwork_taskset::read(&String::from_utf8_lossy(&sampled.stdout));
    let set = set.map_err(|error| format!("{error}: {}", both(&sampled)))?;
    let filter = find(&set, "filter")?;
    // By mean values.
    let is_about = filter.period.as_ns().abs_diff(PERIOD_MS * 1_000_000) < 2_000_000;
    match is_about && filter.trigger().is_none() {
        true => Ok(()),
        false => Err(both(&sampled)),
    }
}
