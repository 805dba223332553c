//! Scenario and overhead files: what they mean.
#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_model::{
    Affinity, CpuId, Instant, LinearCost, Overheads, Priority, RandomStream, Span, TaskId,
};
use shiftwork_taskset::overheads::{self, OverheadFile, Use};
use shiftwork_taskset::scenario::{self, Expectation, StepEvent};

#[test]
fn a_scenario_has_tasks_events_and_expectations() {
    let scenario = scenario::read(include_str!("good/scenario.toml")).unwrap();
    let [t0, t1, t2] = [0, 1, 2].map(TaskId::from_index);
    let at = |ms| Instant::ZERO + Span::from_ms(ms);
    assert_eq!(scenario.policy, "strong-fp");
    assert_eq!(scenario.set.platform.clusters.len(), 2);
    assert_eq!(scenario.set.tasks[0].priority, Priority::new(1));
    assert_eq!(scenario.set.tasks[1].affinity.cpus().len(), 2);
    assert_eq!(scenario.set.tasks[2].cost, Span::from_ms(1));
    assert_eq!(scenario.deadlines, [Instant::NEVER, at(20), Instant::NEVER]);
    let events: Vec<StepEvent> = scenario.steps.iter().map(|step| step.event).collect();
    let cpu = CpuId::from_index(1);
    let expected = [
        StepEvent::Wake(t1),
        StepEvent::Wake(t0),
        StepEvent::Block(t1),
        StepEvent::SetAffinity(t0, Affinity::pinned(cpu)),
        StepEvent::SetPriority(t0, Priority::new(9).unwrap()),
        StepEvent::SetDeadline(t2, at(5)),
        StepEvent::Leave(t0),
        StepEvent::Enter(t0),
        StepEvent::CpuOffline(cpu),
        StepEvent::CpuOnline(cpu),
    ];
    assert_eq!(events, expected);
    let second = &scenario.steps[1];
    let cpus = [Expectation::Task(t0), Expectation::Anything];
    assert_eq!(second.expect.as_deref(), Some(&cpus[..]));
    assert_eq!(second.expect_set.as_deref(), Some(&[t0, t1][..]));
    assert_eq!(second.place.line, 25);
    assert_eq!(scenario.steps[2].expect, None);
}

#[test]
fn overheads_are_constant_or_linear_and_by_cache_distance() {
    let file = overheads::read(include_str!("good/overheads.toml")).unwrap();
    let cost = |base_ns, per_task_ns| LinearCost {
        base: Span::from_ns(base_ns),
        per_task: Span::from_ns(per_task_ns),
    };
    let worst = file.find(Use::Worst, "g-edf").unwrap();
    assert_eq!(worst.release, cost(2_000, 0));
    assert_eq!(worst.schedule, cost(55_200, 260));
    assert_eq!(worst.switch, cost(0, 10));
    assert_eq!(worst.preemption, [cost(40_000, 0)]);
    assert_eq!(worst.migration, [cost(50_000, 0), cost(90_000, 1_000)]);
    assert_eq!(file.find(Use::Worst, "G-EDF"), Some(worst));
    assert_eq!(file.find(Use::Worst, "CEm"), Some(worst));
    assert_eq!(file.find(Use::Worst, "HEm"), None);
    assert_eq!(file.find(Use::Average, "g-edf"), None);
    assert_eq!(
        file.find(Use::Average, "P-EDF").unwrap().preemption,
        [cost(1_000, 0)]
    );
}

#[test]
fn overheads_that_are_written_are_read_as_they_were() {
    for seed in 1..=500 {
        let file = any_overheads(seed);
        let text = overheads::write(&file);
        let read = overheads::read(&text).map_err(|error| error.to_string());
        assert_eq!(read, Ok(file), "seed {seed}:\n{text}");
    }
}

/// Files with every kind of cost, of which a third is nothing.
fn any_overheads(seed: u64) -> OverheadFile {
    let mut random = RandomStream::new(seed, 0, 0);
    let mut below = move |bound: u64| random.below(bound);
    let mut file = OverheadFile {
        name: ["", "a \"machine\"", "\u{7}\n\\"][below(3) as usize].to_owned(),
        ..OverheadFile::default()
    };
    for policy in ["g-edf", "a policy", "[worst.x]", ""] {
        for purpose in [Use::Worst, Use::Average] {
            let mut span = || Span::from_ns([0, 17, 4_000, 55_200, 2_000_000][below(5) as usize]);
            let mut cost = || LinearCost {
                base: span(),
                per_task: span(),
            };
            let overheads = Overheads {
                release: cost(),
                schedule: cost(),
                switch: cost(),
                tick: cost(),
                ipi: cost(),
                enqueue: cost(),
                dequeue: cost(),
                preemption: (0..seed % 2).map(|_| cost()).collect(),
                migration: (0..seed % 4).map(|_| cost()).collect(),
            };
            file.tables.insert((purpose, policy.to_owned()), overheads);
        }
    }
    file
}
