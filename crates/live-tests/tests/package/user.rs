//! Users of the fresh system, without privileges.

use std::process::{Child, Command, Output, Stdio};

use super::machine::ask;

/// A user account.
pub struct User(&'static str);

impl User {
    /// Creates one, without a home folder or other files.
    pub fn create(name: &'static str, options: &[&str]) -> Result<Self, String> {
        ask(&[&["useradd", "--system"], options, &[name]].concat())?;
        Ok(Self(name))
    }

    /// Removes the account.
    pub fn remove(&self) -> Result<(), String> {
        ask(&["userdel", self.0]).map(drop)
    }

    /// Runs a program to its end.
    pub fn run(&self, words: &[&str]) -> Result<Output, String> {
        let output = self.command(words).output();
        output.map_err(|error| error.to_string())
    }

    /// Runs `shiftwork` to its end.
    pub fn shiftwork(&self, words: &[&str]) -> Result<Output, String> {
        self.run(&[&["shiftwork"], words].concat())
    }

    /// Runs `shiftwork exec` with this reservation and these further arguments.
    pub fn exec(&self, reservation: &str, words: &[&str]) -> Result<Output, String> {
        self.run(&exec(reservation, words))
    }

    /// As [`exec`](Self::exec), without waiting for its end.
    pub fn start_exec(&self, reservation: &str, words: &[&str]) -> Result<Child, String> {
        let child = self.command(&exec(reservation, words)).spawn();
        child.map_err(|error| error.to_string())
    }

    /// `setpriv` executes the program in the same process.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", self.0, "--regid", self.0, "--init-groups"])
            .args(words)
            .stdin(Stdio::null());
        command
    }
}

fn exec<'a>(reservation: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let options = reservation.split(' ');
    let all = ["shiftwork", "exec"].into_iter().chain(options);
    all.chain(words.iter().copied()).collect()
}
