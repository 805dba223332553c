//! That a calibration pays: what it measures makes the simulation predict live response times better than
//! one in which scheduling costs nothing.

use serde_json::Value;
use shiftwork_model::TaskSet;

use crate::command::{THREE_CPUS, folder, number, run, save, shiftwork};

/// Jobs so short that scheduling takes as long as some of them, and some that the others interrupt. None of them
/// is among those that calibrations run.
const SHORT: &str = r#"
name = "short jobs"
[platform]
cpus = 3
[[task]]
name = "first"
cost = "200us"
period = "2ms"
affinity = "0"
work = { run = "30us" }
[[task]]
name = "second"
cost = "400us"
period = "3ms"
offset = "700us"
affinity = "0-1"
work = { run = "90us" }
[[task]]
name = "third"
cost = "500us"
period = "3500us"
offset = "1200us"
work = { run = "50us" }
[[task]]
name = "fourth"
cost = "2ms"
period = "7ms"
offset = "300us"
affinity = "0"
work = { run = "800us" }
[[task]]
name = "fifth"
cost = "2ms"
period = "9ms"
offset = "2100us"
affinity = "1-2"
work = { run = "600us" }
"#;

const POLICY: &str = "strong-edf";

/// Where an agent decides and the kernel carries out.
pub fn calibration_predicts_what_an_agent_does() -> Result<(), String> {
    predicts("agent")
}

/// Where fixed priorities carry out.
pub fn calibration_predicts_what_fifo_does() -> Result<(), String> {
    predicts("fifo")
}

fn predicts(machine: &str) -> Result<(), String> {
    let set = shiftwork_taskset::read(SHORT).map_err(|error| error.to_string())?;
    let file = save(&set)?;
    let overheads = folder().join("overheads.toml");
    let (file, overheads) = (file.to_string_lossy(), overheads.to_string_lossy());
    let printed = shiftwork(&[
        "calibrate",
        "--machine",
        machine,
        "--cpus",
        "1-3",
        "--policy",
        POLICY,
        "--json",
        // The jobs touch no memory.
        "--measure",
        "decide,live",
        "--working-set",
        "0",
        "--quick",
        "--for",
        "3s",
        "--output",
        &overheads,
    ])?;
    let calibrated: Value = serde_json::from_slice(&printed).map_err(|error| error.to_string())?;
    println!("{}", calibrated["quantities"]);
    println!(
        "{}",
        std::fs::read_to_string(&*overheads).unwrap_or_default()
    );
    let on = [&THREE_CPUS[..], &["--machine", machine]].concat();
    let live = means(&set, &run(&set, POLICY, 600, &on)?)?;
    let simulate = |more: &[&str]| -> Result<Vec<u64>, String> {
        let usual = [
            "simulate", &file, "--policy", POLICY, "--for", "600ms", "--json",
        ];
        let printed = shiftwork(&[&usual[..], more].concat())?;
        means(
            &set,
            &serde_json::from_slice(&printed).map_err(|error| error.to_string())?,
        )
    };
    let free = simulate(&[])?;
    let costly = simulate(&["--overheads", &overheads, "--overheads-use", "average"])?;
    let off = |predicted: &[u64]| -> u64 {
        let pairs = predicted.iter().zip(&live);
        pairs
            .map(|(predicted, measured)| predicted.abs_diff(*measured))
            .sum()
    };
    println!(
        "mean responses in ns: measured {live:?}, predicted {costly:?} (off by {}), without overheads \
         {free:?} (off by {})",
        off(&costly),
        off(&free)
    );
    match off(&costly) < off(&free) {
        true => Ok(()),
        false => Err(String::from("without overheads the prediction is as good")),
    }
}

/// The mean response of each task.
fn means(set: &TaskSet, printed: &Value) -> Result<Vec<u64>, String> {
    let mean = |index| number(printed, &format!("/tasks/{index}/response_ns/mean"));
    (0..set.tasks.len()).map(mean).collect()
}
