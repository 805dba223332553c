//! The real daemon under random events, by seed: tasks are admitted, change and end, threads request other CPUs, CPUs go
//! offline and online, and the daemon is killed and restarted.
//!
//! After each step its status agrees with the expected one: no task is lost, no CPU is over-committed, and every thread makes
//! progress.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};
use shiftwork_client::{Client, Failure, Reservation, State, Status};
use shiftwork_model::{RandomStream, Span};

use crate::faults::{Actor, Offline, goes_on, wait_for};
use crate::hostile::{Taken, taken};
use crate::long;
use crate::service::Daemon;

/// The CPUs that the daemon schedules.
const CPUS: [u64; 3] = [1, 2, 3];
/// Maximum number of simultaneous programs: the machine is emulated.
const PROGRAMS_MAX: usize = 8;
/// Permitted growth of memory between two restarts of the daemon, in KiB.
const KEPT_KIB: u64 = 16 << 10;

struct World {
    random: RandomStream,
    daemon: Daemon,
    /// Running programs by process ID, and whether each has a reservation.
    programs: BTreeMap<u32, (Actor, bool)>,
    offline: Option<(u64, Offline)>,
    fresh: Taken,
    done: BTreeMap<&'static str, u32>,
}

/// Ten seconds, or ten minutes in the long selection.
#[allow(clippy::disallowed_methods, reason = "the duration is in real time")]
pub fn daemon_loses_no_task_under_random_events() -> Result<(), String> {
    let seed = 1;
    let span = Duration::from_secs(if long() { 600 } else { 10 });
    let began = Instant::now();
    let mut world = World::new(seed)?;
    let mut step = 0;
    while began.elapsed() < span || step < 10 {
        step += 1;
        let done = world.step();
        let what = done.as_ref().map_or("it failed", |what| *what);
        let checked = done.clone().and_then(|_| world.check());
        checked.map_err(|why| failed(seed, step, what, &format!("{why}\n{}", world.log())))?;
        *world.done.entry(what).or_default() += 1;
    }
    println!("{step} steps: {:?}", world.done);
    world
        .end()
        .map_err(|why| failed(seed, step, "the end", &why))
}

fn failed(seed: u64, step: u32, what: &str, why: &str) -> String {
    format!("seed {seed}, step {step}, {what}: {why}")
}

impl World {
    fn new(seed: u64) -> Result<Self, String> {
        let daemon = Daemon::start("record-seconds = 0")?;
        let fresh = taken(daemon.id()?)?;
        Ok(Self {
            random: RandomStream::new(seed, 0, 0),
            daemon,
            programs: BTreeMap::new(),
            offline: None,
            fresh,
            done: BTreeMap::new(),
        })
    }

    /// The daemon's log without missed deadlines: the machine is emulated.
    fn log(&self) -> String {
        let log = self.daemon.log();
        let lines = log
            .lines()
            .filter(|line| !line.ends_with("missed its deadline") && !line.ends_with("suppressed"));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn client(&self) -> Result<Client, String> {
        Client::connect(self.daemon.at("socket")).map_err(|error| error.to_string())
    }

    fn status(&self) -> Result<Status, String> {
        self.client()?.status().map_err(|error| error.to_string())
    }

    /// A random program with a reservation.
    fn random_program(&mut self) -> Option<u32> {
        let all: Vec<u32> = self
            .programs
            .iter()
            .filter(|(_, it)| it.1)
            .map(|(&id, _)| id)
            .collect();
        let at = self.random.below(all.len().max(1) as u64) as usize;
        all.get(at).copied()
    }

    fn cpus(&mut self) -> Vec<u64> {
        let bits = 1 + self.random.below(7);
        CPUS.into_iter()
            .filter(|cpu| bits >> (cpu - 1) & 1 == 1)
            .collect()
    }

    fn reservation(&mut self) -> Reservation {
        let period_ms = [10, 20, 50][self.random.below(3) as usize];
        let cost_us = 1_000 + self.random.below(period_ms * 600);
        let cpus: Vec<String> = self.cpus().iter().map(u64::to_string).collect();
        Reservation {
            cpus: Some(cpus.join(",")),
            ..Reservation::new(Span::from_us(cost_us), Span::from_ms(period_ms))
        }
    }

    fn step(&mut self) -> Result<&'static str, String> {
        match self.random.below(12) {
            0..=3 if self.programs.len() < PROGRAMS_MAX => self.enter(),
            4..=5 => self.leave(),
            6..=7 => self.change(),
            8 => self.bind(),
            9 => self.dismiss(),
            10 => Ok(self.take_or_give_cpu()?),
            11 => self.restart(),
            _ => self.leave(),
        }
    }

    fn enter(&mut self) -> Result<&'static str, String> {
        let actor = Actor::start("naps 200 5000")?;
        let (id, wanted) = (actor.id(), self.reservation());
        let answer = self.client()?.admit("churn", Some(id), &wanted);
        let admitted = is_granted(answer.map(drop))?;
        self.programs.insert(id, (actor, admitted));
        Ok(if admitted { "enters" } else { "is refused" })
    }

    fn leave(&mut self) -> Result<&'static str, String> {
        let all: Vec<u32> = self.programs.keys().copied().collect();
        let at = self.random.below(all.len().max(1) as u64) as usize;
        if let Some(id) = all.get(at) {
            // Dropping kills it and waits for it.
            self.programs.remove(id);
        }
        Ok("leaves")
    }

    fn task_of(&self, process: u32) -> Result<u32, String> {
        let status = self.status()?;
        let found = status.tasks.iter().find(|task| task.process == process);
        found
            .map(|task| task.task)
            .ok_or_else(|| format!("{process} is no task: {status:?}"))
    }

    fn change(&mut self) -> Result<&'static str, String> {
        let Some(id) = self.random_program() else {
            return Ok("changes");
        };
        let (task, to) = (self.task_of(id)?, self.reservation());
        is_granted(self.client()?.change(task, &to).map(drop))?;
        Ok("changes")
    }

    fn dismiss(&mut self) -> Result<&'static str, String> {
        let Some(id) = self.random_program() else {
            return Ok("is dismissed");
        };
        let task = self.task_of(id)?;
        self.client()?
            .dismiss(task)
            .map_err(|error| error.to_string())?;
        if let Some(program) = self.programs.get_mut(&id) {
            program.1 = false;
        }
        Ok("is dismissed")
    }

    /// Changes the affinity of a program from outside, which is a request.
    fn bind(&mut self) -> Result<&'static str, String> {
        let (Some(id), cpus) = (self.random_program(), self.cpus()) else {
            return Ok("is bound");
        };
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu as usize));
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        match sched_setaffinity(pid, &set) {
            // None of them is online.
            Ok(()) | Err(rustix::io::Errno::INVAL) => Ok("is bound"),
            Err(error) => Err(error.to_string()),
        }
    }

    fn take_or_give_cpu(&mut self) -> Result<&'static str, String> {
        if self.offline.take().is_some() {
            return Ok("a CPU is back");
        }
        let cpu = CPUS[self.random.below(3) as usize];
        self.offline = Some((cpu, Offline::take(cpu)?));
        Ok("a CPU goes")
    }

    fn restart(&mut self) -> Result<&'static str, String> {
        let killed = self.random.below(2) == 0;
        self.daemon
            .end(if killed { Signal::KILL } else { Signal::TERM })?;
        self.daemon.begin()?;
        Ok(if killed {
            "the daemon is killed"
        } else {
            "the daemon is stopped"
        })
    }

    /// Waits until the status is as expected, and checks that all programs make progress.
    fn check(&self) -> Result<(), String> {
        let mut last = String::new();
        let agrees = wait_for("status to agree", || match self.disagrees() {
            Ok(None) => Some(()),
            Ok(Some(why)) | Err(why) => {
                last = why;
                None
            }
        });
        agrees.map_err(|why| format!("{why}: {last}"))?;
        for &id in self.programs.keys() {
            goes_on(id, 1)?;
        }
        Ok(())
    }

    /// The first difference between the status and the expected one.
    fn disagrees(&self) -> Result<Option<String>, String> {
        let status = self.status()?;
        let mut found: Vec<u32> = status.tasks.iter().map(|task| task.process).collect();
        found.sort_unstable();
        let wanted = self
            .programs
            .iter()
            .filter(|(_, it)| it.1)
            .map(|(&id, _)| id);
        let wanted: Vec<u32> = wanted.collect();
        if found != wanted {
            return Ok(Some(format!("tasks {found:?} instead of {wanted:?}")));
        }
        let gone = self.offline.as_ref().map(|&(cpu, _)| cpu);
        let online: Vec<u64> = CPUS.into_iter().filter(|&cpu| Some(cpu) != gone).collect();
        let found = status
            .cpus
            .iter()
            .filter(|cpu| cpu.online)
            .map(|cpu| u64::from(cpu.cpu));
        if !found.eq(online.iter().copied()) {
            return Ok(Some(format!(
                "CPUs {:?} instead of {online:?}",
                status.cpus
            )));
        }
        Ok(over_committed(&status, &online))
    }

    /// All programs end, and no resources remain in use.
    fn end(mut self) -> Result<(), String> {
        self.offline = None;
        self.programs.clear();
        wait_for("all tasks to be gone", || {
            self.status().ok()?.tasks.is_empty().then_some(())
        })?;
        let number = self.daemon.id()?;
        let left = wait_for("the daemon to have as many descriptors as at first", || {
            let left = taken(number).ok()?;
            (left.descriptors == self.fresh.descriptors).then_some(left)
        })?;
        println!("at first {:?}, in the end {left:?}", self.fresh);
        match left.memory_kib <= self.fresh.memory_kib + KEPT_KIB {
            true => Ok(()),
            false => Err(format!("{left:?} after {:?}", self.fresh)),
        }
    }
}

/// Whether a request was granted; any failure except a refusal is an error.
fn is_granted(answer: Result<(), Failure>) -> Result<bool, String> {
    match answer {
        Ok(()) => Ok(true),
        Err(failure) => {
            let text = failure.to_string();
            match text.contains("refused: ") {
                true => Ok(false),
                false => Err(text),
            }
        }
    }
}

/// A set of CPUs that is over-committed, by Hall's condition, in millionths of a CPU.
fn over_committed(status: &Status, online: &[u64]) -> Option<String> {
    let bit = |cpu: u64| 1_u64 << cpu;
    let there: u64 = online.iter().map(|&cpu| bit(cpu)).sum();
    let mut claims = Vec::new();
    for task in status
        .tasks
        .iter()
        .filter(|task| task.state == State::Admitted)
    {
        let list = task.reservation.cpus.as_deref().unwrap_or("");
        let cpus: shiftwork_model::CpuSet = list.parse().ok()?;
        let share = task.reservation.cost.as_ns() * 1_000_000 / task.reservation.period.as_ns();
        claims.push((cpus.words()[0] & there, share));
    }
    (1..16_u64).map(|some| some & there).find_map(|some| {
        let inside = claims.iter().filter(|(cpus, _)| cpus & !some == 0);
        let wanted: u64 = inside.map(|(_, share)| share).sum();
        let room = u64::from(some.count_ones()) * 950_000;
        (wanted > room)
            .then(|| format!("CPUs {some:#b} have {wanted} reserved of {room}: {status:?}"))
    })
}
