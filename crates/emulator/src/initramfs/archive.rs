//! Adds what is in tar archives: those of packages, and that of an installed system.

use std::io::{self, Read, Write};

use tar::EntryType;

use super::{FILE, FOLDER, Initramfs, Kind, LINK};

impl<W: Write> Initramfs<W> {
    /// Adds everything in an archive, with its modes and owners; the first one of a name stays. A second
    /// name of a file becomes a symbolic link to the first. Devices are left out.
    ///
    /// # Errors
    /// The archive cannot be read, has a name that is no text, or the writer fails.
    pub fn add_archive(&mut self, archive: impl Read) -> io::Result<()> {
        let mut archive = tar::Archive::new(archive);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = text(entry.path()?.to_str())?;
            let place = self.place(&path)?;
            self.add_parents(&place)?;
            if place.is_empty() || self.present.contains(&place) {
                continue;
            }
            let header = entry.header().clone();
            let owned = |format: u32| -> io::Result<Kind> {
                Ok(Kind {
                    mode: format | (header.mode()? & 0o7777),
                    user: number(header.uid()?)?,
                    group: number(header.gid()?)?,
                    device: (0, 0),
                })
            };
            match header.entry_type() {
                EntryType::Directory => self.entry(&place, owned(FOLDER)?, &[])?,
                EntryType::Regular => {
                    let kind = owned(FILE)?;
                    let mut contents = Vec::new();
                    entry.read_to_end(&mut contents)?;
                    self.entry(&place, kind, &contents)?;
                }
                EntryType::Symlink | EntryType::Link => {
                    let is_second_name = header.entry_type() == EntryType::Link;
                    let target = entry.link_name()?;
                    let target = text(target.as_deref().and_then(std::path::Path::to_str))?;
                    let target = match is_second_name {
                        true => format!("/{}", self.place(&target)?),
                        false => target,
                    };
                    self.links.insert(place.clone(), target.clone());
                    self.entry(&place, Kind::of_root(LINK | 0o777), target.as_bytes())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn text(name: Option<&str>) -> io::Result<String> {
    name.map(str::to_owned)
        .ok_or_else(|| io::Error::other("an archive has a name that is no text"))
}

fn number(id: u64) -> io::Result<u32> {
    u32::try_from(id).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::super::tests::entries;
    use super::*;

    fn header(kind: EntryType, mode: u32, owner: u64, size: u64) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner);
        header.set_gid(owner + 1);
        header.set_size(size);
        header
    }

    #[test]
    fn modes_owners_and_links_are_kept() {
        let mut packed = tar::Builder::new(Vec::new());
        let folder = &mut header(EntryType::Directory, 0o1777, 3, 0);
        packed.append_data(folder, "./usr/bin/", &[][..]).unwrap();
        let link = &mut header(EntryType::Symlink, 0o777, 0, 0);
        packed.append_link(link, "./bin", "usr/bin").unwrap();
        let file = &mut header(EntryType::Regular, 0o4755, 7, 3);
        packed.append_data(file, "./bin/su", &b"ELF"[..]).unwrap();
        let second = &mut header(EntryType::Link, 0o755, 0, 0);
        packed
            .append_link(second, "./bin/other", "./bin/su")
            .unwrap();

        let mut archive = Initramfs::new(Vec::new()).unwrap();
        archive
            .add_archive(packed.into_inner().unwrap().as_slice())
            .unwrap();
        let bytes = archive.finish().unwrap();
        let shown: Vec<String> = entries(&bytes)[2..]
            .iter()
            .map(|(name, mode, contents)| {
                format!("{name} {mode:o} {}", String::from_utf8_lossy(contents))
            })
            .collect();
        let expected = [
            "usr 40755 ",
            "usr/bin 41777 ",
            "bin 120777 usr/bin",
            "usr/bin/su 104755 ELF",
            "usr/bin/other 120777 /usr/bin/su",
        ];
        assert_eq!(shown, expected);
        // User and group of a head are the third and fourth number.
        let head = |name: &str| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let start = text.find(&format!("{name}\0")).unwrap() - 110;
            text[start + 22..start + 38].to_owned()
        };
        assert_eq!(head("usr/bin/su"), "0000000700000008");
    }
}
