//! Causes of misses: each cause in a scenario of its own, in which removing the cause removes the miss; and the
//! attribution of time in random runs.
#![allow(clippy::unwrap_used, reason = "to test")]

mod common;

use common::{AT, NS, contract, id, options, random_set, simulate, task};
use shiftwork_model::{
    Action, Affinity, Change, CpuId, CpuSet, JobId, LinearCost, OnOverrun, Overheads, Phase,
    Protocol, RandomStream, Record, Resource, ResourceId, Share, Span, Task, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::Options;
use shiftwork_trace::explain::{Cause, Culprit, End, Explanation, Part, explain, first_misses};

struct Run {
    set: TaskSet,
    policy: &'static str,
    options: Options,
    records: Vec<Record>,
}

impl Run {
    fn of(set: &TaskSet, policy: &'static str, options: Options) -> Self {
        let (records, _) = simulate(set, policy, options.clone());
        Self {
            set: set.clone(),
            policy,
            options,
            records,
        }
    }

    fn misses(&self) -> Vec<JobId> {
        first_misses(&self.set, &self.records, self.options.horizon, usize::MAX)
    }

    fn explain(&self, job: JobId) -> Explanation {
        let entry = registry::find(self.policy).unwrap();
        let mut contract = contract(entry, &self.set);
        contract.immediate = self.options.overheads.is_none();
        explain(
            &self.set,
            &contract,
            &self.records,
            job,
            self.options.horizon,
        )
        .unwrap()
    }

    /// Explains the first miss of the task.
    fn first(&self, task: usize) -> Explanation {
        let late = self.misses();
        let job = late.iter().find(|job| job.task == id(task));
        self.explain(*job.unwrap_or_else(|| panic!("a job of T{task} is late; late are {late:?}")))
    }

    fn is_late(&self, job: JobId) -> bool {
        self.misses().contains(&job)
    }
}

/// A task on these CPUs.
fn on(cpus: &str, name: &str, cost: u64, period: u64) -> Task {
    let affinity = Affinity::new(cpus.parse::<CpuSet>().unwrap()).unwrap();
    Task {
        affinity,
        ..task(1, name, cost, period)
    }
}

fn times(explanation: &Explanation) -> Vec<(Part, u64)> {
    let parts = explanation.parts.iter();
    parts.map(|&(part, time)| (part, time.as_ns())).collect()
}

/// Asserts that the miss has this cause, and that the same job meets its deadline after `mend` has removed it.
fn caused_by(run: &Run, task: usize, cause: Culprit, mend: impl FnOnce(&mut Run)) -> Explanation {
    let explanation = run.first(task);
    assert_eq!(explanation.cause, Cause::One(cause), "{explanation:#?}");
    let mut mended = Run::of(&run.set, run.policy, run.options.clone());
    mend(&mut mended);
    let mended = Run::of(&mended.set, mended.policy, mended.options);
    assert!(!mended.is_late(explanation.job), "{:#?}", mended.misses());
    explanation
}

fn overrunning() -> TaskSet {
    let mut hog = on("0", "hog", 3, 10);
    hog.on_overrun = OnOverrun::Continue;
    hog.work = Work::Trace(vec![NS(3), NS(8)]);
    let mut calm = on("0", "calm", 4, 10);
    calm.deadline = NS(9);
    hog.deadline = NS(8);
    TaskSet::new("test", 1, vec![hog, calm])
}

#[test]
fn overrun_of_another_task_is_the_cause() {
    for policy in ["strong-edf", "weak-edf", "p-edf", "strong-fp", "g-edf"] {
        let run = Run::of(&overrunning(), policy, options(30));
        let why = caused_by(&run, 1, Culprit::Overrun(id(0)), |run| {
            run.set.tasks[0].work = Work::Cost;
        });
        // Under fixed priorities the next job of hog delays the late job once more.
        let (until, within) = if policy == "strong-fp" {
            (25, 6)
        } else {
            (22, 3)
        };
        assert_eq!((why.job.number, why.until), (2, AT(until)), "{policy}");
        assert_eq!(
            times(&why),
            [
                (Part::Executing, 4),
                (Part::Overrun(id(0)), 5),
                (Part::MoreUrgent(id(0)), within)
            ],
            "{policy}"
        );
    }
}

#[test]
fn own_overrun_is_the_cause_with_and_without_throttling() {
    for on_overrun in [OnOverrun::Continue, OnOverrun::Throttle] {
        let mut task = on("0", "a", 3, 10);
        task.on_overrun = on_overrun;
        task.work = Work::Trace(vec![NS(12), NS(3)]);
        let run = Run::of(&TaskSet::new("test", 1, vec![task]), "g-edf", options(100));
        let why = caused_by(&run, 0, Culprit::OwnOverrun, |run| {
            run.set.tasks[0].work = Work::Cost;
        });
        let expected = match on_overrun {
            OnOverrun::Throttle => vec![
                (Part::Executing, 3),
                (Part::OwnOverrun, 9),
                (Part::Throttled, 21),
            ],
            _ => vec![(Part::Executing, 3), (Part::OwnOverrun, 9)],
        };
        assert_eq!(times(&why), expected);
    }
}

#[test]
fn carry_over_is_attributed_to_the_cause_of_the_first_miss() {
    let mut set = overrunning();
    set.tasks[0].work = Work::Trace(vec![NS(3), NS(14), NS(3)]);
    let run = Run::of(&set, "g-fp", options(50));
    let late = run.misses();
    let second = late.iter().filter(|job| job.task == id(1)).nth(1).unwrap();
    let why = run.explain(*second);
    assert_eq!((why.release, why.since), (AT(20), AT(10)));
    assert_eq!(why.cause, Cause::One(Culprit::Overrun(id(0))));
    assert_eq!(why.time(Part::CarryIn), NS(14), "{why:#?}");
}

#[test]
fn offline_cpu_is_the_cause() {
    let mut set = TaskSet::new(
        "test",
        2,
        vec![on("0-1", "a", 7, 10), on("0-1", "b", 7, 10)],
    );
    let cpu = CpuId::from_index(1);
    set.actions = vec![
        Action {
            at: AT(12),
            change: Change::CpuOffline(cpu),
        },
        Action {
            at: AT(19),
            change: Change::CpuOnline(cpu),
        },
    ];
    for policy in ["strong-edf", "weak-edf", "g-edf"] {
        let run = Run::of(&set, policy, options(30));
        let why = caused_by(&run, 1, Culprit::CpuOffline, |run| run.set.actions.clear());
        let share = why.share(Culprit::CpuOffline).unwrap();
        assert_eq!(share.cpus, CpuSet::single(cpu), "{policy}");
        assert!(why.timeline.iter().any(|slice| slice.cpu == cpu
            && slice.occupant == shiftwork_trace::explain::Occupant::Offline
            && (slice.from, slice.to) == (AT(12), AT(19))));
    }
}

#[test]
fn narrow_affinity_is_the_cause() {
    let set = TaskSet::new("test", 2, vec![on("0", "a", 6, 10), on("0", "b", 6, 10)]);
    let run = Run::of(&set, "strong-edf", options(20));
    let why = caused_by(&run, 1, Culprit::NarrowAffinity, |run| {
        run.set.tasks[1].affinity = Affinity::new(CpuSet::first(2)).unwrap();
    });
    assert_eq!(
        times(&why),
        [(Part::Executing, 6), (Part::MoreUrgent(id(0)), 6)]
    );
}

#[test]
fn missing_shift_under_a_weak_policy_is_the_cause() {
    // CPU 0 runs `anywhere`, which could as well run on CPU 1.
    let set = TaskSet::new(
        "test",
        2,
        vec![on("0-1", "anywhere", 9, 12), on("0", "pinned", 6, 13)],
    );
    for policy in ["weak-edf", "weak-fp"] {
        let run = Run::of(&set, policy, options(26));
        caused_by(&run, 1, Culprit::NoShift, |run| {
            run.policy = match policy {
                "weak-edf" => "strong-edf",
                _ => "strong-fp",
            };
        });
        // Shifts do not help a job if all its CPUs run more urgent jobs.
        let mut narrow = run.set.clone();
        narrow.tasks[0].affinity = narrow.tasks[1].affinity;
        let run = Run::of(&narrow, policy, options(26));
        assert_eq!(run.first(1).cause, Cause::One(Culprit::NarrowAffinity));
    }
}

#[test]
fn packing_is_the_cause() {
    let mut tasks: Vec<Task> = (0..3).map(|k| on("0-1", &format!("T{k}"), 4, 10)).collect();
    tasks.iter_mut().for_each(|task| task.deadline = NS(7));
    tasks[2].cost = NS(3);
    let set = TaskSet::new("test", 2, tasks);
    let run = Run::of(&set, "p-edf", options(20));
    let late = run.misses()[0];
    let why = run.explain(late);
    assert_eq!(why.cause, Cause::One(Culprit::NarrowPacking), "{why:#?}");
}

#[test]
fn background_reserve_is_the_cause() {
    let mut set = TaskSet::new("test", 1, vec![task(1, "a", 1_000, 1_000)]);
    set.tasks[0].cost = Span::from_ms(1);
    set.tasks[0].period = Span::from_ms(1);
    set.tasks[0].deadline = Span::from_ms(1);
    set.scheduler.reserve = Share::from_billionths(50_000_000).unwrap();
    let mut options = options(1_200_000_000);
    options.reserve_server = true;
    let run = Run::of(&set, "g-edf", options);
    caused_by(&run, 0, Culprit::Reserve, |run| {
        run.options.reserve_server = false;
    });
}

#[test]
fn overload_is_the_cause() {
    let tasks = (0..3).map(|k| on("0-1", &format!("T{k}"), 8, 10)).collect();
    let run = Run::of(&TaskSet::new("test", 2, tasks), "g-edf", options(20));
    caused_by(&run, 2, Culprit::Overload, |run| {
        run.set.tasks[0].cost = NS(2);
        run.set.tasks[1].cost = NS(2);
    });
}

#[test]
fn non_preempted_less_urgent_job_is_the_cause() {
    let mut set = TaskSet::new(
        "test",
        1,
        vec![on("0", "long", 9, 100), on("0", "short", 1, 10)],
    );
    set.tasks[1].offset = NS(1);
    set.tasks[1].deadline = NS(5);
    let run = Run::of(&set, "np-g-edf", options(20));
    let why = caused_by(&run, 1, Culprit::Rule, |run| run.policy = "g-edf");
    assert_eq!(times(&why), [(Part::Executing, 1), (Part::HeldBack, 8)]);
}

#[test]
fn overheads_are_the_cause() {
    let mut set = TaskSet::new("test", 1, vec![on("0", "a", 8, 20)]);
    set.tasks[0].deadline = NS(10);
    let cost = LinearCost {
        base: NS(3),
        per_task: NS(0),
    };
    let mut options = options(15);
    options.overheads = Some(Overheads {
        release: cost,
        ..Overheads::default()
    });
    let run = Run::of(&set, "g-edf", options);
    let why = caused_by(&run, 0, Culprit::Interrupts, |run| {
        run.options.overheads = None
    });
    assert_eq!(times(&why), [(Part::Executing, 8), (Part::Interrupted, 3)]);
}

#[test]
fn own_suspensions_are_the_cause() {
    let mut task = on("0", "a", 4, 20);
    task.deadline = NS(10);
    task.work = Work::Phases(vec![
        Phase::Run(NS(2)),
        Phase::Sleep(NS(9)),
        Phase::Run(NS(2)),
    ]);
    let run = Run::of(&TaskSet::new("test", 1, vec![task]), "g-edf", options(20));
    let why = caused_by(&run, 0, Culprit::Suspension, |run| {
        run.set.tasks[0].work = Work::Cost;
    });
    assert_eq!(times(&why), [(Part::Executing, 4), (Part::Suspended, 9)]);
}

#[test]
fn leaving_task_abandons_its_job() {
    let mut set = TaskSet::new("test", 1, vec![on("0", "a", 4, 10)]);
    set.actions = vec![Action {
        at: AT(2),
        change: Change::Leave(id(0)),
    }];
    let run = Run::of(&set, "g-edf", options(20));
    let why = caused_by(&run, 0, Culprit::TaskLeft, |run| run.set.actions.clear());
    assert_eq!((why.end, why.until), (End::Dropped, AT(2)));
}

/// In every random run under every policy the attribution of each late job is exact and consistent with the job
/// table and the machine: the job executed its work, and a machine that reacts at once has no stalls.
#[test]
fn time_of_every_late_job_is_attributed_exactly() {
    let mut explained = 0;
    for entry in registry::POLICIES {
        for seed in 1..=12 {
            let mut set = random_set(seed);
            if entry.build(&set).is_err() {
                for task in &mut set.tasks {
                    task.deadline = task.deadline.min(task.period);
                }
            }
            if entry.build(&set).is_err() {
                continue;
            }
            let run = Run::of(&set, entry.name, options(400));
            for job in run.misses().into_iter().take(12) {
                let why = run.explain(job);
                let what = || format!("{}, seed {seed}, {job:?}: {why:#?}", entry.name);
                let sum = why.parts.iter().fold(Span::ZERO, |sum, part| sum + part.1);
                assert_eq!(sum, why.until.since(why.release).unwrap(), "{}", what());
                assert!(why.parts.iter().all(|part| !part.1.is_zero()), "{}", what());
                assert_eq!(why.time(Part::Stalled), Span::ZERO, "{}", what());
                assert_eq!(why.time(Part::Interrupted), Span::ZERO, "{}", what());
                assert_eq!(
                    why.time(Part::Executing) + why.time(Part::OwnOverrun),
                    executed(&run.records, job, why.until),
                    "{}",
                    what()
                );
                explained += 1;
            }
        }
    }
    assert!(explained > 1_000, "{explained}");
}

/// CPU time of the job, computed from the switches.
fn executed(records: &[Record], job: JobId, until: shiftwork_model::Instant) -> Span {
    let mut since = std::collections::BTreeMap::new();
    let mut sum = Span::ZERO;
    for record in records {
        if let shiftwork_model::RecordKind::Switched { cpu, from, to } = record.kind {
            if let Some(begin) = since.remove(&cpu).filter(|_| from == Some(job)) {
                sum += record.at.min(until).late_since(begin);
            }
            if to == Some(job) {
                since.insert(cpu, record.at);
            }
        }
    }
    since
        .values()
        .fold(sum, |sum, &begin| sum + until.late_since(begin))
}

/// On one CPU removing an overrun does not delay more urgent jobs, so the rule is sound: without the attributed
/// overrun the job meets its deadline.
#[test]
fn job_on_one_cpu_meets_its_deadline_without_the_attributed_overrun() {
    let mut judged = [0; 2];
    for seed in 1..=300 {
        let mut random = RandomStream::new(seed, 0, 0);
        let tasks = (0..2 + random.below(3)).map(|index| {
            let period = 10 + random.below(30);
            let cost = 1 + random.below(period / 3);
            let mut task = on("0", &format!("T{index}"), cost, period);
            task.deadline = NS(cost + random.below(2 * period));
            task.offset = NS(random.below(9));
            task.on_overrun = OnOverrun::Continue;
            task.work = Work::Uniform(NS(1 + cost / 2), NS(2 * cost));
            task
        });
        let set = TaskSet::new("random", 1, tasks.collect());
        for policy in ["g-edf", "g-fp"] {
            let run = Run::of(&set, policy, options(300));
            for job in run.misses().into_iter().take(6) {
                let why = run.explain(job);
                if why.end != End::Finished {
                    // Work after the end of the run is not in the records.
                    continue;
                }
                let (blamed, own) = match why.cause {
                    Cause::One(Culprit::Overrun(other)) => (other, 0),
                    Cause::One(Culprit::OwnOverrun) => (job.task, 1),
                    _ => continue,
                };
                let mut mended = set.clone();
                let Work::Uniform(least, _) = mended.tasks[blamed.index()].work else {
                    unreachable!("all are uniform");
                };
                mended.tasks[blamed.index()].work = Work::Constant(least);
                let mended = Run::of(&mended, policy, options(300));
                assert!(
                    !mended.is_late(job),
                    "seed {seed}, {policy}, {job:?}: {why:#?}"
                );
                judged[own] += 1;
            }
        }
    }
    assert!(judged.iter().all(|&count| count > 100), "{judged:?}");
}

#[test]
fn spinning_is_not_executing_and_the_holder_is_to_blame() {
    let mutex = ResourceId::from_index(0);
    let (lock, unlock) = (Phase::Lock(mutex), Phase::Unlock(mutex));
    let on = |cpu, name, offset, phases| {
        let mut task = task(2, name, 4, 50);
        task.affinity = Affinity::pinned(CpuId::from_index(cpu));
        task.offset = NS(offset);
        task.work = Work::Phases(phases);
        task
    };
    let mut late = on(
        1,
        "late",
        2,
        vec![Phase::Run(NS(1)), lock, Phase::Run(NS(2)), unlock],
    );
    late.deadline = NS(4);
    let holder = on(0, "holder", 0, vec![lock, Phase::Run(NS(5)), unlock]);
    let mut set = TaskSet::new("spins", 2, vec![late, holder]);
    set.resources = vec![Resource {
        name: "bus".into(),
        protocol: Protocol::Spin,
    }];
    let run = Run::of(&set, "p-edf", options(40));
    let why = run.first(0);
    assert_eq!(why.cause, Cause::One(Culprit::Mutex(Some(id(1)))));
    let mut parts = times(&why);
    parts.sort_by_key(|(_, time)| *time);
    assert_eq!(
        parts,
        [(Part::Spinning(Some(id(1))), 2), (Part::Executing, 3)]
    );
}
