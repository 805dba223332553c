//! Programs of Debian packages that run without being installed: unpacked into a folder, on their own libraries.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Apt, SUITES};
use crate::cache::{Locked, unwritable};
use crate::{Emulator, Unavailable};

/// Where the libraries of an unpacked package are, from its folder.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// What loads its programs onto these libraries: `LOADER --library-path LIBRARIES PROGRAM`.
pub const LOADER: &str = "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";

/// A program of a Debian package with what it needs, and nothing else, for a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The package; what it depends on is not fetched.
    pub package: &'static str,
    /// The packages of its libraries. What these depend on is there as well.
    pub libraries: &'static [&'static str],
    /// The files that are kept, from the folder into which all are unpacked.
    pub files: &'static [&'static str],
}

/// Does something with the first suite that programs are taken from and with which it succeeds.
///
/// # Errors
/// There is no apt, no mirror, no network, no room, or no suite has what is wanted: that of the first suite.
pub(crate) fn from_first_suite<T>(
    locked: &Locked<'_>,
    fetch: impl Fn(&Apt) -> Result<T, Unavailable>,
) -> Result<T, Unavailable> {
    let mut obstacle = None;
    for suite in SUITES.iter().filter(|suite| suite.programs) {
        match Apt::open(locked, suite).and_then(|apt| fetch(&apt)) {
            Ok(fetched) => return Ok(fetched),
            Err(error) => obstacle = obstacle.or(Some(error)),
        }
    }
    Err(obstacle
        .unwrap_or_else(|| Unavailable::new("no suite has programs", "add one to the table")))
}

impl Emulator {
    /// The folder of a program: from the cache, else fetched, once. A guest that is given it starts the program by
    /// [`LOADER`].
    ///
    /// # Errors
    /// There is no such package or file, no network, or no Debian mirror.
    pub fn program(&self, program: &Program) -> Result<PathBuf, Unavailable> {
        let place = format!("programs/{}", program.package);
        let folder = self.cache().path(&place);
        let is_there = || program.files.iter().all(|file| folder.join(file).exists());
        if is_there() {
            return Ok(folder);
        }
        let locked = self.cache().lock()?;
        if is_there() {
            return Ok(folder);
        }
        let unpacked =
            tempfile::tempdir().map_err(|error| unwritable(&std::env::temp_dir(), &error))?;
        from_first_suite(&locked, |apt| {
            let mut packages = apt.closure(program.libraries)?;
            packages.push(program.package.to_owned());
            apt.unpack(&packages, unpacked.path())
        })?;
        locked.install(&place, |folder| {
            program.files.iter().try_for_each(|file| {
                let to = folder.join(file);
                copy(&unpacked.path().join(file), &to).map_err(|error| unwritable(&to, &error))
            })
        })
    }
}

/// Copies a file, or what a link leads to, and makes the folders above it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).map(drop)
}
