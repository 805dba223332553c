//! Task-set files: TOML in, a [`TaskSet`] out, and back.

pub(crate) mod action;
mod arrival;
mod chain;
mod platform;
mod resource;
pub(crate) mod task;
mod thread;
mod ticks;
mod trigger;
pub(crate) mod write;

use std::collections::BTreeMap;

use shiftwork_model::{Action, Lagging, Repairs, SchedulerOptions, TaskId, TaskSet};

use crate::cpus::Names;
use crate::error::TasksetError;
use crate::keys::{Environment, Key, Takes, may, must, words};
use crate::kind::Kind;
use crate::tree::{Source, Table, Value};

pub(crate) use platform::{SETS, read_cpu_count};
use resource::Resources;
pub use write::{Comments, write, write_with_comments};

/// The keys of a task-set file.
pub(crate) static KEYS: [Key; 7] = [
    may("name", Takes::Text, "The name of the task set."),
    must("platform", Takes::Table(&platform::KEYS), "The machine."),
    may(
        "scheduler",
        Takes::Table(&SCHEDULER_KEYS),
        "How it is scheduled, where the command line says nothing else.",
    ),
    may(
        "resource",
        Takes::List(&Takes::Table(&resource::KEYS), 0),
        "Mutexes that tasks lock.",
    ),
    may(
        "task",
        Takes::List(&Takes::Table(&task::KEYS), 0),
        "The tasks.",
    ),
    may(
        "chain",
        Takes::List(&Takes::Table(&chain::KEYS), 0),
        "Cause-effect chains: tasks that pass data on, one to the next.",
    ),
    may(
        "action",
        Takes::List(&Takes::Table(&action::KEYS), 0),
        "Changes at fixed times, at one instant in the order of the file.",
    ),
];

static SCHEDULER_KEYS: [Key; 8] = [
    may(
        "policy",
        Takes::Name,
        "The policy: a name that `shiftwork policies` lists.",
    ),
    may(
        "reserve",
        Takes::Number(0.0, 1.0),
        "Share of each CPU that is kept for everything that is not real-time; default 0.05.",
    ),
    may(
        "reserve-server",
        Takes::Boolean,
        "Whether simulations take that share away; default false.",
    ),
    may(
        "quantum",
        Takes::Duration,
        "The quantum of quantum-driven policies.",
    ),
    may(
        "early-release",
        Takes::Boolean,
        "Under pd2 and its relatives: whether a job may run ahead of its windows; default false.",
    ),
    may(
        "overheads",
        Takes::Name,
        "The path of an overhead file, relative to this file.",
    ),
    may(
        "repairs",
        Takes::List(&Takes::Words(|| Repairs::NAMES.to_vec()), 0),
        "Under dl-sp: which of the four repairs; default all.",
    ),
    may(
        "lagging",
        Takes::Words(|| words(&LAGGING)),
        "Under dl-*: the deadline of a server that is replenished over a period late; default `grid`.",
    ),
];

const LAGGING: [(&str, Lagging); 2] = [("grid", Lagging::Grid), ("reset", Lagging::Reset)];

/// Reads a task-set file. `cpus = "host"` is answered by this machine, and any policy may be named.
///
/// # Errors
/// Everything that is wrong, each mistake with its place and with what would be accepted.
pub fn read(text: &str) -> Result<TaskSet, TasksetError> {
    read_in(text, &Environment::default())
}

/// As [`read`], with what the file refers to answered by `environment`.
///
/// # Errors
/// As [`read`].
pub fn read_in(text: &str, environment: &Environment<'_>) -> Result<TaskSet, TasksetError> {
    let source = Source::parse(text)?;
    source.finish(read_file(&source, environment))
}

fn read_file<'t>(
    source: &'t Source<'t>,
    environment: &Environment<'_>,
) -> Result<TaskSet, TasksetError> {
    let file = source.root(Kind::TaskSet, &KEYS)?;
    let name = file.map("name", |value| value.text("the name of the task set"));
    let names = platform::read(&file, environment.sysfs);
    let scheduler = file.map("scheduler", |value| read_scheduler(value, environment));
    let resources = Resources::read(&file, &names);
    let mut ids = TaskNames::new();
    let named = file.each("task", "a list of tables [[task]]", |item| {
        task::read_name(item, &mut ids)
    });
    let tasks = named.and_then(|named| {
        let context = task::Context {
            names: &names,
            resources: &resources,
            ids: &ids,
        };
        let read = named
            .into_iter()
            .map(|named| source.note(task::read(named, context)));
        let read: Vec<_> = read.collect();
        read.into_iter().collect::<Result<Vec<_>, _>>()
    });
    let chains = chain::read_all(&file, &ids);
    let actions = read_actions(&file, &names, &ids);
    ticks::check(&file, names.platform.tick_unit);
    let mut set = TaskSet {
        name: name?.unwrap_or_default().to_string(),
        scheduler: scheduler?.unwrap_or_default(),
        tasks: tasks?,
        resources: resources.all,
        chains: chains?,
        actions: actions?,
        platform: names.platform,
    };
    trigger::settle(&file, &mut set);
    arrival::check(&file, &set, &ids);
    chain::check(&file, &set);
    resource::check(&file, &set);
    Ok(set)
}

/// The names of tasks, for what refers to them.
pub(crate) struct TaskNames<'t> {
    known: BTreeMap<&'t str, (TaskId, Value<'t>)>,
    in_order: Vec<&'t str>,
    /// The mistake in the first name that could not be read: what seems unknown may be that task.
    unsure: Option<TasksetError>,
}

impl<'t> TaskNames<'t> {
    /// No task yet.
    pub(crate) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            in_order: Vec::new(),
            unsure: None,
        }
    }

    /// Adds the next task, whose name the table has under `name`; `example` shows one.
    pub(crate) fn add(
        &mut self,
        table: &Table<'t>,
        example: &'static str,
    ) -> Result<&'t str, TasksetError> {
        let name = table.need_map("name", example, |value| {
            let name = value.name("a name that no other task has")?;
            if let Some((_, first)) = self.known.get(name) {
                return Err(TasksetError::DuplicateTask {
                    place: value.place(),
                    task: name.to_string(),
                    first: first.place(),
                });
            }
            let id = TaskId::from_index(self.in_order.len());
            self.known.insert(name, (id, value.clone()));
            self.in_order.push(name);
            Ok(name)
        });
        match &name {
            Ok(_) | Err(TasksetError::DuplicateTask { .. }) => {}
            Err(mistake) => drop(self.unsure.get_or_insert_with(|| mistake.clone())),
        }
        name
    }

    /// The task that `value` names.
    pub(crate) fn find(&self, value: &Value<'_>) -> Result<TaskId, TasksetError> {
        let name = value.text("the name of a task")?;
        let known = self.known.get(name);
        let unknown = || TasksetError::UnknownTask {
            place: value.place(),
            key: value.key(),
            task: name.to_string(),
            known: self
                .in_order
                .iter()
                .map(|name| (*name).to_string())
                .collect(),
        };
        known
            .map(|(id, _)| *id)
            .ok_or_else(|| self.unsure.clone().unwrap_or_else(unknown))
    }
}

/// Reads `[scheduler]`.
fn read_scheduler(
    value: &Value<'_>,
    environment: &Environment<'_>,
) -> Result<SchedulerOptions, TasksetError> {
    let mut table = value.table(&SCHEDULER_KEYS, "a table [scheduler]")?;
    table.rename("[scheduler]".to_string());
    let default = SchedulerOptions::default();
    let policy = table.map("policy", |value| {
        value.policy("the name of a policy, like \"hpa-edf\"", environment)
    });
    let reserve = table.map("reserve", Value::share);
    let reserve_server = table.map("reserve-server", Value::boolean);
    let quantum = table.map("quantum", Value::positive_span);
    let early_release = table.map("early-release", Value::boolean);
    let overheads = table.map("overheads", |value| {
        value.name("the path of an overhead file")
    });
    let repairs = table.map("repairs", read_repairs);
    let lagging = table.map("lagging", |value| value.word(&LAGGING));
    Ok(SchedulerOptions {
        policy: policy?.map(str::to_string),
        reserve: reserve?.unwrap_or(default.reserve),
        reserve_server: reserve_server?.unwrap_or(default.reserve_server),
        quantum: quantum?,
        early_release: early_release?.unwrap_or(default.early_release),
        overheads: overheads?.map(str::to_string),
        repairs: repairs?,
        lagging: lagging?.unwrap_or(default.lagging),
    })
}

/// Reads `repairs`, a list of names.
fn read_repairs(value: &Value<'_>) -> Result<Repairs, TasksetError> {
    let names = Repairs::NAMES.map(|name| (name, name));
    let repairs = value.each("a list of names", |item| item.word(&names))?;
    Ok(repairs
        .into_iter()
        .fold(Repairs::NONE, |all, name| all.with(name).unwrap_or(all)))
}

/// Reads every `[[action]]`, and puts them in the order in which they happen.
fn read_actions(
    file: &Table<'_>,
    names: &Names,
    ids: &TaskNames<'_>,
) -> Result<Vec<Action>, TasksetError> {
    let accepted = "a list of tables [[action]]";
    let Some(value) = file.get("action") else {
        return Ok(Vec::new());
    };
    let items = file.source().note(value.list(accepted))?;
    let context = action::Context::new(names, ids, &items);
    let mut actions = value.each(accepted, |item| context.read(item))?;
    actions.sort_by_key(|action| action.at);
    Ok(actions)
}
