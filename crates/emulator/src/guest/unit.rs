//! The unit that stands in for the first process where that is systemd.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use rustix::process::{Pid, Signal, getpid, kill_process};

use crate::initramfs::Initramfs;

/// The program of the unit.
pub const PROGRAM: &str = "/usr/lib/shiftwork-emulator";
/// This environment variable is set for the unit's program only.
pub const VARIABLE: &str = "SHIFTWORK_EMULATOR_UNIT";

/// Where the unit is, and where it is wanted.
const PLACE: &str = "/etc/systemd/system/shiftwork-emulator.service";
const WANTED: &str = "/etc/systemd/system/multi-user.target.wants/shiftwork-emulator.service";

/// Whatever is left when it ends, the machine ends with it.
const TEXT: &str = "\
[Unit]
Description=What the host of this guest asked for
After=multi-user.target

[Service]
Type=exec
ExecStart=/usr/lib/shiftwork-emulator
Environment=SHIFTWORK_EMULATOR_UNIT=yes
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
LimitMEMLOCK=infinity
";

/// Makes it part of the system, and the system the first process.
pub(crate) fn add_to<W: Write>(archive: &mut Initramfs<W>) -> io::Result<()> {
    archive.add_link("/init", "/usr/lib/systemd/systemd")?;
    archive.add_bytes(PLACE, 0o644, TEXT.as_bytes())?;
    archive.add_link(WANTED, PLACE)
}

/// Ends whatever the program left running, but for services that it had systemd start.
pub(super) fn kill_others() -> io::Result<()> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let group = own.trim_end().strip_prefix("0::/").unwrap_or_default();
    let members = Path::new("/sys/fs/cgroup").join(group).join("cgroup.procs");
    for line in fs::read_to_string(members)?.lines() {
        let member = line.parse::<i32>().ok().and_then(Pid::from_raw);
        if let Some(pid) = member.filter(|&pid| pid != getpid()) {
            // A process that has ended already needs no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_starts_its_program_and_sets_the_variable() {
        assert!(TEXT.contains(&format!("\nExecStart={PROGRAM}\n")));
        assert!(TEXT.contains(&format!("\nEnvironment={VARIABLE}=yes\n")));
        assert_eq!(Path::new(WANTED).file_name(), Path::new(PLACE).file_name());
    }
}
