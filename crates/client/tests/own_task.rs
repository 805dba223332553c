//! The calling thread as a task: its calls, and its wake-up times.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod scripted_daemon;

use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use shiftwork_client::{Error, Failure, OwnTask, Reservation};
use shiftwork_model::{Instant, Span};

use scripted_daemon::{with_connections, with_replies};

const ADMITTED: &[u8] = b"{\"parameters\":{\"task\":3,\"guarantee\":\"hard\"}}\0";
const CHANGED: &[u8] = b"{\"parameters\":{\"guarantee\":\"none\"}}\0";
const DISMISSED: &[u8] = b"{\"parameters\":{}}\0";
const REFUSED: &[u8] =
    b"{\"error\":\"org.shiftwork.Agent.Refused\",\"parameters\":{\"reason\":\"full\"}}\0";

fn every_ms(period: u64) -> Reservation {
    Reservation::new(Span::from_us(100), Span::from_ms(period))
}

fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_ns((time.tv_sec * 1_000_000_000 + time.tv_nsec) as u64)
}

/// The methods that were called, in order.
fn methods(received: &str) -> Vec<&str> {
    let mut after = received.split("\"org.shiftwork.Agent.");
    after.next();
    after.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn task_is_admitted_changed_and_dismissed() {
    let received = with_replies(&[ADMITTED, CHANGED, REFUSED, DISMISSED], |path| {
        let mut task = OwnTask::admit_at(path, "control", &every_ms(10)).unwrap();
        assert_eq!((task.number(), task.guarantee()), (3, "hard"));
        task.change(&every_ms(20)).unwrap();
        assert_eq!(task.guarantee(), "none");
        let refused = task.change(&every_ms(1)).unwrap_err();
        assert_eq!(refused.to_string(), "refused: full");
        assert_eq!(task.guarantee(), "none");
        task.dismiss().unwrap();
    });
    assert_eq!(methods(&received), ["Admit", "Change", "Change", "Dismiss"]);
    let thread = format!("\"thread\":{},", rustix::thread::gettid());
    assert!(received.contains(&thread), "{received} has no {thread}");
    assert!(received.contains("\"name\":\"control\""), "{received}");
}

#[test]
fn refused_admission_creates_no_task() {
    let received = with_replies(&[REFUSED], |path| {
        let failure = OwnTask::admit_at(path, "control", &every_ms(10)).unwrap_err();
        assert!(
            matches!(&failure, Failure::Agent(Error::Refused { reason }) if reason == "full"),
            "{failure}"
        );
    });
    assert_eq!(methods(&received), ["Admit"]);
}

#[test]
fn task_wakes_up_at_multiples_of_period() {
    with_replies(&[ADMITTED, DISMISSED], |path| {
        let before = now();
        let mut task = OwnTask::admit_at(path, "control", &every_ms(2)).unwrap();
        let first = task.release();
        assert!(before <= first && first <= now());
        let mut releases = 0;
        for job in 1..=20 {
            if job % 7 == 0 {
                thread::sleep(Duration::from_millis(5));
            }
            let began = now();
            let missed = task.wait_next().unwrap();
            releases += missed + 1;
            let ahead = Span::from_ms(2).checked_mul(releases).unwrap();
            assert_eq!(task.release(), first + ahead, "after job {job}");
            // The release was the first in the future when it was computed, some time after `began`, and has been reached.
            assert!(began < task.release(), "after job {job}");
            assert!(task.release() <= now(), "after job {job}");
            if job % 7 == 0 {
                assert!(missed >= 2, "{missed} after job {job}");
            }
        }
    });
}

#[test]
fn timer_slack_is_minimal_while_task_exists() {
    let slack = || rustix::thread::current_timer_slack().unwrap();
    let before = slack();
    assert_ne!(before, 1);
    with_replies(&[ADMITTED, DISMISSED], |path| {
        let task = OwnTask::admit_at(path, "control", &every_ms(1)).unwrap();
        assert_eq!(slack(), 1);
        drop(task);
        assert_eq!(slack(), before);
    });
}

#[test]
fn releases_follow_new_period_after_change() {
    with_replies(&[ADMITTED, CHANGED, DISMISSED], |path| {
        let mut task = OwnTask::admit_at(path, "control", &every_ms(1)).unwrap();
        task.wait_next().unwrap();
        let last = task.release();
        task.change(&every_ms(3)).unwrap();
        assert_eq!(task.release(), last);
        let missed = task.wait_next().unwrap();
        assert_eq!(
            task.release(),
            last + Span::from_ms(3).checked_mul(missed + 1).unwrap()
        );
    });
}

#[test]
fn drop_dismisses_only_in_own_thread() {
    let received = with_replies(&[ADMITTED, DISMISSED], |path| {
        drop(OwnTask::admit_at(path, "control", &every_ms(1)).unwrap());
    });
    assert_eq!(methods(&received), ["Admit", "Dismiss"]);
    let received = with_replies(&[ADMITTED, DISMISSED], |path| {
        let task = OwnTask::admit_at(path, "control", &every_ms(1)).unwrap();
        thread::scope(|scope| scope.spawn(move || drop(task)).join().unwrap());
    });
    assert_eq!(methods(&received), ["Admit"]);
}

#[test]
fn other_thread_may_not_use_task() {
    let received = with_replies(&[ADMITTED], |path| {
        let mut task = OwnTask::admit_at(path, "control", &every_ms(1)).unwrap();
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let release = task.release();
        let is_other = |failure: Failure| match failure {
            Failure::OtherThread { thread } => thread == own,
            _ => false,
        };
        thread::scope(|scope| {
            let other = scope.spawn(move || {
                assert!(is_other(task.wait_next().unwrap_err()));
                assert!(is_other(task.change(&every_ms(2)).unwrap_err()));
                assert_eq!(task.release(), release);
                assert!(is_other(task.dismiss().unwrap_err()));
            });
            other.join().unwrap();
        });
    });
    assert_eq!(methods(&received), ["Admit"]);
}

/// The status of a daemon with one task for each of these threads.
fn status(threads: &[i32]) -> Vec<u8> {
    let task = |(number, thread): (usize, &i32)| {
        format!(
            r#"{{"task":{number},"name":"a","process":1,"thread":{thread},"user":0,"cgroup":"/",
            "reservation":{{"cost":1,"period":2}},"state":"admitted","guarantee":"none","jobs":0,"misses":0,
            "overruns":0,"tardiness_max":0,"response_max":0,"ran":0,"load":0.0}}"#
        )
    };
    let tasks: Vec<String> = threads.iter().enumerate().map(task).collect();
    let text = format!(
        r#"{{"parameters":{{"status":{{"version":"1","policy":"strong-edf","guarantee":"hard","cpus":[],"rooms":[],
        "tasks":[{}],"misses":0,"since":0,"now":0,"lost":0,"problems":[]}}}}}}"#,
        tasks.join(",")
    );
    let mut bytes = text.into_bytes();
    bytes.push(0);
    bytes
}

#[test]
fn task_is_found_by_thread_after_restart_of_daemon() {
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let status = status(&[own + 1, own + 2, own, own + 3]);
    let received = with_connections(&[&[ADMITTED], &[&status, CHANGED, DISMISSED]], |path| {
        let mut task = OwnTask::admit_at(path, "control", &every_ms(1)).unwrap();
        task.change(&every_ms(2)).unwrap();
        assert_eq!((task.number(), task.guarantee()), (2, "none"));
        task.dismiss().unwrap();
    });
    assert_eq!(
        methods(&received),
        ["Admit", "GetStatus", "Change", "Dismiss"]
    );
    assert!(received.contains("Dismiss\",\"parameters\":{\"task\":2}"));
}

#[test]
fn task_unknown_to_restarted_daemon_is_missing() {
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let status = status(&[own + 1]);
    with_connections(&[&[ADMITTED], &[&status]], |path| {
        let task = OwnTask::admit_at(path, "control", &every_ms(1)).unwrap();
        let failure = task.dismiss().unwrap_err();
        let expected = format!("there is no task of thread {own}");
        assert_eq!(failure.to_string(), expected);
    });
}
