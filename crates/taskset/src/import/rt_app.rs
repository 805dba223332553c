//! rt-app: JSON with comments, trailing commas, keys without a value, and repeated keys whose order
//! is what a thread does.
//!
//! A thread that computes and then waits for a timer is a periodic task: the timer's period, the
//! sum of the runs before it. Several timers in turn are jobs of different length. Without a timer,
//! a loop of runs and sleeps is taken as periodic, too, with the length of the loop. Priorities are
//! turned around: there 99 is the most urgent, here 1 is.

mod body;

use shiftwork_model::{Arrival, CpuId, CpuSet, Instant, OnOverrun, Priority, Span, Task, Work};

use super::json::{Kind, Node, parse};
use super::{Draft, Imported, NamesTaken, Options, TASKS_MAX, settle};
use crate::error::TasksetError;
use crate::place::Place;
use body::{Body, OldServer};

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
            other => import.left_out.push(format!("`{other}`")),
        }
    }
    let threads = threads.ok_or_else(|| TasksetError::MissingKey {
        place: root.place(),
        key: "tasks",
        within: "an rt-app file".to_string(),
        example: "\"tasks\": { \"imu\": { \"run\": 500, \"timer\": { \"ref\": \"tick\", \"period\": 2000 } } }",
    })?;
    for thread in threads.members()? {
        import.read_thread(thread, &mut drafts)?;
    }
    let set = settle(drafts, options, &mut import.left_out)?;
    let left_out = import.left_out;
    Ok(Imported { set, left_out })
}

/// A value, what it is called, and the text it stands in.
#[derive(Clone, Copy)]
struct Json<'a> {
    text: &'a str,
    key: &'a str,
    node: &'a Node,
}

impl<'a> Json<'a> {
    fn place(self) -> Place {
        Place::of(self.text, self.node.offset)
    }

    /// What the value is, in a few words.
    fn describe(self) -> String {
        match &self.node.kind {
            Kind::Null => "nothing".to_string(),
            Kind::Boolean(value) => value.to_string(),
            Kind::Number(number) => format!("the number {number}"),
            Kind::Text(text) => format!("the text \"{text}\""),
            Kind::List(_) => "a list".to_string(),
            Kind::Object(_) => "an object".to_string(),
        }
    }

    fn wrong(self, accepted: &'static str) -> TasksetError {
        TasksetError::WrongKind {
            place: self.place(),
            key: self.key.to_string(),
            found: self.describe(),
            accepted,
        }
    }

    fn out_of_range(self, found: &str, accepted: &str) -> TasksetError {
        TasksetError::OutOfRange {
            place: self.place(),
            key: self.key.to_string(),
            found: found.to_string(),
            accepted: accepted.to_string(),
        }
    }

    /// The keys and values of an object, in order.
    fn members(self) -> Result<impl Iterator<Item = Json<'a>> + Clone, TasksetError> {
        let Kind::Object(members) = &self.node.kind else {
            return Err(self.wrong("an object { … }"));
        };
        let text = self.text;
        Ok(members
            .iter()
            .map(move |(key, node)| Json { text, key, node }))
    }

    /// The value of a key of an object; the last one counts.
    fn get(self, key: &str) -> Result<Option<Json<'a>>, TasksetError> {
        Ok(self.members()?.filter(|member| member.key == key).last())
    }

    /// A whole number between the two.
    fn integer(self, least: i64, most: i64) -> Result<i64, TasksetError> {
        let number: Option<i64> = match &self.node.kind {
            Kind::Number(number) => number.parse().ok(),
            _ => None,
        };
        number
            .filter(|found| (least..=most).contains(found))
            .ok_or_else(|| {
                let accepted = format!("a whole number from {least} to {most}");
                self.out_of_range(&self.describe(), &accepted)
            })
    }

    /// A number of microseconds.
    fn microseconds(self) -> Result<Span, TasksetError> {
        let most = (Span::MAX.as_ns() / 1_000) as i64;
        let number = self.integer(0, most).map_err(|_| {
            let accepted = format!("a whole number of microseconds from 0 to {most}");
            self.out_of_range(&self.describe(), &accepted)
        })?;
        Ok(Span::from_us(number.unsigned_abs()))
    }

    fn text(self, accepted: &'static str) -> Result<&'a str, TasksetError> {
        match &self.node.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.wrong(accepted)),
        }
    }

    /// CPUs: numbers in a list, one number, or a CPU list in quotation marks.
    fn cpus(self) -> Result<CpuSet, TasksetError> {
        let set = match &self.node.kind {
            Kind::List(items) => items
                .iter()
                .map(|node| Json { node, ..self }.cpu())
                .collect::<Result<_, _>>()?,
            Kind::Text(list) => list.parse().map_err(|problem| TasksetError::NoCpuList {
                place: self.place(),
                key: self.key.to_string(),
                problem,
            })?,
            _ => CpuSet::single(self.cpu()?),
        };
        match set.is_empty() {
            false => Ok(set),
            true => Err(TasksetError::NoCpus {
                place: self.place(),
                key: self.key.to_string(),
            }),
        }
    }

    fn cpu(self) -> Result<CpuId, TasksetError> {
        let number = self.integer(0, shiftwork_model::CPUS_MAX as i64 - 1)?;
        Ok(CpuId::from_index(number.unsigned_abs() as usize))
    }
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
}

impl Import {
    fn read_global(&mut self, global: Json<'_>) -> Result<(), TasksetError> {
        for member in global.members()? {
            match member.key {
                "default_policy" => {
                    let policy = member.text("a policy, like \"SCHED_FIFO\"")?;
                    self.default_policy = Some(policy.to_string());
                }
                "duration" => self.read_duration(member)?,
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

    /// Reads a thread, as many times as it has instances.
    fn read_thread(
        &mut self,
        thread: Json<'_>,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), TasksetError> {
        let instances = match thread.get("instance")? {
            Some(value) => value.integer(0, TASKS_MAX as i64)?.unsigned_abs() as usize,
            None => 1,
        };
        self.tasks += instances;
        if self.tasks > TASKS_MAX {
            let accepted = format!("at most {TASKS_MAX} tasks in a file");
            return Err(thread.out_of_range("one task too many", &accepted));
        }
        let Some(draft) = self.read_task(thread)? else {
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

    /// The task that every instance of the thread is; `None` if it never computes.
    fn read_task(&mut self, thread: Json<'_>) -> Result<Option<Draft>, TasksetError> {
        if thread.key.is_empty() {
            let tasks = Json {
                key: "tasks",
                ..thread
            };
            return Err(tasks.out_of_range("a list with an unnamed task", "a name for each task"));
        }
        let old = match self.policy(thread)? {
            Some("SCHED_DEADLINE") if thread.get("dl-runtime")?.is_none() => OldServer::Present,
            _ => OldServer::Absent,
        };
        let body = body::read(thread, old)?;
        for what in &body.left_out {
            self.note(thread, what);
        }
        let server = self.read_server(thread)?;
        let Some(mut draft) = self.make_task(thread, &body, &server)? else {
            self.note(thread, "it never computes, so it is no task");
            return Ok(None);
        };
        draft.cpus = body.cpus;
        if let Some(delay) = thread.get("delay")? {
            draft.task.offset = delay.microseconds()?;
        }
        self.read_priority(thread, &mut draft)?;
        self.limit_jobs(thread, &body, &mut draft)?;
        Ok(Some(draft))
    }

    /// Turns what the thread does, and its server if it has one, into a task.
    fn make_task(
        &mut self,
        thread: Json<'_>,
        body: &Body,
        server: &Server,
    ) -> Result<Option<Draft>, TasksetError> {
        let run = body.longest_job();
        let Some(cost) = server.runtime.or(run).filter(|cost| !cost.is_zero()) else {
            return Ok(None);
        };
        let period = body
            .period
            .or(server.period)
            .unwrap_or_else(|| body.loop_length());
        let period = match period.is_zero() {
            true => cost,
            false => period,
        };
        if body.period.is_none() && server.period.is_none() {
            self.note(
                thread,
                &format!("it has no timer; its loop is taken as a period of {period}"),
            );
        }
        if let (Some(timer), Some(server)) = (body.period, server.period)
            && timer != server
        {
            self.note(
                thread,
                &format!("dl-period {server}; the timer's period {timer} is kept"),
            );
        }
        let mut draft = Draft::new("", cost, period);
        draft.task.deadline = server.deadline.unwrap_or(period);
        draft.task.work = body.work(cost);
        if server.runtime.is_none() {
            draft.task.on_overrun = OnOverrun::Continue;
        }
        if cost > draft.task.deadline {
            let deadline = draft.task.deadline;
            self.note(
                thread,
                &format!("the cost {cost} exceeds the deadline; {deadline} is kept"),
            );
            draft.task.cost = deadline;
            draft.task.work = match draft.task.work {
                Work::Cost => Work::Constant(cost),
                other => other,
            };
        }
        Ok(Some(draft))
    }

    /// Reads the parameters of SCHED_DEADLINE, under their new or their old names.
    fn read_server(&mut self, thread: Json<'_>) -> Result<Server, TasksetError> {
        let deadline_policy = self
            .policy(thread)?
            .is_some_and(|name| name == "SCHED_DEADLINE");
        let get = |new: &str, old: &str| {
            let value = match thread.get(new)? {
                Some(value) => Some(value),
                None if deadline_policy => thread.get(old)?,
                None => None,
            };
            match value.map(Json::microseconds).transpose()? {
                Some(Span::ZERO) | None => Ok(None),
                some => Ok(some),
            }
        };
        let server = Server {
            runtime: get("dl-runtime", "runtime")?,
            period: get("dl-period", "period")?,
            deadline: get("dl-deadline", "deadline")?,
        };
        Ok(match deadline_policy {
            true => server,
            false => Server::default(),
        })
    }

    fn policy<'a>(&'a self, thread: Json<'a>) -> Result<Option<&'a str>, TasksetError> {
        match thread.get("policy")? {
            Some(value) => value.text("a policy, like \"SCHED_FIFO\"").map(Some),
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

    /// A thread that ends after some rounds is a task with as many releases.
    fn limit_jobs(
        &mut self,
        thread: Json<'_>,
        body: &Body,
        draft: &mut Draft,
    ) -> Result<(), TasksetError> {
        let rounds = match thread.get("loop")? {
            Some(value) => value.integer(-1, i64::MAX)?,
            None => -1,
        };
        if rounds < 0 {
            return Ok(());
        }
        let jobs = rounds
            .unsigned_abs()
            .saturating_mul(body.jobs.len().max(1) as u64);
        if jobs > RELEASES_MAX {
            self.note(thread, &format!("`loop` {rounds}; it goes on for ever"));
            return Ok(());
        }
        let period = draft.task.period.as_ns();
        let releases = (0..jobs).map(|job| Instant::from_ns(job.saturating_mul(period)));
        let releases: Vec<Instant> = releases.collect();
        match releases.last() {
            Some(last) if last.as_ns() > Span::MAX.as_ns() => {
                self.note(thread, &format!("`loop` {rounds}; it goes on for ever"));
            }
            _ => draft.task.arrival = Arrival::Releases(releases),
        }
        Ok(())
    }
}

/// The most releases that are written out one by one.
const RELEASES_MAX: u64 = 10_000;

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

/// The parameters of SCHED_DEADLINE, where the thread has them.
#[derive(Default)]
struct Server {
    runtime: Option<Span>,
    period: Option<Span>,
    deadline: Option<Span>,
}
