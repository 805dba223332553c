//! The file system that the guest boots into: a cpio archive with the program, what it needs to be
//! loaded, and what else is carried along.

mod archive;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Kinds of files, as in the mode of `stat`.
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const DEVICE: u32 = 0o020_000;
const LINK: u32 = 0o120_000;

/// Links that follow each other to no end are given up after so many.
const LINKS_MAX: usize = 8;

/// Writes a file system as the kernel unpacks it. Everything in it belongs to root, but for what an
/// archive gives to others.
#[derive(Debug)]
pub struct Initramfs<W: Write> {
    out: W,
    entries: u32,
    /// Paths that are there already, without a leading slash.
    present: BTreeSet<String>,
    /// The symbolic links among them, and what they say. Paths are never written through links: the kernel
    /// would put a folder in place of the link.
    links: BTreeMap<String, String>,
}

/// What an entry is, beside its name and contents.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    /// As in `stat`.
    mode: u32,
    user: u32,
    group: u32,
    /// Major and minor number of a device.
    device: (u32, u32),
}

impl Kind {
    /// Of root, and no device.
    fn of_root(mode: u32) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }
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
            links: BTreeMap::new(),
        };
        archive.add_folder("dev")?;
        let console = Kind {
            device: (5, 1),
            ..Kind::of_root(DEVICE | 0o600)
        };
        archive.entry("dev/console", console, &[])?;
        Ok(archive)
    }

    /// Lets only root write to the root folder. By default all users may, which a whole system does
    /// not accept.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn protect_root(&mut self) -> io::Result<()> {
        self.entry(".", Kind::of_root(FOLDER | 0o755), &[])
    }

    /// Adds an empty folder and those above it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_folder(&mut self, guest: &str) -> io::Result<()> {
        let guest = self.place(guest)?;
        self.add_parents(&guest)?;
        if self.present.contains(&guest) || guest.is_empty() {
            return Ok(());
        }
        self.entry(&guest, Kind::of_root(FOLDER | 0o755), &[])
    }

    /// Adds a file with these contents; the first one of a name stays.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_bytes(&mut self, guest: &str, mode: u32, contents: &[u8]) -> io::Result<()> {
        let guest = self.place(guest)?;
        self.add_parents(&guest)?;
        if self.present.contains(&guest) {
            return Ok(());
        }
        self.entry(&guest, Kind::of_root(FILE | (mode & 0o7777)), contents)
    }

    /// Adds a symbolic link; the first thing of a name stays.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add_link(&mut self, guest: &str, target: &str) -> io::Result<()> {
        let guest = self.place(guest)?;
        self.add_parents(&guest)?;
        if self.present.contains(&guest) {
            return Ok(());
        }
        self.links.insert(guest.clone(), target.to_owned());
        self.entry(&guest, Kind::of_root(LINK | 0o777), target.as_bytes())
    }

    /// Adds a file of the host, with the shared libraries that it needs if it is a program, or a folder with everything
    /// in it: programs in there bring what they need.
    ///
    /// # Errors
    /// Something cannot be read; the message names it.
    pub fn add(&mut self, host: &Path, guest: &str) -> io::Result<()> {
        self.add_alone(host, guest)?;
        let needed = match fs::metadata(host).is_ok_and(|status| status.is_file()) {
            true => libraries(host).map_err(|error| about(host, &error))?,
            false => Vec::new(),
        };
        needed
            .iter()
            .try_for_each(|library| self.add_alone(library, &library.to_string_lossy()))
    }

    fn add_alone(&mut self, host: &Path, guest: &str) -> io::Result<()> {
        let named = |error: io::Error| about(host, &error);
        let status = fs::metadata(host).map_err(named)?;
        if !status.is_dir() {
            let contents = fs::read(host).map_err(named)?;
            return self.add_bytes(guest, status.permissions().mode(), &contents);
        }
        self.add_folder(guest)?;
        let mut inside: Vec<PathBuf> = fs::read_dir(host)
            .map_err(named)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()
            .map_err(named)?;
        inside.sort();
        inside.iter().try_for_each(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.add_alone(path, &format!("{guest}/{name}"))
        })
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", Kind::default(), &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Where a path leads: without links before its last name, from the root, without a leading slash.
    fn place(&self, guest: &str) -> io::Result<String> {
        let mut path = within_root(guest);
        for _ in 0..LINKS_MAX {
            let ends = path.match_indices('/').map(|(end, _)| end);
            let through = ends
                .filter_map(|end| Some((end, self.links.get(&path[..end])?)))
                .next();
            let Some((end, target)) = through else {
                return Ok(path);
            };
            let above = match target.starts_with('/') {
                true => Path::new(""),
                false => Path::new(&path[..end]).parent().unwrap_or(Path::new("")),
            };
            let led = above.join(target.trim_start_matches('/'));
            path = within_root(&format!("{}{}", led.display(), &path[end..]));
        }
        Err(io::Error::other(format!("{guest} leads in circles")))
    }

    fn add_parents(&mut self, guest: &str) -> io::Result<()> {
        let ends: Vec<usize> = guest.match_indices('/').map(|(end, _)| end).collect();
        for end in ends {
            if !self.present.contains(&guest[..end]) {
                self.entry(&guest[..end], Kind::of_root(FOLDER | 0o755), &[])?;
            }
        }
        Ok(())
    }

    /// # Source
    /// `Documentation/driver-api/early-userspace/buffer-format.rst` of Linux: the format "newc".
    fn entry(&mut self, name: &str, kind: Kind, contents: &[u8]) -> io::Result<()> {
        self.present.insert(name.to_owned());
        self.entries += 1;
        let size = u32::try_from(contents.len())
            .map_err(|_| io::Error::other(format!("{name} is larger than 4 GiB")))?;
        let name_size = u32::try_from(name.len() + 1).map_err(io::Error::other)?;
        write!(self.out, "070701")?;
        let links = if kind.mode & 0o170_000 == FOLDER {
            2
        } else {
            1
        };
        let fields = [
            self.entries,
            kind.mode,
            kind.user,
            kind.group,
            links,
            0,
            size,
            0,
            0,
            kind.device.0,
            kind.device.1,
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
    let mut names = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => names.push(name.to_string_lossy()),
            Component::ParentDir => drop(names.pop()),
            _ => {}
        }
    }
    names.join("/")
}

/// An error with the path that it is about.
fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The loader and the shared libraries of a program, as the host would load them; none for a static
/// one, and for a file that is no program.
fn libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let mut first = [0; 4];
    let read = fs::File::open(program)?.read(&mut first)?;
    if first[..read] != *b"\x7fELF" {
        return Ok(Vec::new());
    }
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
pub(crate) mod tests {
    use super::*;

    /// Names, modes and contents, read back by the format's definition.
    pub(crate) fn entries(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
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
    fn files_go_where_links_lead() {
        let mut archive = Initramfs::new(Vec::new()).unwrap();
        archive.add_link("/bin", "usr/bin").unwrap();
        archive.add_link("/usr/lib64", "../lib").unwrap();
        archive.add_link("/lib", "/usr/lib").unwrap();
        for path in ["/bin/x", "/usr/lib64/y", "/lib/z", "/bin"] {
            archive.add_bytes(path, 0o755, b"").unwrap();
        }
        let found = entries(&archive.finish().unwrap());
        let names: Vec<_> = found[2..].iter().map(|(name, ..)| name.as_str()).collect();
        let expected = [
            "bin",
            "usr",
            "usr/lib64",
            "lib",
            "usr/bin",
            "usr/bin/x",
            "usr/lib",
            "usr/lib/y",
            "usr/lib/z",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn links_in_circles_are_refused() {
        let mut archive = Initramfs::new(Vec::new()).unwrap();
        archive.add_link("/a", "b").unwrap();
        archive.add_link("/b", "a").unwrap();
        let error = archive.add_bytes("/a/file", 0o644, b"").unwrap_err();
        assert_eq!(error.to_string(), "/a/file leads in circles");
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
