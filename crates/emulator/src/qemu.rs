//! QEMU: where it is, whether hardware helps, and its command line.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use crate::cache::Cache;
use crate::debian::{LIBRARIES, LOADER, from_first_suite};
use crate::{Boot, Kernel, KernelChoice, Unavailable};

/// Where everything is once it is fetched.
const FOLDER: &str = "qemu";
/// Remembers the boot of this machine during which a guest did not start by its processor.
const NO_KVM: &str = "no-kvm";
/// The package, and within it the program.
const PACKAGE: &str = "qemu-system-x86";
const PROGRAM: &str = "usr/bin/qemu-system-x86_64";
/// Firmware: QEMU's own and the BIOS.
const FIRMWARE: [&str; 3] = ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"];

/// How the guest's instructions are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Accel {
    /// By the processor if this machine lets us, else [`Tcg`](Self::Tcg).
    #[default]
    Auto,
    /// By the processor.
    Kvm,
    /// Translated, each guest CPU in its own thread. Times measured inside show the host's scheduler.
    Tcg,
    /// Translated, one after the other, with a clock that counts instructions (2 ns each). All that the
    /// guest sees is then a function of the kernel, the files and the options of a boot: the same boot
    /// repeats instruction by instruction, whatever else the host does.
    Icount,
}

impl FromStr for Accel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "kvm" => Ok(Self::Kvm),
            "tcg" => Ok(Self::Tcg),
            "icount" => Ok(Self::Icount),
            _ => Err(format!(
                "`{text}` is no accelerator; accepted are auto, kvm, tcg, icount"
            )),
        }
    }
}

impl fmt::Display for Accel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Icount => "icount",
        })
    }
}

impl Accel {
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Kvm => &["-accel", "kvm"],
            Self::Auto | Self::Tcg => &["-accel", "tcg,thread=multi"],
            Self::Icount => &[
                "-accel",
                "tcg,thread=single",
                "-icount",
                "shift=1,sleep=off",
                // The date of each boot is the same.
                "-rtc",
                "base=2026-01-01T00:00:00,clock=vm",
            ],
        }
    }
}

/// QEMU and the cache of kernels, ready to boot.
#[derive(Clone, Debug)]
pub struct Emulator {
    cache: Cache,
    root: PathBuf,
}

impl Emulator {
    /// The emulator of this user: from the cache, else fetched (60 MB, once).
    ///
    /// # Errors
    /// It cannot be had here: another architecture, no apt, no Debian mirror, no network, no room.
    pub fn find_or_fetch() -> Result<Self, Unavailable> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Unavailable::new(
                "the emulator runs this machine's programs, and is fetched for x86-64 Linux only",
                "use such a machine",
            ));
        }
        let cache = Cache::of_user()?;
        let root = cache.path(FOLDER);
        if !root.join(PROGRAM).exists() {
            let locked = cache.lock()?;
            if !root.join(PROGRAM).exists() {
                from_first_suite(&locked, |apt| {
                    let packages = apt.closure(&[PACKAGE])?;
                    locked.install(FOLDER, |folder| apt.unpack(&packages, folder))
                })?;
            }
        }
        Ok(Self { cache, root })
    }

    /// Forgets which kernels were chosen, so that the next boot looks for newer ones. Kernels that are
    /// here stay.
    ///
    /// # Errors
    /// The cache cannot be written.
    pub fn forget_choices(&self) -> Result<(), Unavailable> {
        self.cache.lock()?.forget("choice")
    }

    /// The kernel of a choice: from the cache, else fetched (14 MB, once).
    ///
    /// # Errors
    /// There is no such kernel, no network, or no Debian mirror.
    pub fn kernel(&self, choice: &KernelChoice) -> Result<Kernel, Unavailable> {
        Kernel::find_or_fetch(&self.cache, choice)
    }

    /// Where fetched things are.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Whether this machine lets QEMU use its processor: the device can be opened, QEMU makes a machine
    /// with it, and no guest failed to start on it since this machine was booted.
    pub fn kvm_works(&self) -> bool {
        let device = OpenOptions::new().read(true).write(true).open("/dev/kvm");
        device.is_ok()
            && self.cache.note(NO_KVM) != Some(this_boot())
            && self.make_machine(Accel::Kvm).is_ok()
    }

    /// There are hypervisors in which guests never get beyond their first instructions, which only
    /// trying shows. It takes long to find out, so it is remembered.
    pub(crate) fn remember_that_kvm_fails(&self) -> Result<(), Unavailable> {
        self.cache.lock()?.remember(NO_KVM, &this_boot())
    }

    /// Starts a machine without a kernel and ends it at once.
    fn make_machine(&self, accel: Accel) -> std::io::Result<()> {
        let mut command = self.qemu();
        command
            .args(accel.arguments())
            .args(["-S", "-monitor", "stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        if let Some(mut monitor) = child.stdin.take() {
            // If it is gone already its status says so.
            let _ = monitor.write_all(b"quit\n");
        }
        match child.wait()?.success() {
            true => Ok(()),
            false => Err(std::io::ErrorKind::Unsupported.into()),
        }
    }

    /// The command that boots: the guest's channel is its standard output, its console a file.
    pub(crate) fn command(
        &self,
        boot: &Boot,
        accel: Accel,
        kernel: &Kernel,
        initramfs: &Path,
        console: &Path,
    ) -> Command {
        let mut command = self.qemu();
        command.args(accel.arguments());
        if accel == Accel::Icount {
            command.args(["-seed", &boot.seed.to_string()]);
            let turns = boot
                .turn
                .into_iter()
                .chain(boot.second_turn.filter(|_| boot.turn.is_some()));
            for (number, turn) in turns.enumerate() {
                command.args(short_turns(number, turn, boot.cpus));
            }
        }
        command.args(["-smp", &boot.cpus.to_string()]);
        command.args(["-m", &format!("{}M", boot.memory_mib)]);
        command.arg("-kernel").arg(&kernel.image);
        command.arg("-initrd").arg(initramfs);
        let base = boot.base.append();
        // A distribution's kernel tests its ciphers beside what runs in it: seconds, where it is emulated.
        let always = "console=ttyS0 quiet panic=-1 cryptomgr.notests";
        let append = format!("{always} {base} {}", boot.append);
        command.args(["-append", append.trim_end()]);
        command.arg("-chardev");
        command.arg(format!("file,id=console,path={}", escaped(console)));
        command.args(["-serial", "chardev:console"]);
        // A pipe of its own rather than a serial port: nothing else ever writes there.
        // The thread that executes the guest sends what the guest writes, not another one some time later.
        command.args(["-device", "virtio-serial-pci,ioeventfd=off"]);
        command.args(["-chardev", "stdio,id=channel,signal=off"]);
        let port = format!(
            "virtserialport,chardev=channel,name={}",
            crate::channel::PORT
        );
        command.args(["-device", &port]);
        command
    }

    /// QEMU with what every machine has. It runs on its own libraries, down to the C library: whatever
    /// distribution this is, it is the same program.
    fn qemu(&self) -> Command {
        let mut command = Command::new(self.root.join(LOADER));
        command.arg("--library-path").arg(self.root.join(LIBRARIES));
        command.arg(self.root.join(PROGRAM));
        for folder in FIRMWARE {
            command.arg("-L").arg(self.root.join(folder));
        }
        command.args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ]);
        command.env("QEMU_MODULE_DIR", self.root.join(LIBRARIES).join("qemu"));
        command
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("LD_PRELOAD");
        command
    }
}

/// Options that make QEMU turn to the next CPU after this time of the guest, at a microsecond for all CPUs at least.
///
/// Where it counts instructions, QEMU executes each CPU for the time to the next timer, divided by the number of CPUs. Timers of
/// the guest do not help: one that has ended is not there until its CPU has its turn and starts it again. A filter of packets
/// has a timer that QEMU itself starts again; it stands between two ports that no device of the guest is connected to.
///
/// Each `number` is another such timer. Where there are several, a turn ends with the first.
fn short_turns(number: usize, turn: Duration, cpus: u16) -> [String; 6] {
    let round_us = (turn * u32::from(cpus)).as_micros().max(1);
    [
        "-netdev".to_owned(),
        format!("hubport,id=turns-{number},hubid={number}"),
        "-netdev".to_owned(),
        format!("hubport,id=turns-{number}-peer,hubid={number}"),
        "-object".to_owned(),
        format!("filter-buffer,id=turns-{number}-timer,netdev=turns-{number},interval={round_us}"),
    ]
}

/// Another boot may have another kernel, or other rights.
fn this_boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim_end().to_owned()
}

/// QEMU's option parser takes a comma for the next option, a doubled one for itself.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accelerator_reads_as_it_is_written() {
        for text in ["auto", "kvm", "tcg", "icount"] {
            assert_eq!(text.parse::<Accel>().unwrap().to_string(), text);
        }
        assert!("hvf".parse::<Accel>().unwrap_err().contains("accepted are"));
    }

    #[test]
    fn short_turns_divide_a_round_among_the_cpus() {
        let options = short_turns(0, Duration::from_micros(10), 4);
        assert!(options[5].ends_with(",interval=40"), "{options:?}");
        let options = short_turns(1, Duration::from_nanos(100), 4);
        assert!(options[5].ends_with(",interval=1"), "{options:?}");
    }

    #[test]
    fn a_comma_in_a_path_stays_in_the_path() {
        assert_eq!(escaped(Path::new("/tmp/a,b")), "/tmp/a,,b");
    }
}
