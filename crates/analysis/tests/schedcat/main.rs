//! Blocking by mutexes beside that of SchedCAT, for task sets and numbers in `blocking.txt`, whose head says where they are from.
#![allow(clippy::unwrap_used, reason = "a test")]

mod acceptance;

use std::collections::BTreeMap;

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_model::{
    Affinity, CpuId, CpuSet, Phase, Priority, Protocol, Resource, ResourceId, Span, Task, TaskSet,
    Work,
};
use shiftwork_policy::registry;

/// How often a job requests a mutex at most, and the longest section.
struct Requests {
    mutex: usize,
    count: u64,
    length: u64,
}

/// A task in the file: times in microseconds, priority 0 the most urgent.
struct Row {
    cost: u64,
    period: u64,
    cpu: usize,
    priority: u32,
    requests: Vec<Requests>,
}

/// What SchedCAT says of a task: the blocking by jobs of other CPUs, and all of it.
#[derive(Clone, Copy, Debug)]
struct Terms {
    remote: u64,
    total: u64,
}

/// A task set in the file.
#[derive(Default)]
struct Case {
    name: String,
    cpus: usize,
    rows: Vec<Row>,
    /// The CPUs of the mutexes with DPCP.
    on: Vec<usize>,
    /// By analysis.
    theirs: BTreeMap<String, Vec<Terms>>,
}

impl Case {
    fn is_global(&self, mutex: usize) -> bool {
        let uses = |row: &&Row| row.requests.iter().any(|it| it.mutex == mutex);
        let mut cpus = self.rows.iter().filter(uses).map(|row| row.cpu);
        let first = cpus.next();
        cpus.any(|cpu| Some(cpu) != first)
    }

    /// The task set with these protocols, by mutex, each section apart from the others. `is_bound`: to the CPUs of the file.
    fn set(&self, protocol: impl Fn(usize) -> Protocol, is_bound: bool) -> TaskSet {
        let us = |us: u64| Span::from_ns(1_000 * us);
        let all = Affinity::new(CpuSet::first(self.cpus)).unwrap();
        let task = |row: &Row| {
            let affinity = match is_bound {
                true => Affinity::pinned(CpuId::from_index(row.cpu)),
                false => all,
            };
            let mut task = Task::periodic("t", us(row.cost), us(row.period), affinity);
            task.priority = Priority::new(row.priority + 2);
            let mut phases = Vec::new();
            let mut left = row.cost;
            for of in &row.requests {
                let id = ResourceId::from_index(of.mutex);
                for _ in 0..of.count {
                    let apart = Phase::Run(us(1));
                    let held = Phase::Run(us(of.length));
                    phases.extend([apart, Phase::Lock(id), held, Phase::Unlock(id)]);
                    left -= of.length + 1;
                }
            }
            phases.push(Phase::Run(us(left)));
            task.work = Work::Phases(phases);
            task
        };
        let mut set = TaskSet::new("", self.cpus, self.rows.iter().map(task).collect());
        let resource = |mutex: usize| Resource {
            name: format!("r{mutex}"),
            protocol: protocol(mutex),
        };
        set.resources = (0..self.on.len()).map(resource).collect();
        set
    }

    /// The set as it is for this analysis, and under which policy.
    fn under(&self, analysis: &str) -> (TaskSet, &'static str) {
        let spin = |mutex: usize| match self.is_global(mutex) {
            true => Protocol::Spin,
            false => Protocol::Ceiling,
        };
        let on = |mutex: usize| Protocol::Dpcp(CpuId::from_index(self.on[mutex]));
        match analysis.split_once('-').map_or(analysis, |(name, _)| name) {
            "msrp" => (self.set(spin, true), "p-fp"),
            "fmlp" => {
                let mut set = self.set(|_| Protocol::Fmlp, true);
                if analysis.ends_with("-unlimited") {
                    take_all(&mut set);
                }
                (set, "p-fp")
            }
            "mpcp" => (self.set(|_| Protocol::Mpcp, true), "p-fp"),
            "dpcp" => (self.set(on, true), "p-fp"),
            "omlp" => (self.set(|_| Protocol::Omlp, false), "g-edf"),
            other => panic!("unknown analysis {other}"),
        }
    }

    /// What counts as computing beside the cost, in microseconds; `None` where nothing is known.
    fn ours(&self, analysis: &str) -> Option<Vec<u64>> {
        let (set, policy) = self.under(analysis);
        let traits = registry::find(policy).unwrap().traits;
        let StandIns::Other(others) = StandIns::of(&set, &traits) else {
            return None;
        };
        let both = others.set.tasks.iter().zip(&set.tasks);
        let both = both.take(self.rows.len());
        Some(
            both.map(|(one, of)| (one.cost.as_ns() - of.cost.as_ns()) / 1_000)
                .collect(),
        )
    }
}

/// Beside tasks of which one takes all of each CPU no response is bounded.
fn take_all(set: &mut TaskSet) {
    for cpu in 0..set.platform.cpus {
        let all = Span::from_ms(1);
        let mut task = Task::periodic("all", all, all, Affinity::pinned(CpuId::from_index(cpu)));
        task.priority = Priority::new(1);
        set.tasks.push(task);
    }
}

fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let Some(key) = words.next() else { continue };
        if key == "set" {
            cases.push(Case {
                name: words.next().unwrap().to_owned(),
                cpus: words.next().unwrap().parse().unwrap(),
                ..Case::default()
            });
            continue;
        }
        let case = cases.last_mut().unwrap();
        match key {
            "task" => {
                let numbers: Vec<u64> = words.map(|it| it.parse().unwrap()).collect();
                let requests = numbers[4..].chunks(3).map(|it| Requests {
                    mutex: it[0] as usize,
                    count: it[1],
                    length: it[2],
                });
                case.rows.push(Row {
                    cost: numbers[0],
                    period: numbers[1],
                    cpu: numbers[2] as usize,
                    priority: numbers[3] as u32,
                    requests: requests.collect(),
                });
            }
            "on" => case.on = words.map(|it| it.parse().unwrap()).collect(),
            analysis => {
                let terms = words.map(|it| {
                    let numbers: Vec<u64> = it.split('/').map(|it| it.parse().unwrap()).collect();
                    Terms {
                        remote: numbers[0],
                        total: numbers[2],
                    }
                });
                case.theirs.insert(analysis.to_owned(), terms.collect());
            }
        }
    }
    cases
}

/// Calls this for each task of the file of which anything is known, with its set, place and numbers: SchedCAT's and the total of ours.
/// How many of ours are less, the same, and more, and of how many sets nothing is known.
fn compare(analysis: &str, mut check: impl FnMut(&Case, usize, Terms, u64)) -> [u64; 4] {
    let cases = read(include_str!("blocking.txt"));
    assert_eq!(cases.len(), 12);
    let mut count = [0; 4];
    for case in &cases {
        let Some(ours) = case.ours(analysis) else {
            count[3] += 1;
            continue;
        };
        assert_eq!(ours.len(), case.theirs[analysis].len());
        for (task, (&ours, &theirs)) in ours.iter().zip(&case.theirs[analysis]).enumerate() {
            count[1 + usize::from(ours > theirs.total) - usize::from(ours < theirs.total)] += 1;
            check(case, task, theirs, ours);
        }
    }
    count
}

/// Whether tasks of several CPUs use each mutex that is used.
fn are_all_global(case: &Case) -> bool {
    let mut used = case.rows.iter().flat_map(|row| &row.requests);
    used.all(|it| case.is_global(it.mutex))
}

#[test]
fn spinning_and_blocking_of_msrp_are_the_same() {
    let counts = compare("msrp", |case, task, theirs, ours| {
        assert_eq!(ours, theirs.total, "{}, task {task}", case.name);
    });
    assert_eq!(counts, [0, 91, 0, 0]);
}

/// SchedCAT counts here how many requests other CPUs make in all while a job is pending. The whole difference is spinning.
#[test]
fn spinning_of_msrp_is_longer_by_requests_that_do_not_come_in_time() {
    let counts = compare("msrp-holistic", |case, task, theirs, ours| {
        let each = case.theirs["msrp"][task].remote;
        assert_eq!(
            ours - theirs.total,
            each - theirs.remote,
            "{}, task {task}",
            case.name
        );
    });
    assert_eq!(counts, [0, 79, 12, 0]);
}

/// SchedCAT counts mutexes that tasks of one CPU share, too, and that low jobs make requests while a job waits for these.
#[test]
fn fmlp_without_limits_is_the_same_where_all_mutexes_are_global() {
    let counts = compare("fmlp-unlimited", |case, task, theirs, ours| {
        let context = format!("{}, task {task}: {theirs:?} {ours}", case.name);
        match are_all_global(case) {
            true => assert_eq!(ours, theirs.total, "{context}"),
            false => assert!(ours <= theirs.total, "{context}"),
        }
    });
    assert_eq!(counts, [22, 69, 0, 0]);
}

/// Both count how many sections other tasks have in all while a job is pending: ours are limited by bounds on responses, SchedCAT's by periods.
#[test]
fn fmlp_is_no_longer() {
    let counts = compare("fmlp", |case, task, theirs, ours| {
        assert!(
            ours <= theirs.total,
            "{}, task {task}: {theirs:?} {ours}",
            case.name
        );
    });
    assert_eq!(counts, [49, 42, 0, 0]);
}

/// SchedCAT counts one more job of each more urgent task than fits into the window, and low sections once for each request and at the
/// release, however few come while the job is pending.
#[test]
fn mpcp_is_no_longer() {
    let counts = compare("mpcp", |case, task, theirs, ours| {
        let context = format!("{}, task {task}: {theirs:?} {ours}", case.name);
        assert!(ours <= theirs.total, "{context}");
    });
    assert_eq!(counts, [61, 30, 0, 0]);
}

/// SchedCAT counts all sections of other tasks on the CPU while a job is pending, we those of less urgent ones of the CPU at most once for
/// each request and at the release; and of requests to other CPUs it counts the longest low sections once, we the longest for each.
#[test]
fn dpcp_is_longer_by_low_sections_of_several_requests_alone() {
    let counts = compare("dpcp", |case, task, theirs, ours| {
        let row = &case.rows[task];
        let elsewhere = row
            .requests
            .iter()
            .filter(|it| case.on[it.mutex] != row.cpu);
        let is_once = elsewhere.map(|it| it.count).sum::<u64>() <= 1;
        let context = format!("{}, task {task}: {theirs:?} {ours}", case.name);
        assert!(ours <= theirs.total || !is_once, "{context}");
    });
    assert_eq!(counts, [80, 10, 1, 0]);
}

#[test]
fn global_omlp_without_limits_is_the_same() {
    let counts = compare("omlp-unlimited", |case, task, theirs, ours| {
        assert_eq!(ours, theirs.total, "{}, task {task}", case.name);
    });
    assert_eq!(counts, [0, 91, 0, 0]);
}

/// As with FMLP+.
#[test]
fn global_omlp_is_longer_by_sections_that_do_not_come_in_time() {
    let counts = compare("omlp", |case, task, theirs, ours| {
        let context = format!("{}, task {task}: {theirs:?} {ours}", case.name);
        assert!(ours >= theirs.total, "{context}");
    });
    assert_eq!(counts, [0, 67, 24, 0]);
}
