//! Examples of textbooks and papers, with the numbers that are printed there, each derived again by
//! hand in a comment. Those that belong to one test only are beside that test's own tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::affinity::{Feasible, feasibility};
use shiftwork_analysis::global_edf::{bak, bar, bcl, bcli, ffdbf, gfb, load, rta};
use shiftwork_analysis::uniprocessor::{fp_rta, qpa};
use shiftwork_analysis::{NotShown, Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Affinity, CpuSet, Priority, Share, Span, Task, TaskSet};

fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic {
        cost: Span::from_ns(cost),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
    }
}

/// Tasks with implicit deadlines.
fn implicit(tasks: &[(u64, u64)]) -> Vec<Sporadic> {
    let tasks = tasks.iter();
    tasks
        .map(|&(cost, period)| sporadic(cost, period, period))
        .collect()
}

fn edf(tasks: &[Sporadic]) -> bool {
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    matches!(qpa(tasks, whole, &mut Steps::ordinary()), Outcome::Pass(()))
}

/// Under fixed priorities, the first task the most urgent.
fn fixed(tasks: &[Sporadic]) -> bool {
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    let ranked = tasks.iter().zip(1..).map(|(&task, rank)| Ranked {
        task,
        priority: Priority::new(rank).unwrap(),
    });
    let ranked: Vec<Ranked> = ranked.collect();
    matches!(
        fp_rta(&ranked, whole, &mut Steps::ordinary()),
        Outcome::Pass(())
    )
}

/// The worst response time of the last task: the shortest deadline that is met.
fn response(tasks: &[Sporadic]) -> u64 {
    let (last, urgent) = tasks.split_last().unwrap();
    let is_met = |deadline: &u64| {
        let last = Sporadic {
            deadline: Span::from_ns(*deadline),
            ..*last
        };
        fixed(&[urgent, &[last]].concat())
    };
    (1..1_000).find(is_met).unwrap()
}

/// C. Liu, J. Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment",
/// JACM 20(1), 1973, Theorem 3: two tasks with C1 = T2 - T1 and C2 = 2 T1 - T2 fully utilize the
/// processor under rate-monotonic priorities, at the least at 2 (sqrt 2 - 1) = 0.828. With T = 5, 7 that
/// is C = 2, 3, at 29/35 = 0.8286. Theorem 7: EDF goes on to 1.
#[test]
fn liu_and_layland_full_utilization_of_two_tasks() {
    assert!(fixed(&implicit(&[(2, 5), (3, 7)])));
    assert!(!fixed(&implicit(&[(3, 5), (3, 7)])));
    assert!(!fixed(&implicit(&[(2, 5), (4, 7)])));
    // 3/5 + 2/5 is all there is; 2/5 + 4/7 = 34/35 is not.
    assert!(edf(&implicit(&[(2, 5), (4, 7)])));
    assert!(edf(&implicit(&[(3, 5), (2, 5)])));
    assert!(!edf(&implicit(&[(3, 5), (3, 7)])));
}

/// A. Burns, A. Wellings, "Real-Time Systems and Programming Languages", response-time analysis: C = 3,
/// 3, 5 and T = 7, 12, 20 respond within 3, 6, 20; and C = 5, 10, 40 with T = 20, 40, 80, at a
/// utilization of 1, within 5, 15, 80: 40, then 40 + 10 + 10 = 60, 40 + 20 + 15 = 75, 40 + 20 + 20 = 80.
#[test]
fn burns_and_wellings_response_times() {
    for (tasks, responses) in [
        ([(3, 7), (3, 12), (5, 20)], [3, 6, 20]),
        ([(5, 20), (10, 40), (40, 80)], [5, 15, 80]),
    ] {
        let tasks = implicit(&tasks);
        for (last, expected) in responses.into_iter().enumerate() {
            assert_eq!(response(&tasks[..=last]), expected, "task {last}");
        }
    }
}

/// J. Lehoczky, "Fixed Priority Scheduling of Periodic Task Sets with Arbitrary Deadlines", RTSS 1990: C
/// = 26, 62 and T = 70, 100. The jobs of the second respond in 114, 102, 116, 104, 118, 106, 94; the
/// worst is the fifth, which ends at 5 x 62 + 8 x 26 = 518, 118 after its release at 400.
#[test]
fn lehoczky_worst_is_not_the_first_job() {
    assert_eq!(response(&implicit(&[(26, 70), (62, 100)])), 118);
}

/// G. Buttazzo, "Hard Real-Time Computing Systems", the example of the processor demand criterion: C = 2,
/// 2, 3, D = 4, 5, 7, T = 6, 8, 9. Up to 4, 5, 7, 10, 13, 16, 21, 22 at most 2, 4, 7, 9, 11, 16, 18, 20
/// are due. At 7 and 16 nothing is left, so no cost can grow.
#[test]
fn buttazzo_processor_demand() {
    let tasks = [sporadic(2, 6, 4), sporadic(2, 8, 5), sporadic(3, 9, 7)];
    assert!(edf(&tasks));
    for place in 0..3 {
        let mut more = tasks;
        more[place].cost += Span::from_ns(1);
        assert!(!edf(&more), "task {place}");
    }
}

type Test = fn(&[Sporadic], usize, &mut Steps) -> Outcome<NotShown>;

const GLOBAL: [(&str, Test); 8] = [
    ("gfb", gfb),
    ("bak", bak),
    ("bcl", bcl),
    ("bcli", |tasks, cpus, steps| {
        without_bounds(bcli(tasks, cpus, steps))
    }),
    ("rta", |tasks, cpus, steps| {
        without_bounds(rta(tasks, cpus, steps))
    }),
    ("bar", bar),
    ("ffdbf", ffdbf),
    ("load", load),
];

fn without_bounds(outcome: Outcome<NotShown, Vec<Span>>) -> Outcome<NotShown> {
    match outcome {
        Outcome::Pass(_) => Outcome::Pass(()),
        Outcome::Fail(not_shown) => Outcome::Fail(not_shown),
        Outcome::StepLimit => Outcome::StepLimit,
    }
}

/// S. Dhall, C. Liu, "On a Real-Time Scheduling Problem", Operations Research 26(1), 1978: m light tasks
/// and one heavy one miss a deadline under global EDF at a utilization hardly above 1. Here m times C = 2, T = 100 and once C = 100, T = 101: the
/// light ones are due first and run until 2, so the heavy one ends at 102. Divided, it is feasible.
#[test]
fn dhall_effect() {
    for cpus in [2, 3, 8] {
        let mut tasks = vec![(2, 100); cpus];
        tasks.push((100, 101));
        for (name, test) in GLOBAL {
            let found = test(&implicit(&tasks), cpus, &mut Steps::ordinary());
            assert!(matches!(found, Outcome::Fail(_)), "{name}, {cpus} CPUs");
        }
        let ns = Span::from_ns;
        let all = Affinity::new(CpuSet::first(cpus)).unwrap();
        let tasks = tasks.iter().enumerate().map(|(place, &(cost, period))| {
            Task::periodic(&format!("T{place}"), ns(cost), ns(period), all)
        });
        let set = TaskSet::new("Dhall", cpus, tasks.collect());
        assert_eq!(feasibility(&set).verdict, Feasible::Yes);
    }
}

/// J. Goossens, S. Funk, S. Baruah, "Priority-driven scheduling of periodic task systems on
/// multiprocessors", Real-Time Systems 25, 2003: U <= m - (m - 1) u_max. Three tasks of one half on two
/// CPUs are at the limit, 3/2 = 2 - 1/2; five of one half on four, 5/2 = 4 - 3/2; nothing may be added.
#[test]
fn goossens_funk_and_baruah_at_the_limit() {
    for (count, cpus) in [(3, 2), (5, 4)] {
        let mut tasks = vec![(1, 2); count];
        let passes = |tasks: &[(u64, u64)]| {
            let found = gfb(&implicit(tasks), cpus, &mut Steps::ordinary());
            matches!(found, Outcome::Pass(()))
        };
        assert!(passes(&tasks), "{cpus} CPUs");
        tasks.push((1, 1_000_000_007));
        assert!(!passes(&tasks), "{cpus} CPUs");
    }
}
