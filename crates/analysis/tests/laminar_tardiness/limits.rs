//! What cannot be bounded, and what is too large to be bounded well.

use shiftwork_analysis::affinity::laminar_tardiness;
use shiftwork_analysis::{NotShown, Outcome, Placed, Sporadic, Steps};
use shiftwork_model::{CPUS_MAX, CpuId, CpuSet, RandomStream, Span};

fn placed(cost: u64, period: u64, deadline: u64, cpus: CpuSet) -> Placed {
    Placed {
        task: Sporadic {
            cost: Span::from_ns(cost),
            period: Span::from_ns(period),
            deadline: Span::from_ns(deadline),
        },
        cpus,
    }
}

fn bound(tasks: &[Placed]) -> Outcome<NotShown, Vec<Option<Span>>> {
    laminar_tardiness(tasks, &mut Steps::ordinary())
}

fn passed(tasks: &[Placed]) -> Vec<u64> {
    match bound(tasks) {
        Outcome::Pass(bounds) => {
            let bounds = bounds.into_iter().map(|bound| bound.unwrap().as_ns());
            bounds.collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_outside_the_theorem_fails_with_the_task() {
    let [a, b, both] = [0b011, 0b110, 0b111].map(CpuSet::from_bits);
    let fine = placed(1, 4, 4, both);
    for (what, tasks) in [
        ("no cost", vec![fine, placed(0, 4, 4, both)]),
        ("no period", vec![fine, placed(1, 0, 4, both)]),
        ("no deadline", vec![fine, placed(1, 4, 0, both)]),
        ("above its period", vec![fine, placed(5, 4, 9, both)]),
        ("above its deadline", vec![fine, placed(3, 4, 2, both)]),
        ("nowhere", vec![fine, placed(1, 4, 4, CpuSet::EMPTY)]),
        (
            "overlap",
            vec![fine, placed(1, 4, 4, a), placed(1, 4, 4, b)],
        ),
        (
            "crowd",
            vec![
                fine,
                placed(4, 4, 4, a),
                placed(4, 4, 4, a),
                placed(1, 9, 9, a),
            ],
        ),
    ] {
        assert_eq!(
            bound(&tasks),
            Outcome::Fail(NotShown { place: 1 }),
            "{what}"
        );
    }
    assert_eq!(bound(&[]), Outcome::Pass(Vec::new()));
}

#[test]
fn exactly_full_is_bounded_and_one_part_in_two_to_the_64_more_is_not() {
    let both = CpuSet::from_bits(0b11);
    let long = (1 << 60) - 1;
    let mut tasks = vec![placed(1, 2, 2, both); 3];
    tasks.push(placed(long / 2, long, long, both));
    assert!(matches!(bound(&tasks), Outcome::Pass(_)));
    tasks[3] = placed(long / 2 + 1, long, long, both);
    assert!(matches!(bound(&tasks), Outcome::Fail(_)));
}

#[test]
fn without_steps_for_a_good_bound_there_is_a_coarse_one_that_is_not_below() {
    let mut stream = RandomStream::new(1, 2, 3);
    let tasks: Vec<Placed> = (0..60)
        .map(|_| {
            let period = 1000 + stream.below(9000);
            let cpu = stream.below(32);
            let mask = if cpu < 16 { 1 << cpu } else { 0xffff };
            placed(period / 5, period, period, CpuSet::from_bits(mask))
        })
        .collect();
    let good = passed(&tasks);
    let mut coarser = 0;
    for steps in (1..400).map(|part| part * 500) {
        match laminar_tardiness(&tasks, &mut Steps::at_most(steps)) {
            Outcome::Pass(coarse) => {
                let coarse: Vec<u64> = coarse.iter().map(|bound| bound.unwrap().as_ns()).collect();
                let mut pairs = good.iter().zip(&coarse);
                assert!(pairs.all(|(good, coarse)| good <= coarse), "{steps} steps");
                coarser += u32::from(coarse != good);
            }
            outcome => assert_eq!(outcome, Outcome::StepLimit),
        }
    }
    assert!(coarser > 10, "{coarser}");
    let few = &mut Steps::at_most(59);
    assert_eq!(laminar_tardiness(&tasks, few), Outcome::StepLimit);
    assert_eq!(passed(&tasks), good, "the same twice");
}

#[test]
fn times_near_the_limits_of_64_bits_give_an_answer() {
    let [one, both] = [0b01, 0b11].map(CpuSet::from_bits);
    for long in [u64::MAX, u64::MAX / 2, 1 << 62, 1 << 61, 1 << 60, 1 << 55] {
        let tasks = [
            placed(long / 2, long, long, one),
            placed(long / 2, long, long, both),
            placed(long / 2, long, u64::MAX, both),
            placed(1, long, 1, both),
            placed(1, 4, 4, both),
        ];
        let Outcome::Pass(bounds) = bound(&tasks) else {
            panic!("tardiness is bounded");
        };
        assert!(long > 1 << 55 || bounds.iter().any(Option::is_some));
        for (bound, of) in bounds.into_iter().zip(&tasks) {
            assert!(bound.is_none_or(|bound| bound >= of.task.cost && bound <= Span::MAX));
        }
    }
}

#[test]
fn many_tasks_and_deep_trees_give_an_answer() {
    let mut stream = RandomStream::new(4, 5, 6);
    let mut any = |count: usize, mask: &dyn Fn(u64) -> CpuSet| -> Vec<Placed> {
        (0..count)
            .map(|_| {
                let period = 10_000_000 + stream.below(90_000_000);
                placed(period / 40, period, period, mask(stream.below(1024)))
            })
            .collect()
    };
    let single = |cpu: u64| CpuSet::single(CpuId::from_index(cpu as usize));
    let all = CpuSet::first(CPUS_MAX);
    let pinned = any(10_000, &|cpu| if cpu < 700 { single(cpu) } else { all });

    assert_eq!(passed(&pinned).len(), 10_000);
    let chain = any(1024, &|cpu| CpuSet::first(cpu as usize + 1));
    let chain: Vec<Placed> = chain
        .into_iter()
        .filter(|task| task.cpus.len() > 100)
        .collect();
    // Tardiness is bounded, but bounds without iteration do not fit 64 bits, and others take too long.
    match bound(&chain) {
        Outcome::Pass(bounds) => assert_eq!(bounds.len(), chain.len()),
        outcome => assert_eq!(outcome, Outcome::StepLimit),
    }
}
