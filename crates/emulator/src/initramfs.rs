//! The file system that the guest boots into: a cpio archive with the program, what it needs to be
//! loaded, and what else is carried along.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Kinds of files, as in the mode of `stat`.
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const DEVICE: u32 = 0o020_000;
const LINK: u32 = 0o120_000;

/// Writes a file system as the kernel unpacks it. Everything in it belongs to root.
#[derive(Debug)]
pub struct Initramfs<W: Write> {
    out: W,
    entries: u32,
    /// Paths that are there already, without a leading slash.
    present: BTreeSet<String>,
}

impl<W: Write> Initramfs<W> {
    /// A file system with the console device only: without it the first process has no standard output
    /// to complain on.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        let mut archive = Self {
            out,
            entries: 0,
            present: BTreeSet::new(),
        };
        archive.add_folder("dev")?;
        archive.entry("dev/console", DEVICE | 0o600, (5, 1), &[])?;
        Ok(archive)
    }

    /// Adds an empty folder and those above it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_folder(&mut self, guest: &str) -> io::Result<()> {
        let guest = within_root(guest);
        self.add_parents(&guest)?;
        if self.present.contains(&guest) || guest.is_empty() {
            return Ok(());
        }
        self.entry(&guest, FOLDER | 0o755, (0, 0), &[])
    }

    /// Adds a file with these contents; the first one of a name stays.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_bytes(&mut self, guest: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
        let guest = within_root(guest);
        self.add_parents(&guest)?;
        if self.present.contains(&guest) {
            return Ok(());
        }
        self.entry(&guest, FILE | (mode & 0o7777), (0, 0), contents)
    }

    /// Adds a symbolic link to an absolute path.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_link(&mut self, guest: &str, target: &str) -> io::Result<()> {
        let guest = within_root(guest);
        self.add_parents(&guest)?;
        self.entry(&guest, LINK | 0o777, (0, 0), target.as_bytes())
    }

    /// Adds a file of the host, or a folder with everything in it, and the shared libraries that the
    /// programs among them need.
    ///
    /// # Errors
    /// Something cannot be read; the message names it.
    pub fn add(&mut self, host: &Path, guest: &str) -> io::Result<()> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", host.display()));
        let status = fs::metadata(host).map_err(named)?;
        if status.is_dir() {
            self.add_folder(guest)?;
            let mut inside: Vec<PathBuf> = fs::read_dir(host)
                .map_err(named)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<io::Result<_>>()
                .map_err(named)?;
            inside.sort();
            for path in inside {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                self.add(&path, &format!("{guest}/{name}"))?;
            }
            return Ok(());
        }
        let contents = fs::read(host).map_err(named)?;
        self.add_bytes(guest, status.permissions().mode(), &contents)?;
        if contents.starts_with(b"\x7fELF") {
            for library in libraries(host).map_err(named)? {
                let place = library.to_string_lossy().into_owned();
                let contents = fs::read(&library).map_err(named)?;
                self.add_bytes(&place, 0o755, &contents)?;
            }
        }
        Ok(())
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, (0, 0), &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn add_parents(&mut self, guest: &str) -> io::Result<()> {
        let ends: Vec<usize> = guest.match_indices('/').map(|(end, _)| end).collect();
        for end in ends {
            if !self.present.contains(&guest[..end]) {
                self.entry(&guest[..end], FOLDER | 0o755, (0, 0), &[])?;
            }
        }
        Ok(())
    }

    /// # Source
    /// `Documentation/driver-api/early-userspace/buffer-format.rst` of Linux: the format "newc".
    fn entry(
        &mut self,
        name: &str,
        mode: u32,
        (major, minor): (u32, u32),
        contents: &[u8],
    ) -> io::Result<()> {
        self.present.insert(name.to_owned());
        self.entries += 1;
        let size = u32::try_from(contents.len())
            .map_err(|_| io::Error::other(format!("{name} is larger than 4 GiB")))?;
        let name_size = u32::try_from(name.len() + 1).map_err(io::Error::other)?;
        write!(self.out, "070701")?;
        let links = if mode & 0o170_000 == FOLDER { 2 } else { 1 };
        let fields = [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            size,
            0,
            0,
            major,
            minor,
            name_size,
            0,
        ];
        for field in fields {
            write!(self.out, "{field:08X}")?;
        }
        write!(self.out, "{name}\0")?;
        // The head has 110 bytes; names and contents are padded to four.
        self.pad(110 + name.len() + 1)?;
        self.out.write_all(contents)?;
        self.pad(contents.len())
    }

    fn pad(&mut self, length: usize) -> io::Result<()> {
        self.out
            .write_all(&[0; 3][..length.next_multiple_of(4) - length])
    }
}

/// A path as the archive has it: from the root, without `.` and `..`.
fn within_root(path: &str) -> String {
    let names = Path::new(path).components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    names.collect::<Vec<_>>().join("/")
}

/// The loader and the shared libraries of a program, as the host would load them; none for a static
/// one.
fn libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).env("LC_ALL", "C").output();
    let output = output.map_err(|error| io::Error::other(format!("ldd cannot be run: {error}")))?;
    parse_libraries(&String::from_utf8_lossy(&output.stdout)).map_err(io::Error::other)
}

/// Lines such as `libc.so.6 => /lib/libc.so.6 (0x7f...)`, or with a path only for the loader.
fn parse_libraries(text: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        let place = match line.split_once(" => ") {
            Some((name, "not found")) => return Err(format!("its library {name} is missing")),
            Some((_, place)) => place,
            None => line,
        };
        let place = place.split(" (").next().unwrap_or(place);
        if place.starts_with('/') {
            found.push(PathBuf::from(place));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, modes and contents, read back by the format's definition.
    fn entries(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut found = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |index: usize| {
                let digits = std::str::from_utf8(&bytes[6 + 8 * index..][..8]).unwrap();
                u32::from_str_radix(digits, 16).unwrap()
            };
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = std::str::from_utf8(&bytes[110..110 + name_size - 1]).unwrap();
            let start = (110 + name_size).next_multiple_of(4);
            let contents = bytes[start..start + size].to_vec();
            if name == "TRAILER!!!" {
                return found;
            }
            found.push((name.to_owned(), mode, contents));
            bytes = &bytes[(start + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn files_come_after_their_folders_and_only_once() {
        let mut archive = Initramfs::new(Vec::new()).unwrap();
        archive
            .add_bytes("/boot/config-7", 0o644, b"CONFIG_X=y")
            .unwrap();
        archive.add_bytes("./boot//other", 0o755, b"12345").unwrap();
        archive
            .add_bytes("/boot/config-7", 0o644, b"another")
            .unwrap();
        archive.add_folder("/boot").unwrap();
        let found = entries(&archive.finish().unwrap());
        let names: Vec<_> = found.iter().map(|(name, ..)| name.as_str()).collect();
        let expected = ["dev", "dev/console", "boot", "boot/config-7", "boot/other"];
        assert_eq!(names, expected);
        assert_eq!(found[3].1, 0o100_644);
        assert_eq!(found[3].2, b"CONFIG_X=y");
    }

    #[test]
    fn a_program_brings_its_libraries() {
        let mut archive = Initramfs::new(Vec::new()).unwrap();
        let program = std::env::current_exe().unwrap();
        archive.add(&program, "/init").unwrap();
        let found = entries(&archive.finish().unwrap());
        let has = |part: &str| found.iter().any(|(name, ..)| name.contains(part));
        assert!(has("init"));
        assert!(has("libc.so") || libraries(&program).unwrap().is_empty());
    }

    #[test]
    fn what_ldd_prints_is_understood() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(parse_libraries(text).unwrap(), expected.map(PathBuf::from));
        assert_eq!(
            parse_libraries("\tnot a dynamic executable\n").unwrap(),
            Vec::<PathBuf>::new()
        );
        let missing = parse_libraries("\tlibelf.so.1 => not found\n").unwrap_err();
        assert_eq!(missing, "its library libelf.so.1 is missing");
    }

    #[test]
    fn a_missing_file_is_named() {
        let mut archive = Initramfs::new(Vec::new()).unwrap();
        let error = archive.add(Path::new("/no/such/file"), "/x").unwrap_err();
        assert!(error.to_string().starts_with("/no/such/file: "), "{error}");
    }
}
