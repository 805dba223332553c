//! The real agent under everything that happens to it in its life, by seed: tasks that come, change and go, threads that
//! ask the kernel for other CPUs, CPUs that go and come back, and agents that are killed.
//!
//! After each step its status agrees with what this test knows: nobody is lost, nothing is promised twice, and every
//! thread goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use rustix::thread::{CpuSet, Pid, sched_setaffinity};
use shiftwork_client::{Client, Failure, Reservation, State, Status};
use shiftwork_model::{RandomStream, Span};

use crate::faults::{Actor, Offline, goes_on, wait_for};
use crate::hostile::{Taken, taken};
use crate::long;
use crate::service::Agent;

/// The agent's CPUs.
const CPUS: [u64; 3] = [1, 2, 3];
/// More programs than these there are not at a time: the machine is emulated.
const PROGRAMS_MAX: usize = 8;
/// What one life of an agent may keep, in KiB.
const KEPT_KIB: u64 = 16 << 10;

struct World {
    random: RandomStream,
    agent: Agent,
    /// All that live, by their processes, and whether they have asked for a reservation and got it.
    programs: BTreeMap<u32, (Actor, bool)>,
    offline: Option<(u64, Offline)>,
    fresh: Taken,
    done: BTreeMap<&'static str, u32>,
}

/// Ten seconds of it, or ten minutes.
#[allow(clippy::disallowed_methods, reason = "it goes on for so long")]
pub fn loses_nobody() -> Result<(), String> {
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
        checked.map_err(|why| failed(seed, step, what, &format!("{why}\n{}", world.said())))?;
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
        let agent = Agent::start("record-seconds = 0")?;
        let fresh = taken(agent.id()?)?;
        Ok(Self {
            random: RandomStream::new(seed, 0, 0),
            agent,
            programs: BTreeMap::new(),
            offline: None,
            fresh,
            done: BTreeMap::new(),
        })
    }

    /// What the agent said, but for who was late: the machine is emulated.
    fn said(&self) -> String {
        let said = self.agent.said();
        let lines = said
            .lines()
            .filter(|line| !line.ends_with("missed its deadline") && !line.ends_with("suppressed"));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn client(&self) -> Result<Client, String> {
        Client::connect(self.agent.at("socket")).map_err(|error| error.to_string())
    }

    fn status(&self) -> Result<Status, String> {
        self.client()?.status().map_err(|error| error.to_string())
    }

    /// One of the programs, with a reservation.
    fn some(&mut self) -> Option<u32> {
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
            // It is killed, and waited for.
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
        let Some(id) = self.some() else {
            return Ok("changes");
        };
        let (task, to) = (self.task_of(id)?, self.reservation());
        is_granted(self.client()?.change(task, &to).map(drop))?;
        Ok("changes")
    }

    fn dismiss(&mut self) -> Result<&'static str, String> {
        let Some(id) = self.some() else {
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

    /// Somebody else binds a program elsewhere, which is a request.
    fn bind(&mut self) -> Result<&'static str, String> {
        let (Some(id), cpus) = (self.some(), self.cpus()) else {
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
        self.agent
            .end(if killed { Signal::KILL } else { Signal::TERM })?;
        self.agent.begin()?;
        Ok(if killed {
            "the agent is killed"
        } else {
            "the agent is ended"
        })
    }

    /// What is so after each step, as soon as everybody has heard of it.
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

    /// In what the status is not as it has to be.
    fn disagrees(&self) -> Result<Option<String>, String> {
        let status = self.status()?;
        let mut told: Vec<u32> = status.tasks.iter().map(|task| task.process).collect();
        told.sort_unstable();
        let wanted = self
            .programs
            .iter()
            .filter(|(_, it)| it.1)
            .map(|(&id, _)| id);
        let wanted: Vec<u32> = wanted.collect();
        if told != wanted {
            return Ok(Some(format!("tasks {told:?} instead of {wanted:?}")));
        }
        let gone = self.offline.as_ref().map(|&(cpu, _)| cpu);
        let online: Vec<u64> = CPUS.into_iter().filter(|&cpu| Some(cpu) != gone).collect();
        let told = status
            .cpus
            .iter()
            .filter(|cpu| cpu.online)
            .map(|cpu| u64::from(cpu.cpu));
        if !told.eq(online.iter().copied()) {
            return Ok(Some(format!(
                "CPUs {:?} instead of {online:?}",
                status.cpus
            )));
        }
        Ok(over_committed(&status, &online))
    }

    /// All go, and nothing of them stays.
    fn end(mut self) -> Result<(), String> {
        self.offline = None;
        self.programs.clear();
        wait_for("all tasks to be gone", || {
            self.status().ok()?.tasks.is_empty().then_some(())
        })?;
        let number = self.agent.id()?;
        let left = wait_for("the agent to have as many descriptors as at first", || {
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

/// Whether somebody got what they asked for; everything but a refusal is wrong.
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

/// Whether some CPUs are promised more than they have, by Hall's condition over all sets of them, in millionths.
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
            .then(|| format!("CPUs {some:#b} are promised {wanted} of {room}: {status:?}"))
    })
}
