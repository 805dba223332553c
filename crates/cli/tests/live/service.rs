//! The agent as people use it: `shiftwork agent`, `exec` and `status`, and programs that come and go.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use tempfile::TempDir;

use crate::faults::{Offline, goes_on, wait_for, wait_for_state};

/// A user without privileges, and the group of that name.
const NOBODY: u32 = 65_534;

/// An agent at work on the CPUs 1 to 3, and the programs that it was asked for.
pub struct Agent {
    child: Option<Child>,
    folder: TempDir,
    programs: Vec<Child>,
}

impl Agent {
    /// Starts one with these lines in its configuration.
    pub fn start(config: &str) -> Result<Self, String> {
        Self::start_on("1-3", config)
    }

    /// The same on other CPUs.
    fn start_on(cpus: &str, config: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        // Everybody may look for the socket.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).map_err(|error| error.to_string())?;
        let mut agent = Self {
            child: None,
            folder,
            programs: Vec::new(),
        };
        let config = format!("cpus = \"{cpus}\"\n{config}");
        fs::write(agent.at("agent.toml"), config).map_err(|error| error.to_string())?;
        agent.begin()?;
        Ok(agent)
    }

    /// Starts it, once more if it was ended.
    pub fn begin(&mut self) -> Result<(), String> {
        let said = File::create(self.at("said")).map_err(|error| error.to_string())?;
        let child = Command::new("shiftwork")
            .arg("daemon")
            .arg("--config")
            .arg(self.at("agent.toml"))
            .arg("--socket")
            .arg(self.at("socket"))
            .arg("--state")
            .arg(self.at("state.json"))
            .stdin(Stdio::null())
            .stderr(said)
            .spawn();
        self.child = Some(child.map_err(|error| error.to_string())?);
        let begun = wait_for("the agent to answer", || {
            let child = self.child.as_mut()?;
            match child.try_wait().ok()? {
                Some(status) => Some(Err(format!("it ended at once by {status}"))),
                None => self.status().ok().map(|_| Ok(())),
            }
        });
        begun
            .and_then(|begun| begun)
            .map_err(|why| format!("{why}; {}", self.said()))
    }

    /// Its process.
    pub fn id(&self) -> Result<u32, String> {
        self.child
            .as_ref()
            .map(Child::id)
            .ok_or_else(|| "there is no agent".to_owned())
    }

    /// A file in its folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it wrote to stderr so far.
    pub fn said(&self) -> String {
        fs::read_to_string(self.at("said")).unwrap_or_default()
    }

    /// The command, which finds this agent.
    pub fn command(&self, verb: &str) -> Command {
        let mut command = Command::new("shiftwork");
        command
            .arg(verb)
            .env("SHIFTWORK_SOCKET", self.at("socket"))
            .stdin(Stdio::null());
        command
    }

    /// What `status` says.
    pub fn status(&self) -> Result<Value, String> {
        let output = self.command("status").arg("--json").output();
        let output = output.map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{error}: {}", both(&output)))
    }

    /// Runs a program that plays this part, with this reservation.
    pub fn exec(&mut self, reservation: &str, part: &str) -> Result<u32, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = self.command("exec");
        command.args(reservation.split(' ')).arg("--").arg(own);
        let child = command.arg("--act").args(part.split(' ')).spawn();
        let child = child.map_err(|error| error.to_string())?;
        let id = child.id();
        self.programs.push(child);
        Ok(id)
    }

    /// The same, of which is waited that it is among the tasks.
    pub fn admit(&mut self, reservation: &str, part: &str) -> Result<u32, String> {
        let id = self.exec(reservation, part)?;
        wait_for("the program to be a task", || {
            self.tasks().ok()?.contains(&id).then_some(())
        })?;
        Ok(id)
    }

    /// The processes of all tasks.
    pub fn tasks(&self) -> Result<Vec<u32>, String> {
        let status = self.status()?;
        let tasks = status["tasks"].as_array().ok_or("there are no tasks")?;
        let process = |task: &Value| task["process"].as_u64().map(|number| number as u32);
        Ok(tasks.iter().filter_map(process).collect())
    }

    pub fn end(&mut self, signal: Signal) -> Result<Option<i32>, String> {
        let Some(mut child) = self.child.take() else {
            return Err("there is no agent".to_owned());
        };
        kill(child.id(), signal)?;
        let status = child.wait().map_err(|error| error.to_string())?;
        Ok(status.code())
    }

    /// Ends this program, and waits for it.
    pub fn end_program(&mut self, id: u32) -> Result<(), String> {
        kill(id, Signal::KILL)?;
        let of_id = self.programs.iter_mut().find(|child| child.id() == id);
        let child = of_id.ok_or("it is none of ours")?;
        child.wait().map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        for child in self.programs.iter_mut().chain(&mut self.child) {
            // Who is over already need not be ended.
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

/// Programs are admitted until one is refused with the sum that does not fit; all of them run, also with others
/// that would have the CPUs; who ends makes room.
pub fn programs_are_admitted_until_there_is_no_room() -> Result<(), String> {
    const FIFTH: &str = "--cost 2ms --period 10ms --cpus 1";
    let mut agent = Agent::start("")?;
    let mut admitted = Vec::new();
    for _ in 0..4 {
        admitted.push(agent.admit(FIFTH, "naps 300 5000")?);
    }
    let mut hogs = Vec::new();
    for _ in 0..4 {
        hogs.push(crate::faults::Actor::start("hog 1 2 3")?);
    }
    let mut fifth = agent.command("exec");
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
        let status = agent.status().ok()?;
        let tasks = status["tasks"].as_array()?;
        tasks
            .iter()
            .all(|task| task["jobs"].as_u64() > Some(3))
            .then_some(())
    })?;
    agent.end_program(admitted[0])?;
    wait_for("its task to be gone", || {
        (!agent.tasks().ok()?.contains(&admitted[0])).then_some(())
    })?;
    // What it had is free a period later.
    std::thread::sleep(std::time::Duration::from_millis(20));
    agent.admit(FIFTH, "naps 300 5000")?;
    let top = agent
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

/// The agent is killed and started again: programs go on meanwhile, and have their reservations afterwards. When it is
/// ended as it should be, they go on, too.
pub fn reservations_outlive_the_agent() -> Result<(), String> {
    let mut agent = Agent::start("")?;
    let one = agent.admit("--cost 2ms --period 10ms --cpus 1-2", "naps 300 5000")?;
    let other = agent.admit(
        "--cost 3ms --period 20ms --on-overrun continue",
        "naps 300 5000",
    )?;
    let short = agent.admit("--cost 1ms --period 20ms", "naps 300 5000")?;
    let before = agent.status()?["tasks"].clone();
    agent.end(Signal::KILL)?;
    wait_for_state("disabled")?;
    goes_on(one, 3)?;
    agent.end_program(short)?;
    agent.begin()?;
    let after = agent.status()?["tasks"].clone();
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
    let code = agent.end(Signal::TERM)?;
    wait_for_state("disabled")?;
    goes_on(one, 3)?;
    match code {
        Some(0) => Ok(()),
        other => Err(format!("it ended by {other:?}: {}", agent.said())),
    }
}

/// The program may use these CPUs from now on.
fn bind(id: u32, cpus: &[usize]) -> Result<(), String> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu));
    let number = i32::try_from(id).ok().and_then(Pid::from_raw);
    sched_setaffinity(number, &set).map_err(|error| error.to_string())
}

/// Who asks for more CPUs than the agent has keeps its reservation on those that are the agent's, and stays there.
pub fn who_asks_for_too_many_cpus_has_some() -> Result<(), String> {
    let mut agent = Agent::start("")?;
    let id = agent.admit("--cost 2ms --period 10ms --cpus 1", "naps 300 5000")?;
    let is_there = |agent: &Agent| {
        let task = agent.status()?["tasks"][0].clone();
        let fits = task["cpus"] == "2,3" && task["state"] == "admitted";
        match fits && task["process"] == id {
            true => Ok(()),
            false => Err(format!("{task}\n{}", agent.said())),
        }
    };
    bind(id, &[0, 2, 3])?;
    wait_for("the task to move", || is_there(&agent).ok())?;
    // What the agent did for that was told as well, which is nothing new.
    std::thread::sleep(Duration::from_millis(500));
    is_there(&agent)
}

/// Who has lost its reservation, since its CPU went or since it asked for one that it cannot have, waits to have it again, or
/// ends: then nobody waits any more, although the kernel told of nothing.
pub fn who_waits_and_ends_is_forgotten() -> Result<(), String> {
    let mut agent = Agent::start("")?;
    let there = agent.admit("--cost 2ms --period 10ms --cpus 1", "naps 300 5000")?;
    let elsewhere = agent.admit("--cost 2ms --period 10ms --cpus 2", "naps 300 5000")?;
    let _offline = Offline::take(1)?;
    // That is none of the agent's.
    bind(elsewhere, &[0])?;
    wait_for("both to wait", || {
        let tasks = agent.status().ok()?["tasks"].clone();
        let tasks = tasks.as_array()?;
        let wait = tasks.iter().filter(|task| task["state"] != "admitted");
        (wait.count() == 2).then_some(())
    })?;
    for id in [there, elsewhere] {
        agent.end_program(id)?;
    }
    wait_for("nobody to wait", || {
        agent.tasks().ok()?.is_empty().then_some(())
    })
}

/// Whether all threads of the agent may do what its work takes, and no more.
fn has_given_up_privileges(agent: &Agent) -> Result<(), String> {
    /// CAP_KILL, CAP_IPC_LOCK, CAP_SYS_NICE and CAP_BPF.
    const KEPT: u64 = 1 << 5 | 1 << 14 | 1 << 23 | 1 << 39;
    let threads = fs::read_dir(format!("/proc/{}/task", agent.id()?));
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
        let is_bound = field("NoNewPrivs:").as_deref() == Some("1");
        if capabilities != [Some(KEPT), Some(KEPT), Some(0)] || !is_bound {
            return Err(format!("{}: {status}", path.display()));
        }
        seen += 1;
    }
    match seen {
        0 | 1 => Err("the agent's threads are not to be found".to_owned()),
        _ => Ok(()),
    }
}

/// Members of the group may ask for their own threads and no others, everybody else may not ask.
pub fn only_the_group_may_ask_and_only_for_its_own() -> Result<(), String> {
    fs::create_dir_all("/etc").map_err(|error| error.to_string())?;
    fs::write("/etc/group", "root:x:0:\nnogroup:x:65534:\n").map_err(|error| error.to_string())?;
    let mut agent = Agent::start("group = \"nogroup\"\n[limits.user]\ntasks = 1")?;
    has_given_up_privileges(&agent)?;
    let roots = agent.admit("--cost 1ms --period 10ms", "naps 300 5000")?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let ask = |group: u32, words: &[&str]| {
        let mut command = agent.command("exec");
        command
            .uid(NOBODY)
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
    let number = roots.to_string();
    expect("a stranger", ask(1, &["--pid", &number])?, 3, "nogroup")?;
    expect(
        "another's thread",
        ask(NOBODY, &["--pid", &number])?,
        2,
        "does not belong to user 65534",
    )?;
    expect(
        "nobody's thread",
        ask(NOBODY, &["--pid", "4194304"])?,
        2,
        "there is no thread 4194304",
    )?;
    let own = own.to_string_lossy();
    let part = ["--", &own, "--act", "quits", "100"];
    expect("an own program", ask(NOBODY, &part)?, 7, "")?;
    let nobody = own.to_string();
    let mut first = agent.command("exec");
    first
        .uid(NOBODY)
        .gid(NOBODY)
        .args(["--cost", "1ms", "--period", "10ms", "--", &nobody]);
    let mut first = first
        .args(["--act", "naps", "300", "5000"])
        .spawn()
        .map_err(|error| error.to_string())?;
    let id = first.id();
    let second = wait_for("the program to be a task", || {
        agent.tasks().ok()?.contains(&id).then_some(())
    })
    .and_then(|()| ask(NOBODY, &part));
    let _ = first.kill();
    let _ = first.wait();
    expect(
        "one too many",
        second?,
        1,
        "has 1 tasks, which is the maximum",
    )
}

/// A program of which nobody knows the cost is watched while it runs; it is admitted with what was proposed, and then
/// misses nothing.
pub fn what_a_program_needs_is_measured() -> Result<(), String> {
    /// Of processor time and of real time. The CPUs of the emulator take turns: what a job takes grows by what the others do
    /// meanwhile.
    const COST_US: u64 = 4_000;
    const PERIOD_US: u64 = 20_000;
    let agent = Agent::start("")?;
    let actor = crate::faults::Actor::start(&format!("beats {COST_US} {PERIOD_US}"))?;
    let id = actor.id().to_string();
    let watching = agent
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
    let proposed = |key: &str| seen["proposed"][key].as_u64().unwrap_or(0) / 1_000;
    let (cost, period) = (proposed("cost_ns"), proposed("period_ns"));
    let is_near = (COST_US..3 * COST_US).contains(&cost)
        && (PERIOD_US - PERIOD_US / 10..=PERIOD_US).contains(&period)
        && seen["jobs"].as_u64() > Some(20);
    if !is_near || !output.status.success() {
        return Err(format!("{}: {seen}", output.status));
    }
    let asked = agent
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
    // Nobody asks meanwhile.
    std::thread::sleep(Duration::from_micros(40 * PERIOD_US));
    let task = agent.status()?["tasks"][0].clone();
    match task["misses"] == 0 && task["jobs"].as_u64() > Some(30) {
        true => Ok(()),
        false => Err(task.to_string()),
    }
}

/// All CPUs are the agent's, programs have reserved nearly all of them and use it, and ordinary work would have the
/// rest: it answers nevertheless.
pub fn it_answers_however_busy_the_machine_is() -> Result<(), String> {
    let mut agent = Agent::start_on("0-3", "record-seconds = 0")?;
    let mut programs = Vec::new();
    for cpu in 2..4 {
        let nearly_all = format!("--cost 90ms --period 100ms --cpus {cpu}");
        programs.push(agent.admit(&nearly_all, "hog")?);
    }
    // Its own share is counted: of what is left there is less by that.
    let status = agent.status()?;
    let rooms = status["rooms"].as_array().cloned().unwrap_or_default();
    let all = rooms.iter().find(|room| room["cpus"] == "0-3");
    let reserved = all.and_then(|room| room["reserved"].as_f64());
    if !reserved.is_some_and(|share| (1.79..1.81).contains(&share)) {
        return Err(format!("{rooms:?}"));
    }
    // One for each CPU that is left.
    let hogs = [(); 2].map(|()| crate::faults::Actor::start("hog 0 1 2 3"));
    for _ in 0..5 {
        crate::hostile::well_behaved(&agent)?;
    }
    for hog in hogs {
        goes_on(hog?.id(), 3)?;
    }
    programs.into_iter().try_for_each(|id| goes_on(id, 3))
}

/// The configuration is read again: what may change changes, what may not is told, and nobody loses anything.
pub fn a_reload_drops_nobody() -> Result<(), String> {
    let mut agent = Agent::start("")?;
    let program = agent.admit("--cost 2ms --period 10ms --cpus 1-2", "naps 300 5000")?;
    let before = agent.status()?["tasks"][0].clone();
    let reload = |agent: &Agent, config: &str, says: &str| {
        let config = format!("cpus = \"1-3\"\n{config}");
        fs::write(agent.at("agent.toml"), config).map_err(|error| error.to_string())?;
        kill(agent.id()?, Signal::HUP)?;
        wait_for(says, || agent.said().contains(says).then_some(()))
    };
    let reserve = |agent: &Agent| Ok::<_, String>(agent.status()?["cpus"][0]["reserve"].clone());
    reload(&agent, "reserve = 0.2", "configuration reloaded")?;
    let narrower = reserve(&agent)?;
    reload(&agent, "reserve = 0.95", "configuration unchanged: ")?;
    reload(&agent, "policy = \"hpa-edf\"", "change only at a restart")?;
    reload(&agent, "reserve = [", "agent.toml: ")?;
    let (after, kept) = (agent.status()?["tasks"][0].clone(), reserve(&agent)?);
    if narrower != 0.2 || kept != 0.2 {
        return Err(format!("reserves {narrower} and {kept}"));
    }
    for key in ["task", "process", "cost_ns", "cpus", "state", "guarantee"] {
        if before[key] != after[key] {
            return Err(format!("{key}: {before} and {after}"));
        }
    }
    if after["jobs"].as_u64() < before["jobs"].as_u64() {
        return Err(format!("its account began anew: {before} and {after}"));
    }
    goes_on(program, 3)
}
