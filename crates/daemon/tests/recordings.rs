//! Recordings of simulated runs: whatever the recorder does to the records (numbers, origin, checkpoint, file), every
//! miss has to be explained as by the records of the run themselves.
#![allow(clippy::unwrap_used, reason = "to test")]

use std::collections::BTreeMap;

use shiftwork_daemon::recorder::{Recorder, Recording, RecordingAnalysis};
use shiftwork_daemon::reservation::Reservation;
use shiftwork_model::{
    Action, Affinity, Change, CpuId, CpuSet, Instant, Invariant, OnOverrun, Order, RandomStream,
    Record, RecordKind, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::check::PolicyContract;
use shiftwork_trace::explain::{Cause, Culprit, explain, first_misses};

const CPUS: usize = 3;
const HORIZON: Instant = Instant::from_ns(400_000_000);

/// So much too much that some jobs are late, and the next of a task is rarely there before the one before is finished.
fn random_set(seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 0, 0);
    let affinities = ["0-2", "0-1", "1-2", "0", "1", "2"];
    let tasks = (0..3 + random.below(5)).map(|index| {
        let list = affinities[random.below(6) as usize];
        let cpus = Affinity::new(list.parse::<CpuSet>().unwrap()).unwrap();
        let ms = Span::from_ms;
        let period = 20 + random.below(60);
        let cost = 1 + random.below(8);
        let (least, most) = (ms(1 + cost / 2), ms(1 + 2 * cost));
        Task {
            deadline: ms(cost + 1 + random.below(10)),
            offset: ms(random.below(20)),
            work: match random.below(3) {
                0 => Work::Uniform(least, most),
                _ => Work::Cost,
            },
            on_overrun: OnOverrun::Continue,
            ..Task::periodic(&format!("T{index}"), ms(cost), ms(period), cpus)
        }
    });
    let mut set = TaskSet::new("random", CPUS, tasks.collect());
    for _ in 0..random.below(4) {
        let cpu = CpuId::from_index(random.below(CPUS as u64) as usize);
        let at = Instant::ZERO + Span::from_us(random.below(300_000));
        for (late, change) in [(0, Change::CpuOffline(cpu)), (30, Change::CpuOnline(cpu))] {
            let at = at + Span::from_ms(late);
            set.actions.push(Action { at, change });
        }
    }
    set.actions.sort_by_key(|action| action.at);
    set
}

fn simulate(set: &TaskSet, policy: &str) -> Vec<Record> {
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed: 1,
        horizon: HORIZON,
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    let built = entry.build(set).unwrap();
    let _ = Simulation::new(set, built, &entry.traits, options).run(&mut records);
    records
}

/// Whether a job was released before the one before it of its task was finished. A thread wakes up when it sleeps: the
/// kernel cannot tell such a thing.
fn jobs_meet(records: &[Record]) -> bool {
    let mut open: BTreeMap<TaskId, u64> = BTreeMap::new();
    records.iter().any(|record| match record.kind {
        RecordKind::Released { job, .. } => open.insert(job.task, job.number).is_some(),
        RecordKind::Completed { job } => {
            open.remove(&job.task);
            false
        }
        _ => false,
    })
}

/// What a recorder of the run remembers in the end.
fn record(set: &TaskSet, records: &[Record], policy: &str, span: Span) -> Recording {
    let cpus = CpuSet::first(CPUS);
    let mut recorder = Recorder::new(span, cpus, policy, Instant::ZERO);
    let priorities = set.priorities();
    for (id, task) in set.iter() {
        let reservation = Reservation {
            cost: task.cost,
            period: task.period,
            deadline: task.deadline,
            cpus: *task.affinity.cpus(),
            priority: priorities[id.index()],
            on_overrun: task.on_overrun,
        };
        recorder.know(id, &task.name, 7, &reservation);
        recorder.record(&Record {
            at: Instant::ZERO,
            kind: RecordKind::Entered { task: id },
        });
    }
    let mut polled = Instant::ZERO;
    for record in records {
        while polled + Span::from_ms(50) < record.at {
            polled += Span::from_ms(50);
            recorder.advance(polled, 0);
        }
        recorder.record(record);
    }
    recorder.advance(HORIZON, 0);
    let recording = recorder.recording(Instant::ZERO, usize::MAX, 0, None);
    // As it would come out of a file.
    Recording::read(&recording.trace()).unwrap()
}

#[test]
fn a_recording_says_of_every_miss_what_the_run_says() {
    let mut compared = BTreeMap::new();
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        5_000
    } else {
        200
    };
    for seed in 1..=seeds {
        for (policy, order) in [
            ("strong-edf", Order::Edf),
            ("strong-fp", Order::FixedPriority),
        ] {
            let set = random_set(seed);
            let records = simulate(&set, policy);
            if jobs_meet(&records) {
                continue;
            }
            let promised = PolicyContract {
                invariant: Invariant::Strong,
                order,
                packing: None,
                immediate: false,
            };
            let whole = record(&set, &records, policy, Span::from_s(10));
            let whole = RecordingAnalysis::new(&whole);
            let late = first_misses(&set, &records, HORIZON, usize::MAX);
            assert_eq!(whole.late(), late, "seed {seed}, {policy}");
            for job in late {
                let what = || format!("seed {seed}, {policy}, {job:?}");
                let wanted = explain(&set, &promised, &records, job, HORIZON).unwrap();
                let report = whole.explain(job).unwrap_or_else(|| panic!("{}", what()));
                assert_eq!(report.explanation, wanted, "{}", what());
                let kind = match &wanted.cause {
                    Cause::One(Culprit::Overrun(_)) => "overrun",
                    Cause::One(Culprit::OwnOverrun) => "own overrun",
                    Cause::One(Culprit::CpuOffline) => "offline",
                    Cause::One(Culprit::NarrowAffinity) => "narrow",
                    Cause::One(Culprit::Overload) => "overload",
                    Cause::One(other) => panic!("{other:?}; {}", what()),
                    Cause::Several(_) => "several",
                    Cause::OwnDemand => "demand",
                };
                *compared.entry(kind).or_insert(0) += 1;
            }
        }
    }
    println!("{compared:?}");
    for kind in ["overrun", "own overrun", "offline", "narrow", "several"] {
        assert!(
            compared.get(kind).is_some_and(|&count| count > 5),
            "{kind}: {compared:?}"
        );
    }
}

/// A record that begins in the middle of the run says the same of what began after it, whatever is under way then.
#[test]
fn a_record_that_begins_late_says_the_same_of_what_comes_after_it() {
    let mut compared = 0;
    for seed in 1..=200 {
        let set = random_set(seed);
        let records = simulate(&set, "strong-edf");
        if jobs_meet(&records) {
            continue;
        }
        let whole = record(&set, &records, "strong-edf", Span::from_s(10));
        let whole = RecordingAnalysis::new(&whole);
        let half = record(&set, &records, "strong-edf", Span::from_ms(200));
        let metadata = &half.metadata;
        let since_ns = metadata.origin_ns + metadata.since_ns;
        assert_eq!(since_ns, 200_000_000, "seed {seed}");
        let analysis = RecordingAnalysis::new(&half);
        let origin = Instant::from_ns(metadata.origin_ns);
        let of = |task: TaskId, release: Instant| {
            let mut late = analysis.late().into_iter().filter(|job| job.task == task);
            late.find_map(|job| {
                let it = analysis.explain(job)?;
                (it.explanation.release == release).then_some(it)
            })
        };
        for job in whole.late() {
            let wanted = whole.explain(job).unwrap().explanation;
            // A task that ran before is known if it still runs; what it had executed by then is
            // not.
            if wanted.since < Instant::from_ns(since_ns) + Span::from_ms(60) {
                continue;
            }
            let release = Instant::ZERO + wanted.release.late_since(origin);
            let report = of(job.task, release);
            let report = report.unwrap_or_else(|| panic!("seed {seed}: {job:?} is not late"));
            assert_eq!(
                report.explanation.parts, wanted.parts,
                "seed {seed}, {job:?}"
            );
            assert_eq!(
                report.explanation.cause, wanted.cause,
                "seed {seed}, {job:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}
