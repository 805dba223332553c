//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, flock};

/// How names of files begin that are being written. Listings leave them out, as they do with all such names.
const UNFINISHED: &str = ".writing-";

/// Writes a file under this name of a folder: a reader sees the old one or the new one, whole, also if the
/// machine stops meanwhile.
///
/// # Errors
/// If it cannot be written. Then the old file is as it was, and nothing else is left.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    // A concurrent `tidy` may remove the file before it is locked: then try again.
    for _ in 0..ATTEMPTS {
        let unfinished = folder.join(unique());
        let written = write_locked(&unfinished, bytes)
            .and_then(|file| fs::rename(&unfinished, folder.join(name)).map(|()| file));
        match written {
            Ok(_) => return File::open(folder)?.sync_all(),
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => {}
            // A process that had our number was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                // It may never have come to be.
                let _ = fs::remove_file(&unfinished);
                return Err(error);
            }
        }
    }
    Err(io::Error::other(
        "another process keeps removing the unfinished file",
    ))
}

const ATTEMPTS: usize = 10;

/// A name that no other file has, whatever computer shares the folder: the number of the process, and the moment.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let host = rustix::system::uname();
    format!(
        "{UNFINISHED}{}-{}-{}",
        host.nodename().to_string_lossy(),
        process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Writes a file and keeps it locked, so that others see that its writer lives.
fn write_locked(path: &PathBuf, bytes: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    // Some network file systems have no locks; there, no process tidies up.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(file)
}

/// Removes what writers left that were killed; what a living one writes stays. Returns how many files that were.
///
/// # Errors
/// If the folder cannot be read.
pub fn tidy(folder: &Path) -> io::Result<usize> {
    let mut removed = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        // Another one may tidy up at the same time, so whatever fails here has been done or is not to be done.
        let free = OpenOptions::new()
            .write(true)
            .open(entry.path())
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok());
        if free && fs::remove_file(entry.path()).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn files_appear_under_their_names_alone() {
        let folder = tempfile::tempdir().unwrap();
        for text in [&b"one"[..], b"another"] {
            write(folder.path(), "a", text).unwrap();
            assert_eq!(fs::read(folder.path().join("a")).unwrap(), text);
            assert_eq!(names(folder.path()), ["a"]);
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        assert!(
            write(folder.path(), "a", b"one").is_err(),
            "a folder is there"
        );
        assert_eq!(names(folder.path()), ["a"]);
        let missing = folder.path().join("none");
        let error = write(&missing, "a", b"one").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn tidy_removes_files_of_dead_writers_only() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".writing-x-1-0"), "of a killed one").unwrap();
        fs::write(folder.path().join("notes"), "of another program").unwrap();
        let path = folder.path().join(unique());
        let alive = write_locked(&path, b"half").unwrap();
        assert_eq!(tidy(folder.path()).unwrap(), 1);
        assert_eq!(names(folder.path()).len(), 2, "{:?}", names(folder.path()));
        drop(alive);
        assert_eq!(tidy(folder.path()).unwrap(), 1);
        assert_eq!(names(folder.path()), ["notes"]);
    }
}
