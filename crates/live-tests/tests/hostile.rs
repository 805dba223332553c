//! The real daemon under hostile clients: well-behaved clients are served all the same, and admitted tasks keep their
//! guarantees.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shiftwork_client::{Client, socket_path};
use shiftwork_model::RandomStream;

use crate::faults::{goes_on, wait_for};
use crate::long;
use crate::service::Daemon;

/// Permitted growth of memory by buffers that once were large, in KiB.
const KEPT_KIB: u64 = 8 << 10;

/// Numbers of malformed messages and of simultaneous clients.
fn much() -> (u64, usize) {
    match long() {
        true => (10_000, 1_000),
        false => (150, 100),
    }
}

/// Starts an actor with this part, as a user without privileges, against the daemon.
fn hostile(daemon: &Daemon, part: &str) -> Result<Child, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(own)
        .args(["--act", "unprivileged"])
        .args(part.split(' '))
        .env("SHIFTWORK_SOCKET", daemon.at("socket"))
        .stdin(Stdio::null())
        .spawn();
    child.map_err(|error| format!("{part}: {error}"))
}

/// Ten thousand malformed messages and a thousand simultaneous clients: a well-behaved client is answered meanwhile, an
/// admitted program misses no deadline, and afterwards the daemon uses as many descriptors and as much memory as before.
pub fn hostile_clients_do_not_disturb_others() -> Result<(), String> {
    let mut daemon = Daemon::start(
        "record-seconds = 0\n[limits.user]\ncalls = 100000\n[limits.cgroup]\ncalls = 100000",
    )?;
    // Long enough for an emulated machine beside others.
    let program = daemon.admit("--cost 400ms --period 4s --cpus 1", "naps 300 20000")?;
    let number = daemon.id()?;
    // A small flood first, for allocations that are made once.
    flood(&daemon, 1, 20)?;
    let before = taken(number)?;
    let (messages, clients) = much();

    flood(&daemon, 2, messages)?;
    let mut crowd = hostile(&daemon, &format!("crowds {clients}"))?;
    let with_all = wait_for("the crowd to be accepted", || {
        let now = taken(number).ok()?;
        (now.descriptors >= before.descriptors + clients).then_some(now)
    });
    let served = with_all.and_then(|with_all| {
        for _ in 0..10 {
            well_behaved(&daemon)?;
        }
        Ok(with_all)
    });
    let _ = crowd.kill();
    let _ = crowd.wait();
    let with_all = served?;

    let after = wait_for("the daemon to close the descriptors", || {
        let now = taken(number).ok()?;
        (now.descriptors == before.descriptors).then_some(now)
    })?;
    println!("{before:?}, with all clients {with_all:?}, after {after:?}");
    if after.memory_kib > before.memory_kib + KEPT_KIB {
        return Err(format!("{after:?} after {before:?}"));
    }
    goes_on(program, 3)?;
    let status = well_behaved(&daemon)?;
    let task = status.tasks.first().ok_or("its task is gone")?;
    match (task.process == program, task.jobs > 5, task.misses) {
        (true, true, 0) => Ok(()),
        _ => Err(format!("{task:?}")),
    }
}

/// Sends malformed messages while another client is served.
fn flood(daemon: &Daemon, seed: u64, messages: u64) -> Result<(), String> {
    let mut child = hostile(daemon, &format!("floods {seed} {messages}"))?;
    let mut served = 0;
    let status = wait_for("all malformed messages to be sent", || {
        match well_behaved(daemon) {
            Ok(_) => served += 1,
            Err(why) => return Some(Err(why)),
        }
        child.try_wait().ok().flatten().map(Ok)
    });
    let _ = child.kill();
    let _ = child.wait();
    let status = status??;
    println!("{served} times served beside {messages} malformed messages");
    match status.success() {
        true => Ok(()),
        false => Err(format!("the flood ended by {status}")),
    }
}

/// Requests the status as a well-behaved client.
pub fn well_behaved(daemon: &Daemon) -> Result<shiftwork_client::Status, String> {
    let mut client = Client::connect(daemon.at("socket")).map_err(|error| error.to_string())?;
    client.status().map_err(|error| error.to_string())
}

/// Resources of a process.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub descriptors: usize,
    pub memory_kib: u64,
}

pub fn taken(process: u32) -> Result<Taken, String> {
    let failed = |error: std::io::Error| error.to_string();
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).map_err(failed)?;
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).map_err(failed)?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = resident.and_then(|text| text.split_whitespace().next()?.parse().ok());
    Ok(Taken {
        descriptors: descriptors.count(),
        memory_kib: kib.ok_or("the kernel does not report its memory")?,
    })
}

/// Sends malformed messages. Panics if the daemon does not read one.
pub fn floods(seed: u64, messages: u64) {
    let mut random = RandomStream::new(seed, 0, 0);
    let mut sent = 0;
    while sent < messages {
        let mut stream = UnixStream::connect(socket_path()).expect("the daemon listens");
        let timeout = Some(Duration::from_secs(60));
        stream.set_read_timeout(timeout).expect("more than none");
        stream.set_write_timeout(timeout).expect("more than none");
        for _ in 0..10.min(messages - sent) {
            sent += 1;
            if !send(&mut stream, &mut random) {
                break;
            }
        }
    }
}

/// Sends one message. Whether the connection can be used for another.
fn send(stream: &mut UnixStream, random: &mut RandomStream) -> bool {
    let method = |name: &str, parameters: &str| {
        format!("{{\"method\":\"{name}\",\"parameters\":{parameters}}}\0").into_bytes()
    };
    let bytes = match random.below(7) {
        0 => (0..random.below(300))
            .map(|_| random.bits() as u8)
            .chain([0])
            .collect(),
        1 => method("org.shiftwork.Agent.Nothing", "{}"),
        2 => method("org.shiftwork.Agent.Dismiss", "{\"task\":1e999}"),
        3 => method(
            "org.shiftwork.Agent.Admit",
            "{\"name\":7,\"reservation\":[]}",
        ),
        4 => [b"[".repeat(2_000), vec![0]].concat(),
        5 => vec![b'x'; 70_000],
        // An incomplete message; the connection is closed afterwards.
        _ => {
            let _ = stream.write_all(b"{\"method\":");
            return false;
        }
    };
    if stream.write_all(&bytes).is_err() {
        // The connection was closed before all of it was sent.
        return false;
    }
    let mut answer = [0; 4_096];
    match stream.read(&mut answer) {
        Ok(0) => false,
        Ok(length) => answer[..length].ends_with(&[0]) && bytes.ends_with(&[0]),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            panic!("no answer for a minute")
        }
        Err(_) => false,
    }
}

/// Opens connections and keeps them. A connection that is closed, because its incomplete message timed out before all were
/// accepted on a slow machine, is opened again and stays idle.
pub fn crowds(clients: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, all).expect("a process may have what it may have");
    let connect = || {
        let stream = UnixStream::connect(socket_path()).expect("the daemon listens");
        stream.set_nonblocking(true).expect("a socket can be asked");
        stream
    };
    let mut all: Vec<UnixStream> = (0..clients).map(|_| connect()).collect();
    for stream in all.iter_mut().step_by(2) {
        let _ = stream.write_all(b"{");
    }
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for stream in &mut all {
            // No call was made: only an error or the end of the stream can be read.
            if !matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
            {
                *stream = connect();
            }
        }
    }
}
