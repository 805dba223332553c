//! `shiftwork status`: the reservations and their statistics.

pub mod capacity;
pub mod columns;
pub mod cpus;
mod quantities;
pub mod users;

use schemars::JsonSchema;
use serde::Serialize;
use shiftwork_client::{Cpu, Room, State, Status, Task};
use shiftwork_model::Span;
use shiftwork_trace::SCHEMA_VERSION;

use super::daemon_client;
use crate::failure::{Answer, Failure};
use crate::output::{Console, plural, terminal_width};
use crate::table::{Layout, WIDTH, headings, printable};

/// What `status --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StatusOutput {
    schema_version: u64,
    /// Version of the daemon.
    version: String,
    policy: String,
    /// The guarantee of every task.
    guarantee: String,
    /// Time since the daemon started.
    up_ns: u64,
    /// Missed deadlines of all tasks since the daemon started, including tasks that have ended.
    deadline_misses: u64,
    /// Number of scheduling events lost because the ring buffer was full; the statistics lack them.
    lost: u64,
    /// What does not work for now, though the daemon goes on: one sentence each.
    problems: Vec<String>,
    cpus: Vec<CpuOutput>,
    rooms: Vec<RoomOutput>,
    tasks: Vec<TaskOutput>,
}

/// A CPU that the daemon schedules.
#[derive(Debug, Serialize, JsonSchema)]
struct CpuOutput {
    cpu: u32,
    online: bool,
    /// The reserved task that it runs now.
    running: Option<u32>,
    /// Fraction used by reserved tasks in the last second.
    load: f64,
    /// Fraction available to reserved tasks.
    share: f64,
    reserve: f64,
}

/// Capacity of a set of CPUs.
#[derive(Debug, Serialize, JsonSchema)]
struct RoomOutput {
    cpus: String,
    /// Sum of the utilizations reserved within the set, in CPUs.
    reserved: f64,
    /// Largest utilization of a further task that would be admitted.
    free: f64,
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
struct TaskOutput {
    task: u32,
    name: String,
    process: u32,
    thread: u32,
    user: u32,
    cgroup: String,
    cost_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    cpus: String,
    priority: Option<u32>,
    /// `admitted`, or `demoted`: runs as ordinary work until it can be admitted again.
    state: String,
    guarantee: String,
    cpu: Option<u32>,
    jobs: u64,
    misses: u64,
    overruns: u64,
    tardiness_max_ns: u64,
    response_max_ns: u64,
    ran_ns: u64,
    /// CPU time of the last second, as a fraction of one CPU.
    load: f64,
}

/// Requests and shows the status once.
pub fn run(console: &mut Console) -> Result<Answer, Failure> {
    let status = daemon_client::connect()?.status();
    let status = status.map_err(|failure| daemon_client::of(&failure))?;
    show(&status, console)?;
    Ok(Answer::Yes)
}

/// Shows it as text or JSON.
pub fn show(status: &Status, console: &mut Console) -> Result<(), Failure> {
    match console.json {
        true => console.json_line(&StatusOutput::from(status)),
        false => console.text(&text(
            status,
            console.color,
            terminal_width().unwrap_or(WIDTH),
        )),
    }
}

fn text(status: &Status, color: bool, width: usize) -> String {
    let up = status.now.late_since(status.since);
    let mut text = format!(
        "{} for {}, guarantee {}; {}, {} missed{}\n\n",
        status.policy,
        Span::from_s(up.as_ns() / 1_000_000_000),
        status.guarantee,
        plural(status.tasks.len(), "task"),
        plural(status.misses as usize, "deadline"),
        if status.misses > 0 { " !" } else { "" },
    );
    if status.lost > 0 {
        text.push_str(&format!(
            "{} lost: the statistics are incomplete\n\n",
            plural(status.lost as usize, "scheduling event")
        ));
    }
    for problem in &status.problems {
        text.push_str(&format!("{}\n\n", printable(problem)));
    }
    text.push_str(&cpus::cpus(status, width));
    text.push('\n');
    text.push_str(&cpus::rooms(status, width));
    if !status.tasks.is_empty() {
        text.push('\n');
        text.push_str(&tasks(status, color, width));
    }
    text
}

/// The threads, in the order of their tasks.
fn tasks(status: &Status, color: bool, width: usize) -> String {
    let users = users::Users::of_this_machine();
    let row = |task: &Task| columns::row(task, &users);
    let rows: Vec<Vec<String>> = status.tasks.iter().map(row).collect();
    let shapes = columns::shapes();
    let layout = Layout::new(&shapes, &rows, width);
    let mut text = layout.line(&headings(&shapes)) + "\n";
    for (task, row) in status.tasks.iter().zip(&rows) {
        let cells = layout.columns().zip(layout.cells(row));
        let cells: Vec<String> = cells
            .map(|(column, cell)| match columns::look(column, task) {
                columns::Look::Alert if color => format!("\x1b[31m{cell}\x1b[0m"),
                columns::Look::Warning if color => format!("\x1b[33m{cell}\x1b[0m"),
                _ => cell,
            })
            .collect();
        text.push_str(cells.join(&layout.gap()).trim_end());
        text.push('\n');
    }
    text
}

impl From<&Status> for StatusOutput {
    fn from(status: &Status) -> Self {
        let cpu = |it: &Cpu| CpuOutput {
            cpu: it.cpu,
            online: it.online,
            running: it.running,
            load: it.load,
            share: it.share,
            reserve: it.reserve,
        };
        let room = |it: &Room| RoomOutput {
            cpus: it.cpus.clone(),
            reserved: it.reserved,
            free: it.free,
        };
        Self {
            schema_version: SCHEMA_VERSION,
            version: status.version.clone(),
            policy: status.policy.clone(),
            guarantee: status.guarantee.clone(),
            up_ns: status.now.late_since(status.since).as_ns(),
            deadline_misses: status.misses,
            lost: status.lost,
            problems: status.problems.clone(),
            cpus: status.cpus.iter().map(cpu).collect(),
            rooms: status.rooms.iter().map(room).collect(),
            tasks: status.tasks.iter().map(TaskOutput::from).collect(),
        }
    }
}

impl From<&Task> for TaskOutput {
    fn from(task: &Task) -> Self {
        let it = &task.reservation;
        Self {
            task: task.task,
            name: task.name.clone(),
            process: task.process,
            thread: task.thread,
            user: task.user,
            cgroup: task.cgroup.clone(),
            cost_ns: it.cost.as_ns(),
            period_ns: it.period.as_ns(),
            deadline_ns: it.deadline.unwrap_or(it.period).as_ns(),
            cpus: it.cpus.clone().unwrap_or_default(),
            priority: it.priority,
            state: match task.state {
                State::Admitted => "admitted".to_owned(),
                State::Demoted => "demoted".to_owned(),
            },
            guarantee: task.guarantee.clone(),
            cpu: task.cpu,
            jobs: task.jobs,
            misses: task.misses,
            overruns: task.overruns,
            tardiness_max_ns: task.tardiness_max.as_ns(),
            response_max_ns: task.response_max.as_ns(),
            ran_ns: task.ran.as_ns(),
            load: task.load,
        }
    }
}
