//! The fresh system: the output of its programs, and the traces that a package may leave in it.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Backups that programs for accounts leave beside the files that they change.
const COPIES: [&str; 4] = [
    "/etc/passwd-",
    "/etc/group-",
    "/etc/shadow-",
    "/etc/gshadow-",
];

/// Runs a program of the system and returns what it writes to its standard output.
///
/// # Errors
/// It cannot be started, or says that it failed.
pub fn ask(command: &[&str]) -> Result<String, String> {
    let shown = command.join(" ");
    let output = Command::new(command[0])
        .args(&command[1..])
        .output()
        .map_err(|error| format!("`{shown}` cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(said),
        false => {
            let errors = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "`{shown}` ended by {}: {errors}{said}",
                output.status
            ))
        }
    }
}

/// The same, line by line.
///
/// # Errors
/// As [`ask`].
pub fn lines(command: &[&str]) -> Result<Vec<String>, String> {
    Ok(ask(command)?.lines().map(str::to_owned).collect())
}

/// Waits until systemd has started everything, and sees that nothing failed.
///
/// # Errors
/// Something failed; which, by name.
pub fn wait_until_up() -> Result<(), String> {
    ask(&["systemctl", "is-system-running", "--wait"])
        .map(drop)
        .map_err(|why| {
            let failed = ask(&["systemctl", "--failed", "--no-legend"]).unwrap_or_default();
            format!("{why}{failed}")
        })
}

/// Everything of a system that a package may leave traces in.
pub struct Traces {
    /// Files with type, mode and owners. The content is not compared: log lines are no traces of a package.
    files: BTreeMap<PathBuf, String>,
    /// Users and groups, as in the files that have them.
    accounts: Vec<String>,
    /// Units and their states.
    units: Vec<String>,
    /// Packages, including those of which only the configuration is left.
    packages: Vec<String>,
}

impl Traces {
    /// The current state.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_this_system() -> Result<Self, String> {
        let mut files = BTreeMap::new();
        let root = fs::metadata("/").map_err(|error| error.to_string())?;
        walk(Path::new("/"), root.dev(), &mut files)?;
        let mut accounts = Vec::new();
        for path in ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"] {
            let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
            accounts.extend(text.lines().map(|line| format!("{path}: {line}")));
        }
        Ok(Self {
            files,
            accounts,
            units: lines(&["systemctl", "list-unit-files", "--no-legend", "--no-pager"])?,
            packages: lines(&[
                "dpkg-query",
                "--show",
                "--showformat=${Package} ${Status}\n",
            ])?,
        })
    }

    /// Checks that a later state is the same.
    ///
    /// # Errors
    /// What is new, changed or missing.
    pub fn are_the_same_as(&self, later: &Self) -> Result<(), String> {
        let shown = |traces: &Self| -> Vec<String> {
            let files = traces.files.iter();
            let files = files.map(|(path, state)| format!("{} {state}", path.display()));
            let others = [&traces.accounts, &traces.units, &traces.packages];
            files.chain(others.into_iter().flatten().cloned()).collect()
        };
        let (before, after) = (shown(self), shown(later));
        let gone = before.iter().filter(|line| !after.contains(line));
        let new = after.iter().filter(|line| !before.contains(line));
        let differences: Vec<String> = gone
            .map(|line| format!("- {line}"))
            .chain(new.map(|line| format!("+ {line}")))
            .collect();
        match differences.is_empty() {
            true => Ok(()),
            false => Err(format!("it left traces:\n{}", differences.join("\n"))),
        }
    }
}

/// Adds all files on the same file system, which excludes file systems in memory.
fn walk(folder: &Path, device: u64, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let named = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(named)? {
        let path = entry.map_err(named)?.path();
        let found = fs::symlink_metadata(&path).map_err(named)?;
        if found.dev() != device || COPIES.iter().any(|copy| path == Path::new(copy)) {
            continue;
        }
        files.insert(path.clone(), state(&found));
        if found.is_dir() {
            walk(&path, device, files)?;
        }
    }
    Ok(())
}

fn state(found: &Metadata) -> String {
    format!("{:o} {}:{}", found.mode(), found.uid(), found.gid())
}
