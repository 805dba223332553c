//! No job runs on two CPUs, no CPU runs two jobs, and a job runs only while it is ready.

use shiftwork_model::{CpuId, JobId, RecordKind, TaskId};

use super::Findings;
use super::state::State;

/// Checks a record by itself, independent of later records of its instant.
pub(super) fn check_record(state: &State, kind: &RecordKind, found: &mut Findings) {
    let (task, cpu) = names_in(kind);
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
    if let RecordKind::Switched { cpu, from, .. } = *kind
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

/// Checks the running jobs after the instant.
pub(super) fn check(state: &State, found: &mut Findings) {
    for cpu in (0..state.cpus()).map(CpuId::from_index) {
        let Some(job) = state.on(cpu) else { continue };
        let Some(task) = state.tasks.get(job.task.index()) else {
            continue;
        };
        // The state has only one CPU for each running task: the one that was switched to it last.
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

fn names_in(kind: &RecordKind) -> (Option<TaskId>, Option<CpuId>) {
    match *kind {
        RecordKind::Released { job, .. }
        | RecordKind::Ready { job, .. }
        | RecordKind::NotReady { job, .. }
        | RecordKind::Completed { job }
        | RecordKind::Interrupted { job, .. }
        | RecordKind::Spinning { job, .. }
        | RecordKind::Locked { job, .. }
        | RecordKind::Unlocked { job, .. }
        | RecordKind::BudgetSpent { job } => (Some(job.task), None),
        RecordKind::Switched { cpu, to, .. } => (to.map(|job| job.task), Some(cpu)),
        RecordKind::Replenished { task, .. }
        | RecordKind::Triggered { task, .. }
        | RecordKind::RankChanged { task, .. }
        | RecordKind::Entered { task }
        | RecordKind::Left { task }
        | RecordKind::Demoted { task, .. }
        | RecordKind::AffinitySet { task, .. }
        | RecordKind::PrioritySet { task, .. }
        | RecordKind::AttributesSet { task, .. } => (Some(task), None),
        RecordKind::CpuOffline { cpu }
        | RecordKind::CpuOnline { cpu }
        | RecordKind::BackgroundStarted { cpu }
        | RecordKind::BackgroundEnded { cpu }
        | RecordKind::CpuTaken { cpu }
        | RecordKind::CpuReturned { cpu } => (None, Some(cpu)),
        RecordKind::Refused { .. } => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use crate::check::testing::{edf, found};
    use crate::testing::{Script, cpu, job, set};
    use shiftwork_model::{Invariant, NotReadyReason, RecordKind, TaskSet};

    fn one_task() -> TaskSet {
        set(2, &[("a", "0-1")])
    }

    fn first(script: &Script) -> String {
        found(&one_task(), edf(Invariant::Weak), script, 50).swap_remove(0)
    }

    #[test]
    fn job_on_two_cpus_is_a_violation() {
        let script = Script::default()
            .at(1)
            .release(0, 1, 9)
            .switch(0, Some((0, 1)));
        let script = script.switch(1, Some((0, 1)));
        assert_eq!(
            first(&script),
            "at 1ns: job 1 of a runs on CPUs 0 and 1 at once"
        );
    }

    #[test]
    fn job_started_without_stopping_on_its_old_cpu_is_a_violation() {
        let script = Script::default()
            .at(1)
            .release(0, 1, 9)
            .switch(0, Some((0, 1)))
            .at(2);
        let script = script.switch(1, Some((0, 1)));
        assert_eq!(
            first(&script),
            "at 2ns: job 1 of a runs on CPUs 0 and 1 at once"
        );
    }

    #[test]
    fn job_on_two_cpus_within_an_instant_is_no_violation() {
        let script = Script::default()
            .at(1)
            .release(0, 1, 9)
            .switch(0, Some((0, 1)))
            .at(2);
        let script = script.switch(1, Some((0, 1))).switch(0, None);
        assert_eq!(
            found(&one_task(), edf(Invariant::Weak), &script, 9),
            [""; 0]
        );
    }

    #[test]
    fn switch_from_a_job_that_does_not_run_is_a_violation() {
        let script = Script::default().at(1).release(0, 1, 9);
        let switched = RecordKind::Switched {
            cpu: cpu(0),
            from: Some(job(0, 1)),
            to: None,
        };
        assert_eq!(
            first(&script.record(switched)),
            "at 1ns: CPU 0 is switched from job 1 of a, but runs nothing"
        );
    }

    #[test]
    fn running_job_that_is_not_ready_is_a_violation() {
        let running = Script::default()
            .at(1)
            .release(0, 1, 9)
            .switch(0, Some((0, 1)))
            .at(2);
        let suspended = running.clone().not_ready(0, 1, NotReadyReason::Suspended);
        assert_eq!(
            first(&suspended),
            "at 2ns: job 1 of a runs on CPU 0 and is not ready"
        );
        let finished = running.complete(0, 1);
        assert_eq!(
            first(&finished),
            "at 2ns: job 1 of a runs on CPU 0 and is not ready"
        );
        let never = Script::default().at(2).switch(0, Some((0, 7)));
        assert_eq!(
            first(&never),
            "at 2ns: job 7 of a runs on CPU 0 and is not ready"
        );
    }

    #[test]
    fn unknown_tasks_and_cpus_are_violations() {
        let script = Script::default().at(2).release(3, 1, 9);
        assert_eq!(
            first(&script),
            "at 2ns: a record names the task T3, and there are 1"
        );
        let script = Script::default()
            .at(2)
            .record(RecordKind::CpuOnline { cpu: cpu(2) });
        assert_eq!(
            first(&script),
            "at 2ns: a record names CPU 2, and there are 2"
        );
    }
}
