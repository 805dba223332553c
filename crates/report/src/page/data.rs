//! The data from which the script draws the schedule of one run: compact columns of integers.
//!
//! Times are nanoseconds. Ascending columns are written as differences, which are shorter.

use serde_json::{Value, json};
use shiftwork_model::{Instant, JobId};
use shiftwork_trace::Segment;

use crate::misses::Misses;
use crate::run::{Limits, Run};
use crate::timeline::{Absence, End, JobHistory, State, Timeline};

/// The part of a run on a page: all data up to some instant, and after it the windows of the misses that are
/// explained one by one.
pub(super) struct Excerpt {
    /// Ascending and disjoint; the first starts at zero.
    pub windows: Vec<(Instant, Instant)>,
    /// Whether the excerpt is the whole run.
    pub whole: bool,
}

impl Excerpt {
    /// Selects about `limits.slices` slices, and half as many more around misses.
    pub fn of(line: &Timeline, misses: &Misses, limits: &Limits) -> Self {
        let mut starts: Vec<Instant> = line.cpus.iter().flatten().map(|slice| slice.from).collect();
        starts.sort_unstable();
        let horizon = line.horizon;
        let Some(&cut) = starts.get(limits.slices) else {
            return Self {
                windows: vec![(Instant::ZERO, horizon)],
                whole: true,
            };
        };
        let mut windows = vec![(Instant::ZERO, cut)];
        let mut spare = limits.slices / 2;
        for miss in &misses.first {
            let (from, to) = (
                miss.late.release,
                miss.late.until.max(miss.late.deadline).min(horizon),
            );
            let count = |at| starts.partition_point(|&start| start < at);
            let cost = count(to).saturating_sub(count(from));
            if to > cut && cost <= spare {
                windows.push((from, to));
                spare -= cost;
            }
        }
        Self {
            windows: merged(windows),
            whole: false,
        }
    }

    fn shows(&self, from: Instant, to: Instant) -> bool {
        let next = self.windows.partition_point(|&(_, end)| end < from);
        self.windows
            .get(next)
            .is_some_and(|&(start, _)| start <= to)
    }

    fn shows_slice(&self, slice: &Segment) -> bool {
        let next = self.windows.partition_point(|&(_, end)| end <= slice.from);
        self.windows
            .get(next)
            .is_some_and(|&(start, _)| start < slice.to)
    }
}

fn merged(mut windows: Vec<(Instant, Instant)>) -> Vec<(Instant, Instant)> {
    windows.sort_unstable();
    let mut merged: Vec<(Instant, Instant)> = Vec::new();
    for (from, to) in windows {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// The JSON for one run.
pub(super) fn run(run: &Run<'_>, line: &Timeline, excerpt: &Excerpt) -> Value {
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
        "slices": slices(line, excerpt),
        "jobs": jobs(line, excerpt),
        "states": states(line, excerpt),
        "shifts": shifts(line, excerpt),
        "triggers": triggers(line, excerpt),
        "away": away(line),
    })
}

/// Per CPU: `[task, number, start after the end before, length]`, flat.
fn slices(line: &Timeline, excerpt: &Excerpt) -> Vec<Vec<u64>> {
    let of_cpu = |slices: &Vec<Segment>| {
        let mut flat = Vec::new();
        let mut before = 0;
        for slice in slices.iter().filter(|slice| excerpt.shows_slice(slice)) {
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
fn jobs(line: &Timeline, excerpt: &Excerpt) -> Vec<Vec<u64>> {
    let of_task = |histories: &Vec<JobHistory>| {
        let mut flat = Vec::new();
        let mut before = 0;
        for history in shown(histories, line, excerpt) {
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

fn shown<'a>(
    histories: &'a [JobHistory],
    line: &'a Timeline,
    excerpt: &'a Excerpt,
) -> impl Iterator<Item = &'a JobHistory> {
    let end = |history: &JobHistory| history.end(line.horizon).max(history.deadline);
    histories
        .iter()
        .filter(move |history| excerpt.shows(history.release, end(history)))
}

/// Per task: `[state, from, length]` of every stretch in which a job could not execute; 1 queued,
/// 2 suspended, 3 throttled, 4 waiting for a mutex, 5 the same on its CPU.
fn states(line: &Timeline, excerpt: &Excerpt) -> Vec<Vec<u64>> {
    let of_task = |histories: &Vec<JobHistory>| {
        let mut flat = Vec::new();
        for history in shown(histories, line, excerpt) {
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
fn shifts(line: &Timeline, excerpt: &Excerpt) -> Vec<u64> {
    line.shifts
        .iter()
        .filter(|shift| excerpt.shows(shift.at, shift.at))
        .flat_map(|shift| {
            let JobId { task, number } = shift.job;
            let (from, to) = (shift.from.index() as u64, shift.to.index() as u64);
            [shift.at.as_ns(), task.index() as u64, number, from, to]
        })
        .collect()
}

/// `[instant, triggering task, number, triggered task]`, flat.
fn triggers(line: &Timeline, excerpt: &Excerpt) -> Vec<u64> {
    line.triggers
        .iter()
        .filter(|made| excerpt.shows(made.at, made.at))
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
