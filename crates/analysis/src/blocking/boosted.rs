//! Blocking by mutexes with FMLP+, which jobs on different CPUs share and wait for suspended: their holders are boosted.
//!
//! `docs/theory/blocking.md`, "Jobs that are boosted", has the bounds and why tests may count them as computing.

use shiftwork_model::{CpuId, Protocol, ResourceId, Span, Task, TaskId, TaskSet};

use super::{Blocked, Holding, holdings, locked, matters, sum};

/// The longest sections of a task.
#[derive(Clone, Copy, Default)]
struct Longest {
    /// Of all its mutexes that boost.
    any: Span,
    /// Of those that a task on another CPU uses, too.
    across: Span,
}

/// What FMLP+ adds to the cost of each task, of these levels; `is_edf`: levels are relative deadlines, and later jobs of the others
/// may be less urgent than earlier ones.
///
/// `None` where no bound is known: if any mutex that matters has another protocol, one with this protocol is nested, or a task that
/// uses one is not bound to one CPU.
pub(super) fn blocking(set: &TaskSet, levels: &[u64], is_edf: bool) -> Option<Blocked> {
    let all = (0..set.resources.len()).map(ResourceId::from_index);
    let boosts = |id: ResourceId| set.resources[id.index()].protocol == Protocol::Fmlp;
    if all.clone().any(|id| matters(set, id) && !boosts(id)) {
        return None;
    }
    let mut nested = set.nested_locks().into_iter();
    if nested.any(|it| boosts(it.held) || boosts(it.locked)) {
        return None;
    }
    let boosting: Vec<bool> = all.map(boosts).collect();
    let uses_one = |task: &Task| locked(task).any(|id| boosting[id.index()]);
    let mut unbound = set.tasks.iter().filter(|task| task.only_cpu().is_none());
    if unbound.any(uses_one) {
        return None;
    }
    let longest = set.tasks.iter().map(|task| longest(set, task, &boosting));
    let longest: Vec<Longest> = longest.collect::<Option<_>>()?;
    // By CPU, what its tasks make a request of another CPU wait for.
    let of_cpus = (0..set.platform.cpus).map(|cpu| {
        let on = set.tasks.iter().zip(&longest);
        let on = on.filter(|(task, _)| task.only_cpu() == CpuId::new(cpu));
        sum(on.map(|(_, longest)| longest.across))
    });
    let of_cpus: Vec<Span> = of_cpus.collect();
    let of = |(id, task): (TaskId, &Task)| {
        let Some(cpu) = task.only_cpu() else {
            // It locks none, and may be on the CPU of any that do.
            return some_cpu(set, levels, &longest, levels[id.index()]);
        };
        let others = set.iter().zip(levels).zip(&longest);
        let others: Vec<(u64, Longest)> = others
            .filter(|(((other, it), _), _)| *other != id && it.only_cpu() == Some(cpu))
            .map(|((_, level), longest)| (*level, *longest))
            .collect();
        let low = others
            .iter()
            .filter(|(level, _)| *level > levels[id.index()]);
        let low = sections(low.map(|(_, longest)| *longest));
        let again = match is_edf {
            true => sections(others.iter().map(|(_, longest)| *longest)),
            false => low,
        };
        let requests = locked(task).filter(|id| boosting[id.index()]).map(|mutex| {
            let mut cpus: Vec<usize> = cpus_of_users(set, mutex).map(CpuId::index).collect();
            cpus.retain(|other| *other != cpu.index());
            cpus.sort_unstable();
            cpus.dedup();
            // Of a mutex of its own CPU it waits for none, and no job makes a request meanwhile.
            let again = (!cpus.is_empty()).then_some(again);
            sum(cpus.iter().map(|cpu| of_cpus[*cpu]).chain(again))
        });
        sum(requests.chain([low]))
    };
    // Under EDF the count is one of jobs whose predecessors are complete at their releases.
    let is_suspension = !is_edf || set.tasks.iter().all(|task| task.deadline <= task.period);
    Some(Blocked::new(set.iter().map(of).collect(), is_suspension))
}

/// The most that a task of this level without mutexes may be blocked for on any CPU that it may be bound to.
fn some_cpu(set: &TaskSet, levels: &[u64], longest: &[Longest], level: u64) -> Span {
    let on = (0..set.platform.cpus).map(|cpu| {
        let low = set.tasks.iter().zip(levels).zip(longest);
        let low = low.filter(|((task, of), _)| **of > level && task.only_cpu() == CpuId::new(cpu));
        sections(low.map(|(_, longest)| *longest))
    });
    on.max().unwrap_or_default()
}

/// The longest time for which jobs of these tasks of one CPU execute sections that they have requested by an instant: each one, and
/// only one of them a section of a mutex of that CPU alone.
fn sections(tasks: impl Iterator<Item = Longest> + Clone) -> Span {
    let across = sum(tasks.clone().map(|it| it.across));
    let more = tasks.map(|it| it.any.saturating_sub(it.across)).max();
    sum([across, more.unwrap_or_default()])
}

fn longest(set: &TaskSet, task: &Task, boosting: &[bool]) -> Option<Longest> {
    let mut longest = Longest::default();
    for Holding { resource, from, to } in holdings(task, boosting, |_, _| Span::ZERO)? {
        let length = to.saturating_sub(from);
        longest.any = longest.any.max(length);
        if cpus_of_users(set, resource).any(|cpu| Some(cpu) != task.only_cpu()) {
            longest.across = longest.across.max(length);
        }
    }
    Some(longest)
}

/// The CPUs of the tasks that use the mutex, each of which is bound to one.
fn cpus_of_users(set: &TaskSet, mutex: ResourceId) -> impl Iterator<Item = CpuId> {
    let users = set.tasks.iter().filter(move |task| task.locks_one(mutex));
    users.filter_map(Task::only_cpu)
}
