//! Jobs that are boosted while they hold mutexes with FMLP+, of several CPUs or of one.

use std::collections::BTreeSet;

use shiftwork_analysis::stand_ins::StandIns;
use shiftwork_model::{Affinity, CpuId, Phase, Protocol, ResourceId, Span, TaskSet, Work};
use shiftwork_policy::registry;

use crate::{Kind, no_phasing_refutes_what_is_shown, pair, sections};

fn cpu(set: &TaskSet, task: usize) -> CpuId {
    set.tasks[task].only_cpu().unwrap()
}

/// The CPUs, other than its own, of tasks that use the mutex with this one.
fn elsewhere(set: &TaskSet, task: usize, mutex: usize) -> BTreeSet<CpuId> {
    let id = ResourceId::from_index(mutex);
    let users = (0..set.tasks.len()).filter(|&it| set.tasks[it].locks_one(id));
    let cpus = users.map(|user| cpu(set, user));
    cpus.filter(|&it| it != cpu(set, task)).collect()
}

/// The longest section of the task, of mutexes that tasks on other CPUs use or of those that none does.
fn longest(set: &TaskSet, task: usize, is_across: bool) -> u64 {
    let all = sections(&set.tasks[task]).into_iter();
    let some = all.filter(|(mutex, _)| {
        mutex.is_some_and(|mutex| elsewhere(set, task, mutex).is_empty() != is_across)
    });
    some.map(|(_, length)| length).max().unwrap_or(0)
}

/// The most that jobs of these tasks, all of one CPU, have requested at an instant and not executed: one section each, one of them
/// perhaps of a mutex of that CPU.
fn pending(set: &TaskSet, tasks: &[usize]) -> u64 {
    let with = |local: Option<usize>| {
        let of = |&task: &usize| longest(set, task, local != Some(task));
        tasks.iter().map(of).sum()
    };
    let local = tasks.iter().map(|&task| with(Some(task)));
    local.chain([with(None)]).max().unwrap_or(0)
}

/// The tasks of the CPU that are not this one.
fn others(set: &TaskSet, on: CpuId, task: usize) -> Vec<usize> {
    let all = 0..set.tasks.len();
    all.filter(|&it| it != task && cpu(set, it) == on).collect()
}

/// How long a request of a job of the task waits at most, and its section takes longer than it is: for one section of each other
/// task of its CPU and those of the users.
fn waits(set: &TaskSet, task: usize, mutex: usize) -> u64 {
    let mut cpus = elsewhere(set, task, mutex);
    cpus.insert(cpu(set, task));
    let ahead = cpus.into_iter().flat_map(|on| others(set, on, task));
    ahead.map(|it| longest(set, it, true)).sum()
}

/// For each request of a remote mutex the tasks of the CPUs of its users execute a section each, and less urgent ones of its own CPU
/// do, once more when a job arrives.
fn added(set: &TaskSet, levels: &[u64], is_edf: bool) -> Option<Vec<[u64; 2]>> {
    let is_suspension = !is_edf || set.tasks.iter().all(|it| it.deadline <= it.period);
    let of = |task: usize| {
        let beside = others(set, cpu(set, task), task);
        let is_low = |it: &usize| levels[*it] > levels[task];
        let low: Vec<usize> = beside.iter().copied().filter(is_low).collect();
        let low = pending(set, &low);
        let again = if is_edf { pending(set, &beside) } else { low };
        let requests = sections(&set.tasks[task]).into_iter();
        let requests = requests.filter_map(|(mutex, _)| {
            let cpus = elsewhere(set, task, mutex?);
            let there = cpus.iter().flat_map(|&on| others(set, on, task));
            let there: u64 = there.map(|it| longest(set, it, true)).sum();
            (!cpus.is_empty()).then_some(there + again)
        });
        let all = low + requests.sum::<u64>();
        [all, if is_suspension { all } else { 0 }]
    };
    Some((0..set.tasks.len()).map(of).collect())
}

#[test]
fn no_phasing_refutes_what_is_shown_of_boosting() {
    no_phasing_refutes_what_is_shown(&Kind {
        across: Protocol::Fmlp,
        local: [Protocol::Fmlp; 2],
        takes: |_| true,
        policies: &["p-fp", "p-edf"],
        waits,
        added,
    });
}

#[test]
fn nothing_is_shown_where_the_proof_does_not_hold() {
    let traits = registry::find("p-fp").unwrap().traits;
    let is_known = |set: &TaskSet| matches!(StandIns::of(set, &traits), StandIns::Other(_));
    let run = |ns| Phase::Run(Span::from_ns(ns));
    let [a, b] = [0, 1].map(ResourceId::from_index);
    let after = |first, second| {
        [
            Phase::Lock(a),
            run(1),
            Phase::Unlock(a),
            first,
            Phase::Lock(b),
            second,
            Phase::Unlock(b),
        ]
    };
    let set = pair(Protocol::Fmlp, &after(run(1), run(2)));
    assert!(is_known(&set));
    let nested = [
        Phase::Lock(a),
        run(1),
        Phase::Lock(b),
        run(3),
        Phase::Unlock(b),
        Phase::Unlock(a),
    ];
    assert!(!is_known(&pair(Protocol::Fmlp, &nested)));
    // What is executed for no time does not come after a lock.
    assert!(!is_known(&pair(Protocol::Fmlp, &after(run(3), run(0)))));
    let mut unbound = set.clone();
    unbound.tasks[1].affinity = Affinity::new("0-1".parse().unwrap()).unwrap();
    assert!(!is_known(&unbound));
    for protocol in [Protocol::Inheritance, Protocol::Spin] {
        let mut other = set.clone();
        other.resources[1].protocol = protocol;
        assert!(!is_known(&other), "{protocol:?}");
    }
    // Of a mutex that a single task uses the protocol matters if its holder is not preempted.
    for (protocol, may_be) in [(Protocol::Ceiling, true), (Protocol::NonPreemptive, false)] {
        let mut own = set.clone();
        own.resources[1].protocol = protocol;
        own.tasks[1].work = Work::Phases(vec![Phase::Lock(a), run(4), Phase::Unlock(a)]);
        assert_eq!(is_known(&own), may_be, "{protocol:?}");
    }
}
