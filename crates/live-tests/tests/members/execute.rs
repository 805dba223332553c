//! Executes steps, and keeps what the judge needs of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::process::Signal;
use shiftwork_client::{Client, OnOverrun, Reservation};

use super::draw::Step;
use super::judge::{Longest, Quota};
use super::process::{Process, write_users};
use super::victim::Victim;
use super::{BERT, ENDED_PPM, FOLDERS, MEMBERS, SET_USER_ID, SHARE_PPM};
use crate::faults::wait_for;
use crate::hostile::{taken, well_behaved};
use crate::kernel::is_realtime;
use crate::service::{Daemon, kill};
use crate::standing::excess::timed;

/// Threads that a member has at most: the machine is emulated.
const THREADS_MAX: usize = 24;
/// With fewer tasks at a time nothing was tried.
const TASKS_MIN: usize = 5;
/// The daemon ends the reservation of a thread that has changed its user within two seconds.
const NOTICED: Duration = Duration::from_millis(2_500);
/// For x86-64: `pause` and a jump back, for ever, in the only segment.
const PROGRAM: [u8; 4] = [0xF3, 0x90, 0xEB, 0xFC];

pub struct World {
    pub daemon: Daemon,
    pub victims: Vec<Victim>,
    pub quota: Quota,
    pub longest: Longest,
    /// Reserved threads at a time, with those of the victims.
    pub most_tasks: usize,
    members: Vec<Process>,
    /// The descriptors of the daemon before there were members.
    descriptors: usize,
    /// How often each kind of step was done, and refused.
    counts: BTreeMap<&'static str, [u32; 2]>,
}

/// The thread of the daemon that is the scheduler's timer may run on no CPU of tasks, which are 1 to 3.
fn timer_keeps_off(daemon: u32) -> Result<(), String> {
    let threads =
        fs::read_dir(format!("/proc/{daemon}/task")).map_err(|error| error.to_string())?;
    let status = |it: fs::DirEntry| fs::read_to_string(it.path().join("status")).ok();
    let mut all = threads.flatten().filter_map(status);
    let timer = all.find(|status| status.starts_with("Name:\tticker\n"));
    let timer = timer.ok_or("the daemon has no thread for timers")?;
    let cpus = timer
        .lines()
        .find(|it| it.starts_with("Cpus_allowed_list:"));
    match cpus {
        Some("Cpus_allowed_list:\t0") => Ok(()),
        _ => Err(format!("the thread for timers: {cpus:?}")),
    }
}

impl World {
    pub fn new(seed: u64) -> Result<Self, String> {
        write_users()?;
        prepare_folders()?;
        // Both give hard guarantees.
        let policy = ["strong-edf", "strong-fp"][seed as usize % 2];
        let [share, ended] = [SHARE_PPM, ENDED_PPM].map(|it| it as f64 / 1e6);
        let mut daemon = Daemon::start(&format!(
            "group = \"members\"\npolicy = \"{policy}\"\nguarantee = \"hard\"\nrecord-seconds = 0\n\
             [limits.user]\ntasks = 8\nshare = {share}\nended-tasks = 6\nended-share = {ended}\n\
             [limits.cgroup]\ntasks = 100\nshare = 3.0\n\
             [requests.users.{BERT}]\nperiod-max = \"10s\"\non-overrun = [\"throttle\", \"continue\", \"signal\"]"
        ))?;
        if is_realtime()? {
            timer_keeps_off(daemon.id()?)?;
        }
        // Budgets above a millisecond: in the emulator time passes on a CPU while others are executed. With `PREEMPT_RT` a thread that
        // holds a lock of the kernel runs by the budget of the one that waits for it.
        let locks_us = if is_realtime()? { 400 } else { 0 };
        let victims = vec![
            Victim::start(&mut daemon, [500, 1_500 + locks_us, 5_000], "1")?,
            Victim::start(&mut daemon, [1_000, 2_000, 20_000], "1-3")?,
        ];
        let descriptors = taken(daemon.id()?)?.descriptors;
        let members = (0..MEMBERS.len()).map(|index| Process::start(&daemon, index));
        let members = members.collect::<Result<_, _>>()?;
        Ok(Self {
            daemon,
            victims,
            quota: Quota::default(),
            longest: Longest::default(),
            most_tasks: 0,
            members,
            descriptors,
            counts: BTreeMap::new(),
        })
    }

    pub fn log(&self) -> String {
        let log = self.daemon.log();
        let lines: Vec<&str> = log
            .lines()
            .filter(|line| !line.contains("audit: "))
            .collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Executes the step; returns what came of it.
    pub fn execute(&mut self, member: usize, step: &Step) -> Result<String, String> {
        let done = match step {
            Step::Start(work) => self.start(member, &format!("start {work}")),
            Step::Crowd(count, cpus) => self.start(member, &format!("crowd {count} {cpus}")),
            Step::Admit(thread, wanted) => self.admit(member, *thread, wanted),
            Step::Loop(thread, times, wanted) => {
                self.admit_in_loop(member, *thread, *times, wanted)
            }
            Step::Change(task, wanted) => self.change(member, *task, wanted),
            Step::Dismiss(task) => self.dismiss(member, *task),
            Step::Bind(thread, cpus) => {
                let thread = self.thread(member, *thread);
                self.members[member].order(&format!("bind {thread} {cpus}"))
            }
            Step::Statuses(connections, times) => {
                self.members[member].order(&format!("statuses {connections} {times}"))
            }
            // The outsider cannot connect, which ends that part.
            Step::Malformed(_) if member + 1 == MEMBERS.len() => Ok(Err("outside".to_owned())),
            Step::Malformed(count) => {
                self.members[member].order(&format!("malformed {count} {count}"))
            }
            Step::SetUserId(wanted) => self.set_user_id(member, wanted),
            Step::Trespass(wanted) => self.trespass(member, wanted),
            Step::Move(to) => self.move_to_group(member, *to),
            Step::Kill => self.kill(member),
        }?;
        let name = format!("{step:?}");
        let name = NAMES
            .iter()
            .find(|it| name.starts_with(**it))
            .unwrap_or(&"");
        self.counts.entry(name).or_default()[usize::from(done.is_err())] += 1;
        Ok(format!("{done:?}"))
    }

    fn start(&mut self, member: usize, order: &str) -> Answer {
        let process = &mut self.members[member];
        if process.threads.len() > THREADS_MAX {
            return Ok(Err("enough".to_owned()));
        }
        let answer = process.order(order)?;
        if let Ok(threads) = &answer {
            let numbers = threads.split(' ').filter_map(|it| it.parse::<u32>().ok());
            process.threads.extend(numbers);
        }
        Ok(answer)
    }

    /// One of its threads; 0 if it has none.
    fn thread(&self, member: usize, number: u64) -> u32 {
        let threads = &self.members[member].threads;
        let at = number as usize % threads.len().max(1);
        threads.get(at).copied().unwrap_or(0)
    }

    /// One of its tasks, by root's status.
    fn task(&self, member: usize, number: u64) -> Result<u32, String> {
        let status = well_behaved(&self.daemon)?;
        let own = self.members[member].id();
        let of = status.tasks.iter().filter(|task| task.process == own);
        let tasks: Vec<u32> = of.map(|task| task.task).collect();
        let at = number as usize % tasks.len().max(1);
        Ok(tasks.get(at).copied().unwrap_or(0))
    }

    fn admit(&mut self, member: usize, thread: u64, wanted: &Reservation) -> Answer {
        let thread = self.thread(member, thread);
        let text = json(wanted)?;
        self.members[member].order(&format!("admit {thread} {text}"))
    }

    fn admit_in_loop(
        &mut self,
        member: usize,
        thread: u64,
        times: u64,
        wanted: &Reservation,
    ) -> Answer {
        let thread = self.thread(member, thread);
        let order = format!("loop {thread} {times} {}", json(wanted)?);
        let process = &mut self.members[member];
        let (answer, took) = timed(|| process.order(&order));
        let answer = answer?;
        if let Ok(admitted) = &answer {
            let admitted = admitted.parse().unwrap_or(0);
            self.quota
                .judge_loop(MEMBERS[member].1, admitted, wanted, took)?;
        }
        Ok(answer)
    }

    fn change(&mut self, member: usize, number: u64, wanted: &Reservation) -> Answer {
        let task = self.task(member, number)?;
        self.members[member].order(&format!("change {task} {}", json(wanted)?))
    }

    fn dismiss(&mut self, member: usize, number: u64) -> Answer {
        let task = self.task(member, number)?;
        let status = well_behaved(&self.daemon)?;
        let answer = self.members[member].order(&format!("dismiss {task}"))?;
        let found = status.tasks.iter().find(|it| it.task == task);
        if let (Ok(_), Some(found)) = (&answer, found) {
            self.quota.note_end(MEMBERS[member].1, &found.reservation);
        }
        Ok(answer)
    }

    /// Its reservation is gone soon after, and the former user cannot change it meanwhile.
    fn set_user_id(&mut self, member: usize, wanted: &Reservation) -> Answer {
        // A program that is executed handles no signal: one for an overrun would end it.
        let on_overrun = match wanted.on_overrun {
            Some(OnOverrun::Signal) => Some(OnOverrun::Continue),
            other => other,
        };
        let wanted = Reservation {
            on_overrun,
            ..wanted.clone()
        };
        let answer = self.members[member].order(&format!("set-uid {}", json(&wanted)?))?;
        let Ok(text) = &answer else {
            return Ok(answer);
        };
        let numbers: Vec<u32> = text.split(' ').filter_map(|it| it.parse().ok()).collect();
        let Some(&id) = numbers.first() else {
            return Err(format!("no process in {text}"));
        };
        let done = self.set_user_id_of(member, id, numbers.get(1).copied());
        kill(id, Signal::KILL)?;
        done?;
        Ok(match numbers.get(1) {
            Some(_) => answer,
            None => Err("not admitted".to_owned()),
        })
    }

    fn set_user_id_of(&mut self, member: usize, id: u32, task: Option<u32>) -> Result<(), String> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).ok();
        // The real and the effective user.
        let users = || {
            let status = read("status")?;
            let users = status.lines().find_map(|it| it.strip_prefix("Uid:"))?;
            let mut users = users.split_whitespace().map(str::to_owned);
            users.next().zip(users.next())
        };
        if MEMBERS[member].2 {
            // The kernel changes no user to one that the namespace has no ID for: it is as any other program.
            let executed = || read("comm").filter(|it| it.trim() == "set-user-id");
            wait_for("the program to be executed", executed)?;
            return match users() {
                Some((real, effective)) if real == effective => Ok(()),
                other => Err(format!("{id} in a namespace has the users {other:?}")),
            };
        }
        // The kernel changes the name a moment before the user.
        wait_for("the program to be executed as root", || {
            users().filter(|(_, effective)| effective == "0")
        })?;
        let Some(task) = task else {
            return Ok(());
        };
        for order in [
            format!("change {task} {{\"cost\":50000,\"period\":10000000}}"),
            format!("dismiss {task}"),
        ] {
            if self.members[member].order(&order)?.is_ok() {
                return Err(format!("{order}: of a process that has become root's"));
            }
        }
        let gone = || {
            wait_for("its reservation to end", || {
                let status = well_behaved(&self.daemon).ok()?;
                (!status.tasks.iter().any(|it| it.process == id)).then_some(())
            })
        };
        let (gone, took) = timed(gone);
        gone?;
        match took < NOTICED {
            true => Ok(()),
            false => Err(format!("{id} had its reservation for {took:?} more")),
        }
    }

    /// None of these calls may succeed.
    fn trespass(&mut self, member: usize, wanted: &Reservation) -> Answer {
        let (victim, text) = (self.victims[0].id, json(wanted)?);
        let status = well_behaved(&self.daemon)?;
        let of_victim = status.tasks.iter().find(|task| task.process == victim);
        let task = of_victim.ok_or("the victim has no reservation")?.task;
        let foreign = match member {
            0 | 1 => self.members[2].id(),
            _ => self.members[0].id(),
        };
        for order in [
            format!("admit {foreign} {text}"),
            format!("admit {victim} {text}"),
            format!("change {task} {text}"),
            format!("dismiss {task}"),
        ] {
            if self.members[member].order(&order)?.is_ok() {
                return Err(format!("{order}: it is not of this user"));
            }
        }
        Ok(Err("all refused".to_owned()))
    }

    /// As into a group that was delegated to its user, who makes as many as it likes in there.
    fn move_to_group(&mut self, member: usize, to: u64) -> Answer {
        let path = format!("/sys/fs/cgroup/user-{}/{to}", MEMBERS[member].1);
        fs::create_dir_all(&path).map_err(|error| format!("{path}: {error}"))?;
        let id = self.members[member].id().to_string();
        fs::write(format!("{path}/cgroup.procs"), id)
            .map_err(|error| format!("{path}: {error}"))?;
        Ok(Ok(String::new()))
    }

    fn kill(&mut self, member: usize) -> Answer {
        let id = self.members[member].id();
        let before = well_behaved(&self.daemon)?;
        let fresh = Process::start(&self.daemon, member)?;
        let took = std::mem::replace(&mut self.members[member], fresh).kill()?;
        for ended in before.tasks.iter().filter(|task| task.process == id) {
            self.quota.note_end(MEMBERS[member].1, &ended.reservation);
        }
        self.longest.note_kill(took)?;
        Ok(Ok(format!("{took:?}")))
    }

    /// All members end, and nothing of them is left; returns what happened.
    pub fn end(mut self) -> Result<String, String> {
        for member in std::mem::take(&mut self.members) {
            self.longest.note_kill(member.kill()?)?;
        }
        wait_for("all tasks but the victims to be gone", || {
            let status = well_behaved(&self.daemon).ok()?;
            (status.tasks.len() == self.victims.len()).then_some(())
        })?;
        wait_for("the daemon to close all descriptors", || {
            let now = taken(self.daemon.id().ok()?).ok()?;
            (now.descriptors == self.descriptors).then_some(())
        })?;
        self.judge()?;
        let shown = format!(
            "{} tasks at a time, {:?}\n{}\n{}",
            self.most_tasks,
            self.counts,
            self.longest,
            self.shown_victims()?
        );
        if self.most_tasks < TASKS_MIN {
            let most = self.most_tasks;
            return Err(format!("at most {most} tasks at a time: {shown}"));
        }
        for victim in &self.victims {
            self.daemon.end_program(victim.id)?;
        }
        wait_for("no task to be left", || {
            self.daemon.tasks().ok()?.is_empty().then_some(())
        })?;
        match self.daemon.end(Signal::TERM)? {
            Some(0) => {}
            other => {
                return Err(format!(
                    "the daemon ended by {other:?}: {}",
                    self.daemon.log()
                ));
            }
        }
        for (_, account, _) in MEMBERS {
            for group in 0..3 {
                // Not all have been made.
                let _ = fs::remove_dir(format!("/sys/fs/cgroup/user-{account}/{group}"));
            }
            let _ = fs::remove_dir(format!("/sys/fs/cgroup/user-{account}"));
        }
        crate::faults::all_is_well()?;
        Ok(shown)
    }

    fn shown_victims(&self) -> Result<String, String> {
        let found = self
            .victims
            .iter()
            .map(|it| Ok(format!("{:?}", it.found()?)));
        let found: Result<Vec<String>, String> = found.collect();
        Ok(found?.join("; "))
    }
}

/// What an order came to, or why the run fails.
type Answer = Result<Result<String, String>, String>;

/// The steps that are counted.
const NAMES: [&str; 13] = [
    "Start",
    "Crowd",
    "Admit",
    "Loop",
    "Change",
    "Dismiss",
    "Bind",
    "Statuses",
    "Malformed",
    "SetUserId",
    "Trespass",
    "Move",
    "Kill",
];

fn json(wanted: &Reservation) -> Result<String, String> {
    serde_json::to_string(wanted).map_err(|error| error.to_string())
}

/// Folders in which all may write, and the program with root's user ID.
fn prepare_folders() -> Result<(), String> {
    for folder in FOLDERS {
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let all = fs::Permissions::from_mode(0o777);
        fs::set_permissions(folder, all).map_err(|error| error.to_string())?;
    }
    fs::write(format!("{}/root", FOLDERS[0]), "").map_err(|error| error.to_string())?;
    fs::write(SET_USER_ID, program()).map_err(|error| error.to_string())?;
    let set_user_id = fs::Permissions::from_mode(0o4755);
    fs::set_permissions(SET_USER_ID, set_user_id).map_err(|error| error.to_string())
}

/// An executable file of the least size: a header, one segment, and its code.
fn program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let mut file = vec![0x7F, b'E', b'L', b'F', 2, 1, 1];
    file.resize(16, 0);
    // An executable for x86-64, of version 1.
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    for word in [BASE + HEADERS, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    // No flags; the sizes of both headers; one segment, no sections.
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    // To be loaded, readable and executable.
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let length = HEADERS + PROGRAM.len() as u64;
    for word in [0, BASE, BASE, length, length, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.extend(PROGRAM);
    file
}

impl World {
    /// A client of root.
    pub fn client(&self) -> Result<Client, String> {
        Client::connect(self.daemon.at("socket")).map_err(|error| error.to_string())
    }
}
