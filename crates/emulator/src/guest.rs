//! The first process of the guest: makes the machine usable, runs the program, sends its output, its
//! files and its exit status home, and switches the machine off. In a system that makes itself usable it does
//! the same as a unit.

pub mod unit;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, kill_process, setrlimit, wait};
use rustix::system::{RebootCommand, reboot};
use serde::{Deserialize, Serialize};

use crate::channel::{Frame, PORT};

/// What the first process finds its orders in.
pub const ORDERS: &str = "/shiftwork-orders.json";
/// Set for the program: the release of the kernel that it runs on.
pub const GUEST_VARIABLE: &str = "SHIFTWORK_GUEST";

/// How long the port and the last output are waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const PORT_POLL: Duration = Duration::from_millis(5);

/// How often the host hears from a guest whose program runs.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(1);

/// Source, place, type: mounted in this order.
const MOUNTS: &[(&str, &str, &str)] = &[
    ("proc", "/proc", "proc"),
    ("sys", "/sys", "sysfs"),
    ("dev", "/dev", "devtmpfs"),
    ("pts", "/dev/pts", "devpts"),
    ("shm", "/dev/shm", "tmpfs"),
    ("tmp", "/tmp", "tmpfs"),
    ("run", "/run", "tmpfs"),
    ("debug", "/sys/kernel/debug", "debugfs"),
    ("trace", "/sys/kernel/tracing", "tracefs"),
    ("bpf", "/sys/fs/bpf", "bpf"),
    ("cgroup", "/sys/fs/cgroup", "cgroup2"),
];

/// What the first process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub struct Orders {
    /// The program, as a path of the guest.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment, but for a search path and [`GUEST_VARIABLE`].
    pub environment: BTreeMap<String, OsString>,
    /// Files and folders of the guest to send home afterwards.
    pub collect: Vec<PathBuf>,
    /// How long the program may take, in the guest's time.
    pub limit: Duration,
}

/// As what a process serves the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    First,
    Unit,
}

/// Serves as the first process or as the unit, and never returns, if this is that of a guest. Returns at once
/// otherwise. A program that boots calls this before anything else.
pub fn serve_if_first() {
    let unit = std::env::var_os(unit::VARIABLE);
    if let Some(role) = role(Path::new(ORDERS), std::process::id(), unit.as_deref()) {
        serve(role);
    }
}

/// As what a process serves a guest whose orders are at `orders`; `unit` is the value of [`unit::VARIABLE`].
fn role(orders: &Path, process: u32, unit: Option<&OsStr>) -> Option<Role> {
    if !orders.exists() {
        return None;
    }
    match (process, unit) {
        (1, _) => Some(Role::First),
        (_, Some(_)) => Some(Role::Unit),
        (_, None) => None,
    }
}

fn serve(role: Role) -> ! {
    let usable = match role {
        Role::First => make_usable(),
        Role::Unit => Ok(()),
    };
    let served = usable.and_then(|()| open_port()).and_then(|port| {
        switch_off_when_alone(port.try_clone()?);
        let port = Port(Arc::new(Mutex::new(port)));
        // Without a listener an error cannot be reported.
        let _ = match obey(&port, role) {
            Ok(status) => port.send(&Frame::Exited(code(status))),
            Err(error) => port.send(&Frame::Failed(error.to_string())),
        };
        Ok(())
    });
    if let Err(error) = served {
        // The console is all there is.
        println!("shiftwork-emulator: the guest cannot talk to its host: {error}");
    }
    switch_off();
}

fn switch_off() -> ! {
    rustix::fs::sync();
    // It fails only for others than the first process of a machine that can be switched off; the host
    // ends the machine then.
    let _ = reboot(RebootCommand::PowerOff);
    loop {
        thread::park();
    }
}

/// Ends the machine when the host's side is gone, for any reason: nothing else would end it.
fn switch_off_when_alone(port: File) {
    thread::spawn(move || {
        let mut watched = [PollFd::new(&port, PollFlags::empty())];
        while poll(&mut watched, None).is_err() {}
        switch_off();
    });
}

fn make_usable() -> io::Result<()> {
    for (source, place, kind) in MOUNTS {
        // Some kernels lack some of them, and then the place is missing: a program that needs it will
        // say so better than we can.
        let _ = fs::create_dir_all(place);
        let _ = mount(*source, *place, *kind, MountFlags::empty(), None);
    }
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    setrlimit(Resource::Memlock, unlimited)?;
    Ok(())
}

/// The port is announced by a message of the host and may come a little later than we do.
fn open_port() -> io::Result<File> {
    let attempts = PATIENCE.as_millis() / PORT_POLL.as_millis();
    for _ in 0..attempts {
        for entry in fs::read_dir("/sys/class/virtio-ports")
            .into_iter()
            .flatten()
        {
            let entry = entry?;
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim() == PORT {
                let device = Path::new("/dev").join(entry.file_name());
                return OpenOptions::new().write(true).open(device);
            }
        }
        thread::sleep(PORT_POLL);
    }
    Err(io::Error::other("there is no virtio port to the host"))
}

#[derive(Clone)]
struct Port(Arc<Mutex<File>>);

impl Port {
    fn send(&self, frame: &Frame) -> io::Result<()> {
        // A thread that panicked while it wrote has sent a broken frame, which the host notices.
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        frame.write(&mut *file)
    }
}

fn obey(port: &Port, role: Role) -> io::Result<ExitStatus> {
    port.send(&Frame::Started)?;
    let orders: Orders = serde_json::from_slice(&fs::read(ORDERS)?)?;
    let status = run(&orders, port, role)?;
    send_files(&orders.collect, port)?;
    Ok(status)
}

fn run(orders: &Orders, port: &Port, role: Role) -> io::Result<ExitStatus> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut child = Command::new(&orders.program)
        .args(&orders.arguments)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("HOME", "/tmp")
        .env(GUEST_VARIABLE, release.trim())
        .envs(&orders.environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let program = orders.program.display();
            io::Error::new(
                error.kind(),
                format!("{program} cannot be started: {error}"),
            )
        })?;
    watch_time(port.clone(), orders.limit);
    let (ended, ends) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        forward(output, Frame::Output, port.clone(), ended.clone());
    }
    if let Some(errors) = child.stderr.take() {
        forward(errors, Frame::Error, port.clone(), ended);
    }
    let status = reap_until(child.id())?;
    // What it left running would keep its output open, and the machine ends anyway.
    match role {
        Role::First => kill_all(),
        Role::Unit => unit::kill_others()?,
    }
    while ends.recv_timeout(PATIENCE).is_ok() {}
    Ok(status)
}

/// Reports each second of the guest's time to the host, which so knows that the guest is alive however slowly
/// the host executes it, and switches the machine off at the limit.
fn watch_time(port: Port, limit: Duration) {
    thread::spawn(move || {
        let mut left = limit;
        while !left.is_zero() {
            let step = left.min(SIGN_OF_LIFE_EVERY);
            thread::sleep(step);
            left -= step;
            let frame = match left.is_zero() {
                true => Frame::TimedOut,
                false => Frame::Alive,
            };
            if port.send(&frame).is_err() {
                return;
            }
        }
        switch_off();
    });
}

/// Sends everything that comes, until the last writer is gone.
fn forward(
    mut from: impl Read + Send + 'static,
    frame: fn(Vec<u8>) -> Frame,
    port: Port,
    ended: mpsc::Sender<()>,
) {
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 15];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if port.send(&frame(buffer[..length].to_vec())).is_err() {
                break;
            }
        }
        // The receiver is gone after the timeout.
        let _ = ended.send(());
    });
}

/// Children of dead processes become ours: all are waited for, until the program itself ends.
fn reap_until(child: u32) -> io::Result<ExitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().unsigned_abs() == child => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn kill_all() {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = entry.file_name().to_string_lossy().parse::<i32>().ok();
        if let Some(pid) = number.and_then(Pid::from_raw)
            && !pid.is_init()
        {
            // Kernel threads ignore it, and a process that has ended already needs no signal.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// As shells count: 128 and the number of the signal.
fn code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, signal) => 128 + signal.unwrap_or_default(),
    }
}

/// One archive in which everything is below the index of what it belongs to.
fn send_files(collect: &[PathBuf], port: &Port) -> io::Result<()> {
    if collect.is_empty() {
        return Ok(());
    }
    let mut archive = tar::Builder::new(io::BufWriter::with_capacity(1 << 16, ArchivePort(port)));
    archive.follow_symlinks(false);
    for (index, path) in collect.iter().enumerate() {
        let added = if path.is_dir() {
            archive.append_dir_all(index.to_string(), path)
        } else {
            archive.append_path_with_name(path, index.to_string())
        };
        if let Err(error) = added {
            // The program may have failed before it wrote this; what there is still goes home.
            let note = format!(
                "shiftwork-emulator: {} stays behind: {error}\n",
                path.display()
            );
            port.send(&Frame::Error(note.into_bytes()))?;
        }
    }
    archive.into_inner()?.flush()
}

struct ArchivePort<'a>(&'a Port);

impl Write for ArchivePort<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(&Frame::Archive(bytes.to_vec()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_without_orders_has_no_role() {
        let folder = tempfile::tempdir().unwrap();
        let orders = folder.path().join("orders.json");
        let unit = Some(OsStr::new("1"));
        for process in [1, 2] {
            assert_eq!(role(&orders, process, None), None);
            assert_eq!(role(&orders, process, unit), None);
        }
        // This process is one: the call returns.
        serve_if_first();
    }

    #[test]
    fn process_of_a_guest_has_a_role_if_it_is_the_first_or_the_unit() {
        let orders = tempfile::NamedTempFile::new().unwrap();
        let unit = Some(OsStr::new("1"));
        assert_eq!(role(orders.path(), 1, None), Some(Role::First));
        assert_eq!(role(orders.path(), 1, unit), Some(Role::First));
        assert_eq!(role(orders.path(), 2, unit), Some(Role::Unit));
        assert_eq!(role(orders.path(), 2, None), None);
    }

    #[test]
    fn a_signal_counts_as_shells_count_it() {
        assert_eq!(code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
    }

    #[test]
    fn orders_survive_the_journey_whatever_the_arguments() {
        use std::os::unix::ffi::OsStringExt as _;
        let orders = Orders {
            program: "/bin/x".into(),
            arguments: vec![OsString::from_vec(vec![0xff, b' ', b'"'])],
            environment: BTreeMap::from([("A".to_owned(), "b=c".into())]),
            collect: vec!["/tmp/out".into()],
            limit: Duration::from_millis(1_500),
        };
        let text = serde_json::to_vec(&orders).unwrap();
        let read: Orders = serde_json::from_slice(&text).unwrap();
        assert_eq!(read.arguments, orders.arguments);
        assert_eq!(read.environment, orders.environment);
    }
}
