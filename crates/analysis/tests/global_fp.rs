//! The tests for global fixed priorities against their formulas, iterated by single steps, and
//! against schedules.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod ticks;

use shiftwork_analysis::global_fp::{bertogna_cirinei, guan};
use shiftwork_analysis::uniprocessor::fp_rta;
use shiftwork_analysis::{NotShown, Outcome, Ranked, Sporadic, Steps};
use shiftwork_model::{Priority, RandomStream, Share, Span};
use ticks::{Job, Rules, factor, responses, sporadic};

type Test = fn(&[Ranked], usize, &mut Steps) -> Outcome<NotShown, Vec<Span>>;
const BOTH: [(&str, Test); 2] = [("guan", guan), ("bertogna-cirinei", bertogna_cirinei)];

fn ranked(task: Sporadic, priority: u32) -> Ranked {
    Ranked {
        task,
        priority: Priority::new(priority).unwrap(),
    }
}

fn in_ns(outcome: &Outcome<NotShown, Vec<Span>>) -> Option<Vec<u64>> {
    match outcome {
        Outcome::Pass(bounds) => Some(bounds.iter().map(|bound| bound.as_ns()).collect()),
        Outcome::Fail(_) => None,
        Outcome::StepLimit => panic!("out of steps"),
    }
}

/// Constrained deadlines, priorities in the order of the tasks.
fn random_tasks(stream: &mut RandomStream, most: u64) -> Vec<Ranked> {
    (1..=1 + stream.below(most) as u32)
        .map(|priority| {
            let period = 2 + stream.below(14);
            let cost = 1 + stream.below(period.div_ceil(2));
            let deadline = cost + stream.below(period - cost + 1);
            ranked(sporadic(cost, period, deadline), priority)
        })
        .collect()
}

/// (C, T, D) and the known response times of more urgent tasks.
type Urgent<'a> = &'a [((u64, u64, u64), u64)];

/// The right-hand side of Guan et al. for a window of length x, as the paper has it.
fn guan_sum(x: u64, cost: u64, cpus: usize, urgent: Urgent) -> u64 {
    let cut = |work: u64| work.min(x - cost + 1);
    let without: Vec<u64> = urgent
        .iter()
        .map(|&((c, t, _), _)| cut(x / t * c + (x % t).min(c)))
        .collect();
    let with = urgent.iter().map(|&((c, t, _), r)| {
        let after = x.saturating_sub(c);
        let alpha = (after % t).saturating_sub(t - r).min(c - 1);
        cut(after / t * c + c.min(x) + alpha)
    });
    let mut gains: Vec<u64> = with
        .zip(&without)
        .map(|(with, &without)| with.saturating_sub(without))
        .collect();
    gains.sort_unstable_by(|a, b| b.cmp(a));
    without.iter().sum::<u64>() + gains.iter().take(cpus - 1).sum::<u64>()
}

/// The right-hand side of Bertogna and Cirinei.
fn bertogna_cirinei_sum(x: u64, cost: u64, _: usize, urgent: Urgent) -> u64 {
    let work = |&((c, t, _), r): &((u64, u64, u64), u64)| {
        let reach = x + r - c;
        (reach / t * c + c.min(reach % t)).min(x - cost + 1)
    };
    urgent.iter().map(work).sum()
}

/// The response times by single steps, for distinct priorities in the order of the tasks.
fn plainly(
    tasks: &[Ranked],
    cpus: usize,
    sum: impl Fn(u64, u64, usize, Urgent) -> u64,
) -> Option<Vec<u64>> {
    let mut urgent: Vec<((u64, u64, u64), u64)> = Vec::new();
    for Ranked { task, .. } in tasks {
        let [cost, period, deadline] = [task.cost, task.period, task.deadline].map(Span::as_ns);
        let mut x = cost;
        loop {
            let next = cost + sum(x, cost, cpus, &urgent) / cpus as u64;
            if next > deadline {
                return None;
            }
            if next == x {
                break;
            }
            x = next;
        }
        urgent.push(((cost, period, deadline), x));
    }
    Some(urgent.iter().map(|&(_, response)| response).collect())
}

#[test]
fn bounds_are_those_of_the_formulas() {
    let mut passed = [0, 0];
    for seed in 0..6_000 * factor() {
        let mut stream = RandomStream::new(seed, 70, 0);
        let tasks = random_tasks(&mut stream, 7);
        let cpus = 1 + stream.below(4) as usize;
        let expected = [
            plainly(&tasks, cpus, guan_sum),
            plainly(&tasks, cpus, bertogna_cirinei_sum),
        ];
        for (index, (name, test)) in BOTH.into_iter().enumerate() {
            let found = in_ns(&test(&tasks, cpus, &mut Steps::ordinary()));
            assert_eq!(
                found, expected[index],
                "seed {seed}: {name} on {cpus}: {tasks:?}"
            );
            passed[index] += u64::from(found.is_some());
        }
        // The first of the two shows all that the second does.
        if let (Some(second), first) = (&expected[1], &expected[0]) {
            let first = first.as_ref().unwrap();
            assert!(first.iter().zip(second).all(|(a, b)| a <= b), "seed {seed}");
        }
    }
    assert!(passed.iter().all(|&passed| passed > 1_000), "{passed:?}");
}

#[test]
fn long_periods_make_no_difference_to_the_formulas() {
    for seed in 0..60 * factor() {
        let mut stream = RandomStream::new(seed, 70, 1);
        let cpus = 2 + stream.below(7) as usize;
        let tasks: Vec<Ranked> = (1..=20 + stream.below(21) as u32)
            .map(|priority| {
                let period = 10_000 + stream.below(90_000);
                let cost = period * (5 + stream.below(25 * cpus as u64 / 4)) / 100;
                ranked(sporadic(cost, period, period), priority)
            })
            .collect();
        for count in [tasks.len(), tasks.len() / 2, tasks.len() / 4] {
            let tasks = &tasks[..count];
            assert_eq!(
                in_ns(&guan(tasks, cpus, &mut Steps::ordinary())),
                plainly(tasks, cpus, guan_sum),
                "seed {seed}, {count} tasks on {cpus}"
            );
            assert_eq!(
                in_ns(&bertogna_cirinei(tasks, cpus, &mut Steps::ordinary())),
                plainly(tasks, cpus, bertogna_cirinei_sum),
                "seed {seed}, {count} tasks on {cpus}"
            );
        }
    }
}

#[test]
fn on_one_cpu_the_bound_with_limited_carry_in_is_exact() {
    let whole = Share::from_billionths(Share::WHOLE).unwrap();
    let mut yes = 0;
    for seed in 0..4_000 * factor() {
        let mut stream = RandomStream::new(seed, 70, 2);
        let tasks = random_tasks(&mut stream, 4);
        let exact = fp_rta(&tasks, whole, &mut Steps::ordinary()) == Outcome::Pass(());
        let found = in_ns(&guan(&tasks, 1, &mut Steps::ordinary()));
        assert_eq!(found.is_some(), exact, "seed {seed}: {tasks:?}");
        yes += u64::from(exact);
    }
    assert!(yes > 500, "{yes}");
}

#[test]
fn no_schedule_is_later_than_the_bounds() {
    let (mut shown, mut reached) = ([0, 0], 0);
    for seed in 0..4_000 * factor() {
        let mut stream = RandomStream::new(seed, 70, 3);
        let mut tasks = random_tasks(&mut stream, 6);
        let cpus = 1 + stream.below(3) as usize;
        if stream.below(2) == 0 {
            // Several of one priority.
            for task in &mut tasks {
                task.priority = Priority::new(1 + task.priority.number() / 2).unwrap();
            }
        }
        let plain: Vec<Sporadic> = tasks.iter().map(|ranked| ranked.task).collect();
        let rules = Rules {
            cpus,
            rank: |job: &Job| u64::from(tasks[job.task].priority.number()),
            preemptive: true,
        };
        let found = BOTH.map(|(_, test)| in_ns(&test(&tasks, cpus, &mut Steps::ordinary())));
        for _ in 0..3 {
            if found.iter().all(Option::is_none) {
                break;
            }
            let releases = ticks::releases(&plain, 80, &mut stream);
            let seen = responses(&plain, &releases, &rules);
            for ((name, _), bounds) in BOTH.iter().zip(&found) {
                for (seen, bound) in seen.iter().zip(bounds.iter().flatten()) {
                    assert!(
                        seen <= bound,
                        "seed {seed}: {name} on {cpus}: {tasks:?}: {seen} > {bound}"
                    );
                    reached += u64::from(seen == bound);
                }
            }
        }
        for (shown, bounds) in shown.iter_mut().zip(&found) {
            *shown += u64::from(bounds.is_some());
        }
    }
    assert!(shown.iter().all(|&shown| shown > 500), "{shown:?}");
    assert!(reached > 500, "bounds are reached, too: {reached}");
}

#[test]
fn equal_priorities_are_more_urgent_both_ways_whatever_their_order() {
    // Of three equals on two CPUs, each may come last.
    let thirds = [ranked(sporadic(2, 6, 6), 1); 3];
    for (name, test) in BOTH {
        let bounds = in_ns(&test(&thirds, 2, &mut Steps::ordinary())).unwrap();
        assert!(bounds.iter().all(|&bound| bound == bounds[0]), "{name}");
        assert!(bounds[0] >= 4, "{name}: {bounds:?}");
    }
}

#[test]
fn fewer_rivals_than_cpus_are_no_rivals() {
    let tasks: Vec<Ranked> = (1..=4).map(|p| ranked(sporadic(3, 7, 3), p)).collect();
    for (name, test) in BOTH {
        let four = in_ns(&test(&tasks, 4, &mut Steps::ordinary()));
        assert_eq!(four, Some(vec![3; 4]), "{name}");
        let three = test(&tasks, 3, &mut Steps::ordinary());
        assert_eq!(three, Outcome::Fail(NotShown { place: 3 }), "{name}");
    }
}

#[test]
fn a_published_example_on_one_cpu_has_its_published_response_times() {
    // Burns and Wellings, "Real-Time Systems and Programming Languages": C = 3, 3, 5 and T = 7, 12,
    // 20 give R = 3, 6, 20.
    let tasks = [
        ranked(sporadic(3, 7, 7), 1),
        ranked(sporadic(3, 12, 12), 2),
        ranked(sporadic(5, 20, 20), 3),
    ];
    let found = in_ns(&guan(&tasks, 1, &mut Steps::ordinary()));
    assert_eq!(found, Some(vec![3, 6, 20]));
}

#[test]
fn what_is_outside_the_domain_is_not_shown_and_does_no_harm() {
    let most = u64::MAX;
    for bad in [
        sporadic(1, 3, 4),
        sporadic(3, 3, 2),
        sporadic(0, 3, 3),
        sporadic(1, 0, 0),
        sporadic(most, most, most),
    ] {
        let tasks = [ranked(sporadic(1, 5, 5), 1), ranked(bad, 2)];
        for (name, test) in BOTH {
            let found = test(&tasks, 2, &mut Steps::ordinary());
            assert_eq!(
                found,
                Outcome::Fail(NotShown { place: 1 }),
                "{name} {bad:?}"
            );
        }
    }
    let longest = Span::MAX.as_ns();
    let tasks: Vec<Ranked> = (1..=9)
        .map(|p| ranked(sporadic(longest, longest, longest), p))
        .collect();
    for (name, test) in BOTH {
        let found = test(&tasks, 2, &mut Steps::ordinary());
        assert_eq!(found, Outcome::Fail(NotShown { place: 2 }), "{name}");
        let none = test(&tasks, 0, &mut Steps::ordinary());
        assert_eq!(none, Outcome::Fail(NotShown { place: 0 }), "{name}");
        assert_eq!(
            test(&[], 0, &mut Steps::at_most(0)),
            Outcome::Pass(vec![]),
            "{name}"
        );
        assert_eq!(
            test(&tasks, 2, &mut Steps::at_most(3)),
            Outcome::StepLimit,
            "{name}"
        );
    }
}
