//! Faults: whatever happens to the command, its tasks, its CPUs or other users of the machine, all
//! tasks run in the end, no other guarantee is broken, a message says what happened, and the trace
//! of it is kept.
//!
//! Here is what these tests have in common; start reading at [`Live`].

mod actor;
pub mod agent;
pub mod company;
pub mod cpus;
pub mod fifo;
pub mod loader;
pub mod others;
pub mod tasks;

pub use actor::{Actor, command, compute, play_if_asked};
pub use cpus::Offline;

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use shiftwork_model::{Record, RecordKind};
use shiftwork_trace::perfetto::{self, TraceFile};
use tempfile::TempDir;

/// In the guest's time, whatever is waited for; a machine that needs longer is stuck. Where nothing but the clock counts
/// that time, a busy host passes it quickly.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until there is an answer.
#[allow(clippy::disallowed_methods, reason = "a test that hangs fails")]
pub fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> Result<T, String> {
    let began = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return Ok(answer);
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("waited in vain: {what}"));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// What the kernel says of sched_ext.
pub fn state() -> String {
    let state = fs::read_to_string("/sys/kernel/sched_ext/state").unwrap_or_default();
    state.trim().to_owned()
}

pub fn wait_for_state(wanted: &str) -> Result<(), String> {
    wait_for(&format!("sched_ext to be {wanted}"), || {
        (state() == wanted).then_some(())
    })
}

/// The processor time of a process' first thread; `None` if there is no such process.
pub fn processor_time(process: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    let ns = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(ns))
}

/// Waits until the process has computed for so many milliseconds more.
pub fn goes_on(process: u32, ms: u64) -> Result<(), String> {
    let before = processor_time(process).ok_or("it is gone")?;
    wait_for(&format!("process {process} to go on"), || {
        (processor_time(process)? > before + Duration::from_millis(ms)).then_some(())
    })
}

/// A task-set file for three CPUs, with these tasks.
fn file(tasks: &[&str]) -> String {
    let mut file = String::from(
        "name = \"faults\"\n[platform]\ncpus = 3\n[scheduler]\npolicy = \"strong-edf\"\n",
    );
    for task in tasks {
        file.push_str("[[task]]\n");
        file.push_str(task);
        file.push('\n');
    }
    file
}

/// Options of the command: the core decides inside the kernel.
const KERNEL: &[&str] = &["--machine", "kernel"];
/// An agent decides, and looks all the time.
const AGENT: &[&str] = &["--machine", "agent"];
/// An agent decides, and sleeps meanwhile.
const SHARED: &[&str] = &["--machine", "agent", "--agent", "shared"];

/// `shiftwork run` at work, on the CPUs 1 to 3 of the guest.
struct Live {
    child: Child,
    folder: TempDir,
}

impl Live {
    /// Starts it with this task-set file, where the kernel decides. Its scheduler is loaded when this
    /// returns.
    fn start(file: &str, arguments: &[&str]) -> Result<Self, String> {
        Self::start_on(KERNEL, file, arguments)
    }

    /// The same on another machine.
    fn start_on(machine: &[&str], file: &str, arguments: &[&str]) -> Result<Self, String> {
        let mut live = Self::begin(file, &[machine, arguments].concat())?;
        let begun = wait_for("the scheduler to be loaded", || {
            let over = live.child.try_wait().ok().flatten();
            let over = over.map(|status| Err(format!("it ended at once by {status}")));
            over.or_else(|| (state() == "enabled").then_some(Ok(())))
        });
        match begun.and_then(|begun| begun) {
            Ok(()) => Ok(live),
            Err(why) => Err(format!("{why}; {}", live.said())),
        }
    }

    /// Starts it, and does not wait for anything.
    fn begin(file: &str, arguments: &[&str]) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let at = |name: &str| folder.path().join(name);
        fs::write(at("set.toml"), file).map_err(|error| error.to_string())?;
        let create = |name: &str| File::create(at(name)).map_err(|error| error.to_string());
        let child = Command::new("shiftwork")
            .arg("run")
            .arg(at("set.toml"))
            .args(["--json", "--on-cpus", "1-3", "--trace"])
            .arg(at("trace"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(create("stdout")?)
            .stderr(create("stderr")?)
            .spawn()
            .map_err(|error| format!("it cannot be started: {error}"))?;
        Ok(Self { child, folder })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whether the thread of this task has computed for longer than its preparation takes, which is before the run begins
    /// and about a millisecond in the emulator.
    fn is_at_work(&self, task: &str) -> bool {
        self.computed(task) > Duration::from_millis(4)
    }

    /// For how long the thread of this task has computed; zero if there is none.
    fn computed(&self, task: &str) -> Duration {
        let thread = self.thread(task);
        let number = thread.and_then(|path| path.file_name()?.to_str()?.parse().ok());
        number.and_then(processor_time).unwrap_or_default()
    }

    /// The folder where the kernel shows the thread of this name.
    fn thread(&self, name: &str) -> Option<PathBuf> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let paths = threads.ok()?.flatten().map(|entry| entry.path());
        let mut named = paths.filter(|path| {
            let own = fs::read_to_string(path.join("comm")).unwrap_or_default();
            own.trim() == name
        });
        named.next()
    }

    /// What it wrote to stderr so far.
    fn said(&self) -> String {
        fs::read_to_string(self.at("stderr")).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or("it has no number")?;
        kill_process(pid, signal).map_err(|error| error.to_string())
    }

    /// Waits until it is over.
    fn end(mut self) -> Result<Ended, String> {
        let status = wait_for("the run to be over", || self.child.try_wait().transpose());
        let status = status.and_then(|status| status.map_err(|error| error.to_string()));
        let status = status.map_err(|why| format!("{why}; it said: {}", self.said()))?;
        let stdout = fs::read(self.at("stdout")).unwrap_or_default();
        Ok(Ended {
            code: status
                .code()
                .unwrap_or_else(|| -status.signal().unwrap_or_default()),
            json: serde_json::from_slice(&stdout).unwrap_or_default(),
            said: self.said(),
            trace: read_trace(&self.at("trace")),
        })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // A process that has ended already need not be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_trace(path: &Path) -> Result<TraceFile, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    perfetto::read(&bytes).map_err(|error| error.to_string())
}

/// A run that is over.
struct Ended {
    /// The exit status; of a signal its number, negative.
    code: i32,
    /// What `--json` printed; null if it printed nothing.
    json: Value,
    /// What it wrote to stderr.
    said: String,
    /// What `--trace` wrote.
    trace: Result<TraceFile, String>,
}

impl Ended {
    /// That it ended as it should, its records among them, and says so by its status.
    fn well(self) -> Result<Self, String> {
        let missed = self.number("/deadline_misses")? > 0;
        let interrupted = self.json["interrupted"] == true;
        let status = match (missed, interrupted) {
            (true, _) => 1,
            (false, true) => 130,
            (false, false) => 0,
        };
        match (self.code, &self.trace) {
            (code, Ok(trace)) if code == status && trace.ended.is_some() => Ok(self),
            (code, trace) => Err(format!(
                "it ended by {code}, said {:?}; its trace: {:?}",
                self.said,
                trace.as_ref().map(|trace| trace.ended)
            )),
        }
    }

    fn records(&self) -> &[Record] {
        self.trace.as_ref().map_or(&[], |trace| &trace.records)
    }

    /// The number at this JSON pointer.
    fn number(&self, pointer: &str) -> Result<u64, String> {
        let found = self.json.pointer(pointer).and_then(Value::as_u64);
        found.ok_or_else(|| format!("there is no number at {pointer} of {}", self.json))
    }

    /// The number of the task under this name of the JSON.
    fn of_task(&self, task: &str, name: &str) -> Result<u64, String> {
        let tasks = self.json["tasks"].as_array().map_or(&[][..], Vec::as_slice);
        let found = tasks.iter().find(|found| found["name"] == task);
        let number = found.and_then(|found| found[name].as_u64());
        number.ok_or_else(|| format!("no {name} of {task} in {}", self.json))
    }

    fn says(&self, words: &str) -> Result<(), String> {
        match self.said.contains(words) {
            true => Ok(()),
            false => Err(format!("it does not say {words:?}, but {:?}", self.said)),
        }
    }

    /// Whether such a record is there.
    fn has(&self, is: impl Fn(&RecordKind) -> bool) -> bool {
        self.records().iter().any(|record| is(&record.kind))
    }
}

/// Every test ends with this: the kernel's own scheduler is back, it lets ordinary work run on every
/// CPU, and no process of the test is left.
pub fn all_is_well() -> Result<(), String> {
    wait_for("the kernel's own scheduler", || {
        // Kernels without sched_ext have no state of it.
        matches!(state().as_str(), "disabled" | "").then_some(())
    })?;
    every_cpu_serves()?;
    wait_for("all actors to be gone", || {
        actor::processes_with_role("").is_empty().then_some(())
    })
}

/// The CPUs of this machine.
fn present_cpus() -> Result<shiftwork_model::CpuSet, String> {
    let list = fs::read_to_string("/sys/devices/system/cpu/present");
    let list = list.map_err(|error| error.to_string())?;
    let cpus = list.trim().parse();
    cpus.map_err(|error| format!("{list:?} are no CPUs: {error}"))
}

/// A new thread that is bound to it runs, on every CPU.
fn every_cpu_serves() -> Result<(), String> {
    for cpu in present_cpus()?.iter() {
        let cpu = cpu.index();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut only = CpuSet::new();
            only.set(cpu);
            // The receiver is gone if it took too long.
            let _ = sender.send(sched_setaffinity(None, &only));
        });
        let bound = receiver.recv_timeout(PATIENCE);
        match bound {
            Ok(Ok(())) => {}
            other => return Err(format!("nothing runs on CPU {cpu}: {other:?}")),
        }
    }
    Ok(())
}
