//! Families of task sets: the tables `[tasks]` and `[[family]]`.

use shiftwork_model::{CPUS_MAX, Span};

use super::keep_name;
use crate::error::TasksetError;
use crate::file::read_cpu_count;
use crate::generate::{Deadlines, Distribution, Options, Periods, Shape, Spread, Utilizations};
use crate::keys::{Key, Takes, may, must, words};
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

/// The keys of `[tasks]`.
pub(super) static SHARED_KEYS: [Key; 15] = draw_keys();

/// The keys of a family; what it does not say, `[tasks]` does.
pub(super) static KEYS: [Key; 16] = {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = draw_keys();
    let name = must(
        "name",
        Takes::Name,
        "What to call the family; no other has this name.",
    );
    [name, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o]
};

const fn draw_keys() -> [Key; 15] {
    [
        may(
            "cpus",
            NUMBERS,
            "How many CPUs there are; a row of cells for each.",
        ),
        may(
            "caps",
            LOADS_TAKES,
            "Total utilizations in CPUs, a cell for each; or `loads`.",
        ),
        may(
            "loads",
            LOADS_TAKES,
            "Total utilizations as shares of the platform, a cell for each; or `caps`.",
        ),
        may(
            "cluster-size",
            Takes::Whole(1, CPUS_MAX as u32),
            "How many CPUs are in a cluster; default all.",
        ),
        may(
            "utilizations",
            Takes::Words(|| words(&methods())),
            "How the utilizations of tasks are drawn.",
        ),
        may(
            "tasks",
            Takes::Whole(1, TASKS_MAX),
            "How many tasks, where the load is shared among them.",
        ),
        may(
            "tasks-per-cpu",
            Takes::Whole(1, TASKS_MAX),
            "The same, for each CPU.",
        ),
        may(
            "periods",
            Takes::List(&Takes::Duration, 2),
            "The shortest and the longest period.",
        ),
        may(
            "granularity",
            Takes::Duration,
            "Periods are multiples of it.",
        ),
        may(
            "spread",
            Takes::Words(|| words(&Spread::ALL)),
            "How periods are distributed.",
        ),
        may(
            "deadlines",
            Takes::Words(|| words(&Deadlines::ALL)),
            "How deadlines are drawn; default `implicit`.",
        ),
        may(
            "affinities",
            Takes::Words(|| words(&Shape::all(1))),
            "What affinities look like; default `global`.",
        ),
        may(
            "min-cost",
            Takes::Duration,
            "No cost is below it; default 1ns.",
        ),
        may(
            "feasible",
            Takes::Boolean,
            "Whether sets are drawn again until affinities leave room for every task; default false.",
        ),
        may(
            "tardiness",
            Takes::Boolean,
            "Whether bounds on tardiness are looked for; default false.",
        ),
    ]
}

const NUMBERS: Takes = Takes::Either(&[
    Takes::Whole(1, CPUS_MAX as u32),
    Takes::List(&Takes::Whole(1, CPUS_MAX as u32), 1),
]);

const LOADS_TAKES: Takes = Takes::Either(&[Takes::List(&LOAD, 1), Takes::Table(&RANGE_KEYS)]);

const LOAD: Takes = Takes::Number(0.0, 1e6);

static RANGE_KEYS: [Key; 3] = [
    must("from", LOAD, "The first."),
    must("to", LOAD, "The last, if a step leads to it."),
    must("step", LOAD, "From one to the next."),
];

/// Reads all families; without `[[family]]` there is one, called `tasks`.
pub(super) fn read(file: &Table<'_>) -> Result<Vec<Family>, TasksetError> {
    let shared = file.map("tasks", |value| {
        value.table(&SHARED_KEYS, "a table [tasks]")
    });
    if !has_families(file) {
        let Some(shared) = shared? else {
            return file.source().note(Err(missing(file)));
        };
        let only = Keys {
            own: &shared,
            shared: None,
        };
        return Ok(vec![only.family("tasks".to_owned())?]);
    }
    // Without what is shared, every family would seem to lack keys.
    let shared = shared?;
    let mut known = Vec::new();
    file.each("family", "a list of tables [[family]]", |value| {
        let mut own = value.table(&KEYS, "a table [[family]]")?;
        let name = own.need_map("name", "name = \"bimodal-light\"", |name| {
            let text = name.name("the name of the family")?;
            keep_name(&mut known, text, name)?;
            Ok(text)
        });
        if let Ok(name) = name {
            own.rename(format!("family `{name}`"));
        }
        let keys = Keys {
            own: &own,
            shared: shared.as_ref(),
        };
        let family = keys.family(String::new());
        Ok(Family {
            name: name?.to_owned(),
            ..family?
        })
    })
}

/// Whether the file has a table [[family]], or something else under that key.
fn has_families(file: &Table<'_>) -> bool {
    let families = file.get("family").map(|value| value.list("a list"));
    families.is_some_and(|families| families.map_or(true, |families| !families.is_empty()))
}

/// The names of all families; the mistake in the first that has none that can be read.
pub(super) fn names<'t>(file: &Table<'t>) -> Result<Vec<&'t str>, TasksetError> {
    let Some(families) = file.get("family").filter(|_| has_families(file)) else {
        return Ok(vec!["tasks"]);
    };
    let accepted = "the name of the family";
    let families = families.list("a list of tables [[family]]")?;
    let name = |family: &Value<'t>| {
        let table = family.any_table("a table [[family]]")?;
        table
            .need("name", "name = \"bimodal-light\"")?
            .name(accepted)
    };
    families.iter().map(name).collect()
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
    fn map<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Value<'t>) -> Result<T, TasksetError>,
    ) -> Result<Option<T>, TasksetError> {
        self.holder(&[key]).map(key, read)
    }

    fn need_map<T>(
        &self,
        key: &'static str,
        example: &'static str,
        read: impl FnOnce(&Value<'t>) -> Result<T, TasksetError>,
    ) -> Result<T, TasksetError> {
        self.holder(&[key]).need_map(key, example, read)
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
        let cpus = self.need_map("cpus", "cpus = 4", |value| {
            read_numbers(value, read_cpu_count)
        });
        let fewest = match &cpus {
            Ok(cpus) => cpus.iter().copied().min().unwrap_or(1),
            Err(_) => CPUS_MAX,
        };
        let cluster = self.map("cluster-size", |value| {
            Ok(value.integer(1, fewest as u32)? as usize)
        });
        let size = cluster.clone();
        let shape = self.map("affinities", |value| {
            let size = size?;
            read_shape(value, size.unwrap_or(fewest), size.is_some())
        });
        let (loads, draw, periods) = (self.loads(fewest), self.draw(), self.periods());
        let deadlines = self.map("deadlines", |value| value.word(&Deadlines::ALL));
        let min_cost = self.map("min-cost", Value::positive_span);
        let [feasible, tardiness] =
            ["feasible", "tardiness"].map(|key| self.map(key, Value::boolean));
        Ok(Family {
            name,
            loads: loads?,
            draw: draw?,
            periods: periods?,
            deadlines: deadlines?.unwrap_or(Deadlines::Implicit),
            shape: shape?.unwrap_or(Shape::Global),
            min_cost: min_cost?.unwrap_or(Span::from_ns(1)),
            feasible: feasible?.unwrap_or(false),
            tardiness: tardiness?.unwrap_or(false),
            cpus: cpus?,
            cluster: cluster?,
        })
    }

    /// The loads, none of which is more than so many CPUs can bear.
    fn loads(&self, cpus: usize) -> Result<Vec<Load>, TasksetError> {
        const WAYS: [&str; 2] = ["caps", "loads"];
        let (key, value) = self.holder(&WAYS).exactly_one(&WAYS)?;
        let load = match key {
            "caps" => Load::Cap,
            _ => Load::Share,
        };
        let read = self.own.source().note(read_thousandths(&value));
        let loads: Vec<Load> = read?.into_iter().map(load).collect();
        let most = cpus as u64 * 1_000;
        match loads.iter().find(|load| load.cap(cpus) > most) {
            None => Ok(loads),
            Some(above) => self.own.source().note(Err(value.out_of_range(
                format!(
                    "a utilization of {} on {cpus} CPUs",
                    above.cap(cpus) as f64 / 1_000.0
                ),
                match key {
                    "caps" => format!("at most {cpus}, the CPUs of the smallest platform"),
                    _ => "shares of the platform up to 1".to_owned(),
                },
            ))),
        }
    }

    fn draw(&self) -> Result<Draw, TasksetError> {
        let example = "utilizations = \"uniform-medium\"";
        let method = self.need_map("utilizations", example, |value| value.word(&methods()));
        Ok(match method? {
            Method::UntilCap(distribution) => Draw::UntilCap(distribution),
            Method::RandFixedSum => Draw::RandFixedSum(self.count()?),
            Method::UUniFastDiscard => Draw::UUniFastDiscard(self.count()?),
        })
    }

    fn count(&self) -> Result<Count, TasksetError> {
        const WAYS: [&str; 2] = ["tasks", "tasks-per-cpu"];
        let (key, value) = self.holder(&WAYS).exactly_one(&WAYS)?;
        let number = self.own.source().note(value.integer(1, TASKS_MAX))? as usize;
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
        });
        let granularity = self.map("granularity", Value::positive_span);
        let spread = self.map("spread", |value| value.word(&Spread::ALL));
        let (shortest, longest) = both?.unwrap_or((usual.shortest, usual.longest));
        Ok(Periods {
            shortest,
            longest,
            granularity: granularity?.unwrap_or(usual.granularity),
            spread: spread?.unwrap_or(usual.spread),
        })
    }
}

#[derive(Clone, Copy)]
enum Method {
    UntilCap(Distribution),
    RandFixedSum,
    UUniFastDiscard,
}

/// The ways to draw utilizations, by name.
fn methods() -> Vec<(&'static str, Method)> {
    let one_by_one = Distribution::ALL.iter();
    one_by_one
        .map(|&(name, one)| (name, Method::UntilCap(one)))
        .chain([
            ("randfixedsum", Method::RandFixedSum),
            ("uunifast-discard", Method::UUniFastDiscard),
        ])
        .collect()
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
    match value.each("a number or a list of numbers", read)? {
        items if items.is_empty() => Err(value.empty("one number at least")),
        items => Ok(items),
    }
}

const LOADS: &str = "loads like [1, 1.5, 2], or { from = 1, to = 32, step = 0.5 }";

/// The most cells that one family may have for one number of CPUs.
const LOADS_MAX: u32 = 10_000;

/// A list of decimal fractions, or a range with both ends.
fn read_thousandths(value: &Value<'_>) -> Result<Vec<u32>, TasksetError> {
    if value.is_table() {
        let range = value.table(&RANGE_KEYS, LOADS)?;
        let [from, to, step] = [
            range.need("from", "from = 1"),
            range.need("to", "to = 32"),
            range.need("step", "step = 1"),
        ];
        let (from, to, step) = (from?, to?, step?);
        let [first, last, by] =
            [&from, &to, &step].map(|value| range.source().note(value.thousandths()));
        let (first, last, by) = (first?, last?, by?);
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
    match value.each(LOADS, Value::thousandths)? {
        items if items.is_empty() => Err(value.empty(LOADS)),
        items => Ok(items),
    }
}
