//! Checks before anything is loaded.

mod mutexes;

use shiftwork_kernel_core::{CPUS_MAX, SOURCES_MAX, TASKS_MAX};
use shiftwork_machine::may_be_throttled;
use shiftwork_model::{
    Arrival, Change, CpuId, CpuSet, Instant, Join, OnOverrun, Phase, Span, Task, TaskId, TaskSet,
};

use crate::fifo;
use crate::host::{self, System, kernel};
use crate::work::TRIGGERS;
use crate::{Attention, Backend, LiveError, Options, Plan};

/// Longest period of a throttled task: a task that waits longer would trigger the sched_ext watchdog, be it for
/// its own period or for those in which it makes good what it has overdrawn.
pub(crate) const THROTTLED_MAX: Span = Span::from_s(25);

/// The most triggers by one job: so many events of it find room on their way to an agent.
const TRIGGERS_OF_A_JOB: usize = 32;

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

impl Host {
    /// Whether the CPU of an agent is the only one outside the platform, so that the thread of the run has to use it, too.
    pub(crate) fn agent_shares_cpu(&self) -> bool {
        self.elsewhere.len() < 2
    }
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
    mutexes::check(plan, backend)?;
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
    let arrivals = arrivals(plan.set);
    for (id, task) in plan.set.iter() {
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
        check_triggers(plan.set, id, task, &arrivals)?;
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

/// Checks a task that is triggered by others, or triggers some.
fn check_triggers(
    set: &TaskSet,
    id: TaskId,
    task: &Task,
    arrivals: &[Arrivals],
) -> Result<(), LiveError> {
    let name = &task.name;
    let refused = |what: String| Err(LiveError::TaskSet(format!("task `{name}`: {what}")));
    let at_completion = set.triggered_at_completion(id).count();
    let is_trigger = |phase: &Phase| matches!(phase, Phase::Trigger(_));
    let at_once = most_at_once(task, is_trigger, at_completion);
    let trigger = task.trigger();
    if trigger.is_none() && at_completion == 0 && task.triggers().next().is_none() {
        return Ok(());
    }
    if !task.command.is_empty() {
        return refused(String::from(
            "a program wakes up by what it waits for itself; leave `command` out for a thread that is triggered or triggers \
             others, or the triggers",
        ));
    }
    if may_be_throttled(set, id) {
        return refused(format!(
            "executes for up to {} and may be throttled after less, and a live run throttles no task that is triggered or \
             triggers others; on-overrun = \"continue\" lets it go on",
            task.longest_run()
        ));
    }
    let of_a_job = task.triggers().count() + at_completion;
    if of_a_job > TRIGGERS_OF_A_JOB {
        return refused(format!(
            "triggers {of_a_job} times per job, and a live run takes at most {TRIGGERS_OF_A_JOB}"
        ));
    }
    if at_once > TRIGGERS {
        return refused(format!(
            "triggers {at_once} tasks at once, and a live run takes at most {TRIGGERS}"
        ));
    }
    if changes(set, id) {
        return refused(String::from(
            "enters, leaves or gets other attributes by an [[action]], and in a live run tasks that are triggered or trigger \
             others stay as they are; `simulate` changes them",
        ));
    }
    let Some(trigger) = trigger else {
        return Ok(());
    };
    let sources = trigger.sources.len();
    if trigger.join == Join::All && sources > SOURCES_MAX {
        return refused(format!(
            "waits for all of {sources} tasks, and a live run takes at most {SOURCES_MAX}"
        ));
    }
    let Arrivals { first, apart } = arrivals[id.index()];
    let awake = match trigger.join {
        Join::Any => Some(first),
        Join::All => apart.map(|apart| first.max(apart)),
    };
    match awake {
        Some(awake) if awake <= THROTTLED_MAX => Ok(()),
        _ => refused(format!(
            "its thread may be awake and wait for its sources for longer than {THROTTLED_MAX}, and that would trigger the \
             sched_ext watchdog; give them shorter periods, and no `releases` where it waits for all"
        )),
    }
}

/// Whether the task enters, leaves or gets other attributes during a run.
fn changes(set: &TaskSet, id: TaskId) -> bool {
    set.actions.iter().any(|action| match action.change {
        Change::Enter(task) | Change::Leave(task) => task == id,
        Change::SetAttributes { task, .. } => task == id,
        _ => false,
    })
}

/// When the jobs of a task arrive, if those of no task are late.
#[derive(Clone, Copy, Debug)]
struct Arrivals {
    /// Until when the first one has at the latest.
    first: Span,
    /// The longest time from one to the next; `None`: any.
    apart: Option<Span>,
}

/// When the jobs of all tasks arrive, by task.
fn arrivals(set: &TaskSet) -> Vec<Arrivals> {
    let never = Arrivals {
        first: Span::MAX,
        apart: None,
    };
    let mut all = vec![never; set.tasks.len()];
    // A file with a circle has been refused.
    for id in set.trigger_order().unwrap_or_default() {
        let task = &set.tasks[id.index()];
        let by_time = |most: Span| Arrivals {
            first: task.offset + most,
            apart: Some(most),
        };
        all[id.index()] = match &task.arrival {
            Arrival::Periodic | Arrival::Sporadic | Arrival::Curve(..) => {
                task.longest_gap().map_or(never, by_time)
            }
            Arrival::Releases(at) => {
                let first = at.first().and_then(|first| first.since(Instant::ZERO));
                Arrivals {
                    first: first.unwrap_or(Span::MAX),
                    apart: None,
                }
            }
            Arrival::Triggered(trigger) => {
                let sources = trigger.sources.iter().map(|source| all[source.index()]);
                match trigger.join {
                    Join::Any => sources.fold(never, |one, other| Arrivals {
                        first: one.first.min(other.first),
                        apart: one.apart.into_iter().chain(other.apart).min(),
                    }),
                    Join::All => sources
                        .reduce(|one, other| Arrivals {
                            first: one.first.max(other.first),
                            apart: one
                                .apart
                                .zip(other.apart)
                                .map(|(one, other)| one.max(other)),
                        })
                        .unwrap_or(never),
                }
            }
        };
    }
    all
}

/// The most phases of a kind that a job has with no execution, suspension or lock in between; `last` more follow the last.
fn most_at_once(task: &Task, is_counted: fn(&Phase) -> bool, last: usize) -> usize {
    let (mut most, mut now) = (0, 0);
    for phase in task.phases() {
        let is_next = match phase {
            Phase::Run(span) | Phase::Sleep(span) => !span.is_zero(),
            Phase::Lock(_) => true,
            Phase::Unlock(_) | Phase::Trigger(_) => false,
        };
        if is_next {
            most = most.max(now);
            now = 0;
        }
        now += usize::from(is_counted(phase));
    }
    most.max(now + last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_model::{Affinity, Trigger, Work};
    use shiftwork_policy::registry;

    #[test]
    fn tasks_with_jitter_are_refused_by_name() {
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
    }

    /// Two sources, and a task that they trigger together.
    fn triggered() -> TaskSet {
        let affinity = Affinity::pinned(CpuId::from_index(0));
        let task = |name| Task::periodic(name, Span::from_ms(1), Span::from_ms(10), affinity);
        let mut set = TaskSet::new("s", 1, ["a", "b", "c"].map(task).to_vec());
        set.tasks[2].arrival = Arrival::Triggered(Trigger {
            sources: [0, 1].map(TaskId::from_index).to_vec(),
            join: Join::All,
            queue: None,
        });
        set
    }

    /// What it says of each task of the set, after a change.
    fn refusals(change: impl FnOnce(&mut TaskSet)) -> Vec<Option<String>> {
        let mut set = triggered();
        change(&mut set);
        let arrivals = arrivals(&set);
        let of = |(id, task)| check_triggers(&set, id, task, &arrivals).err();
        let all = set.iter().map(of);
        all.map(|error| Some(error?.to_string())).collect()
    }

    #[test]
    fn what_a_live_run_takes_no_triggers_of_is_named() {
        assert_eq!(refusals(|_| {}), [None, None, None]);
        let begins = |refusals: Vec<Option<String>>, index: usize, with: &str| {
            for (task, refusal) in refusals.into_iter().enumerate() {
                let begins = refusal.as_ref().is_some_and(|it| it.starts_with(with));
                assert_eq!(begins, task == index, "{refusal:?}");
                assert_eq!(refusal.is_some(), task == index, "{refusal:?}");
            }
        };
        let program = refusals(|set| set.tasks[1].command = vec!["sleep".to_owned()]);
        begins(program, 1, "task `b`: a program wakes up");
        let throttled = refusals(|set| {
            set.tasks[2].work = Work::Constant(Span::from_ms(2));
            set.tasks[2].on_overrun = OnOverrun::Throttle;
        });
        begins(throttled, 2, "task `c`: executes for up to 2ms and may be");
        let leaves = refusals(|set| {
            let change = Change::Leave(TaskId::from_index(0));
            let at = Instant::from_ns(1);
            set.actions.push(shiftwork_model::Action { at, change });
        });
        begins(leaves, 0, "task `a`: enters, leaves or gets");
        let slow = refusals(|set| set.tasks[1].period = Span::from_s(26));
        begins(slow, 2, "task `c`: its thread may be awake");
        let sporadic = refusals(|set| {
            set.tasks[1].period = Span::from_s(13);
            set.tasks[1].arrival = Arrival::Sporadic;
        });
        begins(sporadic, 2, "task `c`: its thread may be awake");
        let listed = refusals(|set| {
            set.tasks[1].arrival = Arrival::Releases(vec![Instant::ZERO]);
        });
        begins(listed, 2, "task `c`: its thread may be awake");
        let chatty = refusals(|set| {
            let run = Phase::Run(Span::from_us(1));
            let trigger = Phase::Trigger(TaskId::from_index(2));
            set.tasks[0].work = Work::Phases([run, trigger].repeat(33));
        });
        begins(chatty, 0, "task `a`: triggers 33 times per job");
        let many = refusals(|set| {
            let sources = vec![TaskId::from_index(0); SOURCES_MAX + 1];
            set.tasks[2].arrival = Arrival::Triggered(Trigger {
                sources,
                join: Join::All,
                queue: None,
            });
        });
        begins(many, 2, "task `c`: waits for all of 9 tasks");
    }

    #[test]
    fn many_ways_from_a_source_to_a_task_are_looked_at_once() {
        let mut set = triggered();
        let pair = set.tasks[2].clone();
        for layer in 1..200 {
            // Each of two tasks is triggered by both of the layer before.
            let before = [2 * layer - 2, 2 * layer - 1].map(TaskId::from_index);
            let mut task = pair.clone();
            task.arrival = Arrival::Triggered(Trigger {
                sources: before.to_vec(),
                join: Join::All,
                queue: None,
            });
            set.tasks.truncate(2 * layer);
            set.tasks.extend([task.clone(), task]);
        }
        let last = arrivals(&set).last().copied();
        assert_eq!(
            last.map(|last| (last.first, last.apart)),
            Some((Span::from_ms(10), Some(Span::from_ms(10))))
        );
    }
}
