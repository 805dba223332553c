//! The state file: the reservations, saved for the next start of the daemon. It is replaced atomically.

mod writer;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shiftwork_model::{OnOverrun, Priority, Span};

use crate::files::{Disk, Durability, Files, replace};
use crate::reservation::{Owner, Reservation, Thread};
use crate::reservation_table::ReservedTask;
pub(crate) use writer::StateWriter;

/// The state file.
#[derive(Clone, Debug)]
pub struct StateFile {
    path: PathBuf,
    boot: String,
    files: Arc<dyn Files>,
}

/// Why no reservations are known from before.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read, which may be temporary.
    Unreadable(io::Error),
    /// Its content is not a state.
    Corrupt(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::Corrupt(why) => write!(f, "is not a state of the daemon: {why}"),
        }
    }
}

impl std::error::Error for LoadError {}

#[derive(Serialize, Deserialize)]
struct Saved {
    /// Boot ID: thread IDs are valid within one boot.
    boot: String,
    tasks: Vec<SavedTask>,
}

#[derive(Serialize, Deserialize)]
struct SavedTask {
    user: u32,
    group: Option<u32>,
    account: u32,
    cgroup: String,
    process: u32,
    thread: u32,
    started: u64,
    name: String,
    cost_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    cpus: String,
    priority: u32,
    on_overrun: String,
}

/// Differs from boot to boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

impl StateFile {
    /// The file at this path, which need not exist.
    ///
    /// # Errors
    /// If the kernel's boot ID cannot be read.
    pub fn at(path: PathBuf) -> io::Result<Self> {
        let boot = fs::read_to_string(BOOT_ID).map_err(|error| {
            let what = format!(
                "cannot read {BOOT_ID}: {error}; `mount -t proc proc /proc` where it is not mounted"
            );
            io::Error::new(error.kind(), what)
        })?;
        Ok(Self {
            path,
            boot: boot.trim().to_owned(),
            files: Arc::new(Disk),
        })
    }

    /// The same file, with operations on these files.
    #[cfg(test)]
    pub(crate) fn on(self, files: Arc<dyn Files>) -> Self {
        Self { files, ..self }
    }

    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file by these tasks.
    ///
    /// # Errors
    /// If a step fails. Then it has its former content or the new one.
    pub fn save<'a>(&self, tasks: impl Iterator<Item = &'a ReservedTask>) -> io::Result<()> {
        let saved = Saved {
            boot: self.boot.clone(),
            tasks: tasks.map(saved).collect(),
        };
        let text = serde_json::to_vec_pretty(&saved).map_err(io::Error::other)?;
        replace(&*self.files, &self.path, 0o600, &text, Durability::Synced)
    }

    /// Moves the file aside, so that the next state does not replace it; returns its new path.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn move_aside(&self) -> io::Result<PathBuf> {
        let aside = self.path.with_extension("corrupt");
        self.files.rename(&self.path, &aside)?;
        Ok(aside)
    }

    /// The saved tasks; none if the file does not exist or was saved before another boot.
    ///
    /// # Errors
    /// If the file cannot be read, or is corrupt.
    pub fn load(&self) -> Result<Vec<ReservedTask>, LoadError> {
        let text = match self.files.read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(LoadError::Unreadable)?,
        };
        let state: Saved =
            serde_json::from_slice(&text).map_err(|error| LoadError::Corrupt(error.to_string()))?;
        if state.boot != self.boot {
            return Ok(Vec::new());
        }
        let tasks = state.tasks.into_iter().map(restored);
        tasks
            .collect::<Option<Vec<ReservedTask>>>()
            .ok_or_else(|| LoadError::Corrupt("a reservation has invalid values".to_owned()))
    }
}

const OVERRUNS: [(OnOverrun, &str); 3] = [
    (OnOverrun::Throttle, "throttle"),
    (OnOverrun::Signal, "signal"),
    (OnOverrun::Continue, "continue"),
];

fn saved(reserved: &ReservedTask) -> SavedTask {
    let it = &reserved.reservation;
    let mut names = OVERRUNS.iter();
    let name = names.find(|(what, _)| *what == it.on_overrun);
    SavedTask {
        user: reserved.owner.user,
        group: reserved.owner.group,
        account: reserved.owner.account,
        cgroup: reserved.owner.cgroup.clone(),
        process: reserved.thread.process,
        thread: reserved.thread.thread,
        started: reserved.thread.started,
        name: reserved.name.clone(),
        cost_ns: it.cost.as_ns(),
        period_ns: it.period.as_ns(),
        deadline_ns: it.deadline.as_ns(),
        cpus: it.cpus.to_string(),
        priority: it.priority.number(),
        on_overrun: name.map_or("", |(_, name)| name).to_owned(),
    }
}

fn restored(saved: SavedTask) -> Option<ReservedTask> {
    let mut names = OVERRUNS.iter();
    let (on_overrun, _) = names.find(|(_, name)| *name == saved.on_overrun)?;
    Some(ReservedTask {
        owner: Owner {
            user: saved.user,
            group: saved.group,
            account: saved.account,
            cgroup: saved.cgroup,
        },
        thread: Thread {
            process: saved.process,
            thread: saved.thread,
            started: saved.started,
        },
        name: saved.name,
        reservation: Reservation {
            cost: Span::from_ns(saved.cost_ns),
            period: Span::from_ns(saved.period_ns),
            deadline: Span::from_ns(saved.deadline_ns),
            cpus: saved.cpus.parse().ok()?,
            priority: Priority::new(saved.priority)?,
            on_overrun: *on_overrun,
        },
        is_served: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(number: u32, on_overrun: OnOverrun) -> ReservedTask {
        ReservedTask {
            owner: Owner {
                user: 7,
                group: Some(8),
                account: 9,
                cgroup: "/a".to_owned(),
            },
            thread: Thread {
                process: number,
                thread: number + 1,
                started: 12_345,
            },
            name: "näme \"x\"".to_owned(),
            reservation: Reservation {
                cost: Span::from_us(5),
                period: Span::from_ms(3),
                deadline: Span::from_ms(2),
                cpus: "1-3,7".parse().unwrap(),
                priority: Priority::new(42).unwrap(),
                on_overrun,
            },
            is_served: false,
        }
    }

    #[test]
    fn saved_tasks_are_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::at(folder.path().join("daemon.json")).unwrap();
        assert_eq!(file.load().unwrap(), []);
        let all = OVERRUNS.map(|(what, name)| some(name.len() as u32, what));
        file.save(all.iter()).unwrap();
        assert_eq!(file.load().unwrap(), all);
        file.save(all[..1].iter()).unwrap();
        assert_eq!(file.load().unwrap(), all[..1]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn tasks_saved_before_another_boot_are_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = StateFile::at(folder.path().join("daemon.json")).unwrap();
        file.save([some(1, OnOverrun::Throttle)].iter()).unwrap();
        file.boot.push('x');
        assert_eq!(file.load().unwrap(), []);
    }

    #[test]
    fn corrupt_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::at(folder.path().join("daemon.json")).unwrap();
        file.save([some(1, OnOverrun::Throttle)].iter()).unwrap();
        let whole = fs::read_to_string(file.path()).unwrap();
        for end in 1..whole.len() - 1 {
            if whole.is_char_boundary(end) {
                fs::write(file.path(), &whole[..end]).unwrap();
                assert!(file.load().is_err(), "cut at {end}");
            }
        }
        fs::write(file.path(), whole.replace("throttle", "explode")).unwrap();
        assert!(file.load().is_err());
    }
}
