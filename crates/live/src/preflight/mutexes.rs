//! Checks of tasks that lock mutexes.

use shiftwork_kernel_core::{CoreMutexes, MUTEXES_MAX, UNLOCKS_MAX};
use shiftwork_machine::{Mutexes, may_be_throttled};
use shiftwork_model::{Change, Phase, Protocol, ResourceId, Span, Task, TaskId, TaskSet};

use super::{THROTTLED_MAX, changes, most_at_once};
use crate::{Backend, LiveError, Plan};

/// Checks that the machine has all mutexes that the tasks lock, and can do with them what the tasks do.
///
/// # Errors
/// The first obstacle.
pub(super) fn check(plan: &Plan<'_>, backend: &Backend) -> Result<(), LiveError> {
    let is_fifo = matches!(backend, Backend::Fifo(..));
    for (index, resource) in plan.set.resources.iter().enumerate() {
        let is_used = plan
            .set
            .tasks
            .iter()
            .any(|task| task.locks_one(ResourceId::from_index(index)));
        let moves = plan.set.served_on(ResourceId::from_index(index)).is_some();
        if is_used && (moves || resource.protocol.lends_cpus()) && !is_fifo {
            let other = if moves {
                Protocol::Mpcp
            } else {
                Protocol::Inheritance
            };
            return Err(LiveError::TaskSet(format!(
                "resource `{}`: sched_ext runs a thread only on the CPUs of its own task, and the holder of this mutex may need \
                 others; use --machine fifo, protocol \"{}\", or `simulate`",
                resource.name,
                other.name()
            )));
        }
        let in_kernel = CoreMutexes::number_of(resource.protocol).is_some();
        if is_used && !in_kernel && matches!(backend, Backend::Kernel) {
            return Err(LiveError::TaskSet(format!(
                "resource `{}`: the scheduler in the kernel does not have the protocol \"{}\"; use --machine agent, --machine \
                 fifo, or `simulate`",
                resource.name,
                resource.protocol.name()
            )));
        }
        if is_used && index >= MUTEXES_MAX {
            return Err(LiveError::TaskSet(format!(
                "has {} resources, and a live run takes at most {MUTEXES_MAX}",
                plan.set.resources.len()
            )));
        }
    }
    plan.set
        .iter()
        .filter(|(_, task)| task.locks())
        .try_for_each(|(id, task)| check_task(plan.set, id, task, is_fifo))?;
    check_actions(plan)
}

/// Checks that no action asks for other CPUs of a task that has to stay where it is.
fn check_actions(plan: &Plan<'_>) -> Result<(), LiveError> {
    let Some(mutexes) = Mutexes::new(plan.set, &plan.traits) else {
        return Ok(());
    };
    let mut tasks = plan
        .set
        .actions
        .iter()
        .filter_map(|action| match action.change {
            Change::SetAffinity(task, _) => Some(&plan.set.tasks[task.index()]),
            _ => None,
        });
    match tasks.find(|task| mutexes.fixes_cpus_of(task)) {
        None => Ok(()),
        Some(task) => Err(LiveError::TaskSet(format!(
            "task `{}`: gets other CPUs by an [[action]], and mutexes change what CPUs jobs may use; their protocol \
             \"inheritance\" does not",
            task.name
        ))),
    }
}

fn check_task(set: &TaskSet, id: TaskId, task: &Task, is_fifo: bool) -> Result<(), LiveError> {
    let refused = |what: String| Err(LiveError::TaskSet(format!("task `{}`: {what}", task.name)));
    if !task.command.is_empty() {
        return refused(String::from(
            "a program brings its own mutexes; leave `command` out for a thread that locks those of the file, or the locks",
        ));
    }
    if may_be_throttled(set, id) {
        return refused(format!(
            "executes for up to {} and may be throttled after less, with a mutex that others wait for; on-overrun = \
             \"continue\" lets it go on",
            task.longest_run()
        ));
    }
    let is_other = |change: &Change| matches!(change, Change::SetPriority(task, _) if *task == id);
    if changes(set, id) || set.actions.iter().any(|action| is_other(&action.change)) {
        return refused(String::from(
            "is changed by an [[action]], and in a live run tasks that lock mutexes stay as they are, but for the affinities \
             of those that are preempted with all of theirs",
        ));
    }
    let sleeps = task.phases().iter().filter_map(|phase| match phase {
        Phase::Sleep(span) => Some(*span),
        _ => None,
    });
    let asleep = sleeps.fold(Span::ZERO, |sum, span| sum + span);
    // Under SCHED_FIFO there is no such watchdog.
    if asleep > THROTTLED_MAX && !is_fifo {
        return refused(format!(
            "suspends itself for {asleep} in a job, and threads that wait for its mutexes meanwhile would trigger the sched_ext \
             watchdog; a live run takes at most {THROTTLED_MAX}"
        ));
    }
    let at_once = most_at_once(task, |phase| matches!(phase, Phase::Unlock(_)), 0);
    if at_once > UNLOCKS_MAX {
        return refused(format!(
            "unlocks {at_once} mutexes at once, and a live run takes at most {UNLOCKS_MAX}; let it run between"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use shiftwork_model::{Action, Affinity, CpuId, Instant, OnOverrun, Resource, Span, Work};

    use super::*;
    use crate::plan::Attention;

    /// One task that locks as many mutexes as are given, one in the other, after a change.
    fn refusal(count: usize, change: impl FnOnce(&mut TaskSet)) -> Option<String> {
        refusal_of(count, change, |_| Backend::Kernel)
    }

    fn refusal_of(
        count: usize,
        change: impl FnOnce(&mut TaskSet),
        backend: impl FnOnce(&TaskSet) -> Backend,
    ) -> Option<String> {
        let affinity = Affinity::pinned(CpuId::from_index(0));
        let mut task = Task::periodic("t", Span::from_ms(1), Span::from_ms(10), affinity);
        let all = (0..count).map(ResourceId::from_index);
        let locks = all.clone().map(Phase::Lock);
        let unlocks = all.rev().map(Phase::Unlock);
        let run = std::iter::once(Phase::Run(Span::from_us(1)));
        task.work = Work::Phases(locks.chain(run).chain(unlocks).collect());
        let mut set = TaskSet::new("s", 1, vec![task]);
        let resource = |index: usize| Resource {
            name: format!("r{index}"),
            protocol: Protocol::Inheritance,
        };
        set.resources = (0..count).map(resource).collect();
        change(&mut set);
        let plan = Plan {
            set: &set,
            traits: shiftwork_policy::registry::traits::STRONG,
            bound: vec![affinity],
            cpus: vec![CpuId::from_index(0)],
        };
        let error = check(&plan, &backend(&set)).err()?;
        Some(error.to_string())
    }

    #[test]
    fn what_a_live_run_takes_no_mutexes_of_is_named() {
        assert_eq!(refusal(4, |_| {}), None);
        let begins = |refusal: Option<String>, with: &str| {
            assert!(
                refusal.as_ref().is_some_and(|it| it.contains(with)),
                "{refusal:?}"
            );
        };
        begins(refusal(5, |_| {}), "task `t`: unlocks 5 mutexes at once");
        let lends = refusal(1, |set| set.resources[0].protocol = Protocol::Migratory);
        begins(lends, "resource `r0`: sched_ext runs a thread only on");
        let boosts = |protocol| move |set: &mut TaskSet| set.resources[0].protocol = protocol;
        for protocol in [Protocol::Fmlp, Protocol::Mpcp, Protocol::Omlp] {
            let with = format!(
                "resource `r0`: the scheduler in the kernel does not have the protocol \"{}\"",
                protocol.name()
            );
            begins(refusal(1, boosts(protocol)), &with);
        }
        let program = refusal(1, |set| set.tasks[0].command = vec!["sleep".to_owned()]);
        begins(program, "task `t`: a program brings its own");
        let throttled = refusal(1, |set| {
            set.tasks[0].cost = Span::from_ns(1);
            set.tasks[0].on_overrun = OnOverrun::Throttle;
        });
        begins(throttled, "task `t`: executes for up to 1us and may be");
        let id = TaskId::from_index(0);
        let moves = || Change::SetAffinity(id, Affinity::pinned(CpuId::from_index(0)));
        let act = |set: &mut TaskSet, change| {
            let at = Instant::from_ns(1);
            set.actions.push(Action { at, change });
        };
        for change in [
            Change::Leave(id),
            Change::SetPriority(id, shiftwork_model::Priority::MOST_URGENT),
        ] {
            let changed = refusal(1, |set| act(set, change));
            begins(changed, "task `t`: is changed by an [[action]]");
        }
        assert_eq!(refusal(1, |set| act(set, moves())), None);
        let kept = refusal(2, |set| {
            set.resources[1].protocol = Protocol::Spin;
            act(set, moves());
        });
        begins(kept, "task `t`: gets other CPUs by an [[action]]");
        let slow = refusal(1, |set| {
            let sleep = Phase::Sleep(Span::from_s(26));
            if let Work::Phases(phases) = &mut set.tasks[0].work {
                phases.insert(1, sleep);
            }
        });
        begins(slow, "task `t`: suspends itself for 26s in a job");
        let policy = |set: &TaskSet| {
            let entry = shiftwork_policy::registry::find("strong-fp").unwrap();
            entry.build(set).unwrap()
        };
        let agent = |set: &TaskSet| Backend::Agent(policy(set), Attention::Shared);
        let fifo = |set: &TaskSet| Backend::Fifo(policy(set), Attention::Shared);
        let lend = |set: &mut TaskSet| set.resources[0].protocol = Protocol::Migratory;
        begins(
            refusal_of(1, lend, agent),
            "resource `r0`: sched_ext runs a thread only on",
        );
        assert_eq!(refusal_of(1, lend, fifo), None);
        let serve = |cpu| {
            let protocol = Protocol::Dpcp(CpuId::from_index(cpu));
            move |set: &mut TaskSet| set.resources[0].protocol = protocol
        };
        begins(
            refusal_of(1, serve(1), agent),
            "others; use --machine fifo, protocol \"mpcp\", or",
        );
        assert_eq!(refusal_of(1, serve(1), fifo), None);
        // That of the task itself.
        assert_eq!(refusal_of(1, serve(0), agent), None);
        begins(refusal(1, serve(0)), "the protocol \"dpcp\"");
        for protocol in [Protocol::Fmlp, Protocol::Mpcp, Protocol::Omlp] {
            assert_eq!(refusal_of(1, boosts(protocol), agent), None);
            assert_eq!(refusal_of(1, boosts(protocol), fifo), None);
        }
        assert_eq!(refusal_of(4, |_| {}, agent), None);
        let many = refusal(4, |set| {
            let unused = set.resources[0].clone();
            set.resources.resize(300, unused);
            set.tasks[0].work = Work::Phases(vec![
                Phase::Lock(ResourceId::from_index(280)),
                Phase::Unlock(ResourceId::from_index(280)),
            ]);
        });
        begins(many, "has 300 resources");
    }
}
