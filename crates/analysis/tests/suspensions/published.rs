//! What was published and is wrong, refuted by single schedules; and what is published and right, of which the theorem loses
//! nothing.

use shiftwork_model::RandomStream;

use super::schedules::{Release, scripted};
use super::{Plain, count, random_tasks, shown};

/// The least times by a recurrence in which each more urgent task adds its cost for each period that begins in the window and
/// so much longer, beside so much for the task itself.
fn bounds(
    tasks: &[Plain],
    ahead: impl Fn(usize, &[Option<u64>]) -> u64,
    own: impl Fn(usize) -> u64,
) -> Vec<Option<u64>> {
    let mut found: Vec<Option<u64>> = Vec::new();
    for place in 0..tasks.len() {
        if found.contains(&None) {
            found.push(None);
            continue;
        }
        let demand = |time: u64| {
            let interference = |other: usize| {
                let jobs = (time + ahead(other, &found)).div_ceil(tasks[other].period);
                jobs * tasks[other].cost
            };
            own(place) + (0..place).map(interference).sum::<u64>()
        };
        let least = (1..=tasks[place].limit()).find(|&time| demand(time) <= time);
        found.push(least);
    }
    found
}

fn alone(task: &Plain) -> u64 {
    task.cost + task.suspension
}

fn tasks<const N: usize>(times: [[u64; 3]; N]) -> Vec<Plain> {
    let of = |(place, [cost, suspension, period]): (usize, [u64; 3])| Plain {
        cost,
        suspension,
        period,
        deadline: period,
        priority: place as u32 + 1,
    };
    times.into_iter().enumerate().map(of).collect()
}

/// A job of a task that suspends itself for the longest after each of these numbers of executed units.
fn release(task: usize, at: u64, stops: &[(u64, u64)]) -> Release {
    Release {
        task,
        at,
        stops: stops.to_vec(),
    }
}

/// The delay S for R - C: the second task is suspended each time that it would go on, so that it is late, and its next job is
/// not. The third waits for both.
#[test]
fn delay_as_long_as_the_suspension_is_refuted() {
    let tasks = tasks([[10, 0, 20], [50, 50, 200], [10, 0, 500]]);
    let wrong = bounds(
        &tasks,
        |other, _| tasks[other].suspension,
        |place| alone(&tasks[place]),
    );
    assert_eq!(wrong[2], Some(120));
    let pauses = [(1, 9), (2, 9), (3, 9), (4, 9), (5, 9)];
    let mut releases: Vec<Release> = (0..30).map(|job| release(0, job * 20, &[])).collect();
    releases.push(release(1, 0, &pauses));
    releases.push(release(1, 200, &[]));
    releases.push(release(2, 100, &[]));
    let longest = scripted(&tasks, &releases, 600);
    assert_eq!(longest, [10, 195, 215]);
    let shown = shown(&tasks).unwrap();
    assert!(
        shown
            .iter()
            .zip(&longest)
            .all(|(bound, response)| response <= bound),
        "{shown:?}"
    );
    assert_eq!(shown[2], 220);
}

/// The same with jobs of a few units.
#[test]
fn delay_as_long_as_the_suspension_is_refuted_by_short_jobs() {
    let tasks = tasks([[3, 0, 11], [4, 1, 12], [4, 0, 30]]);
    let wrong = bounds(
        &tasks,
        |other, _| tasks[other].suspension,
        |place| alone(&tasks[place]),
    );
    assert_eq!(wrong[2], Some(11));
    let releases = [
        release(0, 0, &[]),
        release(0, 11, &[]),
        release(1, 0, &[(1, 1)]),
        release(1, 12, &[]),
        release(2, 5, &[]),
    ];
    assert_eq!(scripted(&tasks, &releases, 30)[2], 14);
    assert_eq!(shown(&tasks).unwrap()[2], 18);
}

/// Suspension as delay (R - C) and suspension as blocking are published, and the framework is to contain both.
#[test]
fn delay_and_blocking_show_nothing_that_is_not_shown() {
    let mut sharper = [0; 2];
    for seed in 0..count(10_000) {
        let stream = &mut RandomStream::new(seed, 145, 0);
        let tasks = random_tasks(stream, 7, false);
        let by_delay = bounds(
            &tasks,
            |other, found| found[other].unwrap() - tasks[other].cost,
            |place| alone(&tasks[place]),
        );
        let blocking = |place: usize| {
            let others = tasks[..place].iter();
            others
                .map(|other| other.suspension.min(other.cost))
                .sum::<u64>()
        };
        let by_blocking = bounds(
            &tasks,
            |_, _| 0,
            |place| alone(&tasks[place]) + blocking(place),
        );
        let shown = shown(&tasks);
        for (published, sharper) in [by_delay, by_blocking].iter().zip(&mut sharper) {
            match &shown {
                Ok(shown) => {
                    let pairs = shown.iter().zip(published);
                    let is_least = |(shown, published): (&u64, &Option<u64>)| {
                        published.is_none_or(|published| *shown <= published)
                    };
                    assert!(
                        pairs.clone().all(is_least),
                        "seed {seed}: {shown:?} {published:?} {tasks:?}"
                    );
                    *sharper += u64::from(published.contains(&None));
                }
                Err(_) => assert!(
                    published.contains(&None),
                    "seed {seed}: {published:?} {tasks:?}"
                ),
            }
        }
    }
    println!("sets that only the framework shows: {sharper:?}");
    assert!(sharper.iter().all(|&sharper| sharper > 20));
}
