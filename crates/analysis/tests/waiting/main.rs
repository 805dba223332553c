//! Tasks whose jobs have to wait, as they have jitter, suspend themselves, lock mutexes or are triggered by others: what
//! verdicts and admission say of them holds in simulated schedules.
#![allow(clippy::unwrap_used, reason = "a test")]

mod curves;
mod mutexes;
mod triggers;

use shiftwork_analysis::Witness;
use shiftwork_analysis::admission::{Guarantee, Terms, admit};
use shiftwork_analysis::affinity::Feasible;
use shiftwork_analysis::stand_ins::waits;
use shiftwork_analysis::suspensions::{suspends, suspension};
use shiftwork_analysis::verdicts::{
    Answer, Candidate, Criterion, Found, PolicyAnalysis, Question, TESTS, analyse, decide,
    largest_factor,
};
use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuSet, Instant, Invariant, Order, Phase, PolicyTraits,
    Priority, RandomStream, RecordKind, Recorder, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::Policy;
use shiftwork_policy::registry::{self, Entry};
use shiftwork_sim::{Options, Simulation};

const STEPS: u64 = 100_000;

/// Of a simulated schedule: the longest time from an arrival of each task to the completion of the job, which is no less
/// than the response, and above the relative deadline exactly if the job is late.
struct Responses<'a> {
    set: &'a TaskSet,
    due: Vec<Vec<u64>>,
    longest: Vec<u64>,
}

impl Recorder for Responses<'_> {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } => {
                self.due[job.task.index()].push(deadline.as_ns());
            }
            RecordKind::Completed { job } => {
                let index = job.task.index();
                let due = self.due[index][job.number as usize - 1];
                let arrival = due - self.set.tasks[index].deadline.as_ns();
                self.longest[index] = self.longest[index].max(at.as_ns() - arrival);
            }
            _ => {}
        }
    }
}

/// The longest times from arrivals in several runs. Jitter is uniform in some, and in the others zero or the longest: in
/// ticks as long as it.
fn longest(set: &TaskSet, entry: &Entry, seed: u64) -> Option<Vec<u64>> {
    let jitter = set.tasks.iter().map(|task| task.jitter).max();
    let ticks = [Some(Span::from_ns(1)), jitter, jitter];
    let mut longest = vec![0; set.tasks.len()];
    for (run, tick) in (0..).zip(ticks) {
        let policy = entry.build(set).ok()?;
        let mut set = set.clone();
        if run > 0 && tick == Some(Span::ZERO) {
            break;
        }
        set.platform.tick_unit = tick?;
        observe(&set, (entry, policy), seed + run, &mut longest);
    }
    Some(longest)
}

/// Simulates the set, and takes the longest times from arrivals into account.
fn observe(
    set: &TaskSet,
    (entry, policy): (&Entry, Box<dyn Policy>),
    seed: u64,
    longest: &mut Vec<u64>,
) {
    let options = Options {
        seed,
        horizon: Instant::from_ns(20_000),
        overheads: None,
        reserve_server: false,
    };
    let mut responses = Responses {
        set,
        due: vec![Vec::new(); set.tasks.len()],
        longest: std::mem::take(longest),
    };
    Simulation::new(set, policy, &entry.traits, options).run(&mut responses);
    *longest = responses.longest;
}

/// Why jobs of random tasks have to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Suspensions,
    Jitter,
    Both,
    Mutexes,
}

/// Up to five tasks on up to three CPUs, of which some have to wait; the phases of a job run for its cost, and the jitter of
/// all tasks that have some is the same.
fn random(stream: &mut RandomStream, wait: Wait) -> TaskSet {
    if wait == Wait::Mutexes {
        return mutexes::random(stream);
    }
    let cpus = 1 + stream.below(3) as usize;
    let count = 2 + stream.below(4);
    let nested = stream.below(2) == 0;
    let jitter = match wait {
        Wait::Suspensions | Wait::Mutexes => 0,
        Wait::Jitter | Wait::Both => {
            // Some beyond the shorter periods.
            let longest = [20, 60, 200][stream.below(3) as usize];
            1 + stream.below(longest)
        }
    };
    let task = |place: u64| {
        let period = [8, 10, 12, 20, 30][stream.below(5) as usize] * 10;
        let cost = 1 + stream.below(period / 3);
        let mut task = Task::periodic(
            &format!("t{place}"),
            Span::from_ns(cost),
            Span::from_ns(period),
            affinity(stream, cpus, nested),
        );
        task.offset = Span::from_ns(stream.below(period));
        task.deadline = Span::from_ns(match stream.below(4) {
            0 => (cost + stream.below(period)).min(period),
            1 => period + stream.below(2 * period),
            _ => period,
        });
        task.priority = Priority::new(1 + stream.below(4) as u32);
        if stream.below(2) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        if jitter > 0 && stream.below(3) > 0 {
            task.jitter = Span::from_ns(jitter);
        }
        if wait != Wait::Jitter && stream.below(3) > 0 && cost >= 2 {
            let first = 1 + stream.below(cost - 1);
            let sleep = 1 + stream.below(period / 2);
            let [run, rest, sleep] = [first, cost - first, sleep].map(Span::from_ns);
            let mut phases = vec![Phase::Run(run), Phase::Sleep(sleep), Phase::Run(rest)];
            match stream.below(4) {
                0 => phases.insert(0, Phase::Sleep(Span::from_ns(1 + stream.below(period / 4)))),
                1 => phases.push(Phase::Sleep(sleep)),
                _ => {}
            }
            task.work = Work::Phases(phases);
        }
        task
    };
    let tasks: Vec<Task> = (0..count).map(task).collect();
    TaskSet::new("", cpus, tasks)
}

fn affinity(stream: &mut RandomStream, cpus: usize, nested: bool) -> Affinity {
    let all = CpuSet::first(cpus);
    let some: CpuSet = all.iter().filter(|_| stream.below(2) == 0).collect();
    let set = match (stream.below(3), nested) {
        (0, _) => all,
        (_, true) => CpuSet::first(1 + stream.below(cpus as u64) as usize),
        (_, false) => some,
    };
    Affinity::new(set).or(Affinity::new(all)).unwrap()
}

fn candidate(set: &TaskSet, entry: &Entry) -> Candidate {
    let own = || set.tasks.iter().map(|task| task.affinity).collect();
    Candidate {
        policy: entry.name.to_owned(),
        traits: entry.traits,
        bound: match entry.build(set) {
            Ok(built) => Ok(built.packing().unwrap_or_else(own)),
            Err(refusal) => Err(refusal.to_string()),
        },
    }
}

/// The set as if no job had to wait.
fn at_once(set: &TaskSet) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks {
        task.jitter = Span::ZERO;
        task.work = Work::Cost;
    }
    set
}

/// The set as if each job computed while it has to wait.
fn computing(set: &TaskSet) -> TaskSet {
    let mut computing = at_once(set);
    for (computing, task) in computing.tasks.iter_mut().zip(&set.tasks) {
        computing.cost += task.jitter + suspension(task);
    }
    computing
}

fn in_time(set: &TaskSet, longest: &[u64]) -> bool {
    let mut pairs = set.tasks.iter().zip(longest);
    pairs.all(|(task, &response)| response <= task.deadline.as_ns())
}

#[derive(Debug, Default)]
struct Seen {
    shown: u64,
    bounds: u64,
    tardiness: u64,
    refuted: u64,
    admitted: u64,
    /// Sets that would be called schedulable if no job had to wait, and miss deadlines.
    misled: u64,
    /// Sets that are schedulable, and would not be called so if jobs computed while they have to wait.
    sharper: u64,
}

fn check(seed: u64, (entry, wait): (&Entry, Wait), seen: &mut Seen) {
    let mut stream = RandomStream::new(seed, 131, 0);
    let set = random(&mut stream, wait);
    let candidate = candidate(&set, entry);
    let Ok(bound) = candidate.bound.clone() else {
        return;
    };
    let waits = waits(&set);
    let analyse = |set: &TaskSet| analyse(set, std::slice::from_ref(&candidate), STEPS);
    let mut analysis = analyse(&set);
    let found: PolicyAnalysis = analysis.policies.remove(0);
    let longest = longest(&set, entry, seed).unwrap();
    let context = || {
        format!(
            "seed {seed}, {}: {set:#?}\n{longest:?}\n{found:#?}",
            entry.name
        )
    };
    let feasible = analysis.feasibility.verdict;
    if found.hard.answer == Answer::Schedulable {
        seen.shown += u64::from(waits);
        assert!(in_time(&set, &longest), "{}", context());
        assert_eq!(feasible, Feasible::Yes, "{}", context());
        let computing = analyse(&computing(&set)).policies.remove(0);
        seen.sharper += u64::from(computing.hard.answer != Answer::Schedulable);
    }
    if feasible == Feasible::No {
        assert_eq!(found.hard.answer, Answer::Unschedulable, "{}", context());
    }
    let worst = set.tasks.iter().find(|task| {
        let waits = task.jitter.as_ns() + suspension(task).as_ns();
        waits > 0 && task.cost.as_ns() + waits > task.deadline.as_ns()
    });
    if worst.is_some() {
        assert_eq!(feasible, Feasible::No, "{}", context());
    }
    for (best, &response) in found.best.iter().zip(&longest) {
        if let Some(best) = best {
            seen.bounds += u64::from(waits);
            assert!(response <= best.response.as_ns(), "{}", context());
        }
    }
    let without = analyse(&at_once(&set)).policies.remove(0);
    if waits && found.hard.answer == Answer::Unschedulable {
        seen.refuted += 1;
        let by_demand = found.hard.by == ["feasibility"];
        // Jitter may be zero, so that every proof without it holds.
        let is_at_once = !suspends(&set) && set.first_locking().is_none();
        let is_refuted = is_at_once && without.hard.by == found.hard.by;
        assert!(by_demand || is_refuted, "{}", context());
    }
    for criterion in [Criterion::Hard, Criterion::Soft] {
        let question = Question {
            tardiness: true,
            ..Question::new(entry.traits, &bound, criterion, STEPS)
        };
        let judgement = found.judgement(criterion);
        let decision = decide(&set, &question);
        if let Some(tardiness) = decision.tardiness {
            seen.tardiness += u64::from(waits);
            let tasks = set.tasks.iter().zip(&longest);
            let late =
                tasks.map(|(task, &response)| response.saturating_sub(task.deadline.as_ns()));
            let late = late.max().unwrap_or(0);
            assert!(late <= tardiness.as_ns(), "{decision:?}, {}", context());
        }
        let decided = decision.answer;
        if judgement.answer != Answer::Unknown || decided != Answer::Unknown {
            let aside = judgement
                .tests
                .iter()
                .any(|&(_, found)| found == Found::StepLimit);
            assert!(
                decided == judgement.answer || aside,
                "{decided:?}, {}",
                context()
            );
        }
    }
    if let Some(terms) = Terms::of(&entry.traits, &set) {
        let decision = admit(&set, &bound, terms);
        if decision.guarantee == Guarantee::Hard {
            seen.admitted += u64::from(waits);
            assert!(in_time(&set, &longest), "{decision:?}, {}", context());
        }
    }
    seen.misled +=
        u64::from(without.hard.answer == Answer::Schedulable && !in_time(&set, &longest));
}

/// Checks as many sets as there are seeds under every policy of which a test speaks; `is_shown`: whether anything is to be
/// shown under it.
fn check_all(wait: Wait, is_shown: impl Fn(&PolicyTraits) -> bool) {
    let seeds = match (std::env::var_os("SHIFTWORK_LONG"), wait) {
        (Some(_), _) => 100_000,
        (None, Wait::Suspensions | Wait::Mutexes) => 500,
        // Each in several runs.
        (None, Wait::Jitter | Wait::Both) => 200,
    };
    for entry in registry::POLICIES {
        if !TESTS.iter().any(|test| test.speaks_of(&entry.traits)) {
            continue;
        }
        let mut seen = Seen::default();
        for seed in 0..seeds {
            check(seed, (entry, wait), &mut seen);
        }
        println!("{}: {seen:?}", entry.name);
        if is_shown(&entry.traits) {
            let least = [seen.shown, seen.bounds, seen.misled].into_iter().min();
            assert!(least > Some(0), "{}: {seen:?}", entry.name);
        } else {
            assert_eq!(seen.shown, 0, "{}", entry.name);
        }
        // Suspensions themselves are counted, preemptive, by priority or deadline, where each task has one CPU.
        if wait == Wait::Suspensions {
            let has_test = matches!(entry.traits.order, Order::FixedPriority | Order::Edf);
            let is_counted = is_shown(&entry.traits) && has_test;
            assert_eq!(seen.sharper > 0, is_counted, "{}: {seen:?}", entry.name);
        }
    }
}

/// Where waiting counts as computing, wherever tasks are bound.
fn counts_as_computing(policy: &PolicyTraits) -> bool {
    policy.is_greedy() && !policy.order.is_by_cost()
}

/// Where something is to be shown of tasks that suspend themselves: under the weak invariant only if each has one CPU.
fn shows_suspensions(policy: &PolicyTraits) -> bool {
    let is_by_rank = matches!(policy.order, Order::Edf | Order::FixedPriority);
    counts_as_computing(policy) || is_by_rank && policy.invariant == Invariant::Weak
}

#[test]
fn nothing_that_is_shown_of_tasks_that_suspend_themselves_is_wrong() {
    check_all(Wait::Suspensions, shows_suspensions);
}

/// Where something is to be shown of tasks with jitter.
fn shows_jitter(policy: &PolicyTraits) -> bool {
    let is_weak_edf = policy.order == Order::Edf && policy.invariant == Invariant::Weak;
    counts_as_computing(policy) || is_weak_edf || policy.order == Order::FixedPriority
}

#[test]
fn nothing_that_is_shown_of_tasks_with_jitter_is_wrong() {
    check_all(Wait::Jitter, shows_jitter);
}

#[test]
fn nothing_that_is_shown_of_tasks_with_jitter_that_suspend_themselves_is_wrong() {
    check_all(Wait::Both, shows_jitter);
}

#[test]
fn a_task_that_suspends_itself_beyond_its_deadline_is_refuted() {
    let all = Affinity::new(CpuSet::first(1)).unwrap();
    let mut task = Task::periodic("a", Span::from_ns(4), Span::from_ns(10), all);
    task.work = Work::Phases(vec![
        Phase::Run(Span::from_ns(2)),
        Phase::Sleep(Span::from_ns(7)),
        Phase::Run(Span::from_ns(2)),
    ]);
    let set = TaskSet::new("", 1, vec![task]);
    let entry = registry::find("p-edf").unwrap();
    let analysis = analyse(&set, &[candidate(&set, entry)], STEPS);
    let expected = Some(Witness::TooLong {
        task: TaskId::from_index(0),
        least: Span::from_ns(11),
        deadline: Span::from_ns(10),
    });
    assert_eq!(analysis.feasibility.witness, expected);
    let hard = &analysis.policies[0].hard;
    assert_eq!(
        (hard.answer, &hard.witness),
        (Answer::Unschedulable, &expected)
    );
    assert!(longest(&set, entry, 1).unwrap()[0] > 10);
    let decision = admit(&set, &[all], Terms::of(&entry.traits, &set).unwrap());
    assert_eq!(decision.guarantee, Guarantee::None, "{decision}");
}

#[test]
fn nothing_is_promised_where_deadlines_become_shorter() {
    let all = Affinity::new(CpuSet::first(1)).unwrap();
    let mut task = Task::periodic("a", Span::from_ns(2), Span::from_ns(10), all);
    task.work = Work::Phases(vec![
        Phase::Run(Span::from_ns(1)),
        Phase::Sleep(Span::from_ns(3)),
        Phase::Run(Span::from_ns(1)),
    ]);
    let mut set = TaskSet::new("", 1, vec![task]);
    let entry = registry::find("p-edf").unwrap();
    let terms = Terms::of(&entry.traits, &set).unwrap();
    assert_eq!(admit(&set, &[all], terms).guarantee, Guarantee::Hard);
    for (deadlines, guarantee) in [
        (&[9][..], Guarantee::None),
        (&[11][..], Guarantee::Hard),
        (&[20, 15][..], Guarantee::None),
    ] {
        let changed = (1..).zip(deadlines).map(|(at, &deadline)| Action {
            at: Instant::from_ns(at * 100),
            change: Change::SetAttributes {
                task: TaskId::from_index(0),
                cost: None,
                period: None,
                deadline: Some(Span::from_ns(deadline)),
            },
        });
        set.actions = changed.collect();
        assert_eq!(admit(&set, &[all], terms).guarantee, guarantee);
    }
}

#[test]
fn factors_on_costs_leave_suspensions_and_jitter_as_they_are() {
    let all = Affinity::new(CpuSet::first(1)).unwrap();
    let [cost, wait, period] = [2, 3, 10].map(Span::from_ns);
    let suspended = Task {
        work: Work::Phases(vec![Phase::Sleep(wait), Phase::Run(cost)]),
        ..Task::periodic("a", cost, period, all)
    };
    let delayed = Task {
        jitter: wait,
        ..Task::periodic("a", cost, period, all)
    };
    for policy in ["p-edf", "p-fp"] {
        let entry = registry::find(policy).unwrap();
        for task in [&suspended, &delayed] {
            let set = TaskSet::new("", 1, vec![task.clone()]);
            let of = &mut |set: &TaskSet| candidate(set, entry);
            let factor = largest_factor(&set, of, Criterion::Hard, STEPS).unwrap();
            // 2 f + 3 = 10.
            assert_eq!(factor.to_string(), "7/2", "{policy}: {task:?}");
        }
    }
}
