//! Reading facts about Linux under `/proc` and `/sys`.

use std::collections::BTreeMap;
use std::fs;

use rustix::thread::Pid;
use shiftwork_model::{CpuId, CpuSet};

use super::Reservation;
use crate::sys;

/// More caches than any CPU has.
const CACHES_MAX: usize = 16;

/// A Linux machine as its `/proc` and `/sys` describe it: this one, or a simulated one that consists of given files.
#[derive(Clone, Debug)]
pub struct System {
    /// The files of a simulated machine, by path; `None`: this machine's.
    simulated: Option<BTreeMap<String, Vec<u8>>>,
    /// The reservations of the threads of a simulated machine, by their numbers.
    reservations: BTreeMap<i32, Reservation>,
}

impl System {
    /// Whether this process is root; false if there is no `/proc`.
    pub fn is_root(&self) -> bool {
        let status = self.read("/proc/self/status").unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        // Real, effective, saved, for files.
        ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
    }

    /// A remedy as the caller has to enter it: without `sudo` for root, since it may not be
    /// installed.
    pub fn for_caller(&self, remedy: String) -> String {
        match self.is_root() {
            true => remedy.replace("sudo ", ""),
            false => remedy,
        }
    }

    /// Whether this is not the machine this program runs on, but one of [`System::of`].
    pub const fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// The machine this program runs on.
    pub const fn this() -> Self {
        Self {
            simulated: None,
            reservations: BTreeMap::new(),
        }
    }

    /// A simulated machine with only these files, each with its absolute path.
    pub fn of<'a>(files: impl IntoIterator<Item = (&'a str, impl Into<Vec<u8>>)>) -> Self {
        let files = files.into_iter();
        let files = files.map(|(path, content)| (path.to_owned(), content.into()));
        Self {
            simulated: Some(files.collect()),
            reservations: BTreeMap::new(),
        }
    }

    /// The same machine, if it is simulated, with a thread that has this reservation.
    #[must_use]
    pub fn with_reservation(mut self, thread: i32, reservation: Reservation) -> Self {
        self.reservations.insert(thread, reservation);
        self
    }

    /// The reservation of a thread, all zero if it is not under SCHED_DEADLINE; `None` if there is no such
    /// thread or this process may not read it.
    pub fn reservation(&self, thread: i32) -> Option<Reservation> {
        match &self.simulated {
            Some(_) => self.reservations.get(&thread).copied(),
            None => sys::thread::reservation(Pid::from_raw(thread)?).ok(),
        }
    }

    /// The content of a file; `None` if it is not readable.
    pub fn read_bytes(&self, path: &str) -> Option<Vec<u8>> {
        match &self.simulated {
            Some(files) => files.get(path).cloned(),
            None => fs::read(path).ok(),
        }
    }

    /// The text of a file, without white space around it; `None` if it is not readable.
    pub fn read(&self, path: &str) -> Option<String> {
        let text = String::from_utf8(self.read_bytes(path)?).ok()?;
        Some(text.trim().to_owned())
    }

    /// The number in a file; `None` if it is not readable or no number.
    pub fn number(&self, path: &str) -> Option<i64> {
        self.read(path)?.parse().ok()
    }

    /// Whether there is such a file or folder.
    pub fn has(&self, path: &str) -> bool {
        match &self.simulated {
            Some(files) => files.contains_key(path) || !names_below(files, path).is_empty(),
            None => fs::exists(path).unwrap_or(false),
        }
    }

    /// The names of the files and folders in a folder, in alphabetical order; none if it is not
    /// readable.
    pub fn names(&self, folder: &str) -> Vec<String> {
        if let Some(files) = &self.simulated {
            return names_below(files, folder);
        }
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// The CPUs that are online; `None` if the machine does not report them.
    pub fn online(&self) -> Option<CpuSet> {
        self.cpus("/sys/devices/system/cpu/online")
    }

    /// The CPUs that were isolated at boot, which run only threads that are bound to them: none if the
    /// machine does not report them.
    pub fn isolated(&self) -> CpuSet {
        self.cpus("/sys/devices/system/cpu/isolated")
            .unwrap_or(CpuSet::EMPTY)
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

fn names_below(files: &BTreeMap<String, Vec<u8>>, folder: &str) -> Vec<String> {
    let inside = files.keys().filter_map(|path| {
        let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
        rest.split('/').next().map(str::to_owned)
    });
    // Paths are sorted, so those of one folder are adjacent.
    let mut names: Vec<String> = inside.collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_unified_caches_are_listed_once() {
        let system = System::of([
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
            ("/sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
            (
                "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
                "0\n",
            ),
            (
                "/sys/devices/system/cpu/cpu0/cache/index1/type",
                "Instruction\n",
            ),
            ("/sys/devices/system/cpu/cpu0/cache/index1/level", "1\n"),
            (
                "/sys/devices/system/cpu/cpu0/cache/index1/shared_cpu_list",
                "0\n",
            ),
            (
                "/sys/devices/system/cpu/cpu0/cache/index2/type",
                "Unified\n",
            ),
            ("/sys/devices/system/cpu/cpu0/cache/index2/level", "2\n"),
            (
                "/sys/devices/system/cpu/cpu0/cache/index2/shared_cpu_list",
                "0-1\n",
            ),
            (
                "/sys/devices/system/cpu/cpu1/cache/index0/type",
                "Unified\n",
            ),
            ("/sys/devices/system/cpu/cpu1/cache/index0/level", "2\n"),
            (
                "/sys/devices/system/cpu/cpu1/cache/index0/shared_cpu_list",
                "0-1\n",
            ),
        ]);
        assert_eq!(
            system.caches(),
            [(1, CpuSet::from_bits(0b01)), (2, CpuSet::from_bits(0b11))]
        );
    }

    #[test]
    fn machine_without_files_has_no_cpus_and_no_caches() {
        let system = System::of([("", ""); 0]);
        assert_eq!(system.online(), None);
        assert_eq!(system.isolated(), CpuSet::EMPTY);
        assert_eq!(system.caches(), []);
        assert_eq!(system.names("/proc"), [""; 0]);
        assert!(!system.has("/proc"));
    }

    #[test]
    fn folder_exists_if_it_has_files() {
        let system = System::of([("/a/b/c", "1"), ("/a/b/d", "x"), ("/a/bc", "2")]);
        assert_eq!(system.names("/a"), ["b", "bc"]);
        assert_eq!(system.names("/a/b"), ["c", "d"]);
        assert!(system.has("/a/b") && system.has("/a/b/c") && !system.has("/a/b/c/e"));
        assert_eq!(system.number("/a/b/c"), Some(1));
        assert_eq!(system.number("/a/b/d"), None);
    }

    #[test]
    fn files_of_this_machine_are_read() {
        let folder = std::env::temp_dir().join(format!("shiftwork-host-{}", std::process::id()));
        let path = folder.to_str().unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("b"), " 0-1\n").unwrap();
        fs::write(folder.join("a"), "").unwrap();
        let this = System::this();
        let found = (this.names(path), this.cpus(&format!("{path}/b")));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.0, ["a", "b"]);
        assert_eq!(found.1, Some(CpuSet::from_bits(0b11)));
        assert!(!this.has(path));
    }
}
