//! A process of a member: it reads orders line by line and answers each with a line. An answer begins with `ok`, with `no` if what
//! was ordered is refused, and with `bad` if that should not happen.

use std::io::{BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio, exit};
use std::sync::{Arc, mpsc};

use rustix::process::{Pid, Signal, getuid};
use rustix::thread::{CpuSet, UnshareFlags, gettid, sched_setaffinity};
use shiftwork_client::{Client, Failure, Reservation, socket_path};

use super::SET_USER_ID;
use super::work::work;

/// What root answers when it has mapped the IDs of a namespace.
pub const MAPPED: &[u8] = b"mapped\n";

/// A part to play: that of a member.
pub fn member() {
    let ignored = signal_hook::flag::register(Signal::XCPU.as_raw(), Arc::default());
    ignored.expect("it can be handled");
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = execute(&line);
        println!("{}", answer.replace('\n', " "));
        let _ = std::io::stdout().flush();
    }
}

/// A part to play: that of a member in a user namespace of its own, as a user that belongs to it.
pub fn member_in_namespace() {
    #[expect(
        deprecated,
        reason = "the other one is unsafe for file descriptors alone"
    )]
    let made = rustix::thread::unshare(UnshareFlags::NEWUSER);
    made.expect("users may have namespaces");
    println!("namespace");
    let _ = std::io::stdout().flush();
    // The answer is that root has mapped user IDs. What follows is for the program that is executed then.
    let _ = rustix::io::read(std::io::stdin(), &mut [0; MAPPED.len()]);
    let own = std::env::current_exe().expect("it is executed");
    let error = Command::new(own).args(["--act", "member"]).uid(5).exec();
    eprintln!("{error}");
    exit(5);
}

/// A part to play: reserves for itself, and executes a program that has root's user ID from then on.
pub fn executes_set_user_id(reservation: &str) {
    let wanted: Reservation = serde_json::from_str(reservation).expect("it was made by a member");
    let admitted =
        Client::connect(socket_path()).and_then(|mut it| it.admit("set-uid", None, &wanted));
    match admitted {
        Ok(admitted) => println!("ok {}", admitted.task),
        Err(failure) => println!("{}", refusal(failure)),
    }
    let _ = std::io::stdout().flush();
    let error = Command::new(SET_USER_ID).exec();
    eprintln!("{SET_USER_ID}: {error}");
    exit(5);
}

/// Every error that the daemon itself answers is a refusal.
fn refusal(failure: Failure) -> String {
    match failure {
        Failure::Agent(_) | Failure::NotPermitted { .. } => format!("no {failure}"),
        // Beyond the pace of calls: `Exhausted` may be followed by the end of the connection.
        Failure::Lost { .. } | Failure::Silent { .. } => format!("lost {failure}"),
        other => format!("bad {other}"),
    }
}

fn execute(line: &str) -> String {
    let mut words = line.splitn(4, ' ');
    let order = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let number = |at: usize| {
        rest.get(at)
            .and_then(|it| it.parse::<u32>().ok())
            .unwrap_or(0)
    };
    let wanted = || {
        let text = rest.last().copied().unwrap_or_default();
        serde_json::from_str::<Reservation>(text).map_err(|error| format!("bad {text}: {error}"))
    };
    let done = match order {
        // The thread that takes orders has the other CPU.
        "start" => Ok(start(rest[0], "1-3")),
        "crowd" => Ok((0..number(0))
            .map(|_| start("hogs", rest[1]))
            .collect::<Vec<_>>()
            .join(" ")),
        "admit" => wanted().and_then(|it| admit(number(0), &it)),
        "loop" => wanted().and_then(|it| admit_and_dismiss(number(0), number(1), &it)),
        "change" => wanted().and_then(|it| called(|of| of.change(number(0), &it))),
        "dismiss" => called(|of| of.dismiss(number(0)).map(|()| String::new())),
        "bind" => Ok(bind(number(0), rest[1])),
        "statuses" => statuses(number(0), number(1)),
        "malformed" => {
            crate::hostile::floods(u64::from(number(0)), u64::from(number(1)));
            Ok(String::new())
        }
        "set-uid" => wanted().and_then(|it| set_user_id(&it)),
        _ => Err(format!("bad order {line}")),
    };
    match done {
        Ok(text) => format!("ok {text}"),
        Err(text) => text,
    }
}

/// Calls the daemon on a connection of its own.
fn called(call: impl FnOnce(&mut Client) -> Result<String, Failure>) -> Result<String, String> {
    let mut client = Client::connect(socket_path()).map_err(refusal)?;
    call(&mut client).map_err(refusal)
}

fn admit(thread: u32, wanted: &Reservation) -> Result<String, String> {
    called(|of| {
        let admitted = of.admit("member", Some(thread), wanted)?;
        Ok(admitted.task.to_string())
    })
}

/// How often it was admitted.
fn admit_and_dismiss(thread: u32, times: u32, wanted: &Reservation) -> Result<String, String> {
    let mut admitted = 0;
    for _ in 0..times {
        let done = called(|of| {
            let task = of.admit("loop", Some(thread), wanted)?.task;
            of.dismiss(task).map(|()| String::new())
        });
        match done {
            Ok(_) => admitted += 1,
            Err(why) if why.starts_with("no") => {}
            Err(why) => return Err(why),
        }
    }
    Ok(admitted.to_string())
}

/// Requests the status over several connections in turns; each must show the tasks of this user alone.
fn statuses(connections: u32, times: u32) -> Result<String, String> {
    let mut clients = (0..connections)
        .map(|_| Client::connect(socket_path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(refusal)?;
    // In a namespace the IDs differ.
    let own = getuid().as_raw();
    let own = if own < 1_000 {
        super::NAMESPACE + own
    } else {
        own
    };
    for _ in 0..times {
        for client in &mut clients {
            let status = client.status().map_err(refusal)?;
            if let Some(other) = status.tasks.iter().find(|task| task.user != own) {
                return Err(format!("bad user {own} sees {other:?}"));
            }
        }
    }
    Ok(String::new())
}

/// Starts a thread; returns its number.
fn start(doing: &str, cpus: &str) -> String {
    let (sender, receiver) = mpsc::channel();
    let (doing, cpus) = (doing.to_owned(), cpus.to_owned());
    std::thread::spawn(move || {
        let own = gettid().as_raw_nonzero().get();
        bind(0, &cpus);
        // The receiver waits for this.
        let _ = sender.send(own);
        work(&doing, own);
    });
    receiver
        .recv()
        .map_or_else(|error| error.to_string(), |it| it.to_string())
}

fn bind(thread: u32, cpus: &str) -> String {
    let wanted: shiftwork_model::CpuSet = cpus.parse().unwrap_or(shiftwork_model::CpuSet::EMPTY);
    let mut set = CpuSet::new();
    wanted.iter().for_each(|cpu| set.set(cpu.index()));
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    match sched_setaffinity(thread, &set) {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// The process that executes the program, and the number of its task.
fn set_user_id(wanted: &Reservation) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| format!("bad {error}"))?;
    let text = serde_json::to_string(wanted).map_err(|error| format!("bad {error}"))?;
    let child = Command::new(own)
        .args(["--act", "executes-set-user-id", &text])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| format!("bad {error}"))?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        let _ = std::io::BufReader::new(out).read_line(&mut line);
    }
    let id = child.id();
    // Root ends it.
    std::thread::spawn(move || child.wait());
    match line.trim().strip_prefix("ok ") {
        Some(task) => Ok(format!("{id} {task}")),
        None => Ok(format!("{id}")),
    }
}
