//! The table `[platform]` of a task-set file.

use std::path::Path;

use shiftwork_model::{CPUS_MAX, CpuSet, Frequency, Platform, Share};

use crate::cpus::{Names, looks_like_a_name};
use crate::error::TasksetError;
use crate::host;
use crate::tree::Value;

const KEYS: [&str; 7] = [
    "cpus",
    "sets",
    "clusters",
    "caches",
    "capacities",
    "frequency",
    "tick-unit",
];

/// Reads the table; a platform that is the host is looked up below `sysfs`.
pub(super) fn read(value: &Value<'_>, sysfs: &Path) -> Result<Platform, TasksetError> {
    let mut table = value.table(&KEYS, "a table [platform]")?;
    table.rename("[platform]".to_string());
    let mut platform = read_cpus(&table.need("cpus", "cpus = 4")?, sysfs)?;
    if let Some(sets) = table.get("sets") {
        read_sets(&sets, &mut platform)?;
    }
    let names = Names {
        cpus: platform.cpus,
        sets: &platform.sets,
    };
    let clusters = table.map("clusters", |value| names.clusters(value))?;
    let caches = table.map("caches", |value| names.groups(value))?;
    let capacities = table.map("capacities", |value| read_capacities(value, platform.cpus))?;
    let frequency = table.map("frequency", |value| {
        value.word(&[("fixed", Frequency::Fixed), ("grub-pa", Frequency::GrubPa)])
    })?;
    let tick_unit = table.map("tick-unit", Value::positive_span)?;
    Ok(Platform {
        clusters: clusters.unwrap_or_default(),
        caches: caches.unwrap_or(platform.caches),
        capacities: capacities.unwrap_or_default(),
        frequency: frequency.unwrap_or_default(),
        tick_unit: tick_unit.unwrap_or(platform.tick_unit),
        ..platform
    })
}

/// Reads `cpus`: a number, or the machine that this runs on.
fn read_cpus(value: &Value<'_>, sysfs: &Path) -> Result<Platform, TasksetError> {
    if value.text("host") != Ok("host") {
        return read_cpu_count(value).map(Platform::uniform).map_err(|_| {
            let accepted = format!("a whole number from 1 to {CPUS_MAX}, or \"host\"");
            value.out_of_range(value.describe(), accepted)
        });
    }
    host::read(sysfs).map_err(|problem| TasksetError::Host {
        place: value.place(),
        problem,
    })
}

/// Reads a number of CPUs.
pub(crate) fn read_cpu_count(value: &Value<'_>) -> Result<usize, TasksetError> {
    Ok(value.integer(1, CPUS_MAX as u32)? as usize)
}

/// Reads named sets; they may redefine what the host calls so.
pub(crate) fn read_sets(value: &Value<'_>, platform: &mut Platform) -> Result<(), TasksetError> {
    let table = value.any_table("a table like { little = \"0-1\", big = \"2-3\" }")?;
    for entry in table.entries() {
        let name = entry.key();
        if !looks_like_a_name(&name) || name.trim() != name {
            return Err(TasksetError::OutOfRange {
                place: entry.place(),
                key: value.key(),
                found: format!("a set called `{name}`"),
                accepted: "a name that begins with a letter".to_string(),
            });
        }
        let no_names = Default::default();
        let names = Names {
            cpus: platform.cpus,
            sets: &no_names,
        };
        let set: CpuSet = names.set(&entry)?;
        platform.sets.insert(name, set);
    }
    Ok(())
}

/// Reads one capacity per CPU.
fn read_capacities(value: &Value<'_>, cpus: usize) -> Result<Vec<Share>, TasksetError> {
    let items = value.list("one capacity per CPU, like [1.0, 0.5]")?;
    if items.len() != cpus {
        return Err(value.out_of_range(
            format!("a list of {}", items.len()),
            format!("one capacity per CPU, {cpus} in all"),
        ));
    }
    let capacity = |item: &Value<'_>| match item.share()? {
        zero if zero.billionths() == 0 => Err(TasksetError::Zero {
            place: item.place(),
            key: item.key(),
        }),
        share => Ok(share),
    };
    items.iter().map(capacity).collect()
}
