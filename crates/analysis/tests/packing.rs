//! Packing and assignment, against brute force: a packing holds what it says, and where the search
//! finds no CPU for every task, there is none.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::admission::{Guarantee, Terms};
use shiftwork_analysis::affinity::Bound;
use shiftwork_analysis::packing::{Heuristic, Onto, assign, pack};
use shiftwork_analysis::uniprocessor::{fp_rta, qpa};
use shiftwork_analysis::{NotShown, Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{CpuId, CpuSet, Order, PolicyTraits, Priority, RandomStream, Share, Span};
use shiftwork_policy::registry;

/// Cost, period, deadline, CPUs as bits. The first is the most urgent.
type Plain = (u64, u64, u64, u64);

fn share(billionths: u32) -> Share {
    Share::from_billionths(billionths).unwrap()
}

fn bounds(tasks: &[Plain]) -> Vec<Bound> {
    let bound = |(&(cost, period, deadline, bits), number): (&Plain, u32)| {
        let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ns);
        Bound {
            ranked: Ranked {
                task: Sporadic {
                    cost,
                    period,
                    deadline,
                },
                priority: Priority::new(number).unwrap(),
            },
            cpus: CpuSet::from_bits(bits),
        }
    };
    tasks.iter().zip(1..).map(bound).collect()
}

fn singles(cpus: usize) -> Vec<CpuSet> {
    let single = |cpu| CpuSet::single(CpuId::from_index(cpu));
    (0..cpus).map(single).collect()
}

/// Whether these tasks meet their deadlines on one CPU.
fn fit_one_cpu(tasks: &[Bound], order: Order, supply: Share) -> bool {
    let mut steps = Steps::ordinary();
    match order {
        Order::Edf => {
            let tasks: Vec<Sporadic> = tasks.iter().map(|bound| bound.ranked.task).collect();
            qpa(&tasks, supply, &mut steps) == Outcome::Pass(())
        }
        _ => {
            let tasks: Vec<Ranked> = tasks.iter().map(|bound| bound.ranked).collect();
            fp_rta(&tasks, supply, &mut steps) == Outcome::Pass(())
        }
    }
}

/// Whether every task is on one of its CPUs, and all CPUs hold what they got.
fn holds(tasks: &[Bound], cpu_of: &[usize], order: Order, supply: Share) -> bool {
    let within = |(bound, &cpu): (&Bound, &usize)| bound.cpus.contains(CpuId::from_index(cpu));
    let on = |cpu: usize| -> Vec<Bound> {
        let with = tasks.iter().zip(cpu_of);
        with.filter(|&(_, &of)| of == cpu)
            .map(|(bound, _)| *bound)
            .collect()
    };
    tasks.iter().zip(cpu_of).all(within)
        && (0..64).all(|cpu| {
            let here = on(cpu);
            here.is_empty() || fit_one_cpu(&here, order, supply)
        })
}

fn some_packing_holds(tasks: &[Bound], cpus: usize, order: Order, supply: Share) -> bool {
    let count = cpus.pow(tasks.len() as u32);
    (0..count).any(|number| {
        let cpu_of = |place: usize| number / cpus.pow(place as u32) % cpus;
        let cpu_of: Vec<usize> = (0..tasks.len()).map(cpu_of).collect();
        holds(tasks, &cpu_of, order, supply)
    })
}

fn random_tasks(stream: &mut RandomStream, cpus: u64, deadlines: u64) -> Vec<Plain> {
    (0..2 + stream.below(5))
        .map(|_| {
            let period = [3, 4, 5, 6, 8, 12][stream.below(6) as usize];
            let cost = 1 + stream.below((period * 3 / 4).max(1));
            let deadline = match deadlines {
                0 => period,
                1 => cost + stream.below(period - cost + 1),
                _ => cost + stream.below(2 * period),
            };
            let bits = match stream.below(2) {
                0 => (1 << cpus) - 1,
                _ => 1 + stream.below((1 << cpus) - 1),
            };
            (cost, period, deadline, bits)
        })
        .collect()
}

/// The CPU of each task if each has just one.
fn one_each(cpus: &[CpuSet]) -> Option<Vec<usize>> {
    let one = |set: &CpuSet| (set.len() == 1).then(|| set.lowest().unwrap().index());
    cpus.iter().map(one).collect()
}

#[test]
fn an_assignment_to_single_cpus_is_found_exactly_if_there_is_one() {
    let (mut found, mut none, mut beyond_heuristics) = (0, 0, 0);
    for seed in 0..1_200 {
        let mut stream = RandomStream::new(seed, 43, 0);
        let cpus = 2 + stream.below(2) as usize;
        let tasks = random_tasks(&mut stream, cpus as u64, seed % 3);
        let tasks = bounds(&tasks);
        let order = [Order::Edf, Order::FixedPriority][(seed / 3 % 2) as usize];
        let reserve = [0, 50_000_000][(seed / 6 % 2) as usize];
        let supply = share(Share::WHOLE - reserve);
        let partitioned = PolicyTraits {
            order,
            ..registry::find("p-edf").unwrap().traits
        };
        let terms = Terms::new(&partitioned, share(reserve)).unwrap();
        let all = CpuSet::first(cpus);
        let assigned = assign(&tasks, &all, terms, &mut Steps::ordinary());
        let expected = some_packing_holds(&tasks, cpus, order, supply);
        assert_eq!(assigned.is_some(), expected, "seed {seed}: {tasks:?}");
        let singles = singles(cpus);
        let onto = Onto {
            groups: &singles,
            order,
            supply,
        };
        let mut packed = 0;
        for heuristic in Heuristic::ALL {
            let name = heuristic.name();
            match pack(&tasks, &onto, heuristic, &mut Steps::ordinary()) {
                Outcome::Pass(groups) => {
                    packed += 1;
                    assert!(holds(&tasks, &groups, order, supply), "seed {seed}: {name}");
                }
                Outcome::Fail(NotShown { place }) => assert!(place < tasks.len()),
                Outcome::StepLimit => panic!("seed {seed}: {name} is out of steps"),
            }
        }
        match assigned {
            None => none += 1,
            Some(assigned) => {
                found += 1;
                beyond_heuristics += usize::from(packed == 0);
                let cpu_of = one_each(&assigned.cpus).unwrap();
                assert!(
                    holds(&tasks, &cpu_of, order, supply),
                    "seed {seed}: {tasks:?}"
                );
                assert_eq!(assigned.guarantee, Guarantee::Hard);
            }
        }
    }
    assert!(
        found > 200 && none > 200 && beyond_heuristics > 3,
        "{found} {none} {beyond_heuristics}"
    );
}

#[test]
fn a_search_succeeds_where_all_six_heuristics_fail() {
    // Twelfths: 7 + 3 + 2 and 4 + 4 + 4, and nothing else, since all six fill both CPUs.
    let tasks: Vec<Plain> = [7, 4, 4, 4, 2, 3].map(|cost| (cost, 12, 12, 0b11)).to_vec();
    let tasks = bounds(&tasks);
    let groups = singles(2);
    let onto = Onto {
        groups: &groups,
        order: Order::Edf,
        supply: share(Share::WHOLE),
    };
    for heuristic in Heuristic::ALL {
        let packed = pack(&tasks, &onto, heuristic, &mut Steps::ordinary());
        assert!(matches!(packed, Outcome::Fail(_)), "{}", heuristic.name());
    }
    let terms = Terms::new(&registry::find("p-edf").unwrap().traits, share(0)).unwrap();
    let found = assign(&tasks, &CpuSet::first(2), terms, &mut Steps::ordinary()).unwrap();
    let cpu_of = one_each(&found.cpus).unwrap();
    assert!(holds(&tasks, &cpu_of, Order::Edf, share(Share::WHOLE)));
}

#[test]
fn what_fits_no_single_cpu_is_spread_with_the_guarantee_that_is_left() {
    // Three tasks of two thirds on two CPUs: two of them on one CPU each, the third on both.
    let tasks = bounds(&[(2, 3, 3, 0b11); 3]);
    let all = CpuSet::first(2);
    let ask = |policy: &str| {
        let terms = Terms::new(&registry::find(policy).unwrap().traits, share(0)).unwrap();
        assign(&tasks, &all, terms, &mut Steps::ordinary())
    };
    let found = ask("strong-edf").unwrap();
    assert_eq!(found.guarantee, Guarantee::BoundedTardiness);
    assert_eq!(
        found.cpus,
        ["0", "1", "0-1"].map(|cpus| cpus.parse().unwrap())
    );
    assert_eq!(ask("p-edf"), None);
    assert_eq!(ask("weak-edf"), None);
    // With half a CPU more, all deadlines are met on three CPUs; one task shares two of them.
    let tasks = bounds(&[
        (3, 5, 5, 0b111),
        (3, 5, 5, 0b111),
        (3, 5, 5, 0b111),
        (2, 10, 10, 0b111),
    ]);
    let terms = Terms::new(&registry::find("weak-edf").unwrap().traits, share(0)).unwrap();
    let found = assign(&tasks, &CpuSet::first(3), terms, &mut Steps::ordinary()).unwrap();
    assert_eq!(found.guarantee, Guarantee::Hard);
}

#[test]
fn what_fits_nowhere_gets_no_assignment() {
    let terms = Terms::new(&registry::find("hpa-edf").unwrap().traits, share(0)).unwrap();
    for tasks in [
        vec![(2, 3, 3, 1), (2, 3, 3, 1)],
        vec![(0, 3, 3, 1)],
        vec![(4, 3, 3, 1)],
        vec![(1, 3, 3, 0)],
        vec![(1, 3, 3, 0b100)],
    ] {
        let tasks = bounds(&tasks);
        let found = assign(&tasks, &CpuSet::first(2), terms, &mut Steps::ordinary());
        assert_eq!(found, None);
    }
}

#[test]
fn the_same_question_has_the_same_answer_and_few_steps_are_respected() {
    let mut stream = RandomStream::new(5, 43, 1);
    let tasks: Vec<Plain> = (0..60)
        .map(|_| {
            let period = 10_000_000 + stream.below(90_000_000);
            (
                period * (10 + stream.below(35)) / 100,
                period,
                period,
                0xffff,
            )
        })
        .collect();
    let tasks = bounds(&tasks);
    let all = CpuSet::first(16);
    let terms = Terms::new(&registry::find("strong-edf").unwrap().traits, share(0)).unwrap();
    let ask = |steps| assign(&tasks, &all, terms, &mut Steps::at_most(steps));
    assert_eq!(ask(20_000_000), ask(20_000_000));
    assert_eq!(ask(10), None);
}

#[test]
fn ten_thousand_tasks_on_a_thousand_cpus_are_packed() {
    let mut stream = RandomStream::new(1, 43, 2);
    let tasks: Vec<Plain> = (0..10_000)
        .map(|_| {
            let period = 10_000_000 + stream.below(90_000_000);
            (
                period * (1 + stream.below(15)) / 100,
                period,
                period,
                u64::MAX,
            )
        })
        .collect();
    let mut tasks = bounds(&tasks);
    tasks
        .iter_mut()
        .for_each(|task| task.cpus = CpuSet::first(1_024));
    let groups = singles(1_024);
    let onto = Onto {
        groups: &groups,
        order: Order::Edf,
        supply: share(Share::WHOLE),
    };
    let packed = pack(&tasks, &onto, Heuristic::FFD, &mut Steps::ordinary());
    assert!(matches!(packed, Outcome::Pass(_)));
}
