//! Random task sets that share mutexes, and those of which some tasks trigger others.

use shiftwork_model::{
    Affinity, Arrival, CpuId, CpuSet, Join, OnOverrun, Phase, Priority, Protocol, RandomStream,
    Resource, ResourceId, Span, Task, TaskId, TaskSet, Trigger, Work,
};

use crate::common::{NS, id, task};

pub(crate) const fn mutex(index: usize) -> ResourceId {
    ResourceId::from_index(index)
}

pub(crate) fn resources(protocols: &[Protocol]) -> Vec<Resource> {
    let of = |(index, &protocol)| Resource {
        name: format!("R{index}"),
        protocol,
    };
    protocols.iter().enumerate().map(of).collect()
}

/// Phases that lock mutexes in the order of their numbers, nested or one after the other, and unlock them in any order. A
/// job that is not preempted does not wait but by spinning.
fn random_phases(random: &mut RandomStream, protocols: &[Protocol]) -> Vec<Phase> {
    let count = protocols.len() as u64;
    let mut phases = Vec::new();
    let mut held: Vec<ResourceId> = Vec::new();
    let mut cost = 0;
    for _ in 0..2 + random.below(8) {
        let highest = held.iter().map(|it| it.index() as u64 + 1).max();
        let lowest = highest.unwrap_or(0);
        let is_kept = held
            .iter()
            .any(|it| protocols[it.index()].may_not_suspend());
        let next = mutex((lowest + random.below(count.max(lowest + 1) - lowest)) as usize);
        let may_lock = lowest < count && (!is_kept || protocols[next.index()] == Protocol::Spin);
        match random.below(6) {
            0 if matches!(phases.last(), Some(Phase::Run(_))) && !is_kept => {
                cost += 1;
                phases.push(Phase::Sleep(NS(1 + random.below(3))));
                phases.push(Phase::Run(NS(1)));
            }
            1 | 2 if may_lock => {
                held.push(next);
                phases.push(Phase::Lock(next));
            }
            3 if !held.is_empty() => {
                let resource = held.swap_remove(random.below(held.len() as u64) as usize);
                phases.push(Phase::Unlock(resource));
            }
            _ => {
                let run = 1 + random.below(3);
                cost += run;
                phases.push(Phase::Run(NS(run)));
            }
        }
    }
    held.iter().for_each(|it| phases.push(Phase::Unlock(*it)));
    if cost == 0 {
        phases.push(Phase::Run(NS(1)));
    }
    phases
}

/// Those that policies take where each task is bound to one CPU.
pub(crate) const BOUND: [Protocol; 7] = [
    Protocol::None,
    Protocol::Inheritance,
    Protocol::Omlp,
    Protocol::Ceiling,
    Protocol::NonPreemptive,
    Protocol::Spin,
    Protocol::Fmlp,
];

/// More of them where priorities are fixed, some more than once, so that they are drawn more often.
pub(crate) const BOUND_BY_PRIORITY: [Protocol; 5] = [
    Protocol::Mpcp,
    Protocol::Mpcp,
    Protocol::Dpcp(CpuId::from_index(0)),
    Protocol::Dpcp(CpuId::from_index(1)),
    Protocol::Dpcp(CpuId::from_index(2)),
];

/// Those that every policy takes that takes mutexes.
pub(crate) const PROTOCOLS: [Protocol; 6] = [
    Protocol::None,
    Protocol::Inheritance,
    Protocol::Omlp,
    Protocol::Ceiling,
    Protocol::NonPreemptive,
    Protocol::Spin,
];

/// A task that may use some of these CPUs, all of one if there are none.
fn random_task(
    random: &mut RandomStream,
    name: &str,
    (cpus, period): (usize, u64),
    affinities: &[&str],
) -> Task {
    let mut task = task(cpus, name, 1 + random.below(5), period);
    task.affinity = match affinities {
        [] => Affinity::pinned(CpuId::from_index(random.below(cpus as u64) as usize)),
        some => {
            let list = some[random.below(some.len() as u64) as usize];
            let all = CpuSet::first(cpus);
            let some = Affinity::new(list.parse::<CpuSet>().unwrap() & all);
            some.unwrap_or(Affinity::new(all).unwrap())
        }
    };
    task.deadline = NS(6 + random.below(2 * period));
    task.offset = NS(random.below(15));
    task.on_overrun = OnOverrun::Continue;
    if random.below(2) == 0 {
        task.priority = Priority::new(1 + random.below(4) as u32);
    }
    task
}

/// Tasks that share mutexes with some of these protocols.
pub(crate) fn locking_set(seed: u64, affinities: &[&str], protocols: &[Protocol]) -> TaskSet {
    let mut random = RandomStream::new(seed, 11, 0);
    let cpus = 1 + random.below(3) as usize;
    let kinds = protocols.len() as u64;
    let mixed = random.below(2) == 0;
    let one = protocols[random.below(kinds) as usize];
    let count = 1 + random.below(3);
    let protocols: Vec<Protocol> = (0..count)
        .map(|_| match mixed {
            true => protocols[random.below(kinds) as usize],
            false => one,
        })
        .map(|protocol| match protocol {
            Protocol::Dpcp(cpu) => Protocol::Dpcp(CpuId::from_index(cpu.index() % cpus)),
            other => other,
        })
        .collect();
    let tasks = (0..2 + random.below(5)).map(|index| {
        let period = 12 + random.below(40);
        let name = format!("T{index}");
        let mut task = random_task(&mut random, &name, (cpus, period), affinities);
        if random.below(4) > 0 {
            task.work = Work::Phases(random_phases(&mut random, &protocols));
        }
        task
    });
    let mut set = TaskSet::new("random", cpus, tasks.collect());
    set.resources = resources(&protocols);
    set
}

/// Tasks of which some trigger others, and some suspend themselves.
pub(crate) fn triggering_set(seed: u64, affinities: &[&str]) -> TaskSet {
    let mut random = RandomStream::new(seed, 12, 0);
    let cpus = 1 + random.below(3) as usize;
    let tasks = (0..2 + random.below(5)).map(|index| {
        let period = 12 + random.below(30);
        let name = format!("T{index}");
        let mut task = random_task(&mut random, &name, (cpus, period), affinities);
        if random.below(2) == 0 {
            task.work = Work::Phases(suspensions(&mut random));
        }
        task
    });
    let mut set = TaskSet::new("random", cpus, tasks.collect());
    add_triggers(&mut random, &mut set);
    set
}

/// Runs and suspensions in any order.
fn suspensions(random: &mut RandomStream) -> Vec<Phase> {
    let mut phases = vec![Phase::Run(NS(1))];
    for _ in 0..random.below(5) {
        let length = NS(1 + random.below(3));
        phases.push(match random.below(3) {
            0 => Phase::Sleep(length),
            _ => Phase::Run(length),
        });
    }
    if random.below(4) == 0 {
        phases.rotate_right(1);
    }
    phases
}

/// Lets about half of the tasks be triggered by others before them, at completions or anywhere within their phases, once or
/// several times.
pub(crate) fn add_triggers(random: &mut RandomStream, set: &mut TaskSet) {
    for index in 1..set.tasks.len() {
        if random.below(2) == 0 {
            continue;
        }
        let first = random.below(index as u64) as usize;
        let sources = (first..index).filter(|&it| it == first || random.below(3) == 0);
        let sources: Vec<TaskId> = sources.map(id).collect();
        let join = [Join::Any, Join::All][random.below(2) as usize];
        let least = u64::from(join == Join::All);
        for source in &sources {
            let of = &mut set.tasks[source.index()];
            if let (Work::Phases(phases), 0) = (&mut of.work, random.below(2)) {
                for _ in 0..1 + random.below(2) {
                    let place = random.below(phases.len() as u64 + 1) as usize;
                    phases.insert(place, Phase::Trigger(id(index)));
                }
            }
        }
        set.tasks[index].offset = Span::ZERO;
        set.tasks[index].arrival = Arrival::Triggered(Trigger {
            sources,
            join,
            queue: (random.below(2) == 0).then(|| (least + random.below(3)) as u32),
        });
    }
}
