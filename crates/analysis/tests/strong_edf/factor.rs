//! Theorem 2: the speed that makes up for being EDF.

use num_bigint::BigInt;
use shiftwork_analysis::affinity::{Feasible, feasibility, nested_density, speedup_factor};
use shiftwork_analysis::speedup::speedup;
use shiftwork_analysis::{NotShown, Outcome, Steps};
use shiftwork_model::{
    Affinity, CpuSet, Instant, RandomStream, Record, RecordKind, Span, Task, TaskSet,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

use crate::naive::{Exact, exact, size};
use crate::schedule::{Job, run};
use crate::system::{Plain, chain_tasks, chains, family, masks, one_job_each, placed, tasks};
use crate::{times_if_long, whole};

/// A multiple of all sizes.
const UNIT: u64 = 2520;

/// The factor, or that with one of its constants changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Factor {
    True,
    /// 2 - 2/|g| for the innermost node.
    InnermostLess,
    /// Only the innermost node and the root count.
    NoneBetween,
    /// The innermost node alone.
    InnermostAlone,
    /// The root alone, as if all jobs could use all CPUs.
    RootAlone,
    /// Half of the terms of the chain.
    HalfChain,
}

const WRONG_FACTORS: [Factor; 5] = [
    Factor::InnermostLess,
    Factor::NoneBetween,
    Factor::InnermostAlone,
    Factor::RootAlone,
    Factor::HalfChain,
];

/// What a chain of affinities, from the outside, needs by the formula for chains.
fn chain_factor(chain: &[u64], variant: Factor) -> Exact {
    let (one, two) = (exact(1, 1), exact(2, 1));
    let innermost = size(*chain.last().unwrap());
    let root = size(chain[0]);
    let inner = match variant {
        Factor::InnermostLess => &two - exact(2, innermost).min(one.clone()),
        Factor::RootAlone => &two - exact(1, root),
        _ => &two - exact(1, innermost),
    };
    let step = |outer: u64, inner: u64| &one - exact(inner, outer);
    let steps: Exact = chain
        .windows(2)
        .map(|pair| step(size(pair[0]), size(pair[1])))
        .sum();
    match variant {
        Factor::NoneBetween => inner + step(root, innermost),
        Factor::InnermostAlone | Factor::RootAlone => inner,
        Factor::HalfChain => inner + steps / two,
        Factor::True | Factor::InnermostLess => inner + steps,
    }
}

/// What a family needs by the formula for chains.
fn factor(family: &[u64], variant: Factor) -> Exact {
    let chains = chains(family);
    let factors = chains.iter().map(|chain| chain_factor(chain, variant));
    factors.max().unwrap()
}

fn found(family: &[u64]) -> Option<Exact> {
    let sets: Vec<CpuSet> = family.iter().map(|&mask| CpuSet::from_bits(mask)).collect();
    speedup_factor(&sets)
}

/// So many parts of `UNIT`, rounded down.
fn in_units(factor: &Exact) -> u64 {
    let units: Exact = factor * exact(UNIT, 1);
    u64::try_from(units.floor().to_integer()).unwrap()
}

#[test]
fn speedup_factor_is_that_of_the_worst_chain() {
    for seed in 0..times_if_long(500, 20) {
        let mut stream = RandomStream::new(seed, 72, 0);
        let mut family = family(12, &mut stream);
        assert_eq!(
            found(&family),
            Some(factor(&family, Factor::True)),
            "{family:?}"
        );
        stream.shuffle(&mut family);
        let again = [family.clone(), family.clone()].concat();
        assert_eq!(found(&again), found(&family), "{family:?}");
    }
    let all = |cpus: u32| u64::MAX >> (64 - cpus);
    let singles = |cpus: u32| (0..cpus).map(|cpu| 1 << cpu);
    for cpus in 2..=64u32 {
        let bi_level: Vec<u64> = singles(cpus).chain([all(cpus)]).collect();
        let expected = exact(2, 1) - exact(1, cpus.into());
        assert_eq!(found(&bi_level), Some(expected.clone()));
        assert_eq!(found(&[all(cpus)]), Some(expected));
        let chain: Vec<u64> = (1..=cpus).map(all).collect();
        let harmonic: Exact = (1..=cpus).map(|cpus| exact(1, cpus.into())).sum();
        assert_eq!(found(&chain), Some(harmonic));
        for cluster in (1..cpus).filter(|&cluster| cpus.is_multiple_of(cluster)) {
            let clusters = (0..cpus).step_by(cluster as usize);
            let clusters = clusters.map(|first| all(cluster) << first);
            let family: Vec<u64> = clusters.chain([all(cpus)]).collect();
            let expected =
                exact(3, 1) - exact(cluster.into(), cpus.into()) - exact(1, cluster.into());
            assert_eq!(found(&family), Some(expected));
        }
    }
    assert_eq!(found(&[0b01, 0b10]), Some(exact(1, 1)));
    assert_eq!(found(&[]), None);
    assert_eq!(found(&[0b1, 0]), None);
    assert_eq!(found(&[0b011, 0b110]), None);
}

/// The factor of ECRTS 2016, Theorem IV.8, for m CPUs in clusters of k is the positive root of this
/// polynomial, which is negative from 0 up to it.
fn polynomial_of_ecrts_2016(m: u64, k: u64, s: &Exact) -> Exact {
    let inner = exact(2 * k - 1, k);
    let [m, two] = [m, 2].map(|number| exact(number, 1));
    &m * s * s - ((&m - two) * &inner + &m) * s - m * inner
}

#[test]
fn speedup_factor_is_below_that_of_ecrts_2016() {
    for m in 2..=64u64 {
        for k in 1..m {
            let factor = exact(3, 1) - exact(k, m) - exact(1, k);
            let value = polynomial_of_ecrts_2016(m, k, &factor);
            assert!(value < exact(0, 1), "{m} {k}");
        }
    }
}

/// Whether EDF misses a deadline of the chain's jobs, all of which another scheduler could do in `UNIT`.
fn chain_misses(chain: &[u64], deadline: u64) -> bool {
    let tasks = chain_tasks(chain, UNIT, deadline);
    let mut by_place = |task| task as u64;
    run(
        &masks(&tasks),
        &one_job_each(&tasks),
        &mut by_place,
        &mut |_, _| {},
    )
    .is_late
}

#[test]
fn every_nested_family_has_jobs_that_need_the_whole_factor() {
    for seed in 0..times_if_long(100, 20) {
        let mut stream = RandomStream::new(seed, 72, 1);
        let family = family(6, &mut stream);
        for chain in chains(&family) {
            let deadline = in_units(&chain_factor(&chain, Factor::True));
            assert!(!chain_misses(&chain, deadline), "{chain:?}");
            assert!(chain_misses(&chain, deadline - 1), "{chain:?}");
            // They are jobs of the family, which another scheduler does in UNIT.
            let tasks = chain_tasks(&chain, UNIT, UNIT);
            let feasible = feasibility(&task_set(&tasks, 6)).verdict;
            assert_eq!(feasible, Feasible::Yes, "{chain:?}");
        }
    }
}

#[test]
fn the_policies_need_the_whole_factor() {
    for chain in [
        vec![0b11],
        vec![0b11, 0b1],
        vec![0b1111, 0b11, 0b1],
        vec![0b111, 0b11],
    ] {
        let deadline = in_units(&chain_factor(&chain, Factor::True));
        for policy in ["strong-edf", "hpa-edf"] {
            for (deadline, misses) in [(deadline, false), (deadline - 1, true)] {
                let tasks = chain_tasks(&chain, UNIT, deadline);
                let late = is_late(&task_set(&tasks, 4), policy, deadline);
                assert_eq!(late, misses, "{policy}, {chain:?}, {deadline}");
            }
        }
    }
}

fn task_set(tasks: &[Plain], cpus: usize) -> TaskSet {
    let task = |plain: &Plain| {
        let affinity = Affinity::new(CpuSet::from_bits(plain.mask)).unwrap();
        let [cost, period] = [plain.cost, plain.period].map(Span::from_ns);
        let mut task = Task::periodic("T", cost, period, affinity);
        task.deadline = Span::from_ns(plain.deadline);
        task
    };
    TaskSet::new("", cpus, tasks.iter().map(task).collect())
}

/// Whether a job of a run of one period is not finished by its deadline.
fn is_late(set: &TaskSet, policy: &str, period: u64) -> bool {
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed: 0,
        horizon: Instant::from_ns(period),
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(&mut records);
    let completed = records
        .iter()
        .filter(|record| matches!(record.kind, RecordKind::Completed { .. }));
    completed.count() < set.tasks.len()
}

#[test]
fn chains_refute_every_change_of_the_factor() {
    let families: [&[u64]; 4] = [
        &[0b11, 0b1],
        &[0b111, 0b11],
        &[0b1111, 0b11, 0b1],
        &[0b11_1111, 0b111, 0b11, 0b1],
    ];
    for variant in WRONG_FACTORS {
        let refuted = families.into_iter().filter(|family| {
            let wrong = factor(family, variant);
            let chains = chains(family);
            chains
                .iter()
                .any(|chain| chain_misses(chain, in_units(&wrong)))
        });
        let refuted = refuted.count();
        println!("{variant:?}: refuted by {refuted} of 4 families");
        assert!(refuted > 0, "{variant:?}");
    }
}

/// A collection of jobs made from a schedule at speed 1 in which every CPU is busy for so many units; by job
/// its affinity and its release, cost and deadline.
fn feasible_jobs(family: &[u64], units: u64, stream: &mut RandomStream) -> Vec<(u64, Job)> {
    let count = 2 + stream.below(10) as usize;
    let all_at_once = stream.below(2) == 0;
    let mut jobs: Vec<(u64, Job)> = (0..count)
        .map(|_| {
            let mask = family[stream.below(family.len() as u64) as usize];
            let release = if all_at_once { 0 } else { stream.below(units) };
            let length = 1 + stream.below(units - release);
            let deadline = if all_at_once { units } else { release + length };
            let job = Job {
                release,
                cost: 0,
                deadline,
            };
            (mask, job)
        })
        .collect();
    let cpus = family[0].count_ones();
    for now in 0..units {
        let mut chosen = vec![false; count];
        for cpu in 0..cpus {
            let may = |place: &usize| {
                let (mask, job) = jobs[*place];
                let window = job.release..job.deadline;
                mask >> cpu & 1 == 1 && window.contains(&now) && !chosen[*place]
            };
            let open: Vec<usize> = (0..count).filter(may).collect();
            if !open.is_empty() {
                let place = open[stream.below(open.len() as u64) as usize];
                chosen[place] = true;
                jobs[place].1.cost += 1;
            }
        }
    }
    jobs.retain(|(_, job)| job.cost > 0);
    jobs
}

/// Whether EDF misses a deadline at this speed, with ties broken at random.
fn misses_at(jobs: &[(u64, Job)], speed: &Exact, stream: &mut RandomStream) -> bool {
    let part = |number: &BigInt| u64::try_from(number.clone()).unwrap();
    let (p, q) = (part(speed.numer()), part(speed.denom()));
    let masks: Vec<u64> = jobs.iter().map(|&(mask, _)| mask).collect();
    // At speed p/q a job of cost c takes c q/p; time is in units of which there are p to one.
    let scaled = |&(_, job): &(u64, Job)| {
        vec![Job {
            release: job.release * p,
            cost: job.cost * q,
            deadline: job.deadline * p,
        }]
    };
    let jobs: Vec<Vec<Job>> = jobs.iter().map(scaled).collect();
    run(&masks, &jobs, &mut |_| stream.below(8), &mut |_, _| {}).is_late
}

#[test]
fn feasible_jobs_are_in_time_at_the_factor() {
    let mut late = 0;
    let rounds = times_if_long(1_000, 100);
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 72, 2);
        let family = family(4, &mut stream);
        let factor = factor(&family, Factor::True);
        let units = 3 + stream.below(8);
        let jobs = feasible_jobs(&family, units, &mut stream);
        for _ in 0..3 {
            let missed = misses_at(&jobs, &factor, &mut stream);
            assert!(!missed, "seed {seed}: {jobs:?} {family:?}");
        }
        let slow = exact(3, 4) * factor;
        late += u64::from(misses_at(&jobs, &slow.max(exact(1, 1)), &mut stream));
    }
    println!("{late} of {rounds} collections miss at three quarters of the factor");
    assert!(late > rounds / 100, "{late}");
}

#[test]
fn densities_that_fit_slower_cpus_are_within_the_density_test() {
    let rounds = times_if_long(300, 50);
    let mut nearly = 0;
    for seed in 0..rounds {
        let mut stream = RandomStream::new(seed, 72, 3);
        let family = family(6, &mut stream);
        let mut tasks = tasks(&family, 5_000, &mut stream);
        let used = factor(&masks(&tasks), Factor::True) * densest_share(&tasks);
        for task in &mut tasks {
            let cost: Exact = exact(task.cost, 1) / &used;
            task.cost = u64::try_from(cost.floor().to_integer()).unwrap().max(1);
        }
        let share = factor(&masks(&tasks), Factor::True) * densest_share(&tasks);
        if share <= exact(1, 1) {
            nearly += u64::from(share > exact(99, 100));
            let found = nested_density(&placed(&tasks), whole(), &mut Steps::ordinary());
            assert_eq!(found, Outcome::Pass(()), "seed {seed}: {tasks:?}");
        }
    }
    assert!(nearly > rounds / 2, "{nearly}");
}

/// The greatest part of a CPU that a task needs by its density, or of all its CPUs a node.
fn densest_share(tasks: &[Plain]) -> Exact {
    let density = |task: &Plain| exact(task.cost, task.window());
    let share = |node: u64| {
        let inside = tasks.iter().filter(|task| task.mask & !node == 0);
        inside.map(density).sum::<Exact>() / exact(size(node), 1)
    };
    let shares = tasks.iter().map(|task| share(task.mask).max(density(task)));
    shares.max().unwrap()
}

fn decide(tasks: &[Plain]) -> Outcome<NotShown> {
    speedup(&placed(tasks), &mut Steps::ordinary())
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
fn speedup_takes_what_slower_cpus_can_do() {
    // Two CPUs, s = 3/2. Densities: less than 2/3 of every CPU.
    let most = [
        plain(2, 3, 4, 0b11),
        plain(1, 2, 2, 0b1),
        plain(1, 2, 2, 0b11),
    ];
    assert_eq!(decide(&most[1..]), Outcome::Pass(()));
    let over = [plain(2, 3, 3, 0b11), most[1], most[2]];
    assert!(matches!(decide(&over), Outcome::Fail(_)));
    // Demand: the densities of the pinned tasks are 7/12 + 7/24 + 7/36 > 1, but two thirds of a CPU do.
    let staggered = [
        plain(7, 100, 12, 0b1),
        plain(7, 100, 24, 0b1),
        plain(7, 100, 36, 0b1),
        plain(7, 100, 13, 0b11),
    ];
    assert_eq!(decide(&staggered), Outcome::Pass(()));
    // One CPU is scheduled optimally.
    assert_eq!(
        decide(&[plain(2, 3, 3, 1), plain(1, 3, 3, 1)]),
        Outcome::Pass(())
    );
}

#[test]
fn speedup_fails_with_a_task_that_is_outside_its_domain() {
    let fine = plain(1, 100, 100, 0b111);
    for (what, wrong) in [
        ("no cost", plain(0, 4, 4, 1)),
        ("no period", plain(1, 0, 4, 1)),
        ("no deadline", plain(1, 4, 0, 1)),
        ("nowhere", plain(1, 4, 4, 0)),
        ("too dense", plain(3, 4, 2, 1)),
    ] {
        let found = decide(&[fine, wrong]);
        assert_eq!(found, Outcome::Fail(NotShown { place: 1 }), "{what}");
    }
    assert!(matches!(
        decide(&[plain(1, 9, 9, 0b011), plain(1, 9, 9, 0b110)]),
        Outcome::Fail(_)
    ));
    assert_eq!(decide(&[]), Outcome::Pass(()));
    let few = &mut Steps::at_most(1);
    assert_eq!(speedup(&placed(&[fine, fine]), few), Outcome::StepLimit);
}
