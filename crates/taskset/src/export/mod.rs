//! Exporters: task sets as files that run without this system. Each writes what its format can say, and names
//! what is lost, a line each.
//!
//! This owns what the formats have in common: the scheduling class of Linux that a policy comes down to, its
//! priorities, and what no class of Linux does.

mod chrt;
mod rt_app;
mod systemd;

use std::collections::BTreeMap;

use shiftwork_model::{OnOverrun, Order, PolicyTraits, Preemption, Share, Span, Task, TaskSet};

pub use chrt::chrt;
pub use rt_app::rt_app;
pub use systemd::systemd;

/// What an exporter made of a task set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The files, in the order of the tasks.
    pub files: Vec<ExportedFile>,
    /// What the task set says and the files do not, a line each, and what they say instead.
    pub left_out: Vec<String>,
}

/// One exported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// The name that a format prescribes, as systemd the name of the unit; `None` for any name.
    pub name: Option<String>,
    /// What is in it.
    pub text: String,
}

/// The policy by which a task set is meant to be scheduled.
#[derive(Clone, Copy, Debug)]
pub struct PolicyUse<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its properties.
    pub traits: &'a PolicyTraits,
}

/// A scheduling class of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// SCHED_FIFO: fixed priorities.
    Fifo,
    /// SCHED_DEADLINE: earliest deadline first, with budgets.
    Deadline,
}

/// The class that ranks tasks as the policy does; SCHED_FIFO without a policy. What the class does not do is
/// added to `left_out`.
fn class_of(set: &TaskSet, policy: Option<PolicyUse<'_>>, left_out: &mut Vec<String>) -> Class {
    let Some(PolicyUse { name, traits }) = policy else {
        return Class::Fifo;
    };
    let class = match (traits.order, traits.preemption) {
        (Order::Edf, Preemption::AtEvents) => Class::Deadline,
        (Order::FixedPriority, Preemption::AtEvents) => Class::Fifo,
        (order, Preemption::AtEvents) => {
            left_out.push(format!(
                "{name}: Linux has no class that ranks by {}; SCHED_FIFO with fixed priorities is written",
                order.ranks_by()
            ));
            return Class::Fifo;
        }
        (order, preemption) => {
            let when = match preemption {
                Preemption::Never => "never preempts",
                _ => "decides at quanta",
            };
            left_out.push(format!(
                "{name}: Linux has no class that {when}; SCHED_FIFO with fixed priorities is written"
            ));
            if order != Order::FixedPriority {
                left_out.push(format!("{name}: the order by {}", order.ranks_by()));
            }
            return Class::Fifo;
        }
    };
    let all = set.platform.all();
    let restricted = |task: &&Task| *task.affinity.cpus() != all;
    if traits.placement.shifts() && set.tasks.iter().any(|task| restricted(&task)) {
        left_out.push(format!(
            "{name}: shifting; Linux moves no running task to another CPU to make room for a third"
        ));
    }
    if traits.placement.is_packed() && set.tasks.iter().any(|task| task.affinity.cpus().len() > 1) {
        left_out.push(format!(
            "{name}: the CPU or cluster that it assigns each task to; the affinity is written"
        ));
    }
    class
}

/// What the task set says of the machine and of changes, and no format can: whatever the class.
fn losses_of_set(set: &TaskSet, left_out: &mut Vec<String>) {
    if set.scheduler.reserve != Share::DEFAULT_RESERVE {
        left_out.push(format!(
            "`reserve` {}; Linux keeps what kernel.sched_rt_runtime_us leaves, 0.05 by default",
            set.scheduler.reserve
        ));
    }
    if !set.chains.is_empty() {
        left_out.push(format!(
            "{} cause-effect chains ([[chain]])",
            set.chains.len()
        ));
    }
    if !set.actions.is_empty() {
        left_out.push(format!("{} timed changes ([[action]])", set.actions.len()));
    }
}

/// The priorities of SCHED_FIFO, 1 to 99 with 99 the most urgent, in the order of [`TaskSet::priorities`].
///
/// A task set whose priorities are at most 99 keeps them, turned around: 1 becomes 99. Of others only the order
/// is kept, and beyond 99 different ones, the least urgent are all 1, which is added to `left_out`.
fn fifo_priorities(set: &TaskSet, left_out: &mut Vec<String>) -> Vec<u32> {
    let numbers: Vec<u32> = set.priorities().iter().map(|own| own.number()).collect();
    if numbers.iter().all(|&number| number <= LEVELS) {
        return numbers.iter().map(|number| LEVELS + 1 - number).collect();
    }
    let mut ranks: BTreeMap<u32, u32> = numbers.iter().map(|&number| (number, 0)).collect();
    for (rank, level) in ranks.values_mut().zip(0..) {
        *rank = level;
    }
    left_out.push(
        "the numbers of the priorities, which go beyond 99; their order is written".to_string(),
    );
    if ranks.len() > LEVELS as usize {
        left_out.push(format!(
            "the order of the {} least urgent priorities; SCHED_FIFO has {LEVELS}, so they share 1",
            ranks.len() - LEVELS as usize + 1
        ));
    }
    let level = |number| LEVELS.saturating_sub(ranks[number]).max(1);
    numbers.iter().map(level).collect()
}

/// How many priorities SCHED_FIFO has.
const LEVELS: u32 = 99;

/// What the end of the budget does that the class does not.
fn lost_overrun(task: &Task, class: Class) -> Option<&'static str> {
    match (class, task.on_overrun) {
        (Class::Fifo, OnOverrun::Continue) | (Class::Deadline, OnOverrun::Throttle) => None,
        (Class::Fifo, _) => Some("the budget is not enforced: SCHED_FIFO has none"),
        (Class::Deadline, _) => {
            Some("`on-overrun`: SCHED_DEADLINE throttles the task at the end of its budget")
        }
    }
}

/// Why Linux, with its defaults, refuses SCHED_DEADLINE to the task; `None` if nothing is known against it.
///
/// # Source
/// `__checkparam_dl` and `__sched_setscheduler` in kernel/sched; sched(7).
fn deadline_refusal(task: &Task, set: &TaskSet) -> Option<String> {
    if *task.affinity.cpus() != set.platform.all() {
        return Some(format!(
            "Linux refuses SCHED_DEADLINE to a task bound to CPUs {}, unless they are a cpuset partition or its \
             admission control is off (kernel.sched_rt_runtime_us=-1)",
            task.affinity
        ));
    }
    if task.deadline > task.period {
        return Some(format!(
            "Linux refuses SCHED_DEADLINE with a deadline ({}) beyond the period ({})",
            task.deadline, task.period
        ));
    }
    if task.cost < RUNTIME_MIN {
        return Some(format!(
            "Linux refuses SCHED_DEADLINE with a runtime ({}) below {RUNTIME_MIN}",
            task.cost
        ));
    }
    (task.period < PERIOD_MIN || task.period > PERIOD_MAX).then(|| {
        format!(
            "Linux refuses SCHED_DEADLINE with a period ({}) outside {PERIOD_MIN} to {PERIOD_MAX}, unless \
             kernel.sched_deadline_period_min_us and _max_us allow it",
            task.period
        )
    })
}

/// The least runtime that SCHED_DEADLINE takes: 2^10 ns.
const RUNTIME_MIN: Span = Span::from_ns(1 << 10);

/// The defaults of kernel.sched_deadline_period_min_us and _max_us.
const PERIOD_MIN: Span = Span::from_us(100);
const PERIOD_MAX: Span = Span::from_us(1 << 22);

/// What an exporter of commands does not write of a task: its program decides when jobs are released.
fn losses_of_program(task: &Task, left_out: &mut Vec<String>) {
    let keys = [
        (
            "`offset`; its program starts at once",
            !task.offset.is_zero(),
        ),
        (
            "`jitter`; its program decides when it runs",
            !task.jitter.is_zero(),
        ),
        (
            "`releases`; its program decides when it runs",
            matches!(task.arrival, shiftwork_model::Arrival::Releases(_)),
        ),
        (
            "`distances`; its program decides when it runs",
            task.curve().is_some(),
        ),
        (
            "`triggered-by`; its program decides when it runs",
            task.trigger().is_some(),
        ),
        ("`start-cpu`", task.start_cpu.is_some()),
    ];
    for (what, _) in keys.iter().filter(|(_, is_used)| *is_used) {
        left_out.push(format!("task `{}`: {what}", task.name));
    }
}

/// The words of a task's command, or why there is none to run.
fn words_of(task: &Task) -> Result<&[String], &'static str> {
    match task.command.as_slice() {
        [] => Err("it has no `command`"),
        [program, ..] if program.is_empty() => Err("its program has an empty name"),
        words if words.iter().any(|word| word.contains('\0')) => {
            Err("its `command` has a null character, which no argument can hold")
        }
        words => Ok(words),
    }
}

/// A text on one line without control characters, in quotation marks.
fn on_one_line(text: &str) -> String {
    format!("{text:?}")
}
