//! The paper's own examples of inversions, and what leaving out each repair does.

use shiftwork_model::{Instant, Repairs, TaskSet};
use shiftwork_trace::InversionKind;

use super::adversary::without;
use super::run::{is_short, run};

const EXAMPLE_5: &str = include_str!("../../../../examples/tang-2021/example-5.toml");
const EXAMPLE_6: &str = include_str!("../../../../examples/tang-2021/example-6.toml");
const EXAMPLE_8: &str = include_str!("../../../../examples/tang-2021/example-8.toml");

const MS: u64 = 1_000_000;

fn example(text: &str, repairs: Repairs) -> TaskSet {
    let mut set = shiftwork_taskset::read(text).unwrap();
    set.scheduler.repairs = Some(repairs);
    set
}

#[test]
fn example_8_an_inversion_lasts_to_the_end_of_the_migrating_job_at_most() {
    let set = example(EXAMPLE_8, Repairs::ALL);
    let found = run(&set, "dl-sp", 8 * MS).inversions;
    let [one] = found[..] else {
        panic!("{found:?}")
    };
    let migrating = &set.tasks[one.in_the_way.unwrap().task.index()];
    assert_eq!(set.tasks[one.job.task.index()].name, "t1");
    assert_eq!(
        (migrating.name.as_str(), one.in_the_way.unwrap().number),
        ("t2", 1)
    );
    // t2 runs from 0 on and costs 6 ms; t1 is released at 1.
    assert_eq!(one.from, Instant::from_ns(MS));
    assert_eq!(one.to, Instant::from_ns(6 * MS));
    assert!(is_short(&set, &one), "{one:?}");
    let later = run(&set, "dl-sp", 400 * MS).inversions;
    assert!(later.iter().all(|one| is_short(&set, one)), "{later:?}");
    assert_eq!(run(&set, "strong-edf", 400 * MS).inversions, []);
}

#[test]
fn example_6_a_push_that_counts_the_pushed_job_makes_the_wrong_job_wait() {
    let set = example(EXAMPLE_6, without("push-without-itself"));
    let found = run(&set, "dl-sp", 40 * MS).inversions;
    let t2 = found
        .iter()
        .find(|one| set.tasks[one.job.task.index()].name == "t2");
    let t2 = t2.unwrap();
    assert_eq!(t2.kind, InversionKind::AffinityRelated);
    assert_eq!(t2.from, Instant::from_ns(10 * MS));
    assert_eq!(t2.to, Instant::from_ns(15 * MS));
    let set = example(EXAMPLE_6, Repairs::ALL);
    assert_eq!(run(&set, "dl-sp", 40 * MS).inversions, []);
}

#[test]
fn example_5_only_the_bypass_makes_tasks_later_and_later() {
    let horizon = 3_960 * MS;
    let most_late = |repairs| {
        let set = example(EXAMPLE_5, repairs);
        let longest = run(&set, "dl-sp", horizon).longest;
        [1, 3].map(|place| (longest[place] / MS).saturating_sub(2))
    };
    assert_eq!(most_late(without("no-bypass")), [60, 60]);
    assert_eq!(most_late(Repairs::NONE), [60, 60]);
    assert_eq!(most_late(without("push-without-itself")), [0, 0]);
    assert_eq!(most_late(Repairs::ALL), [0, 0]);
}
