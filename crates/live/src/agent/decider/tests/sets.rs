//! Random task sets that use most of what a task-set file can express.

use shiftwork_model::{
    Action, Affinity, Alignment, Arrival, ArrivalCurve, Change, CpuId, CpuSet, Instant, Invariant,
    Join, OnOverrun, Pace, Phase, Preemption, Priority, Protocol, RandomStream, Resource,
    ResourceId, Span, Task, TaskId, TaskSet, Trigger, Work,
};

use shiftwork_policy::registry::Entry;

/// Length of the runs.
pub(super) const HORIZON: Instant = Instant::from_ns(40_000_000);

/// The grace that a live machine adds to each budget here: costs are short enough for the least one.
pub(super) const GRACE: Span = Span::from_us(20);

/// Properties of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flavour {
    /// Times are multiples of this, in ns. With 1, two events hardly ever have the same instant.
    pub(super) grid_ns: u64,
    /// Whether work may exceed budgets that are enforced.
    pub(super) has_budgets: bool,
    /// Whether there are timed changes.
    pub(super) has_changes: bool,
    /// Whether tasks trigger others.
    pub(super) has_triggers: bool,
    /// Whether tasks lock mutexes.
    pub(super) has_mutexes: bool,
    /// Greatest utilization of the CPUs, in percent; jobs may take twice their cost.
    pub(super) load: u64,
}

struct Maker {
    random: RandomStream,
    flavour: Flavour,
    cpus: usize,
    affinities: Vec<Affinity>,
}

/// The set of this seed. For policies with Linux's servers it has deadlines up to the period, and affinities of
/// one or all CPUs.
pub(super) fn random_set(entry: &Entry, seed: u64, flavour: Flavour) -> TaskSet {
    let mut set = any_set(seed, flavour);
    if entry.traits.preemption == Preemption::Pfair(Alignment::Staggered) {
        // With staggered quanta a job that waits for the previous one matters, and an agent knows of such a job
        // only if its task is periodic.
        for task in &mut set.tasks {
            task.arrival = Arrival::Periodic;
        }
    }
    if !entry.traits.order.is_by_priority() {
        for resource in &mut set.resources {
            if resource.protocol.needs_priorities() {
                resource.protocol = Protocol::Fmlp;
            }
        }
    }
    if entry.traits.invariant == Invariant::PushPull {
        // A live machine has no cpusets of its own: affinities are not cut.
        set.platform.clusters.clear();
        let all = Affinity::new(set.platform.all());
        for task in &mut set.tasks {
            task.deadline = task.deadline.min(task.period);
            let wide = all.filter(|_| task.affinity.cpus().len() > 1);
            task.affinity = wide.unwrap_or(task.affinity);
        }
    }
    set
}

/// Its affinities are, in turns, global, nested, single CPUs, clusters and arbitrary.
fn any_set(seed: u64, flavour: Flavour) -> TaskSet {
    let mut random = RandomStream::new(seed, 11, flavour.grid_ns);
    let cpus = 1 + random.below(4) as usize;
    let affinities = affinities(seed % 5, cpus, &mut random);
    let mut maker = Maker {
        random,
        flavour,
        cpus,
        affinities,
    };
    let mut set = maker.make();
    // Periods may change in a set, and arrival curves not.
    if seed % 3 == 1 && !flavour.has_changes {
        for task in &mut set.tasks {
            let pace = match task.arrival {
                Arrival::Periodic => Pace::Earliest,
                Arrival::Sporadic => Pace::Random,
                _ => continue,
            };
            task.arrival = Arrival::Curve(in_pairs(task.period), pace);
        }
    }
    set
}

/// Two arrivals are so far apart, and three by three times that.
fn in_pairs(apart: Span) -> ArrivalCurve {
    ArrivalCurve::new(vec![apart, apart + apart + apart]).unwrap()
}

fn range(cpus: std::ops::Range<usize>) -> CpuSet {
    cpus.map(CpuId::from_index).collect()
}

fn affinities(kind: u64, cpus: usize, random: &mut RandomStream) -> Vec<Affinity> {
    let (all, half) = (range(0..cpus), cpus.div_ceil(2));
    let mut singles: Vec<CpuSet> = (0..cpus).map(|cpu| range(cpu..cpu + 1)).collect();
    let sets = match kind {
        0 => vec![all],
        1 => {
            singles.extend([all, range(0..half)]);
            singles
        }
        2 => singles,
        3 => vec![all, range(0..half), range(half..cpus)],
        _ => (0..6)
            .map(|_| CpuSet::from_bits(1 + random.below((1 << cpus) - 1)))
            .collect(),
    };
    sets.into_iter().filter_map(Affinity::new).collect()
}

impl Maker {
    fn make(&mut self) -> TaskSet {
        let count = 2 + self.random.below(3 * self.cpus as u64);
        let share = (self.flavour.load * self.cpus as u64 / count).clamp(1, 90);
        let tasks = (0..count).map(|index| self.task(index, share)).collect();
        let mut set = TaskSet::new("random", self.cpus, tasks);
        if self.cpus > 1 {
            let half = self.cpus.div_ceil(2);
            set.platform.clusters = vec![range(0..half), range(half..self.cpus)];
        }
        if self.flavour.has_triggers {
            self.add_triggers(&mut set);
        }
        if self.flavour.has_mutexes {
            self.add_mutexes(&mut set);
        }
        if self.flavour.has_changes {
            for _ in 0..self.random.below(9) {
                let action = self.action(&set);
                set.actions.push(action);
            }
            set.actions.sort_by_key(|action| action.at);
            keep_locking_tasks(&mut set);
        }
        tidy_entries(&mut set);
        set
    }

    /// Uniform in the range, in ns.
    fn time(&mut self, least: u64, most: u64) -> Span {
        let grid = self.flavour.grid_ns;
        let steps = (most.max(least) - least) / grid;
        let ns = least.div_ceil(grid) * grid + self.random.below(steps + 1) * grid;
        Span::from_ns(ns)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    /// Tasks from the second on are triggered by some of those before, at completion or within jobs. They are not throttled.
    fn add_triggers(&mut self, set: &mut TaskSet) {
        for task in &mut set.tasks {
            task.on_overrun = OnOverrun::Continue;
        }
        for index in 1..set.tasks.len() {
            let sources = (0..index).filter(|_| self.one_in(2));
            let sources: Vec<TaskId> = sources.map(TaskId::from_index).collect();
            let target = TaskId::from_index(index);
            for source in &sources {
                let source = &mut set.tasks[source.index()];
                // One that is listed triggers at its completion unless its phases do.
                if self.one_in(2) {
                    let half = Phase::Run(Span::from_ns(source.cost.as_ns().div_ceil(2)));
                    source.work = Work::Phases(vec![half, Phase::Trigger(target), half]);
                    if self.one_in(3)
                        && let Work::Phases(phases) = &mut source.work
                    {
                        phases.pop();
                    }
                }
            }
            if sources.is_empty() {
                continue;
            }
            let join = match self.random.below(2) {
                0 => Join::Any,
                _ => Join::All,
            };
            let queue = (self.random.below(2) == 0).then(|| 1 + self.random.below(2) as u32);
            set.tasks[index].arrival = Arrival::Triggered(Trigger {
                sources,
                join,
                queue,
            });
            set.tasks[index].offset = Span::ZERO;
            if let Some(period) = set.triggered_period(target) {
                set.tasks[index].period = period;
            }
        }
    }

    /// Most tasks lock some mutexes, one in the other in the order of their numbers. In one that does not let its holder be
    /// preempted a job does not suspend itself, and locks only those for which jobs spin.
    fn add_mutexes(&mut self, set: &mut TaskSet) {
        let mut protocols: Vec<Protocol> = (0..1 + self.random.below(4))
            .map(|_| PROTOCOLS[self.random.below(PROTOCOLS.len() as u64) as usize])
            .collect();
        protocols.sort_by_key(|protocol| PROTOCOLS.iter().position(|it| it == protocol));
        for protocol in &mut protocols {
            if let Protocol::Dpcp(cpu) = protocol {
                *cpu = CpuId::from_index(self.random.below(self.cpus as u64) as usize);
            }
        }
        let resource = |(index, protocol)| Resource {
            name: format!("R{index}"),
            protocol,
        };
        for task in &mut set.tasks {
            if self.one_in(4) {
                continue;
            }
            let ns = task.cost.as_ns();
            let mut phases = Vec::new();
            self.maybe_run(&mut phases, ns);
            for _ in 0..1 + self.random.below(2) {
                let mut held: Vec<usize> = Vec::new();
                for (index, protocol) in protocols.iter().enumerate() {
                    let may_be_kept = held.last().map(|last| protocols[*last]);
                    let is_kept = may_be_kept.is_some_and(Protocol::may_not_suspend);
                    let is_for_others = protocol.boosts() && task.only_cpu().is_none()
                        || is_kept && *protocol != Protocol::Spin;
                    if self.one_in(2) || held.len() > 2 || is_for_others {
                        continue;
                    }
                    held.push(index);
                    phases.push(Phase::Lock(ResourceId::from_index(index)));
                    if !is_kept && !protocol.may_not_suspend() && self.one_in(4) {
                        phases.push(Phase::Sleep(self.time(1, ns)));
                    }
                    self.maybe_run(&mut phases, ns);
                }
                while let Some(index) = held.pop() {
                    phases.push(Phase::Unlock(ResourceId::from_index(index)));
                    if self.one_in(2) {
                        self.maybe_run(&mut phases, ns);
                    }
                }
            }
            if phases.iter().any(|phase| matches!(phase, Phase::Run(_))) {
                task.work = Work::Phases(phases);
                task.on_overrun = OnOverrun::Continue;
            }
        }
        set.resources = protocols.into_iter().enumerate().map(resource).collect();
    }

    fn maybe_run(&mut self, phases: &mut Vec<Phase>, cost_ns: u64) {
        if !self.one_in(4) {
            phases.push(Phase::Run(self.time(1, (cost_ns / 3).max(1))));
        }
    }

    fn affinity(&mut self) -> Affinity {
        self.affinities[self.random.below(self.affinities.len() as u64) as usize]
    }

    fn task(&mut self, index: u64, share: u64) -> Task {
        let period = self.time(1_000_000, 10_000_000);
        let most = (period.as_ns() * share / 50).clamp(200_000, 1_000_000);
        let cost = self.time(100_000, most);
        let affinity = self.affinity();
        let mut task = Task::periodic(&format!("T{index}"), cost, period, affinity);
        task.deadline = self.time(1_000_000, 2 * period.as_ns());
        task.offset = self.time(0, 3_000_000);
        task.work = self.work(cost);
        task.arrival = self.arrival(period);
        if self.one_in(4) {
            task.priority = Priority::new(1 + self.random.below(3) as u32);
        }
        task.on_overrun = match self.random.below(4) {
            0 => OnOverrun::Continue,
            1 => OnOverrun::Signal,
            _ if self.flavour.has_budgets => OnOverrun::Throttle,
            _ => OnOverrun::Continue,
        };
        task
    }

    fn work(&mut self, cost: Span) -> Work {
        let ns = cost.as_ns();
        match self.random.below(6) {
            0 => Work::Uniform(self.time(1, ns), self.time(ns, 2 * ns)),
            1 => Work::Trace((0..3).map(|_| self.time(1, 2 * ns)).collect()),
            2 | 3 => Work::Phases(vec![
                Phase::Run(self.time(1, ns)),
                Phase::Sleep(self.time(1, 2 * ns)),
                Phase::Run(self.time(1, ns)),
            ]),
            4 => Work::Constant(self.time(1, ns)),
            _ => Work::Cost,
        }
    }

    fn arrival(&mut self, period: Span) -> Arrival {
        match self.random.below(5) {
            0 => Arrival::Sporadic,
            1 => {
                let mut at = Instant::ZERO;
                let next = |_| {
                    at = at + period + self.time(0, 2_000_000);
                    at
                };
                Arrival::Releases((0..6).map(next).collect())
            }
            _ => Arrival::Periodic,
        }
    }

    fn action(&mut self, set: &TaskSet) -> Action {
        let task = TaskId::from_index(self.random.below(set.tasks.len() as u64) as usize);
        let cpu = CpuId::from_index(self.random.below(self.cpus as u64) as usize);
        let change = match self.random.below(9) {
            0 | 1 => Change::Enter(task),
            2 => Change::Leave(task),
            3 => Change::CpuOffline(cpu),
            4 => Change::CpuOnline(cpu),
            5 => Change::SetPriority(
                task,
                Priority::new(1 + self.random.below(9) as u32).unwrap(),
            ),
            6 => Change::SetAttributes {
                task,
                cost: Some(self.time(100_000, 1_000_000)),
                period: Some(self.time(2_000_000, 10_000_000)),
                deadline: None,
            },
            _ => Change::SetAffinity(task, self.affinity()),
        };
        let at = Instant::ZERO + self.time(1, 35_000_000);
        Action { at, change }
    }
}

/// In an order in which all may be nested.
const PROTOCOLS: [Protocol; 10] = [
    Protocol::None,
    Protocol::Inheritance,
    Protocol::Migratory,
    Protocol::Omlp,
    Protocol::Ceiling,
    Protocol::Fmlp,
    Protocol::Mpcp,
    Protocol::Dpcp(CpuId::from_index(0)),
    Protocol::NonPreemptive,
    Protocol::Spin,
];

/// A task that locks mutexes stays as it is, but for its affinity.
fn keep_locking_tasks(set: &mut TaskSet) {
    let tasks = &set.tasks;
    let locks = |task: &TaskId| tasks[task.index()].locks();
    set.actions.retain(|action| match &action.change {
        Change::Enter(task)
        | Change::Leave(task)
        | Change::SetPriority(task, _)
        | Change::SetAttributes { task, .. } => !locks(task),
        _ => true,
    });
}

/// A task that enters begins with a job at once, as a live run assumes.
fn tidy_entries(set: &mut TaskSet) {
    for action in &set.actions {
        if let Change::Enter(task) = action.change {
            let task = &mut set.tasks[task.index()];
            task.offset = Span::ZERO;
            if matches!(task.arrival, Arrival::Releases(_)) {
                task.arrival = Arrival::Periodic;
            }
        }
    }
}
