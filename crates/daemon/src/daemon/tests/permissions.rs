//! Who may control a task, and what calls of one user cost others.

use shiftwork_client::{EndObservation, Observe};

use super::*;

const ANNA: u32 = 1_000;
const BERT: u32 = 1_001;

/// The thread executes a set-user-ID program of root, which takes on root's identity.
fn become_root(test: &TestDaemon, thread: u32) {
    test.alter(thread, |it| {
        it.credentials = Credentials {
            user: Some(0),
            group: Some(ANNA),
        };
    });
}

#[test]
fn former_user_cannot_control_thread_that_became_roots() {
    for effective in [None, Some(0)] {
        let mut test = TestDaemon::start("");
        test.thread(7, ANNA);
        let task = test.admit(ANNA, 7).unwrap();
        test.alter(7, |it| it.credentials.user = effective);
        let frozen = ClientReservation {
            cpus: Some("0".to_owned()),
            ..ClientReservation::new(Span::from_us(50), Span::from_ms(100))
        };
        let refused = test.change(ANNA, task, frozen).unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("has changed its user or group"),
            "{refused}"
        );
        assert!(!test.is_served(task), "its budget no longer applies");
        assert!(test.dismiss(ANNA, task).is_err());
        let outcome = test.advance(10);
        assert_eq!(
            outcome.notices[0].what,
            "lost its reservation: its thread has changed its user or group"
        );
        assert_eq!(test.status(0).tasks, []);
    }
}

#[test]
fn reservation_ends_soon_after_its_thread_changed_credentials() {
    let mut test = TestDaemon::start("");
    for thread in 1..=30 {
        test.thread(thread, ANNA);
        test.admit_with(ANNA, thread, reservation(1, 100)).unwrap();
    }
    assert_eq!(test.advance(4_000).notices, []);
    become_root(&test, 17);
    test.alter(23, |it| it.credentials.group = Some(5));
    let lost = test.advance(2_500).notices;
    assert_eq!(lost.len(), 2, "{lost:?}");
    let left = test.status(0).tasks;
    let threads: Vec<u32> = left.iter().map(|task| task.thread).collect();
    assert_eq!(threads.len(), 28);
    assert!(!threads.contains(&17) && !threads.contains(&23));
}

/// A service of root that gives up privileges keeps the reservation that root made.
#[test]
fn reservation_of_root_is_kept_when_program_gives_up_privileges() {
    let mut test = TestDaemon::start("");
    test.thread(7, 0);
    let task = test.admit(0, 7).unwrap();
    test.alter(7, |it| it.credentials.user = Some(ANNA));
    assert_eq!(test.advance(4_000).notices, []);
    assert!(test.is_served(task));
    let refused = test.dismiss(ANNA, task).unwrap_err();
    assert!(refused.to_string().contains("does not belong to user 1000"));
    test.dismiss(0, task).unwrap();
}

#[test]
fn thread_that_changed_credentials_is_not_restored() {
    let mut test = TestDaemon::start("");
    for thread in [7, 8] {
        test.thread(thread, ANNA);
        test.admit_with(ANNA, thread, reservation(1, 10)).unwrap();
    }
    test.advance(10);
    become_root(&test, 7);
    test.finish_saving();
    test.restart("");
    let left = test.status(0).tasks;
    assert_eq!(left.iter().map(|it| it.thread).collect::<Vec<_>>(), [8]);
}

#[test]
fn observation_ends_when_thread_changes_credentials() {
    let mut test = TestDaemon::start("");
    test.thread(7, ANNA);
    let observe = |test: &mut TestDaemon| {
        let observe = Call::Observe(Observe { thread: Some(7) });
        match test.call(ANNA, observe).unwrap() {
            Answer::Observe(observing) => observing.task,
            other => panic!("{other:?}"),
        }
    };
    let task = observe(&mut test);
    become_root(&test, 7);
    let ended = test.call(ANNA, Call::EndObservation(EndObservation { task }));
    assert!(matches!(ended, Err(Error::Missing { .. })), "{ended:?}");
    assert_eq!(test.world.borrow().observed, []);
    test.thread(7, ANNA);
    observe(&mut test);
    become_root(&test, 7);
    test.advance(2_000);
    assert_eq!(test.world.borrow().observed, []);
}

/// Admit and Dismiss in a loop: the user gets neither more capacity nor more numbers than its limits.
#[test]
fn loop_of_calls_exhausts_only_limits_of_its_user() {
    let mut test = TestDaemon::start("[limits.user]\nshare = 0.2\n[limits.cgroup]\nshare = 0.2");
    test.thread(7, ANNA);
    test.thread(8, BERT);
    let (mut admitted, mut refused) = (0, String::new());
    for _ in 0..1_023 {
        match test.admit(ANNA, 7) {
            Ok(task) => {
                admitted += 1;
                test.dismiss(ANNA, task).unwrap();
            }
            Err(error) => refused = error.to_string(),
        }
    }
    assert_eq!(admitted, 2);
    assert!(refused.contains("still count"), "{refused}");
    test.admit_with(BERT, 8, reservation(2, 10)).unwrap();
    test.advance(20);
    test.admit(ANNA, 7).unwrap();
}

#[test]
fn user_namespaces_and_control_groups_do_not_multiply_quotas() {
    let mut test = TestDaemon::start("[limits.user]\nshare = 0.2\n[limits.cgroup]\nshare = 0.3");
    // Subordinate users of the same owner, each in a control group of its own below a delegated one.
    for user in 100_000..100_004 {
        test.thread(user, user);
        test.alter(user, |it| {
            it.account = ANNA;
            it.cgroup = format!("/user.slice/user@1000.service/{user}.scope");
        });
    }
    test.admit(100_000, 100_000).unwrap();
    let refused = test.admit(100_001, 100_001).unwrap_err().to_string();
    assert!(
        refused.contains("user 1000 would reserve 0.400"),
        "{refused}"
    );
    // Users of accounts of their own share the group that contains theirs.
    test.alter(100_002, |it| it.account = BERT);
    let refused = test.admit(100_002, 100_002).unwrap_err().to_string();
    assert!(
        refused.contains("control group /user.slice/user@1000.service would reserve 0.400"),
        "{refused}"
    );
}

#[test]
fn user_may_request_what_configuration_allows_and_root_everything() {
    let mut test =
        TestDaemon::start("[requests]\ncpus = '1-2'\n[requests.users.1001]\nperiod-max = '1s'");
    for (thread, user) in [(7, ANNA), (8, BERT), (9, ANNA)] {
        test.thread(thread, user);
    }
    let long = reservation(1, 500);
    let refused = test.admit_with(ANNA, 7, long.clone()).unwrap_err();
    assert!(
        matches!(refused, Error::Invalid { ref parameter, .. } if parameter == "period"),
        "{refused}"
    );
    test.admit_with(BERT, 8, long.clone()).unwrap();
    let of_root = test.admit_with(0, 9, long.clone()).unwrap();
    let refused = test.change(ANNA, of_root, long).unwrap_err();
    assert!(
        refused.to_string().contains("the maximum of user 1000"),
        "{refused}"
    );
    test.dismiss(ANNA, of_root).unwrap();
    // Without a list the CPUs are those that the user may have.
    let own = ClientReservation::new(Span::from_ms(1), Span::from_ms(10));
    let task = test.admit_with(ANNA, 7, own).unwrap();
    let cpus = test.status(ANNA).tasks[0].reservation.cpus.clone();
    assert_eq!(cpus.as_deref(), Some("1,2"));
    // Nor does it get others by asking the kernel.
    let number = TaskId::from_index(task as usize);
    test.alter(7, |it| it.cpus = "0-3".parse().unwrap());
    test.world.borrow_mut().backend.request_affinity(number);
    let asked = Box::new(CpuSet::first(4));
    let kind = shiftwork_model::RecordKind::Demoted {
        task: number,
        asked,
    };
    test.world
        .borrow_mut()
        .records
        .push(Record { at: test.now, kind });
    test.advance(10);
    assert!(test.is_served(task));
    let status = test.status(ANNA);
    assert_eq!(status.tasks[0].reservation.cpus.as_deref(), Some("1,2"));
}
