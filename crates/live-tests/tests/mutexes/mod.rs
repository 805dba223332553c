//! Tasks that share mutexes: live they do what they do in the simulation, by each protocol.

pub mod futex;
pub mod inversion;

use std::collections::BTreeMap;

use shiftwork_model::{
    Affinity, CpuId, Instant, NotReadyReason, Protocol, Record, RecordKind, ResourceId, Span,
    TaskSet,
};

use crate::agreement::does_as_the_policy_decides;
use crate::command::{number, on_three_cpus, run_with_trace};
use crate::common::run as simulate;
use crate::long;
use crate::policies::keeps_its_rules;

/// How long each run is, in milliseconds.
const HORIZON_MS: u64 = 200;
/// By so much a job may finish later than in the simulation: it locks and unlocks by calls of the kernel, or asks an agent.
/// Under `fifo` each move takes several system calls of an agent, as [`on_three_cpus`] says.
fn later(machine: &str) -> Span {
    match machine {
        "fifo" => Span::from_ms(3),
        _ => Span::from_us(900),
    }
}

/// Three tasks on one CPU as on Mars Pathfinder; two that spin for each other, each on two CPUs, beside one that would push them
/// about; nested sections of tasks on different CPUs, which one ends together with its job, and one that sleeps with a mutex. All
/// that happens is far enough apart for the emulator.
const SET: &str = r#"
[platform]
cpus = 3

[[resource]]
name = "bus"
protocol = "none"

[[resource]]
name = "log"
protocol = "inheritance"

[[resource]]
name = "queue"
protocol = "spin"

[[task]]
name = "weather"
cost = "8ms"
period = "50ms"
affinity = "0"
work = { phases = [
  { run = "1ms" }, { lock = "bus" }, { run = "4ms" }, { unlock = "bus" }, { run = "1ms" },
] }

[[task]]
name = "radio"
cost = "6ms"
period = "50ms"
deadline = "40ms"
offset = "4ms"
affinity = "0"

[[task]]
name = "manager"
cost = "3ms"
period = "50ms"
deadline = "20ms"
offset = "3ms"
affinity = "0"
work = { phases = [
  { run = "500us" }, { lock = "bus" }, { run = "1ms" }, { unlock = "bus" },
] }

[[task]]
name = "writer"
cost = "5ms"
period = "25ms"
affinity = "1-2"
start-cpu = 1
work = { phases = [{ lock = "queue" }, { run = "3ms" }, { unlock = "queue" }, { run = "1ms" }] }

[[task]]
name = "reader"
cost = "4ms"
period = "25ms"
offset = "1ms"
affinity = "1-2"
start-cpu = 2
work = { phases = [
  { run = "500us" }, { lock = "queue" }, { run = "1ms" }, { unlock = "queue" }, { run = "1ms" },
] }

[[task]]
name = "urgent"
cost = "2ms"
period = "25ms"
deadline = "10ms"
offset = "2ms"
affinity = "1"

[[task]]
name = "archive"
cost = "5ms"
period = "50ms"
offset = "10ms"
affinity = "0-1"
start-cpu = 1
work = { phases = [
  { run = "1ms" }, { lock = "log" }, { sleep = "2ms" }, { run = "1ms" }, { lock = "bus" }, { run = "2ms" },
  { unlock = "bus" }, { unlock = "log" },
] }

[[task]]
name = "audit"
cost = "2ms"
period = "50ms"
deadline = "30ms"
offset = "13500us"
affinity = "2"
work = { phases = [{ lock = "log" }, { run = "1ms" }, { unlock = "log" }, { run = "1ms" }] }
"#;

/// Under fixed priorities.
pub fn mutexes_do_in_the_kernel_what_they_do_in_simulations() -> Result<(), String> {
    agree("kernel", "strong-fp", &[Protocol::None, Protocol::Ceiling])
}

/// By deadlines.
pub fn mutexes_do_by_deadlines_what_they_do_in_simulations() -> Result<(), String> {
    agree(
        "kernel",
        "strong-edf",
        &[Protocol::Inheritance, Protocol::NonPreemptive],
    )
}

/// Where an agent decides.
pub fn mutexes_do_under_an_agent_what_they_do_in_simulations() -> Result<(), String> {
    agree("agent", "strong-fp", &[Protocol::Ceiling, Protocol::Mpcp])?;
    agree("agent", "strong-edf", &[Protocol::NonPreemptive])
}

/// The same where fixed priorities carry out what the agent decides: there a job may also be lent CPUs.
pub fn mutexes_do_under_fifo_what_they_do_in_simulations() -> Result<(), String> {
    agree("fifo", "strong-fp", &[Protocol::Migratory])?;
    agree("fifo", "strong-edf", &[Protocol::Omlp])
}

const PROTOCOLS: [Protocol; 4] = [
    Protocol::None,
    Protocol::Inheritance,
    Protocol::Ceiling,
    Protocol::NonPreemptive,
];

/// With some protocols; with `SHIFTWORK_LONG` with all that all machines take.
fn agree(machine: &str, policy: &str, protocols: &[Protocol]) -> Result<(), String> {
    let others = PROTOCOLS
        .iter()
        .filter(|it| long() && !protocols.contains(it));
    for &protocol in protocols.iter().chain(others) {
        let mut set = shiftwork_taskset::read(SET).map_err(|error| error.to_string())?;
        // Of the bus; tasks on different CPUs share the log, and its holder can be lent one.
        let resource = usize::from(protocol.lends_cpus());
        set.resources[resource].protocol = protocol;
        if protocol.boosts() {
            // Those that use it are bound to a CPU each.
            let users = set.tasks.iter_mut().filter(|task| task.name == "archive");
            users.for_each(|task| task.affinity = Affinity::pinned(CpuId::from_index(1)));
        }
        agrees(machine, &set, policy)
            .map_err(|why| format!("{machine}, {policy}, {protocol:?}: {why}"))?;
    }
    Ok(())
}

fn agrees(machine: &str, set: &TaskSet, policy: &str) -> Result<(), String> {
    let (json, trace) = run_with_trace(set, policy, HORIZON_MS, &on_three_cpus(machine))?;
    let horizon = Instant::ZERO + Span::from_ms(HORIZON_MS);
    let simulated = simulate(set, policy, horizon).records;
    // sched_ext keeps threads from CPUs for reasons of its own, too.
    let facts = |records| facts(records, machine == "fifo");
    let facts = (facts(&trace.records), facts(&simulated));
    if number(&json, "/lost_records")? > 0 || facts.0 != facts.1 {
        let differs = |a: &Facts, b: &Facts| -> Facts {
            let only = a
                .iter()
                .filter(|(fact, count)| b.get(*fact) != Some(*count));
            only.map(|(fact, count)| (*fact, *count)).collect()
        };
        return Err(format!(
            "live: {:?}, simulated: {:?}",
            differs(&facts.0, &facts.1),
            differs(&facts.1, &facts.0)
        ));
    }
    let (measured, ideal) = (finished(&trace.records), finished(&simulated));
    for (job, at) in &ideal {
        let late = measured.get(job).and_then(|it| it.since(*at));
        if late.is_none_or(|late| late > later(machine)) {
            let found = measured.get(job);
            return Err(format!("{job:?} is finished at {found:?} and not {at:?}"));
        }
    }
    println!("{policy}: {} jobs, {:?}", ideal.len(), facts.0);
    does_as_the_policy_decides(&json["replay"])?;
    keeps_its_rules(set, policy, &trace)
}

/// What a task does, with which mutex, and how often.
type Facts = BTreeMap<(&'static str, usize, Option<ResourceId>), u64>;

/// How often each task locks, unlocks, waits for and spins for which mutex, and has another rank, and if that counts other CPUs.
fn facts(records: &[Record], counts_cpus: bool) -> Facts {
    let mut facts = BTreeMap::new();
    for record in records {
        let key = match record.kind {
            RecordKind::Locked { job, resource } => ("locks", job.task, Some(resource)),
            RecordKind::Unlocked { job, resource } => ("unlocks", job.task, Some(resource)),
            RecordKind::Spinning { job, resource } => ("spins", job.task, Some(resource)),
            RecordKind::NotReady {
                job,
                reason: NotReadyReason::Blocked(resource),
            } => ("waits", job.task, Some(resource)),
            RecordKind::RankChanged { task, .. } => ("is ranked anew", task, None),
            RecordKind::AffinitySet { task, .. } if counts_cpus => ("has other CPUs", task, None),
            _ => continue,
        };
        let (what, task, resource) = key;
        *facts.entry((what, task.index(), resource)).or_default() += 1;
    }
    facts
}

/// When each job is finished, by task and number.
fn finished(records: &[Record]) -> BTreeMap<(usize, u64), Instant> {
    let of = |record: &Record| match record.kind {
        RecordKind::Completed { job } => Some(((job.task.index(), job.number), record.at)),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}
