//! Every schedule that may be shown is one of its policy, by the definition.

use shiftwork_model::{
    Affinities, Affinity, Arrival, ArrivalCurve, CpuId, CpuSet, Job, Pace, RandomStream, Span,
    Task, TaskId, TaskSet,
};
use shiftwork_policy::registry::{Entry, find};
use shiftwork_policy::{Event, Policy, PolicyError, Quanta, Switches};

use super::{strictest, witness};
use crate::catalogue;

fn seeds(few: u64) -> std::ops::Range<u64> {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 0..50 * few,
        None => 0..few,
    }
}

fn range(cpus: std::ops::Range<usize>) -> CpuSet {
    cpus.map(CpuId::from_index).collect()
}

/// Tasks in small numbers, so that much happens at the same instants, with more to do than there is time for in
/// about half of the sets, and with affinities that the policy takes.
fn random_set(entry: &Entry, seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 61, 0);
    let cpus = 2 + random.below(3) as usize;
    let half = cpus.div_ceil(2);
    let (all, clusters) = (range(0..cpus), vec![range(0..half), range(half..cpus)]);
    let pick = |random: &mut RandomStream| match entry.traits.affinities {
        Affinities::Global => all,
        Affinities::Clusters => [all, clusters[0], clusters[1]][random.below(3) as usize],
        Affinities::Laminar | Affinities::SemiPartitioned => {
            let one = CpuSet::single(CpuId::from_index(random.below(cpus as u64) as usize));
            [all, one][random.below(2) as usize]
        }
        Affinities::Any | Affinities::WithinClusters => {
            CpuSet::from_bits(1 + random.below((1 << cpus) - 1))
        }
    };
    let count = cpus as u64 + random.below(5);
    let task = |index| {
        let period = [4, 6, 8, 12][random.below(4) as usize];
        let most = (period * (1 + cpus as u64) / count).clamp(1, period);
        let affinity = Affinity::new(pick(&mut random)).unwrap();
        // So that quanta can begin anywhere between those of another CPU.
        let ns = |units| Span::from_ns(12 * units);
        let cost = 1 + random.below(most);
        let mut task = Task::periodic(&format!("T{index}"), ns(cost), ns(period), affinity);
        let deadline = cost + random.below(period - cost + 1);
        task.deadline = ns(if random.below(2) == 0 {
            period
        } else {
            deadline
        });
        task.offset = ns(2 * random.below(3));
        task
    };
    let mut set = TaskSet::new("test", cpus, (0..count).map(task).collect());
    if entry.traits.affinities == Affinities::Clusters {
        set.platform.clusters = clusters;
    }
    set.scheduler.quantum = Some(Span::from_ns(12 + 12 * random.below(3)));
    set.scheduler.early_release = random.below(3) == 0;
    set
}

#[test]
fn bursts_come_as_close_as_their_curve_allows_and_not_closer() {
    let entry = find("llf").unwrap();
    let misses = |cost| {
        let cpu = Affinity::pinned(CpuId::from_index(0));
        let ns = Span::from_ns;
        let mut burst = Task::periodic("burst", ns(cost), ns(20), cpu);
        burst.deadline = ns(30);
        let curve = ArrivalCurve::new([20, 40, 300].map(ns).to_vec()).unwrap();
        burst.arrival = Arrival::Curve(curve, Pace::Random);
        let long = Task::periodic("long", ns(120), ns(400), cpu);
        let set = TaskSet::new("test", 1, vec![burst, long]);
        let policy = entry.build(&set).unwrap();
        let witness = witness(&set, &strictest(&set), entry, policy);
        assert_eq!(witness.violations, []);
        witness.words.is_some()
    };
    // Every 20 ns this would be more than the CPU can do.
    assert!(!misses(19));
    // Three jobs in 70 ns.
    assert!(misses(25));
}

#[test]
fn every_witness_is_a_schedule_of_its_policy() {
    for entry in catalogue::policies() {
        let (mut shown, mut taken) = (0, 0);
        for seed in seeds(120) {
            let set = random_set(entry, seed);
            let Ok(policy) = entry.build(&set) else {
                continue;
            };
            taken += 1;
            let found = witness(&set, &strictest(&set), entry, policy);
            assert!(
                found.violations.is_empty(),
                "{}, seed {seed}: {:#?} of {set:?}",
                entry.name,
                found.violations
            );
            shown += u64::from(found.words.is_some());
        }
        // Fair lateness and laxities miss fewer deadlines than others.
        let rarity = if entry.traits.order.is_by_cost() {
            20
        } else {
            5
        };
        let name = entry.name;
        assert!(
            taken >= 100 && rarity * shown >= taken,
            "{name}: {shown} of {taken} sets"
        );
    }
}

/// A policy that is asked at the end of every event, as if that were an instant of its own.
struct Hasty(Box<dyn Policy>);

impl Policy for Hasty {
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches) {
        self.0.on_event(event, out);
        self.0.end_instant(out);
    }
    fn succeed(&mut self, next: Job, out: &mut Switches) -> bool {
        self.0.succeed(next, out)
    }
    fn end_instant(&mut self, out: &mut Switches) {
        self.0.end_instant(out);
    }
    fn assigned(&self, cpu: CpuId) -> Option<TaskId> {
        self.0.assigned(cpu)
    }
    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError> {
        self.0.accepts(event)
    }
    fn queue_of(&self, task: TaskId) -> Option<CpuId> {
        self.0.queue_of(task)
    }
    fn quanta(&self) -> Option<Quanta> {
        self.0.quanta()
    }
    fn packing(&self) -> Option<Vec<Affinity>> {
        self.0.packing()
    }
}

/// How many of the schedules of a policy are found not to be of this one, of how many.
fn rejected(entry: &Entry, of: &dyn Fn(&TaskSet) -> Option<Box<dyn Policy>>) -> (u64, u64) {
    let (mut rejected, mut all) = (0, 0);
    for seed in 0..200 {
        let set = random_set(entry, seed);
        if let Some(policy) = of(&set) {
            let found = witness(&set, &strictest(&set), entry, policy);
            all += 1;
            rejected += u64::from(!found.violations.is_empty());
        }
    }
    (rejected, all)
}

#[test]
fn schedules_of_policies_that_decide_before_the_instant_is_over_are_rejected() {
    for name in ["np-g-edf", "CQm", "pd2"] {
        let entry = find(name).unwrap();
        let hasty = |set: &TaskSet| -> Option<Box<dyn Policy>> {
            Some(Box::new(Hasty(entry.build(set).ok()?)))
        };
        let (rejected, all) = rejected(entry, &hasty);
        assert!(
            all >= 100 && 10 * rejected >= all,
            "{name}: {rejected} of {all}"
        );
    }
}

#[test]
fn schedules_of_neighbouring_policies_are_rejected() {
    for (name, other) in [
        ("g-edf", "g-fp"),
        ("g-edf", "np-g-edf"),
        ("g-fp", "g-edf"),
        ("np-g-edf", "g-edf"),
        ("strong-edf", "weak-edf"),
        ("strong-fp", "weak-fp"),
        ("weak-edf", "weak-fp"),
        ("hpa-edf", "weak-edf"),
        ("c-edf", "c-fp"),
        ("CQm", "g-edf"),
        ("CQm", "pd2"),
        ("pd2", "CQm"),
        ("pd2", "g-edf"),
    ] {
        let (entry, other) = (find(name).unwrap(), find(other).unwrap());
        let wrong = |set: &TaskSet| -> Option<Box<dyn Policy>> {
            Some(Box::new(Guise {
                shows: entry.build(set).ok()?,
                decides: other.build(set).ok()?,
            }))
        };
        let (rejected, all) = rejected(entry, &wrong);
        let names = (entry.name, other.name);
        assert!(
            all >= 100 && 10 * rejected >= all,
            "{names:?}: {rejected} of {all}"
        );
    }
}

/// One policy that decides as another.
struct Guise {
    shows: Box<dyn Policy>,
    decides: Box<dyn Policy>,
}

impl Policy for Guise {
    fn on_event(&mut self, event: Event<'_>, out: &mut Switches) {
        self.decides.on_event(event, out);
    }
    fn end_instant(&mut self, out: &mut Switches) {
        self.decides.end_instant(out);
    }
    fn assigned(&self, cpu: CpuId) -> Option<TaskId> {
        self.decides.assigned(cpu)
    }
    fn accepts(&self, event: &Event<'_>) -> Result<(), PolicyError> {
        self.decides.accepts(event)
    }
    fn quanta(&self) -> Option<Quanta> {
        self.shows.quanta().or(self.decides.quanta())
    }
    fn packing(&self) -> Option<Vec<Affinity>> {
        self.shows.packing()
    }
}

/// At 4 `long` ends and the second job of `urgent` is released, while `low` has waited since 0: `urgent` comes first,
/// and meets its deadline.
#[test]
fn a_job_that_is_released_when_the_cpu_becomes_free_is_no_witness() {
    let all = Affinity::pinned(CpuId::from_index(0));
    let ns = Span::from_ns;
    let task = |(name, cost, period, deadline)| Task {
        deadline: ns(deadline),
        ..Task::periodic(name, ns(cost), ns(period), all)
    };
    let tasks = [("urgent", 2, 4, 2), ("long", 2, 8, 7), ("low", 1, 8, 8)];
    let set = TaskSet::new("test", 1, tasks.map(task).to_vec());
    let entry = find("np-g-edf").unwrap();
    let of = |policy| witness(&set, &set, entry, policy);
    let found = of(entry.build(&set).unwrap());
    assert_eq!((found.words, found.violations), (None, Vec::new()));
    let hasty = of(Box::new(Hasty(entry.build(&set).unwrap())));
    assert!(hasty.words.is_some() && !hasty.violations.is_empty());
}
