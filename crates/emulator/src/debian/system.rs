//! A fresh Debian system: which packages it has, and how they come to be installed without privileges
//! here. They are unpacked into a guest, which configures them as a machine does, scripts and all, and sends home
//! what that makes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{Apt, SUITES, Suite};
use crate::cache::{Cache, unwritable};
use crate::initramfs::Initramfs;
use crate::{Base, Boot, BootError, CarriedFile, Emulator, Unavailable};

/// What is asked for; what these need comes with them. The two libraries are those of programs that load
/// BPF programs: a guest that installs one has no network to fetch them by.
const WANTED: &[&str] = &[
    "?essential",
    "systemd-sysv",
    "passwd",
    "procps",
    "libgcc-s1",
    "libelf1t64",
    "zlib1g",
];
/// The package with the C library.
const C_LIBRARY: &str = "libc6";
/// Installs them; the first program of the guest.
const SETUP: &str = include_str!("setup.sh");
/// Where that is in the guest.
const SETUP_PLACE: &str = "/setup";
/// It takes half a minute where the processor is emulated.
const SETUP_LIMIT: Duration = Duration::from_secs(900);
/// A system's file in the cache.
const ARCHIVE: &str = "root.tar.zst";
/// Quick, and a third of the size.
const LEVEL: i32 = 3;

/// An installed Debian system, ready to be booted: see [`Base::System`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    archive: PathBuf,
}

/// Packages of one suite that make a system.
struct Plan {
    /// `name=version`, in the order in which a package client would install them.
    packages: Vec<String>,
    /// Where they are in the end: named by what they are.
    place: PathBuf,
}

impl System {
    /// What is in it.
    ///
    /// # Errors
    /// The archive cannot be read, or the writer fails.
    pub(crate) fn add_to<W: io::Write>(&self, archive: &mut Initramfs<W>) -> io::Result<()> {
        archive.protect_root()?;
        archive.add_archive(zstd::Decoder::new(File::open(&self.archive)?)?)
    }

    fn cached(cache: &Cache) -> Option<Self> {
        let place = cache.note(choice())?;
        let archive = cache.path(place).join(ARCHIVE);
        archive.exists().then_some(Self { archive })
    }
}

impl Emulator {
    /// A Debian system with systemd and little else: from the cache, else fetched (40 MB) and installed, once.
    ///
    /// The calling program boots a guest for that, and so has to call
    /// [`guest::serve_if_first`](crate::guest::serve_if_first) at its start.
    ///
    /// # Errors
    /// There is no network or no Debian mirror, the C library of the suites is older than this machine's, or
    /// the guest failed.
    pub fn system(&self) -> Result<System, BootError> {
        if let Some(system) = System::cached(self.cache()) {
            return Ok(system);
        }
        let folder = tempfile::tempdir().map_err(BootError::Files)?;
        let plan = self.fetch_packages(folder.path())?;
        // Others may fetch meanwhile: a guest takes its time, and may itself need the lock.
        if !self.cache().path(&plan.place).join(ARCHIVE).exists() {
            let archive = folder.path().join(ARCHIVE);
            self.install(&plan, folder.path(), &archive)?;
            let locked = self.cache().lock()?;
            locked.install(&plan.place, |place| {
                let moved = fs::copy(&archive, place.join(ARCHIVE)).and_then(|_| {
                    fs::write(place.join("packages"), plan.packages.join("\n") + "\n")
                });
                moved.map_err(|error| unwritable(place, &error))
            })?;
        }
        let locked = self.cache().lock()?;
        locked.remember(choice(), &plan.place.to_string_lossy())?;
        System::cached(self.cache()).ok_or_else(|| {
            let gone = Unavailable::new("the system vanished from the cache", "try again");
            BootError::Unavailable(gone)
        })
    }

    /// Downloads the packages of the first suite that suits.
    fn fetch_packages(&self, folder: &Path) -> Result<Plan, Unavailable> {
        let own = c_library_here()?;
        let locked = self.cache().lock()?;
        let mut obstacle = None;
        // The oldest that will do: a stable one, before those that change by the day.
        for suite in SUITES.iter().rev().filter(|suite| suite.system) {
            let fetched = Apt::open(&locked, suite).and_then(|apt| {
                let packages = apt.closure(WANTED)?;
                check_c_library(suite, &packages, own)?;
                let place = Path::new("systems").join(digest(&packages));
                if !self.cache().path(&place).join(ARCHIVE).exists() {
                    apt.download(&packages, folder)?;
                }
                Ok(Plan { packages, place })
            });
            match fetched {
                Ok(plan) => return Ok(plan),
                Err(error) => obstacle = obstacle.or(Some(error)),
            }
        }
        Err(obstacle
            .unwrap_or_else(|| Unavailable::new("no suite has systems", "add one to the table")))
    }

    /// Boots a guest that installs the packages in `folder`, and keeps what it sends.
    fn install(&self, plan: &Plan, folder: &Path, archive: &Path) -> Result<(), BootError> {
        let setup = folder.join("setup");
        fs::write(&setup, SETUP).map_err(BootError::Files)?;
        let packages = files(plan, folder).map_err(BootError::Files)?;
        let mut boot = Boot::new("/bin/sh")?;
        boot.arguments = vec![SETUP_PLACE.into()];
        boot.files = vec![CarriedFile {
            host: setup,
            guest: SETUP_PLACE.to_owned(),
        }];
        boot.base = Base::Unpacked(packages);
        boot.timeout = SETUP_LIMIT;
        let mut said = Vec::new();
        let attempt = |said: &mut Vec<u8>| {
            let file = File::create(archive).map_err(BootError::Files)?;
            let mut packed = zstd::Encoder::new(file, LEVEL).map_err(BootError::Files)?;
            let exit = self.boot(&boot, &mut packed, said)?;
            packed.finish().map_err(BootError::Files)?;
            Ok::<_, BootError>(exit.code)
        };
        match attempt(&mut said)? {
            0 => Ok(()),
            code => Err(BootError::Refused(format!(
                "installing the packages of a system ended with {code}:\n{}",
                crate::boot::tail(&String::from_utf8_lossy(&said))
            ))),
        }
    }
}

/// The files of the packages, in the order of the plan.
fn files(plan: &Plan, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let present: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    let find = |package: &String| {
        let name = package.split('=').next().unwrap_or(package);
        let is_it = |path: &&PathBuf| {
            let rest = name_of(path).strip_prefix(name).map(str::to_owned);
            rest.is_some_and(|rest| rest.starts_with('_'))
        };
        let found = present.iter().find(is_it).cloned();
        found.ok_or_else(|| io::Error::other(format!("{package} was not downloaded")))
    };
    plan.packages.iter().map(find).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Under which name the choice of a system is remembered: another for another list, or another way to
/// install it.
fn choice() -> String {
    let recipe: Vec<String> = WANTED
        .iter()
        .chain([&SETUP])
        .map(|&text| text.to_owned())
        .collect();
    format!("choice/system-{}", digest(&recipe))
}

/// A short name of a list and of how it is installed.
fn digest(list: &[String]) -> String {
    let mut hash = Sha256::new();
    for text in list.iter().map(String::as_str).chain([SETUP]) {
        hash.update(text);
        hash.update([0]);
    }
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Major and minor version of the C library that programs of this machine are linked with.
fn c_library_here() -> Result<(u32, u32), Unavailable> {
    let output = Command::new("ldd")
        .arg("--version")
        .env("LC_ALL", "C")
        .output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let said = said.unwrap_or_default();
    let first = said.lines().next().unwrap_or_default();
    let number = first.rsplit(' ').next().and_then(version);
    number.ok_or_else(|| {
        Unavailable::new(
            format!("`ldd --version` names no version, but says `{first}`"),
            "use a machine with the GNU C library",
        )
    })
}

/// `2.41-12+deb13u4` is (2, 41).
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    Some((next()?, next()?))
}

/// What this machine compiles runs only on its own C library or a newer one.
fn check_c_library(suite: &Suite, packages: &[String], own: (u32, u32)) -> Result<(), Unavailable> {
    let prefix = format!("{C_LIBRARY}=");
    let found = packages
        .iter()
        .find_map(|package| package.strip_prefix(&prefix));
    let (major, minor) = found.and_then(version).unwrap_or_default();
    if (major, minor) >= own {
        return Ok(());
    }
    Err(Unavailable::new(
        format!(
            "{} has C library {major}.{minor}, this machine {}.{}: its programs would not run there",
            suite.name, own.0, own.1
        ),
        "use a machine with an older one, or add a newer suite to crates/emulator/src/debian/mod.rs",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_c_library_are_compared_as_numbers() {
        let suite = &SUITES[0];
        let packages = vec![
            "libc-bin=1.0".to_owned(),
            "libc6=2.41-12+deb13u4".to_owned(),
        ];
        for own in [(2, 9), (2, 41)] {
            check_c_library(suite, &packages, own).unwrap();
        }
        let message = check_c_library(suite, &packages, (2, 42))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("C library 2.41, this machine 2.42"),
            "{message}"
        );
        assert!(check_c_library(suite, &[], (2, 9)).is_err());
    }

    #[test]
    fn another_version_is_another_system() {
        let of = |version: &str| digest(&[format!("libc6={version}")]);
        assert_eq!(of("2.41-12"), of("2.41-12"));
        assert_ne!(of("2.41-12"), of("2.41-13"));
        // Where one name ends and the next begins counts as well.
        assert_ne!(
            digest(&["a".to_owned(), "b".to_owned()]),
            digest(&["ab".to_owned()])
        );
    }

    #[test]
    fn files_of_packages_are_found_by_whole_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "libc-bin_2_amd64.deb",
            "libc6_2_amd64.deb",
            "dpkg_1_amd64.deb",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let plan = |names: &[&str]| Plan {
            packages: names.iter().map(|name| format!("{name}=1")).collect(),
            place: PathBuf::new(),
        };
        let found = files(&plan(&["libc6", "dpkg"]), folder.path()).unwrap();
        let names: Vec<String> = found.iter().map(|path| name_of(path)).collect();
        assert_eq!(names, ["libc6_2_amd64.deb", "dpkg_1_amd64.deb"]);
        let missing = files(&plan(&["lib"]), folder.path()).unwrap_err();
        assert_eq!(missing.to_string(), "lib=1 was not downloaded");
    }
}
