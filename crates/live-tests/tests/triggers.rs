//! Tasks that others trigger: live, each trigger does what it does in the simulation.

use std::collections::BTreeMap;

use shiftwork_model::{Instant, Record, RecordKind, Span};

use crate::agreement::does_as_the_policy_decides;
use crate::command::{number, on_three_cpus, run_with_trace};
use crate::common::run as simulate;
use crate::policies::keeps_its_rules;

/// How long each run is, in milliseconds.
const HORIZON_MS: u64 = 200;

/// One source, all of two, several triggers of a job, some of which have to wait and some find no room, and those that a job makes
/// when it ends; and jobs that come in bursts. All that happens is far enough apart for the emulator.
const SET: &str = r#"
[platform]
cpus = 3

[[task]]
name = "camera"
cost = "4ms"
period = "20ms"
affinity = "0"

[[task]]
name = "lidar"
cost = "3ms"
period = "20ms"
offset = "1ms"
affinity = "1"

[[task]]
name = "detect"
cost = "5ms"
triggered-by = "camera"

[[task]]
name = "fuse"
cost = "2ms"
triggered-by = { all = ["detect", "lidar"] }

[[task]]
name = "burst"
cost = "4ms"
period = "40ms"
offset = "2ms"
work = { phases = [
  { run = "500us" }, { trigger = "log" }, { trigger = "log" },
  { run = "1ms" }, { trigger = "log" }, { trigger = "log" }, { trigger = "log" },
  { sleep = "1ms" },
  { run = "500us" }, { trigger = "last" },
] }

[[task]]
name = "log"
cost = "3ms"
triggered-by = "burst"
queue = 2

[[task]]
name = "last"
cost = "1ms"
triggered-by = { any = ["burst", "log"] }
queue = 1

[[task]]
name = "frames"
cost = "1ms"
distances = ["5ms", "12ms", "50ms"]
offset = "6300us"
affinity = "1"

[[chain]]
name = "obstacle"
tasks = ["camera", "detect", "fuse"]
latency = "30ms"
"#;

/// Where the core decides.
pub fn triggers_do_in_the_kernel_what_they_do_in_simulations() -> Result<(), String> {
    ["strong-edf", "strong-fp", "p-edf"]
        .into_iter()
        .try_for_each(|policy| agrees(policy, "kernel"))
}

/// Where an agent does.
pub fn triggers_do_under_an_agent_what_they_do_in_simulations() -> Result<(), String> {
    ["strong-edf", "p-fp", "hpa-edf"]
        .into_iter()
        .try_for_each(|policy| agrees(policy, "agent"))
}

/// Where `SCHED_FIFO` enacts what an agent decides.
pub fn triggers_do_under_fifo_what_they_do_in_simulations() -> Result<(), String> {
    ["strong-edf", "p-fp"]
        .into_iter()
        .try_for_each(|policy| agrees(policy, "fifo"))
}

fn agrees(policy: &str, machine: &str) -> Result<(), String> {
    let set = shiftwork_taskset::read(SET).map_err(|error| error.to_string())?;
    let (json, trace) = run_with_trace(&set, policy, HORIZON_MS, &on_three_cpus(machine))?;
    let horizon = Instant::ZERO + Span::from_ms(HORIZON_MS);
    let simulated = simulate(&set, policy, horizon).records;
    let counts = (counts(&trace.records), counts(&simulated));
    println!("{policy}, {machine}: {:?}", counts.0);
    if number(&json, "/lost_records")? > 0 || counts.0 != counts.1 {
        return Err(format!("{policy}: {counts:?}"));
    }
    if !counts.0.keys().any(|(.., is_lost)| *is_lost) {
        return Err(String::from("no trigger is lost"));
    }
    does_as_the_policy_decides(&json["replay"]).map_err(|why| format!("{policy}: {why}"))?;
    keeps_its_rules(&set, policy, &trace).map_err(|why| format!("{policy}: {why}"))
}

/// How often which task triggers which, with and without effect, and how many jobs each task finishes.
fn counts(records: &[Record]) -> BTreeMap<(usize, usize, bool), u64> {
    let mut counts = BTreeMap::new();
    for record in records {
        let key = match record.kind {
            RecordKind::Triggered { by, task, is_lost } => (by.task.index(), task.index(), is_lost),
            RecordKind::Completed { job } => (job.task.index(), job.task.index(), false),
            _ => continue,
        };
        *counts.entry(key).or_default() += 1;
    }
    counts
}
