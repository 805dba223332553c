//! Several reservations by one call: all of them or none.

use shiftwork_client::{Applied, Apply, Cause, Step};

use super::*;

const ANNA: u32 = 1_000;
const BERT: u32 = 1_001;

fn apply(test: &mut TestDaemon, user: u32, steps: Vec<Step>, is_dry: bool) -> Applied {
    let dry_run = is_dry.then_some(true);
    match test.call(user, Call::Apply(Apply { steps, dry_run })) {
        Ok(Answer::Apply(applied)) => applied,
        other => panic!("{other:?}"),
    }
}

/// Threads 1 to 4 of Anna, and 9 of Bert.
fn test(config: &str) -> TestDaemon {
    let test = TestDaemon::start(config);
    (1..=4).for_each(|number| test.thread(number, ANNA));
    test.thread(9, BERT);
    test
}

fn held(test: &mut TestDaemon) -> Vec<(u32, u64)> {
    let tasks = test.status(0).tasks.into_iter();
    let ms = |it: &shiftwork_client::Task| it.reservation.cost.as_ns() / 1_000_000;
    tasks.map(|it| (it.thread, ms(&it))).collect()
}

fn cause(applied: &Applied) -> (usize, Option<Cause>, String) {
    let last = applied.outcomes.last().unwrap();
    let reason = last.reason.clone().unwrap_or_default();
    (applied.outcomes.len() - 1, last.cause, reason)
}

#[test]
fn steps_come_true_together() {
    let mut test = test("");
    let steps = vec![
        Step::admit("camera", 1, reservation(2, 10)),
        Step::admit("control", 2, reservation(3, 10)),
    ];
    let tried = apply(&mut test, ANNA, steps.clone(), true);
    assert!(tried.applied && !tried.later);
    assert!(tried.outcomes.iter().all(|it| it.task.is_none()));
    assert_eq!(held(&mut test), []);
    let applied = apply(&mut test, ANNA, steps, false);
    assert_eq!(held(&mut test), [(1, 2), (2, 3)]);
    let tasks: Vec<u32> = applied.outcomes.iter().map(|it| it.task.unwrap()).collect();
    assert!(
        applied
            .outcomes
            .iter()
            .all(|it| it.changed && it.guarantee.is_some())
    );
    let steps = vec![
        Step::dismiss(tasks[0]),
        Step::change(tasks[1], reservation(3, 10)),
        Step::admit("logger", 3, reservation(1, 10)),
    ];
    let applied = apply(&mut test, ANNA, steps, false);
    let changed: Vec<bool> = applied.outcomes.iter().map(|it| it.changed).collect();
    assert_eq!((applied.applied, changed), (true, vec![true, false, true]));
    assert_eq!(held(&mut test), [(2, 3), (3, 1)]);
    let lines = test.advance(10).audit;
    let events = ["admitted", "admitted", "released", "admitted"];
    assert_eq!(lines.len(), events.len(), "{lines:?}");
    for (line, event) in lines.iter().zip(events) {
        assert!(line.contains(&format!("{event:?}")), "{line}");
    }
}

#[test]
fn refused_step_leaves_everything_as_it_was() {
    let mut test = test("limits.user.share = 4\nlimits.cgroup.share = 4");
    let task = test.admit(ANNA, 1).unwrap();
    let with = |third: Step| {
        vec![
            Step::change(task, reservation(3, 10)),
            Step::admit("control", 2, reservation(3, 10)),
            third,
        ]
    };
    let cases = [
        (
            Step::admit("logger", 3, reservation(9, 10)),
            Cause::Refused,
            "`logger`",
        ),
        (
            Step::admit("logger", 3, reservation(11, 10)),
            Cause::Invalid,
            "cost: 11ms is not between",
        ),
        (
            Step::admit("", 3, reservation(1, 10)),
            Cause::Invalid,
            "name: must be",
        ),
        (
            Step::admit("logger", 9, reservation(1, 10)),
            Cause::Forbidden,
            "does not belong to user 1000",
        ),
        (
            Step::admit("logger", 7, reservation(1, 10)),
            Cause::Missing,
            "there is no thread 7",
        ),
        (
            Step::admit("logger", 1, reservation(1, 10)),
            Cause::Invalid,
            "has a reservation already",
        ),
        (Step::dismiss(99), Cause::Missing, "there is no task 99"),
        (
            Step::default(),
            Cause::Invalid,
            "a step has `name` and `reservation`",
        ),
    ];
    for (third, expected, says) in cases {
        for is_dry in [true, false] {
            let applied = apply(&mut test, ANNA, with(third.clone()), is_dry);
            let (index, cause, reason) = cause(&applied);
            assert!(!applied.applied);
            assert_eq!((index, cause), (2, Some(expected)), "{reason}");
            assert!(reason.contains(says), "{reason}");
            assert_eq!(held(&mut test), [(1, 2)]);
        }
    }
    let lines = test.advance(10).audit;
    // One for each that was not dry, but for the step that is no request.
    assert_eq!(lines.iter().filter(|it| it.contains("refused")).count(), 7);
    assert_eq!(lines.len(), 8, "{lines:?}");
}

#[test]
fn task_of_another_user_is_not_changed_by_a_step() {
    let mut test = test("");
    let task = test.admit(BERT, 9).unwrap();
    for step in [Step::dismiss(task), Step::change(task, reservation(1, 10))] {
        let applied = apply(&mut test, ANNA, vec![step], false);
        assert_eq!(cause(&applied).1, Some(Cause::Forbidden));
    }
    assert_eq!(held(&mut test), [(9, 2)]);
}

/// Limits hold for all steps together.
#[test]
fn quota_counts_steps_together() {
    let mut test = test("limits.user.tasks = 2\nrequests.period-max = '50ms'");
    let steps: Vec<Step> = (1..=3)
        .map(|thread| Step::admit("t", thread, reservation(1, 10)))
        .collect();
    let applied = apply(&mut test, ANNA, steps.clone(), false);
    let (index, cause, reason) = cause(&applied);
    assert_eq!((index, cause), (2, Some(Cause::Exhausted)), "{reason}");
    assert!(!applied.later);
    let long = vec![Step::admit("t", 1, reservation(1, 100))];
    let applied = apply(&mut test, ANNA, long, false);
    assert_eq!(self::cause(&applied).1, Some(Cause::Invalid));
    assert!(apply(&mut test, ANNA, steps[..2].to_vec(), false).applied);
    let too_many = vec![Step::dismiss(1); Apply::STEPS_MAX + 1];
    let apply = Apply {
        steps: too_many,
        dry_run: None,
    };
    let refused = test.call(ANNA, Call::Apply(apply)).unwrap_err();
    assert!(refused.to_string().contains("at most 64"), "{refused}");
}

#[test]
fn steps_that_only_have_to_wait_say_so() {
    let mut test = test("");
    let task = test.admit_with(ANNA, 1, reservation(7, 10)).unwrap();
    let exchange = vec![Step::dismiss(task), Step::admit("b", 2, reservation(7, 10))];
    let applied = apply(&mut test, ANNA, exchange.clone(), false);
    assert!(!applied.applied && applied.later);
    assert_eq!(held(&mut test), [(1, 7)]);
    test.dismiss(ANNA, task).unwrap();
    let rest = vec![exchange[1].clone()];
    assert!(apply(&mut test, ANNA, rest.clone(), true).later);
    test.advance(20);
    assert!(apply(&mut test, ANNA, rest, false).applied);
    let more = vec![Step::admit("c", 3, reservation(7, 10))];
    assert!(!apply(&mut test, ANNA, more, true).later, "it never fits");
}

/// A thread ends between the look at it and the scheduler's turn.
#[test]
fn scheduler_that_fails_in_the_middle_leaves_everything_as_it_was() {
    let mut test = test("");
    let task = test.admit(ANNA, 1).unwrap();
    test.world.borrow_mut().backend.ended.push(3);
    let steps = vec![
        Step::dismiss(task),
        Step::admit("control", 2, reservation(3, 10)),
        Step::admit("logger", 3, reservation(1, 10)),
    ];
    let applied = apply(&mut test, ANNA, steps, false);
    let (index, cause, reason) = cause(&applied);
    assert_eq!((index, cause), (2, Some(Cause::Missing)), "{reason}");
    test.advance(100);
    assert_eq!(held(&mut test), [(1, 2)]);
    let task = test.status(0).tasks[0].task;
    assert!(test.is_served(task));
    let known: Vec<TaskId> = test.daemon.table.tasks().map(|(task, _)| task).collect();
    assert!(
        known
            .iter()
            .all(|task| test.daemon.statistics.of(*task).is_some())
    );
}
