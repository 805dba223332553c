//! Theorem 3: response times under any affinities.

use num_bigint::BigInt;

use shiftwork_analysis::affinity::any_affinities;
use shiftwork_analysis::{NotShown, Outcome, Steps};
use shiftwork_model::{RandomStream, Span};

use crate::naive::{Exact, exact};
use crate::potential::{
    Potential, Response, WRONG_RESPONSES, components, fits, members, overlapping, responses,
};
use crate::schedule::{Pending, run};
use crate::system::{Plain, masks, placed, releases, ties};
use crate::times_if_long;

/// The bounds, 0 for one that is longer than any span.
fn bounds(tasks: &[Plain]) -> Outcome<NotShown, Vec<u64>> {
    let in_ns = |bound: Option<Span>| bound.map_or(0, Span::as_ns);
    match any_affinities(&placed(tasks), &mut Steps::ordinary()) {
        Outcome::Pass(bounds) => Outcome::Pass(bounds.into_iter().map(in_ns).collect()),
        Outcome::Fail(failure) => Outcome::Fail(failure),
        Outcome::StepLimit => Outcome::StepLimit,
    }
}

#[test]
fn bounds_are_the_definition_by_component() {
    let (mut passed, mut several) = (0, 0);
    let rounds = times_if_long(600, 50);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 74, 0);
        let cpus = 1 + stream.below(5) as usize;
        let longest = [12, 1_000, 1 << 40][stream.below(3) as usize];
        let task = |_| {
            let period = 1 + stream.below(longest);
            Plain {
                cost: 1 + stream.below(period) / (1 + stream.below(4)),
                period,
                deadline: 1 + stream.below(2 * period),
                mask: 1 + stream.below((1 << cpus) - 1),
            }
        };
        let tasks: Vec<Plain> = (0..1 + seed % 8).map(task).collect();
        let components = components(&tasks);
        let found = bounds(&tasks);
        if !fits(&tasks, cpus) {
            assert!(matches!(found, Outcome::Fail(_)), "seed {seed}: {tasks:?}");
            continue;
        }
        passed += 1;
        several += u64::from(components.len() > 1);
        let mut expected = vec![0; tasks.len()];
        for component in components {
            let members: Vec<Plain> = component.iter().map(|&place| tasks[place]).collect();
            for (place, bound) in component
                .into_iter()
                .zip(responses(&members, Response::True))
            {
                expected[place] = u64::try_from(bound).unwrap();
            }
        }
        assert_eq!(found, Outcome::Pass(expected), "seed {seed}: {tasks:?}");
    }
    println!("{passed} of {rounds} fit, {several} of them in several components");
    assert!(
        passed > rounds / 8 && several > rounds / 40,
        "{passed} {several}"
    );
}

fn plain(cost: u64, period: u64, deadline: u64, mask: u64) -> Plain {
    Plain {
        cost,
        period,
        deadline,
        mask,
    }
}

#[test]
fn bounds_by_hand() {
    let pair = [plain(3, 4, 4, 0b011), plain(3, 4, 4, 0b110)];
    // b = 8/(3/2) = 16/3, and as the tasks are alike R = T + b (U - u) = 4 + 16/3 * 3/4.
    assert_eq!(bounds(&pair), Outcome::Pass(vec![8, 8]));
    // Alone, a task responds within its cost, whatever its deadline.
    assert_eq!(bounds(&[plain(3, 4, 1, 0b1)]), Outcome::Pass(vec![3]));
    let apart = [plain(3, 4, 4, 0b1), plain(3, 4, 9, 0b10)];
    assert_eq!(bounds(&apart), Outcome::Pass(vec![3, 3]));
    assert_eq!(bounds(&[]), Outcome::Pass(Vec::new()));
}

#[test]
fn bounds_fail_with_a_task_that_is_outside_their_domain() {
    let fine = plain(1, 100, 100, 0b110);
    for (what, wrong) in [
        ("no cost", plain(0, 4, 4, 0b11)),
        ("no period", plain(1, 0, 4, 0b11)),
        ("no deadline", plain(1, 4, 0, 0b11)),
        ("above its period", plain(5, 4, 9, 0b11)),
        ("nowhere", plain(1, 4, 4, 0)),
    ] {
        let found = bounds(&[fine, wrong, fine]);
        assert_eq!(found, Outcome::Fail(NotShown { place: 1 }), "{what}");
    }
    // Three times 3/4 on two CPUs.
    let crowd = [
        fine,
        plain(3, 4, 4, 0b001),
        plain(3, 4, 4, 0b011),
        plain(3, 4, 4, 0b011),
    ];
    assert_eq!(bounds(&crowd), Outcome::Fail(NotShown { place: 1 }));
    // b is 2^119.
    let mut long = vec![plain(1, 1 << 60, 1, 0b11), plain(1, 1 << 59, 1, 0b10)];
    assert_eq!(bounds(&long), Outcome::Pass(vec![1 << 61, 3 << 59]));
    long.push(plain(1, 2, 2, 0b11));
    assert_eq!(bounds(&long), Outcome::Pass(vec![0; 3]));
    let few = &mut Steps::at_most(3);
    let pair = placed(&[fine, plain(1, 9, 9, 0b11)]);
    assert_eq!(any_affinities(&pair, few), Outcome::StepLimit);
}

/// The sums of the proof, in whole parts, for one system.
struct Sums {
    /// f, by set of tasks.
    limits: Vec<i128>,
    /// By task u.
    rates: Vec<i128>,
    /// Parts of a unit.
    unit: i128,
}

impl Sums {
    fn new(tasks: &[Plain], variant: Response) -> Self {
        let potential = Potential::new(tasks, variant);
        let limits: Vec<Exact> = (0..1 << tasks.len())
            .map(|set| potential.of(members(set)))
            .collect();
        let periods = tasks.iter().map(|task| BigInt::from(task.period));
        let denominators = limits.iter().map(|limit| limit.denom().clone());
        // The least common multiple: all times what is left of one in lowest terms.
        let unit = denominators
            .chain(periods)
            .fold(BigInt::from(1), |all, one| {
                let rest = Exact::new(all.clone(), one);
                all * rest.denom()
            });
        let parts = |value: &Exact| {
            let parts = value * Exact::from(unit.clone());
            i128::try_from(parts.to_integer()).unwrap()
        };
        let rate = |task: &Plain| parts(&exact(task.cost, task.period));
        Self {
            limits: limits.iter().map(parts).collect(),
            rates: tasks.iter().map(rate).collect(),
            unit: i128::try_from(unit.clone()).unwrap(),
        }
    }

    /// Whether the sum of x is at most f for every set of pending tasks.
    fn hold(&self, tasks: &[Plain], now: u64, pending: &[Pending]) -> bool {
        let x = |one: &Pending| {
            let late = i128::from(now) - i128::from(one.deadline);
            let left = i128::from(tasks[one.task].cost - one.executed);
            self.rates[one.task] * late + left * self.unit
        };
        let terms: Vec<(usize, i128)> = pending.iter().map(|one| (one.task, x(one))).collect();
        (1..1usize << terms.len()).all(|chosen| {
            let of = members(chosen).map(|place| terms[place]);
            let (set, sum) = of.fold((0, 0), |(set, sum), (task, x)| (set | 1 << task, sum + x));
            sum <= self.limits[set]
        })
    }
}

/// What one adversary comes to: whether the sums hold throughout, and the response times.
fn attack(tasks: &[Plain], sums: &Sums, stream: &mut RandomStream) -> (bool, Vec<u64>) {
    let jobs = releases(tasks, 6, stream);
    let mut tie = ties(tasks, stream);
    let mut hold = true;
    let finished = run(&masks(tasks), &jobs, &mut tie, &mut |now, pending| {
        hold &= sums.hold(tasks, now, pending);
    });
    (hold, finished.responses)
}

#[test]
fn sums_never_exceed_the_set_function_and_jobs_keep_their_bounds() {
    let mut closest = 0;
    for seed in 0..times_if_long(150, 50) {
        let mut stream = RandomStream::new(seed, 74, 1);
        let (tasks, _) = overlapping(4, 6, &mut stream);
        let Outcome::Pass(bounds) = bounds(&tasks) else {
            panic!("seed {seed}: {tasks:?}");
        };
        let sums = Sums::new(&tasks, Response::True);
        for _ in 0..10 {
            let (hold, responses) = attack(&tasks, &sums, &mut stream);
            assert!(hold, "seed {seed}: {tasks:?}");
            for (response, bound) in responses.iter().zip(&bounds) {
                assert!(response <= bound, "seed {seed}: {tasks:?}");
                closest = closest.max(response * 1000 / bound);
            }
        }
    }
    println!("closest to a bound: {closest} thousandths");
}

/// Whether a schedule of the system of this seed breaks a sum of the changed proof.
fn is_refuted(variant: Response, seed: u64) -> bool {
    let mut stream = RandomStream::new(seed, 74, 2);
    let (tasks, _) = overlapping(3, 2 + seed % 5, &mut stream);
    let sums = Sums::new(&tasks, variant);
    (0..10).any(|_| !attack(&tasks, &sums, &mut stream).0)
}

#[test]
fn a_schedule_refutes_every_change_of_a_constant() {
    // The first seeds of all from 0 on.
    let first = [192, 1_029, 5, 61, 10, 0, 60, 50];
    for (variant, seed) in WRONG_RESPONSES.into_iter().zip(first) {
        assert!(is_refuted(variant, seed), "{variant:?}");
        assert!(!is_refuted(Response::True, seed));
    }
}

/// Most of the changes leave bounds that are still long enough for what was seen, since the true ones are not tight.
#[test]
fn jobs_exceed_the_bounds_of_some_changed_constants() {
    let mut exceeded = [0; WRONG_RESPONSES.len()];
    let rounds = times_if_long(100, 100);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 74, 3);
        let (tasks, _) = overlapping(3, 2 + seed % 5, &mut stream);
        let wrong = WRONG_RESPONSES.map(|variant| responses(&tasks, variant));
        let mut broken = [false; WRONG_RESPONSES.len()];
        for _ in 0..10 {
            let jobs = releases(&tasks, 6, &mut stream);
            let mut tie = ties(&tasks, &mut stream);
            let seen = run(&masks(&tasks), &jobs, &mut tie, &mut |_, _| {}).responses;
            for (broken, wrong) in broken.iter_mut().zip(&wrong) {
                let mut pairs = seen.iter().zip(wrong);
                *broken |= pairs.any(|(&seen, wrong)| BigInt::from(seen) > *wrong);
            }
        }
        for (exceeded, broken) in exceeded.iter_mut().zip(broken) {
            *exceeded += u64::from(broken);
        }
    }
    let by_variant: Vec<_> = WRONG_RESPONSES.iter().zip(exceeded).collect();
    println!("of {rounds} systems exceed the bounds: {by_variant:?}");
    for (variant, exceeded) in by_variant {
        let is_noticed = matches!(variant, Response::NoB | Response::LeastA);
        assert!(exceeded > 0 || !is_noticed, "{variant:?}");
    }
}
