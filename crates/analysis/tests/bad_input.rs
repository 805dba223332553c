//! No input, however bad, makes a test panic, hang or say nonsense: times of zero and of 64 bits,
//! tasks that cannot be, no CPUs and a thousand, ten thousand tasks, periods without a common
//! multiple in sight.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use shiftwork_analysis::admission::{Guarantee, Terms, Verdict, admit};
use shiftwork_analysis::affinity::{
    Bound, Feasible, feasibility, laminar_tardiness, reduction_edf, reduction_fp, speedup,
};
use shiftwork_analysis::global_edf::{bak, bar, bcl, bcli, ffdbf, gfb, load, rta};
use shiftwork_analysis::global_fp::{bertogna_cirinei, guan};
use shiftwork_analysis::pfair::{Quanta, pfair};
use shiftwork_analysis::response::{devi_anderson, devi_anderson_non_preemptive, gel};
use shiftwork_analysis::uniprocessor::{edf_rta, fp_response_times, fp_rta, qpa};
use shiftwork_analysis::{NotShown, Outcome, Placed, Ranked, Sporadic, Steps};
use shiftwork_model::{
    Affinity, CPUS_MAX, CpuId, CpuSet, Priority, RandomStream, Share, Span, Task, TaskSet,
};
use shiftwork_policy::registry;

/// What a test said, whatever the test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    /// With bounds on response times, if it gives any.
    Pass(Option<Vec<Span>>),
    /// With the place of a task, if it names one.
    Fail(Option<usize>),
    StepLimit,
}

/// A test under a common signature.
struct Tested {
    name: &'static str,
    /// Whether passing means that all deadlines are met, rather than that lateness is bounded.
    hard: bool,
    /// Whether it is about one CPU, whatever number is given.
    one_cpu: bool,
    run: fn(&[Sporadic], usize, &mut Steps) -> Answer,
}

const TESTED: &[Tested] = &[
    Tested {
        name: "qpa",
        hard: true,
        one_cpu: true,
        run: |tasks, _, steps| plain(qpa(tasks, whole(), steps)),
    },
    Tested {
        name: "fp-rta",
        hard: true,
        one_cpu: true,
        run: |tasks, _, steps| match fp_rta(&ranked(tasks), whole(), steps) {
            Outcome::Pass(()) => Answer::Pass(None),
            Outcome::Fail(late) => Answer::Fail(Some(late.place)),
            Outcome::StepLimit => Answer::StepLimit,
        },
    },
    Tested {
        name: "edf-rta",
        hard: false,
        one_cpu: true,
        run: |tasks, _, steps| proven(edf_rta(tasks, whole(), steps)),
    },
    Tested {
        name: "fp-response-times",
        hard: false,
        one_cpu: true,
        run: |tasks, _, steps| proven(fp_response_times(&ranked(tasks), whole(), steps)),
    },
    Tested {
        name: "gfb",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(gfb(tasks, cpus, steps)),
    },
    Tested {
        name: "bak",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(bak(tasks, cpus, steps)),
    },
    Tested {
        name: "bcl",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(bcl(tasks, cpus, steps)),
    },
    Tested {
        name: "bar",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(bar(tasks, cpus, steps)),
    },
    Tested {
        name: "ffdbf",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(ffdbf(tasks, cpus, steps)),
    },
    Tested {
        name: "load",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(load(tasks, cpus, steps)),
    },
    Tested {
        name: "bcli",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(bcli(tasks, cpus, steps)),
    },
    Tested {
        name: "rta",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(rta(tasks, cpus, steps)),
    },
    Tested {
        name: "devi-anderson",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(devi_anderson(tasks, cpus, steps)),
    },
    Tested {
        name: "devi-anderson-np",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(devi_anderson_non_preemptive(tasks, cpus, steps)),
    },
    Tested {
        name: "gel",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(gel(tasks, cpus, steps)),
    },
    Tested {
        name: "guan",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(guan(&ranked(tasks), cpus, steps)),
    },
    Tested {
        name: "bc",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(bertogna_cirinei(&ranked(tasks), cpus, steps)),
    },
    Tested {
        name: "reduction-fp",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(reduction_fp(&bound(tasks, cpus), whole(), steps)),
    },
    Tested {
        name: "reduction-edf",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(reduction_edf(&placed(tasks, cpus), whole(), steps)),
    },
    Tested {
        name: "laminar-tardiness",
        hard: false,
        one_cpu: false,
        run: |tasks, cpus, steps| proven(laminar_tardiness(&placed(tasks, cpus), steps)),
    },
    Tested {
        name: "speedup",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(speedup(&placed(tasks, cpus), steps)),
    },
    Tested {
        name: "pfair",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(pfair(tasks, cpus, &quanta(false), steps)),
    },
    Tested {
        name: "pfair, staggered",
        hard: true,
        one_cpu: false,
        run: |tasks, cpus, steps| shown(pfair(tasks, cpus, &quanta(true), steps)),
    },
];

fn plain<Failure>(outcome: Outcome<Failure>) -> Answer {
    match outcome {
        Outcome::Pass(()) => Answer::Pass(None),
        Outcome::Fail(_) => Answer::Fail(None),
        Outcome::StepLimit => Answer::StepLimit,
    }
}

fn shown(outcome: Outcome<NotShown>) -> Answer {
    match outcome {
        Outcome::Pass(()) => Answer::Pass(None),
        Outcome::Fail(not_shown) => Answer::Fail(Some(not_shown.place)),
        Outcome::StepLimit => Answer::StepLimit,
    }
}

fn proven(outcome: Outcome<NotShown, Vec<Span>>) -> Answer {
    match outcome {
        Outcome::Pass(bounds) => Answer::Pass(Some(bounds)),
        Outcome::Fail(not_shown) => Answer::Fail(Some(not_shown.place)),
        Outcome::StepLimit => Answer::StepLimit,
    }
}

/// Quanta of a nanosecond, and no luck with releases.
const fn quanta(staggered: bool) -> Quanta {
    Quanta {
        quantum: Span::from_ns(1),
        staggered,
        aligned: false,
    }
}

fn whole() -> Share {
    Share::from_billionths(Share::WHOLE).unwrap()
}

fn sporadic(cost: u64, period: u64, deadline: u64) -> Sporadic {
    Sporadic {
        cost: Span::from_ns(cost),
        period: Span::from_ns(period),
        deadline: Span::from_ns(deadline),
    }
}

/// With priorities in the order of the tasks.
fn ranked(tasks: &[Sporadic]) -> Vec<Ranked> {
    let ranks = (1..).map(|rank| Priority::new(rank).unwrap());
    let ranked = tasks.iter().zip(ranks);
    ranked
        .map(|(&task, priority)| Ranked { task, priority })
        .collect()
}

fn bound(tasks: &[Sporadic], cpus: usize) -> Vec<Bound> {
    let ranked = ranked(tasks).into_iter();
    ranked
        .map(|ranked| Bound {
            ranked,
            cpus: CpuSet::first(cpus),
        })
        .collect()
}

/// Nested affinities: all CPUs, the first half, the first.
fn placed(tasks: &[Sporadic], cpus: usize) -> Vec<Placed> {
    let counts = [cpus, cpus.div_ceil(2), cpus.min(1)].into_iter().cycle();
    let placed = tasks.iter().zip(counts);
    placed
        .map(|(&task, count)| Placed {
            task,
            cpus: CpuSet::first(count),
        })
        .collect()
}

/// What holds of every answer of a sufficient test.
fn check(tested: &Tested, tasks: &[Sporadic], cpus: usize, answer: &Answer) {
    let context = || format!("{}, {cpus} CPUs, {tasks:?}: {answer:?}", tested.name);
    match answer {
        Answer::Pass(bounds) => {
            for task in tasks {
                let is_a_task = ![task.cost, task.period, task.deadline].contains(&Span::ZERO);
                assert!(is_a_task, "there is no such task: {}", context());
                assert!(task.cost <= task.period, "{}", context());
                assert!(!tested.hard || task.cost <= task.deadline, "{}", context());
            }
            assert!(
                tasks.is_empty() || cpus > 0 || tested.one_cpu,
                "{}",
                context()
            );
            let Some(bounds) = bounds else { return };
            assert_eq!(bounds.len(), tasks.len(), "{}", context());
            for (&bound, task) in bounds.iter().zip(tasks) {
                assert!(bound >= task.cost, "{}", context());
                assert!(!tested.hard || bound <= task.deadline, "{}", context());
            }
        }
        Answer::Fail(place) => {
            assert!(!tasks.is_empty(), "no task to fail: {}", context());
            assert!(
                place.is_none_or(|place| place < tasks.len()),
                "{}",
                context()
            );
        }
        Answer::StepLimit => {}
    }
}

const ODD: [u64; 9] = [
    0,
    1,
    2,
    3,
    1_000_000_007,
    1 << 62,
    u64::MAX / 2,
    u64::MAX - 1,
    u64::MAX,
];

#[test]
fn every_odd_task_alone_gets_a_sane_answer() {
    for tested in TESTED {
        for cpus in [0, 1, 2, CPUS_MAX] {
            for (cost, period, deadline) in triples() {
                let tasks = [sporadic(cost, period, deadline)];
                let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(2_000));
                check(tested, &tasks, cpus, &answer);
            }
        }
    }
}

fn triples() -> impl Iterator<Item = (u64, u64, u64)> {
    let pairs = ODD.iter().flat_map(|&a| ODD.iter().map(move |&b| (a, b)));
    pairs.flat_map(|(a, b)| ODD.iter().map(move |&c| (a, b, c)))
}

#[test]
fn odd_tasks_together_get_sane_answers() {
    for tested in TESTED {
        for seed in 0..2_000 {
            let mut stream = RandomStream::new(seed, 42, 0);
            let cpus = [0, 1, 2, 3, 64, CPUS_MAX][stream.below(6) as usize];
            let mut odd = || ODD[stream.below(ODD.len() as u64) as usize];
            let tasks: Vec<Sporadic> = (0..4).map(|_| sporadic(odd(), odd(), odd())).collect();
            let tasks = &tasks[..1 + seed as usize % 4];
            let answer = (tested.run)(tasks, cpus, &mut Steps::at_most(5_000));
            check(tested, tasks, cpus, &answer);
        }
    }
}

#[test]
fn an_empty_set_is_always_schedulable() {
    for tested in TESTED {
        for cpus in [0, 1, 2, CPUS_MAX] {
            let answer = (tested.run)(&[], cpus, &mut Steps::ordinary());
            let in_time = matches!(&answer, Answer::Pass(bounds)
                if bounds.as_ref().is_none_or(Vec::is_empty));
            assert!(in_time, "{}, {cpus} CPUs: {answer:?}", tested.name);
        }
    }
}

#[test]
fn a_light_task_alone_is_shown_to_be_in_time() {
    for tested in TESTED {
        for cpus in [1, 2, 64, CPUS_MAX] {
            for period in [10, 1 << 60] {
                let tasks = [sporadic(1, period, period)];
                let answer = (tested.run)(&tasks, cpus, &mut Steps::ordinary());
                let shown = matches!(answer, Answer::Pass(_));
                assert!(shown, "{}, {cpus} CPUs: {answer:?}", tested.name);
            }
        }
    }
}

/// Tasks of a random total utilization, with periods that are odd and large: no common multiple
/// below far more than 64 bits.
fn without_common_periods(count: u64, load: u64, stream: &mut RandomStream) -> Vec<Sporadic> {
    (0..count)
        .map(|_| {
            let period = (1 << 40) + 2 * stream.below(1 << 39) + 1;
            let share = 1 + stream.below(2 * load);
            let cost = (u128::from(period) * u128::from(share) / 1_000_000).max(1) as u64;
            let cost = cost.min(period);
            let deadline = match stream.below(3) {
                0 => period,
                1 => cost + stream.below(period - cost + 1),
                _ => period.saturating_mul(1 + stream.below(1 << 20)),
            };
            sporadic(cost, period, deadline)
        })
        .collect()
}

#[test]
fn hyperperiods_beyond_any_number_are_no_obstacle() {
    for tested in TESTED {
        for seed in 0..40 {
            let mut stream = RandomStream::new(seed, 42, 1);
            let cpus = 1 + stream.below(8) as usize;
            let count = 1 + stream.below(20);
            let load = 1_000_000 * cpus as u64 / count * (1 + stream.below(12)) / 10;
            let tasks = without_common_periods(count, load.max(1), &mut stream);
            let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(100_000));
            check(tested, &tasks, cpus, &answer);
        }
    }
}

#[test]
fn ten_thousand_tasks_get_an_answer() {
    for tested in TESTED {
        for (cpus, load) in [(1, 50), (4, 380), (1_024, 60_000)] {
            let mut stream = RandomStream::new(load, 42, 2);
            let tasks = without_common_periods(10_000, load, &mut stream);
            let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(100_000));
            check(tested, &tasks, cpus, &answer);
        }
    }
}

#[test]
fn deadlines_far_beyond_and_far_before_periods_and_costs_are_no_obstacle() {
    let [day, hour] = [86_400_000_000_000, 3_600_000_000_000];
    for tested in TESTED {
        for cpus in [1, 2, 16] {
            for tasks in [
                vec![sporadic(1, 10, day), sporadic(9, 10, day)],
                vec![sporadic(7, 10, u64::MAX), sporadic(3, 10, 3)],
                vec![sporadic(hour, day, 1), sporadic(1, 2, 2)],
                vec![
                    sporadic(1, 3, 3),
                    sporadic(hour, day, day),
                    sporadic(1, 7, 2),
                ],
            ] {
                let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(50_000));
                check(tested, &tasks, cpus, &answer);
                let due_before_done = tasks.iter().any(|task| task.deadline < task.cost);
                if tested.hard && due_before_done {
                    assert!(
                        matches!(answer, Answer::Fail(_)),
                        "{}: {answer:?}",
                        tested.name
                    );
                }
            }
        }
    }
}

/// Whether an answer with more steps may follow one with fewer: it is the same, or the same with
/// bounds that are no longer (`laminar-tardiness` says that it leaves coarser ones where steps end).
fn may_follow(fewer: &Answer, more: &Answer) -> bool {
    match (fewer, more) {
        (Answer::StepLimit, _) => true,
        (Answer::Pass(Some(coarse)), Answer::Pass(Some(fine))) => {
            coarse.len() == fine.len()
                && fine.iter().zip(coarse).all(|(fine, coarse)| fine <= coarse)
        }
        _ => fewer == more,
    }
}

#[test]
fn more_steps_never_change_an_answer() {
    for tested in TESTED {
        for seed in 0..60 {
            let mut stream = RandomStream::new(seed, 42, 3);
            let cpus = 1 + stream.below(4) as usize;
            let count = 1 + stream.below(8);
            let load = 1_000_000 * cpus as u64 / count * (1 + stream.below(10)) / 10;
            let tasks = without_common_periods(count, load.max(1), &mut stream);
            let mut before = Answer::StepLimit;
            for limit in [0, 1, 5, 20, 100, 1_000, 10_000, 100_000] {
                let answer = (tested.run)(&tasks, cpus, &mut Steps::at_most(limit));
                let context = || format!("{}, seed {seed}, {limit}", tested.name);
                assert!(
                    may_follow(&before, &answer),
                    "{}: {before:?} {answer:?}",
                    context()
                );
                let again = (tested.run)(&tasks, cpus, &mut Steps::at_most(limit));
                assert_eq!(answer, again, "{}", context());
                before = answer;
            }
        }
    }
}

/// A task set as only a program could build it: no file reader lets these times through.
fn set_of(tasks: &[Sporadic], cpus: usize) -> TaskSet {
    let last = CpuId::from_index(cpus.saturating_sub(1));
    let tasks = tasks.iter().enumerate().map(|(place, task)| {
        let all = Affinity::new(CpuSet::first(cpus.max(1))).unwrap();
        let affinity = if place % 3 == 2 {
            Affinity::pinned(last)
        } else {
            all
        };
        let name = format!("T{place}");
        let mut of = Task::periodic(&name, task.cost, task.period, affinity);
        of.deadline = task.deadline;
        of
    });
    TaskSet::new("odd", cpus, tasks.collect())
}

const POLICIES: [&str; 8] = [
    "p-edf",
    "g-edf",
    "weak-edf",
    "strong-edf",
    "hpa-edf",
    "p-fp",
    "g-fp",
    "strong-fp",
];

/// Feasibility and admission of a set, and what holds of their answers.
fn ask(tasks: &[Sporadic], cpus: usize) {
    let set = set_of(tasks, cpus);
    let found = feasibility(&set);
    let cannot_be = tasks.iter().any(|task| {
        [task.cost, task.period, task.deadline].contains(&Span::ZERO)
            || task.cost > task.period
            || task.cost > task.deadline
    });
    assert_eq!(
        found.witness.is_some(),
        found.verdict == Feasible::No,
        "{set:?}"
    );
    assert!(
        !cannot_be || found.verdict == Feasible::No,
        "{found:?} {set:?}"
    );
    let reserve = Share::from_billionths(0).unwrap();
    for policy in POLICIES {
        let terms = Terms::new(&registry::find(policy).unwrap().traits, reserve).unwrap();
        let decision = admit(&set, &[], terms);
        let refused = decision.verdict() == Verdict::Refused;
        assert!(!decision.reason.is_empty(), "{policy} {set:?}");
        assert!(
            !refused || decision.guarantee == Guarantee::None,
            "{policy} {decision:?}"
        );
        if found.verdict == Feasible::No {
            let hard = decision.guarantee == Guarantee::Hard;
            assert!(!hard, "{policy}: {found:?}, but {decision:?}");
        }
    }
}

#[test]
fn odd_task_sets_are_admitted_or_refused_in_words() {
    for seed in 0..400 {
        let mut stream = RandomStream::new(seed, 42, 4);
        let cpus = [0, 1, 2, 3, 64, CPUS_MAX][stream.below(6) as usize];
        let mut odd = || ODD[stream.below(ODD.len() as u64) as usize];
        let tasks: Vec<Sporadic> = (0..4).map(|_| sporadic(odd(), odd(), odd())).collect();
        ask(&tasks[..1 + seed as usize % 4], cpus);
    }
}

#[test]
fn a_crowd_of_ten_thousand_is_admitted_or_refused() {
    for (cpus, load) in [(1, 50), (1_024, 60_000)] {
        let mut stream = RandomStream::new(load, 42, 5);
        ask(&without_common_periods(10_000, load, &mut stream), cpus);
    }
}
