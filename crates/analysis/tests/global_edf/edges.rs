//! What goes wrong elsewhere: equality, no tasks, no CPUs, few tasks, huge numbers.

use super::*;

fn found(name: &str, tasks: &[Sporadic], cpus: usize) -> Option<bool> {
    let pair = PAIRS.iter().find(|pair| pair.name == name).unwrap();
    (pair.found)(tasks, cpus, &mut Steps::ordinary()).map(|(passed, _)| passed)
}

#[test]
fn no_tasks_pass_on_any_number_of_cpus() {
    for pair in &PAIRS {
        for cpus in [0, 1, 7, 1024, usize::MAX] {
            assert_eq!(found(pair.name, &[], cpus), Some(true), "{}", pair.name);
        }
    }
}

#[test]
fn no_cpus_are_too_few() {
    for pair in &PAIRS {
        let verdict = found(pair.name, &[sporadic(1, 10, 10)], 0);
        assert_eq!(verdict, Some(false), "{}", pair.name);
    }
}

#[test]
fn few_light_tasks_pass_on_many_cpus() {
    let tasks = [sporadic(3, 10, 10), sporadic(1, 7, 5)];
    for pair in &PAIRS {
        for cpus in [2, 3, 7, 1024, 1 << 40] {
            let verdict = found(pair.name, &tasks, cpus);
            assert_eq!(verdict, Some(true), "{} on {cpus}", pair.name);
        }
    }
}

#[test]
fn on_one_cpu_the_tests_by_densities_and_demand_are_as_good_as_one_can_be() {
    // U = 1, which EDF on one CPU meets.
    let full = [sporadic(1, 2, 2), sporadic(1, 3, 3), sporadic(1, 6, 6)];
    for name in ["gfb", "load", "ffdbf"] {
        assert_eq!(found(name, &full, 1), Some(true), "{name}");
    }
    let fuller = [
        sporadic(1, 2, 2),
        sporadic(1, 3, 3),
        sporadic(166_666_667, 1_000_000_000, 1_000_000_000),
    ];
    for pair in &PAIRS {
        assert_eq!(found(pair.name, &fuller, 1), Some(false), "{}", pair.name);
    }
}

#[test]
fn sums_that_meet_the_threshold_exactly_pass_and_the_least_more_does_not() {
    // Thirds cannot be written in binary: 7 x 1/3 = 3 - 2 x 1/3, and the load may be 2 - 1/3.
    for (name, count) in [("gfb", 7), ("ffdbf", 7), ("load", 5)] {
        let mut tasks = vec![sporadic(1, 3, 3); count];
        assert_eq!(found(name, &tasks, 3), Some(true), "{name}");
        tasks.push(sporadic(1, 1 << 61, 1 << 61));
        assert_eq!(found(name, &tasks, 3), Some(false), "{name}");
    }
    let mut tasks = vec![sporadic(1, 3, 3); 7];
    assert_eq!(found("bak", &tasks, 3), Some(true));
    tasks.push(sporadic(1, 1 << 50, 1 << 50));
    assert_eq!(found("bak", &tasks, 3), Some(false));
}

#[test]
fn a_full_machine_is_looked_at_until_all_repeats() {
    // U = 1 = what one CPU allows; the first interval that demands too much is the second
    // hyperperiod's 24, beyond every deadline.
    let tasks = [sporadic(3, 9, 5), sporadic(8, 12, 12)];
    assert_eq!(found("load", &tasks, 1), Some(false));
    let tasks = [sporadic(3, 9, 7), sporadic(8, 12, 12)];
    assert_eq!(found("load", &tasks, 1), Some(true));
    // Where that is too far away, nothing is said.
    let far = (1 << 61) - 1;
    let tasks = [sporadic(1, 2, 1), sporadic(far, 2 * far, 2 * far)];
    assert_eq!(found("load", &tasks, 1), None);
}

#[test]
fn a_speed_above_the_greatest_density_may_be_the_right_one() {
    // At 24 two jobs that run at speed 1/2 have 12 of 52 left each, with 14 due: 38 of 36. At speed
    // 11/20 they have 8 left: 30 of 34.8.
    let tasks = [
        sporadic(52, 1000, 104),
        sporadic(52, 1000, 104),
        sporadic(7, 1000, 24),
        sporadic(7, 1000, 24),
    ];
    assert_eq!(found("ffdbf", &tasks, 2), Some(true));
}

#[test]
fn no_test_passes_what_is_known_to_miss() {
    // S. Dhall, C. Liu, "On a Real-Time Scheduling Problem", Operations Research 26(1), 1978: short jobs
    // come first on all CPUs, and a long one with hardly a later deadline is late.
    let mut light_and_full = vec![sporadic(2, 100, 100); 4];
    light_and_full.push(sporadic(100, 101, 101));
    // The usual illustration of what partitioning and global EDF cannot do: U = 2 on two CPUs.
    let two_thirds = vec![sporadic(2, 3, 3); 3];
    for (tasks, cpus) in [(light_and_full, 4), (two_thirds, 2)] {
        for pair in &PAIRS {
            let verdict = found(pair.name, &tasks, cpus);
            assert_eq!(verdict, Some(false), "{} on {cpus}", pair.name);
        }
    }
}

#[test]
fn bcl_knows_both_cases_of_its_condition() {
    // The others leave no room: 1 + 1 = 2 x 1. Whole works, so equality passes.
    let tasks = [sporadic(2, 3, 3), sporadic(1, 9, 9), sporadic(1, 9, 9)];
    assert_eq!(found("bcl", &tasks, 2), Some(true));
    // Both works are cut, so equality does not.
    let tasks = [sporadic(2, 3, 3), sporadic(2, 9, 9), sporadic(2, 9, 9)];
    assert_eq!(found("bcl", &tasks, 2), Some(false));
    // No interfering task, but no slack either: neither case, as published.
    assert_eq!(found("bcl", &[sporadic(3, 3, 3)], 2), Some(false));
}

#[test]
fn deadlines_outside_the_domain_fail_with_the_first_such_task() {
    let tasks = [sporadic(1, 10, 10), sporadic(1, 10, 11), sporadic(1, 9, 12)];
    let outcomes = [
        bak(&tasks, 4, &mut Steps::ordinary()),
        bcl(&tasks, 4, &mut Steps::ordinary()),
        bar(&tasks, 4, &mut Steps::ordinary()),
    ];
    for outcome in outcomes {
        assert_eq!(outcome, Outcome::Fail(NotShown { place: 1 }));
    }
    for name in ["gfb", "load", "ffdbf"] {
        assert_eq!(found(name, &tasks, 4), Some(true), "{name}");
    }
}

#[test]
fn impossible_tasks_fail_with_their_place() {
    for bad in [
        sporadic(0, 5, 5),
        sporadic(1, 0, 5),
        sporadic(1, 5, 0),
        sporadic(6, 5, 9),
        sporadic(6, 9, 5),
    ] {
        let tasks = [sporadic(1, 5, 5), bad];
        for outcome in [
            gfb(&tasks, 4, &mut Steps::ordinary()),
            load(&tasks, 4, &mut Steps::ordinary()),
            ffdbf(&tasks, 4, &mut Steps::ordinary()),
        ] {
            assert_eq!(outcome, Outcome::Fail(NotShown { place: 1 }), "{bad:?}");
        }
    }
}

#[test]
fn huge_and_tiny_times_do_not_overflow() {
    const TIMES: [u64; 7] = [0, 1, 2, 1_000_000_007, (1 << 62) - 1, 1 << 62, u64::MAX];
    let mut stream = RandomStream::new(0, 62, 4);
    let mut time = || match stream.below(3) {
        0 => TIMES[stream.below(7) as usize],
        1 => stream.bits() >> stream.below(64),
        _ => 1 + stream.below(100),
    };
    for _ in 0..rounds(3_000) {
        let count = time() % 7;
        let tasks: Vec<Sporadic> = (0..count)
            .map(|_| sporadic(time(), time(), time()))
            .collect();
        let possible: Vec<Sporadic> = tasks
            .iter()
            .map(|task| {
                let [one, two, three] = [task.cost, task.period, task.deadline].map(Span::as_ns);
                let cost = one.min(two).min(three).max(1);
                sporadic(cost, two.max(cost), three.max(cost))
            })
            .collect();
        let cpus = (time() % 5) as usize;
        for pair in &PAIRS {
            for tasks in [&tasks, &possible] {
                (pair.found)(tasks, cpus, &mut Steps::at_most(2_000));
            }
        }
    }
}

#[test]
fn ten_thousand_tasks_are_decided_or_end_by_the_steps() {
    let mut stream = RandomStream::new(0, 62, 5);
    let tasks: Vec<Sporadic> = (0..10_000)
        .map(|_| {
            let period = 10_000_000 + stream.below(90_000_000);
            sporadic(
                1 + period / 2_000,
                period,
                period - stream.below(period / 2),
            )
        })
        .collect();
    for pair in &PAIRS {
        (pair.found)(&tasks, 16, &mut Steps::at_most(200_000));
    }
    assert_eq!(found("gfb", &tasks, 16), Some(true));
}
