//! Task-set files: what they mean, and that writing one and reading it back changes nothing.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use shiftwork_model::*;
use shiftwork_taskset::{Environment, read, read_in, write};

fn span_ms(ms: u64) -> Span {
    Span::from_ms(ms)
}

fn list(text: &str) -> CpuSet {
    text.parse().unwrap()
}

#[test]
fn every_key_of_a_file_arrives_in_the_model() {
    let set = read(include_str!("good/drone.toml")).unwrap();
    assert_eq!(set.name, "drone");
    let platform = &set.platform;
    assert_eq!(platform.cpus, 4);
    assert_eq!(platform.sets["with space"], list("0,2"));
    assert_eq!(platform.clusters, [list("0-1"), list("2-3")]);
    assert_eq!(platform.caches.len(), 3);
    assert_eq!(platform.capacities[3].billionths(), 123_456_789);
    assert_eq!(platform.frequency, Frequency::GrubPa);
    assert_eq!(platform.tick_unit, Span::from_us(1));
    assert_eq!(read(&write(&set)).as_ref(), Ok(&set));
    assert_eq!(set.scheduler.policy.as_deref(), Some("hpa-edf"));
    assert_eq!(set.scheduler.reserve, Share::DEFAULT_RESERVE);
    assert!(set.scheduler.reserve_server);
    assert_eq!(set.scheduler.quantum, Some(span_ms(1)));
    assert_eq!(set.scheduler.overheads.as_deref(), Some("niagara.toml"));
    let imu = &set.tasks[0];
    assert_eq!((imu.cost, imu.period), (Span::from_us(500), span_ms(2)));
    assert_eq!(imu.affinity.cpus(), &list("0-1"));
    assert_eq!(imu.priority, Priority::new(1));
    assert_eq!(imu.start_cpu, CpuId::new(0));
    assert_eq!(imu.work, Work::Constant(Span::from_us(450)));
    assert_eq!(imu.command, ["./imu", "--quiet \"q\""]);
    let radio = &set.tasks[1];
    assert_eq!((radio.deadline, radio.offset), (span_ms(30), span_ms(3)));
    assert_eq!((radio.jitter, imu.jitter), (span_ms(2), Span::ZERO));
    assert_eq!(radio.arrival, Arrival::Sporadic);
    assert_eq!(radio.on_overrun, OnOverrun::Continue);
    let second = ThreadName {
        process: "modem".into(),
        name: Some("radio \"1\"".into()),
        number: Some(2),
    };
    assert_eq!((&radio.thread, &imu.thread), (&Some(second), &None));
    let main = ThreadName {
        process: "logger".into(),
        name: None,
        number: None,
    };
    assert_eq!(set.tasks[3].thread, Some(main));
    assert_eq!(
        radio.work,
        Work::Uniform(Span::from_us(300), Span::from_us(450))
    );
    let instants = [0, 8, 20].map(|ms| Instant::ZERO + span_ms(ms));
    assert_eq!(set.tasks[2].arrival, Arrival::Releases(instants.to_vec()));
    assert_eq!(set.tasks[3].deadline, Span::from_s(1));
    assert_eq!(set.tasks[3].affinity.cpus(), &CpuSet::first(4));
    let phases = [
        Phase::Run(span_ms(1)),
        Phase::Sleep(span_ms(2)),
        Phase::Run(span_ms(1)),
    ];
    assert_eq!(set.tasks[3].work, Work::Phases(phases.to_vec()));
    let vision = Chain {
        name: "vision".into(),
        tasks: [2, 0, 3].map(TaskId::from_index).to_vec(),
        reaction: Some(span_ms(2_000)),
        age: Some(span_ms(2_500)),
        latency: None,
    };
    let telemetry = Chain {
        name: "telemetry".into(),
        tasks: [1, 3].map(TaskId::from_index).to_vec(),
        reaction: None,
        age: None,
        latency: None,
    };
    assert_eq!(set.chains, [vision, telemetry]);
}

#[test]
fn actions_are_by_time_and_at_one_instant_in_the_order_of_the_file() {
    let set = read(include_str!("good/drone.toml")).unwrap();
    let at: Vec<u64> = set
        .actions
        .iter()
        .map(|action| action.at.as_ns() / 1_000_000)
        .collect();
    assert_eq!(at, [10, 92, 92, 92, 92, 92, 92, 92, 93, 94]);
    let [imu, radio, log] = [0, 1, 3].map(TaskId::from_index);
    assert_eq!(set.actions[0].change, Change::Leave(imu));
    assert_eq!(set.actions[1].change, Change::Enter(log));
    let attributes = Change::SetAttributes {
        task: radio,
        cost: Some(span_ms(1)),
        period: Some(span_ms(10)),
        deadline: None,
    };
    assert_eq!(set.actions[2].change, attributes);
    assert_eq!(set.actions[5].change, Change::Move(imu, 1));
    assert!(set.enters_later(log));
}

#[test]
fn durations_are_exact_whatever_their_unit() {
    let cost = |text: &str| {
        let file = format!(
            "[platform]\ncpus = 1\n[[task]]\nname = \"a\"\ncost = \"{text}\"\nperiod = \"9h\""
        );
        read(&file)
            .map(|set| set.tasks[0].cost.as_ns())
            .map_err(|error| error.to_string())
    };
    for (text, ns) in [
        ("1ns", 1),
        ("0.26us", 260),
        ("1.5ms", 1_500_000),
        ("1s 5ms", 1_005_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
    ] {
        assert_eq!(cost(text), Ok(ns), "{text}");
    }
    for (text, fragment) in [
        ("5", "without a unit"),
        ("0", "without a unit"),
        ("1.5", "without a unit"),
        ("0.5ns", "no duration"),
        ("1.0000000001s", "no duration"),
        ("-1ms", "no duration"),
        ("", "no duration"),
        ("147y", "too long"),
    ] {
        let error = cost(text).unwrap_err();
        assert!(error.starts_with("line 5, column 8: `cost` is "), "{error}");
        assert!(error.contains(fragment), "{error}");
    }
}

/// This tree in place of `/sys`.
fn at(sysfs: &Path) -> Environment<'_> {
    Environment {
        sysfs,
        ..Environment::default()
    }
}

/// A copy of the parts of /sys that are read: 2 packages of 2 cores with 2 CPUs each.
fn fake_sysfs(name: &str, online: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("shiftwork-sysfs-{}-{name}", std::process::id()));
    let put = |path: String, text: String| {
        let path = root.join("devices/system/cpu").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text + "\n").unwrap();
    };
    put("online".into(), online.into());
    for cpu in 0..8 {
        let (core, package) = (cpu / 2 * 2, cpu / 4 * 4);
        let list = |first: i32, count: i32| format!("{first}-{}", first + count - 1);
        put(
            format!("cpu{cpu}/topology/package_cpus_list"),
            list(package, 4),
        );
        for (index, level, kind, shared) in [
            (0, 1, "Data", cpu.to_string()),
            (1, 1, "Instruction", list(core, 2)),
            (2, 2, "Unified", list(core, 2)),
            (3, 3, "Unified", list(package, 4)),
        ] {
            let cache = format!("cpu{cpu}/cache/index{index}");
            put(format!("{cache}/level"), level.to_string());
            put(format!("{cache}/type"), kind.into());
            put(format!("{cache}/shared_cpu_list"), shared);
        }
    }
    root
}

#[test]
fn the_host_brings_its_packages_and_caches_as_named_sets() {
    let root = fake_sysfs("whole", "0-7");
    let text = "[platform]\ncpus = \"host\"\nsets = { mine = \"6-7\" }\n\
                [[task]]\nname = \"a\"\ncost = \"1ms\"\nperiod = \"2ms\"\naffinity = \"l2-1\"\n";
    let set = read_in(text, &at(&root)).unwrap();
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(set.platform.cpus, 8);
    let sets: Vec<String> = set
        .platform
        .sets
        .iter()
        .map(|(name, cpus)| format!("{name}={cpus}"))
        .collect();
    let expected = "l2-0=0,1 l2-1=2,3 l2-2=4,5 l2-3=6,7 l3-0=0-3 l3-1=4-7 mine=6,7 package-0=0-3 \
                    package-1=4-7";
    assert_eq!(sets.join(" "), expected);
    assert_eq!(set.tasks[0].affinity.cpus(), &list("2-3"));
    let distance = |a, b| {
        let platform = &set.platform;
        platform.cache_distance(CpuId::from_index(a), CpuId::from_index(b))
    };
    assert_eq!([distance(0, 1), distance(0, 2), distance(0, 4)], [1, 2, 3]);
    assert_eq!(read(&write(&set)), Ok(set));
}

#[test]
fn a_host_that_does_not_say_what_it_has_is_an_error() {
    let text = "[platform]\ncpus = \"host\"\n";
    let root = fake_sysfs("gap", "0-2,5");
    let error = read_in(text, &at(&root)).unwrap_err();
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(
        error.to_string(),
        "line 2, column 8: `cpus` is \"host\", but its CPUs 0-2,5 are not numbered from 0 without \
         a gap; write the number of CPUs, like `cpus = 4`"
    );
    let error = read_in(text, &at(&root)).unwrap_err().to_string();
    assert!(error.contains("online cannot be read"), "{error}");
}

#[test]
fn the_shortest_file_has_a_platform_only() {
    let set = read("platform.cpus = 2").unwrap();
    assert_eq!(set, TaskSet::new("", 2, Vec::new()));
    assert_eq!(write(&set), "[platform]\ncpus = 2\n");
}

// --- writing and reading back ---------------------------------------------------------------

const CPUS: usize = 6;

fn positive() -> impl Strategy<Value = Span> {
    prop_oneof![
        (1..=Span::MAX.as_ns()).prop_map(Span::from_ns),
        (1..5_000u64).prop_map(Span::from_us),
        (1..5_000u64).prop_map(Span::from_ms),
    ]
}

fn instant() -> impl Strategy<Value = Instant> {
    prop_oneof![Just(Span::ZERO), positive()].prop_map(|span| Instant::ZERO + span)
}

fn cpu_set() -> impl Strategy<Value = CpuSet> {
    (1u64..1 << CPUS).prop_map(CpuSet::from_bits)
}

fn affinity() -> impl Strategy<Value = Affinity> {
    cpu_set().prop_map(|set| Affinity::new(set).unwrap())
}

fn share(least: u32) -> impl Strategy<Value = Share> {
    (least..=Share::WHOLE).prop_map(|billionths| Share::from_billionths(billionths).unwrap())
}

fn priority() -> impl Strategy<Value = Priority> {
    (1..=Priority::LEAST_URGENT.number()).prop_map(|number| Priority::new(number).unwrap())
}

fn cpu() -> impl Strategy<Value = CpuId> {
    (0..CPUS).prop_map(CpuId::from_index)
}

fn phases() -> impl Strategy<Value = Work> {
    let phase = prop_oneof![
        positive().prop_map(Phase::Run),
        positive().prop_map(Phase::Sleep)
    ];
    let phases = prop::collection::vec(phase, 0..4);
    // Mutexes that are nested in one order, around the phases.
    let locks = prop::sample::subsequence((0..RESOURCES).collect::<Vec<_>>(), 0..=RESOURCES);
    (positive(), phases, locks).prop_map(|(run, mut phases, locks)| {
        phases.push(Phase::Run(run));
        let lock = |&index: &usize| Phase::Lock(ResourceId::from_index(index));
        let unlock = |&index: &usize| Phase::Unlock(ResourceId::from_index(index));
        let before: Vec<Phase> = locks.iter().map(lock).collect();
        Work::Phases([before, phases, locks.iter().map(unlock).collect()].concat())
    })
}

/// As many as the tasks of a set may lock.
const RESOURCES: usize = 3;

fn resources() -> impl Strategy<Value = Vec<Resource>> {
    let protocols = [Protocol::None, Protocol::Inheritance, Protocol::Ceiling];
    let protocol = prop::sample::select(protocols.to_vec());
    prop::collection::vec(protocol, RESOURCES).prop_map(|protocols| {
        let resource = |(index, protocol)| Resource {
            name: format!("r \"{index}"),
            protocol,
        };
        protocols.into_iter().enumerate().map(resource).collect()
    })
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![
        Just(Work::Cost),
        positive().prop_map(Work::Constant),
        (positive(), positive()).prop_map(|(a, b)| Work::Uniform(a.min(b), a.max(b))),
        prop::collection::vec(positive(), 1..4).prop_map(Work::Trace),
        phases(),
    ]
}

/// Chains of any tasks of this many, under names of their own; none if there are fewer than two tasks.
fn chains(tasks: usize) -> impl Strategy<Value = Vec<Chain>> {
    let ids: Vec<TaskId> = (0..tasks).map(TaskId::from_index).collect();
    let path = prop::sample::subsequence(ids, 2.min(tasks)..=tasks).prop_shuffle();
    let wanted = || prop::option::of(positive());
    let chain = (".{0,6}", path, wanted(), wanted());
    prop::collection::vec(chain, 0..3).prop_map(|chains| {
        let chains = chains.into_iter().enumerate();
        let chains = chains.map(|(index, (name, tasks, reaction, age))| Chain {
            name: format!("{index}{name}"),
            tasks,
            reaction,
            age,
            latency: None,
        });
        chains.filter(|chain| chain.tasks.len() >= 2).collect()
    })
}

fn task() -> impl Strategy<Value = Task> {
    let arrival = prop_oneof![
        Just(Arrival::Periodic),
        Just(Arrival::Sporadic),
        prop::collection::vec(1u64..9, 0..4).prop_map(|gaps| {
            let releases = gaps.iter().scan(0, |at, gap| {
                *at += gap;
                Some(Instant::from_ns(*at))
            });
            Arrival::Releases(releases.collect())
        }),
        (prop::collection::vec(0u64..9, 1..5), any::<bool>()).prop_map(|(more, is_random)| {
            let mut distances: Vec<u64> = Vec::new();
            for more in more {
                let gaps = distances.len();
                let split = |first: usize| distances[first] + distances[gaps - 1 - first];
                let least = (0..gaps).map(split).max().unwrap_or(1);
                distances.push(least + more);
            }
            let curve = ArrivalCurve::new(distances.into_iter().map(Span::from_ns).collect());
            let pace = [Pace::Earliest, Pace::Random][usize::from(is_random)];
            Arrival::Curve(curve.unwrap(), pace)
        }),
    ];
    let overrun = prop_oneof![
        Just(OnOverrun::Throttle),
        Just(OnOverrun::Continue),
        Just(OnOverrun::Signal)
    ];
    let numbers = (positive(), positive(), positive(), (instant(), instant()));
    let options = (
        affinity(),
        prop::option::of(priority()),
        prop::option::of(cpu()),
    );
    let command = prop::collection::vec(".{0,6}", 0..3);
    let names = (
        ".{1,3}",
        prop::option::of((".{1,3}", prop::option::of(1u32..4))),
    );
    let thread = prop::option::of(names).prop_map(|names| {
        let (process, thread) = names?;
        let (name, number) = thread.unzip();
        Some(ThreadName {
            process,
            name,
            number: number.flatten(),
        })
    });
    let program = (command, thread);
    (numbers, options, arrival, work(), overrun, program).prop_map(
        |(
            (period, deadline, cost, (offset, jitter)),
            (affinity, priority, start_cpu),
            arrival,
            work,
            overrun,
            (command, thread),
        )| {
            let period = match &arrival {
                Arrival::Releases(_) => Span::from_ns(1),
                Arrival::Curve(curve, _) => curve.shortest(),
                _ => period,
            };
            Task {
                deadline,
                offset: offset.late_since(Instant::ZERO),
                jitter: jitter.late_since(Instant::ZERO),
                priority,
                arrival,
                start_cpu,
                work,
                on_overrun: overrun,
                thread: thread.filter(|_| command.is_empty()),
                command,
                ..Task::periodic("", cost.min(deadline), period, affinity)
            }
        },
    )
}

fn change(tasks: usize) -> impl Strategy<Value = Change> {
    let id = move || (0..tasks).prop_map(TaskId::from_index);
    let change = move |cost, period, deadline| {
        move |task| Change::SetAttributes {
            task,
            cost,
            period,
            deadline,
        }
    };
    let new = || prop::option::of(positive());
    prop_oneof![
        id().prop_map(Change::Enter),
        id().prop_map(Change::Leave),
        (id(), positive(), new(), new()).prop_map(move |(task, cost, period, deadline)| change(
            Some(cost),
            period,
            deadline
        )(
            task
        )),
        (id(), affinity()).prop_map(|(task, to)| Change::SetAffinity(task, to)),
        (id(), priority()).prop_map(|(task, to)| Change::SetPriority(task, to)),
        (id(), 0usize..2).prop_map(|(task, cluster)| Change::Move(task, cluster)),
        (1u64..(1 << CPUS) - 1).prop_map(|bits| {
            let part = CpuSet::from_bits(bits);
            Change::SetClusters(vec![CpuSet::first(CPUS) - part, part])
        }),
        cpu().prop_map(Change::CpuOffline),
        cpu().prop_map(Change::CpuOnline),
        share(0).prop_map(Change::SetReserve),
    ]
}

fn platform() -> impl Strategy<Value = Platform> {
    let sets = prop::collection::btree_map("[a-z][a-z0-9. \"-]{0,6}[a-z]", cpu_set(), 0..4);
    let caches = prop::collection::vec(cpu_set(), 0..4);
    let capacities = prop_oneof![Just(Vec::new()), prop::collection::vec(share(1), CPUS)];
    (sets, caches, capacities, any::<bool>()).prop_map(|(sets, caches, capacities, scaled)| {
        let halves = [CpuSet::first(3), list("3-5")];
        let frequency = [Frequency::Fixed, Frequency::GrubPa][usize::from(scaled)];
        Platform {
            sets,
            caches,
            capacities,
            frequency,
            clusters: halves.to_vec(),
            ..Platform::uniform(CPUS)
        }
    })
}

fn task_set() -> impl Strategy<Value = TaskSet> {
    let scheduler = (
        prop::option::of(".{1,8}"),
        share(0),
        any::<bool>(),
        prop::option::of(positive()),
        any::<bool>(),
        prop::option::of(".{1,8}"),
        prop::option::of(prop::sample::subsequence(Repairs::NAMES.to_vec(), 0..=4)),
        prop::sample::select(vec![Lagging::Grid, Lagging::Reset]),
    )
        .prop_map(
            |(
                policy,
                reserve,
                reserve_server,
                quantum,
                early_release,
                overheads,
                repairs,
                lagging,
            )| {
                SchedulerOptions {
                    policy,
                    reserve,
                    reserve_server,
                    quantum,
                    early_release,
                    overheads,
                    repairs: repairs.map(|names| {
                        let all = names
                            .iter()
                            .try_fold(Repairs::NONE, |all, name| all.with(name));
                        all.expect("these are names")
                    }),
                    lagging,
                }
            },
        );
    let tasks = prop::collection::vec(task(), 1..5);
    (".{0,8}", platform(), scheduler, tasks, resources()).prop_flat_map(
        |(name, platform, scheduler, mut tasks, resources)| {
            for (index, task) in tasks.iter_mut().enumerate() {
                task.name = format!("t{index}");
                if task.locks() {
                    task.on_overrun = OnOverrun::Continue;
                }
            }
            let action =
                (instant(), change(tasks.len())).prop_map(|(at, change)| Action { at, change });
            let actions = prop::collection::vec(action, 0..5);
            let triggers = prop::collection::vec(trigger(), tasks.len());
            let parts = (actions, chains(tasks.len()), triggers);
            parts.prop_map(move |(mut actions, chains, triggers)| {
                actions.sort_by_key(|action| action.at);
                let set = TaskSet {
                    name: name.clone(),
                    platform: platform.clone(),
                    scheduler: scheduler.clone(),
                    tasks: tasks.clone(),
                    resources: resources.clone(),
                    chains,
                    actions,
                };
                let mut set = triggered(set, &triggers);
                for action in &mut set.actions {
                    if let Change::SetAttributes { task, period, .. } = &mut action.change
                        && set.tasks[task.index()].curve().is_some()
                    {
                        *period = None;
                    }
                }
                set
            })
        },
    )
}

/// Whether a task is triggered; if so by how many of the tasks before it, how these are joined, the length of the queue,
/// and whether the first of them does it within its phases if it has any.
type Triggered = (bool, usize, bool, Option<u32>, bool);

fn trigger() -> impl Strategy<Value = Triggered> {
    let queue = prop::option::of(1..u32::MAX);
    (
        any::<bool>(),
        1..4usize,
        any::<bool>(),
        queue,
        any::<bool>(),
    )
}

/// The set with some of its tasks triggered by others before them.
fn triggered(mut set: TaskSet, triggers: &[Triggered]) -> TaskSet {
    for (index, &(is_triggered, count, all, queue, within)) in triggers.iter().enumerate() {
        let sources: Vec<TaskId> = (0..index.min(count)).map(TaskId::from_index).collect();
        let (true, Some(first)) = (is_triggered, sources.first()) else {
            continue;
        };
        let id = TaskId::from_index(index);
        if let (true, Work::Phases(phases)) = (within, &mut set.tasks[first.index()].work) {
            phases.insert(0, Phase::Trigger(id));
        }
        let join = match all {
            true => Join::All,
            false => Join::Any,
        };
        let trigger = Trigger {
            sources,
            join,
            queue,
        };
        let task = &mut set.tasks[index];
        (task.offset, task.jitter) = (Span::ZERO, Span::ZERO);
        task.arrival = Arrival::Triggered(trigger);
        set.tasks[index].period = set.triggered_period(id).unwrap();
    }
    set
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(set in task_set()) {
        let text = write(&set);
        match read(&text) {
            Ok(back) => prop_assert_eq!(back, set, "{}", text),
            Err(error) => prop_assert!(false, "{} in\n{}", error, text),
        }
    }
}

#[test]
fn cpu_of_a_mutex_is_written_and_read_back() {
    let text =
        "[platform]\ncpus = 2\n\n[[resource]]\nname = \"bus\"\nprotocol = \"dpcp\"\ncpu = 1\n";
    let set = read(text).unwrap();
    assert_eq!(
        set.resources[0].protocol,
        Protocol::Dpcp(CpuId::from_index(1))
    );
    assert_eq!(read(&write(&set)).unwrap(), set);
}
