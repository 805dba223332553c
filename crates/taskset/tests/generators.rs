//! Generated task sets: what the options ask for, and the same bytes for the same key.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_model::{AffinityKind, CapacitySum, Span, TaskSet};
use shiftwork_taskset::generate::{
    Deadlines, Distribution, Key, Options, Periods, Shape, Spread, Utilizations, generate,
    is_feasible,
};
use shiftwork_taskset::{read, write};

fn key(index: u64) -> Key {
    Key {
        seed: 1,
        cell: 2,
        index,
    }
}

fn total(set: &TaskSet) -> f64 {
    set.tasks
        .iter()
        .map(|task| task.utilization().as_f64())
        .sum()
}

/// The workload of Bonifaci et al. 2016, section V: two sockets of twelve cores.
fn bonifaci(tasks: usize, total: f64) -> Options {
    Options {
        cpus: 24,
        utilizations: Utilizations::RandFixedSum { tasks, total },
        shape: Shape::ThreeLevel(12),
        min_cost: Span::from_us(500),
        feasible: true,
        ..Options::default()
    }
}

/// FNV-1a, to pin a long text in a short number.
fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_same_key_gives_the_same_bytes_for_ever() {
    let text = |options: &Options, key| write(&generate(options, key).unwrap());
    let options = bonifaci(48, 18.0);
    let arbitrary = Options {
        utilizations: Utilizations::UUniFastDiscard {
            tasks: 8,
            total: 2.0,
        },
        shape: Shape::Arbitrary,
        deadlines: Deadlines::Arbitrary,
        ..Options::default()
    };
    assert_eq!(text(&options, key(0)), text(&options, key(0)));
    assert_ne!(text(&options, key(0)), text(&options, key(1)));
    let prints = [
        fingerprint(&text(&options, key(0))),
        fingerprint(&text(&arbitrary, key(0))),
    ];
    assert_eq!(
        prints,
        [16_246_491_510_414_959_560, 1_630_249_680_429_496_627],
        "generated task sets changed; studies that name a seed change too"
    );
}

#[test]
fn the_workload_of_bonifaci_et_al_is_feasible_and_as_asked() {
    for tasks in [48, 96, 240] {
        for share in [0.75, 0.85] {
            let options = bonifaci(tasks, 24.0 * share);
            let Ok(set) = generate(&options, key(tasks as u64)) else {
                panic!("no feasible set of {tasks} tasks at {share}");
            };
            assert_eq!(set.tasks.len(), tasks);
            assert_eq!(set.affinity_kind(), AffinityKind::Laminar);
            assert_eq!(set.platform.clusters.len(), 2);
            assert!((total(&set) - 24.0 * share).abs() < 0.02, "{}", total(&set));
            assert!(is_feasible(&set));
            assert!(set.tasks.iter().all(|task| task.cost >= options.min_cost));
            let range = Span::from_ms(1)..=Span::from_s(1);
            assert!(set.tasks.iter().all(|task| range.contains(&task.period)));
            assert_eq!(read(&write(&set)), Ok(set));
        }
    }
}

#[test]
fn rounding_to_nanoseconds_barely_changes_the_total() {
    for index in 0..50 {
        let set = generate(&Options::default(), key(index)).unwrap();
        assert!((total(&set) - 2.0).abs() < 1e-5, "{}", total(&set));
    }
}

#[test]
fn every_way_to_draw_gives_a_set_that_a_file_can_hold() {
    let shapes = [
        Shape::Global,
        Shape::Partitioned,
        Shape::BiLevel,
        Shape::Clustered(3),
        Shape::ThreeLevel(4),
        Shape::Laminar,
        Shape::Arbitrary,
    ];
    let mut ways = vec![
        Utilizations::RandFixedSum {
            tasks: 12,
            total: 3.0,
        },
        Utilizations::UUniFast {
            tasks: 5,
            total: 0.9,
        },
        Utilizations::UUniFastDiscard {
            tasks: 12,
            total: 3.0,
        },
    ];
    for (_, distribution) in Distribution::ALL {
        ways.push(Utilizations::UntilCap {
            distribution,
            cap: 3.0,
        });
    }
    for (index, utilizations) in ways.into_iter().enumerate() {
        for shape in shapes {
            for deadlines in [
                Deadlines::Implicit,
                Deadlines::Constrained,
                Deadlines::Arbitrary,
            ] {
                let options = Options {
                    cpus: 8,
                    utilizations: utilizations.clone(),
                    shape,
                    deadlines,
                    periods: Periods {
                        spread: Spread::Uniform,
                        ..Periods::default()
                    },
                    ..Options::default()
                };
                let set = generate(&options, key(index as u64)).unwrap();
                assert_eq!(read(&write(&set)).as_ref(), Ok(&set), "{options:?}");
                let mut sum = CapacitySum::default();
                set.tasks
                    .iter()
                    .for_each(|task| sum.add(task.utilization()));
                assert!(sum.floor() >> 64 <= 3, "{options:?}");
            }
        }
    }
}

#[test]
fn options_that_nothing_satisfies_say_what_would_be_accepted() {
    let refused = |options: Options| generate(&options, key(0)).unwrap_err().to_string();
    let default = Options::default;
    let utilizations = |utilizations| Options {
        utilizations,
        ..default()
    };
    let periods = |shortest, longest, granularity| Options {
        periods: Periods {
            shortest,
            longest,
            granularity,
            ..Periods::default()
        },
        ..default()
    };
    let ms = Span::from_ms;
    for (options, message) in [
        (
            Options {
                cpus: 0,
                ..default()
            },
            "a platform cannot have 0 CPUs; write 1 to 1024",
        ),
        (
            utilizations(Utilizations::RandFixedSum {
                tasks: 0,
                total: 1.0,
            }),
            "there cannot be 0 tasks; write 1 to 12000",
        ),
        (
            utilizations(Utilizations::RandFixedSum {
                tasks: 3,
                total: 3.5,
            }),
            "3 tasks cannot have a total utilization of 3.5; write more than 0 and at most 3",
        ),
        (
            utilizations(Utilizations::RandFixedSum {
                tasks: 3,
                total: f64::NAN,
            }),
            "3 tasks cannot have a total utilization of NaN; write more than 0 and at most 3",
        ),
        (
            utilizations(Utilizations::UUniFast {
                tasks: 3,
                total: 1.5,
            }),
            "UUniFast cannot share a utilization of 1.5; write at most 1, or use UUniFast-discard \
             or randfixedsum",
        ),
        (
            utilizations(Utilizations::UntilCap {
                distribution: Distribution::UniformLight,
                cap: -1.0,
            }),
            "a total utilization cannot be capped at -1; write more than 0 and at most 1024",
        ),
        (
            periods(ms(5), ms(3), ms(1)),
            "periods cannot be from 5ms to 3ms; write the shorter first, and at most 10 years",
        ),
        (
            periods(ms(5), ms(9), ms(2)),
            "the shortest period 5ms is no multiple of 2ms; write a multiple of the granularity \
             above zero",
        ),
        (
            periods(ms(5), ms(9), Span::ZERO),
            "a granularity of zero has no multiples; write more",
        ),
        (
            Options {
                shape: Shape::Clustered(9),
                ..default()
            },
            "4 CPUs cannot be in clusters of 9; write 1 to 4",
        ),
        (
            Options {
                min_cost: Span::from_s(2),
                ..default()
            },
            "no task costs 2s or more; write at most 1s, the longest period",
        ),
        (
            Options {
                utilizations: Utilizations::RandFixedSum {
                    tasks: 10,
                    total: 5.0,
                },
                feasible: true,
                attempts: 20,
                ..default()
            },
            "none of 20 task sets was feasible; lower the utilization, choose wider affinities or \
             allow more attempts",
        ),
    ] {
        assert_eq!(refused(options), message);
    }
}
