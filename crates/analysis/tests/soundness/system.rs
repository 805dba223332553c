//! Random systems: small ones, in which everything that can happen soon does, and some of large
//! periods without common factors.

use shiftwork_analysis::affinity::Bound;
use shiftwork_analysis::{Placed, Ranked, Sporadic};
use shiftwork_model::{
    Affinity, CpuId, CpuSet, OnOverrun, Priority, RandomStream, Span, Task, TaskSet,
};

/// How the affinities of a system relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Every task on every CPU.
    Global,
    /// Every task on one CPU.
    Partitioned,
    /// Every task on one CPU or on all.
    BiLevel,
    /// Pairs of CPUs, and tasks within one of them or on all.
    Clustered,
    /// CPUs, pairs of them, and all.
    Laminar,
    /// The first CPU, the first two, and so on up to all.
    Chain,
    /// Anything.
    Arbitrary,
}

pub const SHAPES: [Shape; 7] = [
    Shape::Global,
    Shape::Partitioned,
    Shape::BiLevel,
    Shape::Clustered,
    Shape::Laminar,
    Shape::Chain,
    Shape::Arbitrary,
];

/// How the deadlines of a system relate to its periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadlines {
    /// D = T.
    Implicit,
    /// D <= T.
    Constrained,
    /// Shorter, equal or longer.
    Arbitrary,
}

pub const DEADLINES: [Deadlines; 3] = [
    Deadlines::Implicit,
    Deadlines::Constrained,
    Deadlines::Arbitrary,
];

/// One task as all tests see it.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub task: Sporadic,
    pub priority: Priority,
    pub cpus: CpuSet,
}

/// Tasks and the CPUs that they share.
#[derive(Clone, Debug)]
pub struct System {
    pub cpus: usize,
    pub shape: Shape,
    pub deadlines: Deadlines,
    pub members: Vec<Member>,
}

impl System {
    pub fn sporadic(&self) -> Vec<Sporadic> {
        self.members.iter().map(|member| member.task).collect()
    }

    pub fn ranked(&self) -> Vec<Ranked> {
        self.members.iter().map(Member::ranked).collect()
    }

    pub fn placed(&self) -> Vec<Placed> {
        let placed = |member: &Member| Placed {
            task: member.task,
            cpus: member.cpus,
        };
        self.members.iter().map(placed).collect()
    }

    pub fn bound(&self) -> Vec<Bound> {
        let bound = |member: &Member| Bound {
            ranked: member.ranked(),
            cpus: member.cpus,
        };
        self.members.iter().map(bound).collect()
    }

    /// Whether no affinities overlap without nesting.
    pub fn is_laminar(&self) -> bool {
        let nested = |a: &CpuSet, b: &CpuSet| !a.intersects(b) || a.is_subset(b) || b.is_subset(a);
        let masks = || self.members.iter().map(|member| &member.cpus);
        masks().all(|a| masks().all(|b| nested(a, b)))
    }

    /// The least horizon after which a synchronous pattern repeats, if it is short.
    pub fn hyperperiod(&self, longest: u64) -> Option<u64> {
        let gcd = |mut a: u64, mut b: u64| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        self.members.iter().try_fold(1, |all: u64, member| {
            let period = member.task.period.as_ns();
            let all = all / gcd(all, period) * period;
            (all <= longest).then_some(all)
        })
    }

    /// The system as simulators want it: periodic, synchronous, nothing enforced.
    pub fn task_set(&self) -> TaskSet {
        let task = |(index, member): (usize, &Member)| {
            let affinity = Affinity::new(member.cpus).expect("no affinity is empty here");
            let Sporadic {
                cost,
                period,
                deadline,
            } = member.task;
            let mut task = Task::periodic(&format!("T{index}"), cost, period, affinity);
            task.deadline = deadline;
            task.priority = Some(member.priority);
            task.on_overrun = OnOverrun::Continue;
            task
        };
        let tasks = self.members.iter().enumerate().map(task).collect();
        let mut set = TaskSet::new("random", self.cpus, tasks);
        // Short ones, so that something fits.
        let longest = self.members.iter().map(|one| one.task.period.as_ns()).max();
        let short = 1 + self.members.len() as u64 % 3;
        let quantum = short.max(longest.unwrap_or(0) / 24);
        set.scheduler.quantum = Some(Span::from_ns(quantum));
        if self.shape == Shape::Clustered {
            set.platform.clusters = (0..self.cpus)
                .step_by(2)
                .map(|low| pair(low, self.cpus))
                .collect();
        }
        set
    }
}

impl Member {
    const fn ranked(&self) -> Ranked {
        Ranked {
            task: self.task,
            priority: self.priority,
        }
    }
}

/// Whether times are a few nanoseconds, so that ties abound, or large without common factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Tiny,
    Large,
}

/// A system of this kind.
pub fn random(shape: Shape, deadlines: Deadlines, stream: &mut RandomStream) -> System {
    let cpus = match shape {
        Shape::Clustered | Shape::Laminar | Shape::Chain => 3 + stream.below(2) as usize,
        Shape::Arbitrary | Shape::BiLevel => 2 + stream.below(3) as usize,
        Shape::Global | Shape::Partitioned => 1 + stream.below(4) as usize,
    };
    let times = match stream.below(8) {
        0 => Times::Large,
        _ => Times::Tiny,
    };
    let count = 1 + stream.below(8) as usize;
    // Light, medium or heavy tasks; most of the weight is where tests decide.
    let heaviest = 1 + cpus as u64 * 100 / count as u64;
    let load = 20 + stream.below(100);
    let members = (0..count)
        .map(|_| {
            let period = period(times, stream);
            let share = stream.below(2 * heaviest * load / 100 + 1).min(100);
            let cost = (period * share / 100).clamp(1, period);
            Member {
                task: Sporadic {
                    cost: Span::from_ns(cost),
                    period: Span::from_ns(period),
                    deadline: Span::from_ns(deadline(deadlines, cost, period, stream)),
                },
                priority: Priority::MOST_URGENT,
                cpus: affinity(shape, cpus, stream),
            }
        })
        .collect();
    let mut system = System {
        cpus,
        shape,
        deadlines,
        members,
    };
    rank(&mut system, stream);
    system
}

fn period(times: Times, stream: &mut RandomStream) -> u64 {
    const SHORT: [u64; 10] = [2, 3, 4, 5, 6, 8, 9, 10, 12, 20];
    match times {
        Times::Tiny => SHORT[stream.below(SHORT.len() as u64) as usize],
        Times::Large => 1_009 + 2 * stream.below(20_000),
    }
}

fn deadline(deadlines: Deadlines, cost: u64, period: u64, stream: &mut RandomStream) -> u64 {
    match deadlines {
        Deadlines::Implicit => period,
        Deadlines::Constrained => cost + stream.below(period - cost + 1),
        Deadlines::Arbitrary => cost + stream.below(3 * period - cost + 1),
    }
}

fn affinity(shape: Shape, cpus: usize, stream: &mut RandomStream) -> CpuSet {
    let all = CpuSet::first(cpus);
    let any = CpuId::from_index(stream.below(cpus as u64) as usize);
    let pairs = cpus.div_ceil(2) as u64;
    match (shape, stream.below(3)) {
        (Shape::Global, _) | (Shape::BiLevel, 0) | (Shape::Laminar, 0) => all,
        (Shape::Clustered, 0) if stream.below(2) == 0 => all,
        (Shape::Partitioned | Shape::BiLevel, _) | (Shape::Laminar, 1) => CpuSet::single(any),
        (Shape::Clustered | Shape::Laminar, _) => pair(2 * stream.below(pairs) as usize, cpus),
        (Shape::Chain, _) => CpuSet::first(1 + any.index()),
        (Shape::Arbitrary, _) => CpuSet::from_bits(1 + stream.below((1 << cpus) - 1)),
    }
}

/// This CPU and the next, as far as there are any.
fn pair(low: usize, cpus: usize) -> CpuSet {
    let pair = [low, low + 1].into_iter().filter(|&cpu| cpu < cpus);
    pair.map(CpuId::from_index).collect()
}

/// Distinct priorities at random or by deadline, or now and then some that are equal.
fn rank(system: &mut System, stream: &mut RandomStream) {
    let mut order: Vec<usize> = (0..system.members.len()).collect();
    stream.shuffle(&mut order);
    if stream.below(3) > 0 {
        order.sort_by_key(|&place| system.members[place].task.deadline);
    }
    let equal = stream.below(8) == 0;
    for (rank, &place) in (1..).zip(&order) {
        let number = if equal { 1 + rank / 2 } else { rank };
        system.members[place].priority = Priority::new(number).expect("a small number");
    }
}

/// Makes the system as demanding as `holds` allows: costs up, then deadlines down where they are
/// free, each as far as it goes. That is where a test that accepts too much is found out. Gives up
/// on a system of which even the least costs are too much.
pub fn tighten(system: &mut System, holds: &dyn Fn(&System) -> bool, stream: &mut RandomStream) {
    if !holds(system) {
        let costs: Vec<Span> = system.members.iter().map(|one| one.task.cost).collect();
        for member in &mut system.members {
            member.task.cost = Span::from_ns(1);
        }
        if !holds(system) {
            for (member, cost) in system.members.iter_mut().zip(costs) {
                member.task.cost = cost;
            }
            return;
        }
    }
    let mut order: Vec<usize> = (0..system.members.len()).collect();
    stream.shuffle(&mut order);
    for &place in &order {
        let room = |task: &Sporadic| (task.period.min(task.deadline) - task.cost).as_ns();
        climb(system, place, holds, room, |task, step| {
            task.cost += Span::from_ns(step);
        });
    }
    let free = system.deadlines != Deadlines::Implicit && stream.below(2) == 0;
    for &place in order.iter().filter(|_| free) {
        let room = |task: &Sporadic| (task.deadline - task.cost).as_ns();
        climb(system, place, holds, room, |task, step| {
            task.deadline -= Span::from_ns(step);
        });
    }
}

/// Changes one task by steps that are halved where they go too far.
fn climb(
    system: &mut System,
    place: usize,
    holds: &dyn Fn(&System) -> bool,
    room: impl Fn(&Sporadic) -> u64,
    change: impl Fn(&mut Sporadic, u64),
) {
    let mut step = room(&system.members[place].task);
    while step > 0 {
        let before = system.members[place].task;
        if step <= room(&before) {
            change(&mut system.members[place].task, step);
            if holds(system) {
                continue;
            }
            system.members[place].task = before;
        }
        step /= 2;
    }
}
