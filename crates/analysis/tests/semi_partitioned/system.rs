//! Semi-partitioned sets: every task on one CPU or on all.

use shiftwork_analysis::affinity::{Rounding, spl};
use shiftwork_analysis::{Outcome, Placed, Sporadic, Steps};
use shiftwork_model::{
    Affinity, Arrival, CpuId, CpuSet, Instant, RandomStream, Repairs, Share, Span, Task, TaskSet,
};

/// A task with implicit deadlines.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub cost: u64,
    pub period: u64,
    /// The CPU to which it is bound; `None`: it migrates.
    pub bound: Option<usize>,
    /// Where it is before it first runs; `None`: anywhere.
    pub start: Option<usize>,
}

/// A task that starts anywhere.
pub const fn member(cost: u64, period: u64, bound: Option<usize>) -> Member {
    Member {
        cost,
        period,
        bound,
        start: None,
    }
}

#[derive(Clone, Debug)]
pub struct System {
    pub cpus: usize,
    pub members: Vec<Member>,
}

impl System {
    pub fn placed(&self) -> Vec<Placed> {
        let placed = |member: &Member| Placed {
            task: Sporadic {
                cost: Span::from_ns(member.cost),
                period: Span::from_ns(member.period),
                deadline: Span::from_ns(member.period),
            },
            cpus: member.cpus(self.cpus),
        };
        self.members.iter().map(placed).collect()
    }

    /// Whether both conditions hold.
    pub fn is_allowed(&self, limit: Share) -> bool {
        let (all, terms) = (CpuSet::first(self.cpus), (limit, Rounding::Exact));
        spl(&self.placed(), &all, terms, &mut Steps::ordinary()) == Outcome::Pass(())
    }

    pub fn migrating(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.bound.is_none())
    }

    pub fn longest_period(&self) -> u64 {
        let periods = self.members.iter().map(|member| member.period);
        periods.max().unwrap()
    }

    /// The set with these releases; without any a task is periodic.
    pub fn task_set(&self, releases: &[Option<Vec<u64>>], repairs: Repairs) -> TaskSet {
        let task = |(index, member): (usize, &Member)| {
            let affinity = Affinity::new(member.cpus(self.cpus)).unwrap();
            let [cost, period] = [member.cost, member.period].map(Span::from_ns);
            let mut task = Task::periodic(&format!("T{index}"), cost, period, affinity);
            task.start_cpu = member.start.map(CpuId::from_index);
            if let Some(Some(releases)) = releases.get(index) {
                let instants = releases.iter().copied().map(Instant::from_ns);
                task.arrival = Arrival::Releases(instants.collect());
            }
            task
        };
        let tasks = self.members.iter().enumerate().map(task).collect();
        let mut set = TaskSet::new("semi-partitioned", self.cpus, tasks);
        set.scheduler.repairs = Some(repairs);
        set
    }
}

impl Member {
    fn cpus(&self, all: usize) -> CpuSet {
        match self.bound {
            Some(cpu) => CpuSet::single(CpuId::from_index(cpu)),
            None => CpuSet::first(all),
        }
    }
}

/// A set on 2 to 8 CPUs, as loaded as a limit of 1 or of 95% lets it be.
pub fn random(stream: &mut RandomStream) -> System {
    const SHORT: [u64; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 20];
    let cpus = 2 + stream.below(7) as usize;
    let limit = match stream.below(2) {
        0 => Share::WHOLE,
        _ => 950_000_000,
    };
    let limit = Share::from_billionths(limit).unwrap();
    let tiny = stream.below(8) > 0;
    let mut bounds: Vec<Option<usize>> = (0..1 + stream.below(cpus as u64 + 2))
        .map(|_| None)
        .collect();
    for cpu in 0..cpus {
        bounds.extend((0..stream.below(3)).map(|_| Some(cpu)));
    }
    let mut system = System {
        cpus,
        members: Vec::new(),
    };
    for bound in bounds {
        let period = match tiny {
            true => SHORT[stream.below(SHORT.len() as u64) as usize],
            false => 1_009 + 2 * stream.below(5_000),
        };
        system.members.push(member(1, period, bound));
        if !system.is_allowed(limit) {
            system.members.pop();
        }
    }
    let mut order: Vec<usize> = (0..system.members.len()).collect();
    stream.shuffle(&mut order);
    // Some tasks take a share at random first; then all tasks take what is left.
    for &place in &order {
        let period = system.members[place].period;
        let most = 1 + stream.below(period);
        grow(&mut system, place, limit, most);
    }
    for &place in &order {
        let period = system.members[place].period;
        grow(&mut system, place, limit, period);
    }
    system
}

/// Raises a cost as far as the conditions allow, to `most` at most.
fn grow(system: &mut System, place: usize, limit: Share, most: u64) {
    let mut step = most;
    while step > 0 {
        let before = system.members[place].cost;
        system.members[place].cost = before + step;
        if before + step > most || !system.is_allowed(limit) {
            system.members[place].cost = before;
            step /= 2;
        }
    }
}
