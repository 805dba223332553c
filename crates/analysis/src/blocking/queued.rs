//! Blocking by mutexes with OMLP under policies that run the most urgent jobs that fit the affinities: jobs wait in a queue with a
//! place for each CPU, and a job that holds a mutex inherits.
//!
//! `docs/theory/blocking.md`, "Jobs that wait in a queue", has the bound and why tests may count it as computing.

use shiftwork_model::{Invariant, PolicyTraits, Protocol, ResourceId, Span, Task, TaskId, TaskSet};

use super::{Holding, holdings, locked, matters, sum};

/// For how long a job of each task may wait for mutexes while no more urgent jobs keep it from the CPUs.
///
/// `None` where no bound is known: unless the policy has the strong invariant, all mutexes that matter have OMLP and are not nested,
/// and the tasks that use one have the same affinity.
pub(super) fn blocking(set: &TaskSet, policy: &PolicyTraits) -> Option<Vec<Span>> {
    let all = || (0..set.resources.len()).map(ResourceId::from_index);
    let counts: Vec<bool> = all().map(|id| matters(set, id)).collect();
    let is_bounded = |id: ResourceId| {
        let mut users = set.tasks.iter().filter(|task| task.locks_one(id));
        let first = users.next().map(|task| &task.affinity);
        let is_queued = set.resources[id.index()].protocol == Protocol::Omlp;
        is_queued && users.all(|task| first == Some(&task.affinity))
    };
    let mut nested = set.nested_locks().into_iter();
    if policy.invariant != Invariant::Strong
        || all().any(|id| counts[id.index()] && !is_bounded(id))
        || nested.any(|it| counts[it.held.index()] && counts[it.locked.index()])
    {
        return None;
    }
    let all_of = |task| holdings(task, &counts, |_, _| Span::ZERO);
    let held: Vec<Vec<Holding>> = set.tasks.iter().map(all_of).collect::<Option<_>>()?;
    let longest = |task: TaskId, id: ResourceId| {
        let sections = held[task.index()].iter();
        let sections = sections.filter(|it| it.resource == id);
        sections.map(|it| it.to.saturating_sub(it.from)).max()
    };
    let wait = |task: TaskId, of: &Task, id: ResourceId| {
        let others = set.iter().filter(|(other, _)| *other != task);
        let mut others: Vec<Span> = others.filter_map(|(other, _)| longest(other, id)).collect();
        others.sort_unstable_by(|a, b| b.cmp(a));
        let cpus = of.affinity.cpus().len();
        // If no more than it can be outside of the queue, the first place that becomes free is its.
        let passed = if others.len() <= cpus { 0 } else { cpus - 1 };
        sum(others
            .iter()
            .take(passed)
            .chain(others.iter().take(cpus))
            .copied())
    };
    let waits = |(id, task): (TaskId, &Task)| {
        let requests = locked(task).filter(|resource| counts[resource.index()]);
        sum(requests.map(|resource| wait(id, task, resource)))
    };
    Some(set.iter().map(waits).collect())
}
