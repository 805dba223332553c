//! The examples of Tang, Anderson and Abeni, RTNS 2021, exactly: times, CPUs and tardiness.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_model::{Instant, Repairs, Span, TaskId, TaskSet};
use shiftwork_papers::schedule::Schedule;
use shiftwork_papers::tang_2021::{all_but, example, lateness_by_occurrence, simulate};
use shiftwork_policy::Ties;

const T1: TaskId = TaskId::from_index(0);
const T2: TaskId = TaskId::from_index(1);
const T3: TaskId = TaskId::from_index(2);
const T4: TaskId = TaskId::from_index(3);
const T5: TaskId = TaskId::from_index(4);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_ms(ms)
}

fn run(set: &TaskSet, policy: &str, ms: u64) -> Schedule {
    Schedule::simulate(set, policy, at(ms)).unwrap()
}

fn slots(run: &Schedule, ms: u64) -> Vec<String> {
    run.slots(Span::from_ms(1), at(ms))
}

fn tardiness_ms(run: &Schedule, task: TaskId) -> Vec<u64> {
    let whole = |span: &Span| span.as_ns() / 1_000_000;
    run.tardiness(task).iter().map(whole).collect()
}

fn finishes_us(run: &Schedule, task: TaskId) -> Vec<u64> {
    let finished = run.of_task(task).filter_map(|fate| fate.finish);
    finished.map(|at| at.as_ns() / 1_000).collect()
}

#[test]
fn example_1_two_tasks_that_take_turns_are_late_by_88_more_each_period() {
    let set = example("example-1").unwrap();
    let run = run(&set, "dl-linux", 1_900);
    assert_eq!(
        tardiness_ms(&run, T1)[..10],
        [0, 82, 170, 258, 346, 434, 522, 610, 698, 786]
    );
    assert_eq!(
        tardiness_ms(&run, T2)[..10],
        [78, 166, 254, 342, 430, 518, 606, 694, 782, 870]
    );
    let alternates = |(index, stretch): (usize, &shiftwork_papers::schedule::Stretch)| {
        let start = at(94 * index as u64);
        stretch.job.task == [T1, T2][index % 2] && stretch.start == start
    };
    assert!(run.stretches.iter().enumerate().all(alternates));
}

#[test]
fn example_4_a_moment_of_sleep_after_a_late_job_makes_its_period_longer() {
    let set = example("example-4").unwrap();
    let run = run(&set, "dl-linux", 1_200);
    // Every job runs for 63 ms in 126 ms, and sleeps for a microsecond.
    let expected: Vec<u64> = (1..=9).map(|job| 126_001 * job).collect();
    assert_eq!(finishes_us(&run, T3), expected);
    assert_eq!(
        tardiness_ms(&run, T3),
        [26, 52, 78, 104, 130, 156, 182, 208, 234]
    );
}

#[test]
fn example_4_is_late_once_where_the_others_are_strictly_periodic() {
    let set = example("example-4-periodic").unwrap();
    let run = run(&set, "dl-linux", 1_000);
    let finishes = finishes_us(&run, T3);
    assert_eq!(finishes[..4], [126_001, 226_001, 326_001, 426_001]);
    assert!(tardiness_ms(&run, T3).iter().all(|late| *late == 26));
}

/// What t2 and t4 have been late after each occurrence, in ms.
fn after_each_occurrence(run: &Schedule) -> Vec<(u64, u64)> {
    let pairs = lateness_by_occurrence(run).into_iter();
    let in_ms = pairs.map(|pair| pair.map(|late| late.as_ns() / 1_000_000));
    in_ms.map(|[t2, t4]| (t2, t4)).collect()
}

const FIRST_TEN: [(u64, u64); 10] = [
    (0, 2),
    (2, 2),
    (2, 4),
    (4, 4),
    (4, 6),
    (6, 6),
    (6, 8),
    (8, 8),
    (8, 10),
    (10, 10),
];

#[test]
fn example_5_lateness_grows_by_two_with_every_second_occurrence() {
    let set = example("example-5").unwrap();
    let run = run(&set, "dl-linux", 4_100);
    let lateness = after_each_occurrence(&run);
    assert_eq!(lateness[..10], FIRST_TEN);
    assert_eq!(lateness[59], (60, 60));
    let release = run.of_task(T3).nth(59).unwrap().release;
    assert_eq!(release, at(3_956));
}

#[test]
fn example_5_is_never_late_with_the_repairs_and_where_running_jobs_shift() {
    for name in ["example-5", "example-5-paper"] {
        let set = example(name).unwrap();
        for policy in ["dl-sp", "strong-edf", "hpa-edf"] {
            let run = run(&set, policy, 4_100);
            for (id, _) in set.iter() {
                assert!(
                    run.tardiness(id).iter().all(|late| late.is_zero()),
                    "{name} {policy} {id:?}"
                );
            }
        }
        for ties in [Ties::Fifo, Ties::Running] {
            let run = simulate(&set, Repairs::ALL, ties, at(200)).unwrap();
            let late = set.iter().flat_map(|(id, _)| run.tardiness(id));
            assert_eq!(late.max(), Some(Span::ZERO), "{name} {ties:?}");
        }
    }
}

#[test]
fn example_5_as_the_paper_draws_it() {
    let set = example("example-5-paper").unwrap();
    let run = simulate(&set, Repairs::NONE, Ties::Running, at(4_100)).unwrap();
    let lateness = after_each_occurrence(&run);
    assert_eq!(lateness[..10], FIRST_TEN);
    assert_eq!(lateness[59], (60, 60));
    let worst = |task| run.worst_of_releases_before(task, at(3_962));
    assert_eq!(
        [T1, T3, T5].map(|task| worst(task).as_ns() / 1_000_000),
        [58, 57, 60]
    );
    assert_eq!(
        slots(&run, 24),
        [
            "22222211----222222112222",
            "------2222223-----444444",
            "44444455444444444455----"
        ]
    );
    let repaired = simulate(&set, Repairs::ALL, Ties::Running, at(170)).unwrap();
    assert_eq!(
        slots(&repaired, 12),
        ["221144444444", "--2222223---", "444455--2222"]
    );
}

#[test]
fn example_5_with_periodic_releases_is_late_by_little() {
    let mut set = example("example-5").unwrap();
    for task in [0, 2, 4] {
        set.tasks[task].arrival = shiftwork_model::Arrival::Periodic;
    }
    let run = run(&set, "dl-linux", 6_000);
    let worst = |task| {
        let late = run.tardiness(task).into_iter().max().unwrap();
        late.as_ns() / 1_000_000
    };
    assert!([T1, T2, T3, T4, T5].iter().all(|&task| worst(task) <= 4));
}

#[test]
fn example_6_a_push_counts_the_task_that_it_pushes() {
    let set = example("example-6").unwrap();
    assert_eq!(
        slots(&run(&set, "dl-linux", 70), 25),
        ["33333--1111111111---33333", "-------222333332222222---"]
    );
    let repairs = Repairs {
        push_without_itself: true,
        ..Repairs::NONE
    };
    for repaired in [
        simulate(&set, repairs, Ties::Fifo, at(70)).unwrap(),
        run(&set, "dl-sp", 70),
    ] {
        assert_eq!(
            slots(&repaired, 22),
            ["33333--111333331111111", "-------2222222222---33"]
        );
    }
}

#[test]
fn example_7_a_task_that_changes_its_affinity_never_runs() {
    let set = example("example-7").unwrap();
    let run = simulate(&set, Repairs::NONE, Ties::Running, at(40)).unwrap();
    assert_eq!(run.executed(T1, at(40)), Span::ZERO);
    let repairs = Repairs {
        no_changes: true,
        ..Repairs::NONE
    };
    let repaired = simulate(&set, repairs, Ties::Running, at(40)).unwrap();
    assert_eq!(slots(&repaired, 4), ["2211".to_owned(), "--22".to_owned()]);
}

#[test]
fn example_8_waits_for_the_job_that_may_move_and_no_longer() {
    let set = example("example-8").unwrap();
    let longest = |policy| {
        let found = run(&set, policy, 40).summary(&set).inversions.unwrap();
        found.affinity_related.longest_ns
    };
    assert_eq!(
        slots(&run(&set, "dl-sp", 40), 18),
        ["222222111--111--22", "333333332222223333"]
    );
    assert_eq!(longest("dl-sp"), Some(5_000_000));
    assert_eq!(longest("strong-edf"), None);
}

#[test]
fn under_linux_example_5_moves_only_where_a_bound_task_takes_the_cpu() {
    let set = example("example-5").unwrap();
    let run = run(&set, "dl-linux", 4_100);
    let takes = |cpu, at| {
        let mut others = run
            .stretches
            .iter()
            .filter(|of| (of.cpu, of.start) == (cpu, at));
        others.any(|of| [T1, T3, T5].contains(&of.job.task))
    };
    for task in [T2, T4] {
        let of_task: Vec<_> = run
            .stretches
            .iter()
            .filter(|of| of.job.task == task)
            .collect();
        let moves = of_task.windows(2).filter(|pair| pair[0].cpu != pair[1].cpu);
        let mut count = 0;
        for pair in moves {
            assert!(takes(pair[0].cpu, pair[0].end), "{pair:?}");
            count += 1;
        }
        assert_eq!(count, 60, "{task:?}");
    }
}

#[test]
fn an_overload_of_one_cpu_is_let_in_without_the_repaired_admission() {
    let set = example("section-4-3").unwrap();
    let repaired = run(&set, "dl-sp", 2_000);
    assert_eq!(repaired.refusals().len(), 1);
    assert_eq!(repaired.worst(), Span::ZERO);
    let repairs = all_but("admission").unwrap();
    let run = simulate(&set, repairs, Ties::Fifo, at(2_000)).unwrap();
    assert_eq!(run.refusals(), []);
    assert!(run.worst() >= Span::from_ms(300));
}
