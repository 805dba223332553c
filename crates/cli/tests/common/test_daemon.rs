//! A daemon that decides as ever, with a scheduler that accepts everything, and threads for it.

#![allow(dead_code, reason = "each test uses a part of it")]

#[path = "../../../daemon/benches/fake_scheduler/mod.rs"]
mod fake_scheduler;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use serde_json::Value;
use shiftwork_client::calling_thread;
use shiftwork_daemon::clock::now;
use shiftwork_daemon::config::Config;
use shiftwork_daemon::daemon::{Daemon, Machine};
use shiftwork_daemon::socket::{Access, Server, SocketLimits};
use shiftwork_daemon::state::StateFile;
use shiftwork_daemon::threads::Proc;
use shiftwork_model::CpuSet;
use tempfile::TempDir;

use fake_scheduler::FakeScheduler;

/// A daemon for the CPUs 0 to 3 that serves until it is dropped, and a folder for files.
pub struct TestDaemon {
    pub folder: TempDir,
    should_stop: Arc<AtomicBool>,
    is_stuck: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl TestDaemon {
    pub fn start() -> Self {
        let mut daemon = Self {
            folder: tempfile::tempdir().unwrap(),
            should_stop: Arc::default(),
            is_stuck: Arc::default(),
            serving: None,
        };
        daemon.restart();
        daemon
    }

    /// Starts it again, with the reservations of threads that still exist.
    pub fn restart(&mut self) {
        self.stop();
        self.should_stop.store(false, Ordering::Relaxed);
        let flags = [&self.should_stop, &self.is_stuck].map(Arc::clone);
        let path = self.folder.path().to_owned();
        let (ready, is_ready) = channel();
        self.serving = Some(thread::spawn(move || serve(&path, flags, &ready)));
        is_ready.recv().unwrap();
    }

    /// Ends it: its socket is gone.
    pub fn stop(&mut self) {
        self.should_stop.store(true, Ordering::Relaxed);
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }

    /// While it is stuck it keeps its connections and answers nothing.
    pub fn set_stuck(&self, is_stuck: bool) {
        self.is_stuck.store(is_stuck, Ordering::Relaxed);
    }

    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("SHIFTWORK_SOCKET", self.folder.path().join("socket"));
        // Programs that it starts go on, and keep its stderr open: a pipe would not end with the command.
        let errors = tempfile::NamedTempFile::new().unwrap();
        command.stderr(errors.reopen().unwrap());
        let output = command.stdout(Stdio::piped()).output().unwrap();
        Output {
            stderr: fs::read(errors.path()).unwrap(),
            ..output
        }
    }

    /// Runs it with `--json`; returns the exit status and the object.
    pub fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let output = self.run(&[args, &["--json"]].concat());
        let value = serde_json::from_slice(&output.stdout);
        let value = value.unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"));
        (output.status.code(), value)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// The reservations: name, thread, cost in milliseconds.
    pub fn held(&self) -> Vec<(String, u64, u64)> {
        let (_, status) = self.json(&["status"]);
        let tasks = status["tasks"].as_array().unwrap().iter();
        let of = |it: &Value| {
            let name = it["name"].as_str().unwrap().to_owned();
            let cost_ms = it["cost_ns"].as_u64().unwrap() / 1_000_000;
            (name, it["thread"].as_u64().unwrap(), cost_ms)
        };
        let mut held: Vec<_> = tasks.map(of).collect();
        held.sort();
        held
    }
}

fn serve(folder: &Path, [stop, is_stuck]: [Arc<AtomicBool>; 2], ready: &Sender<()>) {
    let access = Access {
        mode: 0o600,
        group: None,
    };
    let limits = SocketLimits::default();
    // A process that another test starts has the lock of the daemon before for a moment, until it executes its program.
    let bound = (0..1_000).find_map(|_| {
        let bound = Server::bind(&folder.join("socket"), access, limits.clone());
        bound.inspect_err(|_| sleep(Duration::from_millis(5))).ok()
    });
    let mut server = bound.unwrap();
    let machine = Machine {
        scheduler: Box::new(FakeScheduler::new(4).unwrap()),
        threads: Box::new(Proc),
        online: CpuSet::first(4),
    };
    // Without a share of its own the thread keeps its scheduling class.
    let config = Config::parse(
        "own-share = 0\ncpus = '0-3'\nlimits.user.share = 4\nlimits.cgroup.share = 4",
    )
    .unwrap();
    let state = StateFile::at(folder.join("daemon.json")).unwrap();
    let (mut daemon, _) = Daemon::start_on(machine, config, state, now()).unwrap();
    ready.send(()).unwrap();
    while !stop.load(Ordering::Relaxed) {
        if !is_stuck.load(Ordering::Relaxed) {
            daemon.poll(now()).unwrap();
            server.serve(now(), &mut daemon).unwrap();
        }
        sleep(Duration::from_millis(1));
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Threads of this process with these names, which sleep until this is dropped.
pub struct Sleepers {
    pub threads: Vec<u64>,
    /// Each thread ends with its own.
    _ends: Vec<Sender<()>>,
}

impl Sleepers {
    pub fn start(names: &[&str]) -> Self {
        let mut all = Self {
            threads: Vec::new(),
            _ends: Vec::new(),
        };
        for name in names {
            let (number, began) = channel();
            let (end, ended) = channel::<()>();
            let sleeper = thread::Builder::new().name((*name).to_owned());
            let run = move || {
                number.send(calling_thread()).unwrap();
                let _ = ended.recv();
            };
            drop(sleeper.spawn(run).unwrap());
            all.threads.push(u64::from(began.recv().unwrap()));
            all._ends.push(end);
        }
        all
    }
}
