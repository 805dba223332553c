//! Importers: task sets in the formats of other tools. Each reads what it can and names what it
//! cannot carry over.

mod json;
pub mod rt_app;
pub mod schedcat;
pub mod simso;
mod xml;

use std::collections::BTreeMap;

use shiftwork_model::{Affinity, CPUS_MAX, CapacitySum, CpuId, CpuSet, Span, Task, TaskSet};

use crate::error::TasksetError;

/// What an importer made of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The task set, such that a task-set file can describe it.
    pub set: TaskSet,
    /// What the file says and the task set does not, a line each, and what was assumed instead.
    pub left_out: Vec<String>,
}

/// Tasks that one file may have. More are not a task set but a mistake (`instance = 1e9`).
const TASKS_MAX: usize = 10_000;

/// The names that tasks have, each with the number that its next copy would get.
#[derive(Default)]
struct NamesTaken(BTreeMap<String, u64>);

impl NamesTaken {
    /// A name that no task has yet: `wanted`, or `wanted` and a number. It is taken from now on.
    fn take(&mut self, wanted: &str) -> String {
        let Some(&next) = self.0.get(wanted) else {
            self.0.insert(wanted.to_string(), 2);
            return wanted.to_string();
        };
        let free = (next..).find(|copy| !self.0.contains_key(&format!("{wanted}-{copy}")));
        let copy = free.expect("there are more numbers than names");
        self.0.insert(wanted.to_string(), copy + 1);
        let name = format!("{wanted}-{copy}");
        self.0.insert(name.clone(), 2);
        name
    }

    /// How many names are taken.
    fn count(&self) -> usize {
        self.0.len()
    }
}

/// What an importer cannot learn from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many CPUs there are; `None` takes what the file says, or else the fewest that it can
    /// mean: all that it names, and enough for its utilization.
    pub cpus: Option<usize>,
    /// What a number in a SchedCAT file counts; the other formats say so themselves.
    pub unit: Span,
}

/// As many CPUs as the file means, and microseconds.
impl Default for Options {
    fn default() -> Self {
        Self {
            cpus: None,
            unit: Span::from_us(1),
        }
    }
}

/// A task before it is known how many CPUs there are; `cpus` is empty if it may use all.
struct Draft {
    task: Task,
    cpus: CpuSet,
}

impl Draft {
    fn new(name: &str, cost: Span, period: Span) -> Self {
        let any = Affinity::pinned(CpuId::from_index(0));
        Self {
            task: Task::periodic(name, cost, period, any),
            cpus: CpuSet::EMPTY,
        }
    }
}

/// The platform that a file without one means, and the tasks on it.
fn settle(
    drafts: Vec<Draft>,
    options: &Options,
    left_out: &mut Vec<String>,
) -> Result<TaskSet, TasksetError> {
    let named = drafts
        .iter()
        .fold(CpuSet::EMPTY, |all, draft| all | draft.cpus);
    let named = named.iter().last().map_or(0, |cpu| cpu.index() + 1);
    let cpus = match options.cpus {
        Some(cpus) if cpus == 0 || cpus > CPUS_MAX || cpus < named => {
            return Err(TasksetError::Impossible {
                what: format!("{cpus} CPUs are not what this file can run on"),
                accepted: format!("accepted: {} to {CPUS_MAX}", named.max(1)),
            });
        }
        Some(cpus) => cpus,
        None => {
            let cpus = named.max(enough_cpus(&drafts));
            left_out.push(format!(
                "the number of CPUs is not in the file; taken as {cpus}"
            ));
            cpus
        }
    };
    Ok(TaskSet::new("", cpus, bind(drafts, cpus)))
}

/// The tasks of the drafts on this many CPUs.
fn bind(drafts: Vec<Draft>, cpus: usize) -> Vec<Task> {
    let all = CpuSet::first(cpus);
    let bind = |draft: Draft| Task {
        affinity: Affinity::new(draft.cpus)
            .or(Affinity::new(all))
            .expect("a platform has a CPU"),
        ..draft.task
    };
    drafts.into_iter().map(bind).collect()
}

/// The fewest CPUs, at least one, that have the utilization of these tasks, as far as there are as
/// many. To within 2^-64 per task, which keeps it fast for any number of different periods.
fn enough_cpus(drafts: &[Draft]) -> usize {
    let mut sum = CapacitySum::default();
    for draft in drafts {
        sum.add(draft.task.utilization());
    }
    let whole = sum.floor() >> 64;
    let rest = u128::from(sum.floor() & u128::from(u64::MAX) > 0);
    usize::try_from(whole + rest).map_or(CPUS_MAX, |cpus| cpus.clamp(1, CPUS_MAX))
}
