//! Bounds on cause-effect chains hold in simulated schedules.
#![allow(clippy::unwrap_used, reason = "a test")]

mod explained;
mod sets;

use sets::random_set;
use shiftwork_analysis::verdicts::Criterion;
use shiftwork_model::{
    Chain, Instant, JobId, Join, RandomStream, Record, RecordKind, Span, TaskId, TaskSet,
};
use shiftwork_sim::{Options, Simulation};
use shiftwork_trace::{ChainSummary, Counters};
use shiftwork_verbs::analyze::{ChainBound, Findings, Question, Releases};
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
    let (mut latencies, mut reached, mut triggered) = (0, 0, 0);
    for seed in 1..=600 {
        let set = random_set(&mut RandomStream::new(seed, 83, 0));
        let findings = Findings::of(&question, &set, None, &mut |_| ()).unwrap();
        for found in &findings.analysis.policies {
            let bounds = findings.chains(&set, found);
            let is_known = |known: &ChainBound| known.bound.or(known.latency).is_some();
            if !bounds.iter().any(is_known) {
                continue;
            }
            let measured = simulate(&set, &found.policy, seed);
            for (known, chain) in bounds.into_iter().zip(measured) {
                if let (Some(bound), Some(times)) = (known.latency, chain.latency) {
                    let longest = times.max.max(times.pending).unwrap_or(Span::ZERO);
                    assert!(
                        longest <= bound,
                        "seed {seed}, {}, chain {}: latency {longest} above {bound} in {set:?}",
                        found.policy,
                        chain.name
                    );
                    latencies += 1;
                    reached += u64::from(longest == bound);
                }
                let Some(bound) = known.bound else { continue };
                triggered += u64::from(chain.latency.is_some());
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
    println!(
        "compared {compared:?}, nearest {nearest}; {latencies} latencies, {reached} reached, {triggered} reactions there"
    );
    assert!(latencies > 100 && reached > 10 && triggered > 50);
    assert!(compared.iter().all(|&count| count > 100), "{compared:?}");
    assert!(
        nearest > 0.9,
        "the bounds are never nearly reached: {nearest}"
    );
}

/// By the definition, from the complete records: the latencies of the chain, and the longest of those that have not ended.
fn latencies(set: &TaskSet, chain: &Chain, records: &[Record], horizon: u64) -> [Vec<u64>; 2] {
    let (first, last) = (chain.tasks[0], *chain.tasks.last().unwrap());
    let accepted: Vec<(JobId, TaskId)> = records
        .iter()
        .filter_map(|record| match record.kind {
            RecordKind::Triggered { by, task, is_lost } => (!is_lost).then_some((by, task)),
            _ => None,
        })
        .collect();
    let arrivals: Vec<u64> = records
        .iter()
        .filter_map(|record| match record.kind {
            RecordKind::Released { job, deadline } if job.task == first => {
                Some(deadline.as_ns() - set.tasks[first.index()].deadline.as_ns())
            }
            _ => None,
        })
        .collect();
    // From which arrival each job of a task at this place stems, of those that are or will be released.
    let mut stems: Vec<Option<u64>> = arrivals.into_iter().map(Some).collect();
    let mut all = vec![(first, stems.clone())];
    for pair in chain.tasks.windows(2) {
        let join = set.tasks[pair[1].index()].trigger().unwrap().join;
        let counted = accepted
            .iter()
            .filter(|(by, task)| *task == pair[1] && (join == Join::Any || by.task == pair[0]));
        stems = counted
            .map(|(by, _)| match by.task == pair[0] {
                true => stems[by.number as usize - 1],
                false => None,
            })
            .collect();
        all.push((pair[1], stems.clone()));
    }
    let completed = |task: TaskId| {
        let of = records.iter().filter_map(move |record| match record.kind {
            RecordKind::Completed { job } if job.task == task => Some(record.at.as_ns()),
            _ => None,
        });
        of.collect::<Vec<u64>>()
    };
    let ended = completed(last).into_iter().zip(&stems);
    let ended = ended.filter_map(|(at, stem)| Some(at - (*stem)?)).collect();
    let mut open = Vec::new();
    for (task, stems) in all {
        let done = completed(task).len();
        open.extend(
            stems[done..]
                .iter()
                .flatten()
                .map(|arrival| horizon - arrival),
        );
    }
    [ended, open]
}

#[test]
fn latencies_equal_the_definition() {
    const HORIZON: u64 = 5_000;
    let (mut samples, mut chains) = (0, 0);
    for seed in 0..400 {
        let set = random_set(&mut RandomStream::new(seed, 84, 0));
        for policy in ["p-fp", "strong-edf"] {
            let entry = catalogue::find(policy).unwrap();
            let built = entry.build(&set).unwrap();
            let options = Options {
                seed,
                horizon: Instant::from_ns(HORIZON),
                overheads: None,
                reserve_server: false,
            };
            let mut both = (Counters::new(&set, set.platform.cpus), Vec::new());
            Simulation::new(&set, built, &entry.traits, options).run(&mut both);
            let (counters, records) = both;
            let found = counters.finish(Instant::from_ns(HORIZON)).chains;
            for (chain, found) in set.chains.iter().zip(found) {
                assert_eq!(found.latency.is_some(), chain.is_triggered(&set));
                let Some(found) = found.latency else { continue };
                let [ended, open] = latencies(&set, chain, &records, HORIZON);
                let what = format!("seed {seed}, {policy}, {}: {set:?}", chain.name);
                assert_eq!(found.samples, ended.len() as u64, "{what}");
                let ns = |span: Option<Span>| span.map(Span::as_ns);
                assert_eq!(ns(found.max), ended.iter().max().copied(), "{what}");
                assert_eq!(ns(found.pending), open.iter().max().copied(), "{what}");
                samples += found.samples;
                chains += 1;
            }
        }
    }
    assert!(samples > 5_000 && chains > 100, "{samples} of {chains}");
}
