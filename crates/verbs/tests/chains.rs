//! Bounds on cause-effect chains hold in simulated schedules.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_analysis::verdicts::Criterion;
use shiftwork_model::{
    Affinity, Arrival, Chain, CpuSet, Instant, Phase, Priority, RandomStream, Span, Task, TaskId,
    TaskSet, Work,
};
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::{ChainSummary, Counters};
use shiftwork_verbs::analyze::{Findings, Question, Releases};
use shiftwork_verbs::catalogue;

const POLICIES: [&str; 8] = [
    "p-fp",
    "p-edf",
    "g-edf",
    "g-fp",
    "strong-edf",
    "strong-fp",
    "hpa-edf",
    "np-g-edf",
];

fn random_set(random: &mut RandomStream) -> TaskSet {
    let cpus = 1 + random.below(3) as usize;
    let count = 2 + random.below(4);
    let is_global = random.below(2) == 0;
    let load = 1 + random.below(3);
    let task = |place: u64| {
        let period = [8, 10, 12, 20, 30][random.below(5) as usize] * 10;
        let cost = 1 + random.below(load * period / (2 + count));
        let most = match is_global {
            true => cpus,
            false => 1 + random.below(cpus as u64) as usize,
        };
        let affinity = Affinity::new(CpuSet::first(most)).unwrap();
        let [cost_ns, period_ns] = [cost, period].map(Span::from_ns);
        let mut task = Task::periodic(&format!("t{place}"), cost_ns, period_ns, affinity);
        task.offset = Span::from_ns(match random.below(8) {
            0 => random.below(9 * period),
            _ => random.below(period),
        });
        task.deadline = Span::from_ns(match random.below(4) {
            0 => (cost + random.below(period)).min(period),
            1 => period + random.below(2 * period),
            _ => period,
        });
        task.priority = Priority::new(1 + random.below(4) as u32);
        if random.below(3) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        if random.below(5) == 0 && cost >= 2 {
            let first = 1 + random.below(cost - 1);
            let phases = [
                Phase::Run(Span::from_ns(first)),
                Phase::Sleep(Span::from_ns(1 + random.below(period / 4))),
                Phase::Run(Span::from_ns(cost - first)),
            ];
            task.work = Work::Phases(phases.to_vec());
        } else if random.below(2) == 0 {
            task.work = Work::Uniform(Span::from_ns(1), cost_ns);
        }
        task
    };
    let tasks: Vec<Task> = (0..count).map(task).collect();
    let mut set = TaskSet::new("", cpus, tasks);
    for number in 0..3 {
        let mut path: Vec<TaskId> = set.iter().map(|(id, _)| id).collect();
        for place in (1..path.len()).rev() {
            path.swap(place, random.below(place as u64 + 1) as usize);
        }
        path.truncate(2 + random.below(count - 1) as usize);
        set.chains.push(Chain {
            name: format!("c{number}"),
            tasks: path,
            reaction: None,
            age: None,
        });
    }
    set
}

fn simulate(set: &TaskSet, policy: &str, seed: u64) -> Vec<ChainSummary> {
    let entry = catalogue::find(policy).unwrap();
    let horizon = Instant::from_ns(20_000);
    let options = Options {
        seed,
        horizon,
        overheads: None,
        reserve_server: false,
    };
    let mut counters = Counters::new(set, set.platform.cpus);
    let built = entry.build(set).unwrap();
    Simulation::new(set, built, &entry.traits, options).run(&mut counters);
    counters.finish(horizon).chains
}

#[test]
fn no_simulated_chain_takes_longer_than_its_bound() {
    let question = Question {
        policies: POLICIES.map(str::to_owned).to_vec(),
        criterion: Criterion::Hard,
        releases: Releases::Sporadic,
        max_steps: 20_000,
        scale: false,
        assign: false,
        remedies: false,
    };
    let (mut compared, mut nearest) = ([0; POLICIES.len()], 0.0_f64);
    for seed in 1..=600 {
        let set = random_set(&mut RandomStream::new(seed, 83, 0));
        let findings = Findings::of(&question, &set, None).unwrap();
        for found in &findings.analysis.policies {
            let bounds = findings.chains(&set, found);
            if bounds.iter().all(|known| known.bound.is_none()) {
                continue;
            }
            let measured = simulate(&set, &found.policy, seed);
            for (known, chain) in bounds.into_iter().zip(measured) {
                let Some(bound) = known.bound else { continue };
                for times in [chain.reaction, chain.age] {
                    let longest = times.max.max(times.pending).unwrap_or(Span::ZERO);
                    assert!(
                        longest <= bound,
                        "seed {seed}, {}, chain {}: {longest} is longer than {bound} in {set:?}",
                        found.policy,
                        chain.name
                    );
                    nearest = nearest.max(longest.as_ns() as f64 / bound.as_ns() as f64);
                }
                let place = POLICIES.iter().position(|name| *name == found.policy);
                compared[place.unwrap()] += 1;
            }
        }
    }
    println!("compared {compared:?}, nearest {nearest}");
    assert!(compared.iter().all(|&count| count > 100), "{compared:?}");
    assert!(
        nearest > 0.9,
        "the bounds are never nearly reached: {nearest}"
    );
}
