//! What a user learns of the tasks of others: only what they take of the CPUs.

use shiftwork_client::{Explain, GetMisses, Miss};
use shiftwork_model::{CpuId, JobId, Priority, RecordKind};

use super::*;

const ANNA: u32 = 1_000;
const BERT: u32 = 1_001;

/// Two tasks of Bert and one of Anna, all on CPU 1.
fn with_tasks_of_both() -> (TestDaemon, [u32; 3]) {
    let mut test = TestDaemon::start("");
    let tasks = [(7, BERT), (8, BERT), (9, ANNA)].map(|(thread, user)| {
        test.thread(thread, user);
        test.admit(user, thread).unwrap()
    });
    (test, tasks)
}

fn explanations(test: &mut TestDaemon, user: u32) -> Vec<String> {
    match test
        .call(user, Call::Explain(Explain { count: None }))
        .unwrap()
    {
        Answer::Explain(explained) => explained.explanations,
        other => panic!("{other:?}"),
    }
}

fn misses(test: &mut TestDaemon, user: u32, task: u32) -> Result<Vec<Miss>, Error> {
    let count = Some(10);
    let answer = test.call(user, Call::GetMisses(GetMisses { task, count }))?;
    match answer {
        Answer::GetMisses(got) => Ok(got.misses),
        other => panic!("{other:?}"),
    }
}

#[test]
fn status_shows_own_tasks_and_load_of_all() {
    let (mut test, [_, _, own]) = with_tasks_of_both();
    test.thread(10, BERT);
    let elsewhere = ClientReservation {
        cpus: Some("2-3".to_owned()),
        ..reservation(1, 10)
    };
    test.admit_with(BERT, 10, elsewhere).unwrap();
    let all = test.status(0);
    assert_eq!((all.tasks.len(), all.rooms.len()), (4, 3));
    let seen = test.status(ANNA);
    let tasks: Vec<u32> = seen.tasks.iter().map(|it| it.task).collect();
    assert_eq!(tasks, [own]);
    let text = format!("{seen:?}");
    assert!(!text.contains("task of 1001"), "{text}");
    let rooms: Vec<&str> = seen.rooms.iter().map(|it| it.cpus.as_str()).collect();
    assert_eq!(rooms, ["0-3", "1"], "no CPUs that only others name");
    let reserved: Vec<f64> = seen.rooms.iter().map(|it| it.reserved).collect();
    assert_eq!(reserved, [0.7, 0.6], "the load of all tasks");
}

#[test]
fn cpu_hides_which_task_of_another_user_runs() {
    let (mut test, [first, _, _]) = with_tasks_of_both();
    let job = JobId {
        task: TaskId::from_index(first as usize),
        number: 1,
    };
    let kind = RecordKind::Switched {
        cpu: CpuId::from_index(1),
        from: None,
        to: Some(job),
    };
    let deadline = test.now + Span::from_ms(10);
    let priority = Priority::MOST_URGENT;
    let released = RecordKind::Released { job, deadline };
    let ready = RecordKind::Ready {
        job,
        deadline,
        priority,
    };
    let records = [released, ready, kind].map(|kind| Record { at: test.now, kind });
    test.world.borrow_mut().records.extend(records);
    test.advance(10);
    let running = |test: &mut TestDaemon, user| test.status(user).cpus[1].running;
    assert_eq!(running(&mut test, 0), Some(first));
    assert_eq!(running(&mut test, BERT), Some(first));
    assert_eq!(running(&mut test, ANNA), None);
    // It runs on all the time.
    test.advance(2_000);
    let loads: Vec<f64> = test.status(BERT).tasks.iter().map(|it| it.load).collect();
    assert_eq!(loads, [1.0, 0.0]);
}

#[test]
fn refusal_names_only_tasks_of_caller() {
    let (mut test, _) = with_tasks_of_both();
    test.thread(10, ANNA);
    let refused = |test: &mut TestDaemon, user| {
        let refused = test.admit_with(user, 10, reservation(5, 10));
        refused.unwrap_err().to_string()
    };
    let text = refused(&mut test, ANNA);
    assert!(
        text.starts_with(
            "refused: tasks (other user), (other user), `task of 1000` and `task of 1000` may run only on CPU 1"
        ),
        "{text}"
    );
    let text = refused(&mut test, 0);
    let names = "tasks `task of 1001`, `task of 1001`, `task of 1000` and `task of 0`";
    assert!(text.contains(names), "{text}");
}

/// Anna's job is late because a job of Bert ran instead.
#[test]
fn explanation_shows_tasks_of_others_as_anonymous_load() {
    let (mut test, [other, _, own]) = with_tasks_of_both();
    test.advance(10);
    let [other, own] = [other, own].map(|task| JobId {
        task: TaskId::from_index(task as usize),
        number: 1,
    });
    let cpu = CpuId::from_index(1);
    let begin = test.now;
    let at = |ms| begin + Span::from_ms(ms);
    let deadline = at(10);
    let priority = Priority::MOST_URGENT;
    let released = |job| RecordKind::Released { job, deadline };
    let ready = |job| RecordKind::Ready {
        job,
        deadline,
        priority,
    };
    let switched = |from, to| RecordKind::Switched { cpu, from, to };
    let records = [
        (0, RecordKind::Entered { task: other.task }),
        (0, RecordKind::Entered { task: own.task }),
        (0, released(other)),
        (0, released(own)),
        (0, ready(other)),
        (0, ready(own)),
        (0, switched(None, Some(other))),
        (9, switched(Some(other), Some(own))),
        (9, RecordKind::Completed { job: other }),
        (12, switched(Some(own), None)),
        (12, RecordKind::Completed { job: own }),
    ];
    let records = records.map(|(ms, kind)| Record { at: at(ms), kind });
    test.world.borrow_mut().records.extend(records);
    test.now = at(20);
    // The explainer has a thread of its own.
    let mut waited = 0;
    while explanations(&mut test, 0).is_empty() {
        test.advance(10);
        std::thread::sleep(std::time::Duration::from_millis(1));
        waited += 1;
        assert!(waited < 60_000, "no explanation after a minute");
    }
    let of_root = explanations(&mut test, 0);
    assert!(of_root[0].contains("task of 1001"), "{}", of_root[0]);
    let of_anna = explanations(&mut test, ANNA);
    assert_eq!(of_anna.len(), 1);
    assert!(of_anna[0].contains("(other user)"), "{}", of_anna[0]);
    assert!(of_anna[0].contains("task of 1000"), "{}", of_anna[0]);
    assert!(!of_anna[0].contains("task of 1001"), "{}", of_anna[0]);
    assert_eq!(explanations(&mut test, BERT), Vec::<String>::new());
    let [own, other] = [own, other].map(|job| job.task.index() as u32);
    let [of_anna] = &misses(&mut test, ANNA, own).unwrap()[..] else {
        panic!("she has one miss");
    };
    assert_eq!(
        (of_anna.job, of_anna.due, of_anna.tardiness, of_anna.ended),
        (1, deadline, Span::from_ms(2), true)
    );
    assert!(of_anna.cause.contains("(other user)"), "{of_anna:?}");
    assert_eq!(of_anna.text, explanations(&mut test, ANNA)[0]);
    let of_root = &misses(&mut test, 0, own).unwrap()[0];
    assert!(of_root.cause.contains("task of 1001"), "{of_root:?}");
    assert_eq!(misses(&mut test, BERT, other).unwrap(), []);
    let refused = misses(&mut test, BERT, own).unwrap_err();
    assert!(matches!(refused, Error::Forbidden { .. }), "{refused}");
    let missing = misses(&mut test, 0, 4_711).unwrap_err();
    assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    // The next task with its number has none of its misses.
    test.call(ANNA, Call::Dismiss(Dismiss { task: own }))
        .unwrap();
    test.thread(10, ANNA);
    test.advance(1_000);
    assert_eq!(test.admit(ANNA, 10).unwrap(), own);
    assert_eq!(misses(&mut test, ANNA, own).unwrap(), []);
}
