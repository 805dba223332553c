//! The simulated machine reacts at once: under every policy its runs pass, and the policy is alike itself.

use shiftwork_model::{
    Affinities, Affinity, Arrival, CpuSet, Instant, Phase, RandomStream, Record, Span, Task,
    TaskSet, Work,
};
use shiftwork_sim::{Options, Simulation};
use shiftwork_verbs::catalogue;
use shiftwork_verbs::replay::{Decider, Measured, judge};

/// Tasks with overruns, suspensions and random work, for 3 CPUs.
fn random_set(random: &mut RandomStream, affinities: &[&str]) -> TaskSet {
    let task = |index: usize| {
        let period = Span::from_ms(4 + random.below(20));
        let cost = Span::from_us(500 + random.below(2_500));
        let cpus = affinities[random.below(affinities.len() as u64) as usize];
        let cpus: CpuSet = cpus.parse().unwrap();
        let mut task = Task::periodic(
            &format!("t{index}"),
            cost,
            period,
            Affinity::new(cpus).unwrap(),
        );
        task.offset = Span::from_us(100 * random.below(50));
        match random.below(5) {
            0 => {
                task.work =
                    Work::Uniform(Span::from_us(100), Span::from_us(2 * cost.as_ns() / 1_000))
            }
            1 => {
                let half = Span::from_ns(cost.as_ns() / 2);
                let sleep = Span::from_ms(1);
                task.work = Work::Phases(vec![
                    Phase::Run(half),
                    Phase::Sleep(sleep),
                    Phase::Run(half),
                ]);
            }
            2 => task.arrival = Arrival::Sporadic,
            _ => {}
        }
        task
    };
    TaskSet::new("random", 3, (0..6).map(task).collect())
}

fn affinities(taken: Affinities) -> &'static [&'static str] {
    match taken {
        Affinities::Global | Affinities::Clusters => &["0-2"],
        Affinities::WithinClusters | Affinities::SemiPartitioned => &["0", "1", "2", "0-2"],
        Affinities::Laminar => &["0", "0-1", "2", "0-2"],
        Affinities::Any => &["0", "1-2", "0-1", "0,2", "2", "0-2"],
    }
}

#[test]
fn simulated_runs_of_every_policy_pass_their_own_replay() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 200,
        None => 12,
    };
    let horizon = Instant::from_ns(300_000_000);
    for entry in catalogue::policies() {
        for seed in 1..=seeds {
            let mut random = RandomStream::new(seed, 1, 0);
            let mut set = random_set(&mut random, affinities(entry.traits.affinities));
            set.scheduler.quantum = Some(Span::from_ms(1));
            let Ok(policy) = entry.build(&set) else {
                continue;
            };
            let options = Options {
                seed,
                horizon,
                overheads: None,
                reserve_server: false,
            };
            let mut records = Vec::<Record>::new();
            Simulation::new(&set, policy, &entry.traits, options).run(&mut records);
            let measured = Measured {
                set: &set,
                entry,
                decider: Decider::Policy,
                records: &records,
                window: Span::from_us(1),
                horizon,
            };
            let verdict = judge(&measured).unwrap().verdict;
            assert!(verdict.holds(), "{}, seed {seed}:\n{verdict}", entry.name);
        }
    }
}
