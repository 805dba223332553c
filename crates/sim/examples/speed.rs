//! Throughput of the simulator: counters only, one thread.
//!
//! Reads `m n horizon`, then `n` lines `C T D` (integer time), and prints jobs completed, misses,
//! and jobs per CPU second. The first argument names the policy, `g-edf` if there is none.

use std::error::Error;
use std::io::Read;

use shiftwork_model::{Affinity, CpuSet, Instant, Span, Task, TaskSet};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::{Counters, RunSummary};

/// Runs are repeated for this long.
const ENOUGH_NS: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let policy = std::env::args()
        .nth(1)
        .unwrap_or_else(|| String::from("g-edf"));
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let (set, horizon) = read(&text)?;
    let (mut jobs, mut used_ns) = (0, 0);
    let mut last = None;
    while used_ns < ENOUGH_NS {
        let before = cpu_time_ns()?;
        let summary = simulate(&set, &policy, horizon)?;
        used_ns += cpu_time_ns()? - before;
        jobs += summary.completed;
        last = Some(summary);
    }
    if let Some(summary) = last {
        let per_second = u128::from(jobs) * 1_000_000_000 / u128::from(used_ns);
        println!(
            "{} {} {per_second}",
            summary.completed, summary.deadline_misses
        );
    }
    Ok(())
}

fn simulate(set: &TaskSet, policy: &str, horizon: Instant) -> Result<RunSummary, Box<dyn Error>> {
    let entry = registry::find(policy)?;
    let options = Options {
        seed: 1,
        horizon,
        overheads: None,
        reserve_server: false,
    };
    let mut counters = Counters::new(set, set.platform.cpus);
    Simulation::new(set, entry.build(set)?, &entry.traits, options).run(&mut counters);
    Ok(counters.finish(horizon))
}

fn read(text: &str) -> Result<(TaskSet, Instant), Box<dyn Error>> {
    let numbers = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<Vec<u64>, _>>()?;
    let [cpus, count, horizon, rest @ ..] = &numbers[..] else {
        return Err("expected `m n horizon`".into());
    };
    let cpus = usize::try_from(*cpus)?;
    let all = Affinity::new(CpuSet::first(cpus)).ok_or("expected at least one CPU")?;
    let tasks: Vec<Task> = rest
        .chunks_exact(3)
        .map(|task| {
            let (cost, period) = (Span::from_ns(task[0]), Span::from_ns(task[1]));
            let mut periodic = Task::periodic("", cost, period, all);
            periodic.deadline = Span::from_ns(task[2]);
            periodic
        })
        .collect();
    if tasks.len() as u64 != *count {
        return Err(format!("expected {count} lines `C T D`, found {}", tasks.len()).into());
    }
    Ok((
        TaskSet::new("speed", cpus, tasks),
        Instant::from_ns(*horizon),
    ))
}

/// CPU time of this process: the first number of its schedstat.
fn cpu_time_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(text
        .split_whitespace()
        .next()
        .ok_or("schedstat is empty")?
        .parse()?)
}
