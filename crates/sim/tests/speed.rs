//! CPUs below full speed, with schedules computed by hand.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{AT, NS, finishes, id, options, run, set, simulate, story};
use shiftwork_model::{Action, Affinity, Change, CpuSet, Frequency, Phase, Share, TaskSet, Work};

const MS: u64 = 1_000_000;

/// Capacities in thousandths of the fastest.
fn with_capacities(mut set: TaskSet, thousandths: &[u32]) -> TaskSet {
    let share = |&thousandths: &u32| Share::from_billionths(thousandths * 1_000_000).unwrap();
    set.platform.capacities = thousandths.iter().map(share).collect();
    set
}

fn scaled(mut set: TaskSet) -> TaskSet {
    set.platform.frequency = Frequency::GrubPa;
    set
}

fn on(list: &str) -> Affinity {
    Affinity::new(list.parse::<CpuSet>().unwrap()).unwrap()
}

/// Tardiness of each completed job of the task; jobs are due every `period` from the first on.
fn tardiness(finishes: &[u64], period: u64) -> Vec<u64> {
    let late = |(job, finish): (u64, &u64)| finish.saturating_sub((job + 1) * period);
    (0..).zip(finishes).map(late).collect()
}

#[test]
fn a_cpu_at_half_speed_takes_twice_as_long_for_a_job() {
    for policy in ["dl-linux", "dl-sp"] {
        let set = with_capacities(set(1, &[(10 * MS, 100 * MS)]), &[500]);
        assert_eq!(
            finishes(&run(&set, policy, 250 * MS), 0),
            [20 * MS, 120 * MS, 220 * MS],
            "{policy}"
        );
    }
}

#[test]
fn budget_is_consumed_in_proportion_to_the_speed() {
    let mut set = with_capacities(set(1, &[(10, 30)]), &[500]);
    set.tasks[0].work = Work::Constant(NS(15));
    let expected = [
        "0 released 1 due 30",
        "0 ready 1 by 30",
        "20 spent",
        "20 Throttled",
        "30 released 2 due 60",
        "30 replenished 10 by 60",
        "30 ready 1 by 60",
        "40 completed 1",
    ];
    assert_eq!(story(&run(&set, "dl-linux", 50), 0), expected);
}

#[test]
fn migrated_job_continues_at_the_speed_of_the_new_cpu() {
    // T1 runs on CPU 1 at half speed and has done 2 of 10 when its affinity moves it at 4.
    let mut set = with_capacities(set(2, &[(2, 40), (10, 40)]), &[1000, 500]);
    set.tasks[1].affinity = on("1");
    set.actions.push(Action {
        at: AT(4),
        change: Change::SetAffinity(id(1), on("0")),
    });
    assert_eq!(finishes(&run(&set, "dl-linux", 40), 1), [12]);
}

#[test]
fn other_policies_run_at_full_speed() {
    let plain = set(2, &[(3, 7), (2, 5), (4, 9)]);
    let slow = scaled(with_capacities(plain.clone(), &[500, 250]));
    for policy in ["g-edf", "strong-edf", "np-g-edf", "p-fp"] {
        let both = [&plain, &slow].map(|set| simulate(set, policy, options(500)));
        assert_eq!(both[0], both[1], "{policy}");
    }
}

#[test]
fn capacities_of_one_change_nothing() {
    let plain = set(2, &[(3, 7), (2, 5), (4, 9)]);
    let alike = with_capacities(plain.clone(), &[1000, 1000]);
    for policy in ["dl-linux", "dl-sp"] {
        let both = [&plain, &alike].map(|set| simulate(set, policy, options(500)));
        assert_eq!(both[0], both[1], "{policy}");
    }
}

#[test]
fn task_alone_completes_exactly_at_its_deadline() {
    // C/T is a whole number of units of 2^-20, or the periods are so short that rounding does not show.
    for (cost, period) in [(3 * MS, 8 * MS), (4, 10)] {
        let set = scaled(set(1, &[(cost, period)]));
        for policy in ["dl-linux", "dl-sp"] {
            let found = finishes(&run(&set, policy, 10_000 * period + 1), 0);
            let due: Vec<u64> = (1..=10_000).map(|job| job * period).collect();
            assert_eq!(found, due, "{cost} of {period} under {policy}");
        }
    }
}

#[test]
fn rounding_never_makes_a_task_late_that_is_alone() {
    let (cost, period) = (40 * MS, 100 * MS);
    let set = scaled(set(1, &[(cost, period)]));
    let found = finishes(&run(&set, "dl-linux", 10_000 * period), 0);
    assert_eq!(found.len(), 10_000);
    // 0.4 is 419430.4 units, so the CPU has 419431, and takes 99999856.9 ns.
    for (job, finish) in (0..).zip(found) {
        assert_eq!(finish, job * period + 99_999_857, "job {job}");
    }
}

#[test]
fn blocked_task_is_active_until_its_0_lag_time() {
    // T0 does 1 of its 2 at a speed of 2/8 + 4/16 = 1/2, in [0,2). With 1 left, due at 8, it counts until
    // 8 - 1 x 8/2 = 4. So T1 does 1 in [2,4) and, alone at a speed of 1/4, another 1 in [4,8). Then T0 is
    // wakes, due at 16 like T1, and T1, which wins the tie, does its last 2 in [8,12) at 1/2.
    let mut set = scaled(set(1, &[(2, 8), (4, 16)]));
    set.tasks[0].work = Work::Constant(NS(1));
    let records = run(&set, "dl-linux", 16);
    assert_eq!(finishes(&records, 0), [2, 14]);
    assert_eq!(finishes(&records, 1), [12]);
}

#[test]
fn suspended_task_is_active_until_its_0_lag_time() {
    // The same until 4. But T0 sleeps until 102, so that T1 does its last 3 alone, in [4,16).
    let mut set = scaled(set(1, &[(2, 8), (4, 16)]));
    set.tasks[0].work = Work::Phases(vec![
        Phase::Run(NS(1)),
        Phase::Sleep(NS(100)),
        Phase::Run(NS(1)),
    ]);
    assert_eq!(finishes(&run(&set, "dl-linux", 40), 1), [16, 32]);
}

#[test]
fn leaving_task_is_active_until_its_0_lag_time() {
    // As above, but T0 leaves at 2 in the middle of its job: T1 does 1 in [2,4), then 3 at 1/4.
    let mut set = scaled(set(1, &[(2, 8), (4, 16)]));
    set.actions.push(Action {
        at: AT(2),
        change: Change::Leave(id(0)),
    });
    assert_eq!(finishes(&run(&set, "dl-linux", 17), 1), [16]);
}

#[test]
fn throttled_task_is_active() {
    // T0 does 1 at a speed of 2/16 + 4/16 = 3/8, in [0,3), and its 0-lag time is over. Alone at 1/4, T1 does
    // 5/4 in [3,8). T0 wakes at 8, beyond its deadline at 4, and waits for the end of its period at 16; so
    // T1 does the other 11/4 at 3/8, in 22/3 up to the end of a nanosecond.
    let mut set = scaled(set(1, &[(2, 16), (4, 16)]));
    set.tasks[0].deadline = NS(4);
    set.tasks[0].work = Work::Phases(vec![
        Phase::Run(NS(1)),
        Phase::Sleep(NS(5)),
        Phase::Run(NS(1)),
    ]);
    assert_eq!(finishes(&run(&set, "dl-linux", 17), 1), [16]);
}

#[test]
fn reentering_task_starts_without_progress() {
    // T0 has done one and a half when T1 preempts it at 3, and leaves at 4.
    let mut set = with_capacities(set(1, &[(4, 20), (2, 100)]), &[500]);
    set.tasks[1].offset = NS(3);
    set.tasks[1].deadline = NS(5);
    let changes = [
        (0, Change::Enter(id(0))),
        (4, Change::Leave(id(0))),
        (10, Change::Enter(id(0))),
    ];
    for (at, change) in changes {
        let at = AT(at);
        set.actions.push(Action { at, change });
    }
    let records = run(&set, "dl-linux", 30);
    assert_eq!(finishes(&records, 1), [7]);
    assert_eq!(finishes(&records, 0), [18]);
}

#[test]
fn frequency_never_exceeds_the_capacity() {
    // A need of 3/8 is met by a CPU at 1/2, one of 3/4 is not.
    let light = scaled(with_capacities(set(1, &[(3, 8)]), &[500]));
    assert_eq!(finishes(&run(&light, "dl-linux", 17), 0), [8, 16]);
    let heavy = scaled(with_capacities(set(1, &[(6, 8)]), &[500]));
    assert_eq!(finishes(&run(&heavy, "dl-linux", 25), 0), [12, 24]);
}

/// Example 2 of Tang et al.
fn example_2() -> TaskSet {
    set(2, &[(63 * MS, 100 * MS); 3])
}

#[test]
fn frequency_scaling_delivers_too_little_in_example_2() {
    // 0.63 is 660602.88 units, so a CPU with one task has 660603. In milliseconds, with that as 0.63:
    //
    // CPU 0 T0.1 [0,63) T2.1 [63,...     T0 and T2 are in its queue, together 1.26: full speed
    // CPU 1 T1.1 [0,100)                 at 0.63; up to rounding it is finished when it is due
    //
    // At 100 T0 is released on CPU 0, where T2 is late (due at 100) and runs, and is pushed to CPU 1, which
    // is free; T1 is released on CPU 1 and cannot be pushed to another CPU. T2 has done 37 and is alone now.
    //
    // CPU 0 ...T2.1 until 100 + 26/0.63 = 141.27, then T2.2, T2.3, ... 100 each at 0.63
    // CPU 1 T0.2 [100,163) T1.2 [163,226) T0.3 [226,289) T1.3 [289,352) T0.4 [352,415) ...
    //
    // until at 1045 T0.9 is finished. T0.10 would be due at 1000 and waits behind T1.9, due at 900; T2 has
    // come to its job 11, due at 1100, on CPU 0, and T0.10 is pushed there. And so forth.
    let set = scaled(example_2());
    let records = run(&set, "dl-linux", 1_000 * MS);
    let ends = |task| finishes(&records, task);
    assert_eq!(
        ends(0)[..7],
        [63, 163, 289, 415, 541, 667, 793].map(|end| end * MS)
    );
    assert_eq!(ends(1)[0], 99_999_982);
    assert_eq!(
        ends(1)[1..7],
        [226, 352, 478, 604, 730, 856].map(|end| end * MS)
    );
    // 26 at the speed of 660603 last 41.269834; 63 last 99.999982.
    let alone: Vec<u64> = (0..8).map(|job| 141_269_834 + job * 99_999_982).collect();
    assert_eq!(ends(2)[..8], alone);
}

#[test]
fn in_example_2_the_backlog_grows_by_26_ms_a_period() {
    let periods = 2_000;
    let horizon = periods * 100 * MS;
    let set = scaled(example_2());
    let records = run(&set, "dl-linux", horizon);
    let done: u64 = (0..3)
        .map(|task| finishes(&records, task).len() as u64 * 63 * MS)
        .sum();
    // At most one job of each task is begun and not finished.
    let delivered = 163 * MS * periods;
    assert!(done <= delivered + MS, "{done} of {delivered}");
    assert!(done + 3 * 63 * MS >= delivered, "{done} of {delivered}");
    for task in 0..3 {
        let late = tardiness(&finishes(&records, task), 100 * MS);
        // The three share the deficit of 26 ms a period, and scheduling by deadlines keeps it balanced.
        for (from, to) in [(100, 200), (200, 400), (400, 800), (800, 1_600)] {
            assert!(late[from] * 3 / 2 < late[to], "task {task}: job {to}");
        }
        assert!(late[1_600] > 1_600 * 26 * MS / 4, "task {task}: {late:?}");
    }
}

#[test]
fn at_full_speed_tardiness_in_example_2_is_bounded() {
    let records = run(&example_2(), "dl-linux", 200_000 * MS);
    for task in 0..3 {
        let late = tardiness(&finishes(&records, task), 100 * MS);
        // The last may be late, and the run over.
        assert!(late.len() >= 1_999, "task {task}");
        assert!(late.iter().all(|&late| late <= 26 * MS), "task {task}");
    }
}

#[test]
fn condition_1_admits_tasks_too_heavy_for_a_slow_cpu() {
    // 0.7 + 0.7 = 1.4 is less than 95% of 1 + 0.5. But T1 is pushed to the slow CPU, and as long as it runs
    // there no CPU pulls it: it does 7 every 14, and is 4 later with every job. T0 has the fast one alone.
    for policy in ["dl-linux", "dl-sp"] {
        let plain = set(2, &[(7, 10), (7, 10)]);
        let slow = with_capacities(plain.clone(), &[1000, 500]);
        let records = run(&slow, policy, 1_000_000);
        let late = tardiness(&finishes(&records, 1), 10);
        let expected: Vec<u64> = (1..=71_428).map(|job| 4 * job).collect();
        assert_eq!(late, expected, "{policy}");
        let records = run(&plain, policy, 1_000_000);
        for task in 0..2 {
            let late = tardiness(&finishes(&records, task), 10);
            assert!(late.iter().all(|&late| late == 0), "{policy}, task {task}");
        }
    }
}
