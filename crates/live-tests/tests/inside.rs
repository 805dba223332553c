//! The runner inside the guest: each test in a process of its own, so that one that crashes or hangs
//! does not take the others with it, and each on a kernel without a scheduler of ours.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use shiftwork_model::RandomStream;

use crate::catalogue::Test;
use crate::progress;

/// Runs one test in this very process; the name follows.
const ALONE: &str = "--alone";
/// Whether a scheduler of some user is loaded.
const STATE: &str = "/sys/kernel/sched_ext/state";
/// Where the kernel reports on a scheduler that it ends, or on request: the tasks that wait in each
/// queue.
const TRACING: &str = "/sys/kernel/tracing";
/// How often a running test is looked at.
const POLL: Duration = Duration::from_millis(5);
/// The seed from which the moments are drawn at which tests begin; without it each begins at once.
pub const VARY: &str = "SHIFTWORK_VARY";
/// The longest that a test is put off by.
const PUT_OFF_MAX: Duration = Duration::from_millis(20);
/// How long a scheduler may take to leave after its test.
const LEAVING: Duration = Duration::from_secs(5);

/// Runs the tests that the arguments name.
pub fn run(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let find = |name: &String| tests.iter().find(|test| test.name() == name);
    if let [first, name] = &arguments[..]
        && first == ALONE
    {
        return match find(name).map(|test| (test.run)()) {
            Some(Ok(())) => ExitCode::SUCCESS,
            Some(Err(why)) => {
                println!("{why}");
                ExitCode::FAILURE
            }
            None => ExitCode::from(2),
        };
    }
    trace_dumps_of_schedulers();
    let seed = std::env::var(VARY).ok().and_then(|seed| seed.parse().ok());
    let mut moments = seed.map(|seed| RandomStream::new(seed, 0, 0));
    for test in arguments.iter().filter_map(find) {
        if let Some(moments) = &mut moments {
            let most = PUT_OFF_MAX.as_nanos() as u64;
            thread::sleep(Duration::from_nanos(moments.below(most)));
        }
        if !supervise(test) {
            // What it has left would be in the way of all others: they are to have a machine of their own.
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Whether the test passed.
#[allow(clippy::disallowed_methods, reason = "a test that hangs is ended")]
fn supervise(test: &Test) -> bool {
    progress::begin(test.name());
    let began = Instant::now();
    let output = Path::new("/tmp/output");
    let _ = fs::write(format!("{TRACING}/trace"), "");
    let verdict = attempt(test, began, output);
    let said = fs::read(output).unwrap_or_default();
    progress::say(&String::from_utf8_lossy(&said));
    if let Err(why) = &verdict {
        progress::say(why);
    }
    let left = nothing_is_left();
    if let Err(why) = &left {
        progress::say(why);
    }
    let passed = verdict.is_ok() && left.is_ok();
    if !passed {
        progress::say(&trace());
    }
    progress::end(passed, began.elapsed());
    passed
}

fn attempt(test: &Test, began: Instant, output: &Path) -> Result<(), String> {
    let file = File::create(output).map_err(|error| error.to_string())?;
    let errors = file.try_clone().map_err(|error| error.to_string())?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(own)
        .args([ALONE, test.name()])
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("the test cannot be started: {error}"))?;
    let verdict = watch(&mut child, test, began);
    // What it started goes with it.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    verdict
}

fn watch(child: &mut Child, test: &Test, began: Instant) -> Result<(), String> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("the test ended by {status}")),
            Ok(None) if began.elapsed() > test.limit => {
                // The kernel dumps the state of the loaded scheduler, if one is loaded.
                let _ = fs::write("/proc/sysrq-trigger", "D");
                let limit = test.limit.as_secs();
                return Err(format!(
                    "the test was not over after {limit} s and was ended"
                ));
            }
            Ok(None) => thread::sleep(POLL),
            Err(error) => return Err(format!("the test cannot be waited for: {error}")),
        }
    }
}

/// What the kernel has traced since it was last asked to forget it.
pub fn trace() -> String {
    let trace = fs::read_to_string(format!("{TRACING}/trace")).unwrap_or_default();
    let events = trace.lines().filter(|line| !line.starts_with('#'));
    events.fold(String::new(), |text, line| text + line + "\n")
}

/// Where the kernel can: older ones cannot.
pub fn trace_dumps_of_schedulers() {
    for name in ["events/sched_ext/sched_ext_dump/enable", "tracing_on"] {
        let _ = fs::write(format!("{TRACING}/{name}"), "1");
    }
}

/// A scheduler that stays would decide over the tests that follow.
#[allow(clippy::disallowed_methods, reason = "it may take a moment to leave")]
fn nothing_is_left() -> Result<(), String> {
    let state = || fs::read_to_string(STATE).unwrap_or_default();
    let began = Instant::now();
    while !matches!(state().trim(), "disabled" | "") {
        if began.elapsed() > LEAVING {
            // The kernel's own emergency exit: all threads return to its own scheduler.
            let _ = fs::write("/proc/sysrq-trigger", "S");
            return Err("the test left its scheduler loaded".to_owned());
        }
        thread::sleep(POLL);
    }
    Ok(())
}
