//! Jobs that are released before the one before them is finished follow at once: nobody has to wake them up,
//! and no CPU may miss them.

use shiftwork_model::{Happening, Instant, Span, TaskSet};
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

/// How long a run is. An agent that looks all the time starves the ordinary work of its own CPU, and after some time
/// the kernel's server gives that 50 ms of each second, in which nobody decides.
const MS: u64 = 700;

/// Where an agent decides, on two threads that race: it says who runs next while the CPU looks for that.
pub fn follows_at_once_under_an_agent() -> Result<(), String> {
    follows_at_once("agent")
}

/// The same where the core decides in the kernel.
pub fn follows_at_once_in_the_kernel() -> Result<(), String> {
    follows_at_once("kernel")
}

fn follows_at_once(machine: &str) -> Result<(), String> {
    let set: TaskSet = shiftwork_taskset::read(BACKLOGGED).map_err(|error| error.to_string())?;
    let runs = if crate::long() { 20 } else { 2 };
    let on = [&THREE_CPUS[..], &["--machine", machine, "--no-compare"]].concat();
    let mut all = Vec::new();
    for _ in 0..runs {
        let (_, trace) = run_with_trace(&set, "p-edf", MS, &on)?;
        all.extend(intervals(&trace));
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

/// From the end of each job to that of the next.
fn intervals(trace: &TraceFile) -> Vec<Span> {
    let is_end = |what: &Happening| matches!(what, Happening::Completed { .. });
    let ends = trace.records.iter().filter(|record| is_end(&record.what));
    let ends: Vec<Instant> = ends.map(|record| record.at).collect();
    let pairs = ends.windows(2);
    pairs.filter_map(|pair| pair[1].since(pair[0])).collect()
}
