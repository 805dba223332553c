//! Recordings of misses as files: a folder of them, of which the newest are kept.

use std::io;
use std::path::{Path, PathBuf};

use super::utc;
use crate::files::{Disk, Durability, Files, replace};

const EXTENSION: &str = "pftrace";

/// So much of a task's name is in that of the file.
const NAME_MAX: usize = 40;

/// Where recordings are kept. They show threads of all users, so only their owner may read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// It is made when there is something to keep.
    pub path: PathBuf,
    /// How many files there may be; older ones are removed. Zero: nothing is kept.
    pub files_max: usize,
}

impl Folder {
    /// Keeps this trace under a name made of the instant (ns since 1970) and the task. The file is there as a whole or not
    /// at all.
    ///
    /// # Errors
    /// If it cannot be written. Then nothing of it is there, and the others are as before.
    pub(crate) fn keep(
        &self,
        files: &dyn Files,
        unix_ns: u64,
        task: &str,
        trace: &[u8],
    ) -> io::Result<PathBuf> {
        files.create_folder(&self.path)?;
        let path = self.path.join(file_name(unix_ns, task));
        replace(files, &path, 0o600, trace, Durability::Synced)?;
        let kept = list_by(files, &self.path)?;
        for old in kept.iter().rev().skip(self.files_max) {
            files.remove(old)?;
        }
        Ok(path)
    }
}

/// The recordings in this folder, the oldest first; other files are left out. None if there is no folder.
///
/// # Errors
/// If it cannot be read.
pub fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    list_by(&Disk, folder)
}

fn list_by(files: &dyn Files, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = match files.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let name = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(is_ours)
    };
    found.retain(name);
    // Names begin with the time.
    found.sort();
    Ok(found)
}

/// `2026-11-22T17-16-48.123Z-imu.pftrace`: a colon would be the end of a host's name to `scp`.
fn file_name(unix_ns: u64, task: &str) -> String {
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    let task: String = task
        .chars()
        .map(|it| if is_plain(&it) { it } else { '_' })
        .take(NAME_MAX)
        .collect();
    format!("{}-{task}.{EXTENSION}", utc(unix_ns).replace(':', "-"))
}

fn is_ours(name: &str) -> bool {
    /// Where the digits are.
    const TIME: &str = "0000-00-00T00-00-00.000Z-";
    let is_time = name.len() > TIME.len()
        && TIME.bytes().zip(name.bytes()).all(|(want, is)| match want {
            b'0' => is.is_ascii_digit(),
            other => is == other,
        });
    is_time && name.ends_with(&format!(".{EXTENSION}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::files::tests::{FaultyDisk, faults};

    fn names(folder: &Folder) -> Vec<String> {
        let all = list(&folder.path).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        all.iter().map(name).collect()
    }

    #[test]
    fn the_newest_are_kept_and_what_is_not_ours_stays() {
        let above = tempfile::tempdir().unwrap();
        let folder = Folder {
            path: above.path().join("deep/records"),
            files_max: 3,
        };
        assert_eq!(names(&folder), Vec::<String>::new());
        for second in 0..5 {
            let kept = folder
                .keep(&Disk, second * 1_000_000_000, "a/b ü", b"x")
                .unwrap();
            assert_eq!(fs::read_to_string(&kept).unwrap(), "x");
            assert_eq!(
                fs::metadata(kept).unwrap().permissions().mode() & 0o777,
                0o600
            );
            fs::write(folder.path.join("notes.pftrace"), "mine").unwrap();
        }
        let mode = fs::metadata(&folder.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(
            names(&folder),
            [2, 3, 4].map(|s| format!("1970-01-01T00-00-0{s}.000Z-a_b__.pftrace"))
        );
        assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 4);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("records");
        fs::write(&path, "no folder").unwrap();
        let folder = Folder { path, files_max: 3 };
        assert!(folder.keep(&Disk, 0, "a", b"x").is_err());
        assert_eq!(fs::read_dir(above.path()).unwrap().count(), 1);
    }

    /// Whatever fails, all files are whole recordings, and the next one is kept.
    #[test]
    fn failure_of_any_step_leaves_whole_files() {
        let above = tempfile::tempdir().unwrap();
        let folder = Folder {
            path: above.path().join("records"),
            files_max: 1,
        };
        let disk = FaultyDisk::default();
        folder.keep(&disk, 0, "a", b"whole").unwrap();
        folder.keep(&disk, 1_000_000_000, "a", b"whole").unwrap();
        let mut second = 2;
        let mut keep = |fault| {
            disk.set(fault);
            second += 1;
            let kept = folder.keep(&disk, second * 1_000_000_000, "a", b"whole");
            (kept, disk.operations())
        };
        let (_, operations) = keep(None);
        assert_eq!(operations, 8);
        for fault in faults(operations) {
            let (kept, _) = keep(Some(fault));
            assert!(kept.is_err(), "{fault:?}");
            for file in list(&folder.path).unwrap() {
                assert_eq!(fs::read(&file).unwrap(), b"whole", "{fault:?}");
            }
            keep(None).0.unwrap();
            assert_eq!(names(&folder).len(), 1, "{fault:?}");
        }
    }
}
