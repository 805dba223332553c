mod mutexes;

use shiftwork_model::{
    Affinity, Arrival, CpuId, Invariant, OnOverrun, Order, RandomStream, Record, Task, TaskSet,
};
use shiftwork_policy::registry::traits::STRONG;
use shiftwork_trace::check::{PolicyContract, check};

use super::*;
use crate::event::{Kind as K, why};

const ORIGIN: u64 = 1_000_000;

/// Task `a` on CPUs 0 and 1, which are the machine's 2 and 3, and task `b` on the file's CPU 1.
fn set() -> TaskSet {
    let both = Affinity::new(CpuSet::first(2)).unwrap();
    let second = Affinity::pinned(CpuId::from_index(1));
    let (ns, cost) = (Span::from_ns, Span::from_ns(4));
    let mut set = TaskSet::new(
        "s",
        2,
        vec![
            Task::periodic("a", cost, ns(10), both),
            Task::periodic("b", cost, ns(20), second),
        ],
    );
    set.tasks[1].command = vec!["./b".into()];
    set
}

fn translator(set: &TaskSet, horizon: u64) -> EventTranslator {
    let plan = Plan {
        set,
        traits: STRONG,
        bound: set.tasks.iter().map(|task| task.affinity).collect(),
        cpus: vec![CpuId::from_index(2), CpuId::from_index(3)],
    };
    let horizon = Instant::from_ns(horizon);
    let jobs = set.iter().map(|(id, task)| {
        let is_thread = task.command.is_empty();
        is_thread.then(|| Jobs::new(set, id, 1, horizon))
    });
    let mut translator = EventTranslator::planned(&plan, jobs.collect(), horizon);
    translator.begin(ORIGIN);
    translator
}

/// An event `at` after the origin, of a task (1: `a`, 2: `b`) on a CPU of the machine.
fn event(at: u64, kind: Kind, task: u32, cpu: Option<u16>, value: u64) -> Event {
    Event {
        at: ORIGIN + at,
        value,
        task,
        cpu,
        kind,
    }
}

/// What the events amount to, as text, one line a record.
fn record_lines(set: &TaskSet, horizon: u64, events: &[Event]) -> Vec<String> {
    let mut translator = translator(set, horizon);
    let mut records: Vec<Record> = Vec::new();
    for &event in events {
        translator.take(event, &mut records);
    }
    records
        .iter()
        .map(|record| format!("{} {:?}", record.at.as_ns(), record.kind))
        .map(|line| line.replace("Instant", "").replace("CpuId", ""))
        .collect()
}

#[test]
fn a_thread_s_jobs_are_released_when_they_should_and_end_when_it_says() {
    let events = [
        event(1, K::Ready, 1, None, ORIGIN + 10),
        event(1, K::Assigned, 1, Some(2), 0),
        event(2, K::Running, 1, Some(2), 0),
        event(6, K::NextJob, 1, Some(2), ORIGIN + 10),
        event(7, K::Stopped, 1, Some(2), 5),
        event(12, K::Ready, 1, None, ORIGIN + 20),
    ];
    assert_eq!(
        record_lines(&set(), 30, &events),
        [
            "0 Released { job: T0.1, deadline: (10) }",
            "1 Ready { job: T0.1, deadline: (10), priority: Priority(1) }",
            "2 Switched { cpu: (0), from: None, to: Some(T0.1) }",
            "6 Completed { job: T0.1 }",
            "6 Switched { cpu: (0), from: Some(T0.1), to: None }",
            "10 Released { job: T0.2, deadline: (20) }",
            "12 Ready { job: T0.2, deadline: (20), priority: Priority(1) }",
        ]
    );
}

#[test]
fn a_thread_that_goes_on_at_once_is_shown_without_a_switch_of_the_kernel() {
    let events = [
        event(1, K::Ready, 1, None, ORIGIN + 10),
        event(2, K::Running, 1, Some(3), 0),
        event(11, K::NextJob, 1, Some(3), ORIGIN + 10),
        event(11, K::Ready, 1, None, ORIGIN + 20),
    ];
    let lines = record_lines(&set(), 30, &events);
    assert_eq!(
        lines[lines.len() - 2..],
        [
            "11 Ready { job: T0.2, deadline: (20), priority: Priority(1) }",
            "11 Switched { cpu: (1), from: None, to: Some(T0.2) }",
        ]
    );
}

#[test]
fn a_throttled_job_runs_until_its_cpu_lets_go() {
    let events = [
        event(1, K::Ready, 1, None, ORIGIN + 10),
        event(2, K::Running, 1, Some(2), 0),
        event(6, K::Spent, 1, None, 0),
        event(8, K::Stopped, 1, Some(2), 6),
        event(10, K::Replenished, 1, None, ORIGIN + 20),
        event(10, K::Ready, 1, None, ORIGIN + 20),
    ];
    let lines = record_lines(&set(), 30, &events);
    assert_eq!(
        lines[3..],
        [
            "6 BudgetSpent { job: T0.1 }",
            "8 Switched { cpu: (0), from: Some(T0.1), to: None }",
            "8 NotReady { job: T0.1, reason: Throttled }",
            "10 Released { job: T0.2, deadline: (20) }",
            "10 Replenished { task: T0, budget: Span(4), deadline: (20) }",
            "10 Ready { job: T0.1, deadline: (20), priority: Priority(1) }",
        ]
    );
}

#[test]
fn a_program_s_job_that_is_released_without_a_budget_may_end_as_ordinary_work() {
    let events = [
        event(3, K::Woken, 2, Some(3), 0),
        event(3, K::Ready, 2, None, ORIGIN + 23),
        event(4, K::Running, 2, Some(3), 0),
        event(8, K::Spent, 2, None, 0),
        event(8, K::Stopped, 2, Some(3), 4),
        event(9, K::Blocked, 2, Some(3), 0),
        event(11, K::Woken, 2, Some(3), 0),
        event(13, K::Blocked, 2, Some(3), 0),
        event(23, K::Replenished, 2, None, ORIGIN + 43),
        event(25, K::Woken, 2, Some(3), 0),
        event(25, K::Ready, 2, None, ORIGIN + 43),
    ];
    let of_b = |line: &String| line.contains("T1.") && !line.contains("Switched");
    let lines: Vec<String> = record_lines(&set(), 30, &events)
        .into_iter()
        .filter(of_b)
        .skip(2)
        .collect();
    assert_eq!(
        lines,
        [
            "8 BudgetSpent { job: T1.1 }",
            "8 NotReady { job: T1.1, reason: Throttled }",
            "9 Completed { job: T1.1 }",
            "11 Released { job: T1.2, deadline: (31) }",
            "11 NotReady { job: T1.2, reason: Throttled }",
            "13 Completed { job: T1.2 }",
            "25 Released { job: T1.3, deadline: (45) }",
            "25 Ready { job: T1.3, deadline: (43), priority: Priority(2) }",
        ]
    );
}

#[test]
fn a_program_s_jobs_begin_when_it_wakes_and_end_when_it_blocks_or_yields() {
    let events = [
        event(3, K::Woken, 2, Some(3), 0),
        event(3, K::Ready, 2, None, ORIGIN + 23),
        event(4, K::Running, 2, Some(3), 0),
        event(6, K::Stopped, 2, Some(3), 2),
        event(6, K::Blocked, 2, Some(3), 0),
        event(8, K::Woken, 2, Some(3), 0),
        event(8, K::Ready, 2, None, ORIGIN + 28),
        event(9, K::Yielded, 2, Some(3), 0),
        event(9, K::Spent, 2, None, 0),
        event(23, K::Ready, 2, None, ORIGIN + 43),
    ];
    let of_b = |line: &String| line.contains("T1.") && !line.contains("Switched");
    let lines: Vec<String> = record_lines(&set(), 30, &events)
        .into_iter()
        .filter(of_b)
        .collect();
    assert_eq!(
        lines,
        [
            "3 Released { job: T1.1, deadline: (23) }",
            "3 Ready { job: T1.1, deadline: (23), priority: Priority(2) }",
            "6 Completed { job: T1.1 }",
            "8 Released { job: T1.2, deadline: (28) }",
            "8 Ready { job: T1.2, deadline: (28), priority: Priority(2) }",
            "9 Completed { job: T1.2 }",
            // The next one begins with the new period, without a wake-up.
            "23 Released { job: T1.3, deadline: (43) }",
            "23 Ready { job: T1.3, deadline: (43), priority: Priority(2) }",
        ]
    );
}

#[test]
fn a_cpu_is_away_as_long_as_there_is_a_reason() {
    let events = [
        event(1, K::CpuLost, 0, Some(2), why::TAKEN),
        event(2, K::CpuLost, 0, Some(2), why::OFFLINE),
        event(3, K::CpuBack, 0, Some(2), why::TAKEN),
        event(4, K::CpuBack, 0, Some(2), why::OFFLINE),
        event(5, K::CpuLost, 0, Some(3), why::BACKGROUND),
        event(6, K::CpuBack, 0, Some(3), why::BACKGROUND),
        // It does not belong to the platform.
        event(7, K::CpuLost, 0, Some(0), why::TAKEN),
    ];
    assert_eq!(
        record_lines(&set(), 30, &events)[1..],
        [
            "1 CpuTaken { cpu: (0) }",
            "2 CpuOffline { cpu: (0) }",
            "3 CpuReturned { cpu: (0) }",
            "4 CpuOnline { cpu: (0) }",
            "5 BackgroundStarted { cpu: (1) }",
            "6 BackgroundEnded { cpu: (1) }",
        ]
    );
}

#[test]
fn a_task_that_the_kernel_holds_on_a_cpu_may_use_that_one_meanwhile() {
    let events = [
        event(1, K::Narrowed, 1, None, 0b0100),
        event(2, K::Affinity, 1, None, 0b1000),
        event(3, K::Narrowed, 1, None, 0),
        event(4, K::Affinity, 1, None, 0b1100),
    ];
    let lines = record_lines(&set(), 9, &events);
    let bound: Vec<&str> = lines
        .iter()
        .filter(|it| it.contains("AffinitySet"))
        .map(|it| &it[..1])
        .collect();
    // What is asked for meanwhile counts when it is let go.
    assert_eq!(bound, ["1", "3", "4"], "{lines:#?}");
    assert!(lines[1].contains("{0}"), "{lines:#?}");
    assert!(lines[2].contains("{1}"), "{lines:#?}");
}

#[test]
fn interrupted_time_of_a_task_is_recorded() {
    const MS: u64 = 1_000_000;
    let set = set();
    let mut translator = translator(&set, 30 * MS);
    let mut records: Vec<Record> = Vec::new();
    for event in [
        event(0, K::Ready, 1, None, ORIGIN + 10 * MS),
        event(0, K::Running, 1, Some(2), 0),
        event(3 * MS, K::Ran, 1, Some(2), 2 * MS),
        // Two clocks never agree to the nanosecond.
        event(5 * MS, K::Stopped, 1, Some(2), 2 * MS - 900),
        event(6 * MS, K::Running, 1, Some(2), 0),
        event(8 * MS, K::Stopped, 1, Some(2), MS / 2),
    ] {
        translator.take(event, &mut records);
    }
    let interruptions: Vec<_> = records
        .iter()
        .filter_map(|record| match record.kind {
            RecordKind::Interrupted { time, .. } => Some((record.at.as_ns(), time.as_ns())),
            _ => None,
        })
        .collect();
    assert_eq!(interruptions, [(3 * MS, MS), (8 * MS, 3 * MS / 2)]);
}

#[test]
fn task_that_asks_for_other_cpus_leaves_and_its_request_is_kept() {
    let set = set();
    let mut translator = translator(&set, 30);
    let mut records: Vec<Record> = Vec::new();
    translator.take(event(1, K::Ready, 1, None, ORIGIN + 10), &mut records);
    translator.take(event(2, K::Demoted, 1, None, 0b1000), &mut records);
    let asked: CpuSet = [CpuId::from_index(3)].into_iter().collect();
    assert_eq!(translator.asking, [(TaskId::from_index(0), asked)]);
    let left = RecordKind::Left {
        task: TaskId::from_index(0),
    };
    assert_eq!(records.last().map(|record| &record.kind), Some(&left));
}

#[test]
fn reactions_are_measured_from_the_decision_to_the_cpu() {
    let set = set();
    let mut translator = translator(&set, 30);
    let mut records: Vec<Record> = Vec::new();
    for event in [
        event(2, K::Ready, 1, None, ORIGIN + 10),
        event(2, K::Assigned, 1, Some(2), 0),
        event(3, K::Assigned, 1, Some(3), 0),
        event(3, K::Assigned, 2, Some(2), 0),
        event(7, K::Running, 1, Some(3), 0),
        // It is there: giving it the same CPU again takes no time.
        event(8, K::Assigned, 1, Some(3), 0),
        event(9, K::Running, 1, Some(3), 0),
    ] {
        translator.take(event, &mut records);
    }
    assert_eq!(translator.reactions, [Span::from_ns(4)]);
    assert_eq!(translator.lateness, [Span::from_ns(2)]);
}

#[test]
fn nothing_is_recorded_beyond_the_horizon() {
    let events = [
        event(1, K::Ready, 1, None, ORIGIN + 10),
        event(2, K::Running, 1, Some(2), 0),
        event(16, K::NextJob, 1, Some(2), ORIGIN + 20),
    ];
    let lines = record_lines(&set(), 15, &events);
    assert_eq!(
        lines.last().map(String::as_str),
        Some("10 Released { job: T0.2, deadline: (20) }")
    );
}

/// Whatever the kernel may report, torn or out of order: no panic, and time does not run backwards.
#[test]
fn nonsense_is_survived_in_order() {
    for seed in 1..=500 {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut set = set();
        set.tasks[0].on_overrun = OnOverrun::Signal;
        set.tasks[0].arrival = Arrival::Sporadic;
        let mut translator = translator(&set, 200);
        let mut records: Vec<Record> = Vec::new();
        let mut at = 0;
        for _ in 0..200 {
            at += random.below(4);
            let (kind, _) = crate::event::ALL[random.below(20) as usize];
            let cpu = [None, Some(2), Some(3), Some(0), Some(999)][random.below(5) as usize];
            let value = random.below(2 * ORIGIN);
            let task = random.below(5) as u32;
            translator.take(event(at, kind, task, cpu, value), &mut records);
        }
        assert!(records.is_sorted_by_key(|record| record.at), "seed {seed}");
        let contract = PolicyContract {
            invariant: Invariant::Strong,
            order: Order::Edf,
            packing: None,
            immediate: false,
        };
        // The checkers take it all; what they find in nonsense does not matter.
        let _ = check(&set, contract, Instant::from_ns(200), &records);
    }
}

/// A translator without a plan for CPUs 1 to 3, and what the events amount to; task 7 has a reservation.
fn standing(events: &[Event]) -> (EventTranslator, Vec<Record>) {
    let mut translator = EventTranslator::standing(&CpuSet::from_bits(0b1110), 8);
    translator.admit(TaskId::from_index(6), attributes(4), Priority::MOST_URGENT);
    let mut records = Vec::new();
    for &event in events {
        translator.take(event, &mut records);
    }
    (translator, records)
}

/// Cost, period and deadline of a reservation.
fn attributes(cost: u64) -> [Span; 3] {
    [cost, 20, 10].map(Span::from_ns)
}

fn lines(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| {
        let at = record.at.as_ns() - ORIGIN;
        format!("{at} {:?}", record.kind).replace("CpuId", "")
    };
    records.iter().map(line).collect()
}

#[test]
fn a_task_that_enters_is_recorded_with_its_reservation() {
    let (mut translator, mut records) = standing(&[
        event(1, K::Woken, 7, None, 0),
        event(2, K::Entered, 7, None, 0b0110),
        event(3, K::Running, 7, Some(2), 0),
        event(3, K::Ready, 7, None, ORIGIN + 11),
        event(4, K::Left, 7, None, 0),
    ]);
    assert_eq!(
        records[4].kind,
        RecordKind::Released {
            job: JobId {
                task: TaskId::from_index(6),
                number: 1
            },
            deadline: Instant::from_ns(ORIGIN + 11),
        }
    );
    let all = lines(&records);
    assert_eq!(all[0], "2 Entered { task: T6 }");
    assert!(
        all[1].contains(
            "AttributesSet { task: T6, cost: Span(4), period: Span(20), deadline: Span(10)"
        )
    );
    assert!(
        all[2].contains("PrioritySet") && all[3].contains("AffinitySet"),
        "{all:?}"
    );
    assert_eq!(
        all[6],
        "3 Switched { cpu: (2), from: None, to: Some(T6.1) }"
    );
    assert_eq!(all[7], "4 Left { task: T6 }");
    // The next one of the number says only what is different, and goes on with the numbers of jobs.
    translator.admit(TaskId::from_index(6), attributes(5), Priority::MOST_URGENT);
    let begin = records.len();
    for next in [
        event(5, K::Blocked, 7, None, 0),
        event(6, K::Entered, 7, None, 0b0110),
        event(7, K::Woken, 7, None, 0),
    ] {
        translator.take(next, &mut records);
    }
    let all = lines(&records[begin..]);
    let [entered, attributes, released] = &all[..] else {
        panic!("{all:?}");
    };
    assert!(entered.contains("Entered") && attributes.contains("cost: Span(5)"));
    assert!(released.contains("T6.2"));
}

#[test]
fn a_demotion_is_recorded_with_the_cpus_asked_for_before_the_task_leaves() {
    let (_, records) = standing(&[
        event(2, K::Entered, 7, None, 0b0110),
        event(3, K::Demoted, 7, None, 0b0001),
    ]);
    let task = TaskId::from_index(6);
    let kind: Vec<&RecordKind> = records.iter().skip(4).map(|record| &record.kind).collect();
    // CPU 0 is none that tasks may have.
    let asked = Box::new(CpuSet::from_bits(0b0001));
    assert_eq!(
        kind,
        [
            &RecordKind::Demoted { task, asked },
            &RecordKind::Left { task }
        ]
    );
}

#[test]
fn an_observed_thread_has_no_records() {
    let mut translator = EventTranslator::standing(&CpuSet::from_bits(0b1110), 8);
    translator.set_observed(TaskId::from_index(6), true);
    let mut records: Vec<Record> = Vec::new();
    let events = [K::Woken, K::Stopped, K::Blocked, K::Left];
    for (kind, at) in events.into_iter().zip(1..) {
        translator.take(event(at, kind, 7, Some(1), 30), &mut records);
    }
    assert_eq!(records, []);
    let did: Vec<Activity> = translator.observed.iter().map(|it| it.activity).collect();
    let ran = Activity::Ran(Span::from_ns(30));
    assert_eq!(
        did,
        [Activity::Woken, ran, Activity::Blocked, Activity::Ended]
    );
    translator.set_observed(TaskId::from_index(6), false);
    translator.take(event(9, K::Woken, 7, None, 0), &mut records);
    assert_eq!(translator.observed.len(), 4);
}
