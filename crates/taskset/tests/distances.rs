//! Tasks with an arrival curve in task-set files and in the files of other tools.

#![allow(clippy::unwrap_used, reason = "a test")]

use shiftwork_model::{Arrival, ArrivalCurve, Pace, Span, TaskSet};
use shiftwork_taskset::{export, read, write};

fn set(keys: &str) -> TaskSet {
    let text = format!("platform.cpus = 1\n[[task]]\nname = \"a\"\ncost = \"1ms\"\n{keys}\n");
    read(&text).unwrap_or_else(|mistake| panic!("{mistake} in\n{text}"))
}

#[test]
fn distances_stand_for_the_period_and_survive_writing() {
    let curve = ArrivalCurve::new([2, 4, 30].map(Span::from_ms).to_vec()).unwrap();
    for (arrival, pace) in [
        ("", Pace::Earliest),
        ("arrival = \"sporadic\"", Pace::Random),
    ] {
        let set = set(&format!(
            "distances = [\"2ms\", \"4ms\", \"30ms\"]\n{arrival}"
        ));
        let task = &set.tasks[0];
        assert_eq!(task.arrival, Arrival::Curve(curve.clone(), pace));
        assert_eq!(
            (task.period, task.deadline),
            (Span::from_ms(2), Span::from_ms(2))
        );
        assert_eq!(task.mean_period(), Span::from_ms(10));
        assert_eq!(read(&write(&set)), Ok(set));
    }
    let set = set("distances = [\"2ms\", \"30ms\"]\ndeadline = \"50ms\"");
    assert_eq!(set.tasks[0].deadline, Span::from_ms(50));
}

#[test]
fn triggered_task_has_the_mean_distance_of_its_source() {
    let set = set(
        "distances = [\"2ms\", \"4ms\", \"30ms\"]\n[[task]]\nname = \"b\"\ncost = \"1ms\"\ntriggered-by = \"a\"",
    );
    assert_eq!(set.tasks[1].period, Span::from_ms(10));
}

#[test]
fn exporters_say_that_distances_are_lost() {
    let set = set("distances = [\"2ms\", \"30ms\"]\ncommand = [\"/bin/true\"]");
    let mut threads = set.clone();
    threads.tasks[0].command.clear();
    for (left_out, expected) in [
        (
            export::rt_app(&threads, None).left_out,
            "task `a`: `distances`; a job is released every 2ms, the shortest of them",
        ),
        (
            export::systemd(&set, None).left_out,
            "task `a`: `distances`; its program decides when it runs",
        ),
    ] {
        assert!(left_out.iter().any(|lost| lost == expected), "{left_out:?}");
    }
}
