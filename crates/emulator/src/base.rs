//! What a guest has before anything is carried into it, and with that, what becomes of the files of a boot.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::debian::{System, add_unpacked};
use crate::guest::{ORDERS, Orders, unit};
use crate::initramfs::Initramfs;
use crate::{Boot, Kernel};

/// What the guest has beside what is carried along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// Nothing. The program is started by the first process.
    #[default]
    Bare,
    /// These Debian packages, unpacked as dpkg does it, and not configured; otherwise the same.
    Unpacked(Vec<PathBuf>),
    /// A Debian system: systemd is the first process, and the program is started by a unit. What the system
    /// has it keeps: files that are carried along have to be new to it.
    System(System),
}

impl Base {
    /// Words of the kernel's command line.
    pub(crate) const fn append(&self) -> &'static str {
        match self {
            Self::Bare | Self::Unpacked(_) => "",
            // No user logs in, no kernel module is on board, the next boot needs no seed, and the
            // system was just installed: the first boot has nothing to update.
            Self::System(_) => {
                "systemd.mask=getty.target systemd.mask=systemd-modules-load.service systemd.mask=systemd-random-seed.service \
                 systemd.condition-needs-update=no systemd.show_status=error"
            }
        }
    }
}

/// Writes the file system that the guest boots into.
pub(crate) fn write_initramfs(boot: &Boot, kernel: &Kernel, path: &Path) -> io::Result<()> {
    let orders = Orders {
        limit: boot.timeout,
        program: boot.guest_program().into(),
        arguments: boot.arguments.clone(),
        environment: boot.environment.clone(),
        collect: boot.collect.iter().map(|one| one.guest.clone()).collect(),
    };
    let mut archive = Initramfs::new(BufWriter::new(File::create(path)?))?;
    archive.add_bytes(ORDERS, 0o600, &serde_json::to_vec(&orders)?)?;
    match &boot.base {
        Base::Bare => add_bare(&mut archive)?,
        Base::Unpacked(packages) => add_unpacked(&mut archive, packages)?,
        Base::System(system) => system.add_to(&mut archive)?,
    }
    archive.add(&boot.program, &boot.guest_program())?;
    let first = match &boot.base {
        Base::Bare | Base::Unpacked(_) => "/init",
        Base::System(_) => {
            unit::add_to(&mut archive)?;
            unit::PROGRAM
        }
    };
    match boot.init == boot.program {
        true => archive.add_link(first, &boot.guest_program())?,
        false => archive.add(&boot.init, first)?,
    }
    // Loaders of BPF programs look here for what the kernel was built with.
    archive.add(&kernel.config, &format!("/boot/config-{}", kernel.release))?;
    for file in &boot.files {
        archive.add(&file.host, &file.guest)?;
    }
    archive.finish().map(drop)
}

fn add_bare<W: Write>(archive: &mut Initramfs<W>) -> io::Result<()> {
    archive.add_bytes("/etc/passwd", 0o644, b"root:x:0:0::/tmp:/bin/sh\n")?;
    archive.add_bytes("/etc/group", 0o644, b"root:x:0:\n")?;
    // Where the loader finds libraries that are in no usual place.
    let places = Path::new("/etc/ld.so.cache");
    if places.exists() {
        archive.add(places, "/etc/ld.so.cache")?;
    }
    Ok(())
}
