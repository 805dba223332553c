//! Families of task sets: the tables `[tasks]` and `[[family]]`.

use shiftwork_model::Span;

use super::keep_name;
use crate::error::TasksetError;
use crate::file::read_cpu_count;
use crate::generate::{Deadlines, Distribution, Options, Periods, Shape, Spread, Utilizations};
use crate::tree::{Table, Value};

/// Task sets that are drawn alike, but for their load and the number of CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// For people and curves; no other family has it.
    pub name: String,
    /// On how many CPUs; a row of cells for each.
    pub cpus: Vec<usize>,
    /// The loads; a cell for each.
    pub loads: Vec<Load>,
    /// How many CPUs are in a cluster, the last perhaps fewer; `None` if all are in one.
    pub cluster: Option<usize>,
    /// How utilizations are drawn.
    pub draw: Draw,
    /// How periods are drawn.
    pub periods: Periods,
    /// How deadlines are drawn.
    pub deadlines: Deadlines,
    /// What affinities look like.
    pub shape: Shape,
    /// No cost is below this.
    pub min_cost: Span,
    /// Whether sets are drawn again until their affinities leave room for every task.
    pub feasible: bool,
    /// Whether bounds on tardiness are looked for where tardiness is bounded, which takes longer.
    pub tardiness: bool,
}

/// A total utilization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// In thousandths of a CPU.
    Cap(u32),
    /// In thousandths of the platform.
    Share(u32),
}

/// How the utilizations of tasks are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// One by one, until the next would exceed the load.
    UntilCap(Distribution),
    /// So many, the load shared by Stafford's method.
    RandFixedSum(Count),
    /// So many, the load shared by UUniFast, drawn again if one uses more than a CPU.
    UUniFastDiscard(Count),
}

/// How many tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Tasks(usize),
    /// So many for each CPU.
    PerCpu(usize),
}

impl Load {
    /// In thousandths of a CPU, rounded down.
    pub fn cap(self, cpus: usize) -> u64 {
        match self {
            Self::Cap(thousandths) => u64::from(thousandths),
            Self::Share(thousandths) => u64::from(thousandths) * cpus as u64,
        }
    }
}

impl Family {
    /// What to draw for the cell with so many CPUs and this load.
    pub fn options(&self, cpus: usize, load: Load) -> Options {
        let total = load.cap(cpus) as f64 / 1_000.0;
        let number = |count| match count {
            Count::Tasks(tasks) => tasks,
            Count::PerCpu(tasks) => tasks * cpus,
        };
        Options {
            cpus,
            utilizations: match self.draw {
                Draw::UntilCap(distribution) => Utilizations::UntilCap {
                    distribution,
                    cap: total,
                },
                Draw::RandFixedSum(count) => Utilizations::RandFixedSum {
                    tasks: number(count),
                    total,
                },
                Draw::UUniFastDiscard(count) => Utilizations::UUniFastDiscard {
                    tasks: number(count),
                    total,
                },
            },
            periods: self.periods,
            deadlines: self.deadlines,
            shape: self.shape,
            min_cost: self.min_cost,
            feasible: self.feasible,
            ..Options::default()
        }
    }
}

/// What a family may say; what it does not say, `[tasks]` does.
const DRAW_KEYS: [&str; 15] = [
    "cpus",
    "caps",
    "loads",
    "cluster-size",
    "utilizations",
    "tasks",
    "tasks-per-cpu",
    "periods",
    "granularity",
    "spread",
    "deadlines",
    "affinities",
    "min-cost",
    "feasible",
    "tardiness",
];

/// Reads all families; without `[[family]]` there is one, called `tasks`.
pub(super) fn read(file: &Table<'_>) -> Result<Vec<Family>, TasksetError> {
    let shared = file.map("tasks", |value| value.table(&DRAW_KEYS, "a table [tasks]"))?;
    let tables = file.items("family", "a list of tables [[family]]")?;
    if tables.is_empty() {
        let Some(shared) = &shared else {
            return Err(missing(file));
        };
        let only = Keys {
            own: shared,
            shared: None,
        };
        return Ok(vec![only.family("tasks".to_owned())?]);
    }
    let mut keys = vec!["name"];
    keys.extend(DRAW_KEYS);
    let mut known = Vec::new();
    let mut families = Vec::new();
    for value in tables {
        let mut own = value.table(&keys, "a table [[family]]")?;
        let name = own.need("name", "name = \"bimodal-light\"")?;
        let text = name.name("the name of the family")?;
        keep_name(&mut known, text, &name)?;
        own.rename(format!("family `{text}`"));
        let keys = Keys {
            own: &own,
            shared: shared.as_ref(),
        };
        families.push(keys.family(text.to_owned())?);
    }
    Ok(families)
}

fn missing(file: &Table<'_>) -> TasksetError {
    TasksetError::MissingKey {
        place: file.place(),
        key: "tasks",
        within: "a study file".to_owned(),
        example: "[tasks] cpus = 4, caps = [1, 2, 3, 4], utilizations = \"uniform-medium\"",
    }
}

/// The keys of a family, and those that it shares with others.
struct Keys<'a, 't> {
    own: &'a Table<'t>,
    shared: Option<&'a Table<'t>>,
}

impl<'t> Keys<'_, 't> {
    fn get(&self, key: &str) -> Option<Value<'t>> {
        let shared = || self.shared.and_then(|shared| shared.get(key));
        self.own.get(key).or_else(shared)
    }

    fn map<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Value<'t>) -> Result<T, TasksetError>,
    ) -> Result<Option<T>, TasksetError> {
        self.get(key).map(|value| read(&value)).transpose()
    }

    fn need(&self, key: &'static str, example: &'static str) -> Result<Value<'t>, TasksetError> {
        match self.get(key) {
            Some(value) => Ok(value),
            None => self.own.need(key, example),
        }
    }

    /// The table in which one of the keys stands; the family's own goes before the shared one.
    fn holder(&self, keys: &[&str]) -> &Table<'t> {
        let has = |table: &&Table<'t>| keys.iter().any(|key| table.get(key).is_some());
        match self.shared {
            Some(shared) if !has(&self.own) && has(&shared) => shared,
            _ => self.own,
        }
    }

    fn family(&self, name: String) -> Result<Family, TasksetError> {
        let cpus = read_numbers(&self.need("cpus", "cpus = 4")?, read_cpu_count)?;
        let cluster = self.map("cluster-size", |value| {
            let most = cpus.iter().copied().min().unwrap_or(1);
            Ok(value.integer(1, most as u32)? as usize)
        })?;
        let clusters_of = cluster.unwrap_or(usize::MAX);
        let shape = self.map("affinities", |value| {
            let size = |cpus: &[usize]| clusters_of.min(cpus.iter().copied().min().unwrap_or(1));
            read_shape(value, size(&cpus), cluster.is_some())
        })?;
        Ok(Family {
            name,
            loads: self.loads()?,
            draw: self.draw()?,
            periods: self.periods()?,
            deadlines: self
                .map("deadlines", |value| value.word(&Deadlines::ALL))?
                .unwrap_or(Deadlines::Implicit),
            shape: shape.unwrap_or(Shape::Global),
            min_cost: self
                .map("min-cost", Value::positive_span)?
                .unwrap_or(Span::from_ns(1)),
            feasible: self.map("feasible", Value::boolean)?.unwrap_or(false),
            tardiness: self.map("tardiness", Value::boolean)?.unwrap_or(false),
            cpus,
            cluster,
        })
    }

    fn loads(&self) -> Result<Vec<Load>, TasksetError> {
        const WAYS: [&str; 2] = ["caps", "loads"];
        let (key, value) = self.holder(&WAYS).exactly_one(&WAYS)?;
        let load = match key {
            "caps" => Load::Cap,
            _ => Load::Share,
        };
        Ok(read_thousandths(&value)?.into_iter().map(load).collect())
    }

    fn draw(&self) -> Result<Draw, TasksetError> {
        let value = self.need("utilizations", "utilizations = \"uniform-medium\"")?;
        let words: Vec<(&'static str, Method)> = Distribution::ALL
            .iter()
            .map(|&(name, one)| (name, Method::UntilCap(one)))
            .chain([
                ("randfixedsum", Method::RandFixedSum),
                ("uunifast-discard", Method::UUniFastDiscard),
            ])
            .collect();
        Ok(match value.word(&words)? {
            Method::UntilCap(distribution) => Draw::UntilCap(distribution),
            Method::RandFixedSum => Draw::RandFixedSum(self.count()?),
            Method::UUniFastDiscard => Draw::UUniFastDiscard(self.count()?),
        })
    }

    fn count(&self) -> Result<Count, TasksetError> {
        const WAYS: [&str; 2] = ["tasks", "tasks-per-cpu"];
        let (key, value) = self.holder(&WAYS).exactly_one(&WAYS)?;
        let number = value.integer(1, TASKS_MAX)? as usize;
        Ok(match key {
            "tasks" => Count::Tasks(number),
            _ => Count::PerCpu(number),
        })
    }

    fn periods(&self) -> Result<Periods, TasksetError> {
        const BOTH: &str = "the shortest and the longest period, like [\"10ms\", \"100ms\"]";
        let usual = Periods::default();
        let both = self.map("periods", |value| match &value.list(BOTH)?[..] {
            [shortest, longest] => Ok((shortest.positive_span()?, longest.positive_span()?)),
            items => Err(value.out_of_range(format!("a list of {}", items.len()), BOTH.to_owned())),
        })?;
        let (shortest, longest) = both.unwrap_or((usual.shortest, usual.longest));
        let granularity = self.map("granularity", Value::positive_span)?;
        let spread = self.map("spread", |value| value.word(&Spread::ALL))?;
        Ok(Periods {
            shortest,
            longest,
            granularity: granularity.unwrap_or(usual.granularity),
            spread: spread.unwrap_or(usual.spread),
        })
    }
}

#[derive(Clone, Copy)]
enum Method {
    UntilCap(Distribution),
    RandFixedSum,
    UUniFastDiscard,
}

const TASKS_MAX: u32 = 100_000;

/// Reads what affinities look like; `clusters` have so many CPUs, if the file says so.
fn read_shape(
    value: &Value<'_>,
    cluster: usize,
    has_clusters: bool,
) -> Result<Shape, TasksetError> {
    let shape = value.word(&Shape::all(cluster))?;
    match shape {
        Shape::Clustered(_) | Shape::ThreeLevel(_) if !has_clusters => Err(value.out_of_range(
            value.describe(),
            "this beside `cluster-size`, which says how many CPUs are in a cluster".to_owned(),
        )),
        shape => Ok(shape),
    }
}

/// One number or a list of them.
fn read_numbers(
    value: &Value<'_>,
    read: fn(&Value<'_>) -> Result<usize, TasksetError>,
) -> Result<Vec<usize>, TasksetError> {
    if !value.is_list() {
        return Ok(vec![read(value)?]);
    }
    let items = value.list("a number or a list of numbers")?;
    if items.is_empty() {
        return Err(value.empty("one number at least"));
    }
    items.iter().map(read).collect()
}

const LOADS: &str = "loads like [1, 1.5, 2], or { from = 1, to = 32, step = 0.5 }";

/// The most cells that one family may have for one number of CPUs.
const LOADS_MAX: u32 = 10_000;

/// A list of decimal fractions, or a range with both ends.
fn read_thousandths(value: &Value<'_>) -> Result<Vec<u32>, TasksetError> {
    if value.is_table() {
        let range = value.table(&["from", "to", "step"], LOADS)?;
        let [from, to, step] = [
            range.need("from", "from = 1")?,
            range.need("to", "to = 32")?,
            range.need("step", "step = 1")?,
        ];
        let [first, last, by] = [from.thousandths()?, to.thousandths()?, step.thousandths()?];
        if first > last {
            return Err(to.out_of_range(to.describe(), "`from` or more".to_owned()));
        }
        if (last - first) / by >= LOADS_MAX {
            return Err(step.out_of_range(
                step.describe(),
                format!("a step that leaves at most {LOADS_MAX} loads"),
            ));
        }
        return Ok((first..=last).step_by(by as usize).collect());
    }
    let items = value.list(LOADS)?;
    if items.is_empty() {
        return Err(value.empty(LOADS));
    }
    items.iter().map(Value::thousandths).collect()
}
