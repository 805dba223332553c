//! The audit log, and alerts about lost reservations.

use serde_json::{Value, json};
use shiftwork_model::{CpuId, RecordKind};

use super::*;

const ANNA: u32 = 1_000;

/// The audit lines of the outcome.
fn audited(outcome: &PollOutcome) -> Vec<Value> {
    let lines = outcome.audit.iter();
    let lines = lines.map(|line| serde_json::from_str(line.strip_prefix("audit: ").unwrap()));
    lines.map(Result::unwrap).collect()
}

#[test]
fn each_change_of_a_reservation_is_one_line() {
    let mut test = TestDaemon::start("");
    test.thread(7, ANNA);
    let task = test.admit(ANNA, 7).unwrap();
    let refused = test.change(ANNA, task, reservation(10, 10)).unwrap_err();
    test.change(ANNA, task, reservation(3, 10)).unwrap();
    test.dismiss(ANNA, task).unwrap();
    test.dismiss(ANNA, task).unwrap_err();
    let lines = audited(&test.advance(10));
    let of = |event: &str, cost_ms: u64| {
        json!({
            "event": event, "uid": ANNA, "pid": 7, "tid": 7, "task": task, "name": "task of 1000",
            "cost_ns": cost_ms * 1_000_000, "period_ns": 10_000_000, "deadline_ns": 10_000_000, "cpus": "1",
            "on_overrun": "throttle",
        })
    };
    let Error::Refused { reason } = refused else {
        panic!("{refused}")
    };
    assert_eq!(lines[0], of("admitted", 2));
    assert_eq!(lines[1]["event"], "refused");
    let why = lines[1]["reason"].as_str().unwrap();
    assert!(
        why.contains(reason.split("; ").next().unwrap()),
        "{why}: {reason}"
    );
    assert_eq!(
        (&lines[1]["task"], &lines[1]["cost_ns"]),
        (&json!(task), &json!(10_000_000))
    );
    assert_eq!(lines[2], of("changed", 3));
    assert_eq!(lines[3], of("released", 3));
    assert_eq!(
        lines[4]["reason"],
        json!(format!("there is no task {task}"))
    );
    assert_eq!(lines.len(), 5);
    // Calls that change nothing are not audited.
    test.status(ANNA);
    assert_eq!(audited(&test.advance(10)), Vec::<Value>::new());
}

#[test]
fn loss_and_end_of_reservation_are_audited_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shiftwork.prom");
    let mut test = TestDaemon::start(&format!("metrics = '{}'", path.display()));
    test.thread(7, ANNA);
    let task = test.admit(ANNA, 7).unwrap();
    test.advance(10);
    let cpu = CpuId::from_index(1);
    for kind in [
        RecordKind::CpuOffline { cpu },
        RecordKind::CpuOnline { cpu },
    ] {
        test.world
            .borrow_mut()
            .records
            .push(Record { at: test.now, kind });
    }
    let outcome = test.advance(10);
    let lines = audited(&outcome);
    let events: Vec<&Value> = lines.iter().map(|line| &line["event"]).collect();
    assert_eq!(events, ["lost", "regained"]);
    assert_eq!(
        (&lines[0]["uid"], &lines[0]["tid"]),
        (&json!(ANNA), &json!(7))
    );
    assert!(
        lines[0]["reason"]
            .as_str()
            .unwrap()
            .contains("CPU 1 is gone")
    );
    assert_eq!(outcome.notices.iter().filter(|it| it.is_alert()).count(), 1);
    // That the scheduler was asked to dismiss it is no end of the thread.
    assert_eq!(audited(&test.advance(10)), Vec::<Value>::new());
    assert!(test.is_served(task));
    test.end_thread(TaskId::from_index(task as usize), 7);
    let lines = audited(&test.advance(10));
    assert_eq!((&lines[0]["event"], lines.len()), (&json!("ended"), 1));
    test.advance(1_000);
    let text = std::fs::read_to_string(&path).unwrap();
    for line in [
        "shiftwork_reservations_lost_total 1",
        "shiftwork_loans_total 7",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
}
