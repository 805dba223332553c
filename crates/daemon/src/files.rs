//! The files of the daemon: each operation on them, so that tests can let it fail, and their atomic replacement.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The operations of the file system that the daemon uses.
pub(crate) trait Files: Debug + Send + Sync {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Creates the file or empties it. It has exactly this mode, whatever the umask is.
    fn create(&self, path: &Path, mode: u32) -> io::Result<File>;

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()>;

    /// Returns once the file's content is on the disk.
    fn sync(&self, file: &File) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Returns once the names of the folder's files are on the disk.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates the folder for its owner only, and those above it, as far as they do not exist.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// The files in the folder; an error if it does not exist.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        let file = options.open(path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        Ok(file)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(path)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    }
}

/// Whether a replacement outlives a crash of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It is on the disk at the end.
    Synced,
    /// The kernel writes it some time later.
    Cached,
}

/// Replaces the file atomically, by way of a file beside it with the extension `new`: whatever fails, and whenever this
/// process or the machine ends, it has its former content or `bytes`.
///
/// # Errors
/// If a step fails. Only after the last one, which syncs the folder, it has the new content nevertheless.
pub(crate) fn replace(
    files: &dyn Files,
    path: &Path,
    mode: u32,
    bytes: &[u8],
    durability: Durability,
) -> io::Result<()> {
    let beside = path.with_extension("new");
    let write = || {
        let mut file = files.create(&beside, mode)?;
        files.write(&mut file, bytes)?;
        if durability == Durability::Synced {
            // Otherwise the rename could reach the disk before the content.
            files.sync(&file)?;
        }
        files.rename(&beside, path)
    };
    if let Err(error) = write() {
        // There may be nothing to remove. If it cannot be removed the next replacement overwrites it.
        let _ = files.remove(&beside);
        return Err(error);
    }
    match (durability, path.parent()) {
        (Durability::Synced, Some(folder)) if folder.as_os_str().is_empty() => {
            files.sync_folder(Path::new("."))
        }
        (Durability::Synced, Some(folder)) => files.sync_folder(folder),
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::{Arc, Mutex};

    use rustix::io::Errno;

    use super::*;

    /// What fails, and until when.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Fault {
        /// The operation with this number, from 0, and only that.
        Nth(usize, Errno),
        /// The process ends in the middle of this operation: neither it nor any later one succeeds.
        KilledAt(usize),
        /// Every operation.
        All(Errno),
    }

    /// The disk, with operations that fail.
    #[derive(Debug, Default)]
    pub(crate) struct FaultyDisk {
        state: Mutex<(usize, Option<Fault>)>,
    }

    impl FaultyDisk {
        /// Counts operations from 0 again, with this fault.
        pub(crate) fn set(&self, fault: Option<Fault>) {
            *self.state.lock().unwrap() = (0, fault);
        }

        /// Number of operations since then.
        pub(crate) fn operations(&self) -> usize {
            self.state.lock().unwrap().0
        }

        fn step(&self) -> io::Result<()> {
            let mut state = self.state.lock().unwrap();
            let number = state.0;
            state.0 += 1;
            match state.1 {
                Some(Fault::Nth(at, error)) if at == number => Err(error.into()),
                Some(Fault::KilledAt(at)) if at <= number => Err(Errno::IO.into()),
                Some(Fault::All(error)) => Err(error.into()),
                _ => Ok(()),
            }
        }
    }

    impl Files for FaultyDisk {
        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            self.step()?;
            Disk.read(path)
        }

        fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
            self.step()?;
            Disk.create(path, mode)
        }

        fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
            if let Err(error) = self.step() {
                // As a disk that becomes full.
                Disk.write(file, &bytes[..bytes.len() / 2])?;
                return Err(error);
            }
            Disk.write(file, bytes)
        }

        fn sync(&self, file: &File) -> io::Result<()> {
            self.step()?;
            Disk.sync(file)
        }

        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            self.step()?;
            Disk.rename(from, to)
        }

        fn sync_folder(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            Disk.sync_folder(path)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            Disk.remove(path)
        }

        fn create_folder(&self, path: &Path) -> io::Result<()> {
            self.step()?;
            Disk.create_folder(path)
        }

        fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
            self.step()?;
            Disk.list(path)
        }
    }

    /// All faults of so many operations.
    pub(crate) fn faults(operations: usize) -> impl Iterator<Item = Fault> {
        (0..operations).flat_map(|at| {
            let errors = [Errno::NOSPC, Errno::IO, Errno::NOMEM, Errno::ROFS];
            let failed = errors.into_iter().map(move |error| Fault::Nth(at, error));
            failed.chain([Fault::KilledAt(at)])
        })
    }

    #[test]
    fn file_has_former_or_new_content_whatever_fails() {
        let disk = Arc::new(FaultyDisk::default());
        for durability in [Durability::Synced, Durability::Cached] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file.json");
            let replace = |bytes| replace(&*disk, &path, 0o600, bytes, durability);
            disk.set(None);
            replace(b"former").unwrap();
            let operations = disk.operations();
            assert_eq!(
                operations,
                if durability == Durability::Synced {
                    5
                } else {
                    3
                }
            );
            for fault in faults(operations) {
                disk.set(None);
                replace(b"former").unwrap();
                disk.set(Some(fault));
                let failed = replace(b"the new content").is_err();
                assert!(failed, "{fault:?}");
                let content = fs::read(&path).unwrap();
                let is_whole = content == b"former" || content == b"the new content";
                assert!(is_whole, "{fault:?}: {content:?}");
                disk.set(None);
                replace(b"the new content").unwrap();
                assert_eq!(fs::read(&path).unwrap(), b"the new content", "{fault:?}");
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{fault:?}");
            }
        }
    }
}
