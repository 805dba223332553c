//! Random sets, and releases that ask much of them.

use shiftwork_model::{RandomStream, Repairs, TaskSet};
use shiftwork_trace::{Inversion, InversionKind};

use super::is_long;
use super::run::{Run, is_short, run};
use super::system::{Member, System, member, random};

/// How the releases of a set come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// All tasks from zero on, as often as they may.
    Together,
    /// The same from random offsets on.
    Shifted,
    /// Random gaps.
    Sporadic,
    /// Migrating tasks as often as they may; the bound ones wait for each other now and then, and come at
    /// once.
    Bursts,
}

const PATTERNS: [Pattern; 4] = [
    Pattern::Together,
    Pattern::Shifted,
    Pattern::Sporadic,
    Pattern::Bursts,
];

/// Runs are so many of the longest period long, at first.
const PERIODS: u64 = 60;

fn releases(
    system: &System,
    pattern: Pattern,
    horizon: u64,
    stream: &mut RandomStream,
) -> Vec<Option<Vec<u64>>> {
    let longest = system.longest_period();
    let bursts: Vec<u64> = std::iter::successors(Some(stream.below(longest)), |at| {
        Some(at + longest + stream.below(longest))
    })
    .take_while(|&at| at < horizon)
    .collect();
    let mut one = |member: &Member| {
        let mut at = match pattern {
            Pattern::Together => return None,
            Pattern::Bursts if member.bound.is_none() => return None,
            _ => stream.below(member.period),
        };
        let mut jobs = Vec::new();
        while at < horizon {
            jobs.push(at);
            let next = at + member.period;
            at = match pattern {
                Pattern::Sporadic if stream.below(2) == 0 => next + stream.below(member.period),
                // A release shortly before a burst is postponed to the burst.
                Pattern::Bursts => {
                    let burst = bursts[bursts.partition_point(|&burst| burst < next)..].first();
                    match burst {
                        Some(&burst) if burst < next + member.period => burst,
                        _ => next,
                    }
                }
                _ => next,
            };
        }
        Some(jobs)
    };
    system.members.iter().map(&mut one).collect()
}

/// What a campaign has seen.
#[derive(Debug, Default)]
struct Seen {
    runs: u64,
    /// Runs in which a task was late.
    late: u64,
    /// Maximum number of times that a run was made four times as long.
    longer: u32,
    inversions: u64,
    direct: u64,
    /// Affinity-related inversions that outlast the cost of the job that was in the way first.
    chained: u64,
}

/// Maximum tardiness of any task within this number of periods.
fn lateness(
    system: &System,
    pattern: Pattern,
    periods: u64,
    stream: &mut RandomStream,
) -> (u64, TaskSet, Run) {
    let horizon = periods * system.longest_period();
    let releases = releases(system, pattern, horizon, stream);
    let set = system.task_set(&releases, Repairs::ALL);
    let run = run(&set, "dl-sp", horizon);
    let late = run.longest.iter().zip(&system.members);
    let late = late.map(|(longest, member)| longest.saturating_sub(member.period));
    (late.max().unwrap(), set, run)
}

/// How often a run has to be made four times as long until that no longer raises the maximum
/// tardiness by half; `None` if seven times are not enough.
fn settles(system: &System, pattern: Pattern, stream: &mut RandomStream) -> Option<u32> {
    let mut before = lateness(system, pattern, PERIODS, stream).0;
    for times in 1..=7 {
        let after = lateness(system, pattern, PERIODS << (2 * times), stream).0;
        // Short delays count for little.
        if 2 * after <= 3 * before + 2 * system.longest_period() {
            return Some(times);
        }
        before = after;
    }
    None
}

#[test]
fn lateness_settles_and_inversions_end_with_the_job_in_the_way() {
    let sets = if is_long() { 20_000 } else { 120 };
    let mut seen = Seen::default();
    for seed in 0..sets {
        let mut stream = RandomStream::new(seed, 2021, 4);
        let system = random(&mut stream);
        if system.migrating().count() == 0 {
            continue;
        }
        for pattern in PATTERNS {
            let case = format!("seed {seed}, {pattern:?}: {system:?}");
            let (late, set, run) = lateness(&system, pattern, PERIODS, &mut stream);
            seen.runs += 1;
            seen.late += u64::from(late > 0);
            for inversion in &run.inversions {
                count(&set, inversion, &case, &mut seen);
            }
            // A maximum tardiness below that has nothing to settle.
            if late > 2 * system.longest_period() {
                let times = settles(&system, pattern, &mut stream);
                assert!(times.is_some(), "later and later: {case}");
                seen.longer = seen.longer.max(times.unwrap_or(0));
            }
        }
    }
    println!("{seen:?}");
    assert!(
        seen.inversions > sets && seen.late > sets / 4,
        "the sets ask for little: {seen:?}"
    );
    assert_eq!((seen.direct, seen.chained), (0, 0), "{seen:?}");
}

fn count(set: &TaskSet, inversion: &Inversion, case: &str, seen: &mut Seen) {
    seen.inversions += 1;
    if inversion.kind == InversionKind::Direct {
        seen.direct += 1;
        return;
    }
    let first = inversion.in_the_way.unwrap().task;
    let first = &set.tasks[first.index()];
    assert!(first.affinity.cpus().len() > 1, "{inversion:?}; {case}");
    seen.chained += u64::from(!is_short(set, inversion));
}

#[test]
fn what_never_settles_is_found() {
    let system = System {
        cpus: 2,
        members: vec![member(7, 10, None); 3],
    };
    let mut stream = RandomStream::new(1, 2021, 4);
    assert_eq!(settles(&system, Pattern::Together, &mut stream), None);
}

#[test]
fn without_a_reserve_lateness_climbs_to_eighty_times_that_of_the_strong_invariant() {
    let system = System {
        cpus: 2,
        members: vec![
            member(10, 10, None),
            member(1, 20, Some(0)),
            member(2, 10, Some(1)),
            member(3, 4, Some(1)),
        ],
    };
    let set = system.task_set(&[], Repairs::ALL);
    let late = |policy, horizon| run(&set, policy, horizon).longest[0] - 10;
    assert_eq!(late("strong-edf", 60_000), 2);
    let climbs = [400, 800, 1_600, 3_200, 12_800].map(|horizon| late("dl-sp", horizon));
    assert!(
        climbs.windows(2).all(|pair| pair[0] < pair[1]),
        "{climbs:?}"
    );
    assert_eq!(late("dl-sp", 60_000), late("dl-sp", 240_000));
}
