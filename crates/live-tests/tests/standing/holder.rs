//! The machine is held by another process, which is killed.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::stage::{ALL, Stage, is_spent, runs, wish, wish_of};
use super::worker::{Doing, Worker};
use crate::faults::{Actor, goes_on, state, wait_for, wait_for_state};

/// The file that the holder of the machine writes when all are admitted.
const HELD: &str = "/tmp/held";

/// A part to play: holds a machine with these threads of another process as tasks, until it is
/// killed.
pub fn hold(threads: &[u64]) {
    let mut stage = Stage::load().unwrap();
    for (index, &thread) in threads.iter().enumerate() {
        let thread = Pid::from_raw(i32::try_from(thread).unwrap()).unwrap();
        stage.must_admit(index, &wish_of(thread, ALL)).unwrap();
        stage.hear(0, index, runs).unwrap();
    }
    fs::write(HELD, "").unwrap();
    loop {
        stage.standing.wait_until(u64::MAX);
        stage.take().unwrap();
    }
}

/// When the process that holds the machine is killed, its tasks go on as the kernel's own; another machine takes them
/// in again.
pub fn threads_outlive_the_holder_of_a_standing_scheduler() -> Result<(), String> {
    let workers = [Doing::Naps, Doing::Hogs, Doing::Yields].map(Worker::start);
    let numbers: Vec<String> = workers
        .iter()
        .map(|worker| worker.number().to_string())
        .collect();
    let mut holder = Actor::start(&format!("holds {}", numbers.join(" ")))?;
    wait_for("the machine to be held", || {
        fs::exists(HELD).ok()?.then_some(())
    })?;
    let pid = i32::try_from(holder.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::KILL).map_err(|error| error.to_string())?;
    if holder.ends().is_ok() {
        return Err(String::from("it ended by itself"));
    }
    wait_for_state("disabled")?;
    for worker in &workers {
        goes_on(worker.number(), 5)?;
    }
    let mut stage = Stage::load()?;
    if state() != "enabled" {
        return Err(format!("sched_ext is {}", state()));
    }
    for (index, worker) in workers.iter().enumerate() {
        stage.must_admit(index, &wish(worker, ALL))?;
        stage.hear(0, index, runs)?;
    }
    stage.hear(0, 1, is_spent)?;
    stage.end()
}
