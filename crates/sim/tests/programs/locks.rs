//! Mutexes against their definition, and against what holds of all of them.

use std::collections::BTreeMap;

use shiftwork_model::{
    Action, Affinity, Change, CpuId, LinearCost, NotReadyReason, Order, Overheads, Phase, Priority,
    Protocol, Record, RecordKind, ResourceId, TaskSet, Work,
};
use shiftwork_policy::registry;
use shiftwork_sim::Options;
use shiftwork_trace::check;

use crate::common::{AT, NS, contract, finishes, id, options, simulate, story, task};
use crate::random::{BOUND, BOUND_BY_PRIORITY, locking_set, mutex, resources};
use crate::{HORIZON, compare, sets};

fn is_wait(record: &&Record) -> bool {
    let RecordKind::NotReady { reason, .. } = record.kind else {
        return false;
    };
    matches!(reason, NotReadyReason::Blocked(_))
}

#[test]
fn partitioned_runs_equal_the_definition() {
    let (mut blocked, mut raised) = (0, 0);
    let by_priority = [&BOUND[..], &BOUND_BY_PRIORITY].concat();
    for seed in 0..sets() {
        for (policy, protocols) in [("p-fp", &by_priority[..]), ("p-edf", &BOUND)] {
            let set = locking_set(seed, &[], protocols);
            let by_priority = policy == "p-fp";
            let records = compare(seed, &set, policy, by_priority);
            let is_raised = |it: &&Record| matches!(it.kind, RecordKind::RankChanged { .. });
            blocked += records.iter().filter(is_wait).count() as u64;
            raised += records.iter().filter(is_raised).count() as u64;
        }
    }
    assert!(blocked > sets() && raised > sets(), "{blocked} {raised}");
}

#[test]
fn greedy_runs_under_affinities_equal_the_definition() {
    let protocols = [
        Protocol::Inheritance,
        Protocol::Migratory,
        Protocol::Migratory,
        Protocol::Omlp,
        Protocol::NonPreemptive,
        Protocol::Spin,
    ];
    let (mut runs, mut blocked, mut lent) = (0, 0, 0);
    for seed in 0..sets() / 3 {
        let affinities: &[&str] = match seed % 3 {
            0 => &["0-2"],
            1 => &["0", "1", "2", "0-1", "0-2"],
            _ => &["0", "0-1", "1-2", "0,2", "0-2"],
        };
        let set = locking_set(seed, affinities, &protocols);
        for entry in registry::POLICIES {
            let traits = &entry.traits;
            let is_greedy = traits.is_greedy() && traits.dedicated_cpu().is_none();
            let is_known = matches!(traits.order, Order::Edf | Order::FixedPriority);
            if !is_greedy || !is_known || traits.placement.is_packed() || entry.build(&set).is_err()
            {
                continue;
            }
            let records = compare(seed, &set, entry.name, traits.order.is_by_priority());
            let found = check::check(&set, contract(entry, &set), AT(HORIZON), &records);
            assert_eq!(found, [], "seed {seed}, {}", entry.name);
            let is_lent = |it: &&Record| matches!(it.kind, RecordKind::AffinitySet { .. });
            runs += 1;
            blocked += records.iter().filter(is_wait).count() as u64;
            lent += records.iter().filter(is_lent).count() as u64;
        }
    }
    assert!(
        runs > sets() && blocked > runs && lent > sets() / 3,
        "{runs} {blocked} {lent}"
    );
}

/// Checks that no job leaves its CPU from when it spins, or runs with a mutex that forbids it, until it has unlocked all of
/// these; but for the instant at which that begins, up to which a policy may move it.
fn assert_kept(set: &TaskSet, records: &[Record], context: &str) {
    let count = set.tasks.len();
    let mut held: Vec<Vec<ResourceId>> = vec![Vec::new(); count];
    let mut kept: Vec<Option<u64>> = vec![None; count];
    let mut runs = vec![false; count];
    for record in records {
        let at = record.at.as_ns();
        match record.kind {
            RecordKind::Spinning { job, .. } => {
                kept[job.task.index()].get_or_insert(at);
            }
            RecordKind::Locked { job, resource } => {
                let task = job.task.index();
                if set.resources[resource.index()].protocol.is_non_preemptive() {
                    held[task].push(resource);
                    kept[task] = kept[task].or(Some(at).filter(|_| runs[task]));
                }
            }
            RecordKind::Unlocked { job, resource } => {
                let task = job.task.index();
                held[task].retain(|other| *other != resource);
                kept[task] = kept[task].filter(|_| !held[task].is_empty());
            }
            RecordKind::Switched { cpu, from, to } => {
                if let Some(task) = from.map(|job| job.task.index()) {
                    let is_lost = kept[task].is_some_and(|since| since < at);
                    assert!(!is_lost, "{context}: at {at} task {task} loses CPU {cpu}");
                    runs[task] = false;
                }
                if let Some(task) = to.map(|job| job.task.index()) {
                    runs[task] = true;
                    if !held[task].is_empty() {
                        kept[task].get_or_insert(at);
                    }
                }
            }
            _ => {}
        }
    }
}

#[test]
fn every_policy_that_takes_locks_keeps_its_contract_and_mutual_exclusion() {
    let mut runs = 0;
    for seed in 0..sets() / 20 {
        let affinities: &[&str] = match seed % 2 {
            0 => &["0-3"],
            _ => &["0-3", "0", "0-1"],
        };
        let set = locking_set(
            seed,
            affinities,
            &[Protocol::Inheritance, Protocol::Migratory],
        );
        for entry in registry::POLICIES {
            if !entry.traits.takes_locks() {
                if set.first_locking().is_some() {
                    let refusal = entry.build(&set).map(drop).unwrap_err().to_string();
                    assert!(refusal.starts_with(entry.name), "{refusal}");
                }
                continue;
            }
            if entry.build(&set).is_err() {
                continue;
            }
            let (records, _) = simulate(&set, entry.name, options(300));
            let found = check::check(&set, contract(entry, &set), AT(300), &records);
            assert_eq!(found, [], "seed {seed}, {}", entry.name);
            assert_kept(&set, &records, &format!("seed {seed}, {}", entry.name));
            let mut holders: BTreeMap<usize, usize> = BTreeMap::new();
            for record in &records {
                match record.kind {
                    RecordKind::Locked { job, resource } => {
                        let before = holders.insert(resource.index(), job.task.index());
                        assert_eq!(before, None, "seed {seed}, {}", entry.name);
                    }
                    RecordKind::Unlocked { job, resource } => {
                        let before = holders.remove(&resource.index());
                        assert_eq!(
                            before,
                            Some(job.task.index()),
                            "seed {seed}, {}",
                            entry.name
                        );
                    }
                    _ => {}
                }
            }
            runs += 1;
        }
    }
    assert!(runs > sets() / 5, "{runs}");
}

/// A task of this priority, whose jobs do this.
fn locking(name: &str, priority: u32, offset: u64, phases: Vec<Phase>) -> shiftwork_model::Task {
    let mut task = task(1, name, 20, 100);
    task.priority = Priority::new(priority);
    task.offset = NS(offset);
    task.work = Work::Phases(phases);
    task
}

/// `low` holds a mutex that `high` needs, and `middle` would run meanwhile.
fn inversion(protocol: Protocol) -> TaskSet {
    let (run, lock, unlock) = (
        |ns| Phase::Run(NS(ns)),
        Phase::Lock(mutex(0)),
        Phase::Unlock(mutex(0)),
    );
    let mut middle = locking("middle", 2, 2, vec![run(10)]);
    middle.work = Work::Constant(NS(10));
    let tasks = vec![
        locking("high", 1, 2, vec![run(1), lock, run(2), unlock]),
        middle,
        locking("low", 3, 0, vec![lock, run(4), unlock, run(1)]),
    ];
    let mut set = TaskSet::new("inversion", 1, tasks);
    set.resources = resources(&[protocol]);
    set
}

#[test]
fn priority_inversion_is_bounded_by_the_section_under_protocols_alone() {
    let finish = |protocol| {
        let (records, _) = simulate(&inversion(protocol), "p-fp", options(50));
        [0, 1, 2].map(|task| finishes(&records, task))
    };
    // `high` waits for the section of `low`, and for all of `middle`.
    assert_eq!(finish(Protocol::None), [[17], [13], [18]]);
    // The section alone, be it when the mutex is requested or at once.
    assert_eq!(finish(Protocol::Inheritance), [[7], [17], [18]]);
    assert_eq!(finish(Protocol::Ceiling), [[7], [17], [18]]);
    assert_eq!(finish(Protocol::NonPreemptive), [[7], [17], [18]]);
}

#[test]
fn records_say_what_happens_to_a_job_that_waits_for_a_mutex() {
    let (records, _) = simulate(&inversion(Protocol::Inheritance), "p-fp", options(50));
    assert_eq!(
        story(&records, 0),
        [
            "2 released 1 due 102",
            "2 ready 1 by 102",
            "3 Blocked(R0)",
            "5 ready 1 by 102",
            "7 completed 1"
        ]
    );
    let changes = |record: &Record| match record.kind {
        RecordKind::RankChanged { task, priority, .. } => {
            Some((record.at.as_ns(), task.index(), priority.number()))
        }
        _ => None,
    };
    let changes: Vec<_> = records.iter().filter_map(changes).collect();
    assert_eq!(changes, [(3, 2, 1), (5, 2, 3)]);
}

#[test]
fn task_that_locks_may_not_leave_or_change() {
    let mut set = inversion(Protocol::Inheritance);
    let change = |change| Action { at: AT(1), change };
    set.actions = vec![
        change(Change::Leave(id(2))),
        change(Change::SetPriority(id(0), Priority::MOST_URGENT)),
        change(Change::SetPriority(id(1), Priority::LEAST_URGENT)),
    ];
    let (records, _) = simulate(&set, "p-fp", options(50));
    let refused = |record: &Record| match &record.kind {
        RecordKind::Refused { action, reason } => {
            assert!(reason.contains("locks mutexes"), "{reason}");
            Some(*action)
        }
        _ => None,
    };
    let refused: Vec<usize> = records.iter().filter_map(refused).collect();
    assert_eq!(refused, [0, 1]);
}

/// `low` holds a mutex that `high` needs on another CPU, and `top` has the CPU of `low` meanwhile.
fn shared_across(protocol: Protocol) -> TaskSet {
    let (run, lock, unlock) = (
        |ns| Phase::Run(NS(ns)),
        Phase::Lock(mutex(0)),
        Phase::Unlock(mutex(0)),
    );
    let mut tasks = vec![
        locking("top", 1, 2, vec![run(10)]),
        locking("high", 2, 2, vec![run(1), lock, run(2), unlock]),
        locking("low", 3, 0, vec![lock, run(4), unlock, run(1)]),
    ];
    for (task, cpu) in tasks.iter_mut().zip([0, 1, 0]) {
        task.affinity = Affinity::pinned(CpuId::from_index(cpu));
    }
    let mut set = TaskSet::new("across", 2, tasks);
    set.resources = resources(&[protocol]);
    set
}

#[test]
fn migratory_holder_runs_on_the_cpu_of_a_waiter_until_it_unlocks() {
    let finish = |policy, protocol| {
        let (records, _) = simulate(&shared_across(protocol), policy, options(50));
        [0, 1, 2].map(|task| finishes(&records, task))
    };
    for policy in ["strong-fp", "weak-fp"] {
        // The CPU of `high` is idle while `low` waits for `top`.
        let stays = finish(policy, Protocol::Inheritance);
        assert_eq!(stays, [[12], [16], [15]], "{policy}");
        let moves = finish(policy, Protocol::Migratory);
        assert_eq!(moves, [[12], [7], [13]], "{policy}");
    }
    let set = shared_across(Protocol::Migratory);
    let (records, _) = simulate(&set, "strong-fp", options(50));
    let of = |record: &Record| match &record.kind {
        RecordKind::AffinitySet { task, affinity } => Some(format!(
            "{} {} {}",
            record.at.as_ns(),
            task.index(),
            affinity.cpus()
        )),
        _ => None,
    };
    let changes: Vec<String> = records.iter().filter_map(of).collect();
    assert_eq!(changes, ["3 2 0,1", "5 2 0"]);
}

#[test]
fn migratory_mutex_is_refused_where_its_holder_cannot_be_placed() {
    let refusal = |policy: &str, set: &TaskSet| {
        let built = registry::find(policy).unwrap().build(set);
        built.err().map(|error| error.to_string())
    };
    let mut set = shared_across(Protocol::Migratory);
    assert_eq!(
        refusal("p-edf", &set).unwrap(),
        "p-edf binds each task to a part of the CPUs, and jobs that hold `R0` may use the CPUs of those that wait for it; \
         accepted are tasks that use it and are bound to one CPU, another protocol, and policies for any affinities, for \
         example `strong-edf`"
    );
    assert_eq!(
        refusal("hpa-fp", &set).unwrap(),
        "hpa-fp takes nested affinities, and jobs that hold `R0` may use the CPUs of those that wait for it; accepted are \
         tasks that use it and have nested affinities, another protocol, and policies for any affinities, for example \
         `strong-fp`"
    );
    set.tasks[1].affinity = Affinity::new("0-1".parse().unwrap()).unwrap();
    assert_eq!(refusal("hpa-fp", &set), None);
    assert!(refusal("p-edf", &set).is_some());
    set.tasks[1].affinity = set.tasks[2].affinity;
    assert_eq!(refusal("p-edf", &set), None);
}

#[test]
fn cpus_of_a_task_that_lends_them_may_not_change() {
    let mut set = shared_across(Protocol::Migratory);
    let all = Affinity::new("0-1".parse().unwrap()).unwrap();
    let change = |task| Action {
        at: AT(1),
        change: Change::SetAffinity(id(task), all),
    };
    set.actions = vec![change(0), change(1)];
    let (records, _) = simulate(&set, "strong-fp", options(50));
    let refused = |record: &Record| match &record.kind {
        RecordKind::Refused { action, reason } => Some((*action, reason.to_string())),
        _ => None,
    };
    let refused: Vec<(usize, String)> = records.iter().filter_map(refused).collect();
    let reason = "task `high` stays on its CPUs: mutexes change what CPUs jobs may use; their protocol `inheritance` does not";
    assert_eq!(refused, [(1, reason.to_owned())]);
}

#[test]
fn spinning_job_keeps_its_cpu_and_executes_nothing() {
    let mut set = shared_across(Protocol::Spin);
    // More urgent than `high`, and released on its CPU while that spins.
    let mut urgent = locking("urgent", 1, 3, vec![Phase::Run(NS(1))]);
    urgent.affinity = Affinity::pinned(CpuId::from_index(1));
    set.tasks.push(urgent);
    for policy in ["p-fp", "strong-fp", "weak-fp"] {
        let finish = |set: &TaskSet| {
            let (records, _) = simulate(set, policy, options(50));
            [0, 1, 2, 3].map(|task| finishes(&records, task))
        };
        assert_eq!(finish(&set), [[14], [6], [15], [7]], "{policy}");
        let mut suspended = set.clone();
        suspended.resources = resources(&[Protocol::NonPreemptive]);
        assert_eq!(finish(&suspended), [[14], [6], [15], [4]], "{policy}");
    }
    let (records, _) = simulate(&set, "p-fp", options(50));
    let of = |record: &Record| match record.kind {
        RecordKind::Spinning { job, .. } if job.task == id(1) => Some((record.at.as_ns(), "spins")),
        RecordKind::Locked { job, .. } if job.task == id(1) => Some((record.at.as_ns(), "locked")),
        RecordKind::Unlocked { job, .. } if job.task == id(1) => {
            Some((record.at.as_ns(), "unlocked"))
        }
        _ => None,
    };
    let found: Vec<_> = records.iter().filter_map(of).collect();
    assert_eq!(found, [(3, "spins"), (4, "locked"), (6, "unlocked")]);
}

#[test]
fn holder_that_is_not_preempted_waits_for_its_cpu_while_that_is_offline() {
    let mut set = shared_across(Protocol::Spin);
    let change = |at, change| Action { at: AT(at), change };
    let cpu = CpuId::from_index(0);
    set.actions = vec![
        change(1, Change::CpuOffline(cpu)),
        change(3, Change::CpuOnline(cpu)),
    ];
    for policy in ["p-fp", "strong-fp", "weak-fp"] {
        let (records, _) = simulate(&set, policy, options(50));
        let finish = [0, 1, 2].map(|task| finishes(&records, task));
        assert_eq!(finish, [[16], [8], [17]], "{policy}");
    }
}

#[test]
fn boosted_holder_comes_before_all_others_of_its_cpu() {
    let mut set = shared_across(Protocol::Fmlp);
    // More urgent than `high`, and released on its CPU while that waits.
    let mut urgent = locking("urgent", 1, 3, vec![Phase::Run(NS(1))]);
    urgent.affinity = Affinity::pinned(CpuId::from_index(1));
    set.tasks.push(urgent);
    for policy in ["p-fp", "strong-fp", "weak-fp"] {
        let (records, _) = simulate(&set, policy, options(50));
        let finish = [0, 1, 2, 3].map(|task| finishes(&records, task));
        assert_eq!(finish, [[14], [6], [15], [4]], "{policy}");
    }
    set.tasks[2].affinity = Affinity::new("0-1".parse().unwrap()).unwrap();
    let refusal = registry::find("strong-fp").unwrap().build(&set).err();
    assert_eq!(
        refusal.map(|error| error.to_string()).unwrap(),
        "strong-fp: jobs that hold `R0` come before others of their CPU (protocol \"fmlp+\"), and task `low` may use CPUs 0,1; \
         accepted are tasks that use it and are bound to one CPU, and other protocols"
    );
}

#[test]
fn of_boosted_jobs_the_one_that_requested_first_comes_first() {
    let section = |mutex, ns| [Phase::Lock(mutex), Phase::Run(NS(ns)), Phase::Unlock(mutex)];
    let mut tasks = vec![
        locking("holder", 1, 0, section(mutex(0), 3).to_vec()),
        locking("first", 2, 1, section(mutex(0), 2).to_vec()),
        locking("second", 1, 2, section(mutex(1), 4).to_vec()),
    ];
    for (task, cpu) in tasks.iter_mut().zip([1, 0, 0]) {
        task.affinity = Affinity::pinned(CpuId::from_index(cpu));
    }
    let mut set = TaskSet::new("boosted", 2, tasks);
    set.resources = resources(&[Protocol::Fmlp, Protocol::Fmlp]);
    for policy in ["p-fp", "p-edf"] {
        let (records, _) = simulate(&set, policy, options(50));
        // `second` runs from 2 on, and gives way from 3 to 5 to the one that requested at 1.
        let finish = [0, 1, 2].map(|task| finishes(&records, task));
        assert_eq!(finish, [[3], [5], [8]], "{policy}");
    }
}

#[test]
fn overheads_do_not_end_spinning() {
    let mut set = shared_across(Protocol::Spin);
    // Its release interrupts the CPU on which `high` spins.
    let mut urgent = locking("urgent", 1, 3, vec![Phase::Run(NS(1))]);
    urgent.affinity = Affinity::pinned(CpuId::from_index(1));
    set.tasks.push(urgent);
    let table = Overheads {
        release: LinearCost {
            base: NS(1),
            ..LinearCost::default()
        },
        ..Overheads::default()
    };
    let with = Options {
        overheads: Some(table),
        ..options(50)
    };
    let (records, _) = simulate(&set, "p-fp", with);
    let finish = |task| finishes(&records, task).len();
    assert_eq!([0, 1, 2, 3].map(finish), [1, 1, 1, 1]);
}
