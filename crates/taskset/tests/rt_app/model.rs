//! A task of a task set that has a CPU whenever it wants one: each job does its phases in turn, from its
//! release on or from the end of the job before it, whichever is later.

use shiftwork_model::{Arrival, Phase, Task, Work};

use super::interpreter::{Busy, until};

/// When the task computes before `horizon`, in µs.
pub fn execute(task: &Task, horizon: i64) -> Vec<Busy> {
    let us = |ns: u64| {
        assert_eq!(ns % 1_000, 0, "the file is in whole microseconds");
        (ns / 1_000) as i64
    };
    let run = |length: &shiftwork_model::Span| vec![Phase::Run(*length)];
    let bodies: Vec<Vec<Phase>> = match &task.work {
        Work::Cost => vec![run(&task.cost)],
        Work::Constant(length) => vec![run(length)],
        Work::Trace(lengths) => lengths.iter().map(run).collect(),
        Work::Phases(phases) => vec![phases.clone()],
        Work::Uniform(..) => panic!("rt-app has no random work"),
    };
    let offset = us(task.offset.as_ns());
    let period = us(task.period.as_ns());
    let releases: Vec<i64> = match &task.arrival {
        Arrival::Periodic => (0..=horizon / period).map(|job| job * period).collect(),
        Arrival::Releases(releases) => releases.iter().map(|at| us(at.as_ns())).collect(),
        Arrival::Sporadic | Arrival::Triggered(_) => panic!("imported threads arrive by time"),
    };
    let (mut now, mut busy) = (0, Vec::new());
    for (release, body) in releases.iter().zip(bodies.iter().cycle()) {
        now = now.max(offset + release);
        for phase in body {
            match phase {
                Phase::Run(length) => {
                    busy.push((now, now + us(length.as_ns())));
                    now += us(length.as_ns());
                }
                Phase::Sleep(length) => now += us(length.as_ns()),
                Phase::Lock(_) | Phase::Unlock(_) | Phase::Trigger(_) => {}
            }
        }
    }
    until(busy, horizon)
}
