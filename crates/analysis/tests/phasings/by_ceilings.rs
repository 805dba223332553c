//! Jobs that are boosted by ceilings while they hold mutexes with MPCP or DPCP that other CPUs use, with ceilings on each CPU.

mod responses;

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_model::{Affinity, CpuId, Phase, Protocol, ResourceId, TaskSet, Work};
use shiftwork_policy::registry;

use crate::alone::{self, LONGEST, least};
use crate::{Kind, NS, no_phasing_refutes_what_is_shown, pair, sections};

/// A set with the priorities of its tasks, the least the most urgent.
struct System<'a> {
    set: &'a TaskSet,
    levels: Vec<u64>,
}

impl System<'_> {
    fn new(set: &TaskSet) -> System<'_> {
        let priorities = set.priorities();
        let levels = priorities.iter().map(|it| it.number().into()).collect();
        System { set, levels }
    }

    fn cpu(&self, task: usize) -> CpuId {
        self.set.tasks[task].only_cpu().unwrap()
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..self.set.tasks.len()
    }

    /// The CPU on which jobs have the mutex with DPCP, unless all its users are there.
    fn served(&self, mutex: usize) -> Option<CpuId> {
        let Protocol::Dpcp(cpu) = self.set.resources[mutex].protocol else {
            return None;
        };
        let mut users = self.all().filter(|&it| self.uses(it, mutex));
        users.any(|it| self.cpu(it) != cpu).then_some(cpu)
    }

    /// Whether jobs are boosted with it.
    fn is_global(&self, task: usize, mutex: usize) -> bool {
        self.served(mutex).is_some() || self.remote(task, mutex).is_some()
    }

    fn ceiling(&self, mutex: usize) -> u64 {
        let users = self.all().filter(|&it| self.uses(it, mutex));
        users.map(|it| self.levels[it]).min().unwrap()
    }

    /// How long the job executes on the CPU with DPCP.
    fn load(&self, task: usize, cpu: CpuId) -> u64 {
        let all = self.sections(task).into_iter();
        let there = all.filter(|(mutex, _)| self.served(*mutex) == Some(cpu));
        there.map(|(_, length)| length).sum()
    }

    /// From a request until a section of this length ends that is executed on the CPU with DPCP, or, if that is zero, begins.
    fn request(&self, task: usize, (cpu, length): (CpuId, u64), responses: &[u64]) -> Option<u64> {
        let own = self.levels[task];
        let others = || self.all().filter(|&it| it != task);
        let low = others().filter(|&it| self.levels[it] > own);
        let low = low.flat_map(|it| self.sections(it));
        let low = low
            .filter(|(mutex, _)| self.served(*mutex) == Some(cpu) && self.ceiling(*mutex) <= own);
        let first = length + low.map(|(_, length)| length).max().unwrap_or(0);
        least(0, |window| {
            let high = others().filter(|&it| self.levels[it] <= own);
            let high = high.map(|it| self.executes(it, (cpu, window), responses));
            first + high.sum::<u64>()
        })
    }

    /// How long jobs of the task execute in a window on the CPU with DPCP.
    fn executes(&self, task: usize, (cpu, window): (CpuId, u64), responses: &[u64]) -> u64 {
        match self.load(task, cpu) {
            0 => 0,
            load => self.jobs(task, window, responses) * load,
        }
    }

    /// How many jobs of the task are pending in a window.
    fn jobs(&self, task: usize, window: u64, responses: &[u64]) -> u64 {
        let window = window.saturating_add(responses[task]);
        window.div_ceil(self.set.tasks[task].period.as_ns())
    }

    /// How long jobs of other CPUs execute on that of the task while jobs of its priority or a higher one are pending.
    fn guests(&self, task: usize, responses: &[u64], requests: &[u64]) -> Option<u64> {
        let cpu = self.cpu(task);
        let guests = |window: u64| {
            let others = self.all().filter(|&it| self.cpu(it) != cpu);
            others
                .map(|it| self.executes(it, (cpu, window), responses))
                .sum::<u64>()
        };
        if self
            .all()
            .all(|it| self.cpu(it) == cpu || self.load(it, cpu) == 0)
        {
            return Some(0);
        }
        let high = || {
            self.all()
                .filter(|&it| self.cpu(it) == cpu && self.levels[it] <= self.levels[task])
        };
        let own = high().map(|it| self.computing(it, requests[it], responses));
        let own: Vec<(u64, u64)> = own.collect();
        let low = self.low(task, self.levels[task]);
        let busy = least(0, |window| {
            let own = own
                .iter()
                .map(|(period, cost)| window.div_ceil(*period) * cost);
            low + guests(window) + own.sum::<u64>()
        })?;
        Some(guests(busy))
    }

    fn uses(&self, task: usize, mutex: usize) -> bool {
        self.set.tasks[task].locks_one(ResourceId::from_index(mutex))
    }

    /// Mutexes and lengths of the sections of the task.
    fn sections(&self, task: usize) -> Vec<(usize, u64)> {
        let all = sections(&self.set.tasks[task]).into_iter();
        all.filter_map(|(mutex, length)| Some((mutex?, length)))
            .collect()
    }

    /// The most urgent priority of the users on other CPUs, with MPCP.
    fn remote(&self, task: usize, mutex: usize) -> Option<u64> {
        if self.set.resources[mutex].protocol != Protocol::Mpcp {
            return None;
        }
        let elsewhere = |&it: &usize| self.uses(it, mutex) && self.cpu(it) != self.cpu(task);
        self.all().filter(elsewhere).map(|it| self.levels[it]).min()
    }

    /// From when a job has the mutex until it unlocks it.
    fn hold(&self, task: usize, (mutex, length): (usize, u64)) -> u64 {
        let own = self.remote(task, mutex).unwrap();
        let beside = self
            .all()
            .filter(|&it| it != task && self.cpu(it) == self.cpu(task));
        let longest = beside.map(|it| {
            let all = self.sections(it).into_iter();
            let some = all.filter(|(mutex, _)| self.remote(it, *mutex).is_some_and(|of| of <= own));
            some.map(|(_, length)| length).max().unwrap_or(0)
        });
        length + longest.sum::<u64>()
    }

    fn wait(&self, task: usize, mutex: usize, responses: &[u64]) -> Option<u64> {
        let holds = |it: usize| {
            let all = self.sections(it).into_iter();
            all.filter(move |section| section.0 == mutex)
                .map(move |section| self.hold(it, section))
        };
        let is_low = |it: usize| self.levels[it] > self.levels[task];
        let low = self
            .all()
            .filter(|&it| is_low(it) && self.cpu(it) != self.cpu(task));
        let first = low.flat_map(holds).max().unwrap_or(0);
        let high: Vec<usize> = self.all().filter(|&it| it != task && !is_low(it)).collect();
        least(0, |wait| {
            let of = |&it: &usize| match holds(it).sum::<u64>() {
                0 => 0,
                each => self.jobs(it, wait, responses) * each,
            };
            first + high.iter().map(of).sum::<u64>()
        })
    }

    /// The most that less urgent jobs of its CPU have requested at an instant and not executed, with local mutexes of a ceiling that
    /// is this level or less.
    fn low(&self, task: usize, level: u64) -> u64 {
        let low = self
            .all()
            .filter(|&it| self.levels[it] > self.levels[task] && self.cpu(it) == self.cpu(task));
        let low: Vec<usize> = low.collect();
        let longest = |it: usize, is_local: bool| {
            let boosted = self.beside(it, level, true).into_iter();
            let alone = self.beside(it, level, false).into_iter();
            let all = boosted.chain(alone.filter(|_| is_local));
            all.max().unwrap_or(0)
        };
        let with = |local: Option<usize>| {
            low.iter()
                .map(|&it| longest(it, local == Some(it)))
                .sum::<u64>()
        };
        let local = low.iter().map(|&it| with(Some(it)));
        local.chain([with(None)]).max().unwrap()
    }

    /// The sections of a job of the task that may keep back others of its CPU: those that boost, or of local mutexes of a ceiling that is
    /// this level or less.
    fn beside(&self, task: usize, level: u64, is_boosted: bool) -> Vec<u64> {
        let counts = |&(mutex, _): &(usize, u64)| {
            let users = self.all().filter(|&it| self.uses(it, mutex));
            let is_here = self.served(mutex).is_none_or(|cpu| cpu == self.cpu(task));
            match (self.is_global(task, mutex), is_boosted) {
                (true, true) => is_here,
                (false, false) => users.count() > 1 && self.ceiling(mutex) <= level,
                _ => false,
            }
        };
        let all = self.sections(task).into_iter().filter(counts);
        all.map(|(_, length)| length).collect()
    }

    /// The same at any of so many moments at which a job of the task is pending.
    fn low_at(&self, moments: usize, task: usize, level: u64, responses: &[u64]) -> u64 {
        let low = self
            .all()
            .filter(|&it| self.levels[it] > self.levels[task] && self.cpu(it) == self.cpu(task));
        let low: Vec<usize> = low.collect();
        let jobs = |it: usize| {
            let jobs = self.jobs(it, responses[task], responses);
            usize::try_from(jobs).unwrap().min(moments)
        };
        let of = |it: usize, is_boosted| self.beside(it, level, is_boosted).repeat(jobs(it));
        let boosted = low.iter().map(|&it| of(it, true));
        let alone = low.iter().flat_map(|&it| of(it, false));
        let each = self.low(task, level);
        alone::at_moments(moments, each, boosted.collect(), alone.collect())
    }
}

fn waits(set: &TaskSet, task: usize, mutex: usize) -> u64 {
    let system = System::new(set);
    if !system.is_global(task, mutex) {
        // A job that comes back from another CPU may tie with the holder.
        let mut all = 0..set.resources.len();
        let is_served = all.any(|mutex| system.served(mutex).is_some());
        return if is_served { LONGEST } else { 0 };
    }
    let (responses, _) = system.bounds().unwrap();
    if let Some(cpu) = system.served(mutex) {
        let alone = system.request(task, (cpu, 0), &responses);
        return alone.unwrap_or(responses[task]);
    }
    let alone = system.wait(task, mutex, &responses);
    alone.unwrap_or(responses[task])
}

fn added(set: &TaskSet, levels: &[u64], _: bool) -> Option<Vec<[u64; 2]>> {
    let system = System::new(set);
    let (responses, requests) = system.bounds()?;
    let all = levels.iter().enumerate();
    all.map(|(task, &level)| {
        let is_within = responses[task] <= set.tasks[task].period.as_ns();
        let guests = system
            .all()
            .filter(|&it| system.cpu(it) != system.cpu(task));
        let while_pending = is_within.then(|| {
            let window = (system.cpu(task), responses[task]);
            guests
                .map(|it| system.executes(it, window, &responses))
                .sum::<u64>()
        });
        let while_busy = system.guests(task, &responses, &requests);
        let guests = while_pending.into_iter().chain(while_busy).min()?;
        let moments = system.global(task) + 1;
        let low = system.low_at(moments, task, level, &responses);
        let all = requests[task] + low + guests;
        Some([all, all + system.away(task)])
    })
    .collect()
}

#[test]
fn no_phasing_refutes_what_is_shown_of_ceilings_across_cpus() {
    no_phasing_refutes_what_is_shown(&Kind {
        across: Protocol::Mpcp,
        local: [Protocol::Mpcp, Protocol::Ceiling],
        takes,
        policies: &["p-fp"],
        waits,
        added,
    });
}

#[test]
fn no_phasing_refutes_what_is_shown_of_sections_on_other_cpus() {
    no_phasing_refutes_what_is_shown(&Kind {
        across: Protocol::Dpcp(CpuId::from_index(1)),
        local: [Protocol::Dpcp(CpuId::from_index(0)), Protocol::Ceiling],
        takes,
        policies: &["p-fp"],
        waits,
        added,
    });
}

/// Without one of these protocols ceilings are counted as ever.
fn takes(set: &TaskSet) -> bool {
    let mut tasks = 0..set.tasks.len();
    let is_one = |(mutex, _): (usize, u64)| set.resources[mutex].protocol.needs_priorities();
    tasks.any(|task| System::new(set).sections(task).into_iter().any(is_one))
}

#[test]
fn nothing_is_shown_of_ceilings_across_cpus_where_the_proof_does_not_hold() {
    let is_known = |policy: &str, set: &TaskSet| {
        let traits = registry::find(policy).unwrap().traits;
        matches!(StandIns::of(set, &traits), StandIns::Other(_))
    };
    let run = |ns| Phase::Run(NS(ns));
    let [a, b] = [0, 1].map(ResourceId::from_index);
    let section = |id, ns| [Phase::Lock(id), run(ns), Phase::Unlock(id)];
    let set = pair(Protocol::Mpcp, &[section(a, 2), section(b, 2)].concat());
    assert!(is_known("p-fp", &set) && is_known("strong-fp", &set));
    assert!(!is_known("p-edf", &set));
    let [lock, inner, unlock] = section(b, 2);
    let nested = [
        Phase::Lock(a),
        run(2),
        lock,
        inner,
        unlock,
        Phase::Unlock(a),
    ];
    assert!(!is_known("p-fp", &pair(Protocol::Mpcp, &nested)));
    let mut unbound = set.clone();
    unbound.tasks[1].affinity = Affinity::new("0-1".parse().unwrap()).unwrap();
    assert!(!is_known("p-fp", &unbound));
    // DPCP with MPCP, that of a CPU of neither task.
    let dpcp = Protocol::Dpcp(CpuId::from_index(1));
    for protocol in [Protocol::Fmlp, Protocol::Spin, Protocol::Ceiling, dpcp] {
        let mut other = set.clone();
        other.resources[1].protocol = protocol;
        assert!(!is_known("p-fp", &other), "{protocol:?}");
    }
    // Of a mutex that a single task uses the protocol matters if it forbids preemption, by FMLP+ too.
    let others = [
        (Protocol::Inheritance, true),
        (Protocol::NonPreemptive, false),
        (Protocol::Fmlp, false),
        // On its own CPU, and on another one, where it is in the way.
        (Protocol::Dpcp(CpuId::from_index(0)), true),
        (dpcp, false),
    ];
    for (protocol, may_be) in others {
        let mut own = set.clone();
        own.resources[1].protocol = protocol;
        own.tasks[1].work = Work::Phases(section(a, 4).to_vec());
        assert_eq!(is_known("p-fp", &own), may_be, "{protocol:?}");
    }
    // The most urgent one may keep the others waiting for ever.
    let mut overloaded = set;
    overloaded.tasks[0].period = NS(4);
    assert!(!is_known("p-fp", &overloaded));
}
