//! A daemon of the tests, and the programs that it serves.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::faults::wait_for;

/// A daemon that schedules the CPUs 1 to 3, and programs that were started with reservations.
pub struct Daemon {
    child: Option<Child>,
    folder: TempDir,
    programs: Vec<Child>,
}

impl Daemon {
    /// Starts a daemon with these lines in its configuration.
    pub fn start(config: &str) -> Result<Self, String> {
        Self::start_on("1-3", config)
    }

    /// As [`start`](Self::start), on these CPUs.
    pub fn start_on(cpus: &str, config: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        // All users may search the folder of the socket.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).map_err(|error| error.to_string())?;
        let mut daemon = Self {
            child: None,
            folder,
            programs: Vec::new(),
        };
        let config = format!("cpus = \"{cpus}\"\n{config}");
        fs::write(daemon.at("daemon.toml"), config).map_err(|error| error.to_string())?;
        daemon.begin()?;
        Ok(daemon)
    }

    /// Starts the process, also after it was stopped.
    pub fn begin(&mut self) -> Result<(), String> {
        let log = File::create(self.at("log")).map_err(|error| error.to_string())?;
        let child = Command::new("shiftwork")
            .arg("daemon")
            .arg("--config")
            .arg(self.at("daemon.toml"))
            .arg("--socket")
            .arg(self.at("socket"))
            .arg("--state")
            .arg(self.at("state.json"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.map_err(|error| error.to_string())?);
        let begun = wait_for("the daemon to answer", || {
            let child = self.child.as_mut()?;
            match child.try_wait().ok()? {
                Some(status) => Some(Err(format!("it ended at once by {status}"))),
                None => self.status().ok().map(|_| Ok(())),
            }
        });
        begun
            .and_then(|begun| begun)
            .map_err(|why| format!("{why}; {}", self.log()))
    }

    /// Its process ID.
    pub fn id(&self) -> Result<u32, String> {
        self.child
            .as_ref()
            .map(Child::id)
            .ok_or_else(|| "no daemon is running".to_owned())
    }

    /// A file in its folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.at("log")).unwrap_or_default()
    }

    /// The command, which connects to this daemon.
    pub fn command(&self, verb: &str) -> Command {
        let mut command = Command::new("shiftwork");
        command
            .arg(verb)
            .env("SHIFTWORK_SOCKET", self.at("socket"))
            .stdin(Stdio::null());
        command
    }

    /// The output of `status`.
    pub fn status(&self) -> Result<Value, String> {
        let output = self.command("status").arg("--json").output();
        let output = output.map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{error}: {}", both(&output)))
    }

    /// Starts an actor with this part and this reservation.
    pub fn exec(&mut self, reservation: &str, part: &str) -> Result<u32, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = self.command("exec");
        command.args(reservation.split(' ')).arg("--").arg(own);
        self.start_program(command.arg("--act").args(part.split(' ')))
    }

    /// Starts a program, which ends at the latest with the daemon. Returns its process ID.
    pub fn start_program(&mut self, command: &mut Command) -> Result<u32, String> {
        let child = command.spawn().map_err(|error| error.to_string())?;
        let id = child.id();
        self.programs.push(child);
        Ok(id)
    }

    /// As [`exec`](Self::exec), and waits until the program is a task.
    pub fn admit(&mut self, reservation: &str, part: &str) -> Result<u32, String> {
        let id = self.exec(reservation, part)?;
        wait_for("the program to be a task", || {
            self.tasks().ok()?.contains(&id).then_some(())
        })?;
        Ok(id)
    }

    /// The process IDs of all tasks.
    pub fn tasks(&self) -> Result<Vec<u32>, String> {
        let status = self.status()?;
        let tasks = status["tasks"].as_array().ok_or("there are no tasks")?;
        let process = |task: &Value| task["process"].as_u64().map(|number| number as u32);
        Ok(tasks.iter().filter_map(process).collect())
    }

    pub fn end(&mut self, signal: Signal) -> Result<Option<i32>, String> {
        let Some(mut child) = self.child.take() else {
            return Err("no daemon is running".to_owned());
        };
        kill(child.id(), signal)?;
        let status = child.wait().map_err(|error| error.to_string())?;
        Ok(status.code())
    }

    /// Kills this program, and waits for it.
    pub fn end_program(&mut self, id: u32) -> Result<(), String> {
        kill(id, Signal::KILL)?;
        let of_id = self.programs.iter_mut().find(|child| child.id() == id);
        let child = of_id.ok_or("it is not a program of this daemon")?;
        child.wait().map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for child in self.programs.iter_mut().chain(&mut self.child) {
            // Fails only if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn kill(process: u32, signal: Signal) -> Result<(), String> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    kill_process(pid.ok_or("no such number")?, signal).map_err(|error| error.to_string())
}

pub fn both(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}
