//! SimSo's schedulers: which policy does the same, with which priorities and on which CPUs.

use std::cmp::Ordering;

use shiftwork_model::{Affinity, CpuId, Priority, Span, TaskSet};

use super::super::xml::Element;
use super::TaskElement;
use crate::error::TasksetError;

/// Gives the task set the policy of the file's `<sched>`, or says that there is none.
///
/// # Errors
/// If the scheduler goes by priorities and one is no number.
pub(super) fn choose(
    set: &mut TaskSet,
    sched: Element<'_, '_>,
    tasks: &[TaskElement<'_, '_>],
    left_out: &mut Vec<String>,
) -> Result<(), TasksetError> {
    let class = sched.get("class").or(sched.get("className")).unwrap_or("");
    let (policy, by) = match class.rsplit('.').next() {
        Some("EDF") => ("g-edf", By::Deadline),
        Some("P_EDF") => ("p-edf", By::Deadline),
        Some("EDF_mono") => ("p-edf", By::Deadline),
        Some("RM") => ("g-fp", By::Period),
        Some("RM_mono" | "P_RM") => ("p-fp", By::Period),
        Some("FP") => ("g-fp", By::Field),
        Some("PD2") => ("pd2", By::Deadline),
        _ => {
            left_out.push(format!("the scheduler `{class}`; choose one with --policy"));
            return Ok(());
        }
    };
    if let Err(why) = rank(set, tasks, by)? {
        left_out.push(format!("the scheduler `{class}`: {why}"));
        return Ok(());
    }
    match class.rsplit('.').next() {
        Some("EDF_mono" | "RM_mono") => bind(set, |_, _| CpuId::from_index(0)),
        Some("P_RM") => bind(set, least_loaded(tasks)),
        Some("PD2") => set.scheduler.quantum = Some(QUANTUM),
        _ => {}
    }
    set.scheduler.policy = Some(policy.to_string());
    Ok(())
}

/// SimSo's PD2 has quanta of a tenth of a millisecond.
const QUANTUM: Span = Span::from_us(100);

/// By what a scheduler ranks tasks.
#[derive(Clone, Copy)]
enum By {
    /// By the deadlines of their jobs.
    Deadline,
    /// The shortest period is the most urgent.
    Period,
    /// The greatest `priority` is the most urgent, a field that the file declares.
    Field,
}

/// Gives the tasks priorities, of which equal ranks have equal ones. Inside, why it cannot.
fn rank(
    set: &mut TaskSet,
    tasks: &[TaskElement<'_, '_>],
    by: By,
) -> Result<Result<(), String>, TasksetError> {
    let key = |task: &TaskElement<'_, '_>| match by {
        By::Deadline => Ok(None),
        By::Period => Ok(task.number("period")?),
        By::Field => Ok(task.number("priority")?.map(|priority| -priority)),
    };
    if let By::Deadline = by {
        return Ok(Ok(()));
    }
    let mut keys = Vec::with_capacity(tasks.len());
    for (task, of) in tasks.iter().zip(&set.tasks) {
        match key(task)? {
            Some(key) => keys.push(key),
            None => {
                let wanted = match by {
                    By::Field => "priority",
                    By::Period | By::Deadline => "period",
                };
                return Ok(Err(format!("task `{}` has no `{wanted}`", of.name)));
            }
        }
    }
    let mut ranks = keys.clone();
    ranks.sort_by(f64::total_cmp);
    ranks.dedup();
    for (task, key) in set.tasks.iter_mut().zip(keys) {
        let place = ranks.binary_search_by(|rank| rank.total_cmp(&key));
        let number = place.ok().and_then(|place| u32::try_from(place + 1).ok());
        task.priority = number.and_then(Priority::new);
    }
    Ok(Ok(()))
}

/// Binds each task to a CPU, which is asked for in their order.
fn bind(set: &mut TaskSet, mut cpu: impl FnMut(usize, usize) -> CpuId) {
    let cpus = set.platform.cpus;
    for (index, task) in set.tasks.iter_mut().enumerate() {
        task.affinity = Affinity::pinned(cpu(index, cpus));
    }
}

/// Each task goes to the first CPU of those with the least utilization. SimSo adds these up as floating-point numbers, and so does
/// this: which sum is the least may depend on that.
fn least_loaded(tasks: &[TaskElement<'_, '_>]) -> impl FnMut(usize, usize) -> CpuId {
    let rate = |task: &TaskElement<'_, '_>| {
        let number = |name| task.number(name).ok().flatten();
        let rate = number("WCET").zip(number("period"));
        rate.map_or(0.0, |(cost, period)| cost / period)
    };
    let rates: Vec<f64> = tasks.iter().map(rate).collect();
    let mut loads: Vec<f64> = Vec::new();
    move |index, cpus| {
        loads.resize(cpus, 0.0);
        let all = loads.iter().enumerate();
        let least = all.min_by(|a, b| match a.1.total_cmp(b.1) {
            Ordering::Equal => a.0.cmp(&b.0),
            other => other,
        });
        let cpu = least.map_or(0, |(cpu, _)| cpu);
        loads[cpu] += rates[index];
        CpuId::from_index(cpu)
    }
}
