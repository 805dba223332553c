//! The daemon in regular use: `shiftwork daemon`, `exec` and `status`, with programs that come and go.

mod daemon;

use std::fs::{self};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use crate::faults::{Offline, goes_on, wait_for, wait_for_state};

pub use self::daemon::{Daemon, both, kill};

/// A user without privileges, and its group of the same number.
const UNPRIVILEGED: u32 = 65_534;

/// Programs are admitted until one is refused with the sum that does not fit. All admitted ones run, also beside ordinary
/// work on the same CPUs. After one ends another is admitted.
pub fn programs_are_admitted_up_to_capacity() -> Result<(), String> {
    const FIFTH: &str = "--cost 2ms --period 10ms --cpus 1";
    let mut daemon = Daemon::start("")?;
    let mut admitted = Vec::new();
    for _ in 0..4 {
        admitted.push(daemon.admit(FIFTH, "naps 300 5000")?);
    }
    let mut hogs = Vec::new();
    for _ in 0..4 {
        hogs.push(crate::faults::Actor::start("hog 1 2 3")?);
    }
    let mut fifth = daemon.command("exec");
    let refused = fifth
        .args(FIFTH.split(' '))
        .args(["--", "/no/such/program"])
        .output();
    let refused = refused.map_err(|error| error.to_string())?;
    println!("{}", both(&refused));
    if refused.status.code() != Some(1)
        || !both(&refused).contains("need 1.00 CPUs there, of which there are 0.95")
    {
        return Err(format!("the fifth ended by {}", refused.status));
    }
    for &id in &admitted {
        goes_on(id, 3)?;
    }
    wait_for("jobs to be counted", || {
        let status = daemon.status().ok()?;
        let tasks = status["tasks"].as_array()?;
        tasks
            .iter()
            .all(|task| task["jobs"].as_u64() > Some(3))
            .then_some(())
    })?;
    daemon.end_program(admitted[0])?;
    wait_for("its task to be gone", || {
        (!daemon.tasks().ok()?.contains(&admitted[0])).then_some(())
    })?;
    // Its bandwidth is released a period later.
    std::thread::sleep(std::time::Duration::from_millis(20));
    daemon.admit(FIFTH, "naps 300 5000")?;
    let top = daemon
        .command("top")
        .args(["--count", "2", "--interval", "100ms"])
        .output();
    let top = top.map_err(|error| error.to_string())?;
    println!("{}", both(&top));
    if !top.status.success() || both(&top).matches("strong-edf for ").count() != 2 {
        return Err(format!("top ended by {}", top.status));
    }
    Ok(())
}

/// The daemon is killed and restarted: programs continue meanwhile, and have their reservations afterwards. They also continue
/// after a regular stop.
pub fn reservations_survive_restart_of_daemon() -> Result<(), String> {
    let mut daemon = Daemon::start("")?;
    let one = daemon.admit("--cost 2ms --period 10ms --cpus 1-2", "naps 300 5000")?;
    let other = daemon.admit(
        "--cost 3ms --period 20ms --on-overrun continue",
        "naps 300 5000",
    )?;
    let short = daemon.admit("--cost 1ms --period 20ms", "naps 300 5000")?;
    let before = daemon.status()?["tasks"].clone();
    daemon.end(Signal::KILL)?;
    wait_for_state("disabled")?;
    goes_on(one, 3)?;
    daemon.end_program(short)?;
    daemon.begin()?;
    let after = daemon.status()?["tasks"].clone();
    let of = |tasks: &Value, id: u32| {
        let all = tasks.as_array().cloned().unwrap_or_default();
        let mut found = all.into_iter().filter(move |task| task["process"] == id);
        found.next().unwrap_or_default()
    };
    for id in [one, other] {
        for key in [
            "name",
            "thread",
            "cost_ns",
            "period_ns",
            "deadline_ns",
            "cpus",
            "state",
            "guarantee",
        ] {
            if of(&before, id)[key] != of(&after, id)[key] {
                return Err(format!(
                    "{key} of {id}: {} and {}",
                    of(&before, id),
                    of(&after, id)
                ));
            }
        }
        goes_on(id, 3)?;
    }
    if after.as_array().map(Vec::len) != Some(2) {
        return Err(format!("there are {after:#}"));
    }
    let code = daemon.end(Signal::TERM)?;
    wait_for_state("disabled")?;
    goes_on(one, 3)?;
    match code {
        Some(0) => Ok(()),
        other => Err(format!("it ended by {other:?}: {}", daemon.log())),
    }
}

/// Sets the affinity of a program.
fn bind(id: u32, cpus: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    let number = i32::try_from(id).ok().and_then(Pid::from_raw);
    sched_setaffinity(number, &set).map_err(|error| error.to_string())
}

/// A thread that requests CPUs of which the daemon schedules only some keeps its reservation on those, and stays there.
pub fn requested_affinity_is_limited_to_cpus_of_daemon() -> Result<(), String> {
    let mut daemon = Daemon::start("")?;
    let id = daemon.admit("--cost 2ms --period 10ms --cpus 1", "naps 300 5000")?;
    let is_there = |daemon: &Daemon| {
        let task = daemon.status()?["tasks"][0].clone();
        let fits = task["cpus"] == "2,3" && task["state"] == "admitted";
        match fits && task["process"] == id {
            true => Ok(()),
            false => Err(format!("{task}\n{}", daemon.log())),
        }
    };
    bind(id, &[0, 2, 3])?;
    wait_for("the task to move", || is_there(&daemon).ok())?;
    // The event of the daemon's own change of affinity must change nothing.
    std::thread::sleep(Duration::from_millis(500));
    is_there(&daemon)
}

/// A task that has lost its reservation, because its CPU went offline or because its thread requested one that it cannot have,
/// waits for it. If the thread ends the task is removed, although the kernel reports no event.
pub fn waiting_task_is_removed_when_thread_ends() -> Result<(), String> {
    let mut daemon = Daemon::start("")?;
    let there = daemon.admit("--cost 2ms --period 10ms --cpus 1", "naps 300 5000")?;
    let elsewhere = daemon.admit("--cost 2ms --period 10ms --cpus 2", "naps 300 5000")?;
    let _offline = Offline::take(1)?;
    // The daemon does not schedule this CPU.
    bind(elsewhere, &[0])?;
    wait_for("both to wait", || {
        let tasks = daemon.status().ok()?["tasks"].clone();
        let tasks = tasks.as_array()?;
        let wait = tasks.iter().filter(|task| task["state"] != "admitted");
        (wait.count() == 2).then_some(())
    })?;
    for id in [there, elsewhere] {
        daemon.end_program(id)?;
    }
    wait_for("no task to wait", || {
        daemon.tasks().ok()?.is_empty().then_some(())
    })
}

/// Checks that each thread of the daemon has exactly the capabilities that it needs.
fn has_given_up_privileges(daemon: &Daemon) -> Result<(), String> {
    /// CAP_BPF: all that the thread for timers needs, where the kernel has none for BPF (`PREEMPT_RT`).
    const TIMERS: u64 = 1 << 39;
    /// CAP_KILL, CAP_IPC_LOCK, CAP_SYS_NICE and CAP_BPF.
    const KEPT: u64 = 1 << 5 | 1 << 14 | 1 << 23 | TIMERS;
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.id()?));
    let mut seen = 0;
    for thread in threads.map_err(|error| error.to_string())? {
        let path = thread.map_err(|error| error.to_string())?.path();
        let status = fs::read_to_string(path.join("status")).map_err(|error| error.to_string())?;
        let field = |name: &str| {
            let mut lines = status.lines();
            lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
        };
        let capabilities = ["CapEff:", "CapPrm:", "CapInh:"].map(|name| {
            let digits = field(name).unwrap_or_default();
            u64::from_str_radix(&digits, 16).ok()
        });
        let is_for_timers = field("Name:").as_deref() == Some("ticker");
        let kept = if is_for_timers { TIMERS } else { KEPT };
        // A thread that was there before others were forbidden to gain any has no program to execute.
        let is_bound = is_for_timers || field("NoNewPrivs:").as_deref() == Some("1");
        if capabilities != [Some(kept), Some(kept), Some(0)] || !is_bound {
            return Err(format!("{}: {status}", path.display()));
        }
        seen += 1;
    }
    match seen {
        0 | 1 => Err("the daemon's threads were not found".to_owned()),
        _ => Ok(()),
    }
}

/// Members of the group may reserve for their own threads only; other users may not connect.
pub fn only_group_may_connect_and_only_reserve_for_own_threads() -> Result<(), String> {
    fs::create_dir_all("/etc").map_err(|error| error.to_string())?;
    fs::write("/etc/group", "root:x:0:\nnogroup:x:65534:\n").map_err(|error| error.to_string())?;
    let mut daemon = Daemon::start("group = \"nogroup\"\n[limits.user]\ntasks = 1")?;
    has_given_up_privileges(&daemon)?;
    let program_of_root = daemon.admit("--cost 1ms --period 10ms", "naps 300 5000")?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let ask = |group: u32, words: &[&str]| {
        let mut command = daemon.command("exec");
        command
            .uid(UNPRIVILEGED)
            .gid(group)
            .args(["--cost", "1ms", "--period", "10ms"]);
        let output = command
            .args(words)
            .output()
            .map_err(|error| error.to_string())?;
        println!("{}", both(&output));
        Ok::<_, String>((output.status.code(), both(&output)))
    };
    let expect = |what: &str, got: (Option<i32>, String), code: i32, words: &str| match got {
        (Some(status), text) if status == code && text.contains(words) => Ok(()),
        other => Err(format!(
            "{what}: wanted {code} and `{words}`, got {other:?}"
        )),
    };
    let number = program_of_root.to_string();
    expect(
        "a user outside the group",
        ask(1, &["--pid", &number])?,
        3,
        "nogroup",
    )?;
    expect(
        "a thread of another user",
        ask(UNPRIVILEGED, &["--pid", &number])?,
        2,
        "does not belong to user 65534",
    )?;
    expect(
        "a thread that does not exist",
        ask(UNPRIVILEGED, &["--pid", "4194304"])?,
        2,
        "there is no thread 4194304",
    )?;
    let own = own.to_string_lossy();
    let part = ["--", &own, "--act", "quits", "100"];
    expect("an own program", ask(UNPRIVILEGED, &part)?, 7, "")?;
    let program = own.to_string();
    let mut first = daemon.command("exec");
    first
        .uid(UNPRIVILEGED)
        .gid(UNPRIVILEGED)
        .args(["--cost", "1ms", "--period", "10ms", "--", &program]);
    let mut first = first
        .args(["--act", "naps", "300", "5000"])
        .spawn()
        .map_err(|error| error.to_string())?;
    let id = first.id();
    let second = wait_for("the program to be a task", || {
        daemon.tasks().ok()?.contains(&id).then_some(())
    })
    .and_then(|()| ask(UNPRIVILEGED, &part));
    let _ = first.kill();
    let _ = first.wait();
    expect(
        "one too many",
        second?,
        1,
        "has 1 tasks, which is the maximum",
    )
}

/// A running program with unknown cost is measured and admitted with the proposed reservation; it then misses no deadline.
pub fn program_with_measured_reservation_misses_no_deadline() -> Result<(), String> {
    /// CPU time, which is also real time here: the emulator executes its CPUs in turn, so the measured cost of a job includes
    /// execution on the other CPUs.
    const COST_US: u64 = 4_000;
    const PERIOD_US: u64 = 20_000;
    let daemon = Daemon::start("")?;
    let actor = crate::faults::Actor::start(&format!("beats {COST_US} {PERIOD_US}"))?;
    let id = actor.id().to_string();
    let watching = daemon
        .command("exec")
        .args(["--measure", "--json", "--pid", &id])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    std::thread::sleep(Duration::from_secs(1));
    kill(watching.id(), Signal::INT)?;
    let output = watching
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let seen: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", both(&output)))?;
    let seen = &seen["threads"][0];
    let proposed = |key: &str| seen["proposed"][key].as_u64().unwrap_or(0) / 1_000;
    let (cost, period) = (proposed("cost_ns"), proposed("period_ns"));
    let is_near = (COST_US..3 * COST_US).contains(&cost)
        && (PERIOD_US - PERIOD_US / 10..=PERIOD_US).contains(&period)
        && seen["jobs"].as_u64() > Some(20);
    if !is_near || !output.status.success() {
        return Err(format!("{}: {seen}", output.status));
    }
    let asked = daemon
        .command("exec")
        .args([
            "--cost",
            &format!("{cost}us"),
            "--period",
            &format!("{period}us"),
        ])
        .args(["--pid", &id])
        .output()
        .map_err(|error| error.to_string())?;
    if !asked.status.success() {
        return Err(both(&asked));
    }
    // No calls are made meanwhile.
    std::thread::sleep(Duration::from_micros(40 * PERIOD_US));
    let task = daemon.status()?["tasks"][0].clone();
    match task["misses"] == 0 && task["jobs"].as_u64() > Some(30) {
        true => Ok(()),
        false => Err(task.to_string()),
    }
}

/// The daemon schedules all CPUs, programs have reserved and use nearly all of two, and ordinary work keeps the others busy:
/// the daemon still answers.
pub fn daemon_answers_on_busy_machine() -> Result<(), String> {
    let mut daemon = Daemon::start_on("0-3", "record-seconds = 0")?;
    let mut programs = Vec::new();
    for cpu in 2..4 {
        let nearly_all = format!("--cost 90ms --period 100ms --cpus {cpu}");
        programs.push(daemon.admit(&nearly_all, "hog")?);
    }
    // Its own share counts in admission.
    let status = daemon.status()?;
    let rooms = status["rooms"].as_array().cloned().unwrap_or_default();
    let all = rooms.iter().find(|room| room["cpus"] == "0-3");
    let reserved = all.and_then(|room| room["reserved"].as_f64());
    if !reserved.is_some_and(|share| (1.79..1.81).contains(&share)) {
        return Err(format!("{rooms:?}"));
    }
    // One for each remaining CPU.
    let hogs = [(); 2].map(|()| crate::faults::Actor::start("hog 0 1 2 3"));
    for _ in 0..5 {
        crate::hostile::well_behaved(&daemon)?;
    }
    for hog in hogs {
        goes_on(hog?.id(), 3)?;
    }
    programs.into_iter().try_for_each(|id| goes_on(id, 3))
}

/// The configuration is reloaded: keys that may change take effect, others are refused, and no task loses its reservation.
pub fn reload_keeps_all_reservations() -> Result<(), String> {
    let mut daemon = Daemon::start("")?;
    let program = daemon.admit("--cost 2ms --period 10ms --cpus 1-2", "naps 300 5000")?;
    let before = daemon.status()?["tasks"][0].clone();
    let reload = |daemon: &Daemon, config: &str, says: &str| {
        let config = format!("cpus = \"1-3\"\n{config}");
        fs::write(daemon.at("daemon.toml"), config).map_err(|error| error.to_string())?;
        kill(daemon.id()?, Signal::HUP)?;
        wait_for(says, || daemon.log().contains(says).then_some(()))
    };
    let reserve = |daemon: &Daemon| Ok::<_, String>(daemon.status()?["cpus"][0]["reserve"].clone());
    reload(&daemon, "reserve = 0.2", "configuration reloaded")?;
    let narrower = reserve(&daemon)?;
    reload(&daemon, "reserve = 0.95", "configuration unchanged: ")?;
    reload(&daemon, "policy = \"hpa-edf\"", "change only at a restart")?;
    reload(&daemon, "reserve = [", "daemon.toml: ")?;
    let (after, kept) = (daemon.status()?["tasks"][0].clone(), reserve(&daemon)?);
    if narrower != 0.2 || kept != 0.2 {
        return Err(format!("reserves {narrower} and {kept}"));
    }
    for key in ["task", "process", "cost_ns", "cpus", "state", "guarantee"] {
        if before[key] != after[key] {
            return Err(format!("{key}: {before} and {after}"));
        }
    }
    if after["jobs"].as_u64() < before["jobs"].as_u64() {
        return Err(format!("its statistics were reset: {before} and {after}"));
    }
    goes_on(program, 3)
}
