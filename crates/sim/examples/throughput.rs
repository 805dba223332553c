//! Throughput of the simulator in jobs per second of CPU time, on one thread.
//!
//! `throughput run POLICY SHAPE CPUS TASKS SECONDS [trace]` prints jobs per CPU second and the
//! largest memory in kB; with `trace` a full Perfetto trace goes to /dev/null, otherwise there are
//! counters only. `throughput input SHAPE CPUS TASKS SECONDS` prints the same task set as
//! `m n horizon` and lines `C T D`, for other G-EDF simulators. Shapes: `global`, `three-level`; and `global` where tasks
//! lock mutexes (`locks`), trigger one another (`triggers`), or do both in chains of four (`programs`).

#[path = "../../policy/benches/workload/sets.rs"]
#[allow(dead_code, reason = "only task sets are needed")]
mod sets;

use std::error::Error;
use std::fs::File;

use shiftwork_model::{
    Arrival, Chain, Instant, Join, Phase, Protocol, Recorder, Resource, ResourceId, Span, TaskId,
    TaskSet, Trigger, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::Counters;
use shiftwork_trace::perfetto::{Provenance, Writer};

use sets::{Case, Shape};

/// Runs are repeated for this long.
const ENOUGH_NS: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["input", shape, cpus, tasks, seconds] => {
            let (set, horizon) = workload(shape, cpus, tasks, seconds)?;
            print_input(&set, horizon);
        }
        ["run", policy, shape, cpus, tasks, seconds] => {
            let (set, horizon) = workload(shape, cpus, tasks, seconds)?;
            measure(|| counted(&set, policy, horizon))?;
        }
        ["run", policy, shape, cpus, tasks, seconds, "trace"] => {
            let (set, horizon) = workload(shape, cpus, tasks, seconds)?;
            measure(|| traced(&set, policy, horizon))?;
        }
        _ => return Err("see the top of this file for the arguments".into()),
    }
    Ok(())
}

/// 75% load, all tasks released at zero.
fn workload(
    shape: &str,
    cpus: &str,
    tasks: &str,
    seconds: &str,
) -> Result<(TaskSet, Instant), Box<dyn Error>> {
    let (locks, triggers) = match shape {
        "locks" => (true, false),
        "triggers" => (false, true),
        "programs" => (true, true),
        _ => (false, false),
    };
    let shape = match shape {
        "global" | "locks" | "triggers" | "programs" => Shape::Global,
        "three-level" => Shape::ThreeLevel,
        other => return Err(format!("`{other}` is no shape; see the top of this file").into()),
    };
    let case = Case {
        tasks: tasks.parse()?,
        ..Case::new(shape, cpus.parse()?, 75)
    };
    let mut set = case.task_set();
    for task in &mut set.tasks {
        task.offset = Span::ZERO;
    }
    if locks {
        add_locks(&mut set);
    }
    if triggers {
        add_triggers(&mut set);
    }
    Ok((set, Instant::ZERO + Span::from_s(seconds.parse()?)))
}

/// Each task holds one of as many mutexes as there are CPUs for a quarter of its cost, under inheritance.
fn add_locks(set: &mut TaskSet) {
    let count = set.platform.cpus;
    let mutex = |index: usize| Resource {
        name: format!("r{index}"),
        protocol: Protocol::Inheritance,
    };
    set.resources = (0..count).map(mutex).collect();
    for (index, task) in set.tasks.iter_mut().enumerate() {
        let resource = ResourceId::from_index(index % count);
        let quarter = Span::from_ns(task.cost.as_ns() / 4);
        task.work = Work::Phases(vec![
            Phase::Run(quarter),
            Phase::Lock(resource),
            Phase::Run(quarter),
            Phase::Unlock(resource),
            Phase::Run(task.cost - quarter - quarter),
        ]);
    }
}

/// The second, third and last of each four tasks are triggered by the one before, all four with the longest of their
/// periods.
fn add_triggers(set: &mut TaskSet) {
    for first in (0..set.tasks.len()).step_by(4) {
        let four = first..(first + 4).min(set.tasks.len());
        let period = set.tasks[four.clone()].iter().map(|task| task.period).max();
        for index in four.clone() {
            let task = &mut set.tasks[index];
            task.period = period.unwrap_or(task.period);
            task.deadline = task.period;
            if index > first {
                task.arrival = Arrival::Triggered(Trigger {
                    sources: vec![TaskId::from_index(index - 1)],
                    join: Join::Any,
                    queue: None,
                });
            }
        }
        set.chains.push(Chain {
            name: format!("c{first}"),
            tasks: four.map(TaskId::from_index).collect(),
            reaction: None,
            age: None,
            latency: None,
        });
    }
}

fn print_input(set: &TaskSet, horizon: Instant) {
    println!(
        "{} {} {}",
        set.platform.cpus,
        set.tasks.len(),
        horizon.as_ns()
    );
    for task in &set.tasks {
        let (cost, period) = (task.cost.as_ns(), task.period.as_ns());
        println!("{cost} {period} {}", task.deadline.as_ns());
    }
}

/// Repeats a run, which returns how many jobs it completed.
fn measure(mut run: impl FnMut() -> Result<u64, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let (mut jobs, mut used_ns) = (0, 0);
    while used_ns < ENOUGH_NS {
        let before = cpu_time_ns()?;
        jobs += run()?;
        used_ns += cpu_time_ns()? - before;
    }
    let per_second = u128::from(jobs) * 1_000_000_000 / u128::from(used_ns);
    println!("{per_second} {}", largest_memory_kb()?);
    Ok(())
}

fn counted(set: &TaskSet, policy: &str, horizon: Instant) -> Result<u64, Box<dyn Error>> {
    let mut counters = Counters::new(set, set.platform.cpus);
    simulate(set, policy, horizon, &mut counters)?;
    Ok(counters.finish(horizon).completed)
}

fn traced(set: &TaskSet, policy: &str, horizon: Instant) -> Result<u64, Box<dyn Error>> {
    let counters = Counters::new(set, set.platform.cpus);
    let provenance = Provenance {
        policy: policy.into(),
        horizon,
        ..Provenance::default()
    };
    let sink = File::create("/dev/null")?;
    let mut recorders = (counters, Writer::new(set, &provenance, sink));
    simulate(set, policy, horizon, &mut recorders)?;
    recorders.1.finish(horizon)?;
    Ok(recorders.0.finish(horizon).completed)
}

fn simulate(
    set: &TaskSet,
    policy: &str,
    horizon: Instant,
    recorder: &mut impl Recorder,
) -> Result<(), Box<dyn Error>> {
    let entry = registry::find(policy)?;
    let options = Options {
        seed: 1,
        horizon,
        overheads: None,
        reserve_server: false,
    };
    Simulation::new(set, entry.build(set)?, &entry.traits, options).run(recorder);
    Ok(())
}

/// CPU time of this process: the first number of its schedstat.
fn cpu_time_ns() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let first = text.split_whitespace().next();
    Ok(first.ok_or("schedstat is empty")?.parse()?)
}

fn largest_memory_kb() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("the status has no VmHWM")?.parse()?)
}
