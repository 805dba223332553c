//! Checks before anything is loaded.

use shiftwork_kernel_core::{CPUS_MAX, TASKS_MAX};
use shiftwork_model::{CpuId, CpuSet, OnOverrun, Span};

use crate::fifo;
use crate::host::{self, System, kernel};
use crate::{Attention, Backend, LiveError, Options, Plan};

/// Longest period of a throttled task: a task that waits longer would trigger the sched_ext watchdog, be it for
/// its own period or for those in which it makes good what it has overdrawn.
pub(crate) const THROTTLED_MAX: Span = Span::from_s(25);

/// Facts about the machine that a run needs.
pub(crate) struct Host {
    /// The CPUs that are online and outside the platform.
    pub(crate) elsewhere: CpuSet,
    /// The CPU of an agent; one of the platform if there is no other.
    pub(crate) agent_cpu: CpuId,
    /// Whether BPF has timers.
    pub(crate) has_timers: bool,
    /// Facts that affect the results, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// Refuses what cannot run, and says what would be accepted.
///
/// # Errors
/// The first obstacle.
pub(crate) fn check(
    plan: &Plan<'_>,
    options: &Options,
    backend: &Backend,
) -> Result<Host, LiveError> {
    let system = System::this();
    let online = check_cpus(plan, &system)?;
    let elsewhere = online - plan.cpus.iter().copied().collect();
    check_tasks(plan)?;
    if !matches!(backend, Backend::Kernel) {
        check_agent(options, &elsewhere, &online)?;
    }
    let mut notes = Vec::new();
    match backend {
        Backend::Kernel | Backend::Agent(..) => check_sched_ext(options, &system)?,
        Backend::Fifo(..) => {
            if let Some(obstacle) = host::obstacle_to_fifo(&system) {
                return Err(obstacle.into());
            }
            notes.extend(fifo::notes());
        }
    }
    let has_timers = !kernel::is_real_time(&system);
    if let (Backend::Agent(_, Attention::Dedicated), false) = (backend, has_timers) {
        notes.push(String::from(
            "a PREEMPT_RT kernel interrupts other CPUs by a thread, which a polling agent would keep from running: \
             the agent sleeps between decisions, as with --agent shared",
        ));
    }
    let agent_cpu = elsewhere.lowest().or(online.lowest());
    Ok(Host {
        elsewhere,
        agent_cpu: agent_cpu.unwrap_or(CpuId::from_index(0)),
        has_timers,
        notes,
    })
}

/// The checks for a machine without a plan and without an end, on these CPUs. Whether BPF has timers.
///
/// # Errors
/// The first obstacle.
pub(crate) fn check_standing(cpus: &CpuSet, system: &System) -> Result<bool, LiveError> {
    check_standing_cpus(cpus, system)?;
    check_kernel(system)?;
    Ok(!kernel::is_real_time(system))
}

/// Checks that tasks can have these CPUs, online or not.
///
/// # Errors
/// The first that they cannot have, and those that they can.
pub(crate) fn check_standing_cpus(cpus: &CpuSet, system: &System) -> Result<(), LiveError> {
    let there = system.cpus("/sys/devices/system/cpu/present");
    let missing = *cpus - there.unwrap_or(*cpus);
    if let Some(cpu) = missing.lowest().or_else(|| beyond_the_core(cpus.iter())) {
        return Err(LiveError::Machine {
            what: format!("the scheduler in the kernel cannot use CPU {cpu}"),
            remedy: format!(
                "choose CPUs among {}",
                there.unwrap_or(*cpus) & CpuSet::first(CPUS_MAX)
            ),
        });
    }
    if cpus.is_empty() {
        return Err(LiveError::Machine {
            what: String::from("there is no CPU to schedule tasks on"),
            remedy: String::from("choose one at least"),
        });
    }
    Ok(())
}

/// The first of these CPUs that is beyond the core's limit.
fn beyond_the_core(mut cpus: impl Iterator<Item = CpuId>) -> Option<CpuId> {
    cpus.find(|cpu| cpu.index() >= CPUS_MAX)
}

fn check_kernel(system: &System) -> Result<(), LiveError> {
    match host::obstacles(system).into_iter().next() {
        Some(obstacle) => Err(obstacle.into()),
        None => Ok(()),
    }
}

fn check_sched_ext(options: &Options, system: &System) -> Result<(), LiveError> {
    check_kernel(system)?;
    if let Some(folder) = &options.pin
        && let Some(obstacle) = host::obstacle_to_pinning(system, &folder.to_string_lossy())
    {
        return Err(obstacle.into());
    }
    Ok(())
}

fn check_agent(options: &Options, elsewhere: &CpuSet, online: &CpuSet) -> Result<(), LiveError> {
    if options.pin.is_some() {
        return Err(LiveError::Machine {
            what: String::from(
                "cannot pin: the scheduling agent runs in this process and ends with it",
            ),
            remedy: String::from("only `--machine kernel` can be pinned"),
        });
    }
    if elsewhere.is_empty() {
        return Err(LiveError::TaskSet(format!(
            "the platform takes all CPUs of this machine, {online}, and an agent needs one of its own; \
             take fewer in [platform] and name them with --on-cpus, or use --machine kernel"
        )));
    }
    Ok(())
}

fn check_cpus(plan: &Plan<'_>, system: &System) -> Result<CpuSet, LiveError> {
    let wanted: CpuSet = plan.cpus.iter().copied().collect();
    let online = system.online().unwrap_or(wanted);
    if wanted.len() < plan.cpus.len() {
        return Err(LiveError::TaskSet(String::from(
            "two CPUs of the file are the same CPU of the machine; name each once",
        )));
    }
    if let Some(cpu) = beyond_the_core(plan.cpus.iter().copied()) {
        return Err(LiveError::TaskSet(format!(
            "CPU {cpu} is beyond what the scheduler in the kernel can use, which is 0-{}; name others \
             with --on-cpus",
            CPUS_MAX - 1
        )));
    }
    let missing = wanted - online;
    if !missing.is_empty() {
        return Err(LiveError::TaskSet(format!(
            "the platform is {wanted} and this machine has no CPUs {missing} online, only {online}; \
             name the CPUs to use with --on-cpus, or take fewer in [platform]"
        )));
    }
    Ok(online)
}

fn check_tasks(plan: &Plan<'_>) -> Result<(), LiveError> {
    let refused = |what: String| Err(LiveError::TaskSet(what));
    if plan.set.tasks.len() > TASKS_MAX {
        return refused(format!(
            "has {} tasks, and the scheduler in the kernel takes at most {TASKS_MAX}",
            plan.set.tasks.len()
        ));
    }
    for task in &plan.set.tasks {
        let name = &task.name;
        if !task.jitter.is_zero() {
            return refused(format!(
                "task `{name}`: a live run takes no `jitter`, and here it is {}; it releases jobs when they arrive: leave \
                 `jitter` out, or use `simulate`",
                task.jitter
            ));
        }
        if task.on_overrun == OnOverrun::Throttle && task.period > THROTTLED_MAX {
            return refused(format!(
                "task `{name}`: a task that is throttled for its period of {} would trigger the sched_ext watchdog; \
                 a live run takes at most {THROTTLED_MAX}, or on-overrun = \"continue\"",
                task.period
            ));
        }
        if task.trigger().is_some() {
            return refused(format!(
                "task `{name}` is triggered by others, and live runs release jobs by time; `simulate` has triggers"
            ));
        }
        if task.locks() {
            return refused(format!(
                "task `{name}` locks mutexes, and live runs have none; `simulate` has them, and a program of its own by \
                 `command` brings its own"
            ));
        }
        if !task.command.is_empty() && task.deadline > task.period {
            return refused(format!(
                "task `{name}`: the deadline of {} is longer than the period of {}, and the server of \
                 a program allows at most the period",
                task.deadline, task.period
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{Affinity, Arrival, Join, Task, TaskId, TaskSet, Trigger};
    use shiftwork_policy::registry;

    #[test]
    fn tasks_with_jitter_or_triggers_are_refused_by_name() {
        let affinity = Affinity::pinned(CpuId::from_index(0));
        let mut task = Task::periodic("a", Span::from_ms(1), Span::from_ms(10), affinity);
        let check = |task: &Task| {
            let set = TaskSet::new("s", 1, vec![task.clone()]);
            let traits = registry::find("strong-edf").map(|entry| entry.traits);
            check_tasks(&Plan {
                set: &set,
                traits: traits.expect("the registry has it"),
                bound: vec![affinity],
                cpus: vec![CpuId::from_index(0)],
            })
        };
        assert!(check(&task).is_ok());
        task.jitter = Span::from_ms(2);
        let refusal = check(&task).map_err(|error| error.to_string());
        assert_eq!(
            refusal,
            Err(String::from(
                "task `a`: a live run takes no `jitter`, and here it is 2ms; it releases jobs when they arrive: leave \
                 `jitter` out, or use `simulate`"
            ))
        );
        task.jitter = Span::ZERO;
        task.arrival = Arrival::Triggered(Trigger {
            sources: vec![TaskId::from_index(1)],
            join: Join::Any,
            queue: None,
        });
        let refusal = check(&task).map_err(|error| error.to_string());
        assert_eq!(
            refusal,
            Err(String::from(
                "task `a` is triggered by others, and live runs release jobs by time; `simulate` has triggers"
            ))
        );
    }
}
