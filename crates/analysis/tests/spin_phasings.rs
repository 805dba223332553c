//! Jobs that spin for mutexes across CPUs, or hold some that forbid preemption, in small systems and many phasings: the
//! bound against its definition, spinning and responses against what `docs/theory/blocking.md` shows.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_analysis::verdicts::{Answer, Candidate, analyse};
use shiftwork_model::{
    Affinity, Arrival, CpuId, Instant, OnOverrun, Phase, Priority, Protocol, RandomStream,
    RecordKind, Recorder, Resource, ResourceId, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

const NS: fn(u64) -> Span = Span::from_ns;
const STEPS: u64 = 100_000;
/// Random offsets of the tasks of a set, one after the other.
const PHASINGS: u64 = 12;

/// Two to five tasks on two or three CPUs. They spin for one or two mutexes, and each CPU has one that forbids preemption and
/// one with a ceiling.
fn random(stream: &mut RandomStream) -> TaskSet {
    let cpus = 2 + stream.below(2) as usize;
    let spins = 1 + stream.below(2) as usize;
    let local = stream.below(3) as usize;
    let count = 2 + stream.below(4);
    let task = |place: u64| {
        let cost = 1 + stream.below(5);
        let period = (cost + stream.below(20)).max(2);
        let cpu = stream.below(cpus as u64) as usize;
        let bound = Affinity::pinned(CpuId::from_index(cpu));
        let mut task = Task::periodic(&format!("t{place}"), NS(cost), NS(period), bound);
        task.deadline = NS(match stream.below(3) {
            0 => period,
            1 => cost + stream.below(period),
            _ => period + stream.below(2 * period),
        });
        task.priority = Priority::new(1 + stream.below(4) as u32);
        task.on_overrun = OnOverrun::Continue;
        if stream.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        // Those of all CPUs, then those of its own.
        let mutexes = (0..spins).chain((0..local).map(|kind| spins + 2 * cpu + kind));
        task.work = Work::Phases(phases(stream, cost, &mutexes.collect::<Vec<_>>()));
        task
    };
    let tasks = (0..count).map(task).collect();
    let mut set = TaskSet::new("", cpus, tasks);
    let locals = [Protocol::NonPreemptive, Protocol::Ceiling].into_iter();
    let locals = std::iter::repeat_n((), cpus).flat_map(|()| locals.clone());
    let resource = |(index, protocol)| Resource {
        name: format!("r{index}"),
        protocol,
    };
    let protocols = std::iter::repeat_n(Protocol::Spin, spins).chain(locals);
    set.resources = protocols.enumerate().map(resource).collect();
    set
}

/// Sections one after the other.
fn phases(stream: &mut RandomStream, cost: u64, mutexes: &[usize]) -> Vec<Phase> {
    let mut phases = Vec::new();
    let mut left = cost;
    while left > 0 {
        let run = 1 + stream.below(left);
        left -= run;
        let id = ResourceId::from_index(mutexes[stream.below(mutexes.len() as u64) as usize]);
        match stream.below(3) {
            0 => phases.push(Phase::Run(NS(run))),
            _ => phases.extend([Phase::Lock(id), Phase::Run(NS(run)), Phase::Unlock(id)]),
        }
    }
    phases
}

/// The sections of the task in their order, what lies between as `None`, each with its length.
fn sections(task: &Task) -> Vec<(Option<usize>, u64)> {
    let Work::Phases(phases) = &task.work else {
        unreachable!("all tasks have phases");
    };
    let mut held = None;
    let mut all = Vec::new();
    for phase in phases {
        match *phase {
            Phase::Run(run) => all.push((held, run.as_ns())),
            Phase::Lock(id) => held = Some(id.index()),
            _ => held = None,
        }
    }
    all
}

/// How long a request of a job on `cpu` spins at most: the longest section for each other CPU.
fn spin(set: &TaskSet, cpu: CpuId, mutex: usize) -> u64 {
    if set.resources[mutex].protocol != Protocol::Spin {
        return 0;
    }
    let on = |cpu: usize| {
        let tasks = set
            .tasks
            .iter()
            .filter(|it| it.only_cpu() == CpuId::new(cpu));
        let sections = tasks.flat_map(sections).filter(|it| it.0 == Some(mutex));
        sections.map(|(_, length)| length).max().unwrap_or(0)
    };
    (0..set.platform.cpus)
        .filter(|&it| it != cpu.index())
        .map(on)
        .sum()
}

/// What is added to the cost of each task: its own spinning, and the longest time without a gap in which a less urgent job of
/// its CPU spins or holds a mutex that keeps it from the CPU.
fn added(set: &TaskSet, levels: &[u64]) -> Vec<u64> {
    let users = |mutex: usize| {
        let id = ResourceId::from_index(mutex);
        (0..set.tasks.len()).filter(move |&task| set.tasks[task].locks_one(id))
    };
    let blocks = |mutex: usize, level: u64| match set.resources[mutex].protocol {
        Protocol::Ceiling => users(mutex).count() > 1 && users(mutex).any(|it| levels[it] <= level),
        _ => true,
    };
    let of = |(task, &level): (&Task, &u64)| {
        let cpu = task.only_cpu().unwrap();
        let own = sections(task).into_iter().filter_map(|it| it.0);
        let own: u64 = own.map(|mutex| spin(set, cpu, mutex)).sum();
        let low = set.tasks.iter().zip(levels);
        let low = low.filter(|(it, of)| **of > level && it.only_cpu() == Some(cpu));
        let longest = low.map(|(it, _)| {
            let (mut longest, mut now) = (0, 0);
            for (mutex, length) in sections(it) {
                let is_blocking = mutex.is_some_and(|mutex| blocks(mutex, level));
                let more = length + mutex.map_or(0, |mutex| spin(set, cpu, mutex));
                now = if is_blocking { now + more } else { 0 };
                longest = longest.max(now);
            }
            longest
        });
        own + longest.max().unwrap_or(0)
    };
    set.tasks.iter().zip(levels).map(of).collect()
}

struct Seen<'a> {
    set: &'a TaskSet,
    released: Vec<Vec<u64>>,
    longest: Vec<u64>,
    /// Since when jobs spin.
    spins: BTreeMap<TaskId, u64>,
    /// How long requests spun, in all, and how many for as long as they may.
    spun: (u64, u64),
}

impl Recorder for Seen<'_> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        let at = at.as_ns();
        match *kind {
            RecordKind::Released { job, .. } => self.released[job.task.index()].push(at),
            RecordKind::Completed { job } => {
                let released = self.released[job.task.index()][job.number as usize - 1];
                let longest = &mut self.longest[job.task.index()];
                *longest = (*longest).max(at - released);
            }
            RecordKind::Spinning { job, .. } => drop(self.spins.insert(job.task, at)),
            RecordKind::Locked { job, resource } => {
                if let Some(since) = self.spins.remove(&job.task) {
                    let cpu = self.set.tasks[job.task.index()].only_cpu().unwrap();
                    let most = spin(self.set, cpu, resource.index());
                    assert!(at - since <= most, "{job:?} spins from {since} to {at}");
                    self.spun.0 += at - since;
                    self.spun.1 += u64::from(at - since == most);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn no_phasing_refutes_what_is_shown_of_spinning() {
    let count = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 40_000,
        None => 1_000,
    };
    for name in ["p-fp", "p-edf"] {
        let entry = registry::find(name).unwrap();
        let (mut bounds, mut tight, mut shown, mut spun) = (0_u64, 0_u64, 0_u64, (0, 0));
        for seed in 0..count {
            let mut stream = RandomStream::new(seed, 983, 0);
            let mut set = random(&mut stream);
            let priorities = set.priorities();
            let levels: Vec<u64> = match name {
                "p-fp" => priorities.iter().map(|it| it.number().into()).collect(),
                _ => set.tasks.iter().map(|it| it.deadline.as_ns()).collect(),
            };
            let others = match StandIns::of(&set, &entry.traits) {
                StandIns::Other(others) => others,
                StandIns::Same => continue,
                StandIns::Unknown => panic!("seed {seed}, {name}: nothing stands for {set:#?}"),
            };
            let longer = others.set.tasks.iter().zip(&set.tasks);
            let longer: Vec<u64> = longer
                .map(|(a, b)| a.cost.as_ns() - b.cost.as_ns())
                .collect();
            assert_eq!(
                longer,
                added(&set, &levels),
                "seed {seed}, {name}: {set:#?}"
            );
            let candidate = Candidate {
                policy: name.to_owned(),
                traits: entry.traits,
                bound: Ok(set.tasks.iter().map(|task| task.affinity).collect()),
            };
            let found = analyse(&set, &[candidate], STEPS).policies.remove(0);
            let is_shown = found.hard.answer == Answer::Schedulable;
            shown += u64::from(is_shown);
            let best = found
                .best
                .iter()
                .map(|best| Some(best.as_ref()?.response.as_ns()));
            let best: Vec<Option<u64>> = best.collect();
            let mut worst = vec![0; set.tasks.len()];
            for phasing in 0..PHASINGS {
                for task in &mut set.tasks {
                    task.offset = NS(stream.below(task.period.as_ns().min(14)));
                }
                let options = Options {
                    seed: phasing,
                    horizon: Instant::from_ns(200),
                    overheads: None,
                    reserve_server: false,
                };
                let mut seen = Seen {
                    set: &set,
                    released: vec![Vec::new(); set.tasks.len()],
                    longest: vec![0; set.tasks.len()],
                    spins: BTreeMap::new(),
                    spun: (0, 0),
                };
                let policy = entry.build(&set).unwrap();
                Simulation::new(&set, policy, &entry.traits, options).run(&mut seen);
                spun = (spun.0 + seen.spun.0, spun.1 + seen.spun.1);
                for (task, &response) in seen.longest.iter().enumerate() {
                    worst[task] = worst[task].max(response);
                    let context = || {
                        format!(
                            "seed {seed}, {phasing}, {name}, task {task}: {response} {best:?} {set:#?}"
                        )
                    };
                    let is_within = best[task].is_none_or(|bound| response <= bound);
                    assert!(is_within, "{}", context());
                    let deadline = set.tasks[task].deadline.as_ns();
                    assert!(!is_shown || response <= deadline, "{}", context());
                }
            }
            for (task, &worst) in worst.iter().enumerate() {
                bounds += u64::from(best[task].is_some());
                tight += u64::from(longer[task] > 0 && best[task] == Some(worst));
            }
        }
        println!(
            "{name}: {count} sets, {shown} shown, {bounds} bounds, {tight} reached with spinning or blocking, spun {spun:?}"
        );
        assert!(tight > 0 && shown > 0 && spun.1 > 0);
    }
}
