//! What the kernel's verifier makes of the programs: how many instructions it follows, with a ceiling far
//! below its own, so that a change that makes it work harder is seen before a kernel refuses it. Kernels from 7.2 on take
//! longer for what goes through all instructions of a program, so that their number has a ceiling too.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Var;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use rustix::process::{Pid, Signal, kill_process};
use rustix::system::uname;

use crate::running::SMALL;

/// For any one program; the kernel gives up at a million.
const CEILING: u32 = 50_000;
/// For all of them; verifiers before that of 7.2 follow more.
const CEILING_OF_ALL: u32 = 115_000;
const CEILING_OF_ALL_BEFORE: u32 = 145_000;
/// For the instructions of all programs as the kernel keeps them; each has a copy of all functions that it calls.
const CEILING_OF_SIZE: usize = 46_500;
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
    for ((_, name), work) in &programs {
        println!("{name}: {} of {} instructions", work.followed, work.size);
    }
    let total: u32 = programs.values().map(|work| work.followed).sum();
    let size: usize = programs.values().map(|work| work.size).sum();
    let most = programs
        .values()
        .map(|work| work.followed)
        .max()
        .unwrap_or(0);
    println!(
        "all {} programs: {total} of {size} instructions",
        programs.len()
    );
    let release = uname().release().to_string_lossy().into_owned();
    let numbers: Vec<u32> = release
        .split(['.', '-'])
        .map_while(|word| word.parse().ok())
        .collect();
    let ceiling_of_all = match numbers[..] >= [7, 2][..] {
        true => CEILING_OF_ALL,
        false => CEILING_OF_ALL_BEFORE,
    };
    match loaded && programs.len() >= PROGRAMS {
        false => Err(format!(
            "loaded: {loaded}, {} programs where at least {PROGRAMS} are expected",
            programs.len()
        )),
        true if most > CEILING || total > ceiling_of_all || size > CEILING_OF_SIZE => Err(format!(
            "followed may be {CEILING} of one program and {ceiling_of_all} of all, which may have {CEILING_OF_SIZE}"
        )),
        true => Ok(()),
    }
}

/// Timers that the kernel left to its thread are served where these variables say that there are some, or may be. Where they have other
/// names the scheduler is loaded all the same, and budgets may end late.
pub fn kernel_tells_which_softirqs_wait() -> Result<(), String> {
    let types = Btf::from_vmlinux().map_err(|error| error.to_string())?;
    for name in ["__softirq_pending", "__preempt_count"] {
        if types.type_by_name::<Var<'_>>(name).is_none() {
            return Err(format!("the kernel's types name no variable {name}"));
        }
    }
    Ok(())
}

/// A loaded program.
struct Work {
    /// Instructions that the verifier followed, each as often as it did.
    followed: u32,
    /// Instructions.
    size: usize,
}

/// The loaded programs, by number and name.
fn instructions() -> BTreeMap<(u32, String), Work> {
    const BYTES: usize = 8;
    let options = ProgInfoQueryOptions::default().include_xlated_prog_insns(true);
    ProgInfoIter::with_query_opts(options)
        .map(|program| {
            let name = program.name.to_string_lossy().into_owned();
            let work = Work {
                followed: program.verified_insns,
                size: program.xlated_prog_insns.len() / BYTES,
            };
            ((program.id, name), work)
        })
        .collect()
}
