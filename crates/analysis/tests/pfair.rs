//! What is shown of Pfair schedules against PD2 itself, slot by slot.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ticks;

use shiftwork_analysis::pfair::{Quanta, pfair, pfair_responses};
use shiftwork_analysis::{NotShown, Outcome, Sporadic, Steps};
use shiftwork_model::{RandomStream, Span};
use ticks::{factor, sporadic};

fn quanta(quantum: u64, staggered: bool, aligned: bool) -> Quanta {
    Quanta {
        quantum: Span::from_ns(quantum),
        staggered,
        aligned,
    }
}

fn shown(tasks: &[Sporadic], cpus: usize, quanta: &Quanta) -> bool {
    pfair(tasks, cpus, quanta, &mut Steps::ordinary()) == Outcome::Pass(())
}

/// A part of a job, one slot long.
struct Subtask {
    task: usize,
    job: usize,
    /// Its place within the job, from 1.
    index: u64,
    /// The first slot in which it may run.
    release: u64,
    /// Earlier deadline; then an overlap with the next; then the later group deadline.
    rank: (u64, bool, std::cmp::Reverse<u64>),
}

/// The subtasks of a job of e slots in p that is seen at a slot, as PD2 defines them.
fn subtasks(task: usize, job: usize, seen: u64, e: u64, p: u64) -> Vec<Subtask> {
    let deadline = |i: u64| (i * p).div_ceil(e);
    let overlaps = |i: u64| !(i * p).is_multiple_of(e);
    let release = |i: u64| (i - 1) * p / e;
    let group = |i: u64| {
        if 2 * e < p {
            return 0;
        }
        if e == p {
            return u64::MAX;
        }
        let mut i = i;
        while overlaps(i) && deadline(i + 1) - release(i + 1) == 2 {
            i += 1;
        }
        match overlaps(i) {
            true => deadline(i) + 1,
            false => deadline(i),
        }
    };
    let subtask = |index| Subtask {
        task,
        job,
        index,
        release: seen + release(index),
        rank: (
            seen + deadline(index),
            !overlaps(index),
            std::cmp::Reverse(group(index).saturating_add(seen)),
        ),
    };
    (1..=e).map(subtask).collect()
}

/// The last slot of each job under PD2; `jobs` has for each task e, p and the slots in which its jobs
/// are seen.
fn last_slots(jobs: &[(u64, u64, Vec<u64>)], cpus: usize) -> Vec<Vec<u64>> {
    let mut waiting: Vec<Subtask> = Vec::new();
    for (task, (e, p, seen)) in jobs.iter().enumerate() {
        let all = seen.iter().enumerate();
        waiting.extend(all.flat_map(|(job, &seen)| subtasks(task, job, seen, *e, *p)));
    }
    waiting.sort_by_key(|subtask| (subtask.rank, subtask.task, subtask.job, subtask.index));
    let mut last: Vec<Vec<u64>> = jobs
        .iter()
        .map(|(_, _, seen)| vec![0; seen.len()])
        .collect();
    for slot in 0.. {
        if waiting.is_empty() {
            break;
        }
        let mut next = vec![None; jobs.len()];
        for subtask in &waiting {
            let first = next[subtask.task].get_or_insert((subtask.job, subtask.index));
            *first = (*first).min((subtask.job, subtask.index));
        }
        let mut free = cpus;
        waiting.retain(|subtask| {
            let first = next[subtask.task] == Some((subtask.job, subtask.index));
            let runs = first && free > 0 && subtask.release <= slot;
            if runs {
                free -= 1;
                last[subtask.task][subtask.job] = slot;
            }
            !runs
        });
    }
    last
}

fn random(stream: &mut RandomStream, quantum: u64) -> Vec<Sporadic> {
    (0..1 + stream.below(6))
        .map(|_| {
            let period = 1 + stream.below(12 * quantum);
            let cost = 1 + stream.below(period);
            let deadline = match stream.below(3) {
                0 => cost + stream.below(2 * period - cost + 1),
                _ => period,
            };
            sporadic(cost, period, deadline)
        })
        .collect()
}

/// e and p as the module describes them: p for deadlines to be met, or only the period.
fn in_quanta(task: &Sporadic, cpus: u64, quanta: &Quanta, hard: bool) -> (u64, u64) {
    let quantum = quanta.quantum.as_ns();
    let [cost, period, deadline] = [task.cost, task.period, task.deadline].map(Span::as_ns);
    let aligned = quanta.aligned && period % quantum == 0;
    // In parts of a nanosecond, as many as CPUs.
    let mut left = deadline * cpus;
    if !aligned {
        left = left.saturating_sub(quantum * cpus);
    }
    if quanta.staggered {
        left = left.saturating_sub(quantum * (cpus - 1));
    }
    let p = match hard {
        true => (left / (quantum * cpus)).min(period / quantum),
        false => period / quantum,
    };
    (cost.div_ceil(quantum), p)
}

#[test]
fn what_is_shown_meets_its_deadlines_and_bounds_under_pd2() {
    let mut passed = [0, 0];
    for seed in 0..6_000 * factor() {
        let mut stream = RandomStream::new(seed, 73, 0);
        let quantum = 1 + stream.below(4);
        let cpus = 1 + stream.below(4);
        let quanta = quanta(quantum, stream.below(2) == 0, stream.below(2) == 0);
        let mut tasks = random(&mut stream, quantum);
        if quanta.aligned {
            for task in &mut tasks {
                task.period = Span::from_ns(task.period.as_ns().next_multiple_of(quantum));
            }
        }
        let at = format!("seed {seed} on {cpus}, {quanta:?}: {tasks:?}");
        let hard = shown(&tasks, cpus as usize, &quanta);
        let soft = pfair_responses(&tasks, cpus as usize, &quanta, &mut Steps::ordinary());
        let bounds = match &soft {
            Outcome::Pass(bounds) => bounds.clone(),
            _ => vec![Span::MAX; tasks.len()],
        };
        let shown = [hard, matches!(soft, Outcome::Pass(_))];
        for (place, (hard, shown)) in [true, false].into_iter().zip(shown).enumerate() {
            if !shown {
                continue;
            }
            passed[place] += 1;
            let mut arrivals = Vec::new();
            let mut jobs = Vec::new();
            for task in &tasks {
                let period = task.period.as_ns();
                let step = if quanta.aligned { quantum } else { 1 };
                let mut arrival = step * stream.below(12);
                let mut of_task = Vec::new();
                while arrival < 20 * quantum {
                    of_task.push(arrival);
                    let late = !quanta.aligned && stream.below(3) == 0;
                    arrival += period + if late { stream.below(quantum + 1) } else { 0 };
                }
                let seen = of_task.iter().map(|at| at.div_ceil(quantum)).collect();
                let (e, p) = in_quanta(task, cpus, &quanta, hard);
                jobs.push((e, p, seen));
                arrivals.push(of_task);
            }
            for (index, slots) in last_slots(&jobs, cpus as usize).iter().enumerate() {
                for (slot, arrival) in slots.iter().zip(&arrivals[index]) {
                    // The end of the slot on the last CPU, in parts of a nanosecond.
                    let late = if quanta.staggered {
                        (cpus - 1) * quantum
                    } else {
                        0
                    };
                    let response = ((slot + 1) * quantum - arrival) * cpus + late;
                    let limit = if hard {
                        tasks[index].deadline
                    } else {
                        bounds[index]
                    };
                    assert!(response <= limit.as_ns() * cpus, "{at}: task {index}");
                }
            }
        }
    }
    assert!(passed.iter().all(|&passed| passed > 500), "{passed:?}");
}

#[test]
fn utilization_in_whole_quanta_decides() {
    for seed in 0..4_000 * factor() {
        let mut stream = RandomStream::new(seed, 73, 1);
        let (quantum, cpus) = (1 + stream.below(4), 1 + stream.below(4));
        let quanta = quanta(quantum, stream.below(2) == 0, stream.below(2) == 0);
        let tasks = random(&mut stream, quantum);
        let in_quanta = |task| in_quanta(task, cpus, &quanta, true);
        let rates: Vec<(u64, u64)> = tasks.iter().map(in_quanta).collect();
        let alone = rates.iter().all(|&(e, p)| e <= p);
        let common = rates
            .iter()
            .fold(1, |all, &(_, p)| ticks::lcm(all, p.max(1)));
        let expected =
            alone && rates.iter().map(|(e, p)| common / p * e).sum::<u64>() <= cpus * common;
        let found = shown(&tasks, cpus as usize, &quanta);
        assert_eq!(
            found, expected,
            "seed {seed} on {cpus}, {quanta:?}: {tasks:?}"
        );
    }
}

#[test]
fn published_examples_fit_exactly() {
    // Three tasks of two thirds fill two CPUs: {T1 T2} {T1 T3} {T2 T3}, over and over.
    let thirds = [sporadic(2_000_000, 3_000_000, 3_000_000); 3];
    let aligned = quanta(1_000_000, false, true);
    assert!(shown(&thirds, 2, &aligned));
    // A nanosecond more is a quantum more.
    let mut more = thirds;
    more[1].cost = Span::from_ns(2_000_001);
    let found = pfair(&more, 2, &aligned, &mut Steps::ordinary());
    assert_eq!(found, Outcome::Fail(NotShown { place: 2 }));
    assert!(!shown(&thirds, 2, &quanta(1_000_000, false, false)));
    assert!(!shown(&thirds, 2, &quanta(1_000_000, true, true)));
    let slots = last_slots(&vec![(2, 3, vec![0, 3]); 3], 2);
    assert_eq!(slots, [[1, 4], [2, 5], [2, 5]]);
    // The windows of a task of weight 8/11 and its group deadlines (J. Anderson, A. Srinivasan).
    let windows = subtasks(0, 0, 0, 8, 11);
    let release = |subtask: &Subtask| (subtask.release, subtask.rank.0);
    assert_eq!(
        windows.iter().map(release).collect::<Vec<_>>(),
        [
            (0, 2),
            (1, 3),
            (2, 5),
            (4, 6),
            (5, 7),
            (6, 9),
            (8, 10),
            (9, 11)
        ]
    );
    let groups: Vec<u64> = windows.iter().map(|subtask| subtask.rank.2.0).collect();
    assert_eq!(groups, [4, 4, 8, 8, 8, 11, 11, 11]);
}

#[test]
fn staggering_costs_less_than_a_quantum() {
    // On 32 CPUs and with quanta of 1 ms, 31/32 ms (968.75 us).
    let longest = |period: u64| [sporadic(9_000_000, period, period)];
    let staggered = quanta(1_000_000, true, true);
    assert!(shown(&longest(10_000_000), 32, &staggered));
    assert!(!shown(&longest(9_000_000), 32, &staggered));
    let unaligned = quanta(1_000_000, true, false);
    assert!(shown(&longest(10_968_750), 32, &unaligned));
    assert!(!shown(&longest(10_968_749), 32, &unaligned));
    let bounds = pfair_responses(&longest(9_000_000), 32, &staggered, &mut Steps::ordinary());
    assert_eq!(bounds, Outcome::Pass(vec![Span::from_ns(9_968_750)]));
}

#[test]
fn any_input_has_an_answer() {
    let most = u64::MAX;
    let times = [0, 1, 7, most];
    for cost in times {
        for period in times {
            for quantum in times {
                for cpus in [0, 1, 3, usize::MAX] {
                    let tasks = [sporadic(cost, period, period), sporadic(1, most, most)];
                    for aligned in [true, false] {
                        let quanta = quanta(quantum, true, aligned);
                        shown(&tasks, cpus, &quanta);
                        pfair_responses(&tasks, cpus, &quanta, &mut Steps::ordinary());
                    }
                }
            }
        }
    }
    let tasks = [sporadic(1, 2, 2); 4];
    let limited = pfair(&tasks, 2, &quanta(1, false, true), &mut Steps::at_most(3));
    assert_eq!(limited, Outcome::StepLimit);
    assert!(shown(&[], 0, &quanta(0, false, false)));
}
