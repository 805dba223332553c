//! Nothing that is shown under the worst overheads is contradicted by a run that pays for them.

use std::collections::VecDeque;

use shiftwork_analysis::overheads::{Structure, inflate_for_pfair};
use shiftwork_analysis::verdicts::{Answer, Best, Price, analyse_under};
use shiftwork_model::{
    Arrival, Instant, Overheads, RandomStream, RecordKind, Recorder, Span, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

use crate::{candidate, random};

const POLICIES: [&str; 22] = [
    "p-edf",
    "g-edf",
    "np-g-edf",
    "np-g-fp",
    "c-edf",
    "p-fp",
    "g-fp",
    "weak-edf",
    "weak-fp",
    "strong-edf",
    "hpa-fp",
    "CEm",
    "HEm",
    "FEm",
    "CE1",
    "FE1",
    "CQm",
    "S-CQm",
    "CQ1",
    "S-CQ1",
    "pd2",
    "s-pd2",
];

/// What is shown of a system: that deadlines are met, and how long each task takes at most.
struct Shown {
    in_time: bool,
    bounds: Vec<Option<Span>>,
}

fn shown(set: &TaskSet, policy: &str, overheads: &Overheads) -> Option<Shown> {
    let candidate = candidate(set, policy);
    candidate.bound.as_ref().ok()?;
    let price = Price {
        structure: Structure::of(&registry::find(policy).unwrap().traits, set),
        worst: Some(overheads.clone()),
        average: None,
    };
    let (analysis, _) = analyse_under(set, &[(candidate, Some(price))], 20_000);
    let found = &analysis.policies[0];
    let response = |best: &Option<Best>| best.map(|best| best.response);
    Some(Shown {
        in_time: found.hard.answer == Answer::Schedulable,
        bounds: found.best.iter().map(response).collect(),
    })
}

/// Listens to a run and keeps the longest response time of each task.
struct Longest {
    pending: Vec<VecDeque<Instant>>,
    longest: Vec<Span>,
}

impl Recorder for Longest {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => self.pending[job.task.index()].push_back(at),
            RecordKind::Completed { job } => {
                let place = job.task.index();
                if let Some(release) = self.pending[place].pop_front() {
                    self.longest[place] = self.longest[place].max(at.late_since(release));
                }
            }
            _ => {}
        }
    }
}

fn responses(set: &TaskSet, policy: &str, overheads: &Overheads, horizon: Instant) -> Vec<Span> {
    let entry = registry::find(policy).unwrap();
    let mut longest = Longest {
        pending: vec![VecDeque::new(); set.tasks.len()],
        longest: vec![Span::ZERO; set.tasks.len()],
    };
    let options = Options {
        seed: 1,
        horizon,
        overheads: Some(overheads.clone()),
        reserve_server: false,
    };
    let bound = candidate(set, policy).bound.unwrap();
    let inflated = inflate_for_pfair(set, &entry.traits, &bound, overheads);
    let policy = entry.build(inflated.as_ref().unwrap_or(set)).unwrap();
    Simulation::new(set, policy, &entry.traits, options).run(&mut longest);
    for (pending, longest) in longest.pending.iter().zip(&mut longest.longest) {
        let waited = pending.front().map(|&release| horizon.late_since(release));
        *longest = waited.map_or(*longest, |waited| waited.max(*longest));
    }
    longest.longest
}

/// The set with other legal releases, most of them bunched, and now and then shorter work.
fn attacked(set: &TaskSet, round: u64, stream: &mut RandomStream) -> TaskSet {
    const UNTIL: u64 = 60_000;
    let mut set = set.clone();
    for task in &mut set.tasks {
        let (period, cost) = (task.period.as_ns(), task.cost.as_ns());
        // All at once, a few moments apart, or anywhere.
        let spread = [1, 60, period][(round % 3) as usize];
        let mut at = 1_000 + stream.below(spread);
        let mut releases = Vec::new();
        while at < UNTIL {
            releases.push(Instant::from_ns(at));
            let gap = match stream.below(4) {
                0 => stream.below(60),
                1 if round > 3 => stream.below(period),
                _ => 0,
            };
            at += period + gap;
        }
        task.arrival = Arrival::Releases(releases);
        if round > 4 {
            let work = (0..8).map(|_| match stream.below(3) {
                0 => Span::from_ns(1 + stream.below(cost)),
                _ => task.cost,
            });
            task.work = Work::Trace(work.collect());
        }
    }
    set
}

/// The most demanding multiple of the system of which what is wanted is shown.
fn tightened(
    set: &TaskSet,
    policy: &str,
    overheads: &Overheads,
    wanted: impl Fn(&Shown) -> bool,
) -> Option<(TaskSet, Shown)> {
    let (mut best, mut low, mut high) = (None, 0, 48);
    while low < high {
        let middle = (low + high) / 2 + 1;
        let scaled = random::scaled(set, middle);
        match shown(&scaled, policy, overheads).filter(|shown| wanted(shown)) {
            Some(shown) => {
                best = Some((scaled, shown));
                low = middle;
            }
            None => high = middle - 1,
        }
    }
    best
}

#[test]
fn no_verdict_under_overheads_is_contradicted_by_a_schedule_that_pays_them() {
    let systems = match std::env::var_os("SHIFTWORK_LONG") {
        None => 880,
        Some(_) => 20_000,
    };
    let mut claims = [[0; 2]; POLICIES.len()];
    // The longest response of those closest to their bounds, in thousandths.
    let mut closest = [0; POLICIES.len()];
    for seed in 0..systems {
        let place = (seed % POLICIES.len() as u64) as usize;
        let policy = POLICIES[place];
        let mut stream = RandomStream::new(seed, 62, 0);
        let set = random::system(policy, &mut stream);
        let overheads = random::overheads(&mut stream);
        let hard = stream.below(2) == 0;
        let wanted = |shown: &Shown| match hard {
            true => shown.in_time,
            false => shown.bounds.iter().all(Option::is_some),
        };
        let Some((set, shown)) = tightened(&set, policy, &overheads, wanted) else {
            continue;
        };
        claims[place][usize::from(shown.in_time)] += 1;
        for round in 0..9 {
            let attacked = attacked(&set, round, &mut stream);
            let bounds = shown.bounds.iter().flatten().max().copied();
            let horizon = Instant::from_ns(80_000) + bounds.unwrap_or(Span::ZERO);
            let found = responses(&attacked, policy, &overheads, horizon);
            for (index, (task, response)) in set.tasks.iter().zip(found).enumerate() {
                let due = shown.in_time.then_some(task.deadline);
                for bound in [due, shown.bounds[index]].into_iter().flatten() {
                    assert!(
                        response <= bound,
                        "seed {seed}, round {round}, {policy}: T{index} takes {response}, \
                         at most {bound} is shown\n{overheads:?}\n{attacked:?}"
                    );
                    let part = response.as_ns() * 1_000 / bound.as_ns();
                    closest[place] = part.max(closest[place]);
                }
            }
        }
    }
    println!("{POLICIES:?}: {claims:?}, as close as {closest:?}");
    // Bounds without preemptions are far from what happens.
    for ((policy, claims), closest) in POLICIES.iter().zip(claims).zip(closest) {
        let made: u64 = claims.iter().sum();
        assert!(
            made > systems / 4 / POLICIES.len() as u64,
            "{policy}: {claims:?}"
        );
        assert!(closest > 450, "{policy}: {closest}");
    }
}
