//! The folder in which fetched things are kept, and how several processes share it.
//!
//! ```text
//! ~/.cache/shiftwork/emulator/
//!     lock                 held while anything is added
//!     apt/<suite>/         the package client's own state
//!     qemu/                QEMU and its libraries, unpacked
//!     kernels/<release>/   vmlinux, config, and whether it is usable
//!     systems/<digest>/    an installed Debian system, and the list of its packages
//!     choice/<name>        the release that was found for "newest", "rt", ..., or the system
//!     no-kvm               during which boot of this machine a guest did not start by its processor
//! ```
//!
//! Invariant: what stands under its final name is complete. Everything is made under a temporary name
//! beside it and renamed, so an interrupted download leaves nothing but a folder that the next holder of
//! the lock removes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::Unavailable;

/// Names of unfinished things begin with this.
const UNFINISHED: &str = ".unfinished-";

/// The folder of fetched things.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// The right to add to the cache; ends when dropped.
#[derive(Debug)]
pub struct Locked<'a> {
    cache: &'a Cache,
    // The kernel releases the lock with the file, however the process ends.
    _lock: File,
}

impl Cache {
    /// `$XDG_CACHE_HOME/shiftwork/emulator`, by default under `~/.cache`; created if it is not there.
    ///
    /// # Errors
    /// There is no home, or the folder cannot be made.
    pub fn of_user() -> Result<Self, Unavailable> {
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let base = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
            .ok_or_else(|| {
                Unavailable::new(
                    "neither XDG_CACHE_HOME nor HOME names a folder for the emulator",
                    "set XDG_CACHE_HOME to a folder that can be written",
                )
            })?;
        Self::at(base.join("shiftwork/emulator"))
    }

    /// The cache in a folder of choice; created if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn at(root: PathBuf) -> Result<Self, Unavailable> {
        fs::create_dir_all(&root).map_err(|error| unwritable(&root, &error))?;
        Ok(Self { root })
    }

    /// Where `relative` is or would be.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// A remembered line of text; `None` if there is none.
    pub fn note(&self, relative: impl AsRef<Path>) -> Option<String> {
        let text = fs::read_to_string(self.path(relative)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Waits until no other process adds to the cache, and removes what interrupted ones left.
    ///
    /// # Errors
    /// The lock file cannot be made.
    pub fn lock(&self) -> Result<Locked<'_>, Unavailable> {
        let path = self.path("lock");
        let attempt = || -> io::Result<File> {
            let file = File::create(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        let lock = attempt().map_err(|error| unwritable(&path, &error))?;
        let locked = Locked {
            cache: self,
            _lock: lock,
        };
        locked.remove_unfinished();
        Ok(locked)
    }
}

impl Locked<'_> {
    /// The cache that is locked.
    pub fn cache(&self) -> &Cache {
        self.cache
    }

    /// Lets `fill` make a folder and then gives it its final name, in place of what was there.
    ///
    /// # Errors
    /// What `fill` said, or the folder cannot be written. Then nothing has changed.
    pub fn install(
        &self,
        relative: impl AsRef<Path>,
        fill: impl FnOnce(&Path) -> Result<(), Unavailable>,
    ) -> Result<PathBuf, Unavailable> {
        let target = self.cache.path(relative);
        let unfinished = self.unfinished(&target);
        fs::create_dir_all(&unfinished).map_err(|error| unwritable(&unfinished, &error))?;
        let filled = fill(&unfinished).and_then(|()| {
            let moved = remove_folder(&target).and_then(|()| {
                fs::create_dir_all(target.parent().unwrap_or(&self.cache.root))?;
                fs::rename(&unfinished, &target)
            });
            moved.map_err(|error| unwritable(&target, &error))
        });
        if filled.is_err() {
            // Best effort: the next holder of the lock removes it otherwise.
            let _ = fs::remove_dir_all(&unfinished);
        }
        filled.map(|()| target)
    }

    /// Remembers a line of text.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn remember(&self, relative: impl AsRef<Path>, text: &str) -> Result<(), Unavailable> {
        let target = self.cache.path(relative);
        let unfinished = self.unfinished(&target);
        let attempt = || -> io::Result<()> {
            fs::create_dir_all(target.parent().unwrap_or(&self.cache.root))?;
            let mut file = File::create(&unfinished)?;
            writeln!(file, "{text}")?;
            file.sync_all()?;
            fs::rename(&unfinished, &target)
        };
        attempt().map_err(|error| unwritable(&target, &error))
    }

    /// Forgets what was fetched or remembered under this name, if anything was.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn forget(&self, relative: impl AsRef<Path>) -> Result<(), Unavailable> {
        let target = self.cache.path(relative);
        remove_folder(&target).map_err(|error| unwritable(&target, &error))
    }

    fn unfinished(&self, target: &Path) -> PathBuf {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        self.cache.path(format!("{UNFINISHED}{name}"))
    }

    fn remove_unfinished(&self) {
        let Ok(entries) = fs::read_dir(&self.cache.root) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                // An entry that cannot be removed does no harm: it has no final name.
                let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
            }
        }
    }
}

/// That nothing is there is fine.
fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Unavailable {
    Unavailable::new(
        format!("{} cannot be written: {error}", path.display()),
        "set XDG_CACHE_HOME to a folder with 500 MB of room that can be written",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("emulator")).unwrap();
        (folder, cache)
    }

    #[test]
    fn a_failed_download_leaves_nothing() {
        let (_folder, cache) = cache();
        let locked = cache.lock().unwrap();
        let failed = locked.install("qemu", |folder| {
            fs::write(folder.join("half"), "x").unwrap();
            Err(Unavailable::new("the network went away", "try again"))
        });
        assert_eq!(failed.unwrap_err().reason, "the network went away");
        assert!(!cache.path("qemu").exists());
        let names: Vec<_> = fs::read_dir(cache.path("")).unwrap().flatten().collect();
        assert_eq!(names.len(), 1, "only the lock: {names:?}");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_replaced() {
        let (_folder, cache) = cache();
        let left = cache.path(format!("{UNFINISHED}qemu"));
        fs::create_dir_all(left.join("usr")).unwrap();
        fs::write(left.join("usr/half"), "x").unwrap();
        let locked = cache.lock().unwrap();
        assert!(!left.exists());
        let fill = |folder: &Path| {
            fs::write(folder.join("whole"), "y").unwrap();
            Ok(())
        };
        locked.install("qemu", fill).unwrap();
        locked.install("qemu", fill).unwrap();
        assert!(cache.path("qemu/whole").exists());
        assert!(!cache.path("qemu/usr").exists());
    }

    #[test]
    fn notes_are_remembered_and_forgotten() {
        let (_folder, cache) = cache();
        assert_eq!(cache.note("choice/newest"), None);
        let locked = cache.lock().unwrap();
        locked.remember("choice/newest", "7.2.13").unwrap();
        assert_eq!(cache.note("choice/newest").as_deref(), Some("7.2.13"));
        locked.forget("choice").unwrap();
        locked.forget("choice").unwrap();
        assert_eq!(cache.note("choice/newest"), None);
    }

    #[test]
    fn one_process_at_a_time_adds() {
        let (_folder, cache) = cache();
        let locked = cache.lock().unwrap();
        let other = File::create(cache.path("lock")).unwrap();
        assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
        drop(locked);
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    }
}
