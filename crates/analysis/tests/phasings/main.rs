//! Jobs that share mutexes across CPUs, in small systems and many phasings: the bound against its definition, waiting and
//! responses against what `docs/theory/blocking.md` shows.
#![allow(clippy::unwrap_used, reason = "a test")]

mod alone;
mod boosted;
mod by_ceilings;
mod queued;
mod spin;
mod tight;

use std::collections::BTreeMap;

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_analysis::verdicts::{Answer, Candidate, analyse};
use shiftwork_model::{
    Affinity, Arrival, CpuId, Instant, NotReadyReason, OnOverrun, Phase, Priority, Protocol,
    RandomStream, RecordKind, Recorder, Resource, ResourceId, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

const NS: fn(u64) -> Span = Span::from_ns;
const STEPS: u64 = 100_000;
/// Random offsets of the tasks of a set, one after the other.
const PHASINGS: u64 = 12;

/// By task, what is added to its cost, and for how long its jobs may be suspended instead; `None` where nothing is known.
type Added = Option<Vec<[u64; 2]>>;

/// What is known of a protocol that tasks on different CPUs use.
struct Kind {
    /// The protocol.
    across: Protocol,
    /// Those of the mutexes that each CPU has to itself.
    local: [Protocol; 2],
    /// Whether the set is one of this kind.
    takes: fn(&TaskSet) -> bool,
    /// Under which policies.
    policies: &'static [&'static str],
    /// How long a job of a task waits at most when it requests a mutex that it uses, where anything is known.
    waits: fn(&TaskSet, usize, usize) -> u64,
    /// What is added to tasks of these levels, under EDF or not.
    added: fn(&TaskSet, &[u64], bool) -> Added,
}

/// Two tasks on different CPUs, which do the same, with two mutexes with this protocol.
fn pair(protocol: Protocol, phases: &[Phase]) -> TaskSet {
    let task = |cpu: usize| {
        let bound = Affinity::pinned(CpuId::from_index(cpu));
        let mut task = Task::periodic(&format!("t{cpu}"), NS(4), NS(100), bound);
        task.work = Work::Phases(phases.to_vec());
        task
    };
    let mut set = TaskSet::new("", 2, vec![task(0), task(1)]);
    let resource = |name: &str| Resource {
        name: name.to_owned(),
        protocol,
    };
    set.resources = vec![resource("r0"), resource("r1")];
    set
}

/// Two to five tasks on two or three CPUs. They share one or two mutexes, and each CPU has one of each local kind.
fn random(stream: &mut RandomStream, kind: &Kind) -> TaskSet {
    let cpus = 2 + stream.below(2) as usize;
    let shared = 1 + stream.below(2) as usize;
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
        let mutexes = (0..shared).chain((0..local).map(|place| shared + 2 * cpu + place));
        task.work = Work::Phases(phases(stream, cost, &mutexes.collect::<Vec<_>>()));
        task
    };
    let tasks = (0..count).map(task).collect();
    let mut set = TaskSet::new("", cpus, tasks);
    let locals = std::iter::repeat_n(kind.local, cpus).flatten();
    let resource = |(index, protocol)| Resource {
        name: format!("r{index}"),
        protocol,
    };
    let protocols = std::iter::repeat_n(kind.across, shared).chain(locals);
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

struct Seen<'a> {
    released: Vec<Vec<u64>>,
    longest: Vec<u64>,
    /// How long jobs wait at most, by task and mutex.
    most: &'a [Vec<u64>],
    context: String,
    /// Since when jobs wait.
    waits: BTreeMap<TaskId, u64>,
    /// How long requests waited, in all, and how many for as long as they may.
    waited: (u64, u64),
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
            RecordKind::Spinning { job, .. }
            | RecordKind::NotReady {
                job,
                reason: NotReadyReason::Blocked(_),
            } => drop(self.waits.insert(job.task, at)),
            RecordKind::Locked { job, resource } => {
                if let Some(since) = self.waits.remove(&job.task) {
                    let most = self.most[job.task.index()][resource.index()];
                    assert!(
                        at - since <= most,
                        "{}: {job:?} waits for {resource:?} from {since} to {at}, not {most}",
                        self.context
                    );
                    self.waited.0 += at - since;
                    self.waited.1 += u64::from(at - since == most);
                }
            }
            _ => {}
        }
    }
}

/// Checks what is shown of sets with mutexes of this kind, under partitioned policies by priority and deadline.
fn no_phasing_refutes_what_is_shown(kind: &Kind) {
    let count = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 40_000,
        None => 1_000,
    };
    for &name in kind.policies {
        let entry = registry::find(name).unwrap();
        let (mut bounds, mut tight, mut shown, mut waited) = (0_u64, 0_u64, 0_u64, (0, 0));
        let mut unknown = 0_u64;
        for seed in 0..count {
            let mut stream = RandomStream::new(seed, 983, 0);
            let mut set = random(&mut stream, kind);
            if !(kind.takes)(&set) {
                continue;
            }
            let priorities = set.priorities();
            let levels: Vec<u64> = match name {
                "p-fp" => priorities.iter().map(|it| it.number().into()).collect(),
                _ => set.tasks.iter().map(|it| it.deadline.as_ns()).collect(),
            };
            let added = (kind.added)(&set, &levels, name == "p-edf");
            let others = match (StandIns::of(&set, &entry.traits), &added) {
                (StandIns::Other(others), Some(_)) => others,
                (StandIns::Same, _) => continue,
                (StandIns::Unknown, None) => {
                    unknown += 1;
                    continue;
                }
                (found, _) => {
                    panic!("seed {seed}, {name}: {added:?}, but {found:?} stands for {set:#?}")
                }
            };
            let longer = others.set.tasks.iter().zip(&set.tasks);
            let longer: Vec<u64> = longer
                .map(|(a, b)| a.cost.as_ns() - b.cost.as_ns())
                .collect();
            let suspended = |task: usize| others.suspensions.get(task).map_or(0, |it| it.as_ns());
            let both = longer.iter().enumerate();
            let both = both.map(|(task, &longer)| [longer, suspended(task)]);
            assert_eq!(Some(both.collect()), added, "seed {seed}, {name}: {set:#?}");
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
            let most = |task: usize| {
                let all = (0..set.resources.len()).map(ResourceId::from_index);
                let uses = |id: ResourceId| set.tasks[task].locks_one(id);
                let of = |id: ResourceId| match uses(id) {
                    true => (kind.waits)(&set, task, id.index()),
                    false => 0,
                };
                all.map(of).collect()
            };
            let most: Vec<Vec<u64>> = (0..set.tasks.len()).map(most).collect();
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
                    released: vec![Vec::new(); set.tasks.len()],
                    longest: vec![0; set.tasks.len()],
                    most: &most,
                    context: format!("seed {seed}, {phasing}, {name}"),
                    waits: BTreeMap::new(),
                    waited: (0, 0),
                };
                let policy = entry.build(&set).unwrap();
                Simulation::new(&set, policy, &entry.traits, options).run(&mut seen);
                waited = (waited.0 + seen.waited.0, waited.1 + seen.waited.1);
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
            "{name}: {count} sets, {unknown} of which nothing is known, {shown} shown, {bounds} bounds, {tight} reached with waiting or blocking, waited {waited:?}"
        );
        assert!(tight > 0 && shown > 0 && waited.1 > 0 && 4 * unknown < 3 * count);
    }
}
