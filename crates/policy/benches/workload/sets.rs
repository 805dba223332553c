//! Task sets to measure with.

use shiftwork_model::{Affinities, Affinity, CpuId, CpuSet, RandomStream, Span, Task, TaskSet};
use shiftwork_policy::registry::Entry;

/// What the affinities of a task set look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every task may use every CPU.
    Global,
    /// A socket each, uniformly at random; the sockets are the clusters.
    Clustered,
    /// A level uniformly at random (all CPUs, a socket, one CPU), then which of that level.
    ThreeLevel,
    /// The same with as many levels, the group size falling evenly (in powers of two) to one CPU.
    Levels(usize),
    /// One CPU that has room for the task, and others drawn from all: a log-uniform number, so that
    /// half of the masks are narrower than the root of the number of CPUs.
    Arbitrary,
}

impl Shape {
    /// The usual one for a policy: the widest of global, clustered, three-level that it takes.
    pub fn usual_for(policy: &Entry) -> Self {
        match policy.traits.affinities {
            Affinities::Global => Self::Global,
            Affinities::Clusters | Affinities::WithinClusters | Affinities::SemiPartitioned => {
                Self::Clustered
            }
            Affinities::Laminar | Affinities::Any => Self::ThreeLevel,
        }
    }

    pub fn name(self) -> String {
        match self {
            Self::Global => "global".into(),
            Self::Clustered => "clustered".into(),
            Self::ThreeLevel => "three-level".into(),
            Self::Levels(levels) => format!("{levels}-level"),
            Self::Arbitrary => "arbitrary".into(),
        }
    }
}

/// Parameters of a random task set.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub shape: Shape,
    pub cpus: usize,
    pub tasks: usize,
    /// Total utilization, in hundredths of the CPUs.
    pub load: u64,
    /// No job costs less.
    pub shortest_cost: Span,
    pub seed: u64,
}

impl Case {
    pub fn new(shape: Shape, cpus: usize, load: u64) -> Self {
        Self {
            shape,
            cpus,
            tasks: 10 * cpus,
            load,
            shortest_cost: Span::from_us(1),
            seed: 1,
        }
    }

    /// The task set: utilizations uniform among those with the right sum and none above one,
    /// periods log-uniform in 1 ms to 1 s. Feasible up to full load, and evenly loaded above:
    /// an affinity whose CPUs have no room left is drawn again.
    pub fn task_set(&self) -> TaskSet {
        let mut random = RandomStream::new(self.seed, self.cpus as u64, self.tasks as u64);
        let set = (0..ATTEMPTS).find_map(|_| self.attempt(&mut random));
        set.unwrap_or_else(|| panic!("{self:?}: no feasible task set found"))
    }

    fn attempt(&self, random: &mut RandomStream) -> Option<TaskSet> {
        let utilizations = self.utilizations(random);
        let mut room = Room::new(self);
        let task = |(index, utilization): (usize, f64)| {
            let affinity = self.affinity(utilization, &mut room, random)?;
            let (cost, period) = self.cost_and_period(utilization, random);
            let mut task = Task::periodic(&format!("t{index}"), cost, period, affinity);
            task.offset = Span::from_ns(random.below(period.as_ns()));
            Some(task)
        };
        let tasks: Option<Vec<Task>> = utilizations.into_iter().enumerate().map(task).collect();
        let mut set = TaskSet::new("benchmark", self.cpus, tasks?);
        if self.shape == Shape::Clustered {
            set.platform.clusters = groups(self.cpus, socket_size(self.cpus)).collect();
        }
        Some(set)
    }

    /// Uniform on the simplex, drawn again until none is above one.
    fn utilizations(&self, random: &mut RandomStream) -> Vec<f64> {
        let total = self.cpus as f64 * self.load as f64 / 100.0;
        loop {
            let mut shares: Vec<f64> = (0..self.tasks)
                .map(|_| -(1.0 - random.unit()).ln())
                .collect();
            let sum: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share *= total / sum);
            if shares.iter().all(|&share| share <= 1.0) {
                return shares;
            }
        }
    }

    fn cost_and_period(&self, utilization: f64, random: &mut RandomStream) -> (Span, Span) {
        let (shortest, longest): (f64, f64) = (1e6, 1e9);
        let least = self.shortest_cost.as_ns() as f64;
        let shortest = (least / utilization).clamp(shortest, longest);
        let period = shortest * (longest / shortest).powf(random.unit());
        let cost = (period * utilization).max(least);
        (Span::from_ns(cost as u64), Span::from_ns(period as u64))
    }

    fn affinity(
        &self,
        utilization: f64,
        room: &mut Room,
        random: &mut RandomStream,
    ) -> Option<Affinity> {
        (0..ATTEMPTS).find_map(|_| {
            let level = match self.shape {
                Shape::Global => 0,
                Shape::Clustered => 1,
                Shape::Arbitrary => room.sizes.len() - 1,
                Shape::ThreeLevel | Shape::Levels(_) => {
                    random.below(room.sizes.len() as u64) as usize
                }
            };
            let groups = self.cpus / room.sizes[level];
            let group = random.below(groups as u64) as usize;
            room.take(level, group, utilization).then(|| {
                let mut cpus = room.cpus(level, group);
                if self.shape == Shape::Arbitrary {
                    self.widen(&mut cpus, random);
                }
                Affinity::new(cpus).expect("a group has CPUs")
            })
        })
    }

    fn widen(&self, cpus: &mut CpuSet, random: &mut RandomStream) {
        let size = (self.cpus as f64).powf(random.unit()) as usize;
        for _ in 1..size {
            cpus.insert(CpuId::from_index(random.below(self.cpus as u64) as usize));
        }
    }
}

/// How often something that must fit is drawn before giving up.
const ATTEMPTS: usize = 10_000;

/// Two sockets up to 24 CPUs (as in the paper), then of 16, then of 32.
pub fn socket_size(cpus: usize) -> usize {
    match cpus {
        0..=24 => cpus / 2,
        25..=64 => 16,
        _ => 32,
    }
}

fn groups(cpus: usize, size: usize) -> impl Iterator<Item = CpuSet> {
    (0..cpus / size).map(move |group| range(group * size, size))
}

fn range(first: usize, size: usize) -> CpuSet {
    (first..first + size).map(CpuId::from_index).collect()
}

/// How much each group of CPUs at each level can still take; groups nest.
struct Room {
    capacity: f64,
    sizes: Vec<usize>,
    used: Vec<Vec<f64>>,
}

impl Room {
    fn new(case: &Case) -> Self {
        let sizes = match case.shape {
            Shape::Levels(levels) => {
                let doublings = case.cpus.ilog2() as usize;
                (0..levels)
                    .map(|level| case.cpus >> (level * doublings).div_ceil(levels - 1))
                    .collect()
            }
            _ => vec![case.cpus, socket_size(case.cpus), 1],
        };
        let used = sizes.iter().map(|size| vec![0.0; case.cpus / size]);
        Self {
            capacity: (case.load as f64 / 75.0).max(1.0),
            used: used.collect(),
            sizes,
        }
    }

    fn cpus(&self, level: usize, group: usize) -> CpuSet {
        range(group * self.sizes[level], self.sizes[level])
    }

    /// Whether the group and all around it have room; if so, it is taken. Up to full load the
    /// laminar condition, which is exact.
    fn take(&mut self, level: usize, group: usize, utilization: f64) -> bool {
        let first = group * self.sizes[level];
        let fits = (0..=level).all(|l| {
            let used = self.used[l][first / self.sizes[l]] + utilization;
            used <= self.sizes[l] as f64 * self.capacity
        });
        if fits {
            for l in 0..=level {
                self.used[l][first / self.sizes[l]] += utilization;
            }
        }
        fits
    }
}
