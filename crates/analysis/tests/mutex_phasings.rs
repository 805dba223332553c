//! Blocking by mutexes on one CPU in small systems, in many phasings: the bound against its definition, responses and
//! waiting against what `docs/theory/blocking.md` shows.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_analysis::verdicts::{Candidate, analyse};
use shiftwork_model::{
    Affinity, Arrival, CpuId, Instant, NotReadyReason, OnOverrun, Phase, Priority, Protocol,
    RandomStream, RecordKind, Recorder, Resource, ResourceId, Span, Task, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

const NS: fn(u64) -> Span = Span::from_ns;
const STEPS: u64 = 100_000;
/// Random offsets of the tasks of a set, one after the other.
const PHASINGS: u64 = 12;

/// Two to four tasks that lock up to three mutexes in the order of their numbers and unlock them in reverse; sections
/// may be empty, and begin and end with the job.
fn random(stream: &mut RandomStream) -> TaskSet {
    let mutexes = 1 + stream.below(3);
    let empty = stream.below(3) == 0;
    let count = 2 + stream.below(3);
    let task = |place: u64| {
        let cost = 1 + stream.below(5);
        let period = (cost + stream.below(16)).max(2);
        let mut task = Task::periodic(
            &format!("t{place}"),
            NS(cost),
            NS(period),
            Affinity::pinned(CpuId::from_index(0)),
        );
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
        task.work = Work::Phases(phases(stream, cost, mutexes, empty));
        task
    };
    let tasks: Vec<Task> = (0..count).map(task).collect();
    let mut set = TaskSet::new("", 1, tasks);
    let kind = stream.below(4);
    let is_migratory = stream.below(4) == 0;
    let protocols = (0..mutexes).map(|_| match (kind, stream.below(2)) {
        // The same on one CPU.
        (0, _) | (3, 0) if is_migratory => Protocol::Migratory,
        (0, _) | (3, 0) => Protocol::Inheritance,
        _ => Protocol::Ceiling,
    });
    let resource = |(index, protocol)| Resource {
        name: format!("r{index}"),
        protocol,
    };
    set.resources = protocols.enumerate().map(resource).collect();
    set
}

fn phases(stream: &mut RandomStream, cost: u64, mutexes: u64, empty: bool) -> Vec<Phase> {
    let id = |index: u64| ResourceId::from_index(index as usize);
    let mut phases = Vec::new();
    let mut held: Vec<u64> = Vec::new();
    let mut left = cost;
    while left > 0 || !held.is_empty() {
        let lowest = held.last().map_or(0, |it| it + 1);
        match stream.below(3) {
            0 if left > 0 && lowest < mutexes => {
                held.push(lowest + stream.below(mutexes - lowest));
                phases.push(Phase::Lock(id(*held.last().unwrap())));
            }
            1 if !held.is_empty() && (empty || !matches!(phases.last(), Some(Phase::Lock(_)))) => {
                phases.push(Phase::Unlock(id(held.pop().unwrap())));
            }
            _ if left > 0 => {
                let run = 1 + stream.below(left);
                left -= run;
                phases.push(Phase::Run(NS(run)));
            }
            _ => phases.push(Phase::Unlock(id(held.pop().unwrap()))),
        }
    }
    phases
}

/// What the job holds in each unit of its execution time, and the nested locks `(held, locked)`.
fn units(task: &Task) -> (Vec<Vec<usize>>, Vec<(usize, usize)>) {
    let Work::Phases(phases) = &task.work else {
        return (Vec::new(), Vec::new());
    };
    let (mut units, mut nested, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for phase in phases {
        match *phase {
            Phase::Run(run) => (0..run.as_ns()).for_each(|_| units.push(held.clone())),
            Phase::Lock(id) => {
                nested.extend(held.iter().map(|&outer| (outer, id.index())));
                held.push(id.index());
            }
            Phase::Unlock(id) => held.retain(|it| *it != id.index()),
            Phase::Sleep(_) | Phase::Trigger(_) => unreachable!("no task does"),
        }
    }
    (units, nested)
}

/// B by task, unit by unit.
fn blocking(set: &TaskSet, levels: &[u64]) -> Vec<u64> {
    let uses = |task: usize, mutex: usize| set.tasks[task].locks_one(ResourceId::from_index(mutex));
    let count = set.tasks.len();
    let users = |mutex: usize| (0..count).filter(move |&task| uses(task, mutex));
    let is_shared = |mutex: usize| users(mutex).count() > 1;
    let of_tasks: Vec<_> = set.tasks.iter().map(units).collect();
    let nested = of_tasks.iter().flat_map(|(_, nested)| nested);
    let nested: Vec<_> = nested
        .filter(|(held, locked)| is_shared(*held) && is_shared(*locked))
        .collect();
    let ceilings = (0..set.resources.len()).map(|mutex| users(mutex).map(|it| levels[it]).min());
    let mut ceilings: Vec<u64> = ceilings.map(|it| it.unwrap_or(u64::MAX)).collect();
    while let Some((held, locked)) = nested.iter().find(|(h, l)| ceilings[*h] < ceilings[*l]) {
        ceilings[*locked] = ceilings[*held];
    }
    let of_level = |&level: &u64| {
        let blocks = |mutex: usize| is_shared(mutex) && ceilings[mutex] <= level;
        let low = || (0..count).filter(|&task| levels[task] > level);
        let longest = |task: usize| {
            let units = of_tasks[task].0.iter();
            let blocked = units.map(|held| held.iter().any(|&mutex| blocks(mutex)));
            let blocked: Vec<bool> = blocked.collect();
            let stretches = blocked.split(|it| !it).map(<[bool]>::len);
            stretches.max().unwrap_or(0) as u64
        };
        let has_inheritance = low().any(|task| {
            (0..set.resources.len()).any(|mutex| {
                let protocol = set.resources[mutex].protocol;
                uses(task, mutex) && blocks(mutex) && protocol != Protocol::Ceiling
            })
        });
        match has_inheritance {
            true => low().map(longest).sum(),
            false => low().map(longest).max().unwrap_or(0),
        }
    };
    levels.iter().map(of_level).collect()
}

fn in_short(set: &TaskSet) -> String {
    let tasks = set.tasks.iter().map(|task| {
        let (priority, arrival, work) = (task.priority, &task.arrival, &task.work);
        let times = [task.offset, task.cost, task.period, task.deadline].map(Span::as_ns);
        format!("\noffset, C, T, D: {times:?} {priority:?} {arrival:?} {work:?}")
    });
    let protocols = set
        .resources
        .iter()
        .map(|it| format!("\n{:?}", it.protocol));
    tasks.chain(protocols).collect()
}

struct Seen<'a> {
    set: &'a TaskSet,
    released: Vec<Vec<u64>>,
    longest: Vec<u64>,
    /// Waiting for mutexes with inheritance, and with a ceiling.
    waits: [u64; 2],
}

impl Recorder for Seen<'_> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => self.released[job.task.index()].push(at.as_ns()),
            RecordKind::Completed { job, .. } => {
                let released = self.released[job.task.index()][job.number as usize - 1];
                let longest = &mut self.longest[job.task.index()];
                *longest = (*longest).max(at.as_ns() - released);
            }
            RecordKind::NotReady {
                reason: NotReadyReason::Blocked(id),
                ..
            } => {
                let ceiling = self.set.resources[id.index()].protocol == Protocol::Ceiling;
                self.waits[usize::from(ceiling)] += 1;
            }
            _ => {}
        }
    }
}

#[test]
fn no_phasing_refutes_what_is_shown_of_mutexes() {
    let count = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 240_000,
        None => 1_000,
    };
    for name in ["p-fp", "p-edf"] {
        let entry = registry::find(name).unwrap();
        let (mut known, mut bounds, mut tight, mut waits, mut runs) =
            (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
        for seed in 0..count {
            let mut stream = RandomStream::new(seed, 977, 0);
            let mut set = random(&mut stream);
            let levels: Vec<u64> = match name {
                "p-fp" => set
                    .priorities()
                    .iter()
                    .map(|it| it.number().into())
                    .collect(),
                _ => set.tasks.iter().map(|it| it.deadline.as_ns()).collect(),
            };
            let StandIns::Other(others) = StandIns::of(&set, &entry.traits) else {
                continue;
            };
            known += 1;
            let longer = others.set.tasks.iter().zip(&set.tasks);
            let longer: Vec<u64> = longer
                .map(|(a, b)| a.cost.as_ns() - b.cost.as_ns())
                .collect();
            assert_eq!(
                longer,
                blocking(&set, &levels),
                "seed {seed}, {name}: {}",
                in_short(&set)
            );
            let candidate = Candidate {
                policy: name.to_owned(),
                traits: entry.traits,
                bound: Ok(set.tasks.iter().map(|task| task.affinity).collect()),
            };
            let found = analyse(&set, &[candidate], STEPS).policies.remove(0);
            let best: Vec<Option<u64>> = found
                .best
                .iter()
                .map(|best| best.as_ref().map(|best| best.response.as_ns()))
                .collect();
            let is_shown = found.hard.answer == shiftwork_analysis::verdicts::Answer::Schedulable;
            let shared_ceiling = set
                .resources
                .iter()
                .any(|it| it.protocol == Protocol::Ceiling);
            if best.iter().all(Option::is_none) && !is_shown && !shared_ceiling {
                continue;
            }
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
                    waits: [0; 2],
                };
                let policy = entry.build(&set).unwrap();
                Simulation::new(&set, policy, &entry.traits, options).run(&mut seen);
                runs += 1;
                // Lemma 1 speaks of mutexes that several tasks use; others are never waited for either.
                assert_eq!(
                    seen.waits[1],
                    0,
                    "seed {seed}, {phasing}, {name}: {}",
                    in_short(&set)
                );
                waits += seen.waits[0];
                for (task, &response) in seen.longest.iter().enumerate() {
                    worst[task] = worst[task].max(response);
                    let context = || {
                        format!(
                            "seed {seed}, {phasing}, {name}, task {task}: {response} {best:?} {}",
                            in_short(&set)
                        )
                    };
                    assert!(
                        best[task].is_none_or(|bound| response <= bound),
                        "{}",
                        context()
                    );
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
            "{name}: {count} sets, {known} known, {runs} runs, {bounds} bounds, {tight} reached with blocking, {waits} waits"
        );
        assert!(tight > 0 && waits > 0);
    }
}
