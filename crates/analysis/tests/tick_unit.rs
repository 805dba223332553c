//! Time that is counted in units longer than a nanosecond: which verdicts change, and that they are those of the
//! published formulas in whole numbers of that unit, as SchedCAT computes them.
//!
//! The formulas are written out here once more, by number after number, and share nothing with the tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ticks;

use shiftwork_analysis::verdicts::{Answer, Candidate, Found, PolicyAnalysis, analyse};
use shiftwork_model::{Affinity, CpuSet, Priority, RandomStream, Span, Task, TaskSet};
use shiftwork_policy::registry;
use ticks::{factor, lcm};

const STEPS: u64 = 20_000_000;

/// A task in whole ticks. The first is the most urgent.
#[derive(Clone, Copy, Debug)]
struct Plain {
    cost: u64,
    period: u64,
    deadline: u64,
}

const fn plain(cost: u64, period: u64, deadline: u64) -> Plain {
    Plain {
        cost,
        period,
        deadline,
    }
}

/// The tasks with ticks of so many nanoseconds, and time counted in units of so many.
fn set(tasks: &[Plain], cpus: usize, tick_ns: u64, unit_ns: u64) -> TaskSet {
    let all = Affinity::new(CpuSet::first(cpus)).unwrap();
    let task = |(place, task): (usize, &Plain)| {
        let [cost, period, deadline] =
            [task.cost, task.period, task.deadline].map(|ticks| Span::from_ns(ticks * tick_ns));
        Task {
            deadline,
            priority: Priority::new(place as u32 + 1),
            ..Task::periodic(&format!("t{place}"), cost, period, all)
        }
    };
    let mut set = TaskSet::new("", cpus, tasks.iter().enumerate().map(task).collect());
    set.platform.tick_unit = Span::from_ns(unit_ns);
    set
}

fn found(policy: &str, set: &TaskSet) -> PolicyAnalysis {
    let candidate = Candidate {
        policy: policy.to_owned(),
        traits: registry::find(policy).unwrap().traits,
        bound: Ok(set.tasks.iter().map(|task| task.affinity).collect()),
    };
    analyse(set, &[candidate], STEPS).policies.remove(0)
}

/// Whether a hard test passes.
fn passes(found: &PolicyAnalysis, test: &str) -> bool {
    let verdict = found.hard.tests.iter().find(|(name, _)| *name == test);
    verdict.unwrap_or_else(|| panic!("{test} is asked")).1 == Found::Pass
}

/// In microseconds where time is counted in these, and in nanoseconds.
fn in_both(tasks: &[Plain], cpus: usize, policy: &str) -> [PolicyAnalysis; 2] {
    [1_000, 1].map(|unit_ns| found(policy, &set(tasks, cpus, 1_000, unit_ns)))
}

/// Bertogna and Cirinei 2007: the work of a task in a window, its jobs done `slack` before their deadlines.
fn work_in(task: &Plain, window: u64, slack: u64) -> u64 {
    let reach = window + task.deadline - task.cost - slack;
    reach / task.period * task.cost + task.cost.min(reach % task.period)
}

/// The same: the work that is due in a window which ends with a deadline.
fn work_due(task: &Plain, window: u64, slack: u64) -> u64 {
    let rest = (window % task.period).saturating_sub(slack);
    window / task.period * task.cost + task.cost.min(rest)
}

/// Rounds over all tasks until all are shown or nothing is learnt; `response` of a task, given the slacks.
fn by_rounds(tasks: &[Plain], response: impl Fn(usize, &[u64]) -> Option<u64>) -> bool {
    let mut slacks = vec![0; tasks.len()];
    loop {
        let (mut all, mut learnt) = (true, false);
        for place in 0..tasks.len() {
            match response(place, &slacks) {
                None => all = false,
                Some(response) => {
                    let slack = tasks[place].deadline - response;
                    learnt |= slack > slacks[place];
                    slacks[place] = slack.max(slacks[place]);
                }
            }
        }
        if all || !learnt {
            return all;
        }
    }
}

fn others(tasks: &[Plain], place: usize) -> impl Iterator<Item = (usize, &Plain)> {
    tasks
        .iter()
        .enumerate()
        .filter(move |&(other, _)| other != place)
}

/// Bertogna and Cirinei 2007, for EDF.
fn rta(tasks: &[Plain], cpus: u64) -> bool {
    by_rounds(tasks, |place, slacks| {
        let own = tasks[place];
        (own.cost..=own.deadline).find(|&response| {
            let delays = others(tasks, place).map(|(other, task)| {
                let due = work_due(task, own.deadline, slacks[other]);
                let work = work_in(task, response, slacks[other]);
                due.min(work).min(response - own.cost + 1)
            });
            own.cost + delays.sum::<u64>() / cpus <= response
        })
    })
}

/// Bertogna, Cirinei and Lipari 2009, the iterative test for EDF.
fn bcli(tasks: &[Plain], cpus: u64) -> bool {
    by_rounds(tasks, |place, slacks| {
        let own = tasks[place];
        let delays = others(tasks, place).map(|(other, task)| {
            work_due(task, own.deadline, slacks[other]).min(own.deadline - own.cost + 1)
        });
        Some(own.cost + delays.sum::<u64>() / cpus).filter(|&response| response <= own.deadline)
    })
}

/// Baruah 2007, for every A_k, one after the other.
fn bar(tasks: &[Plain], cpus: u64) -> bool {
    let hyperperiod = tasks.iter().fold(1, |all, task| lcm(all, task.period));
    let used: u64 = tasks
        .iter()
        .map(|task| hyperperiod / task.period * task.cost)
        .sum();
    if used >= cpus * hyperperiod {
        return false;
    }
    let costs: u64 = tasks.iter().map(|task| task.cost).sum();
    // No A_k beyond this can fail: more than the published bound, as all costs count.
    let last = (2 * costs + cpus * costs) * hyperperiod / (cpus * hyperperiod - used);
    tasks.iter().enumerate().all(|(own, task)| {
        (0..=last).all(|before| {
            let length = before + task.deadline;
            let most = length - task.cost + 1;
            let cut = |place: usize, demand: u64| match place == own {
                true => (demand - task.cost).min(before),
                false => demand.min(most),
            };
            let (mut sum, mut more) = (0, Vec::new());
            for (place, other) in tasks.iter().enumerate() {
                let due = match length.checked_sub(other.deadline) {
                    Some(rest) => (rest / other.period + 1) * other.cost,
                    None => 0,
                };
                let carried = work_due(other, length, 0).max(due);
                sum += cut(place, due);
                more.push(cut(place, carried) - cut(place, due));
            }
            more.sort_unstable_by(|a, b| b.cmp(a));
            let carried_in: u64 = more.iter().take(cpus as usize - 1).sum();
            sum + carried_in <= cpus * (length - task.cost)
        })
    })
}

/// Fixed priorities: each task's response from those before it, by what they may run in a window of a length
/// of which no more than the third number delays.
fn in_order(tasks: &[Plain], cpus: u64, delay: impl Fn(&[(Plain, u64)], u64, u64) -> u64) -> bool {
    let mut known: Vec<(Plain, u64)> = Vec::new();
    for &own in tasks {
        let holds = |response: u64| {
            own.cost + delay(&known, response, response - own.cost + 1) / cpus <= response
        };
        match (own.cost..=own.deadline).find(|&response| holds(response)) {
            Some(response) => known.push((own, response)),
            None => return false,
        }
    }
    true
}

/// Bertogna and Cirinei 2007, for fixed priorities.
fn bc(tasks: &[Plain], cpus: u64) -> bool {
    in_order(tasks, cpus, |known, window, most| {
        let work = |(task, response): &(Plain, u64)| {
            work_in(task, window, task.deadline - response).min(most)
        };
        known.iter().map(work).sum()
    })
}

/// Guan, Stigge, Yi and Yu 2009.
fn guan(tasks: &[Plain], cpus: u64) -> bool {
    in_order(tasks, cpus, |known, window, most| {
        let (mut sum, mut more) = (0, Vec::new());
        for (task, response) in known {
            let without = window / task.period * task.cost + task.cost.min(window % task.period);
            let after = window.saturating_sub(task.cost);
            let rest = (after % task.period).saturating_sub(task.period - response);
            let with = after / task.period * task.cost + task.cost + rest.min(task.cost - 1);
            sum += without.min(most);
            more.push(with.min(most).saturating_sub(without.min(most)));
        }
        more.sort_unstable_by(|a, b| b.cmp(a));
        sum + more.iter().take(cpus as usize - 1).sum::<u64>()
    })
}

type Formula = fn(&[Plain], u64) -> bool;

/// The tests whose formulas depend on the unit, with the policies that they are asked about.
const DEPENDING: [(&str, &str, Formula); 5] = [
    ("g-edf", "rta", rta),
    ("g-edf", "bcli", bcli),
    ("g-edf", "bar", bar),
    ("g-fp", "bc", bc),
    ("g-fp", "guan", guan),
];

/// Of the last task three others may each delay a job by 1 us before its deadline, on two CPUs: by 1.5 us together,
/// of which 1 us counts where a delay is whole microseconds.
#[test]
fn half_a_unit_of_delay_is_none() {
    let tasks = [
        plain(1, 5, 4),
        plain(1, 6, 5),
        plain(1, 3, 3),
        plain(1, 3, 2),
    ];
    let [in_us, in_ns] = in_both(&tasks, 2, "g-edf");
    assert!(passes(&in_us, "rta"));
    assert!(!passes(&in_ns, "rta"));
    let shown = in_us
        .bounds
        .iter()
        .find(|bounds| bounds.test == "rta")
        .unwrap();
    let us = |number| Some(Span::from_us(number));
    assert_eq!(shown.responses, [us(3), us(3), us(2), us(2)]);
}

/// Costs are rounded up and deadlines down, and then a failure shows nothing.
#[test]
fn times_between_units_are_rounded_to_ask_for_more() {
    let mut set = set(&[plain(1, 4, 3), plain(2, 4, 4)], 1, 1_000, 1_000);
    let times = |set: &TaskSet| {
        let found = found("p-edf", set);
        let responses = found.best.iter().map(|best| best.unwrap().response);
        (found.hard.answer, responses.collect::<Vec<Span>>())
    };
    let us = Span::from_us;
    assert_eq!(times(&set), (Answer::Schedulable, vec![us(2), us(3)]));
    set.tasks[1].cost = Span::from_ns(1_001);
    assert_eq!(times(&set), (Answer::Schedulable, vec![us(2), us(3)]));
    // Two units of work would be due after one.
    set.tasks[1].deadline = Span::from_ns(1_999);
    assert_eq!(times(&set).0, Answer::Unknown);
}

/// Constrained deadlines and a load that decides nothing.
fn random(stream: &mut RandomStream, cpus: u64) -> Vec<Plain> {
    let count = cpus + 1 + stream.below(4);
    let task = |_| {
        let period = 2 + stream.below(11);
        let cost = 1 + stream.below(period.div_ceil(2));
        plain(cost, period, cost + stream.below(period - cost + 1))
    };
    (0..count).map(task).collect()
}

#[test]
fn verdicts_are_those_of_the_formulas_in_whole_units() {
    let mut differ = [0; DEPENDING.len()];
    for seed in 0..1_500 * factor() {
        let mut stream = RandomStream::new(seed, 84, 0);
        let cpus = 2 + stream.below(2);
        let tasks = random(&mut stream, cpus);
        let at = format!("seed {seed} on {cpus}: {tasks:?}");
        let edf = in_both(&tasks, cpus as usize, "g-edf");
        let fp = in_both(&tasks, cpus as usize, "g-fp");
        let hopeless = |found: &PolicyAnalysis| found.hard.by == ["feasibility"];
        if hopeless(&edf[0]) {
            continue;
        }
        for ((policy, test, formula), differ) in DEPENDING.into_iter().zip(&mut differ) {
            let [in_us, in_ns] = if policy == "g-edf" { &edf } else { &fp };
            assert_eq!(passes(in_us, test), formula(&tasks, cpus), "{test}, {at}");
            *differ += u64::from(passes(in_us, test) != passes(in_ns, test));
        }
        for test in ["gfb", "load", "bak", "bcl", "ffdbf"] {
            assert_eq!(passes(&edf[0], test), passes(&edf[1], test), "{test}, {at}");
        }
    }
    println!("differ: {differ:?}");
    assert!(differ.iter().all(|&differ| differ > 0), "{differ:?}");
}

/// All verdicts, witnesses and bounds of a set with microseconds as units are those of the same numbers in
/// nanoseconds, times a thousand.
#[test]
fn only_the_number_of_units_matters() {
    for seed in 0..200 * factor() {
        let mut stream = RandomStream::new(seed, 84, 1);
        let cpus = 1 + stream.below(3) as usize;
        let mut tasks = random(&mut stream, cpus as u64);
        if stream.below(2) == 0 {
            tasks
                .iter_mut()
                .for_each(|task| task.deadline += task.period);
        }
        let in_units = |tick_ns| {
            let mut set = set(&tasks, cpus, tick_ns, tick_ns);
            let mut masks = RandomStream::new(seed, 84, 2);
            for task in &mut set.tasks {
                let first = CpuSet::first(1 + masks.below(cpus as u64) as usize);
                task.affinity = Affinity::new(first).unwrap();
            }
            set
        };
        for policy in ["weak-edf", "strong-edf", "weak-fp", "strong-fp", "np-g-edf"] {
            let [in_us, in_ns] = [1_000, 1].map(|tick| found(policy, &in_units(tick)));
            let at = format!("seed {seed}, {policy} on {cpus}: {tasks:?}");
            assert_eq!(in_us.hard.tests, in_ns.hard.tests, "{at}");
            assert_eq!(in_us.soft.tests, in_ns.soft.tests, "{at}");
            assert_eq!(in_us.hard.answer, in_ns.hard.answer, "{at}");
            let responses = |found: &PolicyAnalysis, by: u64| {
                let best = found.best.iter();
                let best = best.map(|best| best.map(|best| best.response.checked_mul(by).unwrap()));
                best.collect::<Vec<_>>()
            };
            assert_eq!(responses(&in_us, 1), responses(&in_ns, 1_000), "{at}");
        }
    }
}
