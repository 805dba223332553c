//! Response times by trying every whole number, with the longest wait of `packing.rs`.

use shiftwork_model::{CpuSet, Priority, RandomStream, Share, Span};

use super::packing::{blockers, levels, longest};
use super::{Plain, tasks, times_if_long};
use crate::affinity::divisor::Divisor;
use crate::affinity::interference::Interferer;
use crate::affinity::waiting_levels::earlier::{Delaying, Earlier};
use crate::affinity::waiting_levels::levels::Affinities;
use crate::affinity::{
    Bound, waiting_levels_edf_with_suspensions, waiting_levels_fp_with_suspensions,
};
use crate::{Outcome, Placed, Ranked, Sporadic, Steps};

/// What a task executes in a window if each of its jobs finishes within `response`, the first as late as
/// it can and the others as soon as they come: by counting units of time.
fn work((cost, period, ..): Plain, response: u64, length: u64) -> u64 {
    let executes = |at: u64| {
        let late = response - cost <= at && at < response;
        let soon = at >= period && at % period < cost;
        late || soon
    };
    let begins = [response - cost, 0, period];
    let in_window = |begin: u64| (begin..begin + length).filter(|&at| executes(at)).count() as u64;
    begins.into_iter().map(in_window).max().unwrap()
}

/// What jobs due within `until` execute from 0 on, if each is done within `response`, with deadlines aligned at the end.
fn due((cost, period, deadline, _): Plain, response: u64, until: u64) -> u64 {
    let slack = deadline - response;
    let deadlines = (0..=until).rev().step_by(period as usize);
    deadlines.map(|at| cost.min(at.saturating_sub(slack))).sum()
}

/// The least window from `from` on that is no shorter than what a job takes alone and the longest wait in it.
fn response(
    tasks: &[Plain],
    alone: u64,
    own: usize,
    from: u64,
    work: impl Fn(usize, u64) -> u64,
) -> Option<u64> {
    let affinities: Vec<u64> = tasks.iter().map(|task| task.3).collect();
    let sets = blockers(&affinities, own, false);
    (from..=tasks[own].2).find(|&length| {
        let of = |other: usize| if other == own { 0 } else { work(other, length) };
        let works: Vec<u64> = (0..tasks.len()).map(of).collect();
        let waited = longest(&sets, &works).floor().to_integer();
        waited <= (length - alone).into()
    })
}

/// How long earlier windows may begin before a release.
const EARLIEST: u64 = 150;

/// What the jobs that are released and due in so long a window execute.
fn inside((cost, period, deadline, _): Plain, length: u64) -> u64 {
    let jobs = (deadline..=length).step_by(period as usize);
    jobs.map(|_| cost).sum()
}

/// The sets of tasks, as bits, that can have begun to execute before a window in which a job of `own` waits at any time
/// at a level, and before which none was full: all that can, or as many as one more would be too many.
fn carried_in(tasks: &[Plain], own: usize, is_around: impl Fn(usize) -> bool) -> Vec<u32> {
    let affinities: Vec<u64> = tasks.iter().map(|task| task.3).collect();
    let levels = levels(&affinities, own);
    let chosen = |set: u32| (0..tasks.len()).filter(move |task| set >> task & 1 == 1);
    let fits = |set: &u32| {
        chosen(*set).all(&is_around)
            && levels.iter().all(|level| {
                let in_level = chosen(*set).filter(|&task| affinities[task] & !level == 0);
                in_level.count() < level.count_ones() as usize
            })
    };
    let sets: Vec<u32> = (0..1 << tasks.len()).filter(fits).collect();
    let is_most = |set: &&u32| !sets.iter().any(|other| other != *set && *set & !other == 0);
    sets.iter().filter(is_most).copied().collect()
}

/// Whether a job of `own` waits no longer than it can in every window that begins up to some instant before its release,
/// by trying every whole number. What is carried in is limited of tasks that never suspend themselves.
fn is_in_time((tasks, suspended): (&[Plain], &[u64]), own: usize, known: &[u64]) -> bool {
    let affinities: Vec<u64> = tasks.iter().map(|task| task.3).collect();
    let (cost, deadline) = (tasks[own].0, tasks[own].2);
    let sets = blockers(&affinities, own, false);
    let is_around = |task: usize| affinities[own] & !affinities[task] == 0 && suspended[task] == 0;
    let carried = carried_in(tasks, own, is_around);
    let waited = |length: u64, carries: &dyn Fn(usize) -> bool| {
        let of = |task: usize| {
            let response = if task == own { deadline } else { known[task] };
            let all = match carries(task) || !is_around(task) {
                true => due(tasks[task], response, length),
                false => inside(tasks[task], length),
            };
            all - if task == own { cost } else { 0 }
        };
        let works: Vec<u64> = (0..tasks.len()).map(of).collect();
        longest(&sets, &works).floor().to_integer()
    };
    for before in 0..EARLIEST {
        let length = before + deadline;
        let spare = (length - cost - suspended[own]).into();
        if waited(length, &|_| true) <= spare {
            return true;
        }
        let mut few = carried.iter();
        if few.any(|set| waited(length, &|task| set >> task & 1 == 1) > spare) {
            return false;
        }
    }
    false
}

fn by_deadline(tasks: &[Plain], suspended: &[u64]) -> Option<Vec<u64>> {
    least_by_deadline((tasks, suspended), |own, known| {
        is_in_time((tasks, suspended), own, known)
    })
}

fn without_earlier(tasks: &[Plain], suspended: &[u64]) -> Option<Vec<u64>> {
    least_by_deadline((tasks, suspended), |_, _| false)
}

fn least_by_deadline(
    (tasks, suspended): (&[Plain], &[u64]),
    is_in_time: impl Fn(usize, &[u64]) -> bool,
) -> Option<Vec<u64>> {
    let alone = |own: usize| tasks[own].0 + suspended[own];
    let mut known: Vec<u64> = (0..tasks.len()).map(alone).collect();
    if tasks
        .iter()
        .zip(&known)
        .any(|(task, &known)| known > task.2)
    {
        return None;
    }
    loop {
        let before = known.clone();
        for own in 0..tasks.len() {
            let least = response(tasks, alone(own), own, known[own], |other, length| {
                let due = due(tasks[other], known[other], tasks[own].2);
                work(tasks[other], known[other], length).min(due)
            });
            let in_time = || is_in_time(own, &known).then_some(tasks[own].2);
            known[own] = least.or_else(in_time)?;
        }
        if known == before {
            return Some(known);
        }
    }
}

fn by_priority(tasks: &[Plain], suspended: &[u64]) -> Option<Vec<u64>> {
    let mut known: Vec<u64> = Vec::new();
    for own in 0..tasks.len() {
        let alone = tasks[own].0 + suspended[own];
        let found = response(tasks, alone, own, alone, |other, length| {
            match other < own {
                true => work(tasks[other], known[other], length),
                false => 0,
            }
        });
        known.push(found?);
    }
    Some(known)
}

fn sporadic(&(cost, period, deadline, _): &Plain) -> Sporadic {
    let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ns);
    Sporadic {
        cost,
        period,
        deadline,
    }
}

/// What the implementation finds: under EDF and under fixed priorities.
fn found(tasks: &[Plain], suspended: &[u64]) -> [Option<Vec<u64>>; 2] {
    let suspended: Vec<Span> = suspended.iter().copied().map(Span::from_ns).collect();
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    let bound: Vec<Bound> = tasks
        .iter()
        .zip(1..)
        .map(|(task, number)| Bound {
            ranked: Ranked {
                task: sporadic(task),
                priority: Priority::new(number).unwrap(),
            },
            cpus: CpuSet::from_bits(task.3),
        })
        .collect();
    let placed: Vec<Placed> = bound
        .iter()
        .map(|bound| Placed {
            task: bound.ranked.task,
            cpus: bound.cpus,
        })
        .collect();
    let outcomes = [
        waiting_levels_edf_with_suspensions(&placed, &suspended, whole, &mut Steps::ordinary()),
        waiting_levels_fp_with_suspensions(&bound, &suspended, whole, &mut Steps::ordinary()),
    ];
    outcomes.map(|outcome| match outcome {
        Outcome::Pass(bounds) => Some(bounds.iter().map(|bound| bound.as_ns()).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("out of steps"),
    })
}

/// Compares so many cases with suspensions of these lengths.
fn compare(cases: u64, part: u64, suspension: impl Fn(&mut RandomStream, &Plain) -> u64) {
    let (mut passed, mut missed, mut earlier) = ([0; 2], 0, 0);
    for seed in 0..cases {
        let mut stream = RandomStream::new(seed, 81, part);
        let tasks = tasks(&mut stream, true, 6);
        let suspended = tasks.iter().map(|task| suspension(&mut stream, task));
        let suspended: Vec<u64> = suspended.collect();
        let expected = [
            by_deadline(&tasks, &suspended),
            by_priority(&tasks, &suspended),
        ];
        let found = found(&tasks, &suspended);
        // Which tasks carry work in is decided for each cut, and windows are looked at in blocks: some are missed.
        let is_missed = found[0].is_none() && expected[0].is_some();
        missed += u64::from(is_missed);
        let compared = usize::from(is_missed)..;
        assert_eq!(
            found[compared.clone()],
            expected[compared],
            "seed {seed}: {tasks:?} {suspended:?}"
        );
        let is_earlier = found[0].is_some() && without_earlier(&tasks, &suspended).is_none();
        earlier += u64::from(is_earlier);
        for (count, bounds) in passed.iter_mut().zip(found) {
            *count += u64::from(bounds.is_some());
        }
    }
    println!("{passed:?} of {cases}, {earlier} by earlier windows, {missed} missed");
    let enough = |&count: &u64| cases / 10 < count && count < cases * 9 / 10;
    assert!(passed.iter().all(enough), "{passed:?} of {cases}");
    assert!(earlier > 0 && missed * 20 <= cases, "{earlier} {missed}");
}

#[test]
fn response_times_are_those_of_the_definition() {
    compare(times_if_long(300, 20), 1, |_, _| 0);
}

#[test]
fn response_times_with_suspensions_are_those_of_the_definition() {
    compare(times_if_long(300, 20), 3, |stream, task| {
        match stream.below(2) {
            0 => 0,
            _ => stream.below((task.2 - task.0) / 2 + 1),
        }
    });
}

/// Whether earlier windows show the task, by the implementation; `None` if it can never wait.
fn is_shown((tasks, suspended): (&[Plain], &[u64]), own: usize, known: &[u64]) -> Option<bool> {
    let cpus: Vec<CpuSet> = tasks.iter().map(|task| CpuSet::from_bits(task.3)).collect();
    let family = Affinities::new(cpus.iter());
    let program = family.program(family.of(own));
    let delaying = |place: usize| Delaying {
        task: Interferer {
            cost: tasks[place].0,
            period: Divisor::new(tasks[place].1),
            response: known[place],
        },
        deadline: tasks[place].2,
        suspended: suspended[place],
    };
    let mut earlier = Earlier::new(&program, own, delaying)?;
    Some(earlier.is_in_time(&mut Steps::ordinary()).unwrap())
}

#[test]
fn earlier_windows_show_no_task_that_the_definition_does_not() {
    let (mut shown, mut missed) = (0, 0);
    for seed in 0..times_if_long(1_500, 10) {
        let mut stream = RandomStream::new(seed, 81, 2);
        let tasks = tasks(&mut stream, true, 5);
        let some_response =
            |&(cost, _, deadline, _): &Plain| cost + stream.below(deadline - cost + 1);
        let known: Vec<u64> = tasks.iter().map(some_response).collect();
        let suspends = seed % 2 == 1;
        let suspended = tasks
            .iter()
            .zip(&known)
            .map(|(task, &known)| match suspends {
                true => stream.below(2) * stream.below(known - task.0 + 1),
                false => 0,
            });
        let suspended: Vec<u64> = suspended.collect();
        let tasks = (&tasks[..], &suspended[..]);
        for own in 0..suspended.len() {
            let Some(found) = is_shown(tasks, own, &known) else {
                continue;
            };
            let expected = is_in_time(tasks, own, &known);
            let context = || format!("seed {seed}, task {own}: {tasks:?} {known:?}");
            assert!(expected || !found, "{}", context());
            shown += u64::from(found);
            missed += u64::from(expected && !found);
        }
    }
    println!("{shown} shown, {missed} missed");
    assert!(shown > 1_000 && missed * 20 < shown, "{shown} {missed}");
}
