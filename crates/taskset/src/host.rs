//! The platform of the host: CPUs, caches and packages, read from `/sys`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use shiftwork_model::{CpuId, CpuSet, Platform};

/// Caches of a CPU that are looked at: more levels than any machine has.
const CACHES_MAX: usize = 16;

/// The machine described below `sysfs` (`/sys`, or a copy of it in tests).
///
/// Packages become the sets `package-0`, `package-1`, … and groups of CPUs that share a cache the
/// sets `l2-0`, `l3-0`, …, numbered by their lowest CPU; the groups are the platform's `caches`,
/// too. What is missing in `/sys` is left out; only the CPUs are required.
///
/// # Errors
/// What is missing or cannot be expressed, as a clause that follows "but".
pub(crate) fn read(sysfs: &Path) -> Result<Platform, String> {
    let root = sysfs.join("devices/system/cpu");
    let path = root.join("online");
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read ({error})", path.display()))?;
    let online: CpuSet = text
        .parse()
        .map_err(|problem| format!("{}: {problem}", path.display()))?;
    if online.is_empty() {
        return Err(format!("{} names no CPU", path.display()));
    }
    if online != CpuSet::first(online.len()) {
        return Err(format!(
            "its CPUs {online} are not numbered from 0 without a gap"
        ));
    }
    let mut platform = Platform::uniform(online.len());
    let packages = groups(&online, |cpu| {
        read_set(&root.join(format!("cpu{cpu}/topology/package_cpus_list")))
            .or_else(|| read_set(&root.join(format!("cpu{cpu}/topology/core_siblings_list"))))
    });
    name_groups(&mut platform, "package", &packages);
    let mut caches = BTreeSet::new();
    for index in 0..CACHES_MAX {
        for (level, group) in caches_at(&root, &online, index) {
            caches.insert((level, Lowest(group)));
        }
    }
    let levels: BTreeSet<u32> = caches.iter().map(|&(level, _)| level).collect();
    for level in levels {
        let at_level = caches.iter().filter(|&&(other, _)| other == level);
        let shared: Vec<CpuSet> = at_level
            .map(|(_, Lowest(group))| *group)
            .filter(|group| group.len() > 1)
            .collect();
        name_groups(&mut platform, &format!("l{level}"), &shared);
        platform.caches.extend(shared);
    }
    platform.caches.dedup();
    Ok(platform)
}

/// A set ordered by its lowest CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lowest(CpuSet);

impl Ord for Lowest {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.lowest(), self.0).cmp(&(other.0.lowest(), other.0))
    }
}

impl PartialOrd for Lowest {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The distinct groups that the CPUs are in, by their lowest CPU.
fn groups(online: &CpuSet, group_of: impl Fn(CpuId) -> Option<CpuSet>) -> Vec<CpuSet> {
    let groups: BTreeSet<Lowest> = online
        .iter()
        .filter_map(group_of)
        .map(|group| Lowest(group & *online))
        .filter(|Lowest(group)| !group.is_empty())
        .collect();
    groups.into_iter().map(|Lowest(group)| group).collect()
}

/// The caches in the directories `cache/index…` with this index. Instruction caches are left out:
/// they are shared as the data caches beside them are.
fn caches_at(root: &Path, online: &CpuSet, index: usize) -> Vec<(u32, CpuSet)> {
    let cache = |cpu: CpuId| {
        let directory = root.join(format!("cpu{cpu}/cache/index{index}"));
        let level: u32 = fs::read_to_string(directory.join("level"))
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let kind = fs::read_to_string(directory.join("type")).unwrap_or_default();
        let shared = read_set(&directory.join("shared_cpu_list"))? & *online;
        (kind.trim() != "Instruction" && !shared.is_empty()).then_some((level, shared))
    };
    online.iter().filter_map(cache).collect()
}

fn read_set(path: &Path) -> Option<CpuSet> {
    fs::read_to_string(path).ok()?.parse().ok()
}

fn name_groups(platform: &mut Platform, kind: &str, groups: &[CpuSet]) {
    for (number, group) in groups.iter().enumerate() {
        platform.sets.insert(format!("{kind}-{number}"), *group);
    }
}
