//! The flight recorder: misses are provoked, each in its way, and what the agent keeps of them names the cause.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use shiftwork_daemon::recorder::{RecordingHead, list};
use shiftwork_trace::perfetto;

use crate::faults::{Actor, Offline, all_is_well, wait_for};
use crate::service::{Daemon, both, kill};

/// Everything that is missed is kept.
const CONFIG: &str = "record-seconds = 3\nrecord-gap-seconds = 0\nrecord-files = 200";

/// Two of them wake up at the same instants, and have their deadlines where each has a CPU. Where both have one, one
/// of them has not. They wake up less often than is reserved for: none wakes up before its budget is replenished.
const TWIN: &str = "beats 3000 12000";
const OF_TWIN: &str =
    "--name twin --cost 4ms --period 11ms --deadline 4500us --on-overrun continue";

/// What is kept of a miss of this task with this cause, which is provoked again and again: where everything is as slow as
/// here not every miss is explained.
fn kept(
    daemon: &Daemon,
    task: &str,
    cause: &str,
    mut provoke: impl FnMut() -> Result<(), String>,
) -> Result<PathBuf, String> {
    let wanted = Some((task.to_owned(), cause.to_owned()));
    let mut found = Vec::new();
    let kept = wait_for(&format!("a miss of {task} by {cause}"), || {
        if let Err(why) = provoke() {
            return Some(Err(why));
        }
        let paths = list(&daemon.at("records")).ok()?;
        // All others have been looked at.
        for path in paths.into_iter().skip(found.len()) {
            let missed = RecordingHead::read(&fs::read(&path).ok()?)?.missed;
            let is_it = missed == wanted;
            found.push(missed);
            if is_it {
                return Some(Ok(path));
            }
        }
        None
    });
    kept.and_then(|kept| kept)
        .map_err(|why| format!("{why}; there are {found:?}; it said: {}", daemon.log()))
}

/// What `shiftwork record` prints.
fn output(daemon: &Daemon, arguments: &[&str]) -> Result<String, String> {
    let output = daemon.command("record").args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        code => Err(format!(
            "record {arguments:?} ended by {code:?}: {}",
            both(&output)
        )),
    }
}

/// The file says this of itself.
fn says(daemon: &Daemon, file: &Path, wanted: &[&str]) -> Result<(), String> {
    let text = output(daemon, &[&file.to_string_lossy()])?;
    println!("{text}");
    for words in wanted {
        if !text.contains(words) {
            return Err(format!("{} does not say {words:?}", file.display()));
        }
    }
    Ok(())
}

/// The overrun of another task and one of its own, too narrow an affinity, a CPU that goes offline, and one that a SCHED_FIFO thread
/// takes: each is named, by a file and by what the command says of it.
pub fn record_names_what_led_to_a_miss() -> Result<(), String> {
    let mut daemon = Daemon::start(CONFIG)?;
    overrun(&mut daemon)?;
    narrow(&mut daemon)?;
    offline(&mut daemon)?;
    taken(&mut daemon)?;
    own_overrun(&mut daemon)?;
    drop(daemon);
    all_is_well()
}

/// What is beyond the reservation of one is at the expense of its own deadline, and of no other.
fn overrun(daemon: &mut Daemon) -> Result<(), String> {
    let calm = daemon.admit(
        "--name calm --cost 1ms --period 7ms --deadline 5ms --cpus 1",
        "naps 300 7000",
    )?;
    thread::sleep(Duration::from_millis(500));
    let hog = daemon.admit(
        "--name hog --cost 1ms --period 40ms --deadline 4ms --cpus 1 --on-overrun continue",
        "naps 8000 30000",
    )?;
    let file = kept(daemon, "hog", "own overrun", || Ok(()))?;
    says(
        daemon,
        &file,
        &[
            "of hog missed its deadline; cause: own overrun",
            "out of budget",
            "CPU 1:",
        ],
    )?;
    // The start of its program took more than one job may.
    let status_of_calm = || {
        thread::sleep(Duration::from_millis(200));
        let status = daemon.status()?;
        let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
        let calm = tasks.into_iter().find(|task| task["name"] == "calm");
        calm.ok_or_else(|| String::from("calm is no task"))
    };
    let (before, after) = (status_of_calm()?, status_of_calm()?);
    let grown = |key: &str| Some(after[key].as_u64()? - before[key].as_u64()?);
    if grown("jobs") < Some(20) || grown("misses") != Some(0) {
        return Err(format!(
            "the overrun of hog costs calm a deadline: {before:?}, then {after:?}"
        ));
    }
    // It is a trace as any other.
    let bytes = fs::read(&file).map_err(|error| error.to_string())?;
    let trace = perfetto::read(&bytes).map_err(|error| error.to_string())?;
    if trace.tasks.len() != 2 || trace.records.len() < 100 {
        return Err(format!(
            "{} records of {:?}",
            trace.records.len(),
            trace.tasks
        ));
    }
    daemon.end_program(hog)?;
    daemon.end_program(calm)
}

fn narrow(daemon: &mut Daemon) -> Result<(), String> {
    twins(
        daemon,
        "1",
        || Ok(()),
        "affinity too narrow",
        "CPUs outside of its affinity were idle",
    )
}

fn offline(daemon: &mut Daemon) -> Result<(), String> {
    let take = || Offline::take(3);
    twins(
        daemon,
        "2-3",
        take,
        "CPU went offline",
        "waiting while a CPU was offline",
    )
}

/// Twins on these CPUs miss a deadline after that, for this cause, of which the file says something.
fn twins<T>(
    daemon: &mut Daemon,
    cpus: &str,
    after: impl FnOnce() -> Result<T, String>,
    cause: &str,
    words: &str,
) -> Result<(), String> {
    let reservation = format!("{OF_TWIN} --cpus {cpus}");
    let one = daemon.admit(&reservation, TWIN)?;
    let other = daemon.admit(&reservation, TWIN)?;
    let done = after()?;
    let file = kept(daemon, "twin", cause, || Ok(()))?;
    says(daemon, &file, &[words, "deadline; cause: "])?;
    drop(done);
    daemon.end_program(one)?;
    daemon.end_program(other)
}

/// A task that needs more than it reserved is throttled, and its miss is its own overrun, not the
/// scheduler's fault.
fn own_overrun(daemon: &mut Daemon) -> Result<(), String> {
    let greedy = daemon.admit(
        "--name greedy --cost 2ms --period 12ms --deadline 8ms --cpus 2-3",
        "beats 3000 24000",
    )?;
    let file = kept(daemon, "greedy", "own overrun", || Ok(()))?;
    says(daemon, &file, &["out of budget"])?;
    daemon.end_program(greedy)
}

fn taken(daemon: &mut Daemon) -> Result<(), String> {
    let robbed = daemon.admit(
        "--name robbed --cost 2ms --period 10ms --cpus 1 --on-overrun continue",
        "naps 1000 5000",
    )?;
    let rob = || Actor::start("fifo 1 40")?.ends();
    let file = kept(daemon, "robbed", "CPU taken by a higher class", rob)?;
    says(daemon, &file, &["taken by a higher scheduling class"])?;
    let listed = output(daemon, &["--list"])?;
    println!("{listed}");
    let mut lines = listed.lines();
    let is_it = |line: &str| line.contains(&*file.to_string_lossy()) && line.contains("robbed");
    if !lines.any(is_it) {
        return Err(format!("{} is not listed", file.display()));
    }
    daemon.end_program(robbed)
}

/// While the agent is stopped the kernel goes on deciding: no job is late for that. A miss in that
/// time has its cause named afterwards, and the recording says from when to when the agent was
/// away.
pub fn record_names_the_time_without_agent() -> Result<(), String> {
    let mut daemon = Daemon::start(CONFIG)?;
    let steady = "--name steady --cost 2ms --period 10ms --cpus 1 --on-overrun continue";
    daemon.admit(steady, "naps 1000 5000")?;
    daemon.admit(
        "--name other --cost 4ms --period 10ms --cpus 1 --on-overrun continue",
        "naps 3000 6000",
    )?;
    let jobs_and_misses = |daemon: &Daemon| {
        let status = daemon.status()?;
        let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
        let sum = |key: &str| {
            tasks
                .iter()
                .filter_map(|task| task[key].as_u64())
                .sum::<u64>()
        };
        Ok::<_, String>((sum("jobs"), sum("misses")))
    };
    let id = daemon.id()?;
    let before = jobs_and_misses(&daemon)?;
    kill(id, Signal::STOP)?;
    thread::sleep(Duration::from_millis(400));
    kill(id, Signal::CONT)?;
    let after = jobs_and_misses(&daemon)?;
    println!("jobs and misses: {before:?}, and after a stop of 400 ms {after:?}");
    if after.1 != before.1 || after.0 < before.0 + 40 {
        return Err(format!(
            "{before:?} jobs and misses before, {after:?} after"
        ));
    }
    let rob = || {
        kill(id, Signal::STOP)?;
        Actor::start("fifo 1 40")?.ends()?;
        thread::sleep(Duration::from_millis(210));
        kill(id, Signal::CONT)?;
        // Now it finds out what led to it.
        thread::sleep(Duration::from_millis(600));
        Ok(())
    };
    let file = kept(&daemon, "steady", "CPU taken by a higher class", rob)?;
    says(&daemon, &file, &["The daemon did not run from"])?;
    let bytes = fs::read(&file).map_err(|error| error.to_string())?;
    let trace = perfetto::read(&bytes).map_err(|error| error.to_string())?;
    let absences = trace.recorder.map(|it| it.absences).unwrap_or_default();
    let spans: Vec<u64> = absences
        .iter()
        .map(|it| it.until_ns - it.since_ns)
        .collect();
    // It polls every 50 ms, or when a client calls.
    if !spans.iter().any(|&span| span >= 240_000_000) {
        return Err(format!("it was away for {spans:?} ns"));
    }
    drop(daemon);
    all_is_well()
}
