//! One thread of an rt-app file as it was read: what it does, and by what it is scheduled.

use shiftwork_model::{CpuSet, Priority, Span};

use super::super::TASKS_MAX;
use super::super::json::Kind;
use super::program::{self, Program};
use super::users::Users;
use super::value::Json;
use crate::error::TasksetError;

/// A thread. Each of its instances is a task.
pub(super) struct Thread<'a> {
    pub(super) json: Json<'a>,
    pub(super) instances: usize,
    pub(super) program: Program<'a>,
    /// Its parameters of SCHED_DEADLINE, if that is its policy.
    pub(super) server: Option<Server>,
    /// Empty for all.
    pub(super) cpus: CpuSet,
    pub(super) delay: Span,
    pub(super) priority: Option<Priority>,
    /// Whether a timer of it is relative.
    pub(super) relative: bool,
    /// What is lost of its events, a line each, whatever becomes of it.
    pub(super) lost_events: Vec<String>,
    /// What is lost of its policy if it becomes a task, a line each.
    pub(super) lost_policy: Vec<String>,
    /// Why it can be no task, whatever others do.
    pub(super) refused: Option<String>,
}

/// The parameters of SCHED_DEADLINE.
#[derive(Clone, Copy)]
pub(super) struct Server {
    pub(super) runtime: Span,
    pub(super) period: Span,
    pub(super) deadline: Span,
}

impl Server {
    /// Whether Linux takes them.
    pub(super) fn is_valid(self) -> bool {
        !self.runtime.is_zero() && self.runtime <= self.deadline && self.deadline <= self.period
    }
}

/// What is accepted as a policy.
pub(super) const POLICIES: &str = "a policy, like \"SCHED_FIFO\"";

/// How many threads of one kind are started.
pub(super) fn instances(thread: Json<'_>) -> Result<u64, TasksetError> {
    match thread.get("instance")? {
        Some(value) => Ok(value.integer(0, TASKS_MAX as i64)?.unsigned_abs()),
        None => Ok(1),
    }
}

/// Reads a thread; its policy is `default_policy` if it has none of its own.
///
/// # Errors
/// The first thing that is wrong, with its place and with what would be accepted.
pub(super) fn read<'a>(
    thread: Json<'a>,
    users: &Users<'_>,
    default_policy: Option<&'a str>,
) -> Result<Thread<'a>, TasksetError> {
    if thread.key.is_empty() {
        let tasks = Json {
            key: "tasks",
            ..thread
        };
        return Err(tasks.out_of_range("a list with an unnamed task", "a name for each task"));
    }
    let policy = match thread.get("policy")? {
        Some(value) => Some(value.text_value(POLICIES)?),
        None => default_policy,
    };
    let server = match policy {
        Some("SCHED_DEADLINE") => Some(read_server(thread)?),
        _ => None,
    };
    let instances = instances(thread)? as usize;
    let events = program::read(thread, users, server.is_some())?;
    let (cpus, refused) = match read_cpus(thread)? {
        Ok(cpus) => (cpus, events.refused.join(", ")),
        Err(reason) => (CpuSet::EMPTY, reason),
    };
    let mut lost_policy = Vec::new();
    let priority = read_priority(thread, policy, &mut lost_policy)?;
    let delay = thread.get("delay")?.map(Json::microseconds).transpose()?;
    Ok(Thread {
        json: thread,
        instances,
        program: events.program,
        server,
        cpus,
        delay: delay.unwrap_or_default(),
        priority,
        relative: events.relative,
        lost_events: events.lost,
        lost_policy,
        refused: Some(refused).filter(|reason| !reason.is_empty()),
    })
}

/// The CPUs of a thread, empty for all, or why it is refused: its phases use different ones.
fn read_cpus(thread: Json<'_>) -> Result<Result<CpuSet, String>, TasksetError> {
    let cpus = |object: Json<'_>| object.get("cpus")?.map(Json::cpus).transpose();
    let own = cpus(thread)?;
    let mut used = Vec::new();
    if let Some(phases) = thread.get("phases")? {
        for phase in phases.members()? {
            used.push(cpus(phase)?.or(own));
        }
    }
    let all = used.first().copied().unwrap_or(own);
    Ok(match used.iter().all(|&phase| phase == all) {
        true => Ok(all.unwrap_or(CpuSet::EMPTY)),
        false => Err("its phases have different `cpus`".to_string()),
    })
}

/// Reads the parameters of SCHED_DEADLINE, as rt-app does. Those of before there were `dl-` keys count
/// where there is no `dl-runtime`.
fn read_server(thread: Json<'_>) -> Result<Server, TasksetError> {
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
    Ok(Server {
        runtime,
        period,
        deadline,
    })
}

/// Turns priorities around.
fn read_priority(
    thread: Json<'_>,
    policy: Option<&str>,
    lost: &mut Vec<String>,
) -> Result<Option<Priority>, TasksetError> {
    let priority = thread.get("priority")?;
    match policy.unwrap_or("SCHED_OTHER") {
        fixed @ ("SCHED_FIFO" | "SCHED_RR") => {
            if fixed == "SCHED_RR" {
                lost.push("SCHED_RR; equal priorities do not take turns".to_string());
            }
            let theirs = priority.map_or(Ok(10), |value| value.integer(1, 99))?;
            return Ok(Priority::new(100 - theirs.unsigned_abs() as u32));
        }
        "SCHED_DEADLINE" => {}
        other => {
            lost.push(format!("{other}; it is taken as a real-time task"));
            if thread.get("dl-runtime")?.is_some() {
                lost.push("`dl-runtime`, the slice of an ordinary thread".to_string());
            }
            if let Some(Kind::Number(nice)) = priority.map(|value| &value.node.kind) {
                lost.push(format!("nice value {nice}"));
            }
        }
    }
    Ok(None)
}
