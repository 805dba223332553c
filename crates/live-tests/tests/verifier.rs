//! What the kernel's verifier makes of the programs: how many instructions it follows, with a ceiling far
//! below its own, so that a change that makes it work harder is seen before a kernel refuses it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use libbpf_rs::query::ProgInfoIter;
use rustix::process::{Pid, Signal, kill_process};

use crate::running::SMALL;

/// For any one program; the kernel gives up at a million.
const CEILING: u32 = 50_000;
/// For all of them, which is what loading takes its time for.
const CEILING_OF_ALL: u32 = 200_000;
/// Ours are fewer than that, and so many at least.
const PROGRAMS: usize = 20;
/// How long loading may take, in steps of [`STEP`].
const STEPS: u32 = 600;
const STEP: Duration = Duration::from_millis(50);

/// Loads the scheduler as `run` does and asks the kernel.
#[allow(clippy::disallowed_methods, reason = "waits for a program")]
pub fn verifier_has_little_to_do() -> Result<(), String> {
    let before = instructions();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("one.toml");
    std::fs::write(&file, SMALL).map_err(|error| error.to_string())?;
    let mut child = Command::new("shiftwork")
        .arg("run")
        .arg(&file)
        .args([
            "--machine",
            "kernel",
            "--policy",
            "strong-edf",
            "--for",
            "10min",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let loaded = (0..STEPS).any(|_| {
        thread::sleep(STEP);
        let state = std::fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
        state.trim() == "enabled"
    });
    let mut programs = instructions();
    programs.retain(|program, _| !before.contains_key(program));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::INT).map_err(|error| error.to_string())?;
    child.wait().map_err(|error| error.to_string())?;
    let total: u32 = programs.values().sum();
    for ((_, name), count) in &programs {
        println!("{name}: {count} instructions");
    }
    println!("all {} programs: {total} instructions", programs.len());
    let most = programs.values().max().copied().unwrap_or(0);
    match loaded && programs.len() >= PROGRAMS {
        false => Err(format!(
            "loaded: {loaded}, {} programs where at least {PROGRAMS} are expected",
            programs.len()
        )),
        true if most > CEILING || total > CEILING_OF_ALL => Err(format!(
            "allowed are {CEILING} of one program and {CEILING_OF_ALL} of all"
        )),
        true => Ok(()),
    }
}

/// What the verifier followed of each loaded program.
fn instructions() -> BTreeMap<(u32, String), u32> {
    ProgInfoIter::default()
        .map(|program| {
            let name = program.name.to_string_lossy().into_owned();
            ((program.id, name), program.verified_insns)
        })
        .collect()
}
