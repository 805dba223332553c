//! The reduction to global scheduling, against its definition over all subsets of CPUs, and against
//! the simulator: what it shows is never late, weak or strong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::affinity::{Bound, reduction_edf, reduction_fp};
use shiftwork_analysis::{NotShown, Outcome, Placed, Ranked, Sporadic, Steps};
use shiftwork_model::{
    Affinity, Arrival, CpuSet, Instant, Priority, RandomStream, Record, RecordKind, Share, Span,
    Task, TaskSet,
};
use shiftwork_policy::registry;
use shiftwork_sim::{Options, Simulation};

/// Cost, period, deadline, CPUs as bits.
type Plain = (u64, u64, u64, u64);

fn whole() -> Share {
    Share::from_billionths(Share::WHOLE).unwrap()
}

fn sporadic(&(cost, period, deadline, _): &Plain) -> Sporadic {
    let [cost, period, deadline] = [cost, period, deadline].map(Span::from_ns);
    Sporadic {
        cost,
        period,
        deadline,
    }
}

fn by_edf(tasks: &[Plain]) -> Outcome<NotShown, Vec<Span>> {
    let placed = tasks.iter().map(|task| Placed {
        task: sporadic(task),
        cpus: CpuSet::from_bits(task.3),
    });
    reduction_edf(&placed.collect::<Vec<_>>(), whole(), &mut Steps::ordinary())
}

/// The first task is the most urgent.
fn by_priority(tasks: &[Plain]) -> Outcome<NotShown, Vec<Span>> {
    let bounds = tasks.iter().zip(1..).map(|(task, number)| Bound {
        ranked: Ranked {
            task: sporadic(task),
            priority: Priority::new(number).unwrap(),
        },
        cpus: CpuSet::from_bits(task.3),
    });
    reduction_fp(&bounds.collect::<Vec<_>>(), whole(), &mut Steps::ordinary())
}

/// The work of a task whose jobs finish within `response`, in an interval of this length.
fn work((cost, period, _, _): Plain, response: u64, length: u64) -> u64 {
    let reach = length + response - cost;
    reach / period * cost + cost.min(reach % period)
}

/// The response of the task among these others, trying every nanosecond; `None` beyond its deadline.
fn response_by_trying(
    own: Plain,
    others: &[usize],
    cpus: u32,
    work: impl Fn(usize, u64) -> u64,
) -> Option<u64> {
    (own.0..=own.2).find(|&response| {
        let most = response - own.0 + 1;
        let delay: u64 = others
            .iter()
            .map(|&other| work(other, response).min(most))
            .sum();
        own.0 + delay / u64::from(cpus) <= response
    })
}

/// The least over all subsets of the task's CPUs, or that for all of them only.
fn least_response(
    tasks: &[Plain],
    own: usize,
    among: &[usize],
    all_cpus_only: bool,
    work: impl Fn(usize, u64) -> u64,
) -> Option<u64> {
    let mask = tasks[own].3;
    let subsets = (1..=mask).filter(|&subset| subset & !mask == 0);
    let subsets = subsets.filter(|&subset| !all_cpus_only || subset == mask);
    let one = |subset: u64| {
        let others = among
            .iter()
            .copied()
            .filter(|&other| tasks[other].3 & subset != 0);
        let others: Vec<usize> = others.filter(|&other| other != own).collect();
        response_by_trying(tasks[own], &others, subset.count_ones(), &work)
    };
    subsets.filter_map(one).min()
}

fn priority_by_definition(tasks: &[Plain]) -> Option<Vec<u64>> {
    [true, false].into_iter().find_map(|all_cpus_only| {
        let mut known: Vec<u64> = Vec::new();
        for own in 0..tasks.len() {
            let urgent: Vec<usize> = (0..own).collect();
            let found = least_response(tasks, own, &urgent, all_cpus_only, |other, length| {
                work(tasks[other], known[other], length)
            });
            known.push(found?);
        }
        Some(known)
    })
}

fn edf_by_definition(tasks: &[Plain]) -> Option<Vec<u64>> {
    let mut known: Vec<u64> = tasks.iter().map(|task| task.2).collect();
    let mut shown = vec![false; tasks.len()];
    let all: Vec<usize> = (0..tasks.len()).collect();
    for all_cpus_only in [true, false] {
        loop {
            let before = known.clone();
            for own in 0..tasks.len() {
                let found = least_response(tasks, own, &all, all_cpus_only, |other, length| {
                    let (cost, period, deadline, _) = tasks[other];
                    let rest = tasks[own].2 % period;
                    let slack = deadline - known[other];
                    let due = tasks[own].2 / period * cost + cost.min(rest.saturating_sub(slack));
                    work(tasks[other], known[other], length).min(due)
                });
                if let Some(found) = found.filter(|&found| found <= known[own]) {
                    known[own] = found;
                    shown[own] = true;
                }
            }
            if shown.iter().all(|&shown| shown) {
                return Some(known);
            }
            if known == before {
                break;
            }
        }
    }
    None
}

fn random_tasks(stream: &mut RandomStream, cpus: u64, most: u64) -> Vec<Plain> {
    let load = 20 + stream.below(50);
    (0..2 + stream.below(most - 1))
        .map(|_| {
            let period = [4, 5, 6, 8, 10, 12, 20][stream.below(7) as usize];
            let cost = 1 + stream.below((period * load / 100).max(1));
            let deadline = match stream.below(2) {
                0 => period,
                _ => cost + stream.below(period - cost + 1),
            };
            let bits = match stream.below(4) {
                0 => (1 << cpus) - 1,
                1 => 1 << stream.below(cpus),
                _ => 1 + stream.below((1 << cpus) - 1),
            };
            (cost, period, deadline, bits)
        })
        .collect()
}

fn compare(
    found: &Outcome<NotShown, Vec<Span>>,
    expected: Option<Vec<u64>>,
    context: &str,
) -> bool {
    let bounds = match found {
        Outcome::Pass(bounds) => Some(bounds.iter().map(|bound| bound.as_ns()).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("{context}: out of steps"),
    };
    assert_eq!(bounds, expected, "{context}");
    bounds.is_some()
}

#[test]
fn it_is_the_definition_over_all_subsets() {
    let (mut passed, mut by_subsets) = ([0; 2], [0; 2]);
    for seed in 0..1_500 {
        let mut stream = RandomStream::new(seed, 42, 0);
        let cpus = 2 + stream.below(3);
        let tasks = random_tasks(&mut stream, cpus, 7);
        let context = format!("seed {seed}: {tasks:?}");
        let all: Vec<usize> = (0..tasks.len()).collect();
        let expected = [priority_by_definition(&tasks), edf_by_definition(&tasks)];
        let found = [by_priority(&tasks), by_edf(&tasks)];
        for (order, (found, expected)) in found.iter().zip(expected).enumerate() {
            passed[order] += usize::from(compare(found, expected, &context));
        }
        // How often a task needs less than all its CPUs.
        let narrow = |own: usize| {
            let urgent = &all[..own];
            let least = |all_cpus_only| {
                least_response(&tasks, own, urgent, all_cpus_only, |other, length| {
                    work(tasks[other], tasks[other].2, length)
                })
            };
            least(true) != least(false)
        };
        by_subsets[usize::from(all.iter().any(|&own| narrow(own)))] += 1;
    }
    assert!(passed.iter().all(|&count| count > 200), "{passed:?}");
    assert!(
        by_subsets.iter().all(|&count| count > 100),
        "{by_subsets:?}"
    );
}

#[test]
fn a_subset_can_show_what_all_cpus_do_not() {
    // The last task may use both CPUs, but most work is bound to the second. On both it might wait
    // for (2 + 4 + 5) / 2, on the first for 2.
    let narrow = |bits| {
        [
            (2, 10, 10, 0b01),
            (4, 10, 10, bits),
            (5, 10, 10, bits),
            (7, 10, 10, 0b11),
        ]
    };
    let bounds = [2, 4, 9, 9].map(Span::from_ns).to_vec();
    assert_eq!(by_priority(&narrow(0b10)), Outcome::Pass(bounds));
    assert_eq!(
        by_priority(&narrow(0b11)),
        Outcome::Fail(NotShown { place: 3 })
    );
}

#[test]
fn many_cells_are_searched_by_dropping_and_never_beat_the_definition() {
    let mut passed = 0;
    for seed in 0..60 {
        let mut stream = RandomStream::new(seed, 42, 1);
        // Twelve CPUs, each with a task of its own: more cells than are tried in all subsets.
        let mut tasks: Vec<Plain> = (0..12)
            .map(|cpu| (1 + stream.below(6), 10, 10, 1 << cpu))
            .collect();
        for _ in 0..2 {
            tasks.push((1 + stream.below(4), 20, 20, 0xfff));
        }
        let expected = priority_by_definition(&tasks);
        match by_priority(&tasks) {
            Outcome::Pass(bounds) => {
                passed += 1;
                let expected = expected.unwrap_or_else(|| panic!("seed {seed}: {tasks:?}"));
                let least = bounds.iter().zip(expected);
                for (bound, least) in least {
                    assert!(bound.as_ns() >= least, "seed {seed}: {tasks:?}");
                }
            }
            Outcome::Fail(_) => {}
            Outcome::StepLimit => panic!("seed {seed}: out of steps"),
        }
    }
    assert!(passed > 10, "{passed}");
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// The worst response of each task over some hyperperiods.
fn simulated(set: &TaskSet, policy: &str, seed: u64) -> Vec<u64> {
    let periods = set.tasks.iter().map(|task| task.period.as_ns());
    let hyperperiod = periods.fold(1, |all, period| all / gcd(all, period) * period);
    let entry = registry::find(policy).unwrap();
    let options = Options {
        seed,
        horizon: Instant::from_ns(3 * hyperperiod + 50),
        overheads: None,
        reserve_server: false,
    };
    let mut records: Vec<Record> = Vec::new();
    Simulation::new(set, entry.build(set).unwrap(), &entry.traits, options).run(&mut records);
    let mut worst = vec![0; set.tasks.len()];
    let mut released = std::collections::BTreeMap::new();
    for record in &records {
        match record.kind {
            RecordKind::Released { job, .. } => {
                released.insert(job, record.at.as_ns());
            }
            RecordKind::Completed { job } => {
                let response = record.at.as_ns() - released[&job];
                let worst: &mut u64 = &mut worst[job.task.index()];
                *worst = (*worst).max(response);
            }
            _ => {}
        }
    }
    worst
}

/// Rounds of the campaign; `SHIFTWORK_LONG` asks for many.
fn rounds() -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 500,
    }
}

fn never_late(policies: [&str; 2], test: fn(&[Plain]) -> Outcome<NotShown, Vec<Span>>) {
    let (mut shown, mut close) = (0, 0);
    for seed in 0..rounds() {
        let mut stream = RandomStream::new(seed, 42, 2);
        let cpus = 2 + stream.below(3);
        let mut tasks = random_tasks(&mut stream, cpus, 8);
        if !matches!(test(&tasks), Outcome::Pass(_)) {
            continue;
        }
        // Up to where it would no longer be shown: there a mistake would show.
        for _ in 0..20 {
            let mut more = tasks.clone();
            let place = stream.below(tasks.len() as u64) as usize;
            more[place].0 += 1;
            if more[place].0 <= more[place].2 && matches!(test(&more), Outcome::Pass(_)) {
                tasks = more;
            }
        }
        let Outcome::Pass(bounds) = test(&tasks) else {
            panic!("seed {seed}: it was shown before")
        };
        shown += 1;
        let mut set = set_of(&tasks, cpus as usize);
        for round in 0..4 {
            for (index, task) in set.tasks.iter_mut().enumerate().filter(|_| round > 0) {
                task.offset = Span::from_ns(stream.below(task.period.as_ns()));
                let gaps = round == 3 && (index as u64 + seed).is_multiple_of(2);
                if gaps {
                    task.arrival = Arrival::Sporadic;
                }
            }
            for policy in policies {
                let worst = simulated(&set, policy, seed);
                for (place, (&worst, bound)) in worst.iter().zip(&bounds).enumerate() {
                    assert!(
                        worst <= bound.as_ns(),
                        "{policy}, seed {seed}, round {round}: {worst} above {bound} of task \
                         {place} of {tasks:?}"
                    );
                    close += usize::from(worst == bound.as_ns() && worst > tasks[place].0);
                }
            }
        }
    }
    assert!(shown > 100 && close > 100, "{shown} {close}");
}

fn set_of(tasks: &[Plain], cpus: usize) -> TaskSet {
    let task = |(task, number): (&Plain, u32)| {
        let affinity = Affinity::new(CpuSet::from_bits(task.3)).unwrap();
        let [cost, period] = [task.0, task.1].map(Span::from_ns);
        let mut built = Task::periodic("T", cost, period, affinity);
        built.deadline = Span::from_ns(task.2);
        built.priority = Priority::new(number);
        built
    };
    TaskSet::new("random", cpus, tasks.iter().zip(1..).map(task).collect())
}

#[test]
fn a_task_shown_under_edf_never_exceeds_its_bound() {
    never_late(["weak-edf", "strong-edf"], by_edf);
}

#[test]
fn a_task_shown_under_fixed_priorities_never_exceeds_its_bound() {
    never_late(["weak-fp", "strong-fp"], by_priority);
}

#[test]
fn what_is_outside_its_domain_is_not_shown() {
    for task in [
        (0, 4, 4, 1),
        (1, 0, 4, 1),
        (1, 4, 0, 1),
        (3, 4, 2, 1),
        (1, 4, 5, 1),
        (1, 4, 4, 0),
        (u64::MAX, u64::MAX, u64::MAX, 1),
    ] {
        let tasks = [(1, 4, 4, 1), task];
        for outcome in [by_edf(&tasks), by_priority(&tasks)] {
            assert_eq!(outcome, Outcome::Fail(NotShown { place: 1 }), "{task:?}");
        }
    }
    assert_eq!(by_edf(&[]), Outcome::Pass(Vec::new()));
}
