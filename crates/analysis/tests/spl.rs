//! The conditions for semi-partitioned affinities, against Hall's condition and the kernel's sums.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::affinity::{Groups, Rounding, TooMuch, flow, spl};
use shiftwork_analysis::{Outcome, Placed, Rate, Sporadic, Steps};
use shiftwork_machine::Cpusets;
use shiftwork_model::{
    Action, Affinity, Change, CpuId, CpuSet, Instant, RandomStream, Repairs, Share, Span, Task,
    TaskId, TaskSet,
};

/// Cost, period, and the one CPU to which the task is bound, if it is.
type Plain = (u64, u64, Option<usize>);

fn share(billionths: u32) -> Share {
    Share::from_billionths(billionths).unwrap()
}

fn placed(tasks: &[Plain], all: &CpuSet) -> Vec<Placed> {
    let one = |&(cost, period, cpu): &Plain| Placed {
        task: Sporadic {
            cost: Span::from_ns(cost),
            period: Span::from_ns(period),
            deadline: Span::from_ns(period),
        },
        cpus: cpu.map_or(*all, |cpu| CpuSet::single(CpuId::from_index(cpu))),
    };
    tasks.iter().map(one).collect()
}

fn decide(tasks: &[Plain], cpus: usize, limit: u32, rounding: Rounding) -> Outcome<TooMuch> {
    let all = CpuSet::first(cpus);
    let terms = (share(limit), rounding);
    spl(&placed(tasks, &all), &all, terms, &mut Steps::ordinary())
}

const LIMIT: u32 = 950_000_000;

#[test]
fn with_exact_sums_it_is_halls_condition() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..3_000 {
        let mut stream = RandomStream::new(seed, 44, 0);
        let cpus = 1 + stream.below(4);
        let tasks: Vec<Plain> = (0..1 + stream.below(8))
            .map(|_| {
                let period = [2, 3, 4, 5, 10, 20][stream.below(6) as usize];
                let pinned = (stream.below(2) == 0).then(|| stream.below(cpus) as usize);
                (1 + stream.below(period), period, pinned)
            })
            .collect();
        let limit = [Share::WHOLE, LIMIT][stream.below(2) as usize];
        let all = CpuSet::first(cpus as usize);
        let mut groups = Groups::default();
        for (index, task) in placed(&tasks, &all).iter().enumerate() {
            let rate = Rate::new(task.task.cost, task.task.period).unwrap();
            groups.add(TaskId::from_index(index), task.cpus, rate);
        }
        let fits = flow::shortage(&groups, share(limit)).is_none();
        let found = decide(&tasks, cpus as usize, limit, Rounding::Exact);
        assert_eq!(found == Outcome::Pass(()), fits, "seed {seed}: {tasks:?}");
        match fits {
            true => yes += 1,
            false => no += 1,
        }
    }
    assert!(yes > 300 && no > 300, "{yes} {no}");
}

#[test]
fn the_witness_is_the_sum_that_is_too_much() {
    let found = decide(
        &[(1, 2, Some(1)), (1, 2, Some(1))],
        2,
        LIMIT,
        Rounding::Exact,
    );
    let Outcome::Fail(TooMuch::OneCpu { cpu, needed }) = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (cpu.index(), needed.to_fraction().to_string()),
        (1, "1".into())
    );
    let found = decide(
        &[(19, 20, None), (19, 20, None), (1, 100, None)],
        2,
        LIMIT,
        Rounding::Exact,
    );
    let Outcome::Fail(TooMuch::Total { needed, cpus }) = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (cpus, needed.to_fraction().to_string()),
        (2, "191/100".into())
    );
}

/// The kernel's own words: runtimes and periods to ratios of 20 bits, sums compared with the limit.
fn kernel_says(tasks: &[Plain], cpus: u64) -> bool {
    let to_ratio = |period: u64, runtime: u64| (runtime << 20) / period;
    let limit = to_ratio(1_000_000, 950_000);
    let sum = |of: &dyn Fn(&Plain) -> bool| -> u64 {
        let tasks = tasks.iter().filter(|&task| of(task));
        tasks.map(|task| to_ratio(task.1, task.0)).sum()
    };
    let on = |cpu: usize| sum(&|task: &Plain| task.2 == Some(cpu)) <= limit;
    sum(&|_| true) <= limit * cpus && (0..cpus as usize).all(on)
}

#[test]
fn the_kernels_rounding_is_that_of_the_kernel() {
    let mut apart = [0; 2];
    for seed in 0..3_000 {
        let mut stream = RandomStream::new(seed, 44, 1);
        let cpus = 1 + stream.below(3);
        // Around the limit: nineteen parts of one CPU in twentieths, a little more or less each.
        let mut tasks: Vec<Plain> = (0..cpus * 19)
            .map(|part| {
                let period = 1_000_000 + stream.below(9_000_000);
                let pinned = (stream.below(2) == 0).then_some((part % cpus) as usize);
                (period / 20 + stream.below(3), period, pinned)
            })
            .collect();
        tasks[0].0 += stream.below(200);
        let kernel = decide(&tasks, cpus as usize, LIMIT, Rounding::Kernel);
        let expected = kernel_says(&tasks, cpus);
        assert_eq!(
            kernel == Outcome::Pass(()),
            expected,
            "seed {seed}: {tasks:?}"
        );
        let exact = decide(&tasks, cpus as usize, LIMIT, Rounding::Exact) == Outcome::Pass(());
        apart[0] += usize::from(expected && !exact);
        apart[1] += usize::from(exact && !expected);
    }
    assert!(
        apart[0] > 50,
        "the kernel lets in what is too much: {apart:?}"
    );
}

/// Whether all may enter, one after the other, where requests are answered as Linux does.
fn all_may_enter(tasks: &[Plain], cpus: usize, reserve: u32, repairs: Repairs) -> bool {
    let task = |(index, &(cost, period, cpu)): (usize, &Plain)| {
        let all = Affinity::new(CpuSet::first(cpus)).unwrap();
        let affinity = cpu.map_or(all, |cpu| Affinity::pinned(CpuId::from_index(cpu)));
        let [cost, period] = [cost, period].map(Span::from_ns);
        Task::periodic(&format!("T{index}"), cost, period, affinity)
    };
    let mut set = TaskSet::new("", cpus, tasks.iter().enumerate().map(task).collect());
    set.scheduler.reserve = share(reserve);
    let enter = |index| Action {
        at: Instant::ZERO,
        change: Change::Enter(TaskId::from_index(index)),
    };
    set.actions = (0..tasks.len()).map(enter).collect();
    let mut cpusets = Cpusets::new(&set, repairs);
    (0..tasks.len()).all(|index| cpusets.enter(TaskId::from_index(index)).is_ok())
}

#[test]
fn requests_one_by_one_are_answered_as_the_conditions_say_of_all() {
    let mut answers = [0; 2];
    for seed in 0..2_000 {
        let mut stream = RandomStream::new(seed, 44, 2);
        let cpus = 1 + stream.below(3) as usize;
        let reserve = [50_000_000, 0, 123_456_789][stream.below(3) as usize];
        let limit = Share::WHOLE - reserve;
        // Fill the limit with parts of about a tenth, and then one more or one less at random.
        let parts = (cpus * 10) as u64 - stream.below(2);
        let mut tasks: Vec<Plain> = (0..parts)
            .map(|part| {
                let period = 1_000_000 + stream.below(9_000_000);
                let tenth =
                    (u128::from(period) * u128::from(limit)) / u128::from(Share::WHOLE) / 10;
                // In some sets all tasks are bound, so that every single CPU is at its limit.
                let bound = seed % 3 == 0 || stream.below(2) == 0;
                let cpu = bound.then_some(part as usize % cpus);
                (tenth as u64 + stream.below(3) - 1, period, cpu)
            })
            .collect();
        tasks[0].0 += stream.below(3) * stream.below(100);
        let expected = decide(&tasks, cpus, limit, Rounding::Kernel) == Outcome::Pass(());
        let found = all_may_enter(&tasks, cpus, reserve, Repairs::ALL);
        assert_eq!(
            found, expected,
            "seed {seed}, {cpus} CPUs, limit {limit}: {tasks:?}"
        );
        answers[usize::from(expected)] += 1;
        // Without the repair all tasks have the whole cluster, and condition (1) is sufficient.
        tasks.iter_mut().for_each(|task| task.2 = None);
        let expected = decide(&tasks, cpus, limit, Rounding::Kernel) == Outcome::Pass(());
        let found = all_may_enter(&tasks, cpus, reserve, Repairs::NONE);
        assert_eq!(
            found, expected,
            "seed {seed}, {cpus} CPUs, limit {limit}: {tasks:?}"
        );
    }
    assert!(answers[0] > 200 && answers[1] > 200, "{answers:?}");
}

#[test]
fn exactly_the_limit_passes_except_where_the_kernel_rounds_the_limit() {
    let brim = [(19, 20, Some(0)), (19, 20, None)];
    assert_eq!(decide(&brim, 2, LIMIT, Rounding::Exact), Outcome::Pass(()));
    assert_eq!(decide(&brim, 2, LIMIT, Rounding::Kernel), Outcome::Pass(()));
    // 2^20 is a multiple of 16: nothing is rounded but the limit, and that by 0.2 of 2^-20 per CPU.
    let sixteenths = [(15, 16, None), (15, 16, None)];
    assert_eq!(
        decide(&sixteenths, 2, 937_500_000, Rounding::Kernel),
        Outcome::Pass(())
    );
    let trace = [(15, 16, None), (15, 16, None), (1, 1 << 20, None)];
    let found = decide(&trace, 2, 937_500_000, Rounding::Kernel);
    assert!(matches!(found, Outcome::Fail(TooMuch::Total { .. })));
    // What is below the kernel's resolution costs nothing there.
    let dust = [(15, 16, None), (15, 16, None), (1, (1 << 20) + 1, None)];
    assert_eq!(
        decide(&dust, 2, 937_500_000, Rounding::Kernel),
        Outcome::Pass(())
    );
    let found = decide(&dust, 2, 937_500_000, Rounding::Exact);
    assert!(matches!(found, Outcome::Fail(TooMuch::Total { .. })));
}

#[test]
fn other_tasks_are_outside_the_domain() {
    let all = CpuSet::first(3);
    let good = placed(&[(1, 2, None)], &all)[0];
    let with = |change: fn(&mut Placed)| {
        let mut other = good;
        change(&mut other);
        other
    };
    for other in [
        with(|task| task.cpus = CpuSet::first(2)),
        with(|task| task.cpus = CpuSet::EMPTY),
        with(|task| task.cpus = CpuSet::from_bits(0b1000)),
        with(|task| task.task.cost = Span::ZERO),
        with(|task| task.task.period = Span::ZERO),
        with(|task| task.task.cost = Span::from_ns(3)),
        with(|task| task.task.deadline = Span::from_ns(1)),
    ] {
        let found = spl(
            &[good, other],
            &all,
            (share(LIMIT), Rounding::Exact),
            &mut Steps::ordinary(),
        );
        assert_eq!(
            found,
            Outcome::Fail(TooMuch::OutOfDomain { place: 1 }),
            "{other:?}"
        );
    }
    let huge = placed(
        &[(u64::MAX, u64::MAX, Some(0)), (u64::MAX, u64::MAX, None)],
        &all,
    );
    for rounding in [Rounding::Exact, Rounding::Kernel] {
        let found = spl(
            &huge,
            &all,
            (share(Share::WHOLE), rounding),
            &mut Steps::ordinary(),
        );
        assert_eq!(found, Outcome::Pass(()));
    }
    let found = spl(
        &huge,
        &all,
        (share(LIMIT), Rounding::Exact),
        &mut Steps::at_most(1),
    );
    assert_eq!(found, Outcome::StepLimit);
}
