//! The data from which the script draws the schedule of one run: compact columns of integers.
//!
//! Times are nanoseconds. Ascending columns are written as differences, which are shorter.

use serde_json::{Value, json};
use shiftwork_model::JobId;
use shiftwork_trace::Segment;

use crate::excerpt::Excerpt;
use crate::run::Run;
use crate::timeline::{Absence, End, JobHistory, State, Timeline};

/// The JSON for one run. `lanes` are the tasks that have lanes at first.
pub(super) fn run(run: &Run<'_>, line: &Timeline, excerpt: &Excerpt, lanes: &[usize]) -> Value {
    let tasks: Vec<Value> = run
        .set
        .tasks
        .iter()
        .map(|task| json!([task.name, task.affinity.to_string()]))
        .collect();
    let windows: Vec<Value> = excerpt
        .windows
        .iter()
        .map(|(from, to)| json!([from.as_ns(), to.as_ns()]))
        .collect();
    json!({
        "policy": run.provenance.policy,
        "cpus": line.cpus.len(),
        "horizon": line.horizon.as_ns(),
        "windows": windows,
        "tasks": tasks,
        "lanes": lanes,
        "slices": slices(line),
        "jobs": jobs(line),
        "states": states(line),
        "shifts": shifts(line),
        "triggers": triggers(line),
        "away": away(line),
    })
}

/// Per CPU: `[task, number, start after the end before, length]`, flat.
fn slices(line: &Timeline) -> Vec<Vec<u64>> {
    let of_cpu = |slices: &Vec<Segment>| {
        let mut flat = Vec::new();
        let mut before = 0;
        for slice in slices {
            let (from, to) = (slice.from.as_ns(), slice.to.as_ns());
            let JobId { task, number } = slice.job;
            flat.extend([task.index() as u64, number, from - before, to - from]);
            before = to;
        }
        flat
    };
    line.cpus.iter().map(of_cpu).collect()
}

/// Per task: `[number, release after the release before, relative deadline, lifetime, end]`, flat;
/// `end` is 0 finished, 1 dropped, 2 unfinished, and 4 more for a miss.
fn jobs(line: &Timeline) -> Vec<Vec<u64>> {
    let of_task = |histories: &Vec<JobHistory>| {
        let mut flat = Vec::new();
        let mut before = 0;
        for history in histories {
            let release = history.release.as_ns();
            let end = match history.end {
                End::Finished(_) => 0,
                End::Dropped(_) => 1,
                End::Unfinished => 2,
            };
            let missed = u64::from(history.missed(line.horizon)) * 4;
            flat.extend([
                history.job.number,
                release - before,
                history.deadline.late_since(history.release).as_ns(),
                history
                    .end(line.horizon)
                    .late_since(history.release)
                    .as_ns(),
                end + missed,
            ]);
            before = release;
        }
        flat
    };
    line.tasks.iter().map(of_task).collect()
}

/// Per task: `[state, from, length]` of every stretch in which a job could not execute; 1 queued,
/// 2 suspended, 3 throttled, 4 waiting for a mutex, 5 the same on its CPU.
fn states(line: &Timeline) -> Vec<Vec<u64>> {
    let of_task = |histories: &Vec<JobHistory>| {
        let mut flat = Vec::new();
        for history in histories {
            for (from, to, state) in history.stretches(line.horizon) {
                let state = match state {
                    State::Ready => continue,
                    State::Queued => 1,
                    State::Suspended => 2,
                    State::Throttled => 3,
                    State::Blocked => 4,
                    State::Spinning => 5,
                };
                let length = to.late_since(from).as_ns();
                if length > 0 {
                    flat.extend([state, from.as_ns(), length]);
                }
            }
        }
        flat
    };
    line.tasks.iter().map(of_task).collect()
}

/// `[instant, task, number, from CPU, to CPU]`, flat.
fn shifts(line: &Timeline) -> Vec<u64> {
    line.shifts
        .iter()
        .flat_map(|shift| {
            let JobId { task, number } = shift.job;
            let (from, to) = (shift.from.index() as u64, shift.to.index() as u64);
            [shift.at.as_ns(), task.index() as u64, number, from, to]
        })
        .collect()
}

/// `[instant, triggering task, number, triggered task]`, flat.
fn triggers(line: &Timeline) -> Vec<u64> {
    line.triggers
        .iter()
        .flat_map(|made| {
            let JobId { task, number } = made.by;
            let (by, task) = (task.index() as u64, made.task.index() as u64);
            [made.at.as_ns(), by, number, task]
        })
        .collect()
}

/// Per CPU: `[reason, from, length]`, flat; 1 background, 2 offline, 3 taken by a higher scheduling class.
fn away(line: &Timeline) -> Vec<Vec<u64>> {
    line.away
        .iter()
        .map(|stretches| {
            stretches
                .iter()
                .flatten()
                .flat_map(|away| {
                    let why = match away.why {
                        Absence::Background => 1,
                        Absence::Offline => 2,
                        Absence::Taken => 3,
                    };
                    [
                        why,
                        away.from.as_ns(),
                        away.to.late_since(away.from).as_ns(),
                    ]
                })
                .collect()
        })
        .collect()
}
