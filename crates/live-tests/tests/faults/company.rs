//! Other users of the machine: other schedulers, ordinary users, very many tasks.

use std::fmt::Write as _;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::{KERNEL, Live, all_is_well, file};

/// Three of four milliseconds, on any CPU.
const BUSY: &str = "name = \"busy\"\ncost = \"3ms\"\nperiod = \"10ms\"";

/// The machine has one scheduler: the second command names the loaded one, and changes nothing.
pub fn second_scheduler_is_refused() -> Result<(), String> {
    let first = Live::start(&file(&[BUSY]), &["--for", "100s"])?;
    let second = Live::begin(&file(&[BUSY]), &[KERNEL, &["--for", "1s"]].concat())?.end()?;
    if second.code != 3 {
        return Err(format!("it ended by {}: {}", second.code, second.said));
    }
    println!("{}", second.said.trim());
    second.says("shiftwork")?;
    // Tasks are released a moment after their scheduler is loaded, and the second command is quick.
    thread::sleep(Duration::from_secs(1));
    first.signal(Signal::INT)?;
    let first = first.end()?.well()?;
    if first.of_task("busy", "completed")? == 0 {
        return Err("the first run did nothing".to_owned());
    }
    all_is_well()
}

/// Five hundred tasks at once: all of them run, and none of their events is lost.
pub fn five_hundred_tasks_run() -> Result<(), String> {
    const TASKS: usize = 500;
    let task = |number| {
        let mut task = format!("name = \"t{number}\"\ncost = \"1ms\"\nperiod = \"1s\"\n");
        // Infallible for a string.
        let _ = write!(
            task,
            "offset = \"{number}ms\"\nwork = {{ run = \"200us\" }}"
        );
        task
    };
    let tasks: Vec<String> = (0..TASKS).map(task).collect();
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    let ended = Live::start(&file(&tasks), &["--for", "4s"])?
        .end()?
        .well()?;
    all_is_well()?;
    if ended.number("/lost_records")? != 0 {
        return Err(format!("records were lost: {}", ended.said));
    }
    for number in 0..TASKS {
        if ended.of_task(&format!("t{number}"), "completed")? == 0 {
            return Err(format!("task t{number} did nothing"));
        }
    }
    Ok(())
}
