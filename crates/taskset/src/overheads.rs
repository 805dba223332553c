//! Overhead files: what scheduling costs, per policy and use.

use std::collections::BTreeMap;
use std::fmt::Write;

use shiftwork_model::{LinearCost, Overheads};

use crate::error::TasksetError;
use crate::file::write::{key, line, quoted};
use crate::tree::{Table, Value, parse};

/// What overheads are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// The worst that was seen: for hard guarantees.
    Worst,
    /// The average: for soft guarantees.
    Average,
}

/// What an overhead file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverheadFile {
    /// For people.
    pub name: String,
    /// The overheads by use and by the policy's name in lower case.
    pub tables: BTreeMap<(Use, String), Overheads>,
}

impl OverheadFile {
    /// The overheads of a policy (in any case) for a use; `None` if the file has none. Those of `g-edf` are
    /// also those of its baseline implementation `CEm`, if that has no table of its own; the other
    /// implementations differ from it in nothing but overheads.
    pub fn find(&self, purpose: Use, policy: &str) -> Option<&Overheads> {
        let of = |name: &str| self.tables.get(&(purpose, name.to_owned()));
        let policy = policy.to_ascii_lowercase();
        of(&policy).or_else(|| of(BASELINE.1).filter(|_| policy == BASELINE.0))
    }
}

/// The implementation that was measured under the name of its policy (Brandenburg and Anderson, RTSS 2009).
const BASELINE: (&str, &str) = ("cem", "g-edf");

const KEYS: [&str; 9] = [
    "release",
    "schedule",
    "switch",
    "tick",
    "ipi",
    "enqueue",
    "dequeue",
    "preemption",
    "migration",
];

/// Reads an overhead file.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub fn read(text: &str) -> Result<OverheadFile, TasksetError> {
    let tree = parse(text)?;
    let keys = ["name", "worst", "average"];
    let file = Table::root(text, &tree, "an overhead file", &keys)?;
    let name = file.map("name", |value| value.text("the name of the machine"))?;
    let mut tables = BTreeMap::new();
    for (key, purpose) in [("worst", Use::Worst), ("average", Use::Average)] {
        let Some(policies) = file.get(key) else {
            continue;
        };
        let policies = policies.any_table("a table per policy, like [worst.g-edf]")?;
        for entry in policies.entries() {
            let policy = entry.key().to_ascii_lowercase();
            let overheads = read_overheads(&entry)?;
            if tables.insert((purpose, policy), overheads).is_some() {
                return Err(entry.out_of_range(
                    "there already in another case".to_string(),
                    "each policy once per use".to_string(),
                ));
            }
        }
    }
    Ok(OverheadFile {
        name: name.unwrap_or_default().to_string(),
        tables,
    })
}

/// The overheads as a file of which [`read`] makes the same. Costs that are nothing are left out.
pub fn write(file: &OverheadFile) -> String {
    let mut out = String::new();
    if !file.name.is_empty() {
        line(&mut out, "name", &quoted(&file.name));
    }
    for ((purpose, policy), overheads) in &file.tables {
        let purpose = match purpose {
            Use::Worst => "worst",
            Use::Average => "average",
        };
        writeln!(out, "\n[{purpose}.{}]", key(policy)).expect("a string takes any text");
        write_overheads(&mut out, overheads);
    }
    out
}

fn write_overheads(out: &mut String, of: &Overheads) {
    let [release, schedule, switch, tick, ipi, enqueue, dequeue, ..] = KEYS;
    for (key, cost) in [
        (release, of.release),
        (schedule, of.schedule),
        (switch, of.switch),
        (tick, of.tick),
        (ipi, of.ipi),
        (enqueue, of.enqueue),
        (dequeue, of.dequeue),
    ] {
        if cost != LinearCost::default() {
            line(out, key, &cost_text(&cost));
        }
    }
    let [.., preemption, migration] = KEYS;
    for (key, costs) in [(preemption, &of.preemption), (migration, &of.migration)] {
        if !costs.is_empty() {
            let items: Vec<String> = costs.iter().map(cost_text).collect();
            line(out, key, &format!("[{}]", items.join(", ")));
        }
    }
}

fn cost_text(cost: &LinearCost) -> String {
    match cost.per_task.is_zero() {
        true => format!("\"{}\"", cost.base),
        false => format!(
            "{{ base = \"{}\", per-task = \"{}\" }}",
            cost.base, cost.per_task
        ),
    }
}

fn read_overheads(value: &Value<'_>) -> Result<Overheads, TasksetError> {
    let table = value.table(&KEYS, "a table like [worst.g-edf]")?;
    let cost = |key| Ok(table.map(key, read_cost)?.unwrap_or_default());
    let by_distance = |key| Ok(table.map(key, read_costs)?.unwrap_or_default());
    Ok(Overheads {
        release: cost("release")?,
        schedule: cost("schedule")?,
        switch: cost("switch")?,
        tick: cost("tick")?,
        ipi: cost("ipi")?,
        enqueue: cost("enqueue")?,
        dequeue: cost("dequeue")?,
        preemption: by_distance("preemption")?,
        migration: by_distance("migration")?,
    })
}

const COST: &str =
    "a duration like \"5us\" or a table like { base = \"5us\", per-task = \"26ns\" }";

/// Reads a constant or linear cost.
fn read_cost(value: &Value<'_>) -> Result<LinearCost, TasksetError> {
    if !value.is_table() {
        let base = value.span();
        let constant = |base| LinearCost {
            base,
            ..LinearCost::default()
        };
        return match base {
            Err(TasksetError::WrongKind { .. }) => Err(value.wrong(COST)),
            other => other.map(constant),
        };
    }
    let keys = ["base", "per-task"];
    let table = value.table(&keys, COST)?;
    let (base, per_task) = (
        table.map("base", Value::span)?,
        table.map("per-task", Value::span)?,
    );
    if base.or(per_task).is_none() {
        return Err(value.empty(COST));
    }
    Ok(LinearCost {
        base: base.unwrap_or_default(),
        per_task: per_task.unwrap_or_default(),
    })
}

/// Reads one cost for every cache distance, or one each.
fn read_costs(value: &Value<'_>) -> Result<Vec<LinearCost>, TasksetError> {
    if !value.is_list() {
        return Ok(vec![read_cost(value)?]);
    }
    let items = value.list(COST)?;
    if items.is_empty() {
        return Err(value.empty("a cost for each cache distance, the nearest first"));
    }
    items.iter().map(read_cost).collect()
}
