//! No job runs on two CPUs, no CPU runs two jobs, and a job runs only while it is ready.

use shiftwork_model::{CpuId, Happening, JobId, TaskId};

use super::Findings;
use super::state::State;

/// Judges what is wrong with a record whatever follows at its instant.
pub(super) fn judge_fact(state: &State, what: &Happening, found: &mut Findings) {
    let (task, cpu) = names_in(what);
    if let Some(task) = task.filter(|task| task.index() >= state.tasks.len()) {
        found.add(state.now(), || {
            format!(
                "a record names the task {task:?}, and there are {}",
                state.tasks.len()
            )
        });
    }
    if let Some(cpu) = cpu.filter(|cpu| cpu.index() >= state.cpus()) {
        found.add(state.now(), || {
            format!("a record names CPU {cpu}, and there are {}", state.cpus())
        });
        return;
    }
    if let Happening::Switched { cpu, from, .. } = *what
        && from != state.on(cpu)
    {
        let name = |job: Option<JobId>| job.map_or("nothing".into(), |job| state.name(job));
        found.add(state.now(), || {
            format!(
                "CPU {cpu} is switched from {}, but runs {}",
                name(from),
                name(state.on(cpu))
            )
        });
    }
}

/// Judges who runs after the instant.
pub(super) fn judge(state: &State, found: &mut Findings) {
    for cpu in (0..state.cpus()).map(CpuId::from_index) {
        let Some(job) = state.on(cpu) else { continue };
        let Some(task) = state.tasks.get(job.task.index()) else {
            continue;
        };
        // A task is noted to run on one CPU only: the one that was switched to it last.
        let elsewhere = task
            .runs
            .filter(|&(number, other)| number == job.number && other != cpu);
        if let Some((_, other)) = elsewhere {
            found.add(state.now(), || {
                format!("{} runs on CPUs {cpu} and {other} at once", state.name(job))
            });
        }
        if task.ready != Some(job.number) {
            found.add(state.now(), || {
                format!("{} runs on CPU {cpu} and is not ready", state.name(job))
            });
        }
    }
}

fn names_in(what: &Happening) -> (Option<TaskId>, Option<CpuId>) {
    match *what {
        Happening::Released { job, .. }
        | Happening::Ready { job, .. }
        | Happening::NotReady { job, .. }
        | Happening::Completed { job }
        | Happening::BudgetSpent { job } => (Some(job.task), None),
        Happening::Switched { cpu, to, .. } => (to.map(|job| job.task), Some(cpu)),
        Happening::Replenished { task, .. }
        | Happening::Entered { task }
        | Happening::Left { task }
        | Happening::AffinitySet { task, .. }
        | Happening::PrioritySet { task, .. }
        | Happening::AttributesSet { task, .. } => (Some(task), None),
        Happening::CpuOffline { cpu }
        | Happening::CpuOnline { cpu }
        | Happening::BackgroundStarted { cpu }
        | Happening::BackgroundEnded { cpu } => (None, Some(cpu)),
        Happening::Refused { .. } => (None, None),
    }
}
