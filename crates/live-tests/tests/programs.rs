//! Programs that declare their own tasks: the daemon counts the same jobs as the program.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use shiftwork_client::{OnOverrun, OwnTask, Reservation};
use shiftwork_model::Span;

use crate::faults::{compute, wait_for};
use crate::service::Daemon;

/// Number of jobs that end by a wait.
const JOBS: u64 = 20;

/// One of this many jobs is late.
const LATE: u64 = 7;

/// The part of the program: jobs of 300 us in periods of 10 ms, some of 25 ms. Finally it sleeps for ever, which ends one
/// more job.
pub fn declares() {
    let reservation = Reservation {
        on_overrun: Some(OnOverrun::Continue),
        ..Reservation::new(Span::from_ms(2), Span::from_ms(10))
    };
    let mut task = OwnTask::admit("declared", &reservation).unwrap();
    for job in 1..=JOBS {
        let is_late = job % LATE == 0;
        compute(Duration::from_micros(if is_late { 25_000 } else { 300 }));
        let missed = task.wait_next().unwrap();
        // At least the releases after 10 and 20 ms were skipped.
        assert!((missed >= 2) == is_late, "{missed} in job {job}");
    }
    loop {
        std::thread::park();
    }
}

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Fails only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each wait ends one job, also a late one; skipped releases begin none, and exactly the late jobs miss their deadlines.
pub fn each_wait_of_a_program_ends_one_job() -> Result<(), String> {
    let daemon = Daemon::start("")?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(own)
        .args(["--act", "declares"])
        .env("SHIFTWORK_SOCKET", daemon.at("socket"))
        .stdin(Stdio::null())
        .spawn();
    let mut program = Program(child.map_err(|error| error.to_string())?);
    let expected = JOBS + 1;
    let mut last = Value::Null;
    let counted = wait_for("all jobs to be counted", || {
        if let Ok(Some(status)) = program.0.try_wait() {
            return Some(Err(format!("the program ended by {status}")));
        }
        last = daemon.status().ok()?["tasks"][0].clone();
        (last["jobs"].as_u64() >= Some(expected)).then_some(Ok(()))
    });
    println!("{last:#}");
    counted.map_err(|why| format!("{why}: {last:#}"))??;
    // While it waits to be admitted it may be woken once more, when the daemon reads the call.
    let is_counted = (expected..=expected + 1).contains(&last["jobs"].as_u64().unwrap_or(0));
    match is_counted && last["misses"].as_u64() == Some(JOBS / LATE) {
        true => Ok(()),
        false => Err(format!("{expected} jobs, {} misses: {last:#}", JOBS / LATE)),
    }
}
