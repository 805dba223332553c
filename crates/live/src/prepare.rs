//! What must be so before anything is loaded.

use shiftwork_kernel_core::{CPUS_MAX, TASKS_MAX};
use shiftwork_model::{CpuSet, OnOverrun, Span};

use crate::host::{self, System, kernel};
use crate::run::WAIT_MAX;
use crate::{LiveError, Options, Plan};

/// What a run needs to know of the machine.
pub(crate) struct Host {
    /// The CPUs that are online.
    pub(crate) online: CpuSet,
    /// Whether BPF may have timers.
    pub(crate) has_timers: bool,
}

/// Refuses what cannot work, with what would be accepted.
///
/// # Errors
/// The first thing that is in the way.
pub(crate) fn check(plan: &Plan<'_>, options: &Options) -> Result<Host, LiveError> {
    let system = System::this();
    let online = check_cpus(plan, &system)?;
    check_tasks(plan)?;
    if let Some(obstacle) = host::obstacles(&system).into_iter().next() {
        return Err(obstacle.into());
    }
    if let Some(folder) = &options.pin
        && let Some(obstacle) = host::obstacle_to_pinning(&system, &folder.to_string_lossy())
    {
        return Err(obstacle.into());
    }
    Ok(Host {
        online,
        has_timers: !kernel::is_real_time(&system),
    })
}

fn check_cpus(plan: &Plan<'_>, system: &System) -> Result<CpuSet, LiveError> {
    let wanted: CpuSet = plan.cpus.iter().copied().collect();
    let online = system.online().unwrap_or(wanted);
    if wanted.len() < plan.cpus.len() {
        return Err(LiveError::TaskSet(String::from(
            "two CPUs of the file are the same CPU of the machine; name each once",
        )));
    }
    if let Some(cpu) = plan.cpus.iter().find(|cpu| cpu.index() >= CPUS_MAX) {
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
    let longest = Span::from_ns(u64::try_from(WAIT_MAX.as_nanos()).unwrap_or(u64::MAX));
    for task in &plan.set.tasks {
        let name = &task.name;
        if task.on_overrun == OnOverrun::Throttle && task.period > longest {
            return refused(format!(
                "task `{name}`: a task that is throttled for its period of {} would look forgotten to \
                 the kernel's watchdog; a live run takes at most {longest}, or on-overrun = \"continue\"",
                task.period
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
