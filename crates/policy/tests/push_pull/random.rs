//! Long sequences of events on up to eight CPUs.

use shiftwork_model::{RandomStream, Repairs};

use crate::all_rules;
use crate::drive::{Pair, Spec, Step, System};
use crate::oracle::Oracle;
use crate::promises::Facts;

const CPUS_MAX: u64 = 8;
const TASKS_MAX: u64 = 12;
const STEPS: usize = 200;

/// Where tasks may run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    /// Any CPUs of one cluster.
    Arbitrary,
    /// One CPU, or a whole cluster.
    SemiPartitioned,
    /// All CPUs.
    Global,
}

/// Which events there are, beside those of jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Events {
    /// CPUs come and go.
    Hotplug,
    /// Tasks too, and change.
    Tasks,
    /// And clusters, whether or not the tasks follow.
    All,
}

struct Play {
    random: RandomStream,
    shape: Shape,
    events: Events,
    system: System,
    now: u64,
}

impl Play {
    fn new(seed: u64, shape: Shape, events: Events) -> Self {
        let mut random = RandomStream::new(seed, 0, 0);
        let cpus = 1 + random.below(CPUS_MAX) as usize;
        let rules = all_rules();
        let (repairs, ties) = rules[random.below(rules.len() as u64) as usize];
        let mut play = Self {
            random,
            shape,
            events,
            system: System {
                cpus,
                clusters: vec![(1 << cpus) - 1],
                capacities: Vec::new(),
                tasks: Vec::new(),
                repairs,
                ties,
            },
            now: 0,
        };
        if shape != Shape::Global {
            play.system.clusters = play.clusters();
            if play.one_in(3) {
                play.system.capacities = (0..cpus).map(|_| 25 * (1 + play.below(4))).collect();
            }
        }
        for _ in 0..1 + play.below(TASKS_MAX) {
            let spec = play.spec();
            play.system.tasks.push(spec);
        }
        play
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One cluster, or two.
    fn clusters(&mut self) -> Vec<u64> {
        let all = (1 << self.system.cpus) - 1;
        let first = (1 << self.below(self.system.cpus as u64)) - 1;
        match first {
            0 => vec![all],
            _ => vec![first, all & !first],
        }
    }

    fn affinity(&mut self) -> u64 {
        let clusters = self.system.clusters.clone();
        let cluster = clusters[self.below(clusters.len() as u64) as usize];
        let some = cluster & self.random.bits();
        let is_bound = self.one_in(2);
        match self.shape {
            Shape::Arbitrary if some != 0 => some,
            Shape::SemiPartitioned if is_bound && some != 0 => 1 << some.trailing_zeros(),
            _ => cluster,
        }
    }

    fn spec(&mut self) -> Spec {
        let period = 8 + self.below(8);
        let deadline = match self.one_in(3) {
            true => 4 + self.below(period - 3),
            false => period,
        };
        let start_cpu = self
            .one_in(2)
            .then(|| self.below(self.system.cpus as u64) as usize);
        Spec {
            cpus: self.affinity(),
            start_cpu,
            cost: 1 + self.below(deadline),
            period,
            deadline,
        }
    }

    /// Deadlines are often equal, and sometimes over.
    fn deadline(&mut self) -> u64 {
        (self.now + self.random.below(12)).saturating_sub(2)
    }

    /// One step. Jobs succeed mostly running ones; a task that enters may be the next unknown one.
    fn step(&mut self, oracle: &Oracle) -> Step {
        let known = oracle.tasks.len();
        let task = self.below(known as u64) as usize;
        let running = (task..task + self.system.cpus).map(|cpu| cpu % self.system.cpus);
        let running = running.filter_map(|cpu| oracle.running(cpu)).next();
        let cpu = self.below(self.system.cpus as u64) as usize;
        let kinds = match self.events {
            Events::Hotplug => 25,
            Events::Tasks => 29,
            Events::All => 30,
        };
        match self.below(kinds) {
            0..9 => Step::Wake(task, self.now, self.deadline()),
            9 => Step::Block(task),
            10 | 11 => Step::Complete(task),
            12 | 13 => Step::BudgetSpent(task),
            14..17 => Step::Succeed(running.unwrap_or(task), self.now, self.deadline()),
            17..22 => {
                self.now += self.below(4);
                Step::EndInstant
            }
            22 => Step::CpuOffline(cpu),
            23 | 24 => Step::CpuOnline(cpu),
            25 => Step::SetDeadline(task, self.deadline()),
            26 => Step::SetAffinity(task, self.affinity()),
            27 => {
                let entering = match self.below(4) {
                    0 if known < TASKS_MAX as usize => known,
                    _ => task,
                };
                Step::Enter(entering, self.spec())
            }
            28 => Step::Leave(task),
            _ => {
                self.system.clusters = self.clusters();
                Step::SetClusters(self.system.clusters.clone())
            }
        }
    }

    /// Plays; after each instant `promised` is asked.
    fn run(mut self, seed: u64, promised: impl Fn(&Facts) -> Result<(), String>) {
        let mut pair = Pair::new(&self.system);
        let started = self.system.clone();
        let mut steps = Vec::new();
        for number in 0..STEPS {
            let step = self.step(&pair.oracle);
            steps.push(step.clone());
            let mut result = pair.step(&step);
            if let (Ok(()), Step::EndInstant) = (&result, &step) {
                let facts = Facts {
                    policy: &pair.policy,
                    tasks: &pair.oracle.tasks,
                    cpus: self.system.cpus,
                    online: pair.oracle.online,
                };
                let first = facts.the_first_of_each_queue_runs();
                result = first.and_then(|()| promised(&facts));
            }
            let (shape, events) = (self.shape, self.events);
            assert_eq!(
                result,
                Ok(()),
                "seed {seed}, step {number}, {shape:?} {events:?}: {started:?}, {steps:?}"
            );
        }
    }
}

fn seeds() -> core::ops::RangeInclusive<u64> {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 1..=20_000,
        None => 1..=600,
    }
}

#[test]
fn with_any_affinities_everything_goes_as_defined() {
    for seed in seeds() {
        let play = Play::new(seed, Shape::Arbitrary, Events::All);
        play.run(seed, |_| Ok(()));
    }
}

#[test]
fn in_semi_partitioned_systems_everything_goes_as_defined() {
    for seed in seeds() {
        let play = Play::new(seed, Shape::SemiPartitioned, Events::All);
        play.run(seed, |_| Ok(()));
    }
}

#[test]
fn in_semi_partitioned_systems_no_job_waits_for_an_idle_cpu() {
    for seed in seeds() {
        let play = Play::new(seed, Shape::SemiPartitioned, Events::Tasks);
        play.run(seed, |facts| facts.no_job_waits_for_an_idle_cpu());
    }
}

#[test]
fn with_both_repairs_the_earliest_deadlines_run_where_all_tasks_may_run_everywhere() {
    for seed in seeds() {
        let mut play = Play::new(seed, Shape::Global, Events::Hotplug);
        play.system.repairs = Repairs::ALL;
        play.run(seed, |facts| facts.the_earliest_of_all_run());
    }
}
