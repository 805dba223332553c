//! One `[[action]]` of a task-set file: a change at a fixed time of the run.

use shiftwork_model::{Action, Change, Platform};

use super::TaskNames;
use crate::cpus::Names;
use crate::error::TasksetError;
use crate::tree::Value;

const CHANGES: [&str; 10] = [
    "enter",
    "leave",
    "set-attr",
    "set-affinity",
    "set-priority",
    "move",
    "set-clusters",
    "cpu-offline",
    "cpu-online",
    "set-reserve",
];

const KEYS: [&str; 11] = [
    "at",
    "enter",
    "leave",
    "set-attr",
    "set-affinity",
    "set-priority",
    "move",
    "set-clusters",
    "cpu-offline",
    "cpu-online",
    "set-reserve",
];

/// What actions may refer to.
pub(super) struct Context<'a> {
    names: Names<'a>,
    ids: &'a TaskNames<'a>,
    /// The most clusters that there ever are, of the platform and of all actions.
    clusters_max: usize,
}

impl<'a> Context<'a> {
    /// The context of all these actions.
    pub(super) fn new(platform: &'a Platform, ids: &'a TaskNames<'a>, items: &[Value<'_>]) -> Self {
        let later = items.iter().filter_map(|item| {
            let table = item.any_table("a table [[action]]").ok()?;
            let clusters = table.get("set-clusters")?;
            Some(clusters.list("a list").ok()?.len())
        });
        Self {
            names: Names {
                cpus: platform.cpus,
                sets: &platform.sets,
            },
            ids,
            clusters_max: later.fold(platform.clusters.len().max(1), usize::max),
        }
    }

    /// Reads one action.
    pub(super) fn read(&self, value: &Value<'_>) -> Result<Action, TasksetError> {
        let mut table = value.table(&KEYS, "a table [[action]]")?;
        table.rename("an action".to_string());
        let at = table.need("at", "at = \"92ms\"")?.instant()?;
        let (key, value) = table.exactly_one(&CHANGES)?;
        let change = self.read_change(key, &value)?;
        Ok(Action { at, change })
    }

    fn read_change(&self, key: &str, value: &Value<'_>) -> Result<Change, TasksetError> {
        Ok(match key {
            "enter" => Change::Enter(self.ids.find(value)?),
            "leave" => Change::Leave(self.ids.find(value)?),
            "set-attr" => self.read_attributes(value)?,
            "set-affinity" => {
                let table =
                    value.table(&["task", "to"], "a table { task = \"T\", to = \"0-1\" }")?;
                let task = self.ids.find(&table.need("task", "task = \"T\"")?)?;
                let to = self.names.affinity(&table.need("to", "to = \"0-1\"")?)?;
                Change::SetAffinity(task, to)
            }
            "set-priority" => {
                let table = value.table(&["task", "to"], "a table { task = \"T\", to = 3 }")?;
                let task = self.ids.find(&table.need("task", "task = \"T\"")?)?;
                Change::SetPriority(task, table.need("to", "to = 3")?.priority()?)
            }
            "move" => {
                let keys = ["task", "cluster"];
                let table = value.table(&keys, "a table { task = \"T\", cluster = 0 }")?;
                let task = self.ids.find(&table.need("task", "task = \"T\"")?)?;
                let last = u32::try_from(self.clusters_max - 1).unwrap_or(u32::MAX);
                let cluster = table.need("cluster", "cluster = 0")?.integer(0, last)?;
                Change::Move(task, cluster as usize)
            }
            "set-clusters" => Change::SetClusters(self.names.clusters(value)?),
            "cpu-offline" => Change::CpuOffline(value.cpu(self.names.cpus)?),
            "cpu-online" => Change::CpuOnline(value.cpu(self.names.cpus)?),
            _ => Change::SetReserve(value.share()?),
        })
    }

    fn read_attributes(&self, value: &Value<'_>) -> Result<Change, TasksetError> {
        let keys = ["task", "cost", "period", "deadline"];
        let table = value.table(&keys, "a table { task = \"T\", cost = \"1ms\" }")?;
        let task = self.ids.find(&table.need("task", "task = \"T\"")?)?;
        let [cost, period, deadline] =
            ["cost", "period", "deadline"].map(|key| table.map(key, Value::positive_span));
        let (cost, period, deadline) = (cost?, period?, deadline?);
        if cost.or(period).or(deadline).is_none() {
            return Err(TasksetError::NotExactlyOne {
                place: table.place(),
                within: "`set-attr`".to_string(),
                found: Vec::new(),
                accepted: vec!["cost", "period", "deadline"],
            });
        }
        Ok(Change::SetAttributes {
            task,
            cost,
            period,
            deadline,
        })
    }
}
