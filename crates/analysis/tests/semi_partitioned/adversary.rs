//! An adversary that chooses at run time when bound tasks release their jobs, so that the migrating
//! tasks fall behind as far as possible.
//!
//! Migrating tasks release as often as they may. Repeatedly, for every two bound tasks, the
//! adversary simulates every pair of releases in the near future. It commits the pair that leaves
//! the most work of migrating tasks unfinished; of equal ones the earliest. It releases two jobs at
//! a time, since one preempted task always finds the CPU that is left: that is the pattern of
//! Example 5. If no pair gains anything, time advances.

use std::cmp::Reverse;

use shiftwork_model::{RandomStream, Repairs, Share};

use super::is_long;
use super::run::{Undone, simulate};
use super::system::{Member, System, member};

/// What the adversary has achieved.
#[derive(Clone, Debug)]
pub struct Attack {
    policy: &'static str,
    repairs: Repairs,
    /// By task, the releases chosen so far; `None` for migrating tasks.
    releases: Vec<Option<Vec<u64>>>,
    /// Until when everything is chosen.
    now: u64,
    /// After each step, how much work of migrating tasks is left undone beyond what there is without
    /// bound tasks.
    undone: Vec<u64>,
}

/// Two bound tasks and when they release.
type Pair = [(usize, u64); 2];

impl Attack {
    pub fn new(system: &System, policy: &'static str, repairs: Repairs) -> Self {
        let none = |member: &Member| member.bound.map(|_| Vec::new());
        Self {
            policy,
            repairs,
            releases: system.members.iter().map(none).collect(),
            now: 0,
            undone: Vec::new(),
        }
    }

    /// Takes so many steps; what was left undone after each.
    pub fn run(mut self, system: &System, steps: usize) -> Vec<u64> {
        for _ in 0..steps {
            self.step(system);
        }
        self.undone
    }

    fn step(&mut self, system: &System) {
        let left = self.undone.last().copied().unwrap_or(0);
        let window = system.longest_period() + left;
        let horizon = self.now + window + 2 * system.longest_period();
        let idle = self.left_undone(system, horizon, None);
        let mut best: Option<(u64, Reverse<u64>, Pair)> = None;
        for pair in self.pairs(system, window) {
            let gained = self.left_undone(system, horizon, Some(pair));
            let end = pair[0].1.max(pair[1].1);
            let candidate = (gained, Reverse(end), pair);
            if gained > idle && best.is_none_or(|best| best < candidate) {
                best = Some(candidate);
            }
        }
        let mut undone = idle;
        self.now += system.longest_period();
        if let Some((gained, Reverse(end), pair)) = best {
            commit(&mut self.releases, pair);
            self.now = end + 1;
            undone = gained;
        }
        let usual = Self::new(system, self.policy, self.repairs).left_undone(system, horizon, None);
        self.undone.push(undone.saturating_sub(usual));
    }

    fn pairs(&self, system: &System, window: u64) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let bound = |place: &usize| self.releases[*place].is_some();
        let places: Vec<usize> = (0..system.members.len()).filter(bound).collect();
        let times = |place: usize| {
            let jobs = self.releases[place].as_deref().unwrap_or_default();
            let first = jobs
                .last()
                .map_or(0, |last| last + system.members[place].period);
            first.max(self.now)..self.now + window
        };
        for (at, &one) in places.iter().enumerate() {
            for &other in &places[at + 1..] {
                for early in times(one) {
                    pairs.extend(times(other).map(|late| [(one, early), (other, late)]));
                }
            }
        }
        pairs
    }

    /// The work of migrating tasks that is left at `horizon` if `pair` is released too.
    fn left_undone(&self, system: &System, horizon: u64, pair: Option<Pair>) -> u64 {
        let mut releases = self.releases.clone();
        if let Some(pair) = pair {
            commit(&mut releases, pair);
        }
        let set = system.task_set(&releases, self.repairs);
        let mut undone = Undone::of_migrating(&set);
        simulate(&set, self.policy, horizon, &mut undone);
        undone.finish(horizon)
    }
}

fn commit(releases: &mut [Option<Vec<u64>>], pair: Pair) {
    for (place, at) in pair {
        if let Some(jobs) = &mut releases[place] {
            jobs.push(at);
        }
    }
}

/// Example 5: three CPUs, two tasks that always run, and one on each CPU now and then.
fn example_5() -> System {
    let starting = |start| Member {
        start: Some(start),
        ..member(2, 2, None)
    };
    System {
        cpus: 3,
        members: vec![
            member(2, 6, Some(0)),
            starting(0),
            member(1, 6, Some(1)),
            starting(2),
            member(2, 6, Some(2)),
        ],
    }
}

/// Like Example 5, at random: tasks that always run on all CPUs but one, and one task on each CPU.
fn like_example_5(seed: u64) -> System {
    let mut stream = RandomStream::new(seed, 2021, 5);
    let cpus = 3 + stream.below(2) as usize;
    let mut members = Vec::new();
    for _ in 1..cpus {
        let period = 1 + stream.below(3);
        members.push(member(period, period, None));
    }
    for cpu in 0..cpus {
        let cost = 1 + stream.below(2);
        members.push(member(
            cost,
            cost * cpus as u64 + stream.below(3),
            Some(cpu),
        ));
    }
    let system = System { cpus, members };
    assert!(system.is_allowed(Share::from_billionths(Share::WHOLE).unwrap()));
    system
}

const LINUX: (&str, Repairs) = ("dl-linux", Repairs::NONE);
const REPAIRED: (&str, Repairs) = ("dl-sp", Repairs::ALL);

/// All repairs but this one.
pub fn without(name: &str) -> Repairs {
    let others = Repairs::NAMES.into_iter().filter(|other| *other != name);
    others.fold(Repairs::NONE, |repairs, name| repairs.with(name).unwrap())
}

/// The result of an adversary with this effort; the same effort for every policy.
fn attack(system: &System, (policy, repairs): (&'static str, Repairs)) -> Vec<u64> {
    let steps = if is_long() { 24 } else { 6 };
    Attack::new(system, policy, repairs).run(system, steps)
}

/// Whether it gets worse in the second half of the steps still, by one in every other step at least.
fn grows(undone: &[u64]) -> bool {
    let half = undone.len() / 2;
    undone[undone.len() - 1] >= undone[half - 1] + half as u64 / 2
}

#[test]
fn the_tasks_of_example_5_fall_behind_for_ever_unless_the_bypass_is_repaired() {
    let system = example_5();
    for bypassing in [LINUX, ("dl-sp", without("no-bypass"))] {
        let undone = attack(&system, bypassing);
        assert!(grows(&undone), "{bypassing:?}: {undone:?}");
    }
    for repaired in [REPAIRED, ("dl-sp", without("push-without-itself"))] {
        let undone = attack(&system, repaired);
        assert!(
            undone.iter().all(|&one| one == 0),
            "{repaired:?}: {undone:?}"
        );
    }
}

#[test]
fn sets_like_example_5_fall_behind_for_ever_unless_the_bypass_is_repaired() {
    let sets = if is_long() { 60 } else { 4 };
    let (mut worse, mut grown) = (0, 0);
    for seed in 0..sets {
        let system = like_example_5(seed);
        let bypassing = [LINUX, ("dl-sp", without("no-bypass"))];
        grown += u64::from(bypassing.iter().all(|&one| grows(&attack(&system, one))));
        let repaired = attack(&system, REPAIRED);
        let pushed = attack(&system, ("dl-sp", without("push-without-itself")));
        for undone in [&repaired, &pushed] {
            let most: u64 = system.migrating().map(|member| member.cost).sum();
            let (early, late) = undone.split_at(undone.len() / 2);
            assert!(
                undone.iter().all(|&one| one <= most),
                "seed {seed}: {undone:?}"
            );
            assert!(
                early.iter().max() >= late.iter().max(),
                "seed {seed}: {undone:?}"
            );
        }
        worse += u64::from(pushed.iter().max() > repaired.iter().max());
    }
    println!("{worse} of {sets} sets are later if pushes count the job that is pushed");
    println!("{grown} of {sets} sets fall behind for ever with the bypass");
    // Greed does not find the way in every set: it looks one occurrence ahead.
    assert!(2 * grown > sets, "only {grown} of {sets} sets fall behind");
}
