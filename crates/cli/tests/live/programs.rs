//! Programs that declare their own tasks: what they mean by a job is what the agent counts.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use shiftwork_client::{OnOverrun, OwnTask, Reservation};
use shiftwork_model::Span;

use crate::faults::{compute, wait_for};
use crate::service::Agent;

/// How many jobs end by a wait.
const JOBS: u64 = 20;

/// Every so manieth job is late.
const LATE: u64 = 7;

/// Plays the program: jobs of 300 us in periods of 10 ms, some of 25 ms. Then it goes to sleep for good, which ends one more.
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
        // Those after 10 and 20 ms were missed at the least.
        assert!((missed >= 2) == is_late, "{missed} in job {job}");
    }
    loop {
        std::thread::park();
    }
}

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Who is over already need not be ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each wait ends one job, late ones too; releases that were passed over begin none, and nobody is late but who is.
pub fn each_wait_ends_one_job() -> Result<(), String> {
    let agent = Agent::start("")?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let child = Command::new(own)
        .args(["--act", "declares"])
        .env("SHIFTWORK_SOCKET", agent.at("socket"))
        .stdin(Stdio::null())
        .spawn();
    let mut program = Program(child.map_err(|error| error.to_string())?);
    let expected = JOBS + 1;
    let mut last = Value::Null;
    let counted = wait_for("all jobs to be counted", || {
        if let Ok(Some(status)) = program.0.try_wait() {
            return Some(Err(format!("the program ended by {status}")));
        }
        last = agent.status().ok()?["tasks"][0].clone();
        (last["jobs"].as_u64() >= Some(expected)).then_some(Ok(()))
    });
    println!("{last:#}");
    counted.map_err(|why| format!("{why}: {last:#}"))??;
    // While it waits to be admitted it may be woken once more, as the agent takes the bytes that it sent.
    let is_counted = (expected..=expected + 1).contains(&last["jobs"].as_u64().unwrap_or(0));
    match is_counted && last["misses"].as_u64() == Some(JOBS / LATE) {
        true => Ok(()),
        false => Err(format!("{expected} jobs, {} misses: {last:#}", JOBS / LATE)),
    }
}
