//! Response times by trying every whole number, with the longest wait of `packing.rs`.

use shiftwork_model::{CpuSet, Priority, RandomStream, Share, Span};

use super::packing::{blockers, levels, longest};
use super::{Plain, tasks, times_if_long};
use crate::affinity::divisor::Divisor;
use crate::affinity::interference::Interferer;
use crate::affinity::waiting_levels::earlier::{Delaying, Earlier};
use crate::affinity::waiting_levels::levels::Affinities;
use crate::affinity::{Bound, waiting_levels_edf, waiting_levels_fp};
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

/// The least window from `from` on that is no shorter than the cost and the longest wait in it.
fn response(
    tasks: &[Plain],
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
        waited <= (length - tasks[own].0).into()
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
fn carried_in(tasks: &[Plain], own: usize) -> Vec<u32> {
    let affinities: Vec<u64> = tasks.iter().map(|task| task.3).collect();
    let levels = levels(&affinities, own);
    let is_around = |task: usize| affinities[own] & !affinities[task] == 0;
    let chosen = |set: u32| (0..tasks.len()).filter(move |task| set >> task & 1 == 1);
    let fits = |set: &u32| {
        chosen(*set).all(is_around)
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
/// by trying every whole number.
fn is_in_time(tasks: &[Plain], own: usize, known: &[u64]) -> bool {
    let affinities: Vec<u64> = tasks.iter().map(|task| task.3).collect();
    let (cost, deadline) = (tasks[own].0, tasks[own].2);
    let sets = blockers(&affinities, own, false);
    let carried = carried_in(tasks, own);
    let is_around = |task: usize| affinities[own] & !affinities[task] == 0;
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
        let (length, spare) = (before + deadline, (before + deadline - cost).into());
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

fn by_deadline(tasks: &[Plain]) -> Option<Vec<u64>> {
    least_by_deadline(tasks, |own, known| is_in_time(tasks, own, known))
}

fn without_earlier(tasks: &[Plain]) -> Option<Vec<u64>> {
    least_by_deadline(tasks, |_, _| false)
}

fn least_by_deadline(
    tasks: &[Plain],
    is_in_time: impl Fn(usize, &[u64]) -> bool,
) -> Option<Vec<u64>> {
    let mut known: Vec<u64> = tasks.iter().map(|task| task.0).collect();
    loop {
        let before = known.clone();
        for own in 0..tasks.len() {
            let least = response(tasks, own, known[own], |other, length| {
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

fn by_priority(tasks: &[Plain]) -> Option<Vec<u64>> {
    let mut known: Vec<u64> = Vec::new();
    for own in 0..tasks.len() {
        let found = response(tasks, own, tasks[own].0, |other, length| {
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
fn found(tasks: &[Plain]) -> [Option<Vec<u64>>; 2] {
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
        waiting_levels_edf(&placed, whole, &mut Steps::ordinary()),
        waiting_levels_fp(&bound, whole, &mut Steps::ordinary()),
    ];
    outcomes.map(|outcome| match outcome {
        Outcome::Pass(bounds) => Some(bounds.iter().map(|bound| bound.as_ns()).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("out of steps"),
    })
}

#[test]
fn response_times_are_those_of_the_definition() {
    let (mut passed, mut missed, mut earlier) = ([0; 2], 0, 0);
    let cases = times_if_long(300, 20);
    for seed in 0..cases {
        let mut stream = RandomStream::new(seed, 81, 1);
        let tasks = tasks(&mut stream, true, 6);
        let expected = [by_deadline(&tasks), by_priority(&tasks)];
        let found = found(&tasks);
        // Which tasks carry work in is decided for each cut, and windows are looked at in blocks: some are missed.
        let is_missed = found[0].is_none() && expected[0].is_some();
        missed += u64::from(is_missed);
        let compared = usize::from(is_missed)..;
        assert_eq!(
            found[compared.clone()],
            expected[compared],
            "seed {seed}: {tasks:?}"
        );
        earlier += u64::from(found[0].is_some() && without_earlier(&tasks).is_none());
        for (count, bounds) in passed.iter_mut().zip(found) {
            *count += u64::from(bounds.is_some());
        }
    }
    let enough = |&count: &u64| cases / 10 < count && count < cases * 9 / 10;
    assert!(passed.iter().all(enough), "{passed:?} of {cases}");
    println!("{earlier} by earlier windows, {missed} missed");
    assert!(earlier > 0 && missed * 20 <= cases, "{earlier} {missed}");
}

/// Whether earlier windows show the task, by the implementation; `None` if it can never wait.
fn is_shown(tasks: &[Plain], own: usize, known: &[u64]) -> Option<bool> {
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
        for own in 0..tasks.len() {
            let Some(found) = is_shown(&tasks, own, &known) else {
                continue;
            };
            let expected = is_in_time(&tasks, own, &known);
            let context = || format!("seed {seed}, task {own}: {tasks:?} {known:?}");
            assert!(expected || !found, "{}", context());
            shown += u64::from(found);
            missed += u64::from(expected && !found);
        }
    }
    println!("{shown} shown, {missed} missed");
    assert!(shown > 1_000 && missed * 20 < shown, "{shown} {missed}");
}
