//! The table `[platform]` of a task-set file.

use std::path::Path;

use shiftwork_model::{CPUS_MAX, Frequency, Platform, Share};

use crate::cpus::Names;
use crate::error::TasksetError;
use crate::host;
use crate::keys::{Key, Takes, may, must, words};
use crate::tree::{Table, Value};

pub(crate) static KEYS: [Key; 7] = [
    must(
        "cpus",
        Takes::Either(&[
            Takes::Whole(1, CPUS_MAX as u32),
            Takes::Words(|| vec!["host"]),
        ]),
        "How many CPUs there are, or \"host\": the CPUs, caches and packages of this machine.",
    ),
    may("sets", SETS, "Sets of CPUs by name."),
    may(
        "clusters",
        Takes::List(&Takes::Cpus, 0),
        "Clusters, for c-* and as the cpusets of dl-*: every CPU in exactly one; default one of all CPUs.",
    ),
    may(
        "caches",
        Takes::List(&Takes::Cpus, 0),
        "CPUs that share a cache.",
    ),
    may(
        "capacities",
        Takes::List(&Takes::Number(0.0, 1.0), 1),
        "Under dl-*: how fast each CPU is, the fastest 1; default 1 for each.",
    ),
    may(
        "frequency",
        Takes::Words(|| words(&FREQUENCIES)),
        "Under dl-*: whether frequencies follow the load; default `fixed`.",
    ),
    may(
        "tick-unit",
        Takes::Duration,
        "What time is counted in: all times are whole multiples of it; default 1ns.",
    ),
];

/// What `sets` takes.
pub(crate) const SETS: Takes = Takes::Named(&Takes::Cpus);

const FREQUENCIES: [(&str, Frequency); 2] =
    [("fixed", Frequency::Fixed), ("grub-pa", Frequency::GrubPa)];

/// Reads the table, as far as that is possible; a platform that is the host is looked up below `sysfs`.
pub(super) fn read(file: &Table<'_>, sysfs: &Path) -> Names {
    let table = file.need_map("platform", "[platform]", |value| {
        value.table(&KEYS, "a table [platform]")
    });
    let mut table = match table {
        Ok(table) => table,
        Err(mistake) => return Names::new(Err(mistake)),
    };
    table.rename("[platform]".to_string());
    let cpus = table.need_map("cpus", "cpus = 4", |value| read_cpus(value, sysfs));
    let mut names = Names::new(cpus);
    names.read_sets(&table);
    // Mistakes are kept by the table; nothing else depends on what is read here.
    let clusters = table.map("clusters", |value| names.clusters(value));
    let caches = table.map("caches", |value| names.groups(value));
    let capacities = table.map("capacities", |value| read_capacities(value, &names));
    let frequency = table.map("frequency", |value| value.word(&FREQUENCIES));
    let tick_unit = table.map("tick-unit", Value::positive_span);
    let platform = &mut names.platform;
    platform.clusters = clusters.ok().flatten().unwrap_or_default();
    if let Ok(Some(caches)) = caches {
        platform.caches = caches;
    }
    platform.capacities = capacities.ok().flatten().unwrap_or_default();
    platform.frequency = frequency.ok().flatten().unwrap_or_default();
    if let Ok(Some(unit)) = tick_unit {
        platform.tick_unit = unit;
    }
    names
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

/// Reads one capacity per CPU.
fn read_capacities(value: &Value<'_>, names: &Names) -> Result<Vec<Share>, TasksetError> {
    const ACCEPTED: &str = "one capacity per CPU, like [1.0, 0.5]";
    let (found, cpus) = (value.list(ACCEPTED)?.len(), names.cpus());
    if found != cpus {
        return Err(names.if_sized(value.out_of_range(
            format!("a list of {found}"),
            format!("one capacity per CPU, {cpus} in all"),
        )));
    }
    let capacity = |item: &Value<'_>| match item.share()? {
        zero if zero.billionths() == 0 => Err(TasksetError::Zero {
            place: item.place(),
            key: item.key(),
        }),
        share => Ok(share),
    };
    value.each(ACCEPTED, capacity)
}
