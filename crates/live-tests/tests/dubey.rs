//! R. Dubey, V. Banerjee, S. Hounsinou, G. Bloom, "Work-in-Progress: Strong APA Scheduling in a
//! Real-Time Operating System", EMSOFT 2021 Companion: Table 1 in shape, with a hundredth of the work.

use shiftwork_model::{Arrival, Instant, Span, TaskSet};

use crate::command::{THREE_CPUS, number, run_with_trace};
use crate::common::{Done, run as simulate};

/// What a real machine may take for what a simulated one does in no time.
const SLACK: Span = Span::from_ms(1);
const HORIZON_MS: u64 = 100;
const TASKS: [&str; 4] = ["T1", "T2", "T3", "T4"];

/// T3 starts at once, though its only CPU is busy, and T4 waits for T1 instead; under the weak invariant
/// T3 waits for T1. All as simulated, wherever it is decided.
pub fn table_1_of_dubey_et_al_holds_live() -> Result<(), String> {
    let set = a_hundredth_of_fig_1()?;
    let shifts = [
        as_simulated(&set, "strong-fp", "kernel")?,
        as_simulated(&set, "strong-fp", "agent")?,
    ];
    // T1 and T2 are finished at almost the same time. If T2 is first, T1 moves on to its CPU for that
    // moment, and T4 begins earlier.
    if shifts.iter().any(|shifts| !(1..=2).contains(shifts)) {
        return Err(format!(
            "{shifts:?} shifts were made; one makes room for T3"
        ));
    }
    match as_simulated(&set, "weak-fp", "agent")? {
        0 => Ok(()),
        shifts => Err(format!("{shifts} shifts were made under weak-fp")),
    }
}

/// The same where fixed priorities carry out.
pub fn table_1_of_dubey_et_al_holds_under_fifo() -> Result<(), String> {
    let set = a_hundredth_of_fig_1()?;
    let shifts = ["strong-fp", "weak-fp"].map(|policy| as_simulated(&set, policy, "fifo"));
    match shifts {
        [Ok(1..=2), Ok(0)] => Ok(()),
        other => Err(format!("shifts under strong-fp and weak-fp: {other:?}")),
    }
}

/// How many shifts were decided.
fn as_simulated(set: &TaskSet, policy: &str, machine: &str) -> Result<u64, String> {
    let on = [&THREE_CPUS[..], &["--machine", machine]].concat();
    let horizon = Instant::ZERO + Span::from_ms(HORIZON_MS);
    let (json, trace) = run_with_trace(set, policy, HORIZON_MS, &on)?;
    let simulated = simulate(set, policy, horizon);
    let live = Done {
        records: trace.records,
        ..simulate(set, policy, horizon)
    };
    println!("{policy} on {machine}: response and turnaround, simulated and live");
    for task in TASKS {
        let of = |done: &Done| response_and_turnaround(done, set, task);
        let (simulated, live) = (of(&simulated)?, of(&live)?);
        println!("{task}: {simulated:?}, {live:?}");
        for (expected, found) in [(simulated.0, live.0), (simulated.1, live.1)] {
            if expected.max(found) - expected.min(found) > SLACK {
                return Err(format!("{task}: {found} live and {expected} simulated"));
            }
        }
    }
    number(&json, "/decided_shifts")
}

fn a_hundredth_of_fig_1() -> Result<TaskSet, String> {
    let text = include_str!("../../../examples/dubey-2021/fig1.toml");
    let mut set = shiftwork_taskset::read(text).map_err(|error| error.to_string())?;
    for task in &mut set.tasks {
        for span in [&mut task.cost, &mut task.period, &mut task.deadline] {
            *span = Span::from_ns(span.as_ns() / 100);
        }
    }
    Ok(set)
}

/// From the release of the task's job to its first running, and to its finish.
fn response_and_turnaround(done: &Done, set: &TaskSet, task: &str) -> Result<(Span, Span), String> {
    let id = set.find(task).ok_or("no such task")?;
    let released = match &set.tasks[id.index()].arrival {
        Arrival::Releases(at) => at.first().copied().unwrap_or(Instant::ZERO),
        _ => Instant::ZERO,
    };
    let since = |at: Option<Instant>| at.and_then(|at| at.since(released));
    let times = since(done.start(set, task, 1)).zip(since(done.finish(set, task, 1)));
    times.ok_or_else(|| format!("{task} does not start and finish"))
}
