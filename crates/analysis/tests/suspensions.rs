//! Tasks that suspend themselves within jobs: what verdicts and admission say of them holds in simulated schedules.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_analysis::admission::{Guarantee, Terms, admit};
use shiftwork_analysis::verdicts::{
    Answer, Candidate, Criterion, Found, PolicyAnalysis, Question, TESTS, analyse, decide,
};
use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuSet, Instant, Phase, Priority, RandomStream, RecordKind,
    Recorder, Span, Task, TaskId, TaskSet, Work,
};
use shiftwork_policy::registry::{self, Entry};
use shiftwork_sim::{Options, Simulation};

const STEPS: u64 = 100_000;

/// Of a simulated schedule: the longest response of each task.
struct Responses {
    released: Vec<Vec<u64>>,
    longest: Vec<u64>,
}

impl Recorder for Responses {
    fn record(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, .. } => self.released[job.task.index()].push(at.as_ns()),
            RecordKind::Completed { job, .. } => {
                let released = self.released[job.task.index()][job.number as usize - 1];
                let longest = &mut self.longest[job.task.index()];
                *longest = (*longest).max(at.as_ns() - released);
            }
            _ => {}
        }
    }
}

fn longest(set: &TaskSet, entry: &Entry, seed: u64) -> Option<Vec<u64>> {
    let options = Options {
        seed,
        horizon: Instant::from_ns(20_000),
        overheads: None,
        reserve_server: false,
    };
    let mut responses = Responses {
        released: vec![Vec::new(); set.tasks.len()],
        longest: vec![0; set.tasks.len()],
    };
    Simulation::new(set, entry.build(set).ok()?, &entry.traits, options).run(&mut responses);
    Some(responses.longest)
}

/// Up to five tasks on up to three CPUs, of which some suspend themselves; the phases of a job run for its cost.
fn random(stream: &mut RandomStream) -> TaskSet {
    let cpus = 1 + stream.below(3) as usize;
    let count = 2 + stream.below(4);
    let nested = stream.below(2) == 0;
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
        if stream.below(3) > 0 && cost >= 2 {
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

/// The set as if nothing suspended itself.
fn unsuspended(set: &TaskSet) -> TaskSet {
    let mut set = set.clone();
    for task in &mut set.tasks {
        task.work = Work::Cost;
    }
    set
}

fn in_time(set: &TaskSet, longest: &[u64]) -> bool {
    let mut pairs = set.tasks.iter().zip(longest);
    pairs.all(|(task, &response)| response <= task.deadline.as_ns())
}

#[derive(Debug, Default)]
struct Seen {
    shown: u64,
    bounds: u64,
    admitted: u64,
    /// Sets that would be called schedulable without their suspensions, and miss deadlines with them.
    misled: u64,
}

fn check(seed: u64, entry: &Entry, seen: &mut Seen) {
    let mut stream = RandomStream::new(seed, 131, 0);
    let set = random(&mut stream);
    let candidate = candidate(&set, entry);
    let Ok(bound) = candidate.bound.clone() else {
        return;
    };
    let suspends = unsuspended(&set) != set;
    let analyse = |set: &TaskSet| analyse(set, std::slice::from_ref(&candidate), STEPS);
    let found: PolicyAnalysis = analyse(&set).policies.remove(0);
    let longest = longest(&set, entry, seed).unwrap();
    let context = || {
        format!(
            "seed {seed}, {}: {set:#?}\n{longest:?}\n{found:#?}",
            entry.name
        )
    };
    if found.hard.answer == Answer::Schedulable {
        seen.shown += u64::from(suspends);
        assert!(in_time(&set, &longest), "{}", context());
    }
    for (best, &response) in found.best.iter().zip(&longest) {
        if let Some(best) = best {
            seen.bounds += u64::from(suspends);
            assert!(response <= best.response.as_ns(), "{}", context());
        }
    }
    if suspends && found.hard.answer == Answer::Unschedulable {
        assert_eq!(found.hard.by, ["feasibility"], "{}", context());
    }
    for criterion in [Criterion::Hard, Criterion::Soft] {
        let question = Question {
            traits: entry.traits,
            bound: &bound,
            price: None,
            criterion,
            steps: STEPS,
            only: None,
            tardiness: false,
        };
        let judgement = found.judgement(criterion);
        let decided = decide(&set, &question).answer;
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
            seen.admitted += u64::from(suspends);
            assert!(in_time(&set, &longest), "{decision:?}, {}", context());
        }
    }
    let without = analyse(&unsuspended(&set)).policies.remove(0);
    seen.misled +=
        u64::from(without.hard.answer == Answer::Schedulable && !in_time(&set, &longest));
}

#[test]
fn nothing_that_is_shown_of_tasks_that_suspend_themselves_is_wrong() {
    let seeds = if std::env::var_os("SHIFTWORK_LONG").is_some() {
        100_000
    } else {
        500
    };
    for entry in registry::POLICIES {
        if !TESTS.iter().any(|test| test.speaks_of(&entry.traits)) {
            continue;
        }
        let mut seen = Seen::default();
        for seed in 0..seeds {
            check(seed, entry, &mut seen);
        }
        println!("{}: {seen:?}", entry.name);
        if entry.traits.is_greedy() && !entry.traits.order.is_by_cost() {
            assert!(
                seen.shown > 0 && seen.bounds > 0 && seen.misled > 0,
                "{}: {seen:?}",
                entry.name
            );
        } else {
            assert_eq!(seen.shown, 0, "{}", entry.name);
        }
    }
}

#[test]
fn a_task_that_suspends_itself_beyond_its_deadline_is_not_shown() {
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
    assert_eq!(analysis.policies[0].hard.answer, Answer::Unknown);
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
