use shiftwork_model::{Instant, NotReadyReason, RandomStream, RecordKind, Span, TaskId, TaskSet};

use super::*;
use crate::testing::{Script, at, cpu, noise, set};

const WINDOW: u64 = 200;

fn verdict(set: &TaskSet, judge: Judge<'_>, script: &Script, horizon: u64) -> Verdict {
    let basis = Basis {
        order: Order::Edf,
        packing: None,
        prompt: &[true; 3],
        window: Span::from_ns(WINDOW),
        horizon: at(horizon),
    };
    replay(set, &basis, judge, &script.records)
}

fn found(verdict: &Verdict) -> Vec<String> {
    let all = verdict.disagreements.iter();
    all.map(|it| verdict.describe(it)).collect()
}

/// A reference that always selects the same tasks, and returns the given answer for every event.
struct Fixed(Vec<usize>, bool);

impl Reference for Fixed {
    fn apply(&mut self, _: Instant, _: &[RecordKind]) -> bool {
        self.1
    }

    fn selected(&self, tasks: &mut Vec<TaskId>) {
        tasks.extend(self.0.iter().map(|&index| TaskId::from_index(index)));
    }
}

fn one_cpu() -> TaskSet {
    set(1, &[("a", "0"), ("b", "0")])
}

#[test]
fn selected_job_that_does_not_run_within_the_window_is_a_stall() {
    let script = |begins: u64| {
        let script = Script::default().at(1_000).release(0, 1, 9_000);
        script.at(begins).switch(0, Some((0, 1)))
    };
    let judged = |begins| {
        let mut reference = Fixed(vec![0], true);
        verdict(
            &one_cpu(),
            Judge::SameSet(&mut reference),
            &script(begins),
            5_000,
        )
    };
    assert!(judged(1_200).holds());
    assert_eq!(
        found(&judged(1_201)),
        ["at 1us for 201ns: job 1 of a did not run, and CPU 0 was idle"]
    );
    assert_eq!(judged(1_201).stalls, 1);
}

#[test]
fn unselected_running_job_is_a_disagreement() {
    let script = Script::default()
        .at(1_000)
        .release(0, 1, 9_000)
        .release(1, 1, 8_000);
    let script = script.switch(0, Some((0, 1)));
    let mut reference = Fixed(vec![1], true);
    let found_by_set = verdict(&one_cpu(), Judge::SameSet(&mut reference), &script, 5_000);
    let expected = ["at 1us for 4us: job 1 of a ran, and job 1 of b should have"];
    assert_eq!(found(&found_by_set), expected);
    assert_eq!(
        (found_by_set.stalls, found_by_set.longest.as_ns()),
        (0, 4_000)
    );
    let found_by_rule = verdict(&one_cpu(), Judge::WeakInvariant, &script, 5_000);
    assert_eq!(found(&found_by_rule), expected);
    assert!(verdict(&one_cpu(), Judge::WorkConserving, &script, 5_000).holds());
}

#[test]
fn jobs_of_one_deadline_that_became_ready_within_a_window_may_be_exchanged() {
    let judged = |second: u64| {
        let script = Script::default().at(1_000).release(0, 1, 9_000);
        let script = script
            .at(second)
            .release(1, 1, 9_000)
            .switch(0, Some((1, 1)));
        let mut reference = Fixed(vec![0], true);
        verdict(&one_cpu(), Judge::SameSet(&mut reference), &script, 5_000)
    };
    assert!(judged(1_200).holds());
    assert!(!judged(1_201).holds());
}

#[test]
fn deviation_during_continual_decisions_is_reported_after_ten_windows() {
    let judged = |last: u64| {
        let mut script = Script::default().at(1_000).release(0, 1, 90_000);
        for event in (1_100..last).step_by(100) {
            script = script.at(event).ready(1, event, 99_000);
        }
        let script = script.at(last).switch(0, Some((0, 1)));
        let mut reference = Fixed(vec![0], true);
        verdict(
            &one_cpu(),
            Judge::SameSet(&mut reference),
            &script,
            last + 1,
        )
    };
    assert!(judged(2_900).holds());
    assert!(!judged(3_400).holds());
}

#[test]
fn unnoticed_release_is_a_stall() {
    let released = |deadline| RecordKind::Released {
        job: crate::testing::job(0, 1),
        deadline: at(deadline),
    };
    let script = |noticed: u64| {
        let script = Script::default().at(1_000).record(released(9_000));
        script
            .at(noticed)
            .ready(0, 1, 9_000)
            .switch(0, Some((0, 1)))
    };
    let judged = |script: &Script| verdict(&one_cpu(), Judge::WeakInvariant, script, 5_000);
    assert!(judged(&script(1_200)).holds());
    let late = "at 1us for 201ns: the release of job 1 of a was not noticed";
    assert_eq!(found(&judged(&script(1_201))), [late]);
    let never = Script::default().at(1_000).record(released(9_000));
    let never = judged(&never);
    assert_eq!(
        found(&never),
        ["at 1us for 4us: the release of job 1 of a was not noticed"]
    );
    assert_eq!(never.stalls, 1);
}

#[test]
fn job_scheduled_by_a_wrong_deadline_is_a_disagreement() {
    let script = Script::default().at(1_000).record(RecordKind::Released {
        job: crate::testing::job(0, 1),
        deadline: at(9_000),
    });
    let script = script.ready(0, 1, 8_000).switch(0, Some((0, 1)));
    assert_eq!(
        found(&verdict(&one_cpu(), Judge::WeakInvariant, &script, 5_000)),
        ["at 1us: job 1 of a was scheduled by a deadline or priority that is not its own"]
    );
}

#[test]
fn offline_cpu_may_idle_and_throttled_job_may_wait() {
    let script = Script::default()
        .at(1_000)
        .record(RecordKind::CpuTaken { cpu: cpu(0) });
    let script = script.release(0, 1, 9_000);
    let judged = |script: &Script| verdict(&one_cpu(), Judge::WeakInvariant, script, 9_000);
    assert!(judged(&script).holds());
    let script = script
        .at(3_000)
        .record(RecordKind::CpuReturned { cpu: cpu(0) });
    assert!(!judged(&script).holds());
    let script = script.at(3_100).not_ready(0, 1, NotReadyReason::Throttled);
    assert!(judged(&script).holds());
}

#[test]
fn non_preemptive_rule_requires_most_urgent_start_and_no_preemption() {
    let start = Script::default()
        .at(1_000)
        .release(0, 1, 9_000)
        .switch(0, Some((0, 1)));
    let both = start.at(1_100).release(1, 1, 5_000);
    let judged = |script: &Script| found(&verdict(&one_cpu(), Judge::NonPreemptive, script, 8_000));
    assert_eq!(judged(&both), [""; 0]);
    let preempted = both.clone().at(1_500).switch(0, Some((1, 1)));
    assert_eq!(
        judged(&preempted),
        ["at 1.5us for 6.5us: job 1 of a did not run and should have"]
    );
    let tasks = set(1, &[("a", "0"), ("b", "0"), ("c", "0")]);
    let three = both.release(2, 1, 3_000).at(2_000).complete(0, 1);
    let chosen = |task| {
        let script = three.clone().switch(0, Some((task, 1)));
        found(&verdict(&tasks, Judge::NonPreemptive, &script, 2_300))
    };
    assert_eq!(chosen(2), [""; 0]);
    assert_eq!(
        chosen(1),
        ["at 2us for 300ns: job 1 of b ran, and job 1 of c should have"]
    );
}

#[test]
fn task_must_start_at_a_quantum_boundary() {
    let judged = |begins: u64, phase: u64| {
        let script = Script::default().at(500).release(0, 1, 9_000);
        let script = script
            .at(begins)
            .switch(0, Some((0, 1)))
            .at(4_000)
            .complete(0, 1);
        let script = script.switch(0, None);
        let judge = Judge::AtBoundaries(Span::from_ns(1_000), vec![Span::from_ns(phase)]);
        verdict(&one_cpu(), judge, &script, 8_000).holds()
    };
    assert!(judged(2_000, 0) && judged(2_200, 0));
    assert!(!judged(2_201, 0));
    assert!(judged(2_500, 500) && !judged(2_400, 500));
}

#[test]
fn next_job_of_a_task_may_use_the_rest_of_the_quantum() {
    let judged = |task: usize| {
        let script = Script::default().at(1_000).release(0, 1, 9_000);
        let script = script
            .switch(0, Some((0, 1)))
            .at(1_500)
            .complete(0, 1)
            .switch(0, None);
        let script = script.at(1_510).release(task, 2, 9_900);
        let judge = Judge::AtBoundaries(Span::from_ns(1_000), Vec::new());
        verdict(&one_cpu(), judge, &script.switch(0, Some((task, 2))), 1_990).holds()
    };
    assert!(judged(0));
    assert!(!judged(1));
}

#[test]
fn random_records_never_panic_and_reports_are_bounded() {
    for seed in 1..=200 {
        let mut random = RandomStream::new(seed, 3, 0);
        let mut script = Script::default();
        script.records = noise(&mut random, 5, 9, 300);
        let set = set(4, &[("a", "0"), ("b", "0-1"), ("c", "2-3")]);
        let mut reference = Fixed(vec![0, 1, 2], true);
        for judge in [
            Judge::SameSet(&mut reference),
            Judge::WeakInvariant,
            Judge::NonPreemptive,
            Judge::WorkConserving,
            Judge::AtBoundaries(Span::ZERO, Vec::new()),
        ] {
            let found = verdict(&set, judge, &script, u64::MAX - 1);
            assert!(
                found.disagreements.len() <= crate::check::VIOLATIONS_MAX,
                "seed {seed}"
            );
        }
    }
}
