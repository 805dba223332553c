//! The main loop: one thread waits for callers and scheduling events and handles both.

use std::io;
use std::os::fd::AsFd as _;
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shiftwork_live::LiveError;
use shiftwork_model::{Span, TaskId};

use crate::clock::{now, thread_cpu_time};
use crate::config::Config;
use crate::daemon::{Daemon, PollOutcome};
use crate::log_rate_limit::LogRateLimit;
use crate::socket::Server;

/// Maximum delay until a missed deadline is detected and a signal is handled.
const POLL_INTERVAL: Span = Span::from_ms(50);

/// Maximum number of messages about a task in a second.
const MESSAGES_MAX: u32 = 5;

/// Pause after a step that failed: the kernel may lack memory.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);

/// Number of failures in a row after which the daemon ends, so that the service manager restarts it.
const FAILURES_MAX: u32 = 100;

/// Interface to the program or service manager that runs the daemon.
pub trait ServiceControl {
    /// Whether the daemon shall stop.
    fn should_stop(&mut self) -> bool;

    /// A new configuration to apply; `None`: no change.
    fn take_new_config(&mut self) -> Option<Config>;

    /// Logs a message of one line.
    fn log(&mut self, level: Level, message: &str);

    /// Reports to the service manager that the daemon is alive.
    fn notify_watchdog(&mut self);
}

/// How urgent a message of the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something happened as it should.
    Info,
    /// Something does not work, or a task has lost what it relies on.
    Warning,
}

/// Why the main loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// [`ServiceControl::should_stop`].
    Stopped,
    /// The kernel unloaded the scheduler, for this reason.
    Unloaded(String),
}

/// Raises the limit of descriptors of this process to the maximum: each connection needs one.
pub fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If that fails, fewer connections are accepted.
    let _ = setrlimit(Resource::Nofile, all);
}

/// Serves until [`ServiceControl::should_stop`] or until the kernel unloads the scheduler. A step that fails is logged and
/// repeated.
///
/// # Errors
/// If it fails some seconds long: scheduling events cannot be read, or the daemon cannot wait for callers. All threads
/// continue as ordinary work then.
pub fn run(
    daemon: &mut Daemon,
    server: &mut Server,
    control: &mut dyn ServiceControl,
) -> Result<Exit, LiveError> {
    let mut log_rate_limit = LogRateLimit::new(MESSAGES_MAX);
    let mut failures = 0;
    loop {
        match step(daemon, server, control, &mut log_rate_limit) {
            Ok(None) if failures > 0 => {
                control.log(
                    Level::Info,
                    &format!("works again after {failures} failures"),
                );
                failures = 0;
            }
            Ok(None) => {}
            Ok(Some(exit)) => return Ok(exit),
            Err(error) => {
                failures += 1;
                if failures == FAILURES_MAX {
                    return Err(error);
                }
                if failures == 1 {
                    control.log(Level::Warning, &format!("trying again: {error}"));
                }
                sleep(FAILURE_PAUSE);
            }
        }
    }
}

/// Handles what there is, then waits for more.
fn step(
    daemon: &mut Daemon,
    server: &mut Server,
    control: &mut dyn ServiceControl,
    log_rate_limit: &mut LogRateLimit<TaskId>,
) -> Result<Option<Exit>, LiveError> {
    if control.should_stop() {
        return Ok(Some(Exit::Stopped));
    }
    let outcome = daemon.poll(now())?;
    log_outcome(daemon, &outcome, log_rate_limit, control);
    daemon.enforce_own_budget(now(), thread_cpu_time());
    if let Some(reason) = outcome.unloaded {
        return Ok(Some(Exit::Unloaded(reason)));
    }
    if let Some(config) = control.take_new_config() {
        let (user_rate, cgroup_rate) = (config.user_rate, config.cgroup_rate);
        match daemon.reload(config) {
            Ok(()) => {
                server.set_rates(user_rate, cgroup_rate);
                control.log(Level::Info, "configuration reloaded");
            }
            Err(why) => control.log(Level::Warning, &format!("configuration unchanged: {why}")),
        }
    }
    control.notify_watchdog();
    let served = server.serve(now(), daemon);
    daemon.enforce_own_budget(now(), thread_cpu_time());
    let waited = served.and_then(|()| wait(daemon, server));
    waited.map_err(|error| LiveError::System {
        doing: "wait for callers".to_owned(),
        error,
    })?;
    Ok(None)
}

/// Waits for callers, scheduling events, a timeout of the server, or [`POLL_INTERVAL`].
fn wait(daemon: &Daemon, server: &Server) -> io::Result<()> {
    let now = now();
    let until = match daemon.has_more_work() {
        true => now,
        false => server.wake_at().min(now + POLL_INTERVAL),
    };
    let span = until.late_since(now);
    let timeout = Timespec {
        tv_sec: 0,
        // At most `POLL_INTERVAL`, which is below a second.
        tv_nsec: span.min(POLL_INTERVAL).as_ns() as _,
    };
    let mut descriptors = [
        PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(daemon.events(), PollFlags::IN),
    ];
    match poll(&mut descriptors, Some(&timeout)) {
        Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn log_outcome(
    daemon: &Daemon,
    outcome: &PollOutcome,
    log_rate_limit: &mut LogRateLimit<TaskId>,
    control: &mut dyn ServiceControl,
) {
    let now = now();
    for warning in &outcome.warnings {
        control.log(Level::Warning, warning);
    }
    for line in &outcome.audit {
        control.log(Level::Info, line);
    }
    for notice in &outcome.notices {
        if log_rate_limit.allow(notice.task, now) {
            let level = match notice.is_alert() {
                true => Level::Warning,
                false => Level::Info,
            };
            control.log(
                level,
                &format!("task {}: {}", notice.task.index(), notice.what),
            );
        }
    }
    for miss in &outcome.misses {
        if log_rate_limit.allow(miss.job.task, now) {
            let reserved = daemon.task(miss.job.task);
            let name = reserved.map_or("?", |reserved| reserved.name.as_str());
            let task = miss.job.task.index();
            let message = format!("task {task} ({name}) missed its deadline");
            control.log(Level::Warning, &message);
        }
    }
    for (task, count) in log_rate_limit.take_suppressed(now) {
        let message = format!("task {}: {count} messages suppressed", task.index());
        control.log(Level::Info, &message);
    }
}
