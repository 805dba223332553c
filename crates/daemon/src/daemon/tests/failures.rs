//! Failures of the machine: the daemon goes on, says so, and recovers.

use rustix::io::Errno;
use shiftwork_model::{CpuId, JobId, Priority};

use super::*;
use crate::files::tests::{Fault, faults};
use crate::run::{Exit, Level, ServiceControl, run};
use crate::socket::{Access, Server, SocketLimits};

const ANNA: u32 = 1_000;

/// A daemon with a saved reservation of thread 7.
fn with_saved_task() -> TestDaemon {
    let mut test = TestDaemon::start("");
    test.thread(7, ANNA);
    test.admit_with(ANNA, 7, reservation(1, 10)).unwrap();
    test.advance(10);
    test.finish_saving();
    test
}

fn saved_threads(test: &TestDaemon) -> Vec<u32> {
    let file = StateFile::at(test.folder.path().join("daemon.json")).unwrap();
    let saved = file.load().unwrap();
    saved.iter().map(|it| it.thread.thread).collect()
}

#[test]
fn daemon_goes_on_and_saves_later_whichever_step_of_saving_fails() {
    let mut test = with_saved_task();
    test.disk.set(None);
    test.daemon.is_unsaved = true;
    test.advance(10);
    test.finish_saving();
    let operations = test.disk.operations();
    assert!(operations >= 5);
    for fault in faults(operations) {
        let mut test = with_saved_task();
        test.disk.set(Some(fault));
        test.thread(8, ANNA);
        let task = test.admit_with(ANNA, 8, reservation(1, 10)).unwrap();
        test.advance(10);
        let logged = test.finish_saving().unwrap();
        assert!(
            logged.contains("daemon.json cannot be written: "),
            "{fault:?}: {logged}"
        );
        assert!(test.is_served(task));
        assert_eq!(test.status(ANNA).problems, [logged], "{fault:?}");
        let saved = saved_threads(&test);
        assert!(saved == [7] || saved == [7, 8], "{fault:?}: {saved:?}");
        test.disk.set(None);
        // At the last of these it begins: an earlier end would be handled by the next.
        test.advance(1_000);
        let logged = test.finish_saving();
        assert_eq!(
            logged.as_deref(),
            Some("saving reservations works again"),
            "{fault:?}"
        );
        assert_eq!(saved_threads(&test), [7, 8], "{fault:?}");
        assert_eq!(test.status(ANNA).problems, Vec::<String>::new());
    }
}

/// Whatever step of saving the daemon is killed in, the next one restores the reservations before it or after it.
#[test]
fn next_daemon_restores_reservations_after_a_kill_at_any_step() {
    for at in 0..5 {
        let mut test = with_saved_task();
        test.disk.set(Some(Fault::KilledAt(at)));
        test.thread(8, ANNA);
        test.admit_with(ANNA, 8, reservation(1, 10)).unwrap();
        test.advance(10);
        test.finish_saving();
        // What the end of this process would still write must not help.
        test.daemon.is_unsaved = false;
        let folder = std::mem::replace(&mut test.folder, tempfile::tempdir().unwrap());
        test.disk.set(None);
        test.world.borrow_mut().backend = FakeBackend::default();
        let (mut next, _) = start(&test.world, &folder, &test.disk, "", test.now);
        let threads: Vec<u32> = next.table.tasks().map(|(_, it)| it.thread.thread).collect();
        assert!(threads == [7] || threads == [7, 8], "at {at}: {threads:?}");
        next.is_unsaved = false;
    }
}

#[test]
fn unreadable_state_is_kept_and_restored_later() {
    let mut test = with_saved_task();
    for error in [Errno::IO, Errno::NOMEM] {
        test.advance(10);
        test.finish_saving();
        test.disk.set(Some(Fault::Nth(0, error)));
        let outcome = test.restart("");
        assert!(
            outcome.warnings[0].contains("no reservations are restored or saved"),
            "{outcome:?}"
        );
        assert_eq!(test.status(0).tasks, []);
        assert_eq!(saved_threads(&test), [7], "it is not replaced");
        let outcome = test.advance(1_010);
        let again = "restoring reservations works again".to_owned();
        assert!(outcome.warnings.contains(&again), "{outcome:?}");
        assert_eq!(test.status(0).tasks.len(), 1);
        assert_eq!(test.status(0).problems, Vec::<String>::new());
    }
}

#[test]
fn corrupt_state_is_moved_aside() {
    let mut test = TestDaemon::start("");
    test.advance(10);
    test.finish_saving();
    let path = test.folder.path().join("daemon.json");
    // The end of the daemon that is replaced saves nothing.
    std::fs::write(&path, "{").unwrap();
    let outcome = test.restart("");
    assert!(
        outcome.warnings[0].contains("daemon.corrupt"),
        "{outcome:?}"
    );
    let aside = test.folder.path().join("daemon.corrupt");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "{");
}

#[test]
fn metrics_are_written_again_after_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shiftwork.prom");
    let mut test = TestDaemon::start(&format!("metrics = '{}'", path.display()));
    test.advance(1_010);
    test.finish_saving();
    test.disk.set(Some(Fault::All(Errno::NOSPC)));
    let outcome = test.advance(3_000);
    let warnings: Vec<&String> = outcome.warnings.iter().collect();
    assert_eq!(warnings.len(), 1, "logged once: {warnings:?}");
    assert!(warnings[0].contains("shiftwork.prom cannot be written"));
    test.disk.set(None);
    let outcome = test.advance(2_000);
    assert_eq!(outcome.warnings, ["writing metrics works again"]);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\nshiftwork_problems_total 1\n"), "{text}");
}

/// Stops when the scheduler's events can be read again.
struct Control {
    world: Rc<RefCell<World>>,
    log: Vec<String>,
    steps: u32,
}

impl ServiceControl for Control {
    fn should_stop(&mut self) -> bool {
        self.steps += 1;
        self.world.borrow().unreadable == 0 && self.steps > 6
    }

    fn take_new_config(&mut self) -> Option<Config> {
        None
    }

    fn log(&mut self, _: Level, message: &str) {
        self.log.push(message.to_owned());
    }

    fn notify_watchdog(&mut self) {}
}

#[test]
fn main_loop_continues_after_failures_and_ends_if_they_last() {
    let mut test = TestDaemon::start("");
    let path = test.folder.path().join("daemon.sock");
    let access = Access {
        mode: 0o600,
        group: None,
    };
    let mut server = Server::bind(&path, access, SocketLimits::default()).unwrap();
    let mut ended = |failures| {
        test.world.borrow_mut().unreadable = failures;
        let mut control = Control {
            world: Rc::clone(&test.world),
            log: Vec::new(),
            steps: 0,
        };
        let ended = run(&mut test.daemon, &mut server, &mut control);
        (ended.map_err(|error| error.to_string()), control.log)
    };
    let why = "could not read events: Cannot allocate memory (os error 12)";
    let (exit, log) = ended(3);
    assert_eq!(exit, Ok(Exit::Stopped));
    assert_eq!(
        log,
        [
            format!("trying again: {why}"),
            "works again after 3 failures".to_owned()
        ]
    );
    let (exit, log) = ended(1_000);
    assert_eq!(exit, Err(why.to_owned()));
    assert_eq!(log.len(), 1);
}

/// Of these events the daemon learns nothing: a thread ends, one asks for other CPUs, and a CPU goes offline.
#[test]
fn lost_events_are_made_up_for() {
    let mut test = TestDaemon::start("");
    let mut tasks = Vec::new();
    for (thread, cpus) in [(7, "0"), (8, "1"), (9, "2")] {
        test.thread(thread, ANNA);
        let it = ClientReservation {
            cpus: Some(cpus.to_owned()),
            ..reservation(1, 10)
        };
        test.alter(thread, |it| it.cpus = cpus.parse().unwrap());
        tasks.push(test.admit_with(ANNA, thread, it).unwrap());
    }
    assert_eq!(test.advance(3_000).notices, []);
    test.world.borrow_mut().threads.remove(&7);
    test.alter(8, |it| it.cpus = "3".parse().unwrap());
    {
        let mut world = test.world.borrow_mut();
        world
            .backend
            .request_affinity(TaskId::from_index(tasks[1] as usize));
        world.online = "0-1,3".parse().unwrap();
        world.events_lost = 3;
    }
    let outcome = test.advance(6_000);
    assert!(
        outcome.warnings[0].starts_with("3 scheduling events were lost"),
        "{outcome:?}"
    );
    let status = test.status(0);
    let found: Vec<(u32, Option<&str>, bool)> = status
        .tasks
        .iter()
        .map(|it| {
            (
                it.thread,
                it.reservation.cpus.as_deref(),
                test.is_served(it.task),
            )
        })
        .collect();
    assert_eq!(found, [(8, Some("3"), true), (9, Some("2"), false)]);
    assert!(!status.cpus[2].online && status.cpus[0].online);
    let cpu = CpuId::from_index(2);
    let returned = Record {
        at: test.now,
        kind: shiftwork_model::RecordKind::CpuOnline { cpu },
    };
    test.world.borrow_mut().records.push(returned);
    test.advance(10);
    assert!(test.is_served(tasks[2]));
}

#[test]
fn daemon_catches_up_the_better_the_further_it_is_behind() {
    let mut test = with_saved_task();
    let job = JobId {
        task: TaskId::from_index(0),
        number: 1,
    };
    let interrupted = Record {
        at: test.now,
        kind: RecordKind::Interrupted {
            job,
            time: Span::ZERO,
        },
    };
    for events in [40_000, 600] {
        test.world.borrow_mut().records = vec![interrupted.clone(); events];
        let mut processed = Vec::new();
        let mut left = events;
        while left > 0 {
            test.poll();
            let before = std::mem::replace(&mut left, test.world.borrow().records.len());
            assert_eq!(test.daemon.has_more_work(), left > 0);
            processed.push(before - left);
        }
        match events {
            600 => assert_eq!(processed, [512, 88]),
            _ => assert_eq!(
                processed,
                [512, 1_024, 2_048, 4_096, 8_192, 8_192, 8_192, 7_744]
            ),
        }
    }
}

#[test]
fn backlog_of_events_is_processed_in_parts_and_makes_up_no_miss() {
    let mut test = with_saved_task();
    let task = TaskId::from_index(0);
    let job = JobId { task, number: 1 };
    let release = test.now;
    let push = |test: &TestDaemon, us: u64, kind: RecordKind| {
        let at = release + Span::from_us(us);
        test.world.borrow_mut().records.push(Record { at, kind });
    };
    let (deadline, priority) = (release + Span::from_ms(10), Priority::MOST_URGENT);
    push(&test, 0, RecordKind::Released { job, deadline });
    let ready = RecordKind::Ready {
        job,
        deadline,
        priority,
    };
    push(&test, 0, ready);
    for us in 0..600 {
        let time = Span::ZERO;
        push(&test, us, RecordKind::Interrupted { job, time });
    }
    push(&test, 600, RecordKind::Completed { job });
    test.now += Span::from_ms(50);
    assert_eq!(test.poll().misses, []);
    assert!(test.daemon.has_more_work());
    let counters = *test.daemon.statistics.of(task).unwrap();
    assert_eq!((counters.jobs, counters.misses), (0, 0));
    assert_eq!(test.poll().misses, []);
    assert!(!test.daemon.has_more_work());
    let counters = *test.daemon.statistics.of(task).unwrap();
    assert_eq!((counters.jobs, counters.misses), (1, 0));
}
