//! One boot: what is asked for, how it goes, and what comes of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::{Base, write_initramfs};
use crate::channel::Frame;
use crate::{Accel, BootError, Emulator, Kernel, KernelChoice};

/// A guest that the processor runs has started by then, or it is taken for one that never will: it
/// takes a second or two.
const HARDWARE_START_LIMIT: Duration = Duration::from_secs(20);
/// The same where a whole system starts before the program.
const HARDWARE_SYSTEM_START_LIMIT: Duration = Duration::from_secs(60);
/// However slow and busy the host is, a guest has started by then.
const START_LIMIT: Duration = Duration::from_secs(600);
/// A guest whose program runs reports each second of its own time. However slow and busy the host is, it
/// executes a second of the guest by then; a guest that is silent for longer hangs.
const SILENCE_LIMIT: Duration = Duration::from_secs(600);
/// What a guest may send before we have read any of it: the most that any user may ask for.
const CHANNEL_BYTES: usize = 1 << 20;
/// A guest that has said its last word is gone by then.
const OFF_LIMIT: Duration = Duration::from_secs(10);
/// Lines of the console in messages.
const TAIL_LINES: usize = 60;

/// What to boot.
#[derive(Clone, Debug)]
pub struct Boot {
    /// CPUs of the guest.
    pub cpus: u16,
    /// Memory of the guest in MiB; the files that are carried along count as well.
    pub memory_mib: u32,
    /// How instructions are executed.
    pub accel: Accel,
    /// Where instructions are counted: for how long a CPU is executed at most before the next one is, in the guest's time. A CPU
    /// that waits for a lock of another then waits for microseconds. `None`: for a part of the time to the guest's next timer,
    /// which may be a millisecond; that takes less of the host's time.
    pub turn: Option<Duration>,
    /// Where there is a [`turn`](Self::turn): another one. Each ends turns as if it were the only one, so the lengths of turns change
    /// all the time, from almost nothing to the shorter of both.
    pub second_turn: Option<Duration>,
    /// Where instructions are counted: of the random numbers that the guest sees. Another seed is another run.
    pub seed: u32,
    /// On which kernel.
    pub kernel: KernelChoice,
    /// Further words of the kernel's command line.
    pub append: String,
    /// The program, on the host. It is at `/bin/<its name>` in the guest.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment; nothing is inherited.
    pub environment: BTreeMap<String, OsString>,
    /// Further files of the host.
    pub files: Vec<CarriedFile>,
    /// What to bring home when the program has ended, however it ended.
    pub collect: Vec<Collected>,
    /// How long the program may take, in the guest's time; the start has a limit of its own.
    pub timeout: Duration,
    /// What is there beside what is carried along.
    pub base: Base,
    /// The first process, or in a system the one of the unit: a program that calls
    /// [`crate::guest::serve_if_first`].
    pub init: PathBuf,
}

/// A file or folder of the host that the guest sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedFile {
    /// Where it is.
    pub host: PathBuf,
    /// Where the guest finds it.
    pub guest: String,
}

/// A file or folder of the guest that is copied to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Where it is.
    pub guest: PathBuf,
    /// Where it is to be; made if it is not there.
    pub host: PathBuf,
}

/// How a program ended, and on what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit status; 128 and the number if a signal ended it.
    pub code: i32,
    /// The release of the kernel.
    pub release: String,
    /// How instructions were executed; never [`Accel::Auto`].
    pub accel: Accel,
    /// From the start of QEMU to the first process of the guest.
    pub boot_time: Duration,
    /// From the start of QEMU to its end.
    pub whole_time: Duration,
}

impl Boot {
    /// `program` on the newest kernel with 4 CPUs, for a minute at most. The first process is the
    /// calling program.
    ///
    /// # Errors
    /// The calling program cannot be found.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self, BootError> {
        Ok(Self {
            cpus: 4,
            memory_mib: 2048,
            accel: Accel::Auto,
            turn: None,
            second_turn: None,
            seed: 1,
            kernel: KernelChoice::Newest,
            append: String::new(),
            program: program.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            files: Vec::new(),
            collect: Vec::new(),
            timeout: Duration::from_secs(60),
            base: Base::Bare,
            init: std::env::current_exe().map_err(BootError::Files)?,
        })
    }

    /// Where the program is in the guest.
    pub(crate) fn guest_program(&self) -> String {
        let name = self.program.file_name().unwrap_or_default();
        format!("/bin/{}", name.to_string_lossy())
    }
}

impl Emulator {
    /// Boots, runs the program to its end, and writes what it says to `output` and `errors` as it
    /// comes.
    ///
    /// # Errors
    /// There is no exit status; see [`BootError`]. What the program said until then was written.
    pub fn boot(
        &self,
        boot: &Boot,
        output: &mut dyn Write,
        errors: &mut dyn Write,
    ) -> Result<Exit, BootError> {
        let kernel = self.kernel(&boot.kernel)?;
        let folder = tempfile::tempdir().map_err(BootError::Files)?;
        let initramfs = folder.path().join("initramfs");
        write_initramfs(boot, &kernel, &initramfs).map_err(BootError::Files)?;
        let mut attempt = |accel, limit| {
            let guest = Guest::start(self, boot, accel, &kernel, folder.path())?;
            guest.attend(boot, limit, output, errors)
        };
        if boot.accel != Accel::Auto {
            return attempt(boot.accel, START_LIMIT);
        }
        if !self.kvm_works() {
            return attempt(Accel::Tcg, START_LIMIT);
        }
        let limit = match boot.base {
            Base::Bare | Base::Unpacked(_) => HARDWARE_START_LIMIT,
            Base::System(_) => HARDWARE_SYSTEM_START_LIMIT,
        };
        match attempt(Accel::Kvm, limit) {
            // Nested in another hypervisor a guest may not even start. The program did not begin, so
            // it can be tried again.
            Err(BootError::Died { .. } | BootError::NotStarted { .. }) if initramfs.exists() => {
                self.remember_that_kvm_fails()?;
                attempt(Accel::Tcg, START_LIMIT)
            }
            other => other,
        }
    }
}

/// A running QEMU; ends when dropped.
struct Guest<'a> {
    child: Child,
    frames: Receiver<io::Result<Frame>>,
    began: Instant,
    accel: Accel,
    kernel: &'a Kernel,
    folder: &'a Path,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'a> Guest<'a> {
    #[allow(
        clippy::disallowed_methods,
        reason = "limits of a boot are in the host's time"
    )]
    fn start(
        emulator: &Emulator,
        boot: &Boot,
        accel: Accel,
        kernel: &'a Kernel,
        folder: &'a Path,
    ) -> Result<Self, BootError> {
        let (initramfs, console) = (folder.join("initramfs"), folder.join("console"));
        let complaints = File::create(folder.join("qemu")).map_err(BootError::Files)?;
        let mut child = emulator
            .command(boot, accel, kernel, &initramfs, &console)
            // Never written to, but open: at its end we are gone, and the guest ends itself.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(BootError::Start)?;
        let (sender, frames) = mpsc::channel();
        if let Some(channel) = child.stdout.take() {
            // A guest that finds the pipe full continues when we have read, which is at another of its
            // instructions each time. Without the right to a larger pipe its run may so not repeat exactly.
            let _ = rustix::pipe::fcntl_setpipe_size(&channel, CHANNEL_BYTES);
            thread::spawn(move || {
                let mut channel = BufReader::new(channel);
                while let Some(frame) = Frame::read(&mut channel).transpose() {
                    let broken = frame.is_err();
                    if sender.send(frame).is_err() || broken {
                        break;
                    }
                }
            });
        }
        Ok(Self {
            child,
            frames,
            began: Instant::now(),
            accel,
            kernel,
            folder,
        })
    }

    /// Listens to the guest until it has said its last word. `start_limit` is from the start of QEMU to
    /// the first process, in the host's time; the limit of `boot` is the guest's own to keep.
    fn attend(
        mut self,
        boot: &Boot,
        start_limit: Duration,
        output: &mut dyn Write,
        errors: &mut dyn Write,
    ) -> Result<Exit, BootError> {
        let mut boot_time = None;
        let mut archive = Vec::new();
        let code = loop {
            let limit = if boot_time.is_some() {
                SILENCE_LIMIT
            } else {
                start_limit.saturating_sub(self.began.elapsed())
            };
            match self.frames.recv_timeout(limit) {
                Ok(Ok(Frame::Started)) => {
                    boot_time = Some(self.began.elapsed());
                    // It is large and in the guest's memory now: even if we are killed it goes away.
                    let _ = fs::remove_file(self.folder.join("initramfs"));
                }
                Ok(Ok(Frame::Alive)) => (),
                Ok(Ok(Frame::Output(bytes))) => say(output, &bytes)?,
                Ok(Ok(Frame::Error(bytes))) => say(errors, &bytes)?,
                Ok(Ok(Frame::Archive(bytes))) => archive.extend(bytes),
                Ok(Ok(Frame::Exited(code))) => break code,
                Ok(Ok(Frame::TimedOut)) => {
                    return Err(BootError::TimedOut {
                        after: boot.timeout,
                        console: self.tail("console"),
                    });
                }
                Ok(Ok(Frame::Failed(why))) => return Err(BootError::Refused(why)),
                Ok(Err(error)) => {
                    return Err(BootError::Refused(format!("it talks nonsense: {error}")));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let console = self.tail("console");
                    return Err(match boot_time {
                        Some(_) => BootError::Silent {
                            after: SILENCE_LIMIT,
                            console,
                        },
                        None => BootError::NotStarted {
                            after: start_limit,
                            console,
                        },
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // Takes a moment to leave, and what it said is then complete.
                    let _ = self.child.wait();
                    return Err(BootError::Died {
                        console: self.tail("console"),
                        qemu: self.tail("qemu"),
                    });
                }
            }
        };
        // The channel closes when QEMU ends. If it does not, dropping ends it: all has been said.
        let _ = self.frames.recv_timeout(OFF_LIMIT);
        unpack(&archive, &boot.collect).map_err(BootError::Files)?;
        Ok(Exit {
            code,
            release: self.kernel.release.clone(),
            accel: self.accel,
            boot_time: boot_time.unwrap_or_default(),
            whole_time: self.began.elapsed(),
        })
    }

    /// The last lines of a text file in the folder of this boot, without colours.
    fn tail(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.join(name)).unwrap_or_default();
        tail(&String::from_utf8_lossy(&bytes))
    }
}

fn say(to: &mut dyn Write, bytes: &[u8]) -> Result<(), BootError> {
    to.write_all(bytes)
        .and_then(|()| to.flush())
        .map_err(BootError::Files)
}

/// The end of a text with many lines. The BIOS clears the screen and sets colours before the kernel writes
/// plain text.
pub(crate) fn tail(text: &str) -> String {
    let plain: Vec<&str> = text
        .lines()
        .map(|line| line.trim_matches(|c: char| c.is_control()))
        .filter(|line| !line.is_empty())
        .collect();
    plain[plain.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Puts each part of the archive where it belongs.
fn unpack(archive: &[u8], collect: &[Collected]) -> io::Result<()> {
    let mut archive = tar::Archive::new(archive);
    archive.set_preserve_mtime(false);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let mut parts = path.components();
        let index = parts
            .next()
            .and_then(|part| part.as_os_str().to_str()?.parse().ok());
        let Some(target) = index.and_then(|index: usize| collect.get(index)) else {
            continue;
        };
        let rest = parts.as_path();
        if rest.as_os_str().is_empty() {
            // The thing itself: a folder that is to exist, or a single file.
            if entry.header().entry_type().is_dir() {
                fs::create_dir_all(&target.host)?;
            } else {
                fs::create_dir_all(target.host.parent().unwrap_or(Path::new(".")))?;
                entry.unpack(&target.host)?;
            }
        } else if rest
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)))
        {
            let place = target.host.join(rest);
            fs::create_dir_all(place.parent().unwrap_or(&target.host))?;
            entry.unpack(place)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_home_to_where_they_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (guest, host) = (folder.path().join("guest"), folder.path().join("host"));
        fs::create_dir_all(guest.join("deep/er")).unwrap();
        fs::write(guest.join("deep/er/trace"), "records").unwrap();
        fs::write(guest.join("one"), "alone").unwrap();
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_dir_all("0", guest.join("deep")).unwrap();
        archive
            .append_path_with_name(guest.join("one"), "1")
            .unwrap();
        archive
            .append_path_with_name(guest.join("one"), "7")
            .unwrap();
        let to = |name: &str| Collected {
            guest: PathBuf::new(),
            host: host.join(name),
        };
        unpack(&archive.into_inner().unwrap(), &[to("a/b"), to("c/d")]).unwrap();
        assert_eq!(
            fs::read_to_string(host.join("a/b/er/trace")).unwrap(),
            "records"
        );
        assert_eq!(fs::read_to_string(host.join("c/d")).unwrap(), "alone");
        unpack(&[], &[]).unwrap();
    }

    #[test]
    fn messages_show_the_end_of_the_console() {
        let lines: String = (0..130)
            .map(|line| format!("\u{1b}line {line}\r\n"))
            .collect();
        let shown = tail(&lines);
        assert!(shown.starts_with("line 70\n"), "{shown}");
        assert!(shown.ends_with("line 129"), "{shown}");
        let died = BootError::Died {
            console: shown,
            qemu: String::new(),
        };
        assert!(
            died.to_string()
                .contains("the end of its console:\nline 70")
        );
    }

    #[test]
    fn a_timeout_says_what_took_too_long() {
        let (after, console) = (Duration::from_secs(5), String::new);
        let program = BootError::TimedOut {
            after,
            console: console(),
        };
        let program = program.to_string();
        assert!(program.starts_with("the program took longer than 5 s of the guest's time"));
        let start = BootError::NotStarted {
            after,
            console: console(),
        };
        assert!(
            start
                .to_string()
                .starts_with("the guest did not start within 5 s")
        );
        let silent = BootError::Silent {
            after,
            console: console(),
        };
        assert!(
            silent
                .to_string()
                .starts_with("the guest hangs: no sign of life for 5 s")
        );
    }
}
