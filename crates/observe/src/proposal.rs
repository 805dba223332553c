//! From measurements to a task-set file.

mod comments;
mod parameters;
mod thread_names;

use std::collections::{BTreeMap, BTreeSet};

use shiftwork_model::{
    Affinity, Arrival, Chain, CpuSet, Join, Phase, Span, Task, TaskId, TaskSet, Trigger, Work,
};
use shiftwork_taskset::{Comments, write_with_comments};

use self::parameters::{Parameters, cost, own_parameters};
use self::thread_names::thread_name;
use crate::error::ObserveError;
use crate::measure::{Activity, Measurement, ThreadMeasurement};
use crate::statistics::Percentile;
use crate::wakeups::{Relation, Within};

pub use self::comments::summary;

/// Which threads become tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Those that are periodic, that trigger others or are triggered, or that take a thousandth of a CPU.
    Regular,
    /// All of which enough was measured.
    All,
    /// Those with these names.
    Named(Vec<String>),
}

/// What is to be proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which threads.
    pub selection: Selection,
    /// How many percent are added to measured costs.
    pub margin_percent: u32,
    /// At which percentile costs were measured.
    pub percentile: Percentile,
    /// The CPUs that are online; not empty.
    pub online: CpuSet,
}

/// A thread that is no task of the proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its number.
    pub id: u32,
    /// Why.
    pub reason: String,
}

/// A proposed task set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// Its tasks, chains and platform.
    pub set: TaskSet,
    /// The thread of each task.
    pub threads: Vec<u32>,
    /// What was measured, as comments of the file.
    pub comments: Comments,
    /// Threads that are no tasks.
    pub left_out: Vec<LeftOut>,
}

impl Proposal {
    /// As a task-set file.
    pub fn to_toml(&self) -> String {
        write_with_comments(&self.set, &self.comments)
    }
}

/// A thread that becomes a task.
struct Chosen<'a> {
    thread: &'a ThreadMeasurement,
    parameters: Parameters,
    /// The thread that triggers it, and when within its jobs.
    trigger: Option<(u32, Option<Within>)>,
}

/// Proposes a task set. It has no tasks if no thread has enough jobs.
///
/// # Errors
/// If a thread is asked for that the process does not have.
pub fn propose(measurement: &Measurement, options: &Options) -> Result<Proposal, ObserveError> {
    if let Selection::Named(names) = &options.selection {
        check_names(measurement.threads.iter().map(|it| it.name.as_str()), names)?;
    }
    let mut left_out = Vec::new();
    let chosen = choose(measurement, options, &mut left_out);
    let names = task_names(&chosen);
    let cpus = options
        .online
        .iter()
        .last()
        .map_or(1, |cpu| cpu.index() + 1);
    let mut set = TaskSet::new(&set_name(measurement), cpus, Vec::new());
    let ids: BTreeMap<u32, TaskId> = chosen
        .iter()
        .enumerate()
        .map(|(index, it)| (it.thread.id, TaskId::from_index(index)))
        .collect();
    set.tasks = chosen
        .iter()
        .zip(&names)
        .map(|(it, name)| Task {
            thread: thread_name(it.thread, measurement),
            ..task(it, name, &ids, options)
        })
        .collect();
    add_phases(&chosen, &ids, &mut set);
    settle_periods(&mut set);
    set.chains = chains(measurement, &ids, &set);
    let comments = comments::comments(measurement, options, &chosen, &set, &left_out);
    Ok(Proposal {
        threads: chosen.iter().map(|it| it.thread.id).collect(),
        set,
        comments,
        left_out,
    })
}

/// That there is a thread with each of these names.
///
/// # Errors
/// If there is none with one of them.
pub fn check_names<'a>(
    threads: impl Iterator<Item = &'a str>,
    wanted: &[String],
) -> Result<(), ObserveError> {
    let there: BTreeSet<&str> = threads.collect();
    match wanted.iter().find(|name| !there.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(ObserveError::NoThread {
            name: name.clone(),
            names: there.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// The threads that become tasks, each after the one that triggers it.
fn choose<'a>(
    measurement: &'a Measurement,
    options: &Options,
    left_out: &mut Vec<LeftOut>,
) -> Vec<Chosen<'a>> {
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    let mut open: Vec<&ThreadMeasurement> = Vec::new();
    for thread in &measurement.threads {
        match refusal(thread, measurement, options) {
            None => open.push(thread),
            Some(reason) => left_out.push(LeftOut {
                id: thread.id,
                reason,
            }),
        }
    }
    // Each round decides on at least one thread: triggers have no circles.
    while !open.is_empty() {
        let ids: BTreeSet<u32> = open.iter().map(|thread| thread.id).collect();
        let waits = |thread: &ThreadMeasurement| match thread.relation {
            Relation::Triggered { by, .. } => ids.contains(&by),
            _ => false,
        };
        let (later, now): (Vec<_>, Vec<_>) = open.into_iter().partition(|thread| waits(thread));
        for thread in now {
            match parameters_of(thread, &chosen, options) {
                Ok(it) => chosen.push(it),
                Err(reason) => left_out.push(LeftOut {
                    id: thread.id,
                    reason,
                }),
            }
        }
        open = later;
    }
    left_out.sort_by_key(|it| it.id);
    chosen
}

/// Why a thread is not considered.
fn refusal(
    thread: &ThreadMeasurement,
    measurement: &Measurement,
    options: &Options,
) -> Option<String> {
    match &options.selection {
        Selection::Named(names) if !names.contains(&thread.name) => {
            return Some("not asked for".to_owned());
        }
        _ => {}
    }
    let share = comments::percent(thread.executed, measurement.length);
    match thread.activity {
        Activity::Idle => return Some("idle: no job was seen".to_owned()),
        Activity::Rare => {
            let jobs = comments::count(thread.jobs, "job");
            return Some(format!(
                "{jobs} in all: too few to say how far apart they are"
            ));
        }
        Activity::Busy => {
            return Some(format!(
                "busy: it executes {share} of the time and hardly ever sleeps, so there is no period to measure"
            ));
        }
        Activity::Periodic | Activity::Sporadic => {}
    }
    let takes_part = matches!(thread.relation, Relation::Triggered { .. })
        || measurement.threads.iter().any(
            |other| matches!(other.relation, Relation::Triggered { by, .. } if by == thread.id),
        );
    let is_light = thread.executed.as_ns().saturating_mul(1_000) < measurement.length.as_ns();
    let is_regular = thread.activity == Activity::Periodic || takes_part || !is_light;
    (options.selection == Selection::Regular && !is_regular)
        .then(|| format!("irregular, and takes {share} of a CPU: `--all-threads` makes it a task"))
}

/// The parameters of a thread, whose source is chosen already if it is to be; otherwise why there are none.
fn parameters_of<'a>(
    thread: &'a ThreadMeasurement,
    chosen: &[Chosen<'a>],
    options: &Options,
) -> Result<Chosen<'a>, String> {
    if let Relation::Triggered { by, within, .. } = thread.relation
        && let Some(source) = chosen.iter().find(|it| it.thread.id == by)
    {
        let period = source.parameters.period;
        if let Some((cost, has_margin)) = cost(&thread.costs, period, options) {
            return Ok(Chosen {
                thread,
                parameters: Parameters {
                    cost,
                    period,
                    arrival: Arrival::Sporadic,
                    has_margin,
                    uses_median: false,
                },
                trigger: Some((by, within)),
            });
        }
    }
    let parameters = own_parameters(thread, options)?;
    Ok(Chosen {
        thread,
        parameters,
        trigger: None,
    })
}

fn task(chosen: &Chosen<'_>, name: &str, ids: &BTreeMap<u32, TaskId>, options: &Options) -> Task {
    let own = chosen.thread.affinity & options.online;
    // None is left if the CPUs went offline meanwhile.
    let affinity = Affinity::new(own)
        .or_else(|| Affinity::new(options.online))
        .unwrap_or_else(|| Affinity::pinned(shiftwork_model::CpuId::from_index(0)));
    let Parameters { cost, period, .. } = chosen.parameters;
    let mut task = Task::periodic(name, cost, period, affinity);
    task.arrival = match chosen.trigger.and_then(|(by, _)| ids.get(&by)) {
        Some(source) => Arrival::Triggered(Trigger {
            sources: vec![*source],
            join: Join::Any,
            queue: None,
        }),
        None => chosen.parameters.arrival.clone(),
    };
    task
}

/// Lets jobs trigger others where they do, if that is not at the end.
fn add_phases(chosen: &[Chosen<'_>], ids: &BTreeMap<u32, TaskId>, set: &mut TaskSet) {
    for (source, &id) in ids {
        let cost = set.tasks[id.index()].cost;
        let targets = chosen.iter().filter_map(|it| {
            let (by, within) = it.trigger?;
            let within = within.filter(|_| by == *source)?;
            Some((executed_of(cost, within), *ids.get(&it.thread.id)?))
        });
        let mut targets: Vec<(Span, TaskId)> = targets.collect();
        if targets.is_empty() {
            continue;
        }
        targets.sort_unstable();
        let mut phases = Vec::new();
        let mut executed = Span::ZERO;
        for (at, target) in targets {
            let run = at.saturating_sub(executed);
            if !run.is_zero() {
                phases.push(Phase::Run(run));
            }
            phases.push(Phase::Trigger(target));
            executed = at;
        }
        phases.push(Phase::Run(cost.saturating_sub(executed)));
        set.tasks[id.index()].work = Work::Phases(phases);
    }
}

/// For how long a job of this cost has executed when it triggers: the same share as measured, in whole microseconds,
/// within the job.
fn executed_of(cost: Span, within: Within) -> Span {
    const STEP: u128 = 1_000;
    let (cost, part) = (
        u128::from(cost.as_ns()),
        u128::from(within.executed.as_ns()),
    );
    let at = cost * part / u128::from(within.cost.as_ns()).max(1) / STEP * STEP;
    let at = at.clamp(1, cost.saturating_sub(1).max(1));
    Span::from_ns(u64::try_from(at).unwrap_or(u64::MAX))
}

/// Gives triggered tasks the periods that follow from those of their sources, as a file that is read does. Tasks come
/// after their sources.
fn settle_periods(set: &mut TaskSet) {
    for index in 0..set.tasks.len() {
        if let Some(period) = set.triggered_period(TaskId::from_index(index)) {
            set.tasks[index].period = period;
            set.tasks[index].deadline = period;
        }
    }
}

/// The measured paths as chains, as far as their threads are tasks.
fn chains(measurement: &Measurement, ids: &BTreeMap<u32, TaskId>, set: &TaskSet) -> Vec<Chain> {
    let mut found: Vec<Chain> = Vec::new();
    for path in &measurement.paths {
        let tasks = path.threads.iter().map(|id| ids.get(id).copied());
        let Some(tasks) = tasks.collect::<Option<Vec<TaskId>>>() else {
            continue;
        };
        let name = |id: Option<&TaskId>| id.map_or("", |id| &set.tasks[id.index()].name);
        let chain = Chain {
            name: format!("{} to {}", name(tasks.first()), name(tasks.last())),
            tasks,
            reaction: None,
            age: None,
            latency: None,
        };
        if chain.is_triggered(set) {
            found.push(chain);
        }
    }
    found
}

/// Names of tasks, each unlike the others: those of the threads, and a number behind it where several have the same.
fn task_names(chosen: &[Chosen<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for it in chosen {
        let own: String = it
            .thread
            .name
            .chars()
            .filter(|it| !it.is_control())
            .collect();
        let own = match own.trim() {
            "" => "thread",
            own => own,
        };
        let mut name = own.to_owned();
        let mut number = 2;
        while names.contains(&name) || number > 2 && chosen.iter().any(|it| it.thread.name == name)
        {
            name = format!("{own}-{number}");
            number += 1;
        }
        names.push(name);
    }
    names
}

/// The name of the process with the most CPU time, launchers are not meant: that of its main thread, which is that of the program
/// if it has not given itself another one.
fn set_name(measurement: &Measurement) -> String {
    let mut executed: BTreeMap<u32, (u64, &str)> = BTreeMap::new();
    for thread in &measurement.threads {
        let (ns, name) = executed.entry(thread.process).or_default();
        *ns += thread.executed.as_ns();
        *name = &thread.process_name;
    }
    let busiest = executed
        .into_iter()
        .max_by_key(|(id, (ns, _))| (*ns, std::cmp::Reverse(*id)));
    match busiest.map_or("", |(_, (_, name))| name).trim() {
        "" => format!("process {}", measurement.process),
        name => name.to_owned(),
    }
}
