//! What to request of the daemon, so that a file's reservations are there: a function of the file, the running threads, and the
//! reservations that there are.

use std::collections::{BTreeMap, BTreeSet};

use shiftwork_client::{NAME_BYTES_MAX, OnOverrun, Reservation, Status, Step, Task as Reserved};
use shiftwork_model::{CpuId, CpuSet, OnOverrun as ModelOnOverrun, Task, TaskSet};
use shiftwork_observe::RunningThread;

use super::threads::{Choice, find};

/// Between the name of a set and that of its task in the name of a reservation.
pub const SEPARATOR: char = '/';

/// What a plan is made of.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The file.
    pub set: &'a TaskSet,
    /// The name of the set, without a separator.
    pub name: &'a str,
    /// The threads of the processes that the file names.
    pub threads: &'a [RunningThread],
    /// The reservations that the caller may see, and the CPUs of the daemon.
    pub status: &'a Status,
    /// Of which processes threads are taken.
    pub choice: Choice<'a>,
    /// Whether reservations of the set end whose tasks are not in the file.
    pub prune: bool,
}

/// What has, or gets, a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A thread that runs.
    Thread {
        /// Its process.
        process: u32,
        /// The thread.
        thread: u32,
    },
    /// A program that is to be started: its place among these.
    Program(usize),
}

/// What is requested for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A reservation.
    Admit,
    /// Another reservation than this one, unless it is the same.
    Change(Box<Reserved>),
    /// The end of this one.
    Release(Box<Reserved>),
}

/// A row of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name of the task in the file.
    pub task: String,
    /// The name of the reservation.
    pub name: String,
    /// The name of the thread, or the program.
    pub of: String,
    /// What it is for.
    pub target: Target,
    /// The reservation that is requested, or that ends.
    pub reservation: Reservation,
    /// What is requested.
    pub action: Action,
}

/// What to request.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Plan {
    /// In the order of the file; then what ends.
    pub entries: Vec<Entry>,
    /// The commands of the programs that are to be started.
    pub programs: Vec<Vec<String>>,
    /// Reservations of the set that stay although their tasks are not in the file.
    pub kept: Vec<String>,
}

/// The requests of a plan, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Requests {
    /// Those that give something back, or ask for no more than there is, come first.
    pub steps: Vec<Step>,
    /// How many of them do that.
    pub giving: usize,
    /// The entry of each.
    pub entries: Vec<usize>,
}

impl Entry {
    /// Whether what it requests gives something back, and takes nothing.
    fn gives(&self) -> bool {
        match &self.action {
            Action::Admit => false,
            Action::Release(_) => true,
            Action::Change(from) => asks_for_no_more(&from.reservation, &self.reservation),
        }
    }

    fn step(&self, programs: &[u32]) -> Option<Step> {
        let thread = match self.target {
            Target::Thread { thread, .. } => thread,
            Target::Program(place) => *programs.get(place)?,
        };
        let reservation = self.reservation.clone();
        Some(match &self.action {
            Action::Admit => Step::admit(&self.name, thread, reservation),
            Action::Change(from) => Step::change(from.task, reservation),
            Action::Release(from) => Step::dismiss(from.task),
        })
    }
}

impl Plan {
    /// The requests, with the main threads of the programs.
    pub fn requests(&self, programs: &[u32]) -> Requests {
        let (giving, taking): (Vec<usize>, Vec<usize>) =
            (0..self.entries.len()).partition(|&entry| self.entries[entry].gives());
        let entries = [giving.as_slice(), &taking].concat();
        let steps = entries
            .iter()
            .filter_map(|&entry| self.entries[entry].step(programs));
        Requests {
            steps: steps.collect(),
            giving: giving.len(),
            entries,
        }
    }
}

/// Plans the reservations of a file.
///
/// # Errors
/// For each task of which that cannot be said: why, and what would be accepted.
pub fn plan(situation: &Situation<'_>) -> Result<Plan, Vec<String>> {
    let mut planning = Planning {
        situation: *situation,
        plan: Plan::default(),
        released: BTreeMap::new(),
        used: BTreeMap::new(),
        mistakes: Vec::new(),
    };
    for task in &situation.set.tasks {
        if let Err(why) = planning.add(task) {
            let mistake = format!("task `{}`: {why}", task.name);
            planning.mistakes.push(mistake);
        }
    }
    planning.add_released();
    match planning.mistakes.is_empty() {
        true => Ok(planning.plan),
        false => Err(planning.mistakes),
    }
}

struct Planning<'a> {
    situation: Situation<'a>,
    plan: Plan,
    /// Reservations that end, by number.
    released: BTreeMap<u32, &'a Reserved>,
    /// The task of each thread that is in use.
    used: BTreeMap<u32, &'a str>,
    mistakes: Vec<String>,
}

impl<'a> Planning<'a> {
    fn add(&mut self, task: &'a Task) -> Result<(), String> {
        let Situation { set, name, .. } = self.situation;
        let full = format!("{name}{SEPARATOR}{}", task.name);
        if full.len() > NAME_BYTES_MAX || full.chars().any(char::is_control) {
            return Err(format!(
                "its reservation would be called {full:?}; a name has at most {NAME_BYTES_MAX} bytes on one line"
            ));
        }
        let (target, of, action) = match (&task.thread, task.command.first()) {
            (Some(wanted), _) => {
                let thread = find(wanted, self.situation.threads, self.situation.choice)?;
                let of = match thread.id == thread.process {
                    true => thread.process_name.clone(),
                    false => format!("{}{SEPARATOR}{}", thread.process_name, thread.name),
                };
                let target = Target::Thread {
                    process: thread.process,
                    thread: thread.id,
                };
                (target, of, self.action_for_thread(thread.id, &full)?)
            }
            (None, Some(program)) => {
                let (target, action) = self.action_for_program(&full, &task.command)?;
                (target, program.clone(), action)
            }
            (None, None) => {
                return Err(
                    "has neither `thread` nor `command`, so there is nothing to reserve for; write thread = { process = \
                     \"rover\", name = \"camera\" } with the names of a running thread, as `shiftwork init --pid PID` does, \
                     or command = [\"./camera\"]"
                        .to_owned(),
                );
            }
        };
        if let Target::Thread { thread, .. } = target
            && let Some(other) = self.used.insert(thread, &task.name)
        {
            return Err(format!(
                "is the same thread as task `{other}`, {thread}; a thread has one reservation"
            ));
        }
        self.plan.entries.push(Entry {
            task: task.name.clone(),
            name: full,
            of,
            target,
            reservation: reservation(task, set, self.situation.status),
            action,
        });
        Ok(())
    }

    /// The reservations of the set.
    fn own(&self) -> impl Iterator<Item = &'a Reserved> + use<'a> {
        let (name, tasks) = (self.situation.name, &self.situation.status.tasks);
        tasks
            .iter()
            .filter(move |it| task_name(name, &it.name).is_some())
    }

    fn action_for_thread(&mut self, thread: u32, name: &str) -> Result<Action, String> {
        let tasks = &self.situation.status.tasks;
        let present = tasks.iter().find(|it| it.thread == thread);
        // The task had another thread before, as before the program was started again.
        let moved = self
            .own()
            .filter(|it| it.name == name && it.thread != thread);
        self.released.extend(moved.map(|it| (it.task, it)));
        match present {
            None => Ok(Action::Admit),
            Some(it) if it.name == name => Ok(Action::Change(Box::new(it.clone()))),
            Some(it) if task_name(self.situation.name, &it.name).is_some() => {
                // The task was called otherwise before.
                self.released.insert(it.task, it);
                Ok(Action::Admit)
            }
            Some(it) => Err(format!(
                "thread {thread} has a reservation already, `{}`, which is not of this file; `shiftwork release {thread}` \
                 gives it back",
                it.name
            )),
        }
    }

    /// The program that runs already, or one that is to be started.
    fn action_for_program(
        &mut self,
        name: &str,
        command: &[String],
    ) -> Result<(Target, Action), String> {
        let named = self.own().filter(|it| it.name == name);
        let (running, moved): (Vec<&Reserved>, Vec<&Reserved>) =
            named.partition(|it| it.thread == it.process);
        self.released
            .extend(moved.into_iter().map(|it| (it.task, it)));
        match running.as_slice() {
            [] => {
                self.plan.programs.push(command.to_vec());
                let place = self.plan.programs.len() - 1;
                Ok((Target::Program(place), Action::Admit))
            }
            [it] => {
                let target = Target::Thread {
                    process: it.process,
                    thread: it.thread,
                };
                Ok((target, Action::Change(Box::new((*it).clone()))))
            }
            several => {
                let numbers = several.iter().map(|it| it.process.to_string());
                Err(format!(
                    "several processes have the reservation `{name}`: {}; give back all but one by `shiftwork release PID`",
                    numbers.collect::<Vec<_>>().join(", ")
                ))
            }
        }
    }

    /// Adds what ends: what its thread or task has no more use for, and if it is wanted, what the file has no more.
    fn add_released(&mut self) {
        let changed: BTreeSet<u32> = self
            .plan
            .entries
            .iter()
            .filter_map(|entry| match &entry.action {
                Action::Change(from) => Some(from.task),
                Action::Admit | Action::Release(_) => None,
            })
            .collect();
        let others: Vec<&Reserved> = self
            .own()
            .filter(|it| !changed.contains(&it.task) && !self.released.contains_key(&it.task))
            .collect();
        for it in others {
            match self.situation.prune {
                true => drop(self.released.insert(it.task, it)),
                false => self.plan.kept.push(it.name.clone()),
            }
        }
        for it in self.released.values() {
            let task = task_name(self.situation.name, &it.name).unwrap_or_default();
            self.plan.entries.push(Entry {
                task: task.to_owned(),
                name: it.name.clone(),
                of: String::new(),
                target: Target::Thread {
                    process: it.process,
                    thread: it.thread,
                },
                reservation: it.reservation.clone(),
                action: Action::Release(Box::new((*it).clone())),
            });
        }
    }
}

/// The name of the task if this is the name of a reservation of the set.
pub fn task_name<'n>(set: &str, name: &'n str) -> Option<&'n str> {
    name.strip_prefix(set)?.strip_prefix(SEPARATOR)
}

/// The reservation of a task. One that may use all CPUs of the file gets those of them that the daemon schedules.
fn reservation(task: &Task, set: &TaskSet, status: &Status) -> Reservation {
    let numbers = status
        .cpus
        .iter()
        .filter_map(|it| CpuId::new(it.cpu as usize));
    let scheduled = numbers.fold(CpuSet::EMPTY, |all, cpu| all | CpuSet::single(cpu));
    let own = *task.affinity.cpus();
    let cpus = match own == set.platform.all() && own.intersects(&scheduled) {
        true => own & scheduled,
        false => own,
    };
    Reservation {
        deadline: Some(task.deadline),
        cpus: Some(cpus.to_string()),
        priority: task.priority.map(shiftwork_model::Priority::number),
        on_overrun: Some(match task.on_overrun {
            ModelOnOverrun::Throttle => OnOverrun::Throttle,
            ModelOnOverrun::Continue => OnOverrun::Continue,
            ModelOnOverrun::Signal => OnOverrun::Signal,
        }),
        ..Reservation::new(task.cost, task.period)
    }
}

/// Whether the second needs at no time more than the first.
fn asks_for_no_more(from: &Reservation, to: &Reservation) -> bool {
    let deadline = |it: &Reservation| it.deadline.unwrap_or(it.period);
    let cpus = |it: &Reservation| {
        it.cpus
            .as_deref()
            .and_then(|list| list.parse::<CpuSet>().ok())
    };
    to.cost <= from.cost
        && to.period >= from.period
        && deadline(to) >= deadline(from)
        && (to.cpus.is_none() || cpus(from) == cpus(to))
}

#[cfg(test)]
mod tests;
