//! What dpkg leaves when it has unpacked packages and configured none of them: their files and its database, written
//! straight into a guest's file system. Where the processor is emulated, dpkg itself takes minutes for that.
//!
//! Two things are simpler. Scripts that run before unpacking do not run: nearly all that they do is
//! to remove what older versions left. And no file is known as one of a package's configuration:
//! dpkg never asks about changes to it.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::initramfs::Initramfs;

/// dpkg's database.
const DATABASE: &str = "/var/lib/dpkg";
/// The names of files in `info` are as of this version.
const FORMAT: &[u8] = b"1\n";

/// Adds these packages, unpacked; none of them may be there yet.
///
/// # Errors
/// One is no package, or the writer fails; the message names the package.
pub(crate) fn add_unpacked<W: Write>(
    archive: &mut Initramfs<W>,
    packages: &[PathBuf],
) -> io::Result<()> {
    let mut database = Database::default();
    for package in packages {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", package.display()))
        };
        let files = part(package, "--fsys-tarfile").map_err(named)?;
        let control = part(package, "--ctrl-tarfile").map_err(named)?;
        database.unpack(archive, &files, &control).map_err(named)?;
    }
    database.finish(archive)
}

/// One of the two archives in a package.
fn part(package: &Path, which: &str) -> io::Result<Vec<u8>> {
    let output = Command::new("dpkg-deb").arg(which).arg(package).output();
    let output =
        output.map_err(|error| io::Error::other(format!("dpkg-deb cannot be run: {error}")))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("it is no package: {said}")))
        }
    }
}

/// The contents of the files about all packages.
#[derive(Debug, Default)]
struct Database {
    status: String,
    /// The packages that wait for each trigger.
    triggers: BTreeMap<String, Vec<String>>,
}

impl Database {
    /// Adds a package by its two archives.
    fn unpack<W: Write>(
        &mut self,
        archive: &mut Initramfs<W>,
        files: &[u8],
        control: &[u8],
    ) -> io::Result<()> {
        archive.add_archive(files)?;
        let mut about = Vec::new();
        let mut control = tar::Archive::new(control);
        for entry in control.entries()? {
            let mut entry = entry?;
            let name = entry.path()?.to_string_lossy().into_owned();
            let name = name.trim_start_matches("./").to_owned();
            if entry.header().entry_type().is_file() {
                let mut contents = Vec::new();
                entry.read_to_end(&mut contents)?;
                about.push((name, entry.header().mode()?, contents));
            }
        }
        let stanza = about.iter().find(|(name, ..)| name == "control");
        let (.., stanza) = stanza.ok_or_else(|| io::Error::other("it does not say what it is"))?;
        let stanza = String::from_utf8_lossy(stanza).trim_end().to_owned();
        let name = name(&stanza).ok_or_else(|| io::Error::other("it does not say its name"))?;
        let info = |what: &str| format!("{DATABASE}/info/{name}.{what}");
        for (what, mode, contents) in about.iter().filter(|(what, ..)| what != "control") {
            if what == "triggers" {
                self.wait_for(&name, &String::from_utf8_lossy(contents));
            }
            archive.add_bytes(&info(what), *mode, contents)?;
        }
        archive.add_bytes(&info("list"), 0o644, list(files)?.as_bytes())?;
        self.status
            .push_str(&format!("{stanza}\nStatus: install ok unpacked\n\n"));
        Ok(())
    }

    /// Takes in what a package waits for, as its `triggers` say it.
    ///
    /// # Source
    /// `deb-triggers(5)`; the files are described in `/usr/share/doc/dpkg/spec/triggers.txt`.
    fn wait_for(&mut self, package: &str, triggers: &str) {
        for line in triggers.lines() {
            let mut words = line.split_whitespace();
            let suffix = match words.next() {
                Some("interest" | "interest-await") => "",
                Some("interest-noawait") => "/noawait",
                _ => continue,
            };
            if let Some(what) = words.next() {
                let waiting = self.triggers.entry(what.to_owned()).or_default();
                waiting.push(format!("{package}{suffix}"));
            }
        }
    }

    /// Adds the files about all packages.
    fn finish<W: Write>(self, archive: &mut Initramfs<W>) -> io::Result<()> {
        let mut add = |name: &str, contents: &[u8]| {
            archive.add_bytes(&format!("{DATABASE}/{name}"), 0o644, contents)
        };
        add("status", self.status.as_bytes())?;
        add("info/format", FORMAT)?;
        let mut of_files = String::new();
        for (what, packages) in &self.triggers {
            if what.starts_with('/') {
                let lines = packages.iter().map(|package| format!("{what} {package}\n"));
                of_files.extend(lines);
            } else {
                let text = packages.join("\n") + "\n";
                add(&format!("triggers/{what}"), text.as_bytes())?;
            }
        }
        add("triggers/File", of_files.as_bytes())
    }
}

/// What dpkg calls a package in the names of files: with its architecture where there may be several.
fn name(stanza: &str) -> Option<String> {
    let field = |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name));
    let package = field("Package: ")?;
    Some(match field("Multi-Arch: ") {
        Some("same") => format!("{package}:{}", field("Architecture: ")?),
        _ => package.to_owned(),
    })
}

/// The paths in an archive, one a line.
fn list(files: &[u8]) -> io::Result<String> {
    let mut paths = String::new();
    for entry in tar::Archive::new(files).entries()? {
        let path = entry?.path()?.to_string_lossy().into_owned();
        let path = path.trim_start_matches("./").trim_end_matches('/');
        paths.push('/');
        // So dpkg writes the root.
        paths.push_str(if path.is_empty() { "." } else { path });
        paths.push('\n');
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::initramfs::tests::entries;

    fn packed(files: &[(&str, u32, &str)]) -> Vec<u8> {
        let mut packed = tar::Builder::new(Vec::new());
        for (path, mode, contents) in files {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(match path.ends_with('/') {
                true => tar::EntryType::Directory,
                false => tar::EntryType::Regular,
            });
            header.set_mode(*mode);
            header.set_uid(0);
            header.set_gid(0);
            header.set_size(contents.len() as u64);
            packed
                .append_data(&mut header, path, contents.as_bytes())
                .unwrap();
        }
        packed.into_inner().unwrap()
    }

    #[test]
    fn packages_are_as_dpkg_has_them_between_unpacking_and_configuring() {
        let mut archive = Initramfs::new(Vec::new()).unwrap();
        let mut database = Database::default();
        let library = "Package: libx\nArchitecture: amd64\nMulti-Arch: same\nDescription: a\n b\n";
        let files = packed(&[
            ("./", 0o755, ""),
            ("./usr/", 0o755, ""),
            ("./usr/a", 0o644, "x"),
        ]);
        let control = packed(&[
            ("./control", 0o644, library),
            ("./postinst", 0o755, "#!"),
            (
                "./triggers",
                0o644,
                "# why\ninterest-noawait /usr/b\nactivate-noawait ldconfig\n",
            ),
        ]);
        database.unpack(&mut archive, &files, &control).unwrap();
        let control = packed(&[
            ("./control", 0o644, "Package: bin\nArchitecture: amd64\n"),
            (
                "./triggers",
                0o644,
                "interest-await ldconfig\ninterest /usr/b\n",
            ),
        ]);
        database
            .unpack(&mut archive, &packed(&[]), &control)
            .unwrap();
        database.finish(&mut archive).unwrap();

        let bytes = archive.finish().unwrap();
        let found: BTreeMap<String, (u32, String)> = entries(&bytes)
            .into_iter()
            .map(|(name, mode, contents)| (name, (mode, String::from_utf8(contents).unwrap())))
            .collect();
        let expected = [
            ("usr/a", 0o644, "x"),
            ("var/lib/dpkg/info/libx:amd64.postinst", 0o755, "#!"),
            (
                "var/lib/dpkg/info/libx:amd64.list",
                0o644,
                "/.\n/usr\n/usr/a\n",
            ),
            ("var/lib/dpkg/info/bin.list", 0o644, ""),
            ("var/lib/dpkg/info/format", 0o644, "1\n"),
            (
                "var/lib/dpkg/status",
                0o644,
                "Package: libx\nArchitecture: amd64\nMulti-Arch: same\nDescription: a\n b\n\
                 Status: install ok unpacked\n\n\
                 Package: bin\nArchitecture: amd64\nStatus: install ok unpacked\n\n",
            ),
            (
                "var/lib/dpkg/triggers/File",
                0o644,
                "/usr/b libx:amd64/noawait\n/usr/b bin\n",
            ),
            ("var/lib/dpkg/triggers/ldconfig", 0o644, "bin\n"),
        ];
        for (name, mode, contents) in expected {
            let wanted = (0o100_000 | mode, contents.to_owned());
            assert_eq!(found.get(name), Some(&wanted), "{name}");
        }
        assert!(!found.contains_key("var/lib/dpkg/info/bin.control"));
    }

    #[test]
    fn a_package_without_a_name_is_refused() {
        let mut archive = Initramfs::new(Vec::new()).unwrap();
        for control in [packed(&[]), packed(&[("./control", 0o644, "Version: 1\n")])] {
            let refused = Database::default().unpack(&mut archive, &packed(&[]), &control);
            let said = refused.unwrap_err().to_string();
            assert!(said.starts_with("it does not say "), "{said}");
        }
    }
}
