//! The obstacles to running a task set live on this machine.

use std::fmt;

use super::{System, kernel, privileges, sched_ext};
use crate::LiveError;

/// The highest real-time priority that a run gives a thread.
const RTPRIO_MAX: u8 = 95;

/// An obstacle to running a task set live on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The obstacle.
    pub what: String,
    /// The remedy: one command, or one sentence where no command helps.
    pub remedy: String,
}

impl Obstacle {
    pub(super) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// The same, with a remedy that this user can enter.
    fn for_caller(self, system: &System) -> Self {
        Self {
            remedy: system.for_caller(self.remedy),
            ..self
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl From<Obstacle> for LiveError {
    fn from(obstacle: Obstacle) -> Self {
        Self::Machine {
            what: obstacle.what,
            remedy: obstacle.remedy,
        }
    }
}

/// The known obstacles to loading our scheduler on this machine, the most fundamental first. A fact that cannot
/// be read is no obstacle.
///
/// Reads the kernel's type information, which takes milliseconds.
pub fn obstacles(system: &System) -> Vec<Obstacle> {
    let kernel = kernel::too_old(system).or_else(|| sched_ext::absent(system));
    // Without sched_ext the types of its functions do not matter.
    let types = match kernel {
        Some(_) => None,
        None => kernel::types(system).obstacle(),
    };
    [
        kernel,
        types,
        privileges::lacking(system),
        sched_ext::taken(system),
        privileges::too_little_locked_memory(system),
    ]
    .into_iter()
    .flatten()
    .map(|obstacle| obstacle.for_caller(system))
    .collect()
}

/// Why threads cannot have fixed priorities here; `None` if no obstacle is known.
pub fn obstacle_to_fifo(system: &System) -> Option<Obstacle> {
    let obstacle = privileges::insufficient_rtprio(system, RTPRIO_MAX)
        .or_else(|| privileges::refused_rtprio(system));
    obstacle.map(|obstacle| obstacle.for_caller(system))
}

/// Why a scheduler cannot be pinned in this folder; `None` if no obstacle is known.
/// The folder itself need not exist yet, but its path must begin with `/`.
pub fn obstacle_to_pinning(system: &System, folder: &str) -> Option<Obstacle> {
    const EXAMPLE: &str = "/sys/fs/bpf/shiftwork";
    if !folder.starts_with('/') || folder.split('/').any(|name| name.contains('.')) {
        return Some(Obstacle::new(
            format!("`{folder}` cannot hold pinned BPF programs: no absolute path, or a dot in it"),
            format!("choose a folder such as {EXAMPLE}"),
        ));
    }
    let mounts = system.read("/proc/self/mounts")?;
    let kind = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| is_below(folder, point))
        // Of two mounts on one point the later one is visible.
        .max_by_key(|(point, _)| point.len());
    match kind {
        Some((_, "bpf")) => None,
        _ if is_below(folder, "/sys/fs/bpf") => Some(Obstacle::new(
            format!(
                "`{folder}` cannot hold pinned BPF programs: no BPF file system is mounted there"
            ),
            system.for_caller("sudo mount -t bpf bpf /sys/fs/bpf".to_owned()),
        )),
        _ => Some(Obstacle::new(
            format!("`{folder}` cannot hold pinned BPF programs: it is not in a BPF file system"),
            format!("choose a folder such as {EXAMPLE}"),
        )),
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder.trim_end_matches('/'))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_btf::samples::{MALFORMED, SOUND, Sample};

    const ABLE: &str = "CapEff:\t000001ffffffffff\n";

    fn machine(changes: &[(&'static str, Vec<u8>)]) -> System {
        let mut files = std::collections::BTreeMap::from([
            ("/proc/sys/kernel/osrelease", b"7.2.13\n".to_vec()),
            ("/sys/kernel/sched_ext/state", b"disabled\n".to_vec()),
            ("/sys/kernel/btf/vmlinux", Sample::of(SOUND)),
            ("/proc/self/status", ABLE.into()),
            ("/proc/self/uid_map", b"0 0 4294967295\n".to_vec()),
        ]);
        files.extend(changes.iter().cloned());
        System::of(files)
    }

    fn beginnings(system: &System) -> Vec<String> {
        let found = obstacles(system).into_iter();
        let words = |what: String| what.split(' ').take(3).collect::<Vec<_>>().join(" ");
        found.map(|obstacle| words(obstacle.what)).collect()
    }

    #[test]
    fn root_on_a_sound_kernel_has_no_obstacles() {
        assert_eq!(obstacles(&machine(&[])), []);
    }

    #[test]
    fn most_fundamental_obstacle_comes_first() {
        let all = [
            ("/proc/self/status", b"CapEff:\t0\n".to_vec()),
            ("/sys/kernel/sched_ext/state", b"enabled\n".to_vec()),
            ("/sys/kernel/btf/vmlinux", Sample::of(MALFORMED)),
            (
                "/proc/self/limits",
                b"Max locked memory         65536                65536                bytes\n"
                    .to_vec(),
            ),
        ];
        assert_eq!(
            beginnings(&machine(&all)),
            [
                "this kernel's type",
                "this process lacks",
                "a sched_ext scheduler",
                "this process may",
            ]
        );
        let mut older = all.to_vec();
        older.push(("/proc/sys/kernel/osrelease", b"6.6.1\n".to_vec()));
        assert_eq!(
            beginnings(&machine(&older))[..2],
            ["kernel 6.6.1 is", "this process lacks"]
        );
    }

    #[test]
    fn missing_sysfs_is_an_obstacle_with_its_remedy() {
        let found = obstacles(&System::of([("", ""); 0]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].remedy, "sudo mount -t sysfs sysfs /sys");
    }

    #[test]
    fn obstacle_has_the_same_text_as_its_error() {
        let obstacle = Obstacle::new("it rains", "take an umbrella");
        assert_eq!(obstacle.to_string(), "it rains; take an umbrella");
        assert_eq!(
            LiveError::from(obstacle.clone()).to_string(),
            obstacle.to_string()
        );
    }

    #[test]
    fn pins_require_a_bpf_file_system() {
        let mounts = "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\n";
        let with = format!("{mounts}none /sys/fs/bpf bpf rw,mode=700 0 0\n");
        let remedy = |mounts: &str, folder: &str| {
            let system = System::of([("/proc/self/mounts", mounts)]);
            obstacle_to_pinning(&system, folder).map(|obstacle| obstacle.remedy)
        };
        let choose = Some("choose a folder such as /sys/fs/bpf/shiftwork".to_owned());
        assert_eq!(remedy(&with, "/sys/fs/bpf/shiftwork"), None);
        assert_eq!(remedy(&with, "/sys/fs/bpf"), None);
        assert_eq!(
            remedy(mounts, "/sys/fs/bpf/shiftwork").as_deref(),
            Some("sudo mount -t bpf bpf /sys/fs/bpf")
        );
        assert_eq!(remedy(&with, "/sys/fs/bpfs"), choose);
        assert_eq!(remedy(&with, "/tmp/pins"), choose);
        assert_eq!(remedy(&with, "/sys/fs/bpf/a.b"), choose);
        assert_eq!(remedy(&with, "pins"), choose);
    }
}
