//! `shiftwork daemon`: schedules this machine for programs that come and go.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use sd_notify::NotifyState;
use shiftwork_client::socket_path;
use shiftwork_daemon::clock::now;
use shiftwork_daemon::config::{Config, ConfigError};
use shiftwork_daemon::daemon::Daemon;
use shiftwork_daemon::run::{Exit, Level, ServiceControl, allow_descriptors, run as serve};
use shiftwork_daemon::socket::{Access, Server, SocketLimits};
use shiftwork_daemon::state::StateFile;
use shiftwork_live::LiveError;
use shiftwork_live::host::System;
use shiftwork_live::standing::check_cpus;
use shiftwork_model::CpuSet;

use super::watch::{catch_interrupts, catch_termination, is_interrupted};
use crate::args::DaemonArgs;
use crate::failure::{Answer, Failure};
use crate::output::{Console, plural, tell};

/// Name of the state file.
const STATE: &str = "daemon.json";

/// How a warning begins in the journal; see sd-daemon(3).
const WARNING: &str = "<4>";

/// Folder of the state file without systemd.
const STATE_FOLDER: &str = "/var/lib/shiftwork";

/// Runs until it is stopped.
pub fn run(args: &DaemonArgs, console: &mut Console) -> Result<Answer, Failure> {
    let config = read(args)?;
    if args.check_config {
        return check(&config, console);
    }
    let machine = |error: &dyn std::fmt::Display| Failure::Machine(error.to_string());
    let online = System::this().online().unwrap_or(CpuSet::EMPTY);
    allow_descriptors();
    // Fails if another daemon is running, before anything is loaded.
    let mut server = match Server::inherited(limits(&config)).map_err(|error| machine(&error))? {
        Some(server) => server,
        None => bind(args, &config)?,
    };
    let path = args.state.clone().unwrap_or_else(state_path);
    make_folder(&path)?;
    let state = StateFile::at(path).map_err(|error| machine(&error))?;
    catch_termination();
    let hung_up = Arc::new(AtomicBool::new(false));
    // Without a handler SIGHUP terminates the daemon, which is no worse than refusing to start.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&hung_up));
    let started = Daemon::start(config, state, online, now());
    let (mut daemon, outcome) = started.map_err(|error| match &error {
        LiveError::System { error: cause, .. } => classify(cause, error.to_string()),
        _ => machine(&error),
    })?;
    // Creates a thread, which inherits only the capabilities that the daemon has kept.
    catch_interrupts();
    let mut control = CommandControl {
        args,
        console,
        hung_up,
        is_journal: std::env::var_os("JOURNAL_STREAM").is_some(),
    };
    for notice in outcome.notices {
        let message = format!("task {}: {}", notice.task.index(), notice.what);
        control.log(Level::Info, &message);
    }
    outcome
        .audit
        .iter()
        .for_each(|line| control.log(Level::Info, line));
    outcome
        .warnings
        .iter()
        .for_each(|warning| control.log(Level::Warning, warning));
    let begun = format!(
        "schedules CPUs {} by {}, guarantee {}",
        daemon.rules().cpus,
        daemon.policy(),
        daemon.rules().guarantee
    );
    control.log(Level::Info, &begun);
    // Has no effect if the daemon was not started by systemd.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let ended = serve(&mut daemon, &mut server, &mut control);
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    match ended {
        // This machine can run it: it did.
        Err(error) => Err(Failure::Temporary(error.to_string())),
        Ok(Exit::Stopped) => Ok(Answer::Yes),
        // Status 1, not 3: after a restart all reservations are restored.
        Ok(Exit::Unloaded(reason)) => {
            tell(&format!(
                "the kernel unloaded the scheduler: {reason}; all threads continue under the kernel's own scheduler"
            ));
            Ok(Answer::No)
        }
    }
}

/// A failure to start, with this cause: temporary if the kernel lacked memory, a disk was full or failed, or something was in use.
fn classify(cause: &io::Error, message: String) -> Failure {
    const TEMPORARY: [Errno; 8] = [
        Errno::NOMEM,
        Errno::NOBUFS,
        Errno::AGAIN,
        Errno::INTR,
        Errno::BUSY,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::IO,
    ];
    match Errno::from_io_error(cause).is_some_and(|errno| TEMPORARY.contains(&errno)) {
        true => Failure::Temporary(message),
        false => Failure::Machine(message),
    }
}

/// Checks what reading the file does not: whether this machine has the group and the CPUs.
fn check(config: &Config, console: &mut Console) -> Result<Answer, Failure> {
    config.group.as_deref().map(group).transpose()?;
    let online = System::this().online().unwrap_or(CpuSet::EMPTY);
    let cpus = config.cpus.unwrap_or(online);
    check_cpus(&cpus).map_err(|error| Failure::Machine(error.to_string()))?;
    let callers = config.group.as_deref().map_or_else(
        || "root".to_owned(),
        |group| format!("root and members of group {group}"),
    );
    let user = &config.quotas.user.held;
    console.line(format!(
        "valid: CPUs {cpus} by {}, guarantee {}, reserve {}",
        config.policy, config.guarantee, config.terms.reserve
    ))?;
    console.line(format!(
        "reservations for {callers}; of each user at most {} with a total utilization of {}",
        plural(user.tasks, "task"),
        user.share_ppm as f64 / 1e6
    ))?;
    Ok(Answer::Yes)
}

fn read(args: &DaemonArgs) -> Result<Config, Failure> {
    Config::read(args.config.as_deref()).map_err(|error| match error {
        ConfigError::Refused { path, text, error } => {
            Failure::refused(&path.display().to_string(), &text, &error)
        }
        ConfigError::Unread { .. } => Failure::input(error),
    })
}

fn bind(args: &DaemonArgs, config: &Config) -> Result<Server, Failure> {
    let path = args.socket.clone().unwrap_or_else(socket_path);
    make_folder(&path)?;
    let group = config.group.as_deref().map(group).transpose()?;
    let access = Access {
        // Only root and members of the group may connect.
        mode: 0o660,
        group,
    };
    Server::bind(&path, access, limits(config)).map_err(|error| Failure::Machine(error.to_string()))
}

/// The limits of the socket.
fn limits(config: &Config) -> SocketLimits {
    SocketLimits {
        user_rate: config.user_rate,
        cgroup_rate: config.cgroup_rate,
        ..SocketLimits::default()
    }
}

/// The number of a group.
fn group(name: &str) -> Result<u32, Failure> {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let mut fields = groups.lines().map(|line| line.split(':'));
    fields
        .find_map(|mut fields| {
            let is_it = fields.next() == Some(name);
            // The field after the password.
            is_it.then(|| fields.nth(1)?.parse().ok()).flatten()
        })
        .ok_or_else(|| {
            Failure::input(format_args!(
                "group = \"{name}\": not found in /etc/group; create it with `groupadd --system {name}`"
            ))
        })
}

fn state_path() -> PathBuf {
    let folder = std::env::var_os("STATE_DIRECTORY");
    let folder = folder.map_or_else(|| PathBuf::from(STATE_FOLDER), PathBuf::from);
    folder.join(STATE)
}

fn make_folder(of: &Path) -> Result<(), Failure> {
    let folder = of.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "; the daemon must run as root, as by `systemctl start shiftwork`"
            }
            _ => "",
        };
        let message = format!("{} cannot be created: {error}{remedy}", folder.display());
        classify(&error, message)
    })
}

/// The console, signals and service manager, as the main loop uses them.
struct CommandControl<'a> {
    args: &'a DaemonArgs,
    console: &'a mut Console,
    hung_up: Arc<AtomicBool>,
    /// Whether messages go to the journal of systemd, which reads a level before each.
    is_journal: bool,
}

impl ServiceControl for CommandControl<'_> {
    fn should_stop(&mut self) -> bool {
        is_interrupted()
    }

    fn take_new_config(&mut self) -> Option<Config> {
        if !self.hung_up.swap(false, Ordering::Relaxed) {
            return None;
        }
        match Config::read(self.args.config.as_deref()) {
            Ok(config) => Some(config),
            Err(error) => {
                self.log(Level::Warning, &format!("configuration unchanged: {error}"));
                None
            }
        }
    }

    fn log(&mut self, level: Level, message: &str) {
        match level {
            Level::Warning if self.is_journal => self.console.note(format!("{WARNING}{message}")),
            Level::Info | Level::Warning => self.console.note(message),
        }
    }

    fn notify_watchdog(&mut self) {
        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// systemd starts the daemon again after status 1, and not after 3.
    #[test]
    fn full_disk_is_a_temporary_failure() {
        let status = |errno: Errno| classify(&errno.into(), String::new()).status();
        assert_eq!([Errno::NOSPC, Errno::DQUOT, Errno::IO].map(status), [1; 3]);
        assert_eq!(
            [Errno::ACCESS, Errno::ROFS, Errno::PERM].map(status),
            [3; 3]
        );
    }
}
