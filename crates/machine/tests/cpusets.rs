//! Soundness of admission: no sequence of requests over-commits a cluster or, with the repairs, a CPU; and
//! every request that fits is granted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use shiftwork_machine::{Cpusets, ServerParameters};
use shiftwork_model::{
    Action, Affinity, Change, CpuId, CpuSet, Instant, RandomStream, Repairs, Share, Span, Task,
    TaskId, TaskSet,
};

/// A request; tasks, CPUs and clusters by number, CPUs of a set as bits.
#[derive(Clone, Debug)]
enum Request {
    /// Time advances by this much.
    Wait(u64),
    Enter(usize),
    /// The task's bandwidth counts for this much longer.
    Leave(usize, u64),
    /// Cost and period.
    Change(usize, [u64; 2]),
    Affinity(usize, u64),
    Move(usize, usize),
    Clusters(Vec<u64>),
    /// In billionths.
    Reserve(u32),
    Offline(usize),
    Online(usize),
}

/// A task as the definition sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    is_in: bool,
    rate: [u64; 2],
    cpus: u64,
    cluster: usize,
}

/// The bandwidth of a departed server, its place, and for how long it still counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Past {
    rate: [u64; 2],
    cpus: u64,
    cluster: usize,
    remains: u64,
}

/// The definition, executed directly: the present tasks, the departed servers that still count, and plain
/// sums over both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ledger {
    tasks: Vec<Entry>,
    past: Vec<Past>,
    clusters: Vec<u64>,
    online: u64,
    all: u64,
    reserve: u32,
}

/// One CPU: all periods divide this, and billionths of it are whole.
const CPU: i128 = 1_000_000_000 * 5_040;

fn exact([cost, period]: [u64; 2]) -> i128 {
    let period = i128::from(period);
    assert_eq!(CPU % period, 0, "a period of {period} is not exact here");
    CPU / period * i128::from(cost)
}

impl Ledger {
    /// No task is present; all tasks are in the first cluster.
    fn new(clusters: &[u64], tasks: usize, all: u64) -> Self {
        let entry = Entry {
            is_in: false,
            rate: [1, 2],
            cpus: clusters[0],
            cluster: 0,
        };
        Self {
            tasks: vec![entry; tasks],
            past: Vec::new(),
            clusters: clusters.to_vec(),
            online: all,
            all,
            reserve: 0,
        }
    }

    fn cpusets(&self, repairs: Repairs) -> Cpusets {
        let task = |(index, entry): (usize, &Entry)| {
            let [cost, period] = entry.rate.map(Span::from_ns);
            let cpus = Affinity::new(CpuSet::from_bits(entry.cpus)).unwrap();
            Task::periodic(&format!("T{index}"), cost, period, cpus)
        };
        let tasks = self.tasks.iter().enumerate().map(task).collect();
        let mut set = TaskSet::new("", self.all.count_ones() as usize, tasks);
        set.platform.clusters = self
            .clusters
            .iter()
            .copied()
            .map(CpuSet::from_bits)
            .collect();
        set.scheduler.reserve = Share::from_billionths(self.reserve).unwrap();
        let enter = |index| Action {
            at: Instant::ZERO,
            change: Change::Enter(TaskId::from_index(index)),
        };
        set.actions = (0..self.tasks.len()).map(enter).collect();
        Cpusets::new(&set, repairs)
    }

    /// The state after the request if the request is valid. Whether it fits is not checked.
    fn after(&self, request: &Request, repairs: Repairs) -> Option<Self> {
        let mut next = self.clone();
        match *request {
            Request::Wait(time) => {
                next.past.retain(|past| past.remains > time);
                next.past.iter_mut().for_each(|past| past.remains -= time);
            }
            Request::Enter(task) => {
                let entry = &mut next.tasks[task];
                let shaped = self.may_be_in_with(entry.cpus, entry.cluster, repairs);
                if entry.is_in || !shaped || entry.cpus & self.online == 0 {
                    return None;
                }
                entry.is_in = true;
            }
            Request::Leave(task, remains) => {
                let entry = &mut next.tasks[task];
                if !std::mem::take(&mut entry.is_in) {
                    return None;
                }
                let past = Past {
                    rate: entry.rate,
                    cpus: entry.cpus,
                    cluster: entry.cluster,
                    remains,
                };
                next.past.extend((remains > 0).then_some(past));
            }
            Request::Change(task, rate) => {
                let entry = &mut next.tasks[task];
                if entry.is_in && (repairs.no_changes || rate[0] > rate[1]) {
                    return None;
                }
                entry.rate = rate;
            }
            Request::Affinity(task, cpus) => {
                let entry = &mut next.tasks[task];
                let cut = cpus & self.clusters[entry.cluster];
                let shaped = self.may_be_in_with(cut, entry.cluster, repairs);
                let fixed = entry.is_in && (repairs.no_changes || !shaped);
                if cut & self.online == 0 || fixed {
                    return None;
                }
                entry.cpus = cut;
            }
            Request::Move(task, cluster) => {
                let whole = *self.clusters.get(cluster)?;
                let entry = &mut next.tasks[task];
                if entry.cluster == cluster || whole & self.online == 0 {
                    return None;
                }
                (entry.cluster, entry.cpus) = (cluster, whole);
            }
            Request::Clusters(ref clusters) => next.recluster(clusters)?,
            Request::Reserve(reserve) => next.reserve = reserve,
            Request::Offline(cpu) => {
                let is_bound = |entry: &Entry| entry.is_in && entry.cpus == 1 << cpu;
                let bound = repairs.admission && self.tasks.iter().any(is_bound);
                if self.online & 1 << cpu == 0 || bound {
                    return None;
                }
                next.online &= !(1 << cpu);
                next.unbind(|past| past.cpus == 1 << cpu);
            }
            Request::Online(cpu) => {
                if self.online & 1 << cpu != 0 || self.all & 1 << cpu == 0 {
                    return None;
                }
                next.online |= 1 << cpu;
            }
        }
        next.past.sort();
        Some(next)
    }

    fn may_be_in_with(&self, cpus: u64, cluster: usize, repairs: Repairs) -> bool {
        cpus == self.clusters[cluster] || repairs.admission && cpus.count_ones() == 1
    }

    fn unbind(&mut self, which: impl Fn(&Past) -> bool) {
        let past = self.past.iter_mut().filter(|past| which(past));
        past.for_each(|past| past.cpus = 0);
    }

    fn recluster(&mut self, clusters: &[u64]) -> Option<()> {
        let mut seen = 0;
        for &cpus in clusters {
            if cpus == 0 || cpus & seen != 0 || cpus & !self.all != 0 {
                return None;
            }
            seen |= cpus;
        }
        let before = std::mem::replace(&mut self.clusters, clusters.to_vec());
        for entry in &mut self.tasks {
            let whole = *clusters.get(entry.cluster)?;
            if whole != before[entry.cluster] {
                entry.cpus = whole;
            }
        }
        let gone = |past: &Past| past.cluster >= clusters.len();
        if self.past.iter().any(gone) {
            return None;
        }
        self.unbind(|past| clusters[past.cluster] != before[past.cluster]);
        Some(())
    }

    /// Everything that counts: rate, CPUs, cluster.
    fn counted(&self) -> impl Iterator<Item = (i128, u64, usize)> {
        let present = self.tasks.iter().filter(|entry| entry.is_in);
        let present = present.map(|entry| (exact(entry.rate), entry.cpus, entry.cluster));
        let past = self.past.iter();
        present.chain(past.map(|past| (exact(past.rate), past.cpus, past.cluster)))
    }

    /// The largest excess of used over available bandwidth of any cluster; with `per_cpu`, of the tasks bound
    /// to any CPU.
    fn excess(&self, per_cpu: bool) -> i128 {
        let one = CPU / i128::from(Share::WHOLE) * i128::from(Share::WHOLE - self.reserve);
        let there = |cpus: u64| one * i128::from((cpus & self.online).count_ones());
        let clusters = self.clusters.iter().enumerate().map(|(index, &cpus)| {
            let inside = self.counted().filter(|counted| counted.2 == index);
            inside.map(|counted| counted.0).sum::<i128>() - there(cpus)
        });
        let single = (0..64).map(|cpu| 1 << cpu);
        let single = single.filter(|cpus| per_cpu && self.online & cpus != 0);
        let bound = single.map(|cpus: u64| {
            let bound = self.counted().filter(|counted| counted.1 == cpus);
            bound.map(|counted| counted.0).sum::<i128>() - there(cpus)
        });
        clusters.chain(bound).max().unwrap()
    }

    /// Whether every cluster with present tasks has an online CPU.
    fn all_have_cpus(&self) -> bool {
        let used = self.tasks.iter().filter(|entry| entry.is_in);
        let mut cpus = used.map(|entry| self.clusters[entry.cluster]);
        cpus.all(|cpus| cpus & self.online != 0)
    }
}

/// Makes the request; the error is its message.
fn ask(cpusets: &mut Cpusets, now: &mut u64, request: &Request) -> Result<(), String> {
    let set = |bits: u64| CpuSet::from_bits(bits);
    let id = TaskId::from_index;
    let answer = match *request {
        Request::Wait(time) => {
            *now += time;
            cpusets.advance(Instant::from_ns(*now));
            Ok(())
        }
        Request::Enter(task) => cpusets.enter(id(task)),
        Request::Leave(task, time) => cpusets.leave(id(task), Instant::from_ns(*now + time)),
        Request::Change(task, rate) => {
            let [cost, period] = rate.map(Span::from_ns);
            let parameters = ServerParameters {
                cost,
                period,
                deadline: period,
            };
            cpusets.set_attributes(id(task), parameters)
        }
        Request::Affinity(task, cpus) => {
            let affinity = Affinity::new(set(cpus)).unwrap();
            cpusets.set_affinity(id(task), &affinity).map(drop)
        }
        Request::Move(task, cluster) => cpusets.move_to(id(task), cluster).map(drop),
        Request::Clusters(ref clusters) => {
            let clusters: Vec<CpuSet> = clusters.iter().copied().map(set).collect();
            cpusets.set_clusters(&clusters).map(drop)
        }
        Request::Reserve(reserve) => cpusets.set_reserve(Share::from_billionths(reserve).unwrap()),
        Request::Offline(cpu) => cpusets.cpu_offline(CpuId::from_index(cpu)),
        Request::Online(cpu) => cpusets.cpu_online(CpuId::from_index(cpu)),
    };
    answer.map_err(|refused| refused.to_string())
}

/// Asserts that both have the same clusters, tasks and affinities.
fn assert_same(cpusets: &Cpusets, ledger: &Ledger, context: &dyn Fn() -> String) {
    let bits = |set: &CpuSet| set.as_bits().unwrap();
    let clusters: Vec<u64> = cpusets.clusters().iter().map(bits).collect();
    let found = (
        clusters,
        bits(cpusets.online()),
        cpusets.reserve().billionths(),
    );
    let expected = (ledger.clusters.clone(), ledger.online, ledger.reserve);
    assert_eq!(found, expected, "{}", context());
    for (index, entry) in ledger.tasks.iter().enumerate() {
        let id = TaskId::from_index(index);
        let cpus = bits(cpusets.affinity_of(id).cpus());
        let found = (cpusets.is_present(id), cpus, cpusets.cluster_of(id));
        let expected = (entry.is_in, entry.cpus, entry.cluster);
        assert_eq!(found, expected, "{}", context());
    }
}

/// All requests of three tasks on two CPUs. Costs are sixteenths of a CPU, which Linux does not round.
fn every_request() -> Vec<Request> {
    let mut all = vec![Request::Wait(1)];
    for task in 0..3 {
        let leave = |time| Request::Leave(task, time);
        all.extend([Request::Enter(task), leave(0), leave(1)]);
        all.extend([[8, 16], [15, 16]].map(|rate| Request::Change(task, rate)));
        all.extend([0b01, 0b10, 0b11].map(|cpus| Request::Affinity(task, cpus)));
        all.extend([0, 1].map(|cluster| Request::Move(task, cluster)));
    }
    let clusters: [&[u64]; 5] = [
        &[0b11],
        &[0b01, 0b10],
        &[0b10, 0b01],
        &[0b01],
        &[0b11, 0b10],
    ];
    all.extend(clusters.map(|clusters| Request::Clusters(clusters.to_vec())));
    all.extend([0, 62_500_000, 500_000_000].map(Request::Reserve));
    for cpu in 0..2 {
        all.extend([Request::Offline(cpu), Request::Online(cpu)]);
    }
    all
}

/// The repair of admission alone, so that affinities and parameters may change.
const ADMISSION: Repairs = Repairs {
    admission: true,
    ..Repairs::NONE
};

/// Makes every sequence of up to `depth` requests to both; returns the numbers of granted and refused
/// requests. Of the sequences that lead to the same state of the ledger, one is continued.
fn search(repairs: Repairs, first: &[u64], depth: usize) -> [usize; 2] {
    let requests = every_request();
    let ledger = Ledger::new(first, 3, 0b11);
    let cpusets = ledger.cpusets(repairs);
    let mut seen = BTreeSet::from([ledger.clone()]);
    let mut level = vec![(ledger, cpusets, 0, Vec::new())];
    let mut counts = [0, 0];
    for _ in 0..depth {
        let mut next_level = Vec::new();
        for (ledger, before, now, made) in level {
            for (number, request) in requests.iter().enumerate() {
                let (mut cpusets, mut now) = (before.clone(), now);
                let answer = ask(&mut cpusets, &mut now, request);
                let context = || {
                    let made = made.iter().map(|&at: &usize| &requests[at]);
                    let made: Vec<&Request> = made.collect();
                    format!("{repairs:?} {made:?}, then {request:?}: {answer:?}")
                };
                let fits =
                    |after: &Ledger| after.all_have_cpus() && after.excess(repairs.admission) <= 0;
                let after = ledger.after(request, repairs).filter(fits);
                assert_eq!(answer.is_ok(), after.is_some(), "{}", context());
                assert_same(&cpusets, after.as_ref().unwrap_or(&ledger), &context);
                counts[usize::from(after.is_none())] += 1;
                let Some(after) = after else { continue };
                if seen.insert(after.clone()) {
                    let made = [&made[..], &[number]].concat();
                    next_level.push((after, cpusets, now, made));
                }
            }
        }
        level = next_level;
    }
    counts
}

#[test]
fn short_request_sequences_never_overcommit_and_fitting_requests_are_granted() {
    let depth = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 8,
        None => 5,
    };
    for repairs in [Repairs::NONE, ADMISSION, Repairs::ALL] {
        for first in [&[0b11][..], &[0b01, 0b10]] {
            let [granted, refused] = search(repairs, first, depth);

            assert!(granted > 10_000 && refused > 10_000, "{granted} {refused}");
        }
    }
}

/// A request of any kind; about as many ask for too much as for little.
fn random_request(random: &mut RandomStream, ledger: &Ledger) -> Request {
    let cpus = u64::from(ledger.all.count_ones());
    let task = random.below(ledger.tasks.len() as u64) as usize;
    let period = [5, 6, 7, 9, 10, 14, 15, 16, 18, 20, 21][random.below(11) as usize];
    match random.below(16) {
        0..=3 => Request::Enter(task),
        4 => Request::Leave(task, random.below(20)),
        5..=7 => Request::Change(task, [1 + random.below(period), period]),
        8 | 9 => Request::Affinity(task, 1 << random.below(cpus)),
        10 => Request::Affinity(task, 1 + random.below(ledger.all)),
        11 => Request::Move(task, random.below(3) as usize),
        12 if random.below(4) == 0 => {
            let place: Vec<u64> = (0..cpus).map(|_| random.below(4)).collect();
            let of = |cluster: u64| {
                let own = (0..cpus).filter(|&cpu| place[cpu as usize] == cluster);
                own.map(|cpu| 1 << cpu).sum()
            };
            Request::Clusters((0..1 + random.below(3)).map(of).collect())
        }
        13 if random.below(4) == 0 => Request::Reserve(random.below(500_000_000) as u32),
        14 => Request::Offline(random.below(cpus + 1) as usize),
        15 => Request::Online(random.below(cpus + 1) as usize),
        _ => Request::Wait(random.below(6)),
    }
}

#[test]
fn long_request_sequences_never_overcommit_and_fitting_requests_are_granted() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 150,
    };
    // Linux rounds every rate, and the limit of every CPU, down by less than 2^-20 of a CPU.
    let rounding = (CPU >> 20) + 1;
    for repairs in [Repairs::NONE, ADMISSION, Repairs::ALL] {
        let [mut granted, mut too_much, mut crowded] = [0, 0, 0];
        for seed in 0..seeds {
            let mut random = RandomStream::new(seed, 71, 0);
            let mut ledger = Ledger::new(&[0b0011, 0b0100, 0b1000], 8, 0b1111);
            ledger.reserve = 50_000_000;
            let mut cpusets = ledger.cpusets(repairs);
            let mut now = 0;
            for step in 0..200 {
                let request = random_request(&mut random, &ledger);
                let answer = ask(&mut cpusets, &mut now, &request);
                let context =
                    || format!("seed {seed}, step {step}, {repairs:?}: {request:?}: {answer:?}");
                let after = ledger.after(&request, repairs);
                match after.filter(Ledger::all_have_cpus) {
                    None => assert!(answer.is_err(), "{}", context()),
                    Some(after) => {
                        let excess = after.excess(repairs.admission);
                        if answer.is_ok() {
                            let rates = after.counted().count() as i128;
                            assert!(excess <= rates * rounding, "too much: {}", context());
                            crowded += usize::from(excess > -CPU / 10);
                            granted += 1;
                            ledger = after;
                        } else {
                            let cpus = i128::from(ledger.all.count_ones());
                            assert!(excess > -cpus * rounding, "it fits: {}", context());
                            too_much += 1;
                        }
                    }
                }
                assert_same(&cpusets, &ledger, &context);
            }
        }
        let enough = 5 * seeds as usize;
        assert!(
            granted > enough && too_much > enough && crowded > enough,
            "{repairs:?}: {granted} {too_much} {crowded}"
        );
    }
}
