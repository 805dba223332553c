//! Mutexes with OMLP, in schedules that follow from its definition by hand.

use shiftwork_model::{Phase, Priority, Protocol, TaskSet, Work};
use shiftwork_trace::check;

use crate::common::{AT, NS, contract, finishes, options, simulate, task};
use crate::random::{mutex, resources};

/// Four tasks that may use these CPUs, the last of the most urgent priority, of which the first holds a mutex while the others request
/// it, in this order.
fn set(cpus: usize, protocol: Protocol) -> TaskSet {
    let [lock, unlock] = [Phase::Lock(mutex(0)), Phase::Unlock(mutex(0))];
    let tasks = [10, 2, 2, 2].into_iter().zip(0..).map(|(section, place)| {
        let mut task = task(cpus, &format!("t{place}"), 100, 1000);
        task.priority = Priority::new(4 - place);
        task.offset = NS(place.into());
        task.work = Work::Phases(vec![lock, Phase::Run(NS(section)), unlock]);
        task
    });
    let mut set = TaskSet::new("queues", cpus, tasks.collect());
    set.resources = resources(&[protocol]);
    set
}

/// When the first job of each task completes.
fn completions(cpus: usize, protocol: Protocol) -> Vec<u64> {
    let set = set(cpus, protocol);
    let entry = shiftwork_policy::registry::find("strong-fp").unwrap();
    let (records, _) = simulate(&set, entry.name, options(999));
    let found = check::check(&set, contract(entry, &set), AT(999), &records);
    assert_eq!(found, []);
    (0..4).map(|task| finishes(&records, task)[0]).collect()
}

#[test]
fn queue_has_a_place_for_each_cpu_and_the_most_urgent_job_outside_takes_the_next() {
    // One place: the most urgent of those that wait is next.
    assert_eq!(completions(1, Protocol::Omlp), [10, 16, 14, 12]);
    // The second has the other place; of the others, which are outside, the last is more urgent.
    assert_eq!(completions(2, Protocol::Omlp), [10, 12, 16, 14]);
    // There is none outside.
    assert_eq!(completions(4, Protocol::Omlp), [10, 12, 14, 16]);
    for cpus in [1, 2, 4] {
        let by_urgency = completions(cpus, Protocol::Inheritance);
        assert_eq!(by_urgency, [10, 16, 14, 12], "{cpus}");
    }
}
