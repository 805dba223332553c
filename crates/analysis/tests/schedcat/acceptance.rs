//! How many random task sets with mutexes are shown to meet all deadlines.

use std::collections::BTreeSet;

use shiftwork_analysis::verdicts::{Answer, Candidate, analyse};
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Phase, Priority, Protocol, RandomStream, Resource, ResourceId, Span,
    Task, TaskSet, Work,
};
use shiftwork_policy::registry;

const CPUS: usize = 4;
const TASKS_EACH: usize = 4;
const MUTEXES: usize = 6;
/// What a verdict may take.
const STEPS: u64 = 5_000_000;

const LOADS: [f64; 5] = [0.3, 0.4, 0.5, 0.6, 0.7];

/// Name, policy, and the protocol of a mutex that is served on this CPU with DPCP.
type Kind = (&'static str, &'static str, fn(CpuId) -> Protocol);

const KINDS: [Kind; 5] = [
    ("MSRP", "p-fp", |_| Protocol::Spin),
    ("FMLP+", "p-fp", |_| Protocol::Fmlp),
    ("MPCP", "p-fp", |_| Protocol::Mpcp),
    ("DPCP", "p-fp", Protocol::Dpcp),
    ("OMLP", "g-edf", |_| Protocol::Omlp),
];

/// By task the phases of a job, and the CPUs of the mutexes: shares by UUniFast of this load of each CPU, periods log-uniform from 10 to 100 ms,
/// deadlines at their ends, priorities by period. A task uses a mutex with a probability of 0.4, with 1 to 4 requests in a job and
/// sections of 10 to 100 us, if its sections then take at most half of its cost.
fn random(stream: &mut RandomStream, load: f64) -> (Vec<Task>, Vec<CpuId>) {
    let mut tasks = Vec::new();
    for cpu in 0..CPUS {
        let mut left = load;
        for place in 0..TASKS_EACH {
            let rest = match TASKS_EACH - place - 1 {
                0 => 0.0,
                more => left * stream.unit().powf(1.0 / more as f64),
            };
            let period = (10_000.0 * 10_f64.powf(stream.unit())) as u64;
            let cost = (((left - rest) * period as f64) as u64).max(1);
            left = rest;
            let us = |us: u64| Span::from_ns(1_000 * us);
            let affinity = Affinity::pinned(CpuId::from_index(cpu));
            let mut task = Task::periodic("t", us(cost), us(period), affinity);
            task.work = Work::Phases(phases(stream, cost));
            tasks.push(task);
        }
    }
    tasks.sort_by_key(|task| task.period);
    for (place, task) in tasks.iter_mut().enumerate() {
        task.priority = Priority::new(place as u32 + 1);
    }
    let on = (0..MUTEXES).map(|_| CpuId::from_index(stream.below(CPUS as u64) as usize));
    (tasks, on.collect())
}

fn phases(stream: &mut RandomStream, cost: u64) -> Vec<Phase> {
    let us = |us: u64| Phase::Run(Span::from_ns(1_000 * us));
    let mut sections = Vec::new();
    let mut held = 0;
    for mutex in 0..MUTEXES {
        if stream.unit() >= 0.4 {
            continue;
        }
        let (count, length) = (1 + stream.below(4), 10 + stream.below(91));
        let more = held + count * length;
        if 2 * more > cost || more + sections.len() as u64 + count >= cost {
            continue;
        }
        held = more;
        sections.extend((0..count).map(|_| (ResourceId::from_index(mutex), length)));
    }
    let mut all = Vec::new();
    let mut left = cost;
    for (mutex, length) in sections {
        all.extend([us(1), Phase::Lock(mutex), us(length), Phase::Unlock(mutex)]);
        left -= length + 1;
    }
    all.push(us(left));
    all
}

fn is_shown((_, policy, protocol): Kind, tasks: &[Task], on: &[CpuId]) -> bool {
    let entry = registry::find(policy).unwrap();
    let mut set = TaskSet::new("", CPUS, tasks.to_vec());
    let is_global = policy == "g-edf";
    if is_global {
        for task in &mut set.tasks {
            task.affinity = Affinity::new(CpuSet::first(CPUS)).unwrap();
        }
    }
    let cpus_of = |mutex: usize| {
        let id = ResourceId::from_index(mutex);
        let users = set.tasks.iter().filter(|task| task.locks_one(id));
        users.map(Task::only_cpu).collect::<BTreeSet<_>>()
    };
    let resource = |(mutex, &cpu): (usize, &CpuId)| Resource {
        name: format!("r{mutex}"),
        // MSRP has ceilings where all users share a CPU.
        protocol: match (protocol(cpu), cpus_of(mutex).len()) {
            (Protocol::Spin, 1) => Protocol::Ceiling,
            (protocol, _) => protocol,
        },
    };
    set.resources = on.iter().enumerate().map(resource).collect();
    let candidate = Candidate {
        policy: policy.to_owned(),
        traits: entry.traits,
        bound: Ok(set.tasks.iter().map(|task| task.affinity).collect()),
    };
    let found = analyse(&set, &[candidate], STEPS).policies.remove(0);
    found.hard.answer == Answer::Schedulable
}

/// Prints the columns *ours* of the table in `docs/theory/blocking.md` with `SHIFTWORK_LONG` and `--nocapture`.
#[test]
fn acceptance() {
    let (sets, loads) = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => (500, &LOADS[..]),
        None => (10, &LOADS[1..2]),
    };
    for load in loads {
        let shown = KINDS.map(|kind| {
            let of = |seed: &u64| {
                let (tasks, on) = random(&mut RandomStream::new(*seed, 2_011, 0), *load);
                is_shown(kind, &tasks, &on)
            };
            (0..sets).filter(of).count()
        });
        let percent = shown.map(|count| 100.0 * count as f64 / sets as f64);
        println!("load {load}: {:?} {percent:?}", KINDS.map(|kind| kind.0));
        assert!(shown[..3].iter().all(|count| *count > 0), "{shown:?}");
    }
}
