//! Mutexes against their definition, at the interface that machines use: after every event of random sequences both have made
//! the machine do the same in the same order.
#![allow(clippy::unwrap_used, reason = "to test")]

#[allow(dead_code, reason = "only some of its sets are needed")]
#[path = "../../../sim/tests/programs/random.rs"]
mod random;

mod definition;
mod machine;
mod renewal;

use shiftwork_machine::{Mutexes, Request};
use shiftwork_model::{
    CpuId, Instant, PolicyTraits, Protocol, RandomStream, ResourceId, TaskId, TaskSet,
};
use shiftwork_policy::registry;

use definition::Definition;
use machine::{Call, Machine, Stage};
use random::{BOUND, BOUND_BY_PRIORITY, locking_set};

/// What the generator of sets needs.
mod common {
    use shiftwork_model::{Affinity, CpuSet, Span, Task, TaskId};

    pub(crate) const NS: fn(u64) -> Span = Span::from_ns;

    pub(crate) fn id(index: usize) -> TaskId {
        TaskId::from_index(index)
    }

    pub(crate) fn task(cpus: usize, name: &str, cost: u64, period: u64) -> Task {
        let all = Affinity::new(CpuSet::first(cpus)).unwrap();
        Task::periodic(name, NS(cost), NS(period), all)
    }
}

/// Does the same to a pair of mutexes and machine, whichever it is, and compares what they return.
macro_rules! both {
    ($pair:expr, |$mutexes:ident, $machine:ident| $act:expr) => {{
        let expected = {
            let ($mutexes, $machine) = (&mut $pair.definition, &mut $pair.expected);
            $act
        };
        let found = {
            let ($mutexes, $machine) = (&mut $pair.mutexes, &mut $pair.machine);
            $act
        };
        assert_eq!(found, expected, "{}", $pair.context);
        found
    }};
}

/// The mutexes of a set twice, each with its machine.
struct Pair {
    set: TaskSet,
    definition: Definition,
    expected: Machine,
    mutexes: Mutexes,
    machine: Machine,
    /// The policy, the seed and the step, for messages.
    context: String,
}

/// What the sequences came upon.
#[derive(Debug, Default)]
struct Seen {
    ranked: u64,
    reranked: u64,
    moved: u64,
    blocked: u64,
    spun: u64,
    handed: u64,
    raised_arrivals: u64,
}

impl Pair {
    fn new(set: TaskSet, traits: &PolicyTraits) -> Option<Self> {
        Some(Self {
            definition: Definition::new(&set, traits),
            expected: Machine::new(&set),
            mutexes: Mutexes::new(&set, traits)?,
            machine: Machine::new(&set),
            context: String::new(),
            set,
        })
    }

    /// The mutexes of the set that fulfil the condition.
    fn resources(&self, condition: impl Fn(&Self, ResourceId) -> bool) -> Vec<ResourceId> {
        let all = (0..self.set.resources.len()).map(ResourceId::from_index);
        all.filter(|resource| condition(self, *resource)).collect()
    }

    fn held(&self, task: TaskId) -> Vec<ResourceId> {
        self.resources(|pair, resource| pair.definition.holds(task, resource))
    }

    /// The thread runs on a CPU and requests a mutex that it uses, or, after a report was lost, one that it has.
    fn request(&mut self, now: Instant, task: TaskId, random: &mut RandomStream) {
        let state = self.machine.state(task);
        let runs = !state.is_present || state.stage == Stage::Ready;
        let used = self.resources(|pair, resource| {
            pair.set.tasks[task.index()].locks_one(resource)
                && !pair.definition.holds(task, resource)
        });
        let candidates = match random.below(5) {
            0 => self.held(task),
            _ => used,
        };
        if !runs || candidates.is_empty() || self.definition.waits(task) {
            return;
        }
        let resource = candidates[random.below(candidates.len() as u64) as usize];
        let cpus: Vec<CpuId> = self.set.tasks[task.index()]
            .affinity
            .cpus()
            .iter()
            .collect();
        let cpu = cpus[random.below(cpus.len() as u64) as usize];
        let request = both!(self, |mutexes, machine| mutexes.request(
            machine,
            (now, cpu),
            task,
            resource
        ));
        if request == Request::Waits {
            assert!(self.definition.waits(task), "{}", self.context);
        }
    }

    /// The thread unlocks some of what it holds, in any order; they pass on at once.
    fn unlock(&mut self, now: Instant, task: TaskId, random: &mut RandomStream) {
        let mut held = self.held(task);
        // A job that spins executes nothing; a report that comes late may still say so.
        let count = random.below(held.len() as u64 + 1);
        for _ in 0..count {
            let resource = held.swap_remove(random.below(held.len() as u64) as usize);
            both!(self, |mutexes, machine| mutexes
                .unlock(machine, task, resource));
        }
        let has_ended = !self.machine.state(task).is_present && random.below(2) == 0;
        if count > 0 {
            both!(self, |mutexes, machine| mutexes
                .pass_on(machine, now, task, has_ended));
        }
    }

    /// The job ends, and what it holds passes on; or nothing is done but to restore its CPUs.
    fn end(&mut self, now: Instant, task: TaskId) {
        if self.definition.involves(task) {
            both!(self, |mutexes, machine| mutexes.abandon(machine, now, task));
        }
        both!(self, |_mutexes, machine| machine.state(task).stage =
            Stage::Idle);
        both!(self, |mutexes, machine| mutexes.end_job(machine, task));
    }

    /// A job begins, unless one is there.
    fn begin(&mut self, now: Instant, task: TaskId) {
        if self.machine.state(task).stage != Stage::Idle || self.definition.involves(task) {
            return;
        }
        let deadline = now + self.set.tasks[task.index()].deadline;
        let priority = self.set.priorities()[task.index()];
        both!(self, |_mutexes, machine| {
            let state = machine.state(task);
            state.rank.deadline = deadline;
            state.rank.priority = priority;
            state.stage = Stage::Ready;
            state.is_awake = true;
        });
    }

    /// The thread falls asleep or wakes up, with or without mutexes.
    fn sleep_or_wake(&mut self, task: TaskId) {
        both!(self, |_mutexes, machine| {
            let state = machine.state(task);
            state.is_awake = !state.is_awake;
            state.stage = match (state.stage, state.is_awake) {
                (Stage::Ready, false) => Stage::Suspended,
                (Stage::Suspended, true) => Stage::Ready,
                (stage, _) => stage,
            };
        });
    }

    /// The task loses its reservation, or is admitted again once it has nothing to do with mutexes.
    fn demote_or_admit(&mut self, task: TaskId) {
        if self.machine.state(task).is_present {
            both!(self, |_mutexes, machine| machine.state(task).is_present =
                false);
            both!(self, |mutexes, machine| mutexes.lower(machine, task));
        } else if !self.definition.involves(task) {
            both!(self, |_mutexes, machine| {
                let state = machine.state(task);
                state.is_present = true;
                state.stage = Stage::Idle;
            });
        }
    }

    /// Both have done the same, and answer the same.
    fn compare(&mut self, seen: &mut Seen) {
        assert_eq!(self.machine, self.expected, "{}", self.context);
        for index in 0..self.set.tasks.len() {
            let task = TaskId::from_index(index);
            for resource in self.resources(|_, _| true) {
                both!(self, |mutexes, _machine| mutexes.holds(task, resource));
            }
            both!(self, |mutexes, _machine| mutexes.waits(task));
            both!(self, |mutexes, _machine| mutexes.involves(task));
        }
        let log = std::mem::take(&mut self.machine.log);
        self.expected.log.clear();
        for call in log {
            match call {
                Call::Ranked(..) => seen.ranked += 1,
                Call::Reranked(..) => seen.reranked += 1,
                Call::Affinity(..) => seen.moved += 1,
                Call::Blocked(..) => seen.blocked += 1,
                Call::Spins(..) => seen.spun += 1,
                Call::HandedOver(..) => seen.handed += 1,
                Call::Woken(task, rank) => {
                    let own = self.set.tasks[task.index()].deadline;
                    seen.raised_arrivals += u64::from(rank.deadline < Instant::ZERO + own);
                }
                Call::Locked(..) | Call::Unlocked(..) => {}
            }
        }
    }

    fn run(&mut self, name: &str, seed: u64, seen: &mut Seen) {
        let mut random = RandomStream::new(seed, 21, 0);
        let mut now = Instant::ZERO;
        for step in 0..120 {
            let task = TaskId::from_index(random.below(self.set.tasks.len() as u64) as usize);
            let what = random.below(20);
            self.context = format!("{name}, seed {seed}, step {step}, {task:?} does {what}");
            match what {
                0..=6 => self.request(now, task, &mut random),
                7..=10 => self.unlock(now, task, &mut random),
                11..=14 => self.begin(now, task),
                15 => self.end(now, task),
                16 => self.sleep_or_wake(task),
                17 if random.below(3) == 0 => self.demote_or_admit(task),
                _ => {
                    both!(self, |_mutexes, machine| machine.end_instant());
                    now += common::NS(random.below(4));
                }
            }
            self.compare(seen);
        }
    }
}

#[test]
fn mutexes_do_after_every_event_what_their_definition_does() {
    let sets = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 400,
    };
    let by_priority = [&BOUND[..], &BOUND_BY_PRIORITY].concat();
    let anywhere = [
        Protocol::Inheritance,
        Protocol::Migratory,
        Protocol::Omlp,
        Protocol::Ceiling,
        Protocol::NonPreemptive,
        Protocol::Spin,
        Protocol::None,
    ];
    let (mut seen, mut runs) = (Seen::default(), 0);
    for entry in registry::POLICIES {
        for seed in 0..sets {
            let affinities: &[&str] = match seed % 4 {
                0 | 1 => &[],
                2 => &["0-2"],
                _ => &["0", "1", "2", "0-1", "0-2"],
            };
            let protocols = match (affinities.is_empty(), entry.traits.order.is_by_priority()) {
                (true, true) => &by_priority[..],
                (true, false) => &BOUND,
                (false, _) => &anywhere,
            };
            let set = locking_set(seed, affinities, protocols);
            if entry.traits.takes_locks()
                && entry.build(&set).is_ok()
                && let Some(mut pair) = Pair::new(set, &entry.traits)
            {
                pair.run(entry.name, seed, &mut seen);
                runs += 1;
            }
        }
    }
    let Seen {
        ranked,
        reranked,
        moved,
        blocked,
        spun,
        handed,
        raised_arrivals,
    } = seen;
    let counts = [
        ranked,
        reranked,
        moved,
        blocked,
        spun,
        handed,
        raised_arrivals,
    ];
    assert!(
        runs > 5 * sets && counts.iter().all(|count| *count > sets / 2),
        "{runs} {seen:?}"
    );
}
