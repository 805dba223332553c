//! The command as people use it: runs a task set live and reads everything that this leaves.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use shiftwork_model::TaskSet;
use shiftwork_trace::perfetto::{TraceFile, read};

/// The machine's CPUs of a task set for three: the first is left to the test process.
pub const THREE_CPUS: [&str; 2] = ["--on-cpus", "1-3"];

/// Options of a run of such a task set on this machine.
pub fn on_three_cpus(machine: &str) -> Vec<&str> {
    let mut options = THREE_CPUS.to_vec();
    options.extend(["--machine", machine]);
    if machine == "fifo" {
        // Each move takes several system calls of an agent that rests now and then: in the emulator up to 1.3 ms pass
        // until a job runs, in each run of some task sets.
        options.extend(["--window", "2ms"]);
    }
    options
}

/// A folder of this test's own.
pub fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("live-{}", std::process::id()))
}

/// Writes a task set where the command finds it.
pub fn save(set: &TaskSet) -> Result<PathBuf, String> {
    let folder = folder();
    fs::create_dir_all(&folder).map_err(|error| format!("{folder:?}: {error}"))?;
    let path = folder.join("set.toml");
    fs::write(&path, shiftwork_taskset::write(set))
        .map_err(|error| format!("{path:?}: {error}"))?;
    Ok(path)
}

/// What the command prints with these arguments; anything but exit status 0, or 1 after a missed deadline, is an
/// error.
pub fn shiftwork(arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new("shiftwork").args(arguments).output();
    let output = output.map_err(|error| format!("the command cannot be started: {error}"))?;
    let printed: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let missed = printed.is_some_and(|value| value["deadline_misses"].as_u64() > Some(0));
    let status = i32::from(arguments.first() == Some(&"run") && missed);
    if output.status.code() != Some(status) {
        return Err(format!(
            "shiftwork {} ended by {}: {}{}",
            arguments.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        ));
    }
    Ok(output.stdout)
}

/// Runs the task set for so many milliseconds, whatever admission says of it, and reads the JSON.
pub fn run(set: &TaskSet, policy: &str, ms: u64, more: &[&str]) -> Result<Value, String> {
    let file = save(set)?;
    let (file, wanted) = (file.to_string_lossy(), format!("{ms}ms"));
    let mut arguments = vec!["run", &file, "--policy", policy, "--for", &wanted];
    arguments.extend(["--best-effort", "--json"]);
    arguments.extend(more);
    let printed =
        shiftwork(&arguments).map_err(|why| format!("{why}\n{}", shiftwork_taskset::write(set)))?;
    serde_json::from_slice(&printed).map_err(|error| error.to_string())
}

/// The same, and what `--trace` wrote.
pub fn run_with_trace(
    set: &TaskSet,
    policy: &str,
    ms: u64,
    more: &[&str],
) -> Result<(Value, TraceFile), String> {
    let path = folder().join("run.pftrace");
    let path = path.to_string_lossy();
    let json = run(set, policy, ms, &[&["--trace", &path], more].concat())?;
    let bytes = fs::read(&*path).map_err(|error| format!("{path}: {error}"))?;
    let trace = read(&bytes).map_err(|error| format!("{path}: {error}"))?;
    Ok((json, trace))
}

/// The number at this JSON pointer.
pub fn number(value: &Value, pointer: &str) -> Result<u64, String> {
    let found = value.pointer(pointer).and_then(Value::as_u64);
    found.ok_or_else(|| format!("there is no number at {pointer} of {value}"))
}
