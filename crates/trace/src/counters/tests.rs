use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::statistics::SpanStatistics;
use crate::testing::{Script, at, job, random_run, set};
use shiftwork_model::{NotReadyReason, RandomStream, ResourceId, TaskSet};

fn count(set: &TaskSet, script: &Script, horizon: u64) -> RunSummary {
    let mut counters = Counters::new(set, set.platform.cpus);
    script.play(&mut counters);
    counters.finish(at(horizon))
}

fn one_task() -> TaskSet {
    set(2, &[("a", "0-1"), ("b", "0-1")])
}

#[test]
fn completion_at_the_horizon_counts() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 10)
        .switch(0, Some((0, 1)));
    let script = script.at(10).complete(0, 1);
    let summary = count(&one_task(), &script, 10);
    assert_eq!(
        (summary.jobs, summary.completed, summary.deadline_misses),
        (1, 1, 0)
    );
}

#[test]
fn release_at_the_horizon_does_not_count() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 10)
        .at(10)
        .release(0, 2, 20);
    let summary = count(&one_task(), &script, 10);
    assert_eq!(
        (summary.jobs, summary.completed, summary.deadline_misses),
        (1, 0, 1)
    );
}

#[test]
fn incomplete_job_counts_as_missed_only_if_due_by_the_horizon() {
    let script = Script::default().at(0).release(0, 1, 10).release(1, 1, 11);
    let summary = count(&one_task(), &script, 10);
    assert_eq!(summary.tasks[0].misses, 1);
    assert_eq!(summary.tasks[1].misses, 0);
}

#[test]
fn jobs_dropped_with_their_task_count_as_released_and_unfinished() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 10)
        .release(1, 1, 90)
        .at(5)
        .record(RecordKind::Left {
            task: TaskId::from_index(0),
        })
        .record(RecordKind::Left {
            task: TaskId::from_index(1),
        });
    let summary = count(&one_task(), &script, 50);
    assert_eq!(
        (summary.jobs, summary.completed, summary.deadline_misses),
        (2, 0, 1)
    );
}

#[test]
fn only_the_result_of_an_instant_counts() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 50)
        .switch(0, Some((0, 1)))
        .at(5)
        .switch(0, None)
        .switch(1, Some((0, 1)))
        .switch(1, None)
        .switch(0, Some((0, 1)));
    let summary = count(&one_task(), &script, 50);
    assert_eq!(
        (summary.preemptions, summary.migrations, summary.shifts),
        (0, 0, 0)
    );
}

#[test]
fn shift_counts_as_migration_and_not_as_preemption() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 50)
        .switch(0, Some((0, 1)));
    let script = script.at(5).switch(1, Some((0, 1))).switch(0, None);
    let summary = count(&one_task(), &script, 50);
    assert_eq!(
        (summary.preemptions, summary.migrations, summary.shifts),
        (0, 1, 1)
    );
}

#[test]
fn job_that_resumes_on_another_cpu_migrates_without_a_shift() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 50)
        .switch(0, Some((0, 1)));
    let script = script.at(5).switch(0, None).at(6).switch(1, Some((0, 1)));
    let summary = count(&one_task(), &script, 50);
    assert_eq!(
        (summary.preemptions, summary.migrations, summary.shifts),
        (1, 1, 0)
    );
}

#[test]
fn next_job_of_a_task_on_another_cpu_is_no_migration() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 50)
        .switch(0, Some((0, 1)));
    let script = script.at(5).complete(0, 1).switch(0, None);
    let script = script.release(0, 2, 60).switch(1, Some((0, 2)));
    let summary = count(&one_task(), &script, 50);
    assert_eq!(
        (summary.preemptions, summary.migrations, summary.shifts),
        (0, 0, 0)
    );
}

#[test]
fn suspension_does_not_count_as_preemption() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 50)
        .switch(0, Some((0, 1)))
        .at(5);
    let script = script
        .not_ready(0, 1, NotReadyReason::Suspended)
        .switch(0, None);
    assert_eq!(count(&one_task(), &script, 50).preemptions, 0);
}

#[test]
fn statistics_without_completed_jobs_are_null() {
    let script = Script::default().at(0).release(0, 1, 50);
    let json = count(&one_task(), &script, 20).to_json("g-edf", 4);
    assert!(json["tasks"][0]["response_ns"].is_null());
    assert!(json["tasks"][0]["tardiness_ns"].is_null());
}

#[test]
fn the_summary_has_the_documented_keys() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 5)
        .switch(0, Some((0, 1)))
        .at(7)
        .complete(0, 1)
        .switch(0, None);
    let set = set(1, &[("a", "0")]);
    let json = count(&set, &script, 20).to_json("g-edf", 2);
    let expected = serde_json::json!({
        "schema_version": 1, "policy": "g-edf", "cpus": 1, "horizon_ns": 20, "jobs": 1,
        "completed": 1, "events": 2, "deadline_misses": 1, "preemptions": 0,
        "migrations": 0, "shifts": 0,
        "tasks": [{
            "name": "a", "jobs": 1, "completed": 1, "misses": 1,
            "response_ns": {"min": 7, "mean": 7, "p99": 7, "max": 7},
            "tardiness_ns": {"max": 2, "mean": 2},
            "preemptions": 0, "migrations": 0, "shifts": 0,
        }],
    });
    assert_eq!(json, expected);
}

/// The counting rules of the design, executed on a list of states.
fn definition(script: &Script, tasks: usize, horizon: u64) -> Vec<TaskSummary> {
    let mut oracle = Oracle {
        tasks: vec![empty_summary(); tasks],
        ..Oracle::default()
    };
    let before_horizon = script
        .records
        .iter()
        .filter(|record| record.at < at(horizon));
    let mut instants: Vec<_> = before_horizon.map(|record| record.at).collect();
    instants.dedup();
    for instant in instants {
        let before = (oracle.on.clone(), oracle.last.clone());
        let now = script.records.iter().filter(|record| record.at == instant);
        now.for_each(|record| oracle.take(record.at, &record.kind));
        oracle.compare(&before.0, &before.1);
    }
    for record in script
        .records
        .iter()
        .filter(|record| record.at == at(horizon))
    {
        if matches!(record.kind, RecordKind::Completed { .. }) {
            oracle.take(record.at, &record.kind);
        }
    }
    oracle.summaries(horizon)
}

fn empty_summary() -> TaskSummary {
    TaskSummary {
        name: String::new(),
        jobs: 0,
        completed: 0,
        misses: 0,
        response: None,
        tardiness_max_ns: None,
        tardiness_mean_ns: None,
        preemptions: 0,
        migrations: 0,
        shifts: 0,
        spinning: Span::ZERO,
        inversions: None,
    }
}

#[derive(Default)]
struct Oracle {
    tasks: Vec<TaskSummary>,
    released: BTreeMap<JobId, (Instant, Instant)>,
    finished: BTreeMap<JobId, Instant>,
    ready: BTreeSet<JobId>,
    on: BTreeMap<usize, JobId>,
    last: BTreeMap<JobId, usize>,
}

impl Oracle {
    fn take(&mut self, at: Instant, kind: &RecordKind) {
        match *kind {
            RecordKind::Released { job, deadline } => {
                self.released.insert(job, (at, deadline));
            }
            RecordKind::Ready { job, .. } => {
                self.ready.insert(job);
            }
            RecordKind::NotReady { job, .. } => {
                self.ready.remove(&job);
            }
            RecordKind::Completed { job } => {
                self.ready.remove(&job);
                self.finished.insert(job, at);
            }
            RecordKind::Left { task } => self.ready.retain(|job| job.task != task),
            RecordKind::Switched { cpu, to, .. } => {
                self.on.remove(&cpu.index());
                to.map(|job| self.on.insert(cpu.index(), job));
            }
            _ => {}
        }
    }

    fn compare(&mut self, before: &BTreeMap<usize, JobId>, last: &BTreeMap<JobId, usize>) {
        let place = |on: &BTreeMap<usize, JobId>, job: &JobId| {
            on.iter()
                .find(|(_, other)| *other == job)
                .map(|(&cpu, _)| cpu)
        };
        for (&cpu, job) in before {
            let summary = &mut self.tasks[job.task.index()];
            match place(&self.on, job) {
                None => summary.preemptions += u64::from(self.ready.contains(job)),
                Some(now) => summary.shifts += u64::from(now != cpu),
            }
        }
        for (&cpu, &job) in &self.on {
            let moved = last.get(&job).is_some_and(|&other| other != cpu);
            self.tasks[job.task.index()].migrations += u64::from(moved);
            self.last.insert(job, cpu);
        }
    }

    fn summaries(mut self, horizon: u64) -> Vec<TaskSummary> {
        for index in 0..self.tasks.len() {
            let (mut responses, mut tardiness) = (Vec::new(), Vec::new());
            let summary = &mut self.tasks[index];
            for (job, (release, deadline)) in &self.released {
                if job.task.index() != index {
                    continue;
                }
                summary.jobs += 1;
                let finish = self.finished.get(job);
                let missed = finish.map_or(*deadline <= at(horizon), |at| at > deadline);
                summary.misses += u64::from(missed);
                if let Some(finish) = finish {
                    summary.completed += 1;
                    responses.push(finish.late_since(*release).as_ns());
                    tardiness.push(finish.late_since(*deadline).as_ns());
                }
            }
            responses.sort_unstable();
            summary.response = responses.last().map(|&max_ns| SpanStatistics {
                min_ns: responses[0],
                mean_ns: mean(&responses),
                p99_ns: responses[(responses.len() * 99).div_ceil(100) - 1],
                max_ns,
            });
            summary.tardiness_max_ns = tardiness.iter().max().copied();
            summary.tardiness_mean_ns = (!tardiness.is_empty()).then(|| mean(&tardiness));
        }
        self.tasks
    }
}

fn mean(values: &[u64]) -> u64 {
    let exact = values.iter().sum::<u64>() as f64 / values.len() as f64;
    exact.round() as u64
}

#[test]
fn every_count_equals_the_definition() {
    for seed in 1..=1_000 {
        let mut random = RandomStream::new(seed, 0, 0);
        let (tasks, cpus) = (1 + random.below(4), 1 + random.below(3));
        let script = random_run(&mut random, tasks as usize, cpus as usize, 120);
        let horizon = script.records.last().map_or(1, |record| record.at.as_ns()) + random.below(2);
        let names = [("", "0"); 4];
        let mut summary = count(
            &set(cpus as usize, &names[..tasks as usize]),
            &script,
            horizon,
        );
        let expected = definition(&script, tasks as usize, horizon);
        assert_eq!(summary.tasks, expected, "seed {seed}, horizon {horizon}");
        let totals = (summary.jobs, summary.deadline_misses, summary.shifts);
        summary.tasks.clear();
        let sum = |of: fn(&TaskSummary) -> u64| expected.iter().map(of).sum::<u64>();
        assert_eq!(
            totals,
            (sum(|t| t.jobs), sum(|t| t.misses), sum(|t| t.shifts))
        );
    }
}

#[test]
fn contradictory_records_never_panic() {
    for seed in 1..=500 {
        let mut random = RandomStream::new(seed, 0, 0);
        let records = crate::testing::noise(&mut random, 5, 9, 300);
        let set = set(4, &[("a", "0"), ("b", "0"), ("c", "0")]);
        let mut counters = Counters::new(&set, 4);
        let mut table = crate::JobTable::new(&set, Vec::new());
        for record in &records {
            counters.record(record.at, &record.kind);
            table.record(record.at, &record.kind);
        }
        let horizon = records.last().map_or(Instant::ZERO, |record| record.at);
        let summary = counters.finish(horizon);
        assert!(summary.completed <= summary.jobs + 300, "seed {seed}");
        table.finish(horizon).unwrap();
    }
}

#[test]
fn spinning_counts_until_the_mutex_is_locked_or_the_run_ends() {
    let (job, resource) = (job(0, 1), ResourceId::from_index(0));
    let script = Script::default()
        .at(0)
        .release(0, 1, 40)
        .switch(0, Some((0, 1)))
        .at(3)
        .record(RecordKind::Spinning { job, resource })
        .at(7)
        .record(RecordKind::Locked { job, resource })
        .at(9)
        .record(RecordKind::Spinning { job, resource });
    let summary = count(&one_task(), &script, 12);
    assert_eq!(summary.tasks[0].spinning.as_ns(), 4 + 3);
    assert_eq!(summary.to_json("p-fp", 0)["tasks"][0]["spinning_ns"], 7);
}
