//! Jobs that wait in the queues of OMLP under policies with the strong invariant, with any affinities: the bound against its
//! definition, how long jobs wait while more urgent ones do not keep them from the CPUs, and responses.

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_analysis::verdicts::{Answer, Candidate, analyse};
use shiftwork_model::{
    Affinity, Arrival, CpuId, CpuSet, Instant, Invariant, NotReadyReason, OnOverrun, Order, Phase,
    Priority, Protocol, RandomStream, RecordKind, Recorder, Resource, ResourceId, Task, TaskSet,
    Work,
};
use shiftwork_policy::registry::{self, Entry};
use shiftwork_sim::{Options, Simulation};

use crate::{NS, STEPS, pair, phases, sections};

/// Random offsets of the tasks of a set, one after the other.
const PHASINGS: u64 = 6;

/// Tasks in one or two groups, each of which has an affinity, and a mutex or two, and tasks that lock none.
fn random(stream: &mut RandomStream) -> TaskSet {
    let cpus = 2 + stream.below(2) as usize;
    let all = CpuSet::first(cpus);
    let is_global = stream.below(3) == 0;
    let some_cpus = |stream: &mut RandomStream| {
        let list = ["0-2", "0-1", "1-2", "0,2", "0", "1"][stream.below(6) as usize];
        let some = Affinity::new(list.parse::<CpuSet>().unwrap() & all);
        some.filter(|_| !is_global)
            .unwrap_or(Affinity::new(all).unwrap())
    };
    let groups = 1 + stream.below(2);
    let of_groups: Vec<Affinity> = (0..groups).map(|_| some_cpus(stream)).collect();
    let mutexes = 1 + stream.below(2) as usize;
    let count = 3 + stream.below(5);
    let task = |place: u64| {
        let cost = 1 + stream.below(6);
        let period = (2 * cost + stream.below(24)).max(2);
        let group = (stream.below(5) > 0).then(|| stream.below(groups) as usize);
        let affinity = match group {
            Some(group) => of_groups[group],
            None => some_cpus(stream),
        };
        let mut task = Task::periodic(&format!("t{place}"), NS(cost), NS(period), affinity);
        task.deadline = NS(match stream.below(4) {
            0 => cost + stream.below(period),
            1 => period + stream.below(2 * period),
            _ => period,
        });
        task.priority = Priority::new(1 + stream.below(8) as u32);
        task.on_overrun = OnOverrun::Continue;
        if stream.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        let shared = groups as usize * mutexes;
        let own = match group {
            Some(group) => group * mutexes..(group + 1) * mutexes,
            // That of this task alone.
            None => shared + place as usize..shared + place as usize + 1,
        };
        task.work = Work::Phases(phases(stream, cost, &own.collect::<Vec<_>>()));
        task
    };
    let tasks = (0..count).map(task).collect();
    let mut set = TaskSet::new("", cpus, tasks);
    let own = [Protocol::Ceiling, Protocol::Inheritance, Protocol::None];
    let shared = groups as usize * mutexes;
    let resource = |index: usize| Resource {
        name: format!("r{index}"),
        protocol: match index < shared {
            true => Protocol::Omlp,
            false => own[index % own.len()],
        },
    };
    set.resources = (0..shared + count as usize).map(resource).collect();
    set
}

/// How long a request may wait while the job is not covered: for one section of each job that has a place when it comes, if there is
/// none left for it, and for one of each that has a place before it, which are the same but for one if no more than it may be outside.
fn waits(set: &TaskSet, task: usize, mutex: usize) -> u64 {
    let longest = |other: &Task| {
        let Work::Phases(_) = other.work else {
            return None;
        };
        let all = sections(other).into_iter();
        let of = all.filter(|(held, _)| *held == Some(mutex));
        of.map(|(_, length)| length).max()
    };
    let others = set.tasks.iter().enumerate();
    let others = others.filter(|(other, _)| *other != task);
    let mut others: Vec<u64> = others.filter_map(|(_, other)| longest(other)).collect();
    others.sort_unstable();
    let places = set.tasks[task].affinity.cpus().len();
    let longest = |count: usize| others.iter().rev().take(count).sum::<u64>();
    match others.len() <= places {
        true => longest(others.len()),
        false => longest(places) + longest(places - 1),
    }
}

/// How many of these tasks may run at once.
fn most_at_once(set: &TaskSet, tasks: &[usize]) -> usize {
    fn place(set: &TaskSet, task: usize, on: &mut [Option<usize>], seen: &mut CpuSet) -> bool {
        for cpu in set.tasks[task].affinity.cpus().iter() {
            if seen.contains(cpu) {
                continue;
            }
            seen.insert(cpu);
            if on[cpu.index()].is_none_or(|other| place(set, other, on, seen)) {
                on[cpu.index()] = Some(task);
                return true;
            }
        }
        false
    }
    let mut on = vec![None; set.platform.cpus];
    let mut placed = |task: &&usize| place(set, **task, &mut on, &mut CpuSet::EMPTY.clone());
    tasks.iter().filter(|task| placed(task)).count()
}

struct Seen<'a> {
    set: &'a TaskSet,
    order: Order,
    /// By task, the instants of the releases of its jobs, their base ranks, and how many are complete.
    jobs: Vec<(Vec<(u64, u64)>, usize)>,
    longest: Vec<u64>,
    /// For how long each task's request has waited without being covered; `None` if it does not wait.
    waits: Vec<Option<u64>>,
    last: u64,
    most: &'a [Vec<u64>],
    context: String,
    /// How many requests waited without being covered, and how many for as long as they may, of more than one section.
    waited: (u64, u64),
}

impl Seen<'_> {
    /// The base rank of the first job of the task.
    fn base(&self, task: usize) -> Option<u64> {
        let (jobs, complete) = &self.jobs[task];
        Some(jobs.get(*complete)?.1)
    }

    /// Whether more urgent jobs, and equal ones, keep this one from its CPUs.
    fn is_covered(&self, task: usize) -> bool {
        let own = self.base(task);
        let precedes =
            |it: &usize| *it != task && self.base(*it).is_some() && self.base(*it) <= own;
        let mut tasks: Vec<usize> = (0..self.jobs.len()).filter(precedes).collect();
        let without = most_at_once(self.set, &tasks);
        tasks.push(task);
        most_at_once(self.set, &tasks) == without
    }

    fn pass(&mut self, at: u64) {
        for task in 0..self.waits.len() {
            if self.waits[task].is_some() && at > self.last && !self.is_covered(task) {
                let waited = self.waits[task].as_mut().unwrap();
                *waited += at - self.last;
            }
        }
        self.last = at;
    }
}

impl Recorder for Seen<'_> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        let at = at.as_ns();
        self.pass(at);
        match *kind {
            RecordKind::Released { job, deadline } => {
                let task = job.task.index();
                let base = match self.order {
                    Order::Edf => deadline.as_ns(),
                    _ => self.set.priorities()[task].number().into(),
                };
                self.jobs[task].0.push((at, base));
            }
            RecordKind::Completed { job } => {
                let (jobs, complete) = &mut self.jobs[job.task.index()];
                *complete = job.number as usize;
                let released = jobs[*complete - 1].0;
                let longest = &mut self.longest[job.task.index()];
                *longest = (*longest).max(at - released);
            }
            RecordKind::NotReady {
                job,
                reason: NotReadyReason::Blocked(_),
            } => self.waits[job.task.index()] = Some(0),
            RecordKind::Locked { job, resource } => {
                if let Some(waited) = self.waits[job.task.index()].take() {
                    let most = self.most[job.task.index()][resource.index()];
                    assert!(
                        waited <= most,
                        "{}: {job:?} waits for {resource:?} for {waited} until {at}, not {most}",
                        self.context
                    );
                    let others = self.set.tasks.iter();
                    let users = others.filter(|it| it.locks_one(resource)).count();
                    self.waited.0 += u64::from(waited > 0);
                    self.waited.1 += u64::from(users > 2 && waited == most);
                }
            }
            _ => {}
        }
    }
}

/// What the sets came upon.
#[derive(Debug, Default)]
struct Counts {
    sets: u64,
    shown: u64,
    longer: u64,
    waited: u64,
    tight: u64,
    reached: u64,
}

fn check(set: &TaskSet, entry: &Entry, context: &str, counts: &mut Counts) {
    let StandIns::Other(others) = StandIns::of(set, &entry.traits) else {
        assert!(
            set.first_locking().is_none(),
            "{context}: nothing stands for {set:#?}"
        );
        return;
    };
    let users = |id: ResourceId| set.tasks.iter().filter(|it| it.locks_one(id)).count();
    let most = |task: usize| {
        let all = (0..set.resources.len()).map(ResourceId::from_index);
        let of = |id: ResourceId| match set.tasks[task].locks_one(id) && users(id) > 1 {
            true => waits(set, task, id.index()),
            false => 0,
        };
        all.map(of).collect()
    };
    let most: Vec<Vec<u64>> = (0..set.tasks.len()).map(most).collect();
    for (task, (stand_in, of)) in others.set.tasks.iter().zip(&set.tasks).enumerate() {
        let requests = of.phases().iter().filter_map(|phase| match phase {
            Phase::Lock(id) => Some(most[task][id.index()]),
            _ => None,
        });
        let expected = of.cost.as_ns() + requests.sum::<u64>();
        assert_eq!(stand_in.cost.as_ns(), expected, "{context}: {set:#?}");
        counts.longer += u64::from(expected > of.cost.as_ns());
    }
    let candidate = Candidate {
        policy: entry.name.to_owned(),
        traits: entry.traits,
        bound: Ok(set.tasks.iter().map(|task| task.affinity).collect()),
    };
    let found = analyse(set, &[candidate], STEPS).policies.remove(0);
    let is_shown = found.hard.answer == Answer::Schedulable;
    let best = found.best.iter();
    let best: Vec<Option<u64>> = best
        .map(|best| Some(best.as_ref()?.response.as_ns()))
        .collect();
    counts.sets += 1;
    counts.shown += u64::from(is_shown);
    let mut stream = RandomStream::new(counts.sets, 991, 0);
    for phasing in 0..PHASINGS {
        let mut set = set.clone();
        for task in &mut set.tasks {
            task.offset = NS(stream.below(task.period.as_ns().min(14)));
        }
        let mut seen = Seen {
            set: &set,
            order: entry.traits.order,
            jobs: vec![(Vec::new(), 0); set.tasks.len()],
            longest: vec![0; set.tasks.len()],
            waits: vec![None; set.tasks.len()],
            last: 0,
            most: &most,
            context: format!("{context}, {phasing}"),
            waited: (0, 0),
        };
        let options = Options {
            seed: phasing,
            horizon: Instant::from_ns(200),
            overheads: None,
            reserve_server: false,
        };
        let policy = entry.build(&set).unwrap();
        Simulation::new(&set, policy, &entry.traits, options).run(&mut seen);
        counts.waited += seen.waited.0;
        counts.tight += seen.waited.1;
        for (task, &response) in seen.longest.iter().enumerate() {
            let is_within = best[task].is_none_or(|bound| response <= bound);
            let in_time = !is_shown || response <= set.tasks[task].deadline.as_ns();
            assert!(
                is_within && in_time,
                "{context}, {phasing}, task {task}: {response} {best:?} {set:#?}"
            );
            let waits = most[task].iter().any(|most| *most > 0);
            counts.reached += u64::from(waits && best[task] == Some(response));
        }
    }
}

#[test]
fn no_phasing_refutes_what_is_shown_of_queues() {
    let count = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 40_000,
        None => 600,
    };
    let mut counts = Counts::default();
    for seed in 0..count {
        let set = random(&mut RandomStream::new(seed, 984, 0));
        for entry in registry::POLICIES {
            let traits = &entry.traits;
            let is_ranked = matches!(traits.order, Order::Edf | Order::FixedPriority);
            let is_strong = traits.is_greedy() && traits.invariant == Invariant::Strong;
            let is_alone = set.tasks.iter().all(|task| task.only_cpu().is_some());
            if is_ranked && is_strong && !is_alone && entry.build(&set).is_ok() {
                check(
                    &set,
                    entry,
                    &format!("seed {seed}, {}", entry.name),
                    &mut counts,
                );
            }
        }
    }
    println!("{counts:?}");
    let Counts {
        sets,
        shown,
        longer,
        waited,
        tight,
        reached,
    } = counts;
    assert!(
        sets > count && longer > sets && waited > sets,
        "too few were tried"
    );
    assert!(
        shown > count / 20 && tight > 0 && reached > 0,
        "nothing was close"
    );
}

#[test]
fn nothing_is_shown_of_queues_where_the_proof_does_not_hold() {
    let strong = registry::find("strong-edf").unwrap().traits;
    let is_known = |set: &TaskSet| matches!(StandIns::of(set, &strong), StandIns::Other(_));
    let run = |ns| Phase::Run(NS(ns));
    let [a, b] = [0, 1].map(ResourceId::from_index);
    let mut set = pair(
        Protocol::Omlp,
        &[Phase::Lock(a), run(2), Phase::Unlock(a), run(2)],
    );
    let both = Affinity::new("0-1".parse().unwrap()).unwrap();
    for task in &mut set.tasks {
        task.affinity = both;
    }
    assert!(is_known(&set));
    let weak = registry::find("weak-edf").unwrap().traits;
    assert_eq!(StandIns::of(&set, &weak), StandIns::Unknown);
    let clustered = registry::find("c-edf").unwrap().traits;
    assert_eq!(StandIns::of(&set, &clustered), StandIns::Unknown);
    let with = |change: fn(&mut TaskSet, ResourceId)| {
        let mut set = set.clone();
        change(&mut set, b);
        set
    };
    let apart = with(|set, _| {
        set.tasks[1].affinity = Affinity::pinned(CpuId::from_index(0));
    });
    assert!(!is_known(&apart));
    let other = with(|set, _| set.resources[0].protocol = Protocol::Inheritance);
    assert!(!is_known(&other));
    let asleep = with(|set, _| {
        let Work::Phases(phases) = &mut set.tasks[0].work else {
            unreachable!("it has phases");
        };
        phases.insert(0, Phase::Sleep(NS(1)));
    });
    assert!(!is_known(&asleep));
    let nested = with(|set, b| {
        for task in &mut set.tasks {
            let Work::Phases(phases) = &mut task.work else {
                unreachable!("it has phases");
            };
            phases.insert(1, Phase::Lock(b));
            phases.insert(3, Phase::Unlock(b));
        }
    });
    assert!(!is_known(&nested));
    // Of a mutex of one task it matters whether its holder precedes more urgent jobs.
    for (protocol, may_be) in [
        (Protocol::Ceiling, true),
        (Protocol::Spin, false),
        (Protocol::Fmlp, false),
    ] {
        let mut own = set.clone();
        own.resources[1].protocol = protocol;
        own.tasks[1].work = Work::Phases(vec![Phase::Lock(b), run(4), Phase::Unlock(b)]);
        own.tasks.push(set.tasks[1].clone());
        assert_eq!(is_known(&own), may_be, "{protocol:?}");
    }
    let at_the_end = with(|set, b| {
        let Work::Phases(phases) = &mut set.tasks[0].work else {
            unreachable!("it has phases");
        };
        phases.extend([Phase::Lock(b), Phase::Unlock(b)]);
    });
    assert!(!is_known(&at_the_end));
}
