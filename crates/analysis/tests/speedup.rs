//! The speedup bound: its published values, its exact comparisons, and that what it shows is in time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use num_bigint::BigInt;
use num_rational::Ratio;
use shiftwork_analysis::affinity::{Speed, speedup};
use shiftwork_analysis::{NotShown, Outcome, Placed, Sporadic, Steps};
use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, RandomStream, Record, RecordKind, Span, Task, TaskSet,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

/// Cost, period, deadline, CPUs as bits.
type Plain = (u64, u64, u64, u64);

fn placed(tasks: &[Plain]) -> Vec<Placed> {
    let one = |&(cost, period, deadline, bits): &Plain| Placed {
        task: Sporadic {
            cost: Span::from_ns(cost),
            period: Span::from_ns(period),
            deadline: Span::from_ns(deadline),
        },
        cpus: CpuSet::from_bits(bits),
    };
    tasks.iter().map(one).collect()
}

fn decide(tasks: &[Plain]) -> Outcome<NotShown> {
    speedup(&placed(tasks), &mut Steps::ordinary())
}

fn is_shown(tasks: &[Plain]) -> bool {
    decide(tasks) == Outcome::Pass(())
}

#[test]
fn the_speeds_are_those_of_the_theorem() {
    // By m: for clusters of one, two and four CPUs, and for one cluster of all but in name.
    let table: [(usize, usize, u64); 21] = [
        (1, 1, 1_000_000),
        (2, 1, 1_618_034),
        (4, 1, 2_000_000),
        (8, 1, 2_203_768),
        (16, 1, 2_308_232),
        (24, 1, 2_343_398),
        (32, 1, 2_361_042),
        (64, 1, 2_387_584),
        (2, 2, 1_822_876),
        (4, 2, 2_380_199),
        (8, 2, 2_683_890),
        (16, 2, 2_840_564),
        (24, 2, 2_893_418),
        (32, 2, 2_919_956),
        (64, 2, 2_959_899),
        (4, 4, 2_558_890),
        (8, 4, 2_913_212),
        (16, 4, 3_096_419),
        (24, 4, 3_158_268),
        (32, 4, 3_189_330),
        (64, 4, 3_236_089),
    ];
    let half = |halves: u64| (BigInt::from(halves), BigInt::from(2_000_000));
    for (cpus, cluster, millionths) in table {
        let speed = Speed::new(cpus, cluster).unwrap();
        let (above, below) = (half(2 * millionths + 1), half(2 * millionths - 1));
        assert!(speed.at_most(&above.0, &above.1), "{cpus} {cluster}");
        assert!(!speed.at_most(&below.0, &below.1), "{cpus} {cluster}");
        let shown = millionths as f64 / 1e6;
        assert!((speed.as_f64() - shown).abs() < 1e-6, "{cpus} {cluster}");
    }
    for (cpus, cluster, most) in [(1 << 19, 1, 2.414_214), (1 << 19, 1 << 19, 3.561_553)] {
        let speed = Speed::new(cpus, cluster).unwrap().as_f64();
        assert!(speed < most && speed > most - 1e-4, "{speed}");
    }
    for (cpus, cluster) in [(0, 0), (2, 0), (2, 3), (1 << 20, 1)] {
        assert_eq!(Speed::new(cpus, cluster), None);
    }
}

#[test]
fn a_speed_that_is_a_fraction_is_compared_at_equality() {
    // For four CPUs and clusters of one the speed is 2: half of every CPU may be used.
    let [two, one] = [2, 1].map(BigInt::from);
    assert!(Speed::new(4, 1).unwrap().at_most(&two, &one));
    let half = [(1, 2, 2, 0b1111), (1, 2, 2, 1), (1, 2, 2, 2), (1, 2, 2, 4)];
    assert!(is_shown(&half));
    let mut over = half.to_vec();
    over.push((1, u64::MAX, u64::MAX, 0b1111));
    assert!(!is_shown(&over));
    // One CPU is scheduled optimally: no speedup at all.
    assert!(is_shown(&[(2, 3, 3, 1), (1, 3, 3, 1)]));
    assert!(!is_shown(&[
        (2, 3, 3, 1),
        (1, 3, 3, 1),
        (1, u64::MAX, u64::MAX, 1)
    ]));
}

/// The same decision with fractions: for all tasks, all clusters and the root, the utilization times
/// s is at most the number of CPUs. Bi-level on `cpus` CPUs, connected by a task on all.
fn fits_by_fractions(tasks: &[Plain], cpus: usize) -> bool {
    let speed = Speed::new(cpus, 1).unwrap();
    let all = (1u64 << cpus) - 1;
    let fits = |inside: &dyn Fn(&Plain) -> bool, count: usize| {
        let rates = tasks.iter().filter(|&task| inside(task));
        let sum = rates.fold(Ratio::from_integer(BigInt::from(0)), |sum, task| {
            sum + Ratio::new(BigInt::from(task.0), BigInt::from(task.2))
        });
        *sum.numer() == BigInt::from(0)
            || speed.at_most(&(sum.denom() * BigInt::from(count)), sum.numer())
    };
    fits(&|_| true, cpus)
        && (0..cpus).all(|cpu| fits(&|task| task.3 == 1 << cpu, 1))
        && tasks
            .iter()
            .all(|one| fits(&|task| std::ptr::eq(task, one), 1))
        && tasks.iter().any(|task| task.3 == all)
}

fn bi_level(stream: &mut RandomStream, cpus: u64, load: u64) -> Vec<Plain> {
    let all = (1 << cpus) - 1;
    let mut tasks: Vec<Plain> = (0..1 + stream.below(6))
        .map(|_| {
            let period = [4, 5, 6, 8, 10, 12, 20][stream.below(7) as usize];
            let cost = 1 + stream.below((period * load / 100).max(1));
            let deadline = (period - stream.below(3)).max(cost);
            let bits = [all, 1 << stream.below(cpus)][stream.below(2) as usize];
            (cost, period, deadline, bits)
        })
        .collect();
    tasks[0].3 = all;
    tasks
}

#[test]
fn it_is_the_sums_times_the_speed() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..3_000 {
        let mut stream = RandomStream::new(seed, 45, 0);
        let cpus = 2 + stream.below(3);
        let tasks = bi_level(&mut stream, cpus, 45);
        let expected = fits_by_fractions(&tasks, cpus as usize);
        assert_eq!(is_shown(&tasks), expected, "seed {seed}: {tasks:?}");
        match expected {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes > 300 && no > 300, "{yes} {no}");
}

#[test]
fn only_trees_of_two_levels_are_spoken_of() {
    let light = |bits| (1, 100, 100, bits);
    for (masks, place) in [
        (vec![0b1111, 0b0011, 0b0001], Some(2)),
        (vec![0b1111, 0b0001, 0b0011], Some(2)),
        (vec![0b1111, 0b0010, 0b0011], Some(2)),
        (vec![0b011, 0b110], Some(1)),
        (vec![0b1111, 0b0011, 0b1100, 0b0011], None),
        // Parts by themselves, of one, two and again two levels.
        (vec![0b1, 0b110, 0b010, 0b111000, 0b1000, 0b110000], None),
    ] {
        let tasks: Vec<Plain> = masks.iter().map(|&bits| light(bits)).collect();
        let expected = match place {
            Some(place) => Outcome::Fail(NotShown { place }),
            None => Outcome::Pass(()),
        };
        assert_eq!(decide(&tasks), expected, "{masks:?}");
    }
    for task in [
        (0, 4, 4, 1),
        (1, 0, 4, 1),
        (1, 4, 0, 1),
        (1, 4, 4, 0),
        (1, 4, 5, 1),
        (3, 4, 2, 1),
    ] {
        let found = decide(&[light(0b11), task]);
        assert_eq!(found, Outcome::Fail(NotShown { place: 1 }), "{task:?}");
    }
    let whole = (u64::MAX, u64::MAX, u64::MAX, 1);
    assert!(is_shown(&[whole]) && !is_shown(&[whole, whole]));
    assert!(!is_shown(&[whole, (1, 2, 2, 0b11)]));
    let out_of_steps = speedup(&placed(&[light(0b11)]), &mut Steps::at_most(1));
    assert_eq!(out_of_steps, Outcome::StepLimit);
}

/// How many jobs finish late or not at all by the horizon.
fn misses(set: &TaskSet, policy: &str, seed: u64) -> usize {
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed,
        horizon: Instant::from_ns(400),
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(&mut records);
    let mut due = std::collections::BTreeMap::new();
    let mut late = 0;
    for record in &records {
        match record.kind {
            RecordKind::Released { job, deadline } => {
                due.insert(job, deadline);
            }
            RecordKind::Completed { job } => {
                late += usize::from(due.remove(&job).unwrap() < record.at);
            }
            _ => {}
        }
    }
    late + due
        .values()
        .filter(|deadline| deadline.as_ns() <= 400)
        .count()
}

#[test]
fn what_it_shows_is_in_time() {
    let rounds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 50_000,
        None => 1_000,
    };
    let mut shown = 0;
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 45, 1);
        let cpus = 2 + stream.below(3);
        let mut tasks = bi_level(&mut stream, cpus, 20);
        if !is_shown(&tasks) {
            continue;
        }
        for _ in 0..20 {
            let mut more = tasks.clone();
            more[stream.below(tasks.len() as u64) as usize].0 += 1;
            if is_shown(&more) {
                tasks = more;
            }
        }
        shown += 1;
        let task = |&(cost, period, deadline, bits): &Plain| {
            let affinity = Affinity::new(CpuSet::from_bits(bits)).unwrap();
            let [cost, period] = [cost, period].map(Span::from_ns);
            let mut task = Task::periodic("T", cost, period, affinity);
            task.deadline = Span::from_ns(deadline);
            task.offset = Span::from_ns(stream.below(3) * stream.below(period.as_ns()) / 2);
            if seed % 3 == 0 {
                task.arrival = Arrival::Sporadic;
            }
            task
        };
        let set = TaskSet::new("", cpus as usize, tasks.iter().map(task).collect());
        for policy in ["hpa-edf", "strong-edf"] {
            assert_eq!(
                misses(&set, policy, seed),
                0,
                "{policy}, seed {seed}: {set:?}"
            );
        }
    }
    assert!(shown > rounds / 4, "{shown}");
}
