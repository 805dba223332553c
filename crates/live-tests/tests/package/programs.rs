//! The programs of a member of the group, and their statistics.

use std::process::{Child, Output};

use serde_json::Value;

use super::user::User;
use crate::faults::{goes_on, wait_for};

/// A control program: a millisecond of work ten times a second.
const PART: [&str; 4] = ["--act", "naps", "1000", "100000"];

/// A user, and the user's admitted programs.
pub struct Programs {
    /// The user.
    pub owner: User,
    running: Vec<Child>,
}

impl Programs {
    /// No programs yet.
    pub const fn of(owner: User) -> Self {
        Self {
            owner,
            running: Vec::new(),
        }
    }

    /// Number of admitted programs.
    pub const fn count(&self) -> usize {
        self.running.len()
    }

    /// Checks that each program makes progress, under any scheduler.
    ///
    /// # Errors
    /// If one does not, or has ended.
    pub fn make_progress(&self) -> Result<(), String> {
        self.running
            .iter()
            .try_for_each(|program| goes_on(program.id(), 3))
    }

    /// Kills all programs and removes the user.
    ///
    /// # Errors
    /// If that fails.
    pub fn end(mut self) -> Result<(), String> {
        for program in &mut self.running {
            let ended = program.kill().and_then(|()| program.wait());
            ended.map_err(|error| error.to_string())?;
        }
        self.owner.remove()
    }

    /// Starts one more program and waits until it is a task.
    pub fn admit(&mut self, reservation: &str) -> Result<(), String> {
        let own = own()?;
        let words = [&["--", own.as_str()][..], &PART].concat();
        let program = self.owner.start_exec(reservation, &words)?;
        let id = program.id();
        self.running.push(program);
        wait_for("the program to be a task", || {
            tasks(&self.status().ok()?)
                .any(|task| task["process"] == id)
                .then_some(())
        })
    }

    /// The output of `status`, run by the owner.
    pub fn status(&self) -> Result<Value, String> {
        let output = self.owner.shiftwork(&["status", "--json"])?;
        expect(&output, 0, "")?;
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }

    /// Waits until the daemon answers, and checks that it has the same tasks with the same reservations, which make progress.
    pub fn are_as(&self, before: &Value) -> Result<(), String> {
        let after = wait_for("the daemon to answer", || self.status().ok())?;
        let known = |status: &Value| -> Vec<Vec<Value>> {
            let keys = [
                "name",
                "process",
                "thread",
                "user",
                "cost_ns",
                "period_ns",
                "cpus",
                "state",
            ];
            let of = |task: &Value| keys.iter().map(|key| task[key].clone()).collect();
            tasks(status).map(of).collect()
        };
        if known(before) != known(&after) || known(before).len() != self.count() {
            return Err(format!("before there are {before:#}, then {after:#}"));
        }
        self.go_on(&after)
    }

    /// Waits until each task has completed five more jobs than before, and checks that none missed a deadline. (The first jobs
    /// of a program may: it is loaded in them.)
    pub fn go_on(&self, before: &Value) -> Result<(), String> {
        let after = wait_for("jobs to be counted", || {
            let after = self.status().ok()?;
            let jobs = |task: &Value| task["jobs"].as_u64().unwrap_or(0);
            let all = tasks(before)
                .zip(tasks(&after))
                .all(|(was, is)| jobs(is) >= jobs(was) + 5);
            all.then_some(after)
        })?;
        match after["deadline_misses"] == before["deadline_misses"] {
            true => Ok(()),
            false => Err(format!("first {before:#}, then {after:#}")),
        }
    }
}

fn tasks(status: &Value) -> impl Iterator<Item = &Value> {
    status["tasks"].as_array().into_iter().flatten()
}

/// The path of this test program, which has all parts of actors.
pub fn own() -> Result<String, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(own.to_string_lossy().into_owned())
}

/// Checks that a program ended with this status and wrote these words to stderr.
pub fn expect(output: &Output, code: i32, words: &str) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() == Some(code) && said.contains(words) {
        true => Ok(()),
        false => Err(format!(
            "wanted {code} and `{words}`, got {} and {said}",
            output.status
        )),
    }
}
