//! Reading what Linux says about itself under `/proc` and `/sys`.
//!
//! All of it goes through [`System`], which can look at a copy of such a tree elsewhere: tests
//! describe machines that way.

use std::fs;
use std::path::PathBuf;

use shiftwork_model::{CpuId, CpuSet};

/// More caches than any CPU has.
const CACHES_MAX: usize = 16;

/// A Linux machine as its `/proc` and `/sys` describe it.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// The machine this program runs on.
    pub fn this() -> Self {
        Self { root: "/".into() }
    }

    /// A machine whose `proc` and `sys` lie below `root`, for tests.
    #[cfg(test)]
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The text of a file, without white space around it; `None` if it cannot be read.
    pub fn read(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(text.trim().to_owned())
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path.trim_start_matches('/')).exists()
    }

    /// The CPUs that are online; `None` if the machine does not say.
    pub fn online(&self) -> Option<CpuSet> {
        self.cpus("/sys/devices/system/cpu/online")
    }

    /// A file that holds a CPU list; `None` if there is none or it is empty.
    pub fn cpus(&self, path: &str) -> Option<CpuSet> {
        let set: CpuSet = self.read(path)?.parse().ok()?;
        (!set.is_empty()).then_some(set)
    }

    /// The groups of CPUs that share a data or unified cache: its level and the CPUs, each once,
    /// smallest groups first.
    pub fn caches(&self) -> Vec<(u32, CpuSet)> {
        let online = self.online().unwrap_or(CpuSet::EMPTY);
        let mut groups: Vec<(u32, CpuSet)> =
            online.iter().flat_map(|cpu| self.caches_of(cpu)).collect();
        groups.sort_by_key(|(level, cpus)| (cpus.len(), *level, *cpus));
        groups.dedup();
        groups
    }

    fn caches_of(&self, cpu: CpuId) -> Vec<(u32, CpuSet)> {
        (0..CACHES_MAX)
            .map(|index| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}"))
            .map_while(|cache| Some((self.read(&format!("{cache}/type"))?, cache)))
            .filter(|(kind, _)| kind != "Instruction")
            .filter_map(|(_, cache)| {
                let level = self.read(&format!("{cache}/level"))?.parse().ok()?;
                Some((level, self.cpus(&format!("{cache}/shared_cpu_list"))?))
            })
            .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A folder with these files, removed when dropped.
    pub(crate) struct Tree(pub PathBuf);

    impl Tree {
        pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir()
                .join(format!("shiftwork-system-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn caches_are_named_once_and_instruction_caches_not_at_all() {
        let tree = Tree::new(
            "caches",
            &[
                ("sys/devices/system/cpu/online", "0-1\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
                (
                    "sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
                    "0\n",
                ),
                (
                    "sys/devices/system/cpu/cpu0/cache/index1/type",
                    "Instruction\n",
                ),
                ("sys/devices/system/cpu/cpu0/cache/index1/level", "1\n"),
                (
                    "sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list",
                    "0\n",
                ),
                ("sys/devices/system/cpu/cpu0/cache/index2/type", "Unified\n"),
                ("sys/devices/system/cpu/cpu0/cache/index2/level", "2\n"),
                (
                    "sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_list",
                    "0-1\n",
                ),
                ("sys/devices/system/cpu/cpu1/cache/index0/type", "Unified\n"),
                ("sys/devices/system/cpu/cpu1/cache/index0/level", "2\n"),
                (
                    "sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list",
                    "0-1\n",
                ),
            ],
        );
        let caches = System::at(&tree.0).caches();
        assert_eq!(
            caches,
            [(1, CpuSet::from_bits(0b01)), (2, CpuSet::from_bits(0b11))]
        );
    }

    #[test]
    fn a_machine_that_says_nothing_has_no_cpus_and_no_caches() {
        let system = System::at("/nonexistent");
        assert_eq!(system.online(), None);
        assert_eq!(system.caches(), []);
    }
}
