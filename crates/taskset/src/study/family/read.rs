//! Reading families of task sets from a study file, with every mistake in them.

use shiftwork_model::{CPUS_MAX, Span};

use super::keys::{KEYS, Method, RANGE_KEYS, SHARED_KEYS, TASKS_MAX, methods};
use super::{Count, Draw, Family, Load};
use crate::error::TasksetError;
use crate::file::read_cpu_count;
use crate::generate::{Deadlines, Periods, Shape, Spread};
use crate::study::keep_name;
use crate::tree::{Table, Value};

/// Reads all families; without `[[family]]` there is one, called `tasks`.
pub(in crate::study) fn read(file: &Table<'_>) -> Result<Vec<Family>, TasksetError> {
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
pub(in crate::study) fn names<'t>(file: &Table<'t>) -> Result<Vec<&'t str>, TasksetError> {
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
