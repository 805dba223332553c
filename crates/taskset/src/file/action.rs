//! One `[[action]]` of a task-set file: a change at a fixed time of the run.

use shiftwork_model::{Action, Change, Priority};

use super::TaskNames;
use crate::cpus::Names;
use crate::error::TasksetError;
use crate::keys::{Key, Takes, choice, may, must};
use crate::tree::Value;

pub(super) static KEYS: [Key; 11] = [
    must("at", Takes::Duration, "When it happens."),
    choice(
        "enter",
        Takes::Name,
        "A task that takes part from now on; absent before, if this is its first action.",
    ),
    choice("leave", Takes::Name, "A task that takes no part any more."),
    choice(
        "set-attr",
        Takes::Table(&ATTRIBUTE_KEYS),
        "Another cost, period or deadline.",
    ),
    choice(
        "set-affinity",
        Takes::Table(&AFFINITY_KEYS),
        "Another affinity.",
    ),
    choice(
        "set-priority",
        Takes::Table(&PRIORITY_KEYS),
        "Another priority.",
    ),
    choice(
        "move",
        Takes::Table(&MOVE_KEYS),
        "A task that goes to another cluster.",
    ),
    choice(
        "set-clusters",
        Takes::List(&Takes::Cpus, 0),
        "Other clusters.",
    ),
    choice("cpu-offline", CPU, "A CPU that goes away."),
    choice("cpu-online", CPU, "A CPU that comes back."),
    choice("set-reserve", Takes::Number(0.0, 1.0), "Another reserve."),
];

const CPU: Takes = Takes::Whole(0, shiftwork_model::CPUS_MAX as u32 - 1);

static ATTRIBUTE_KEYS: [Key; 4] = [
    must("task", Takes::Name, "The task."),
    may("cost", Takes::Duration, "Its cost from now on."),
    may("period", Takes::Duration, "Its period from now on."),
    may("deadline", Takes::Duration, "Its deadline from now on."),
];

/// The keys of `set-affinity`, here and in scenarios.
pub(crate) static AFFINITY_KEYS: [Key; 2] = [
    must("task", Takes::Name, "The task."),
    must("to", Takes::Cpus, "The CPUs that it may use from now on."),
];

/// The keys of `set-priority`, here and in scenarios.
pub(crate) static PRIORITY_KEYS: [Key; 2] = [
    must("task", Takes::Name, "The task."),
    must(
        "to",
        Takes::Whole(1, Priority::LEAST_URGENT.number()),
        "Its priority from now on.",
    ),
];

static MOVE_KEYS: [Key; 2] = [
    must("task", Takes::Name, "The task."),
    must(
        "cluster",
        CPU,
        "The place of its cluster in the list, from 0.",
    ),
];

/// What actions may refer to.
pub(super) struct Context<'a> {
    names: &'a Names,
    ids: &'a TaskNames<'a>,
    /// The most clusters that there ever are, of the platform and of all actions.
    clusters_max: usize,
}

impl<'a> Context<'a> {
    /// The context of all these actions.
    pub(super) fn new(names: &'a Names, ids: &'a TaskNames<'a>, items: &[Value<'_>]) -> Self {
        let later = items.iter().filter_map(|item| {
            let table = item.any_table("a table [[action]]").ok()?;
            let clusters = table.get("set-clusters")?;
            Some(clusters.list("a list").ok()?.len())
        });
        Self {
            names,
            ids,
            clusters_max: later.fold(names.platform.clusters.len().max(1), usize::max),
        }
    }

    /// Reads one action.
    pub(super) fn read(&self, value: &Value<'_>) -> Result<Action, TasksetError> {
        let mut table = value.table(&KEYS, "a table [[action]]")?;
        table.rename("an action".to_string());
        let at = table.need_map("at", "at = \"92ms\"", Value::instant);
        let change = table
            .choice(&KEYS)
            .and_then(|(key, value)| table.source().note(self.read_change(key, &value)));
        Ok(Action {
            at: at?,
            change: change?,
        })
    }

    fn read_change(&self, key: &str, value: &Value<'_>) -> Result<Change, TasksetError> {
        let task = |value: &Value<'_>| self.ids.find(value);
        Ok(match key {
            "enter" => Change::Enter(task(value)?),
            "leave" => Change::Leave(task(value)?),
            "set-attr" => self.read_attributes(value)?,
            "set-affinity" => {
                let table =
                    value.table(&AFFINITY_KEYS, "a table { task = \"T\", to = \"0-1\" }")?;
                let task = table.need_map("task", "task = \"T\"", task);
                let to = table.need_map("to", "to = \"0-1\"", |to| self.names.affinity(to));
                Change::SetAffinity(task?, to?)
            }
            "set-priority" => {
                let table = value.table(&PRIORITY_KEYS, "a table { task = \"T\", to = 3 }")?;
                let task = table.need_map("task", "task = \"T\"", task);
                let to = table.need_map("to", "to = 3", Value::priority);
                Change::SetPriority(task?, to?)
            }
            "move" => {
                let table = value.table(&MOVE_KEYS, "a table { task = \"T\", cluster = 0 }")?;
                let task = table.need_map("task", "task = \"T\"", task);
                let last = u32::try_from(self.clusters_max - 1).unwrap_or(u32::MAX);
                let cluster =
                    table.need_map("cluster", "cluster = 0", |cluster| cluster.integer(0, last));
                Change::Move(task?, cluster? as usize)
            }
            "set-clusters" => Change::SetClusters(self.names.clusters(value)?),
            "cpu-offline" => Change::CpuOffline(self.names.cpu(value)?),
            "cpu-online" => Change::CpuOnline(self.names.cpu(value)?),
            _ => Change::SetReserve(value.share()?),
        })
    }

    fn read_attributes(&self, value: &Value<'_>) -> Result<Change, TasksetError> {
        let table = value.table(&ATTRIBUTE_KEYS, "a table { task = \"T\", cost = \"1ms\" }")?;
        let task = table.need_map("task", "task = \"T\"", |task| self.ids.find(task));
        let [cost, period, deadline] =
            ["cost", "period", "deadline"].map(|key| table.map(key, Value::positive_span));
        let (task, cost, period, deadline) = (task?, cost?, period?, deadline?);
        if cost.or(period).or(deadline).is_none() {
            let misspelt = table.misspelt(&["cost", "period", "deadline"]);
            return Err(misspelt.unwrap_or_else(|| TasksetError::NotExactlyOne {
                place: table.place(),
                within: "`set-attr`".to_string(),
                found: Vec::new(),
                accepted: vec!["cost", "period", "deadline"],
            }));
        }
        Ok(Change::SetAttributes {
            task,
            cost,
            period,
            deadline,
        })
    }
}
