//! Tasks that lock mutexes.

use shiftwork_analysis::affinity::Feasible;
use shiftwork_analysis::verdicts::{Answer, analyse};
use shiftwork_model::{
    Affinity, Arrival, CpuId, OnOverrun, Phase, Priority, Protocol, RandomStream, Resource,
    ResourceId, Span, Task, TaskSet, Work,
};
use shiftwork_policy::registry;

use crate::{STEPS, Wait, affinity, candidate, check_all, counts_as_computing, longest};

const NS: fn(u64) -> Span = Span::from_ns;

/// Up to five tasks on up to three CPUs, of which some lock mutexes, in the order of their numbers, nested or one after
/// the other. In most sets only tasks of one CPU share any.
pub(crate) fn random(stream: &mut RandomStream) -> TaskSet {
    let cpus = 1 + stream.below(3) as usize;
    let count = 2 + stream.below(4);
    let nested = stream.below(2) == 0;
    let is_apart = stream.below(4) > 0;
    let mutexes = 1 + stream.below(2);
    let task = |place: u64| {
        let period = [8, 10, 12, 20, 30][stream.below(5) as usize] * 10;
        let cost = 3 + stream.below(period / 3);
        let locks = stream.below(4) > 0;
        let affinity = match locks && is_apart {
            true => Affinity::pinned(CpuId::from_index(0)),
            false => affinity(stream, cpus, nested),
        };
        let (cost, period) = (NS(cost), NS(period));
        let mut task = Task::periodic(&format!("t{place}"), cost, period, affinity);
        task.offset = NS(stream.below(period.as_ns()));
        task.deadline = NS(match stream.below(4) {
            0 => (cost.as_ns() + stream.below(period.as_ns())).min(period.as_ns()),
            1 => period.as_ns() + stream.below(2 * period.as_ns()),
            _ => period.as_ns(),
        });
        task.priority = Priority::new(1 + stream.below(4) as u32);
        task.on_overrun = OnOverrun::Continue;
        if stream.below(2) == 0 {
            task.arrival = Arrival::Sporadic;
        }
        if locks {
            task.work = Work::Phases(phases(stream, cost.as_ns(), mutexes));
        }
        task
    };
    let tasks: Vec<Task> = (0..count).map(task).collect();
    let mut set = TaskSet::new("", cpus, tasks);
    let protocols = match stream.below(11) {
        10 => [Protocol::Spin; 2],
        9 => [Protocol::NonPreemptive; 2],
        8 => [Protocol::Migratory, Protocol::Migratory],
        7 => [Protocol::Omlp; 2],
        0 => [Protocol::None, Protocol::Inheritance],
        1 | 2 => [Protocol::Ceiling, Protocol::Inheritance],
        3..=5 => [Protocol::Ceiling; 2],
        _ => [Protocol::Inheritance; 2],
    };
    let resource = |(index, protocol)| Resource {
        name: format!("r{index}"),
        protocol,
    };
    set.resources = protocols.into_iter().enumerate().map(resource).collect();
    set
}

/// Runs for the cost in all, and locks and unlocks between.
fn phases(stream: &mut RandomStream, cost: u64, mutexes: u64) -> Vec<Phase> {
    let mut phases = Vec::new();
    let mut left = cost;
    let mut held: Vec<usize> = Vec::new();
    while left > 0 {
        let run = 1 + stream.below(left);
        left -= run;
        let lowest = held.iter().max().map_or(0, |it| *it as u64 + 1);
        if lowest < mutexes && stream.below(3) > 0 {
            let resource = (lowest + stream.below(mutexes - lowest)) as usize;
            held.push(resource);
            phases.push(Phase::Lock(ResourceId::from_index(resource)));
        }
        phases.push(Phase::Run(NS(run)));
        while !held.is_empty() && (left == 0 || stream.below(2) == 0) {
            // In reverse, but for some.
            let last = held.len() - 1;
            let at = stream.below(8 * held.len() as u64) as usize;
            let resource = held.remove(at.min(last));
            phases.push(Phase::Unlock(ResourceId::from_index(resource)));
        }
    }
    phases
}

#[test]
fn nothing_that_is_shown_of_tasks_that_lock_mutexes_is_wrong() {
    // A CPU that runs no jobs takes away those on which tasks share mutexes here.
    check_all(Wait::Mutexes, |policy| {
        counts_as_computing(policy) && policy.dedicated_cpu().is_none()
    });
}

/// `low` has a section of 4, which keeps `high` from its deadline by 1 if it begins just before.
fn blocked(protocol: Protocol, section: u64) -> TaskSet {
    let all = Affinity::pinned(CpuId::from_index(0));
    let (lock, unlock) = (
        Phase::Lock(ResourceId::from_index(0)),
        Phase::Unlock(ResourceId::from_index(0)),
    );
    let task = |name: &str, (cost, period, deadline): (u64, u64, u64), offset, phases| {
        let mut task = Task::periodic(name, NS(cost), NS(period), all);
        task.deadline = NS(deadline);
        task.offset = NS(offset);
        task.work = Work::Phases(phases);
        task
    };
    let run = |ns| Phase::Run(NS(ns));
    let low = vec![lock, run(section), unlock];
    let tasks = vec![
        task("high", (2, 20, 5), 1, vec![run(1), lock, run(1), unlock]),
        task("middle", (9, 100, 60), 1, vec![run(9)]),
        task("low", (section, 100, 100), 0, low),
    ];
    let mut set = TaskSet::new("", 1, tasks);
    set.resources = vec![Resource {
        name: "bus".into(),
        protocol,
    }];
    set
}

#[test]
fn section_of_less_urgent_task_counts_and_only_under_a_protocol() {
    let answer = |policy: &str, set: &TaskSet| {
        let entry = registry::find(policy).unwrap();
        let analysis = analyse(set, &[candidate(set, entry)], STEPS);
        let longest = longest(set, entry, 1).unwrap()[0];
        (analysis.policies[0].hard.answer, longest)
    };
    for policy in ["p-fp", "p-edf", "strong-edf"] {
        for protocol in [Protocol::Inheritance, Protocol::Ceiling] {
            // One unit of the section is over when `high` is released.
            let just_enough = answer(policy, &blocked(protocol, 3));
            assert_eq!(just_enough, (Answer::Schedulable, 4), "{policy}");
            let too_long = answer(policy, &blocked(protocol, 5));
            assert_eq!(too_long, (Answer::Unknown, 6), "{policy}");
        }
        let unbounded = answer(policy, &blocked(Protocol::None, 3));
        assert_eq!(unbounded.0, Answer::Unknown, "{policy}");
        let inverted = if policy == "p-fp" { 13 } else { unbounded.1 };
        assert_eq!(unbounded.1, inverted, "{policy}");
    }
}

#[test]
fn demand_on_own_cpus_refutes_nothing_where_jobs_may_use_others() {
    let with = |protocol| {
        let mut set = blocked(protocol, 60);
        set.platform = shiftwork_model::Platform::uniform(2);
        // Sections of `middle` fill a CPU that `low` needs, too.
        set.tasks[1].cost = NS(50);
        let lock = Phase::Lock(ResourceId::from_index(0));
        let unlock = Phase::Unlock(ResourceId::from_index(0));
        set.tasks[1].work = Work::Phases(vec![lock, Phase::Run(NS(50)), unlock]);
        set.tasks[0].affinity = Affinity::pinned(CpuId::from_index(1));
        let entry = registry::find("strong-fp").unwrap();
        let analysis = analyse(&set, &[candidate(&set, entry)], STEPS);
        (
            analysis.feasibility.verdict,
            analysis.policies[0].hard.answer,
        )
    };
    assert_eq!(
        with(Protocol::Inheritance),
        (Feasible::No, Answer::Unschedulable)
    );
    assert_eq!(
        with(Protocol::Migratory),
        (Feasible::Unknown, Answer::Unknown)
    );
}
