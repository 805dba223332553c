//! A process of an adversary that is ordered about by the test.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::{ANNA, GROUP, MEMBERS, NAMESPACE, OUTSIDER};
use crate::service::Daemon;
use crate::standing::excess::timed;

/// For so long an order is waited for: the least that a process needs, which is ordinary work beside many others.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process of a member, and what it has.
pub struct Process {
    child: Child,
    to: ChildStdin,
    answers: Receiver<String>,
    /// Its threads but the one that takes orders.
    pub threads: Vec<u32>,
}

impl Process {
    /// The member with this index.
    pub fn start(daemon: &Daemon, index: usize) -> Result<Self, String> {
        let (user, _, has_namespace) = MEMBERS[index];
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let part = match has_namespace {
            true => "member-in-namespace",
            false => "member",
        };
        let mut child = Command::new(own)
            .args(["--act", part])
            .env("SHIFTWORK_SOCKET", daemon.at("socket"))
            .uid(user)
            .gid(if user == OUTSIDER { user } else { GROUP })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let to = child.stdin.take().ok_or("it has no input")?;
        let from = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        let (sender, answers) = mpsc::channel();
        // It ends with the process.
        std::thread::spawn(move || {
            let mut lines = from.lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line))
        });
        let mut process = Self {
            child,
            to,
            answers,
            threads: Vec::new(),
        };
        if has_namespace {
            process.map_users()?;
        }
        for work in ["hogs", "renames"] {
            let thread = process.order(&format!("start {work}"))?;
            let number = thread.ok().and_then(|it| it.parse::<u32>().ok());
            process.threads.extend(number);
        }
        for (thread, mode) in process
            .threads
            .clone()
            .into_iter()
            .zip(["continue", "throttle"])
        {
            // Refused if what the one before had still counts, and outside the group.
            let _ = process.order(&format!(
                "admit {thread} {{\"cost\":1000000,\"period\":20000000,\"on_overrun\":\"{mode}\"}}"
            ))?;
        }
        Ok(process)
    }

    /// Gives its namespace the IDs that `/etc/subuid` names, as `newuidmap` does.
    fn map_users(&mut self) -> Result<(), String> {
        let answer = self.answer()?;
        if answer != "namespace" {
            return Err(format!("it made no namespace: {answer}"));
        }
        let map = |which: &str, text: String| {
            let path = format!("/proc/{}/{which}", self.child.id());
            fs::write(&path, text).map_err(|error| format!("{path}: {error}"))
        };
        map("uid_map", format!("0 {NAMESPACE} 10\n"))?;
        map("gid_map", format!("{GROUP} {GROUP} 1\n"))?;
        self.to
            .write_all(super::orders::MAPPED)
            .map_err(|error| error.to_string())
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn answer(&self) -> Result<String, String> {
        let answer = self.answers.recv_timeout(PATIENCE);
        answer.map_err(|error| format!("process {} does not answer: {error}", self.id()))
    }

    /// The answer, which must not be one that should not happen.
    pub fn order(&mut self, order: &str) -> Result<Result<String, String>, String> {
        writeln!(self.to, "{order}").map_err(|error| error.to_string())?;
        let answer = self.answer()?;
        match answer.split_once(' ').unwrap_or((answer.as_str(), "")) {
            ("ok", text) => Ok(Ok(text.to_owned())),
            ("no" | "lost", text) => Ok(Err(text.to_owned())),
            _ => Err(format!("{order}: {answer}")),
        }
    }

    /// Kills it; returns how long that took.
    pub fn kill(mut self) -> Result<Duration, String> {
        let killed = timed(|| self.child.kill().and_then(|()| self.child.wait()));
        killed.0.map_err(|error| error.to_string())?;
        Ok(killed.1)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has ended already need not be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the machine has to know of its users.
pub fn write_users() -> Result<(), String> {
    let write = |path: &str, text: String| {
        fs::write(path, text).map_err(|error| format!("{path}: {error}"))
    };
    fs::create_dir_all("/etc").map_err(|error| error.to_string())?;
    write("/etc/group", format!("root:x:0:\nmembers:x:{GROUP}:\n"))?;
    write("/etc/subuid", format!("{ANNA}:{NAMESPACE}:10\n"))
}
