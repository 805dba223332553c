//! rt-app: JSON with comments, trailing commas, keys without a value, and repeated keys whose order
//! is what a thread does.
//!
//! A thread becomes a task that does the same: with a CPU whenever it wants one, the task computes
//! when the thread does and for as long. How it is found: all threads are read (`thread.rs`), each is
//! executed on its own (`alone.rs`) until it ends or repeats itself, and what it does from timer to timer,
//! or from one wait for others to the next, is a job (`jobs.rs`). A thread that no task is like is refused
//! with the reason, and so is one that waits for it (`fate.rs`). What is left are tasks that trigger each
//! other and share mutexes (`task.rs`). Priorities are turned around: there 99 is the most urgent, here 1 is.

mod alone;
mod event;
mod fate;
mod jobs;
mod program;
mod shared;
mod task;
mod thread;
mod users;
mod value;

use std::collections::BTreeMap;

use shiftwork_model::{Protocol, Resource, ResourceId, TaskSet};

use super::json::{Kind, parse};
use super::{Draft, Imported, NamesTaken, Options, TASKS_MAX, settle};
use crate::error::TasksetError;
use fate::{Fate, decide};
use jobs::Release;
use program::Awaited;
use task::Numbers;
use thread::{POLICIES, Thread};
use users::Users;
use value::Json;

/// Reads a file.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub fn read(text: &str) -> Result<Imported, TasksetError> {
    read_with(text, &Options::default())
}

/// Reads a file, on as many CPUs as `options` say.
///
/// # Errors
/// As [`read`].
pub fn read_with(text: &str, options: &Options) -> Result<Imported, TasksetError> {
    let root = parse(text)?;
    let root = Json {
        text,
        key: "the file",
        node: &root,
    };
    let mut file = File::default();
    for member in root.members()? {
        match member.key {
            "tasks" => file.tasks = Some(member),
            "global" => file.read_global(member)?,
            "resources" => file.read_resources(member)?,
            other => file.left_out.push(format!("`{other}`")),
        }
    }
    let threads = file.read_threads(root)?;
    let made = Made::of(&threads, &file.declared)?;
    let mut left_out = file.left_out;
    for (thread, of_thread) in threads.iter().zip(&made.lost) {
        let name = thread.json.key;
        left_out.extend(
            of_thread
                .iter()
                .map(|what| format!("task `{name}`: {what}")),
        );
    }
    if made.drafts.is_empty()
        && made
            .fates
            .iter()
            .any(|fate| matches!(fate, Fate::Refused(_)))
    {
        return Err(TasksetError::Impossible {
            what: format!(
                "no thread of this file can be imported: {}",
                left_out.join("; ")
            ),
            accepted: "accepted: threads that run, sleep and wait for timers of their own, and threads that these wake"
                .to_string(),
        });
    }
    let is_relative = |(thread, fate): (&Thread<'_>, &Fate<'_>)| {
        let release = fate.jobs().map(|jobs| &jobs.release);
        thread.relative && matches!(release, Some(Release::ByTime { by_timer: true, .. }))
    };
    if threads.iter().zip(&made.fates).any(is_relative) {
        let what = "relative timers: after a job that ends later than its timer, rt-app counts from \
                    that end, the task set goes on from the timer (mode \"absolute\" does so, too)";
        left_out.push(what.to_string());
    }
    let mut set = settle(made.drafts, options, &mut left_out)?;
    let protocol = match file.inherits {
        true => Protocol::Inheritance,
        false => Protocol::None,
    };
    let mut names = NamesTaken::default();
    let resource = |mutex: &str| Resource {
        name: names.take(if mutex.is_empty() { "mutex" } else { mutex }),
        protocol,
    };
    set.resources = made.mutexes.into_iter().map(resource).collect();
    Ok(Imported { set, left_out })
}

/// What is outside of the threads.
#[derive(Default)]
struct File<'a> {
    tasks: Option<Json<'a>>,
    default_policy: Option<&'a str>,
    /// Whether mutexes have priority inheritance.
    inherits: bool,
    /// The places at which mutexes and other things that events name are declared.
    declared: BTreeMap<&'a str, usize>,
    left_out: Vec<String>,
}

impl<'a> File<'a> {
    fn read_global(&mut self, global: Json<'a>) -> Result<(), TasksetError> {
        for member in global.members()? {
            match member.key {
                "default_policy" => self.default_policy = Some(member.text_value(POLICIES)?),
                "pi_enabled" => self.inherits = member.boolean()?,
                "duration" => self.read_duration(member)?,
                key if WITHOUT_EFFECT.contains(&key) => {}
                other => self.left_out.push(format!("global `{other}`")),
            }
        }
        Ok(())
    }

    /// How long to run is no property of a task set; a negative number means for ever.
    fn read_duration(&mut self, duration: Json<'_>) -> Result<(), TasksetError> {
        let Kind::Number(number) = &duration.node.kind else {
            return Err(duration.wrong("a number of seconds"));
        };
        if !number.starts_with('-') {
            let what = format!("global `duration`: pass `--for {number}s`");
            self.left_out.push(what);
        }
        Ok(())
    }

    /// Events may name what is not declared, too.
    fn read_resources(&mut self, resources: Json<'a>) -> Result<(), TasksetError> {
        let names = resources.members()?.map(|member| member.key);
        self.declared.extend(names.zip(0..));
        Ok(())
    }

    fn read_threads(&self, root: Json<'a>) -> Result<Vec<Thread<'a>>, TasksetError> {
        let tasks = self.tasks.ok_or_else(|| TasksetError::MissingKey {
            place: root.place(),
            key: "tasks",
            within: "an rt-app file".to_string(),
            example: "\"tasks\": { \"imu\": { \"run\": 500, \"timer\": { \"ref\": \"tick\", \"period\": 2000 } } }",
        })?;
        let mut users = Users::default();
        let mut count = 0;
        for thread in tasks.members()? {
            let instances = thread::instances(thread)?;
            count += instances as usize;
            if count > TASKS_MAX {
                let accepted = format!("at most {TASKS_MAX} tasks in a file");
                return Err(thread.out_of_range("one task too many", &accepted));
            }
            users.count(thread, instances)?;
        }
        let read = |thread| thread::read(thread, &users, self.default_policy);
        let threads: Result<Vec<_>, _> = tasks.members()?.map(read).collect();
        let mut threads = threads?;
        drop_wakes_of_themselves(&mut threads);
        Ok(threads)
    }
}

/// Leaves out where a thread wakes those that wait at a condition where it alone waits: it does not wait then.
fn drop_wakes_of_themselves(threads: &mut [Thread<'_>]) {
    let mut waiting: BTreeMap<Awaited<'_>, usize> = BTreeMap::new();
    for thread in &*threads {
        for awaited in thread.program.awaited() {
            *waiting.entry(awaited).or_default() += thread.instances;
        }
    }
    for thread in threads {
        let is_alone = |it: &Awaited<'_>| matches!(it, Awaited::Condition(_)) && waiting[it] == 1;
        let mut alone = thread.program.awaited();
        alone.retain(is_alone);
        thread.program.drop_wakes(&alone);
    }
}

/// What becomes of the threads of a file.
struct Made<'a> {
    fates: Vec<Fate<'a>>,
    drafts: Vec<Draft>,
    /// The names of the mutexes, each at its number.
    mutexes: Vec<&'a str>,
    /// What is lost, by thread, a line each.
    lost: Vec<Vec<String>>,
}

impl<'a> Made<'a> {
    /// Makes the tasks. Mutexes are in the order in which they are declared, and others follow by their names.
    /// Threads that may wait for each other for ever are refused: a circle of them after the
    /// other, and after some circles all that lock a mutex while they hold another.
    fn of(threads: &[Thread<'a>], declared: &BTreeMap<&str, usize>) -> Result<Self, TasksetError> {
        let mut refused = BTreeMap::new();
        for circles in 0.. {
            let (fates, shared) = decide(threads, &refused);
            let mut mutexes: Vec<&str> = shared.mutexes().collect();
            mutexes.sort_by_key(|name| declared.get(name).copied().unwrap_or(usize::MAX));
            let numbers = Numbers::new(threads, &fates, &mutexes);
            let mut lost = lost_of_jobs(threads, &fates);
            let mut drafts = make_drafts(threads, &fates, &numbers, &mut lost)?;
            numbers.settle(threads, &fates, &mut drafts, &mut lost);
            let tasks = drafts.iter().map(|draft| draft.task.clone()).collect();
            let set = TaskSet::new("", 1, tasks);
            let locks = match circles < CIRCLES_MAX {
                true => set.deadlock().unwrap_or_default(),
                false => set.nested_locks(),
            };
            if !locks.is_empty() {
                for nested in locks {
                    let mutex = |id: ResourceId| mutexes[id.index()];
                    let reason = format!(
                        "it locks mutex `{}` while it holds `{}`, by which threads of this file may wait for each other for ever",
                        mutex(nested.locked),
                        mutex(nested.held)
                    );
                    refused.insert(numbers.thread(nested.task), reason);
                }
                continue;
            }
            for ((thread, fate), lost) in threads.iter().zip(&fates).zip(&mut lost) {
                if fate.jobs().is_some() {
                    lost.extend(thread.lost_policy.iter().cloned());
                }
            }
            return Ok(Self {
                fates,
                drafts,
                mutexes,
                lost,
            });
        }
        unreachable!("no thread is left that locks a mutex while it holds another")
    }
}

/// The most circles of threads that may wait for each other for ever which are refused one after the other.
const CIRCLES_MAX: usize = 16;

/// What is lost of the threads before they become tasks, and why they do not, by thread.
fn lost_of_jobs(threads: &[Thread<'_>], fates: &[Fate<'_>]) -> Vec<Vec<String>> {
    let both = threads.iter().zip(fates);
    let lost = both.map(|(thread, fate)| {
        let mut lost = thread.lost_events.clone();
        match fate {
            Fate::Task(jobs) => lost.extend(jobs.lost.iter().cloned()),
            Fate::NoTask if thread.instances == 0 => {
                lost.push("`instance` 0; it is never started".to_string());
            }
            Fate::NoTask => lost.push("it never computes, so it is no task".to_string()),
            Fate::Refused(reason) => lost.push(format!("not imported: {reason}")),
        }
        lost
    });
    lost.collect()
}

/// The tasks of all threads that become some, as many for each as it has instances.
fn make_drafts<'a>(
    threads: &[Thread<'a>],
    fates: &[Fate<'a>],
    numbers: &Numbers<'a>,
    lost: &mut [Vec<String>],
) -> Result<Vec<Draft>, TasksetError> {
    let mut names = NamesTaken::default();
    let mut drafts = Vec::new();
    let mut written: usize = 0;
    for ((thread, fate), lost) in threads.iter().zip(fates).zip(lost) {
        let Some(jobs) = fate.jobs() else {
            continue;
        };
        let length = thread.instances.saturating_mul(numbers.length(jobs));
        written = written.saturating_add(length);
        if written > WRITTEN_MAX {
            let accepted = format!(
                "loops, and threads that wake each other, that make at most {WRITTEN_MAX} phases, releases and triggers in all"
            );
            let found = "too long once its loops are written out";
            return Err(thread.json.out_of_range(found, &accepted));
        }
        let (draft, lost_of_task) = numbers.make(thread, jobs);
        lost.extend(lost_of_task);
        for instance in 0..thread.instances {
            let key = thread.json.key;
            let name = match thread.instances {
                1 => names.take(key),
                _ => names.take(&format!("{key}-{instance}")),
            };
            let mut task = draft.task.clone();
            task.name = name;
            drafts.push(Draft { task, ..draft });
        }
    }
    Ok(drafts)
}

/// The most phases, releases and triggers in a file once its loops and instances are written out. More
/// are no task set but a trap for the memory.
const WRITTEN_MAX: usize = 200_000;

/// Global keys that change no schedule: what is logged, and what only events have to do with for
/// which a thread is refused.
const WITHOUT_EFFECT: [&str; 9] = [
    "logdir",
    "log_basename",
    "log_size",
    "gnuplot",
    "ftrace",
    "cumulative_slack",
    "lock_pages",
    "io_device",
    "mem_buffer_size",
];
