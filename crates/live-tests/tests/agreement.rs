//! The heart of the live machine: what runs is what the policy decides.

use std::ops::Range;

use serde_json::Value;
use shiftwork_model::{Affinity, Budgets, CpuSet, Span, Task, TaskSet, Work};
use shiftwork_taskset::generate::{
    Deadlines, Key, Options, Periods, Shape, Spread, Utilizations, generate,
};

use crate::command::{number, on_three_cpus, run};
use crate::long;
use crate::policies::named;

/// How long every task set runs, in milliseconds: several of its periods.
const HORIZON_MS: u64 = 100;

/// In random task sets with nested affinities those jobs run that the policy selects.
pub fn run_of_nested_affinities_agrees_with_its_simulation() -> Result<(), String> {
    agree(Shape::Laminar, "hpa-edf", "kernel", 1..11)
}

/// The same with any affinities.
pub fn run_of_arbitrary_affinities_agrees_with_its_simulation() -> Result<(), String> {
    agree(Shape::Arbitrary, "strong-edf", "kernel", 1..11)
}

/// The same under fixed priorities.
pub fn run_under_fixed_priorities_agrees_with_its_simulation() -> Result<(), String> {
    agree(Shape::Arbitrary, "strong-fp", "kernel", 1_001..1_005)
}

/// The same task sets where an agent decides: what it runs is what the kernel runs, and the simulation.
pub fn run_by_an_agent_agrees_with_its_simulation() -> Result<(), String> {
    agree(Shape::Laminar, "hpa-edf", "agent", 1..4)?;
    agree(Shape::Arbitrary, "strong-edf", "agent", 1..4)?;
    agree(Shape::Arbitrary, "strong-fp", "agent", 1_001..1_003)?;
    agree(Shape::BiLevel, "dl-sp", "agent", 1..4)
}

/// The same where fixed priorities carry out what the agent decides.
pub fn run_under_fifo_agrees_with_its_simulation() -> Result<(), String> {
    agree(Shape::Laminar, "hpa-edf", "fifo", 1..3)?;
    agree(Shape::Arbitrary, "strong-edf", "fifo", 1..3)?;
    agree(Shape::Arbitrary, "strong-fp", "fifo", 1_001..1_003)
}

/// Under Pfair an agent gives the quanta that the simulation gives, aligned and staggered. Jobs are released
/// and end well within quanta, so that it does not matter how late a tick is handled.
pub fn quanta_are_given_as_simulated_under_an_agent() -> Result<(), String> {
    let ms = Span::from_ms;
    let all = Affinity::new(CpuSet::first(3)).ok_or("there are CPUs")?;
    let tasks = [(2, 3), (2, 3), (3, 4), (1, 3), (1, 6)];
    let tasks = tasks.iter().enumerate().map(|(index, &(quanta, slots))| {
        let name = format!("t{index}");
        let mut task = Task::periodic(&name, ms(10 * quanta), ms(10 * slots), all);
        task.work = Work::Constant(ms(10 * quanta - 2));
        task.offset = ms(4);
        task
    });
    let mut set = TaskSet::new("quanta", 3, tasks.collect());
    set.scheduler.quantum = Some(ms(10));
    for policy in ["pd2", "s-pd2"] {
        let on = on_three_cpus("agent");
        let measured = run(&set, policy, 480, &on)?;
        println!("{policy}, {}", line(0, &measured));
        judge(&measured).map_err(|why| format!("{policy}: {why}"))?;
        // The rule of the replay says nothing of which quanta a task gets; one more or less is 10 ms.
        let apart = number(&measured, "/agreement/worst/difference_ns")?;
        if apart > ms(2).as_ns() {
            return Err(format!(
                "{policy}: a job finished {apart} ns from the simulation"
            ));
        }
    }
    Ok(())
}

/// The long selection has five times as many seeds, the fast one a third of them.
fn agree(shape: Shape, policy: &str, machine: &str, seeds: Range<u64>) -> Result<(), String> {
    let few = seeds.end - seeds.start;
    let count = if long() { 5 * few } else { few.div_ceil(3) };
    let mut disagreeing = Vec::new();
    for seed in seeds.start..seeds.start + count {
        let mut set = random_set(shape, seed)?;
        if named(policy).traits.budgets != Budgets::OfJobs {
            // Where jobs wait depends on which was pushed first. Among simultaneous events a
            // microsecond decides that, and with it all that follows.
            for (index, task) in set.tasks.iter_mut().enumerate() {
                task.offset = Span::from_us(311 * index as u64);
            }
        }
        let on = on_three_cpus(machine);
        let measured = run(&set, policy, HORIZON_MS, &on)?;
        println!("{}", line(seed, &measured));
        if let Err(why) = judge(&measured) {
            println!("{why}\n{}", shiftwork_taskset::write(&set));
            disagreeing.push(seed);
        }
    }
    match disagreeing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{policy} {shape:?} on {machine}: seeds {disagreeing:?}, see above"
        )),
    }
}

/// A feasible task set for three CPUs that uses 60% to 85% of them, every job a tenth less than its
/// task declares.
fn random_set(shape: Shape, seed: u64) -> Result<TaskSet, String> {
    let options = Options {
        cpus: 3,
        utilizations: Utilizations::RandFixedSum {
            tasks: 4 + (seed % 5) as usize,
            total: 1.8 + 0.15 * (seed % 6) as f64,
        },
        periods: Periods {
            shortest: Span::from_ms(4),
            longest: Span::from_ms(25),
            granularity: Span::from_us(500),
            spread: Spread::LogUniform,
        },
        deadlines: Deadlines::Implicit,
        shape,
        min_cost: Span::from_us(300),
        feasible: true,
        ..Options::default()
    };
    let key = Key {
        seed,
        ..Key::default()
    };
    let mut set = generate(&options, key).map_err(|error| format!("seed {seed}: {error}"))?;
    for task in &mut set.tasks {
        task.work = Work::Constant(Span::from_ns(task.cost.as_ns() / 10 * 9));
    }
    Ok(set)
}

/// Every record is there, every job that the simulation finishes was released, and what ran is what the policy
/// decides on the measured events.
fn judge(measured: &Value) -> Result<(), String> {
    let replay = &measured["replay"];
    let lost = number(measured, "/lost_records")?;
    let compared = number(measured, "/agreement/jobs")?;
    let simulated = number(measured, "/simulated/completed")?;
    if lost > 0 || compared < simulated {
        return Err(format!(
            "{lost} records were lost; of {simulated} jobs {compared} were compared"
        ));
    }
    does_as_the_policy_decides(replay)
}

/// What ran is what the policy decides on the measured events. When a release is noticed is up to timers, and those
/// of the emulator are late by up to a millisecond now and then, which the replay rightly calls a stall.
pub fn does_as_the_policy_decides(replay: &Value) -> Result<(), String> {
    const TIMER_MAX_NS: u64 = 2_000_000;
    let intervals = replay["intervals"].as_array();
    let intervals = intervals.ok_or("the run was not replayed")?;
    let is_timer = |it: &&Value| {
        let lasted = it["to_ns"].as_u64().zip(it["from_ns"].as_u64());
        it["kind"] == "unnoticed" && lasted.is_some_and(|(to, from)| to - from <= TIMER_MAX_NS)
    };
    let late: Vec<&Value> = intervals.iter().filter(is_timer).collect();
    late.iter()
        .for_each(|it| println!("late timer: {}", it["what"]));
    match replay["disagreements"] == late.len() {
        true => Ok(()),
        false => Err(format!("{:#}", replay["intervals"])),
    }
}

/// What was judged, and how near to the simulation it was.
fn line(seed: u64, measured: &Value) -> String {
    let replay = &measured["replay"];
    format!(
        "seed {seed}: {} decisions, {} of {} ns judged by {}, {} disagreements, the longest {} ns, reactions {}, like {}, \
         unlike {}, farthest from the simulation: {}",
        replay["decisions"],
        replay["judged_ns"],
        measured["horizon_ns"],
        replay["rule"],
        replay["disagreements"],
        replay["longest_ns"],
        measured["reaction_ns"],
        replay["alike"],
        replay["distinguished"],
        measured["agreement"]["worst"]
    )
}
