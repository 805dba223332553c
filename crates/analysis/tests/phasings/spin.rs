//! Jobs that spin for mutexes across CPUs, or hold some that forbid preemption.

use shiftwork_model::{CpuId, Protocol, ResourceId, TaskSet};

use crate::{Kind, no_phasing_refutes_what_is_shown, sections};

/// How long a request of a job of the task spins at most: the longest section for each other CPU.
fn spin(set: &TaskSet, task: usize, mutex: usize) -> u64 {
    let cpu = set.tasks[task].only_cpu().unwrap();
    if set.resources[mutex].protocol != Protocol::Spin {
        return 0;
    }
    let on = |cpu: usize| {
        let tasks = set
            .tasks
            .iter()
            .filter(|it| it.only_cpu() == CpuId::new(cpu));
        let sections = tasks.flat_map(sections).filter(|it| it.0 == Some(mutex));
        sections.map(|(_, length)| length).max().unwrap_or(0)
    };
    (0..set.platform.cpus)
        .filter(|&it| it != cpu.index())
        .map(on)
        .sum()
}

/// What is added to the cost of each task: its own spinning, and the longest time without a gap in which a less urgent job of
/// its CPU spins or holds a mutex that keeps it from the CPU. Of these only that is as if it were suspended, by priorities.
fn added(set: &TaskSet, levels: &[u64], is_edf: bool) -> Option<Vec<[u64; 2]>> {
    let users = |mutex: usize| {
        let id = ResourceId::from_index(mutex);
        (0..set.tasks.len()).filter(move |&task| set.tasks[task].locks_one(id))
    };
    let blocks = |mutex: usize, level: u64| match set.resources[mutex].protocol {
        Protocol::Ceiling => users(mutex).count() > 1 && users(mutex).any(|it| levels[it] <= level),
        _ => true,
    };
    let of = |(task, &level): (usize, &u64)| {
        let cpu = set.tasks[task].only_cpu();
        let own = sections(&set.tasks[task]).into_iter().filter_map(|it| it.0);
        let own: u64 = own.map(|mutex| spin(set, task, mutex)).sum();
        let low = (0..set.tasks.len())
            .filter(|&it| levels[it] > level && set.tasks[it].only_cpu() == cpu);
        let longest = low.map(|low| {
            let (mut longest, mut now) = (0, 0);
            for (mutex, length) in sections(&set.tasks[low]) {
                let is_blocking = mutex.is_some_and(|mutex| blocks(mutex, level));
                let more = length + mutex.map_or(0, |mutex| spin(set, low, mutex));
                now = if is_blocking { now + more } else { 0 };
                longest = longest.max(now);
            }
            longest
        });
        let low = longest.max().unwrap_or(0);
        [own + low, if is_edf { 0 } else { low }]
    };
    Some(levels.iter().enumerate().map(of).collect())
}

#[test]
fn no_phasing_refutes_what_is_shown_of_spinning() {
    no_phasing_refutes_what_is_shown(&Kind {
        across: Protocol::Spin,
        local: [Protocol::NonPreemptive, Protocol::Ceiling],
        takes: |_| true,
        policies: &["p-fp", "p-edf"],
        waits: spin,
        added,
    });
}
