use super::{K, ORIGIN, event, record_lines, set};

#[test]
fn a_job_waits_for_a_mutex_and_is_ranked_by_it() {
    let events = [
        event(1, K::Ready, 1, None, ORIGIN + 10),
        event(2, K::Running, 1, Some(2), 0),
        event(3, K::AwaitsMutex, 1, None, 2),
        event(4, K::Stopped, 1, Some(2), 2),
        event(5, K::Locked, 1, None, 2),
        event(5, K::RankDeadline, 1, None, ORIGIN + 7),
        event(5, K::Ready, 1, None, ORIGIN + 7),
        event(6, K::Running, 1, Some(3), 0),
        event(6, K::RankDeadline, 1, None, 0),
        event(7, K::Unlocked, 1, None, 2),
        event(7, K::RankPriority, 1, None, 0),
        event(8, K::RankPriority, 1, None, 5),
        event(8, K::Spins, 1, None, 1),
        event(9, K::NextJob, 1, Some(3), ORIGIN + 10),
        // Of a job that is over nothing is known any more.
        event(9, K::Unlocked, 1, None, 2),
    ];
    let lines = record_lines(&set(), 30, &events);
    assert_eq!(
        lines[3..],
        [
            "3 Switched { cpu: (0), from: Some(T0.1), to: None }",
            "3 NotReady { job: T0.1, reason: Blocked(R1) }",
            "5 Locked { job: T0.1, resource: R1 }",
            "5 RankChanged { task: T0, priority: Priority(1), deadline: (7) }",
            "5 Ready { job: T0.1, deadline: (7), priority: Priority(1) }",
            "6 Switched { cpu: (1), from: None, to: Some(T0.1) }",
            "6 RankChanged { task: T0, priority: Priority(1), deadline: (0) }",
            "7 Unlocked { job: T0.1, resource: R1 }",
            "7 RankChanged { task: T0, priority: Priority(0), deadline: (10) }",
            "8 RankChanged { task: T0, priority: Priority(5), deadline: (10) }",
            "8 Spinning { job: T0.1, resource: R0 }",
            "9 Completed { job: T0.1 }",
            "9 Switched { cpu: (1), from: Some(T0.1), to: None }",
        ]
    );
}

#[test]
fn a_mutex_that_passes_on_before_the_thread_left_its_cpu_takes_none_from_it() {
    let events = [
        event(1, K::Ready, 1, None, ORIGIN + 10),
        event(2, K::Running, 1, Some(2), 0),
        event(3, K::AwaitsMutex, 1, None, 1),
        event(4, K::Locked, 1, None, 1),
        event(4, K::Ready, 1, None, ORIGIN + 10),
    ];
    let lines = record_lines(&set(), 30, &events);
    assert_eq!(
        lines[lines.len() - 2..],
        [
            "4 Ready { job: T0.1, deadline: (10), priority: Priority(1) }",
            "4 Switched { cpu: (0), from: None, to: Some(T0.1) }",
        ]
    );
}
