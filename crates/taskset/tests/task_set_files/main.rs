//! Task-set files: what they mean.

#![allow(clippy::unwrap_used, reason = "a test")]

mod written;

use std::fs;
use std::path::{Path, PathBuf};

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
    let set = read(include_str!("../good/drone.toml")).unwrap();
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
    let set = read(include_str!("../good/drone.toml")).unwrap();
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
