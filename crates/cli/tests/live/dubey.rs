//! R. Dubey, V. Banerjee, S. Hounsinou, G. Bloom, "Work-in-Progress: Strong APA Scheduling in a
//! Real-Time Operating System", EMSOFT 2021 Companion: Table 1 in shape, with a hundredth of the work.

use shiftwork_model::{Arrival, Instant, Span, TaskSet};

use crate::command::{THREE_CPUS, number, run_with_trace};
use crate::common::{Done, run as simulate};

/// The work of each task; 3.1 s in the paper.
const C: Span = Span::from_ms(31);
/// What a real machine may take for what a simulated one does in no time.
const SLACK: Span = Span::from_ms(1);
const HORIZON_MS: u64 = 100;
const TASKS: [&str; 4] = ["T1", "T2", "T3", "T4"];

/// T3 starts at once, though its only CPU is busy, and T4 waits for T1 instead. Under the weak
/// invariant, simulated, T3 waits for T1.
pub fn t3_starts_at_once_and_t4_waits() -> Result<(), String> {
    let set = a_hundredth_of_fig_1()?;
    let horizon = Instant::ZERO + Span::from_ms(HORIZON_MS);
    let (json, trace) = run_with_trace(&set, "strong-fp", HORIZON_MS, &THREE_CPUS)?;
    let weak = simulate(&set, "weak-fp", horizon);
    let strong = simulate(&set, "strong-fp", horizon);
    let live = Done {
        records: trace.records,
        ..simulate(&set, "strong-fp", horizon)
    };
    let waits = response_and_turnaround(&weak, &set, "T3")?.0;
    if waits < C.saturating_sub(SLACK + SLACK) {
        return Err(format!("under weak-fp T3 starts after {waits}"));
    }
    println!("response and turnaround: weak-fp simulated, strong-fp simulated, strong-fp live");
    for task in TASKS {
        let of = |done: &Done| response_and_turnaround(done, &set, task);
        let (weak, strong, live) = (of(&weak)?, of(&strong)?, of(&live)?);
        println!("{task}: {weak:?}, {strong:?}, {live:?}");
        for (expected, found) in [(strong.0, live.0), (strong.1, live.1)] {
            if expected.max(found) - expected.min(found) > SLACK {
                return Err(format!("{task}: {found} live and {expected} simulated"));
            }
        }
    }
    // T1 and T2 are finished at almost the same time. If T2 is first, T1 moves on to its CPU for that
    // moment, and T4 begins earlier.
    match number(&json, "/decided_shifts")? {
        1 | 2 => Ok(()),
        shifts => Err(format!("{shifts} shifts were made; one makes room for T3")),
    }
}

fn a_hundredth_of_fig_1() -> Result<TaskSet, String> {
    let text = include_str!("../../../../examples/dubey-2021/fig1.toml");
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
