//! Verdicts on the Pfair policies, against runs of the simulator: a schedulable task misses no
//! deadline, and no job takes longer than its bound; in clusters, too.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ticks;

use shiftwork_analysis::admission::{Guarantee, Terms, Verdict, admit};
use shiftwork_analysis::verdicts::{Answer, Candidate, analyse};
use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, OnOverrun, RandomStream, Record, RecordKind, Share, Span,
    Task, TaskSet,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

const POLICIES: [&str; 4] = ["pd2", "s-pd2", "c-pd2", "cs-pd2"];

fn random_set(seed: u64) -> TaskSet {
    let mut random = RandomStream::new(seed, 74, 0);
    let cpus = 1 + random.below(5) as usize;
    let quantum = [1, 4, 12, 60][random.below(4) as usize];
    let all = Affinity::new(CpuSet::first(cpus)).unwrap();
    // Half of the sets are aligned as far as releases go.
    let whole = random.below(2) == 0;
    let count = 1 + random.below(3 * cpus as u64);
    let load = 1 + random.below(4);
    let tasks = (0..count).map(|index| {
        let slots = 1 + random.below(12);
        let mut period = slots * quantum;
        let most = (slots * cpus as u64 * load / (2 * count)).clamp(1, slots);
        let cost = 1 + random.below(most * quantum);
        if !whole {
            period += random.below(quantum);
        }
        let [cost, period] = [cost, period].map(Span::from_ns);
        let mut task = Task::periodic(&format!("T{index}"), cost, period, all);
        task.deadline = match random.below(4) {
            0 => cost + Span::from_ns(random.below(2 * period.as_ns())),
            1 => period + Span::from_ns(quantum),
            _ => period,
        };
        task.offset = Span::from_ns(match whole {
            true => quantum * random.below(8),
            false => random.below(8 * quantum),
        });
        if !whole && random.below(2) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        task.on_overrun = OnOverrun::Continue;
        task
    });
    let mut set = TaskSet::new("random", cpus, tasks.collect());
    set.scheduler.quantum = Some(Span::from_ns(quantum));
    set.scheduler.reserve = Share::from_billionths(0).unwrap();
    set.scheduler.early_release = random.below(4) == 0;
    if cpus > 1 {
        let first = 1 + random.below(cpus as u64 - 1) as usize;
        let low = CpuSet::first(first);
        set.platform.clusters = vec![low, CpuSet::first(cpus) - low];
    }
    set
}

/// The longest response time of each task in a run of the set.
fn longest(set: &TaskSet, policy: &str, seed: u64) -> Vec<u64> {
    let entry = registry::find(policy).unwrap();
    let most = set.tasks.iter().map(|task| task.period.as_ns()).max();
    let horizon = Instant::from_ns(40 * most.unwrap());
    let options = Options {
        seed,
        horizon,
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    let built = entry.build(set).unwrap();
    Simulation::new(set, built, &entry.traits, options).run(&mut records);
    let mut pending = vec![std::collections::VecDeque::new(); set.tasks.len()];
    let mut longest = vec![0; set.tasks.len()];
    for Record { at, kind } in records {
        match kind {
            RecordKind::Released { job, .. } => pending[job.task.index()].push_back(at),
            RecordKind::Completed { job } => {
                let place = job.task.index();
                let release: Instant = pending[place].pop_front().unwrap();
                longest[place] = longest[place].max(at.late_since(release).as_ns());
            }
            _ => {}
        }
    }
    for (pending, longest) in pending.iter().zip(&mut longest) {
        if let Some(&release) = pending.front() {
            *longest = (*longest).max(horizon.late_since(release).as_ns());
        }
    }
    longest
}

#[test]
fn no_verdict_bound_or_admission_is_refuted_by_a_run() {
    let (mut hard, mut bounded, mut admitted) = (0, 0, 0);
    for seed in 0..600 * ticks::factor() {
        let set = random_set(seed);
        let policy = POLICIES[(seed % 4) as usize];
        let at = || format!("seed {seed}, {policy}: {set:#?}");
        let built = registry::find(policy).unwrap().build(&set).unwrap();
        let own = || set.tasks.iter().map(|task| task.affinity).collect();
        let bound: Vec<Affinity> = built.packing().unwrap_or_else(own);
        let candidate = Candidate {
            policy: policy.to_owned(),
            traits: registry::find(policy).unwrap().traits,
            bound: Ok(bound.clone()),
        };
        let analysis = analyse(&set, &[candidate], 10_000);
        let found = &analysis.policies[0];
        let longest = longest(&set, policy, seed);
        let in_time = || {
            let mut all = longest.iter().zip(&set.tasks);
            all.all(|(&longest, task)| longest <= task.deadline.as_ns())
        };
        if found.hard.answer == Answer::Schedulable {
            hard += 1;
            assert!(in_time(), "{longest:?}, {}", at());
        }
        for (best, &longest) in found.best.iter().zip(&longest) {
            if let Some(best) = best {
                bounded += 1;
                assert!(longest <= best.response.as_ns(), "{longest}, {}", at());
            }
        }
        let decision = admit(
            &set,
            &bound,
            Terms::of(&registry::find(policy).unwrap().traits, &set).unwrap(),
        );
        if let Verdict::Admitted(guarantee) = decision.verdict() {
            admitted += 1;
            let is_hard = guarantee == Guarantee::Hard;
            assert!(!is_hard || in_time(), "{longest:?}, {}", at());
            // Bounds may show what windows do not.
            let is_shown = found.hard.answer == Answer::Schedulable;
            assert!(!is_hard || is_shown, "{}", at());
            assert_eq!(found.soft.answer, Answer::Schedulable, "{}", at());
        }
    }
    println!("{hard} in time, {bounded} bounds, {admitted} admitted");
    assert!(
        hard > 100 && bounded > 300 && admitted > hard,
        "{hard} {bounded} {admitted}"
    );
}
