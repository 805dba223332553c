//! Tasks with arrival curves: what verdicts and admission say of them holds in simulated schedules, and on one CPU nothing
//! better could be said.

use super::*;
use shiftwork_model::{ArrivalCurve, Pace};

/// A curve with this shortest distance, whose other distances are longer than follows from it by some times this.
fn curve(stream: &mut RandomStream, shortest: u64, more: u64) -> ArrivalCurve {
    let mut distances = vec![shortest];
    for gaps in 1..1 + stream.below(5) as usize {
        let splits = (0..gaps).map(|first| distances[first] + distances[gaps - 1 - first]);
        let least = splits.max().unwrap();
        distances.push(least + stream.below(2) * stream.below(more));
    }
    ArrivalCurve::new(distances.into_iter().map(Span::from_ns).collect()).unwrap()
}

/// Random tasks, of which most have arrival curves, with jitter or without.
fn random_with_curves(stream: &mut RandomStream, jitter: Wait) -> TaskSet {
    let mut set = match jitter {
        Wait::Jitter => random(stream, Wait::Jitter),
        _ => at_once(&random(stream, Wait::Suspensions)),
    };
    for task in &mut set.tasks {
        if stream.below(4) == 0 {
            continue;
        }
        let period = task.period.as_ns();
        let shortest = 1 + period / [1, 3, 10][stream.below(3) as usize];
        let curve = curve(stream, shortest, 2 * period);
        task.period = curve.shortest();
        task.arrival = Arrival::Curve(curve, Pace::Earliest);
    }
    set
}

/// The longest times from arrivals in ten schedules: as early as curves allow and with random gaps, from the same instant
/// on and from random ones, with any jitter and with none or the longest.
fn longest_of_ten(set: &TaskSet, entry: &Entry, seed: u64) -> Option<Vec<u64>> {
    let mut longest = vec![0; set.tasks.len()];
    let jitter = set.tasks.iter().map(|task| task.jitter).max().unwrap();
    for run in 0..10 {
        let policy = entry.build(set).ok()?;
        let mut stream = RandomStream::new(seed, 132, run);
        let mut set = set.clone();
        for task in &mut set.tasks {
            task.offset = match run < 4 {
                true => Span::ZERO,
                false => Span::from_ns(stream.below(300)),
            };
            if let Arrival::Curve(_, pace) = &mut task.arrival
                && run % 3 == 2
            {
                *pace = Pace::Random;
            }
        }
        if run % 2 == 1 && !jitter.is_zero() {
            set.platform.tick_unit = jitter;
        }
        observe(&set, (entry, policy), seed + run, &mut longest);
    }
    Some(longest)
}

/// The set whose tasks are the mean distance apart that their curves allow in the long run.
fn at_mean(set: &TaskSet) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks {
        if task.curve().is_some() {
            task.period = task.mean_period();
            task.arrival = Arrival::Sporadic;
        }
    }
    set
}

/// The set whose tasks are the shortest distance apart.
fn at_shortest(set: &TaskSet) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks {
        if task.curve().is_some() {
            task.arrival = Arrival::Sporadic;
        }
    }
    set
}

#[derive(Debug, Default)]
struct SeenByCurves {
    shown: u64,
    bounds: u64,
    refuted: u64,
    admitted: u64,
    /// Sets that are shown and would not be if tasks were the shortest distance apart.
    gained: u64,
    /// Sets that would be shown if tasks were the mean distance apart, and miss deadlines.
    misled: u64,
}

fn check_curves(seed: u64, (entry, jitter): (&Entry, Wait), seen: &mut SeenByCurves) {
    let mut stream = RandomStream::new(seed, 133, 0);
    let set = random_with_curves(&mut stream, jitter);
    let candidate = candidate(&set, entry);
    let Ok(bound) = candidate.bound.clone() else {
        return;
    };
    let analyse = |set: &TaskSet| {
        let mut analysis = analyse(set, std::slice::from_ref(&candidate), STEPS);
        analysis.policies.remove(0)
    };
    let found = analyse(&set);
    let longest = longest_of_ten(&set, entry, seed).unwrap();
    let context = || {
        format!(
            "seed {seed}, {}: {set:#?}\n{longest:?}\n{found:#?}",
            entry.name
        )
    };
    if found.hard.answer == Answer::Schedulable {
        seen.shown += 1;
        assert!(in_time(&set, &longest), "{}", context());
        let answer = analyse(&at_shortest(&set)).hard.answer;
        seen.gained += u64::from(answer != Answer::Schedulable);
    }
    for (best, &response) in found.best.iter().zip(&longest) {
        if let Some(best) = best {
            seen.bounds += 1;
            assert!(response <= best.response.as_ns(), "{}", context());
        }
    }
    seen.refuted += u64::from(found.hard.answer == Answer::Unschedulable);
    for criterion in [Criterion::Hard, Criterion::Soft] {
        let question = Question {
            tardiness: true,
            ..Question::new(entry.traits, &bound, criterion, STEPS)
        };
        let (judgement, decision) = (found.judgement(criterion), decide(&set, &question));
        if let Some(tardiness) = decision.tardiness {
            let tasks = set.tasks.iter().zip(&longest);
            let late = tasks.map(|(task, &it)| it.saturating_sub(task.deadline.as_ns()));
            let is_bound = late.max().unwrap_or(0) <= tardiness.as_ns();
            assert!(is_bound, "{decision:?}, {}", context());
        }
        let aside = judgement
            .tests
            .iter()
            .any(|&(_, it)| it == Found::StepLimit);
        let agree = decision.answer == judgement.answer;
        assert!(agree || aside, "{decision:?}, {}", context());
    }
    if let Some(terms) = Terms::of(&entry.traits, &set) {
        let decision = admit(&set, &bound, terms);
        if decision.guarantee == Guarantee::Hard {
            seen.admitted += 1;
            assert!(in_time(&set, &longest), "{decision:?}, {}", context());
        }
    }
    let at_mean = analyse(&at_mean(&set)).hard.answer;
    seen.misled += u64::from(at_mean == Answer::Schedulable && !in_time(&set, &longest));
}

fn check_all_curves(jitter: Wait) {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 100,
    };
    for entry in registry::POLICIES {
        if !TESTS.iter().any(|test| test.speaks_of(&entry.traits)) {
            continue;
        }
        let mut seen = SeenByCurves::default();
        for seed in 0..seeds {
            check_curves(seed, (entry, jitter), &mut seen);
        }
        println!("{}: {seen:?}", entry.name);
        if ["p-edf", "p-fp"].contains(&entry.name) {
            let least = [seen.shown, seen.bounds, seen.admitted, seen.gained];
            let is_misled = jitter == Wait::Jitter || seen.misled > 0;
            let is_much = least.into_iter().min() > Some(0) && is_misled;
            assert!(is_much, "{}: {seen:?}", entry.name);
        }
    }
}

#[test]
fn nothing_that_is_shown_of_tasks_with_arrival_curves_is_wrong() {
    check_all_curves(Wait::Suspensions);
}

#[test]
fn nothing_that_is_shown_of_tasks_with_arrival_curves_and_jitter_is_wrong() {
    check_all_curves(Wait::Jitter);
}

/// Whether the utilization is above 1. Mean distances are rounded up to nanoseconds, so that demand may be above it unseen.
fn needs_more_than_one_cpu(analysis: &shiftwork_analysis::verdicts::Analysis) -> bool {
    let cpus = analysis.utilization.to_fraction().ceil();
    cpus.to_integer().to_string() != "1"
}

#[test]
fn verdicts_and_response_times_on_one_cpu_are_those_of_the_earliest_arrivals_together() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 600,
    };
    for name in ["p-edf", "p-fp"] {
        let entry = registry::find(name).unwrap();
        let (mut in_time_of, mut late) = (0, 0);
        for seed in 0..seeds {
            let mut stream = RandomStream::new(seed, 134, 0);
            let cpu = Affinity::new(CpuSet::first(1)).unwrap();
            let tasks = (1..=1 + stream.below(3) as u32).map(|place| {
                let shortest = 1 + stream.below(8);
                let curve = curve(&mut stream, shortest, 20);
                let cost = 1 + stream.below(4);
                let period = curve.shortest();
                let mut task =
                    Task::periodic(&format!("t{place}"), Span::from_ns(cost), period, cpu);
                task.deadline = Span::from_ns(cost + stream.below(25));
                task.priority = Priority::new(place);
                task.arrival = Arrival::Curve(curve, Pace::Earliest);
                task
            });
            let set = TaskSet::new("", 1, tasks.collect());
            let candidate = candidate(&set, entry);
            let analysis = analyse(&set, std::slice::from_ref(&candidate), STEPS);
            let found = &analysis.policies[0];
            let mut longest = vec![0; set.tasks.len()];
            observe(
                &set,
                (entry, entry.build(&set).unwrap()),
                seed,
                &mut longest,
            );
            let context = || format!("seed {seed}: {set:#?}\n{longest:?}\n{found:#?}");
            let is_in_time = in_time(&set, &longest);
            match found.hard.answer {
                Answer::Schedulable => assert!(is_in_time, "{}", context()),
                // More work than the CPU can do may take long to be late, or never complete.
                _ if needs_more_than_one_cpu(&analysis) => {}
                _ => assert!(!is_in_time, "{}", context()),
            }
            in_time_of += u64::from(is_in_time);
            late += u64::from(!is_in_time);
            if name == "p-fp" && found.soft.answer == Answer::Schedulable {
                let best = found.best.iter().map(|best| best.unwrap().response.as_ns());
                let best: Vec<u64> = best.collect();
                // The horizon may cut a busy period short where the CPU is used up entirely.
                let is_full = analysis.utilization.to_fraction().is_integer();
                let agree = best == longest || (is_full && best >= longest);
                assert!(agree, "{best:?} {}", context());
            }
        }
        assert!(in_time_of > 20 && late > 20, "{name}: {in_time_of} {late}");
    }
}

#[test]
fn demand_of_a_burst_is_refused_by_the_long_run_and_not_by_the_shortest_distance() {
    let cpu = Affinity::new(CpuSet::first(1)).unwrap();
    let [cost, shortest, second] = [3, 2, 10].map(Span::from_ns);
    let mut task = Task::periodic("burst", cost, shortest, cpu);
    let curve = ArrivalCurve::new(vec![shortest, second]).unwrap();
    task.arrival = Arrival::Curve(curve, Pace::Earliest);
    // Two jobs together: the second arrives at 2 and completes at 6.
    task.deadline = Span::from_ns(4);
    let mut set = TaskSet::new("", 1, vec![task]);
    set.scheduler.reserve = shiftwork_model::Share::from_billionths(0).unwrap();
    for policy in ["p-edf", "p-fp"] {
        let entry = registry::find(policy).unwrap();
        let terms = Terms::of(&entry.traits, &set).unwrap();
        assert_eq!(
            admit(&set, &[cpu], terms).guarantee,
            Guarantee::Hard,
            "{policy}"
        );
        let mut tight = set.clone();
        tight.tasks[0].deadline = Span::from_ns(3);
        let decision = admit(&tight, &[cpu], terms);
        assert_ne!(decision.guarantee, Guarantee::Hard, "{policy}: {decision}");
        let mut heavy = set.clone();
        (heavy.tasks[0].cost, heavy.tasks[0].deadline) = (Span::from_ns(6), Span::from_ns(60));
        let decision = admit(&heavy, &[cpu], terms);
        assert!(decision.to_string().contains("1.2"), "{policy}: {decision}");
        let of = &mut |set: &TaskSet| candidate(set, entry);
        let factor = largest_factor(&set, of, Criterion::Hard, STEPS).unwrap();
        // 2 (3 f) - 2 = 4.
        assert_eq!(factor.to_string(), "1", "{policy}");
    }
}

#[test]
fn task_that_may_be_throttled_counts_with_its_period() {
    let cpu = Affinity::new(CpuSet::first(1)).unwrap();
    let task = |name: &str, cost, period| {
        Task::periodic(name, Span::from_ns(cost), Span::from_ns(period), cpu)
    };
    let mut burst = task("burst", 1, 2);
    let curve = ArrivalCurve::new(vec![Span::from_ns(2), Span::from_ns(40)]).unwrap();
    burst.arrival = Arrival::Curve(curve, Pace::Earliest);
    burst.deadline = Span::from_ns(2);
    burst.priority = Priority::new(1);
    let mut other = task("other", 8, 12);
    other.priority = Priority::new(2);
    let mut set = TaskSet::new("", 1, vec![burst, other]);
    for policy in ["p-edf", "p-fp"] {
        let entry = registry::find(policy).unwrap();
        let answer = |set: &TaskSet| {
            let analysis = analyse(set, &[candidate(set, entry)], STEPS);
            analysis.policies[0].hard.answer
        };
        set.tasks[0].work = Work::Cost;
        assert_eq!(answer(&set), Answer::Schedulable, "{policy}");
        set.tasks[0].work = Work::Constant(Span::from_ns(30));
        assert_ne!(answer(&set), Answer::Schedulable, "{policy}");
        let mut longest = vec![0; 2];
        observe(&set, (entry, entry.build(&set).unwrap()), 1, &mut longest);
        assert!(longest[1] > 12, "{policy}: {longest:?}");
    }
}
