//! Triggered tasks against their definition, and against what holds of the records of every policy.

use shiftwork_model::{
    Action, Affinity, Arrival, Change, CpuId, Join, OnOverrun, Phase, Priority, Protocol,
    RandomStream, Record, RecordKind, TaskId, TaskSet, Trigger, Work,
};
use shiftwork_policy::registry;
use shiftwork_trace::check;

use crate::common::{self, AT, NS, contract, finishes, id, run, story};
use crate::random::{PROTOCOLS, add_triggers, locking_set, mutex, resources, triggering_set};
use crate::{compare, sets, triggers_of};

/// What the records say of the triggers of each task, judged by the definition: whether each is rightly kept or lost, and
/// whether a job is released exactly if it should be. Returns the number of jobs that triggers released.
fn judge(set: &TaskSet, records: &[Record]) -> Result<u64, String> {
    let mut waiting: Vec<Vec<u64>> = set
        .tasks
        .iter()
        .map(|task| match task.trigger() {
            Some(it) if it.join == Join::All => vec![0; it.sources.len()],
            _ => vec![0],
        })
        .collect();
    // Pending jobs, and whether the task takes part.
    let mut pending = vec![0_u64; set.tasks.len()];
    let mut present: Vec<bool> = set.iter().map(|(id, _)| !set.enters_later(id)).collect();
    // A release that has to follow at once.
    let mut expected: Option<TaskId> = None;
    let mut released = 0;
    for (step, record) in records.iter().enumerate() {
        let wrong = |what: &str| Err(format!("record {step} {record:?}: {what}"));
        if let Some(task) = expected.take() {
            let is_release =
                matches!(record.kind, RecordKind::Released { job, .. } if job.task == task);
            if !is_release {
                return wrong("a triggered job is not released");
            }
            released += 1;
        } else if let RecordKind::Released { job, .. } = record.kind
            && set.tasks[job.task.index()].trigger().is_some()
        {
            return wrong("a job is released without triggers");
        }
        match record.kind {
            RecordKind::Released { job, .. } => pending[job.task.index()] += 1,
            RecordKind::Completed { job } => {
                let task = job.task.index();
                pending[task] -= 1;
                if pending[task] > 0 && set.tasks[task].trigger().is_some() {
                    waiting[task].iter_mut().for_each(|count| *count -= 1);
                }
            }
            RecordKind::Left { task } => {
                (pending[task.index()], present[task.index()]) = (0, false);
                waiting[task.index()].fill(0);
            }
            RecordKind::Entered { task } => present[task.index()] = true,
            RecordKind::Triggered { by, task, is_lost } => {
                let trigger = set.tasks[task.index()].trigger().unwrap();
                let source = trigger.sources.iter().position(|it| *it == by.task);
                let place = match (trigger.join, source) {
                    (_, None) => return wrong("it is no source"),
                    (Join::Any, _) => 0,
                    (Join::All, Some(place)) => place,
                };
                let (pending, present) = (pending[task.index()], present[task.index()]);
                let waiting = &mut waiting[task.index()];
                let unbegun = pending.saturating_sub(1);
                waiting[place] += 1;
                let releases = waiting.iter().all(|count| *count > unbegun);
                let fits = trigger
                    .queue
                    .is_none_or(|limit| waiting[place] <= u64::from(limit));
                let is_kept = present && (fits || (pending == 0 && releases));
                if is_kept == is_lost {
                    return wrong("kept or lost wrongly");
                }
                if !is_kept {
                    waiting[place] -= 1;
                } else if releases {
                    expected = Some(task);
                    if pending == 0 {
                        waiting.iter_mut().for_each(|count| *count -= 1);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(released)
}

/// Counts the triggers of partitioned runs that equal the definition: kept, and lost.
fn compared(set: impl Fn(u64) -> TaskSet) -> [u64; 2] {
    let mut counts = [0, 0];
    for seed in 0..sets() {
        let set = set(seed);
        for (policy, by_priority) in [("p-fp", true), ("p-edf", false)] {
            let records = compare(seed, &set, policy, by_priority);
            for (.., is_lost) in triggers_of(&records) {
                counts[usize::from(is_lost)] += 1;
            }
        }
    }
    counts
}

#[test]
fn partitioned_runs_with_triggers_equal_the_definition() {
    let counts = compared(|seed| triggering_set(seed, &[]));
    assert!(counts.iter().all(|count| *count > sets()), "{counts:?}");
}

#[test]
fn partitioned_runs_with_triggers_and_mutexes_equal_the_definition() {
    let counts = compared(|seed| {
        let mut set = locking_set(seed, &[], &PROTOCOLS);
        add_triggers(&mut RandomStream::new(seed, 14, 0), &mut set);
        set
    });
    assert!(counts.iter().all(|count| *count > sets()), "{counts:?}");
}

#[test]
fn every_policy_keeps_its_contract_and_releases_what_is_triggered() {
    let mut released = 0;
    for seed in 0..sets() / 20 {
        let affinities: &[&str] = match seed % 2 {
            0 => &["0-3"],
            _ => &["0-3", "0", "0-1"],
        };
        let mut set = triggering_set(seed, affinities);
        let mut random = RandomStream::new(seed, 13, 0);
        if seed % 3 == 0 {
            let of = id(random.below(set.tasks.len() as u64) as usize);
            let changes = [(60, Change::Leave(of)), (90, Change::Enter(of))];
            set.actions = changes
                .map(|(at, change)| Action { at: AT(at), change })
                .to_vec();
        }
        for task in &mut set.tasks {
            if random.below(3) == 0 {
                task.on_overrun = OnOverrun::Throttle;
            }
        }
        for entry in registry::POLICIES {
            let Ok(policy) = entry.build(&set) else {
                continue;
            };
            drop(policy);
            let records = run(&set, entry.name, 300);
            match judge(&set, &records) {
                Ok(count) => released += count,
                Err(wrong) => panic!("seed {seed}, {}: {wrong}: {set:#?}", entry.name),
            }
            let found = check::check(&set, contract(entry, &set), AT(300), &records);
            assert!(
                found.is_empty(),
                "seed {seed}, {}: {found:?} {set:#?}",
                entry.name
            );
        }
    }
    assert!(released > sets(), "{released}");
}

#[test]
fn pfair_refuses_triggered_tasks() {
    let mut set = common::set(2, &[(1, 10), (1, 10)]);
    set.tasks[1].arrival = Arrival::Triggered(Trigger {
        sources: vec![id(0)],
        join: Join::Any,
        queue: None,
    });
    for entry in registry::POLICIES {
        let built = entry.build(&set).map(drop);
        let is_pfair = matches!(
            entry.traits.preemption,
            shiftwork_model::Preemption::Pfair(_)
        );
        assert_eq!(built.is_err(), is_pfair, "{}", entry.name);
    }
}

#[test]
fn pending_jobs_keep_the_deadlines_of_their_arrivals() {
    // T1 is triggered at 1, 3 and 5, and its jobs run one after the other.
    let mut set = common::set(2, &[(5, 100), (10, 100)]);
    set.tasks[1].arrival = Arrival::Triggered(Trigger {
        sources: vec![id(0)],
        join: Join::Any,
        queue: None,
    });
    let (run, trigger) = (Phase::Run, Phase::Trigger(id(1)));
    set.tasks[0].work = Work::Phases(vec![
        run(NS(1)),
        trigger,
        run(NS(2)),
        trigger,
        run(NS(2)),
        trigger,
    ]);
    let records = common::run(&set, "g-edf", 40);
    assert_eq!(
        story(&records, 1),
        [
            "1 released 1 due 101",
            "1 ready 1 by 101",
            "3 released 2 due 103",
            "5 released 3 due 105",
            "11 completed 1",
            "11 ready 2 by 103",
            "21 completed 2",
            "21 ready 3 by 105",
            "31 completed 3"
        ]
    );
}

#[test]
fn job_that_ends_with_an_unlock_and_a_trigger_completes_before_what_arrives_then() {
    let mut set = common::set(2, &[(1, 3), (2, 12), (1, 12)]);
    let (mutex, x) = (mutex(0), id(2));
    for (task, (priority, cpu)) in set.tasks.iter_mut().zip([(1, 0), (2, 0), (3, 1)]) {
        task.priority = Priority::new(priority);
        task.affinity = Affinity::pinned(CpuId::from_index(cpu));
    }
    set.resources = resources(&[Protocol::Ceiling]);
    set.tasks[2].arrival = Arrival::Triggered(Trigger {
        sources: vec![id(1)],
        join: Join::Any,
        queue: None,
    });
    let (lock, unlock) = (Phase::Lock(mutex), Phase::Unlock(mutex));
    let run = Phase::Run(NS(2));
    for end in [
        vec![unlock, Phase::Trigger(x)],
        vec![Phase::Trigger(x), unlock],
    ] {
        set.tasks[1].work = Work::Phases([vec![lock, run], end].concat());
        let records = common::run(&set, "p-fp", 12);
        assert_eq!(finishes(&records, 1), [3]);
        assert_eq!(finishes(&records, 2), [4]);
    }
}
