//! Two clusters: the upper half of the machine's CPUs is a partition of its own.

use std::fs;

/// Where the kernel keeps its groups.
const ROOT: &str = "/sys/fs/cgroup";
/// The group of the upper half.
const UPPER: &str = "/sys/fs/cgroup/upper";

/// The machine in two halves, each with a scheduling domain and an admission of its own, until this is
/// dropped.
#[derive(Debug)]
pub struct Halves(());

impl Halves {
    /// CPUs 2 and 3 become a partition; 0 and 1 stay what they were.
    ///
    /// # Errors
    /// If the kernel cannot.
    pub fn make() -> Result<Self, String> {
        write(&format!("{ROOT}/cgroup.subtree_control"), "+cpuset")?;
        fs::create_dir(UPPER).map_err(|error| format!("{UPPER}: {error}"))?;
        let halves = Self(());
        // So that threads of one process may be in both.
        write(&format!("{UPPER}/cgroup.type"), "threaded")?;
        write(&format!("{UPPER}/cpuset.cpus"), "2-3")?;
        let kind = format!("{UPPER}/cpuset.cpus.partition");
        write(&kind, "root")?;
        match fs::read_to_string(&kind) {
            Ok(kind) if kind.trim() == "root" => Ok(halves),
            other => Err(format!("{kind}: {other:?}")),
        }
    }
}

impl Drop for Halves {
    fn drop(&mut self) {
        // Without threads nothing is in the way.
        let _ = fs::remove_dir(UPPER);
    }
}

/// The calling thread belongs to the upper half from now on.
///
/// # Errors
/// If there is none.
pub fn enter_upper() -> Result<(), String> {
    write(&format!("{UPPER}/cgroup.threads"), "0")
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
