//! Overhead files: what scheduling costs, per policy and use.

use std::collections::BTreeMap;
use std::fmt::Write;

use shiftwork_model::{LinearCost, Overheads};

use crate::error::TasksetError;
use crate::file::write::{key, line, quoted};
use crate::keys::{Key, Takes, may};
use crate::kind::Kind;
use crate::tree::{Source, Value};

/// What overheads are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// The worst that was seen: for hard guarantees.
    Worst,
    /// The average: for soft guarantees.
    Average,
}

impl Use {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Worst, Self::Average];

    /// The name in files and JSON: `worst` or `average`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst",
            Self::Average => "average",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
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

/// The keys of an overhead file.
pub(crate) static FILE_KEYS: [Key; 3] = [
    may(
        "name",
        Takes::Text,
        "The machine on which this was measured.",
    ),
    may(
        "worst",
        BY_POLICY,
        "By policy: the worst that was measured, for hard deadlines.",
    ),
    may(
        "average",
        BY_POLICY,
        "By policy: the average, for soft deadlines.",
    ),
];

const BY_POLICY: Takes = Takes::Named(&Takes::Table(&KEYS));

static KEYS: [Key; 9] = [
    may("release", COST_TAKES, "Handling the release of a job."),
    may("schedule", COST_TAKES, "Deciding what to run."),
    may("switch", COST_TAKES, "From one job to another."),
    may("tick", COST_TAKES, "A timer tick."),
    may(
        "ipi",
        COST_TAKES,
        "Until another CPU that is to reschedule does so.",
    ),
    may(
        "enqueue",
        COST_TAKES,
        "How long a release keeps the ready queue locked.",
    ),
    may(
        "dequeue",
        COST_TAKES,
        "How long taking out a job keeps the ready queue locked.",
    ),
    may(
        "preemption",
        BY_DISTANCE,
        "Refilling caches where a preempted job goes on.",
    ),
    may(
        "migration",
        BY_DISTANCE,
        "The same on another CPU, by cache distance, the nearest first.",
    ),
];

const COST_TAKES: Takes = Takes::Either(&[Takes::Duration, Takes::Table(&COST_KEYS)]);

const BY_DISTANCE: Takes = Takes::Either(&[
    Takes::Duration,
    Takes::Table(&COST_KEYS),
    Takes::List(&COST_TAKES, 1),
]);

static COST_KEYS: [Key; 2] = [
    may("base", Takes::Duration, "However many tasks there are."),
    may("per-task", Takes::Duration, "For each task."),
];

/// Reads an overhead file.
///
/// # Errors
/// Everything that is wrong, each mistake with its place and with what would be accepted.
pub fn read(text: &str) -> Result<OverheadFile, TasksetError> {
    let source = Source::parse(text)?;
    source.finish(read_file(&source))
}

fn read_file<'t>(source: &'t Source<'t>) -> Result<OverheadFile, TasksetError> {
    let file = source.root(Kind::Overheads, &FILE_KEYS)?;
    let name = file.map("name", |value| value.text("the name of the machine"));
    let mut tables = BTreeMap::new();
    let uses = Use::ALL.map(|purpose| {
        file.map(purpose.name(), |policies| {
            read_use(policies, purpose, &mut tables)
        })
    });
    for read in uses {
        read?;
    }
    Ok(OverheadFile {
        name: name?.unwrap_or_default().to_string(),
        tables,
    })
}

/// Reads the overheads of all policies for one use.
fn read_use(
    policies: &Value<'_>,
    purpose: Use,
    tables: &mut BTreeMap<(Use, String), Overheads>,
) -> Result<(), TasksetError> {
    let policies = policies.any_table("a table per policy, like [worst.g-edf]")?;
    let mut first = Ok(());
    for entry in policies.entries() {
        let policy = entry.key().to_ascii_lowercase();
        let read = read_overheads(&entry).and_then(|overheads| {
            match tables.insert((purpose, policy), overheads) {
                None => Ok(()),
                Some(_) => Err(entry.out_of_range(
                    "there already in another case".to_string(),
                    "each policy once per use".to_string(),
                )),
            }
        });
        first = first.and(policies.source().note(read));
    }
    first
}

/// The overheads as a file of which [`read`] makes the same. Costs that are nothing are left out.
pub fn write(file: &OverheadFile) -> String {
    let mut out = String::new();
    if !file.name.is_empty() {
        line(&mut out, "name", &quoted(&file.name));
    }
    for ((purpose, policy), overheads) in &file.tables {
        writeln!(out, "\n[{}.{}]", purpose.name(), key(policy)).expect("a string takes any text");
        write_overheads(&mut out, overheads);
    }
    out
}

fn write_overheads(out: &mut String, of: &Overheads) {
    for (key, cost) in [
        ("release", of.release),
        ("schedule", of.schedule),
        ("switch", of.switch),
        ("tick", of.tick),
        ("ipi", of.ipi),
        ("enqueue", of.enqueue),
        ("dequeue", of.dequeue),
    ] {
        if cost != LinearCost::default() {
            line(out, key, &cost_text(&cost));
        }
    }
    for (key, costs) in [("preemption", &of.preemption), ("migration", &of.migration)] {
        if !costs.is_empty() {
            let items: Vec<String> = costs.iter().map(cost_text).collect();
            line(out, key, &format!("[{}]", items.join(", ")));
        }
    }
}

fn cost_text(cost: &LinearCost) -> String {
    let base = cost.base.in_whole_units();
    match cost.per_task.is_zero() {
        true => format!("\"{base}\""),
        false => format!(
            "{{ base = \"{base}\", per-task = \"{}\" }}",
            cost.per_task.in_whole_units()
        ),
    }
}

fn read_overheads(value: &Value<'_>) -> Result<Overheads, TasksetError> {
    let table = value.table(&KEYS, "a table like [worst.g-edf]")?;
    let cost = |key| Ok(table.map(key, read_cost)?.unwrap_or_default());
    let by_distance = |key| Ok(table.map(key, read_costs)?.unwrap_or_default());
    let [release, schedule, switch, tick, ipi, enqueue, dequeue] = [
        "release", "schedule", "switch", "tick", "ipi", "enqueue", "dequeue",
    ]
    .map(cost);
    let [preemption, migration] = ["preemption", "migration"].map(by_distance);
    Ok(Overheads {
        release: release?,
        schedule: schedule?,
        switch: switch?,
        tick: tick?,
        ipi: ipi?,
        enqueue: enqueue?,
        dequeue: dequeue?,
        preemption: preemption?,
        migration: migration?,
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
    let table = value.table(&COST_KEYS, COST)?;
    let [base, per_task] = ["base", "per-task"].map(|key| table.map(key, Value::span));
    let (base, per_task) = (base?, per_task?);
    if base.or(per_task).is_none() {
        let misspelt = table.misspelt(&["base", "per-task"]);
        return Err(misspelt.unwrap_or_else(|| value.empty(COST)));
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
    match value.each(COST, read_cost)? {
        costs if costs.is_empty() => {
            Err(value.empty("a cost for each cache distance, the nearest first"))
        }
        costs => Ok(costs),
    }
}
