//! rt-app: JSON with comments, trailing commas, keys without a value, and repeated keys whose order
//! is what a thread does.
//!
//! A thread becomes a task that does the same: with a CPU whenever it wants one, the task computes
//! when the thread does and for as long. How it is found: the thread is executed on its own
//! (`alone.rs`) until it ends or repeats itself, and what it does from timer to timer is a job
//! (`jobs.rs`). A thread that no task is like, since it waits for others or begins its jobs at uneven
//! distances, is refused with the reason. Priorities are turned around: there 99 is the most
//! urgent, here 1 is.

mod alone;
mod event;
mod jobs;
mod program;
mod users;
mod value;

use shiftwork_model::{Arrival, CpuSet, OnOverrun, Priority, Span, Task, Work};

use super::json::{Kind, parse};
use super::{Draft, Imported, NamesTaken, Options, TASKS_MAX, settle};
use crate::error::TasksetError;
use jobs::Jobs;
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
    let mut import = Import::default();
    let mut drafts = Vec::new();
    let mut threads = None;
    for member in root.members()? {
        match member.key {
            "tasks" => threads = Some(member),
            "global" => import.read_global(member)?,
            // It declares what events name.
            "resources" => {}
            other => import.left_out.push(format!("`{other}`")),
        }
    }
    let threads = threads.ok_or_else(|| TasksetError::MissingKey {
        place: root.place(),
        key: "tasks",
        within: "an rt-app file".to_string(),
        example: "\"tasks\": { \"imu\": { \"run\": 500, \"timer\": { \"ref\": \"tick\", \"period\": 2000 } } }",
    })?;
    let mut users = Users::default();
    for thread in threads.members()? {
        users.count(thread, instances(thread)?)?;
    }
    for thread in threads.members()? {
        import.read_thread(thread, &users, &mut drafts)?;
    }
    if drafts.is_empty() && import.refused > 0 {
        return Err(TasksetError::Impossible {
            what: format!(
                "no thread of this file can be imported: {}",
                import.left_out.join("; ")
            ),
            accepted: "accepted: threads that run, sleep and wait for timers of their own"
                .to_string(),
        });
    }
    if import.relative {
        let what = "relative timers: after a job that ends later than its timer, rt-app counts from \
                    that end, the task set goes on from the timer (mode \"absolute\" does so, too)";
        import.left_out.push(what.to_string());
    }
    let set = settle(drafts, options, &mut import.left_out)?;
    let left_out = import.left_out;
    Ok(Imported { set, left_out })
}

/// What has been learnt so far.
#[derive(Default)]
struct Import {
    left_out: Vec<String>,
    names: NamesTaken,
    default_policy: Option<String>,
    tasks: usize,
    /// Phases and releases in the tasks so far.
    written: usize,
    /// How many threads were refused.
    refused: usize,
    /// Whether a task was released by a relative timer.
    relative: bool,
}

impl Import {
    fn read_global(&mut self, global: Json<'_>) -> Result<(), TasksetError> {
        for member in global.members()? {
            match member.key {
                "default_policy" => {
                    let policy = member.text_value(POLICIES)?;
                    self.default_policy = Some(policy.to_string());
                }
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

    fn note(&mut self, thread: Json<'_>, what: &str) {
        self.left_out.push(format!("task `{}`: {what}", thread.key));
    }

    /// Leaves a thread out.
    fn refuse(&mut self, thread: Json<'_>, reason: &str) {
        self.refused += 1;
        self.note(thread, &format!("not imported: {reason}"));
    }

    /// Reads a thread, as many times as it has instances.
    fn read_thread(
        &mut self,
        thread: Json<'_>,
        users: &Users<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), TasksetError> {
        let instances = instances(thread)? as usize;
        self.tasks += instances;
        if self.tasks > TASKS_MAX {
            let accepted = format!("at most {TASKS_MAX} tasks in a file");
            return Err(thread.out_of_range("one task too many", &accepted));
        }
        let Some(draft) = self.read_task(thread, users)? else {
            return Ok(());
        };
        self.written += instances.saturating_mul(length(&draft.task));
        if self.written > WRITTEN_MAX {
            return Err(thread.out_of_range(
                "too long once its loops are written out",
                &format!("loops that make at most {WRITTEN_MAX} phases and releases in all"),
            ));
        }
        for instance in 0..instances {
            let name = match instances {
                1 => self.names.take(thread.key),
                _ => self.names.take(&format!("{}-{instance}", thread.key)),
            };
            let mut task = draft.task.clone();
            task.name = name;
            drafts.push(Draft { task, ..draft });
        }
        Ok(())
    }

    /// The task that every instance of the thread is; `None` if it never computes or is refused.
    fn read_task(
        &mut self,
        thread: Json<'_>,
        users: &Users<'_>,
    ) -> Result<Option<Draft>, TasksetError> {
        if thread.key.is_empty() {
            let tasks = Json {
                key: "tasks",
                ..thread
            };
            return Err(tasks.out_of_range("a list with an unnamed task", "a name for each task"));
        }
        let server = self.read_server(thread)?;
        let read = program::read(thread, users, server.is_some())?;
        let Some(cpus) = self.read_cpus(thread)? else {
            return Ok(None);
        };
        for what in &read.lost {
            self.note(thread, what);
        }
        if !read.refused.is_empty() {
            self.refuse(thread, &read.refused.join(", "));
            return Ok(None);
        }
        let jobs = match jobs::find(&read.program) {
            Ok(Some(jobs)) => jobs,
            Ok(None) => {
                self.note(thread, "it never computes, so it is no task");
                return Ok(None);
            }
            Err(reason) => {
                self.refuse(thread, &reason);
                return Ok(None);
            }
        };
        let (mut draft, lost) = match make_task(&jobs, server) {
            Ok(made) => made,
            Err(reason) => {
                self.refuse(thread, &reason);
                return Ok(None);
            }
        };
        for what in jobs.lost.iter().chain(&lost) {
            self.note(thread, what);
        }
        self.relative |= jobs.by_timer && read.relative;
        draft.cpus = cpus;
        if let Some(delay) = thread.get("delay")? {
            draft.task.offset += delay.microseconds()?;
        }
        self.read_priority(thread, &mut draft)?;
        Ok(Some(draft))
    }

    /// The CPUs of a thread, empty for all; `None` if it is refused, since its phases use different
    /// ones.
    fn read_cpus(&mut self, thread: Json<'_>) -> Result<Option<CpuSet>, TasksetError> {
        let cpus = |object: Json<'_>| object.get("cpus")?.map(Json::cpus).transpose();
        let own = cpus(thread)?;
        let mut used = Vec::new();
        if let Some(phases) = thread.get("phases")? {
            for phase in phases.members()? {
                used.push(cpus(phase)?.or(own));
            }
        }
        let all = used.first().copied().unwrap_or(own);
        if used.iter().any(|&phase| phase != all) {
            self.refuse(thread, "its phases have different `cpus`");
            return Ok(None);
        }
        Ok(Some(all.unwrap_or(CpuSet::EMPTY)))
    }

    /// Reads the parameters of SCHED_DEADLINE, as rt-app does; `None` under another policy. Those of
    /// before there were `dl-` keys count where there is no `dl-runtime`.
    fn read_server(&mut self, thread: Json<'_>) -> Result<Option<Server>, TasksetError> {
        if self.policy(thread)? != Some("SCHED_DEADLINE") {
            return Ok(None);
        }
        let get = |key: &str, default: Span| match thread.get(key)? {
            Some(value) => value.microseconds(),
            None => Ok(default),
        };
        let mut runtime = get("dl-runtime", Span::ZERO)?;
        let mut period = get("dl-period", runtime)?;
        let mut deadline = get("dl-deadline", period)?;
        if runtime.is_zero() {
            runtime = get("runtime", Span::ZERO)?;
        }
        if period.is_zero() {
            period = get("period", runtime)?;
        }
        if deadline.is_zero() {
            deadline = get("deadline", period)?;
        }
        Ok(Some(Server {
            runtime,
            period,
            deadline,
        }))
    }

    fn policy<'a>(&'a self, thread: Json<'a>) -> Result<Option<&'a str>, TasksetError> {
        match thread.get("policy")? {
            Some(value) => value.text_value(POLICIES).map(Some),
            None => Ok(self.default_policy.as_deref()),
        }
    }

    /// Turns priorities around.
    fn read_priority(&mut self, thread: Json<'_>, draft: &mut Draft) -> Result<(), TasksetError> {
        let policy = self.policy(thread)?.unwrap_or("SCHED_OTHER").to_string();
        let priority = thread.get("priority")?;
        match policy.as_str() {
            "SCHED_FIFO" | "SCHED_RR" => {
                let theirs = priority.map_or(Ok(10), |value| value.integer(1, 99))?;
                draft.task.priority = Priority::new(100 - theirs.unsigned_abs() as u32);
            }
            "SCHED_DEADLINE" => {}
            other => {
                self.note(thread, &format!("{other}; it is taken as a real-time task"));
                if thread.get("dl-runtime")?.is_some() {
                    self.note(thread, "`dl-runtime`, the slice of an ordinary thread");
                }
                if let Some(Kind::Number(nice)) = priority.map(|value| &value.node.kind) {
                    self.note(thread, &format!("nice value {nice}"));
                }
            }
        }
        if policy == "SCHED_RR" {
            self.note(thread, "SCHED_RR; equal priorities do not take turns");
        }
        Ok(())
    }
}

/// The most phases and releases in a file once its loops and instances are written out. More are
/// no task set but a trap for the memory.
const WRITTEN_MAX: usize = 200_000;

/// How many phases and releases are written out in a task.
fn length(task: &Task) -> usize {
    let work = match &task.work {
        Work::Phases(phases) => phases.len(),
        Work::Trace(runs) => runs.len(),
        _ => 0,
    };
    let releases = match &task.arrival {
        Arrival::Releases(releases) => releases.len(),
        _ => 0,
    };
    work + releases
}

/// Global keys that change no schedule: what is logged, and what only events have to do with for
/// which a thread is refused.
const WITHOUT_EFFECT: [&str; 10] = [
    "logdir",
    "log_basename",
    "log_size",
    "gnuplot",
    "ftrace",
    "cumulative_slack",
    "lock_pages",
    "pi_enabled",
    "io_device",
    "mem_buffer_size",
];

const POLICIES: &str = "a policy, like \"SCHED_FIFO\"";

/// How many threads of one kind are started.
fn instances(thread: Json<'_>) -> Result<u64, TasksetError> {
    match thread.get("instance")? {
        Some(value) => Ok(value.integer(0, TASKS_MAX as i64)?.unsigned_abs()),
        None => Ok(1),
    }
}

/// The parameters of SCHED_DEADLINE.
#[derive(Clone, Copy)]
struct Server {
    runtime: Span,
    period: Span,
    deadline: Span,
}

impl Server {
    /// Whether Linux takes them.
    fn is_valid(self) -> bool {
        !self.runtime.is_zero() && self.runtime <= self.deadline && self.deadline <= self.period
    }
}

/// A task of these jobs under this server, if it has one, and what is lost, a line each.
///
/// # Errors
/// Why no task does the same.
fn make_task(jobs: &Jobs, server: Option<Server>) -> Result<(Draft, Vec<String>), String> {
    let mut lost = Vec::new();
    let (longest, period) = (jobs.longest(), jobs.period);
    let draft = |cost, period| {
        let mut draft = Draft::new("", cost, period);
        draft.task.offset = jobs.offset;
        draft.task.arrival = jobs.arrival.clone();
        draft
    };
    if let Some(server) = server {
        let Server {
            runtime, deadline, ..
        } = server;
        if !server.is_valid() {
            return Err(format!(
                "Linux refuses SCHED_DEADLINE with runtime {runtime}, deadline {deadline}, period {}",
                server.period
            ));
        }
        if jobs.never_waits() && !jobs.by_timer {
            // It takes its whole budget every time that there is one.
            let mut draft = draft(runtime, server.period);
            draft.task.deadline = deadline;
            return Ok((draft, lost));
        }
        if server.period != period {
            if longest > runtime {
                return Err(format!(
                    "it computes for {longest} every {period}, with a budget of {runtime} every {}",
                    server.period
                ));
            }
            lost.push(format!(
                "dl-period {}; it is released every {period}, which is kept",
                server.period
            ));
        }
        let mut draft = draft(runtime, period);
        draft.task.deadline = deadline;
        draft.task.work = jobs.work(runtime)?;
        note_rounds(jobs, &mut lost);
        return Ok((draft, lost));
    }
    note_rounds(jobs, &mut lost);
    let cost = longest.min(period);
    if cost < longest {
        let what = format!("the cost {longest} exceeds the deadline; {cost} is kept");
        lost.push(what);
    }
    let mut draft = draft(cost, period);
    draft.task.work = jobs.work(cost)?;
    draft.task.on_overrun = OnOverrun::Continue;
    Ok((draft, lost))
}

/// Names what is lost where no timer releases the jobs.
fn note_rounds(jobs: &Jobs, lost: &mut Vec<String>) {
    if jobs.by_timer {
        return;
    }
    let period = jobs.period;
    lost.push(match jobs.never_waits() {
        true => format!("it never waits; it is taken as jobs of {period} without a pause"),
        false => format!("it has no timer; it is released every {period}, even if a job ends late"),
    });
}
