//! SimSo's schedulers: which policy does the same, with which priorities and on which CPUs.

use shiftwork_model::{Affinity, CpuId, Priority, Span, TaskSet};

use super::super::xml::Element;
use super::TaskElement;
use crate::error::TasksetError;

/// SimSo's PD2 has quanta of a tenth of a millisecond.
const QUANTUM: Span = Span::from_us(100);

/// By what a scheduler ranks tasks: the smallest product of an attribute and a factor is the most urgent.
type Rank = (&'static str, f64);

/// The shortest period.
const BY_PERIOD: Option<Rank> = Some(("period", 1.0));
/// The greatest value of a field that the file declares.
const BY_FIELD: Option<Rank> = Some(("priority", -1.0));

/// Where a scheduler lets tasks run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Where the policy does.
    Any,
    /// On the first processor.
    First,
    /// Each on the processor that has the least utilization so far.
    LeastLoaded,
}

/// Gives the task set the policy of the file's `<sched>`, or says that there is none.
///
/// # Errors
/// If the scheduler goes by an attribute and one is no number.
pub(super) fn choose(
    set: &mut TaskSet,
    sched: Element<'_, '_>,
    tasks: &[TaskElement<'_, '_>],
    left_out: &mut Vec<String>,
) -> Result<(), TasksetError> {
    let class = sched.get("class").or(sched.get("className")).unwrap_or("");
    let (policy, rank, place) = match class.rsplit('.').next() {
        Some("EDF") => ("g-edf", None, Place::Any),
        Some("P_EDF") => ("p-edf", None, Place::Any),
        Some("EDF_mono") => ("p-edf", None, Place::First),
        Some("RM") => ("g-fp", BY_PERIOD, Place::Any),
        Some("RM_mono") => ("p-fp", BY_PERIOD, Place::First),
        Some("P_RM") => ("p-fp", BY_PERIOD, Place::LeastLoaded),
        Some("FP") => ("g-fp", BY_FIELD, Place::Any),
        Some("PD2") => ("pd2", None, Place::Any),
        _ => {
            left_out.push(format!("the scheduler `{class}`; choose one with --policy"));
            return Ok(());
        }
    };
    if let Some((attribute, factor)) = rank {
        let keys = tasks.iter().map(|task| task.number(attribute));
        let keys: Vec<Option<f64>> = keys.collect::<Result<_, _>>()?;
        if let Some(without) = keys.iter().position(Option::is_none) {
            let name = &set.tasks[without].name;
            left_out.push(format!(
                "the scheduler `{class}`: task `{name}` has no `{attribute}`"
            ));
            return Ok(());
        }
        set_priorities(set, keys.into_iter().flatten().map(|key| key * factor));
    }
    match place {
        Place::Any => {}
        Place::First => bind(set, std::iter::repeat(0)),
        Place::LeastLoaded => bind(set, least_loaded(tasks, set.platform.cpus).into_iter()),
    }
    if policy == "pd2" {
        set.scheduler.quantum = Some(QUANTUM);
    }
    set.scheduler.policy = Some(policy.to_string());
    Ok(())
}

/// Gives each task the priority of its key, of which the smallest is the most urgent; of equal keys the same.
fn set_priorities(set: &mut TaskSet, keys: impl Iterator<Item = f64>) {
    let keys: Vec<f64> = keys.collect();
    let mut ranks = keys.clone();
    ranks.sort_by(f64::total_cmp);
    ranks.dedup();
    for (task, key) in set.tasks.iter_mut().zip(keys) {
        let place = ranks.partition_point(|rank| *rank < key);
        let number = u32::try_from(place + 1).ok();
        task.priority = number.and_then(Priority::new);
    }
}

/// Binds the tasks to these CPUs, in their order.
fn bind(set: &mut TaskSet, cpus: impl Iterator<Item = usize>) {
    for (task, cpu) in set.tasks.iter_mut().zip(cpus) {
        task.affinity = Affinity::pinned(CpuId::from_index(cpu));
    }
}

/// For each task the first CPU of those with the least utilization so far. SimSo adds these up as floating-point numbers, and so
/// does this: which sum is the least may depend on that.
fn least_loaded(tasks: &[TaskElement<'_, '_>], cpus: usize) -> Vec<usize> {
    let mut loads = vec![0.0_f64; cpus];
    let cpu = |task: &TaskElement<'_, '_>| {
        let all = loads.iter().enumerate();
        let least = all.min_by(|(_, one), (_, other)| one.total_cmp(other));
        let cpu = least.map_or(0, |(cpu, _)| cpu);
        let number = |name| task.number(name).ok().flatten();
        if let Some((cost, period)) = number("WCET").zip(number("period")) {
            loads[cpu] += cost / period;
        }
        cpu
    };
    tasks.iter().map(cpu).collect()
}
