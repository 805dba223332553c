//! `init`: an example, and what is measured of a process without root. `crates/live-tests` measures by the kernel's trace.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{folder, shiftwork, stderr, stdout};

#[test]
fn example_is_analyzed_at_once_and_never_overwritten_silently() {
    let path = folder("init").join("my.toml").display().to_string();
    let written = shiftwork(&["init", "-o", &path]);
    assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
    let example = fs::read_to_string(&path).unwrap();
    assert_eq!(example, stdout(&shiftwork(&["init"])));
    for verb in [&["analyze"][..], &["simulate", "--strict"]] {
        let output = shiftwork(&[verb, &[&path]].concat());
        assert_eq!(
            output.status.code(),
            Some(0),
            "{verb:?}: {}",
            stderr(&output)
        );
    }
    fs::write(&path, "mine").unwrap();
    let refused = shiftwork(&["init", "-o", &path]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("exists already"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(
        shiftwork(&["init", "-o", &path, "--force"]).status.code(),
        Some(0)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), example);
}

/// A process that is killed in the end.
struct Program(Child);

impl Program {
    fn start(script: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures the process by counters.
fn sampled(process: &str, duration: &str, more: &[&str]) -> (Option<i32>, String, Value) {
    let arguments = [
        "init",
        "--pid",
        process,
        "--sampled",
        "--for",
        duration,
        "--json",
    ];
    let output = shiftwork(&[&arguments[..], more].concat());
    let value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), stderr(&output), value)
}

#[test]
fn counters_of_a_process_give_a_task_set() {
    // It waits for a child each time.
    let program = Program::start("while :; do sleep 0.02; done");
    let (status, said, value) = sampled(&program.id(), "1s", &["--all-threads"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("busiest: sh ") && said.contains("mean values"),
        "{said}"
    );
    let thread = &value["measured"]["threads"][0];
    assert_eq!(thread["task"], "sh", "{value}");
    assert!(thread["jobs"].as_u64() > Some(10), "{value}");
    let set = shiftwork_taskset::read(value["toml"].as_str().unwrap()).unwrap();
    assert_eq!((set.tasks.len(), set.name.as_str()), (1, "sh"));
}

#[test]
fn process_that_ends_has_what_was_measured_until_then() {
    let program = Program::start("for k in 1 2 3 4 5 6 7 8; do sleep 0.05; done");
    let (status, said, value) = sampled(&program.id(), "100s", &["--all-threads"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("ended after"), "{said}");
    assert_eq!(value["measured"]["threads"][0]["task"], "sh", "{value}");
}

#[test]
fn process_without_jobs_has_no_task_set() {
    let program = Program::start("exec sleep 100");
    std::thread::sleep(Duration::from_millis(300));
    let (status, said, value) = sampled(&program.id(), "200ms", &["--all-threads"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("main thread idle"), "{said}");
    assert!(
        said.contains("--for measures longer") && said.contains("idle: no job"),
        "{said}"
    );
    assert_eq!(value["toml"], Value::Null);
}

#[test]
fn what_cannot_be_measured_is_named() {
    let program = Program::start("exec sleep 100");
    let own = program.id();
    for (arguments, says) in [
        (&["--pid", "4194305"][..], "there is no process 4194305"),
        (&["--pid", &own, "--for", "0s"], "it must be above zero"),
        (&["--pid", &own, "--margin", "x"], "from 0% to 1000%"),
        (&["--pid", &own, "--percentile", "0"], "from 1 to 100"),
        (
            &["--pid", &own, "--sampled", "--threads", "nix"],
            "no thread named `nix`",
        ),
        (&["--for", "1s"], "--pid"),
        (&["--all-threads"], "--pid"),
        (&["--force"], "--output"),
    ] {
        let output = shiftwork(&[&["init"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
