//! Plans, carried out on a model of the daemon: afterwards each task of the file has its reservation, and nothing else has
//! changed.

use shiftwork_client::{Cpu, State};
use shiftwork_model::{Affinity, Instant, Platform, RandomStream, Span, ThreadName};

use super::super::threads::tests::{named, thread};
use super::*;

fn reserved(task: u32, name: &str, of: (u32, u32), reservation: Reservation) -> Reserved {
    Reserved {
        task,
        name: name.to_owned(),
        process: of.0,
        thread: of.1,
        user: 1_000,
        cgroup: String::new(),
        reservation,
        state: State::Admitted,
        guarantee: "hard".to_owned(),
        cpu: None,
        jobs: 0,
        misses: 0,
        overruns: 0,
        tardiness_max: Span::ZERO,
        response_max: Span::ZERO,
        ran: Span::ZERO,
        load: 0.0,
    }
}

fn status(cpus: std::ops::Range<u32>, tasks: Vec<Reserved>) -> Status {
    let cpu = |cpu| Cpu {
        cpu,
        online: true,
        running: None,
        load: 0.0,
        share: 0.95,
        reserve: 0.05,
    };
    Status {
        version: String::new(),
        policy: "strong-edf".to_owned(),
        guarantee: "hard".to_owned(),
        cpus: cpus.map(cpu).collect(),
        rooms: Vec::new(),
        tasks,
        misses: 0,
        since: Instant::ZERO,
        now: Instant::ZERO,
        lost: 0,
        problems: Vec::new(),
    }
}

fn task(name: &str, cost_ms: u64, thread: Option<ThreadName>) -> Task {
    let affinity = Affinity::new(CpuSet::first(4)).unwrap();
    let mut task = Task::periodic(name, Span::from_ms(cost_ms), Span::from_ms(10), affinity);
    task.thread = thread;
    task
}

fn program(name: &str, cost_ms: u64) -> Task {
    Task {
        command: vec![format!("./{name}")],
        ..task(name, cost_ms, None)
    }
}

fn set(tasks: Vec<Task>) -> TaskSet {
    TaskSet::new("file", 4, tasks)
}

fn situation<'a>(
    set: &'a TaskSet,
    threads: &'a [RunningThread],
    status: &'a Status,
) -> Situation<'a> {
    Situation {
        set,
        name: "file",
        threads,
        status,
        choice: Choice {
            user: 1_000,
            processes: &[],
        },
        prune: false,
    }
}

/// Carries out the requests as the daemon does, which accepts all.
fn carry_out(status: &Status, requests: &Requests, processes: &[(u32, u32)]) -> Status {
    let mut after = status.clone();
    for step in &requests.steps {
        match (step.task, step.reservation.clone()) {
            (None, Some(reservation)) => {
                let thread = step.thread.unwrap();
                let is_held = after.tasks.iter().any(|it| it.thread == thread);
                assert!(!is_held, "thread {thread} has a reservation already");
                let process = processes.iter().find(|it| it.1 == thread);
                let number = (0..).find(|number| after.tasks.iter().all(|it| it.task != *number));
                let name = step.name.as_deref().unwrap();
                let of = *process.unwrap_or(&(thread, thread));
                after
                    .tasks
                    .push(reserved(number.unwrap(), name, of, reservation));
            }
            (Some(number), Some(reservation)) => {
                let found = after.tasks.iter_mut().find(|it| it.task == number);
                found.unwrap().reservation = reservation;
            }
            (Some(number), None) => {
                let before = after.tasks.len();
                after.tasks.retain(|it| it.task != number);
                assert_eq!(
                    after.tasks.len() + 1,
                    before,
                    "task {number} was there once"
                );
            }
            (None, None) => panic!("{step:?}"),
        }
    }
    after
}

/// By name: the thread and the cost.
fn held(status: &Status) -> Vec<(String, u32, u64)> {
    let of = |it: &Reserved| {
        let cost_ms = it.reservation.cost.as_ns() / 1_000_000;
        (it.name.clone(), it.thread, cost_ms)
    };
    let mut held: Vec<_> = status.tasks.iter().map(of).collect();
    held.sort();
    held
}

/// Of each of these tasks whether it is in the file, and with which cost; the number of its thread is its place, those of
/// programs begin at 90.
fn random_file(random: &mut RandomStream) -> (TaskSet, Vec<RunningThread>) {
    let threads: Vec<RunningThread> = (41..47)
        .map(|id| thread((40, "rover"), id, &format!("t{id}")))
        .collect();
    let mut tasks = Vec::new();
    let mut names = ["a", "b", "c", "d", "e", "f"];
    // Tasks and threads come together in any order.
    for place in (1..names.len()).rev() {
        names.swap(place, random.below(place as u64 + 1) as usize);
    }
    for (name, it) in names.into_iter().zip(&threads) {
        match random.below(4) {
            0 => {}
            1 => tasks.push(program(name, 1 + random.below(4))),
            _ => {
                let wanted = named("rover", Some(&it.name), None);
                tasks.push(task(name, 1 + random.below(4), Some(wanted)));
            }
        }
    }
    (set(tasks), threads)
}

#[test]
fn each_task_has_its_reservation_afterwards_and_others_are_as_before() {
    let (mut changed, mut released) = (0, 0);
    for seed in 1..=2_000 {
        let mut random = RandomStream::new(seed, 96, 0);
        let mut now = status(0..4, Vec::new());
        let foreign = reserved(
            0,
            "other/a",
            (7, 7),
            Reservation::new(Span::from_ms(1), Span::from_ms(9)),
        );
        now.tasks.push(foreign);
        let mut next_program = 90;
        for round in 0..4 {
            let (set, threads) = random_file(&mut random);
            let processes: Vec<(u32, u32)> = threads.iter().map(|it| (it.process, it.id)).collect();
            let prune = random.below(2) == 0;
            let context = format!("seed {seed}, round {round}, prune {prune}");
            let before = held(&now);
            let plan = plan(&Situation {
                prune,
                ..situation(&set, &threads, &now)
            })
            .unwrap();
            let started: Vec<u32> = plan
                .programs
                .iter()
                .map(|_| {
                    next_program += 1;
                    next_program
                })
                .collect();
            let requests = plan.requests(&started);
            assert_eq!(requests.steps.len(), plan.entries.len(), "{context}");
            let after = carry_out(&now, &requests, &processes);
            // The definition: what the file says, and what was there under names that it does not have.
            let mut started = started.into_iter();
            let mut expected: Vec<(String, u32, u64)> = Vec::new();
            for it in &set.tasks {
                let name = format!("file/{}", it.name);
                let thread = match &it.thread {
                    Some(wanted) => wanted.name.as_ref().unwrap()[1..].parse().unwrap(),
                    None => {
                        let is_it = |(known, thread, _): &&(String, u32, u64)| {
                            *known == name && *thread >= 90
                        };
                        let running = before.iter().find(is_it);
                        running.map_or_else(|| started.next().unwrap(), |it| it.1)
                    }
                };
                expected.push((name, thread, it.cost.as_ns() / 1_000_000));
            }
            assert_eq!(started.next(), None, "{context}");
            let is_used = |thread: u32| expected.iter().any(|it| it.1 == thread);
            let is_named = |name: &str| expected.iter().any(|it| it.0 == name);
            let rest: Vec<_> = before
                .iter()
                .filter(|it| {
                    let is_own = it.0.starts_with("file/");
                    !is_own || !(prune || is_named(&it.0) || is_used(it.1))
                })
                .cloned()
                .collect();
            let kept: Vec<String> = rest
                .iter()
                .map(|it| it.0.clone())
                .filter(|it| it.starts_with("file/"))
                .collect();
            expected.extend(rest);
            expected.sort();
            let mut found = plan.kept.clone();
            found.sort();
            assert_eq!(found, kept, "{context}");
            assert_eq!(held(&after), expected, "{context}");
            now = after;
            changed += plan
                .entries
                .iter()
                .filter(|it| matches!(it.action, Action::Change(_)))
                .count();
            released += plan
                .entries
                .iter()
                .filter(|it| matches!(it.action, Action::Release(_)))
                .count();
            // Applied again, the file asks for what is there.
            let again = super::plan(&situation(&set, &threads, &now)).unwrap();
            for entry in &again.entries {
                let Action::Change(from) = &entry.action else {
                    panic!("{context}: {entry:?}");
                };
                assert_eq!(from.reservation, entry.reservation, "{context}");
            }
        }
    }
    assert!(changed > 2_000 && released > 2_000, "{changed} {released}");
}

#[test]
fn what_gives_something_back_is_requested_first() {
    let threads = [
        thread((40, "rover"), 40, "rover"),
        thread((40, "rover"), 41, "camera"),
    ];
    let file = set(vec![
        task("grows", 5, Some(named("rover", None, None))),
        task("shrinks", 1, Some(named("rover", Some("camera"), None))),
    ]);
    let of = |cost_ms| {
        let reservation = Reservation::new(Span::from_ms(cost_ms), Span::from_ms(10));
        Reservation {
            cpus: Some("0-3".to_owned()),
            ..reservation
        }
    };
    let now = status(
        0..4,
        vec![
            reserved(3, "file/grows", (40, 40), of(2)),
            reserved(4, "file/shrinks", (40, 41), of(2)),
            reserved(5, "file/gone", (50, 50), of(2)),
        ],
    );
    let plan = plan(&Situation {
        prune: true,
        ..situation(&file, &threads, &now)
    })
    .unwrap();
    let requests = plan.requests(&[]);
    let tasks: Vec<u32> = requests.steps.iter().filter_map(|it| it.task).collect();
    assert_eq!((tasks, requests.giving), (vec![4, 5, 3], 2));
    for (to, expected) in [
        (of(2), true),
        (of(3), false),
        (
            Reservation {
                period: Span::from_ms(11),
                ..of(2)
            },
            true,
        ),
        (
            Reservation {
                period: Span::from_ms(9),
                ..of(1)
            },
            false,
        ),
        (
            Reservation {
                deadline: Some(Span::from_ms(9)),
                ..of(1)
            },
            false,
        ),
        (
            Reservation {
                cpus: Some("0-2".to_owned()),
                ..of(1)
            },
            false,
        ),
        (
            Reservation {
                cpus: Some("0,1,2,3".to_owned()),
                ..of(1)
            },
            true,
        ),
        (
            Reservation {
                cpus: None,
                ..of(1)
            },
            true,
        ),
    ] {
        assert_eq!(asks_for_no_more(&of(2), &to), expected, "{to:?}");
    }
    let early = Reservation {
        deadline: Some(Span::from_ms(8)),
        ..of(2)
    };
    let more_often = Reservation {
        period: Span::from_ms(9),
        ..early.clone()
    };
    assert!(!asks_for_no_more(&early, &more_often));
}

#[test]
fn reservation_is_that_of_the_task_on_cpus_of_the_daemon() {
    let mut narrow = task("narrow", 2, Some(named("rover", None, None)));
    narrow.affinity = Affinity::new("0-1".parse().unwrap()).unwrap();
    narrow.deadline = Span::from_ms(8);
    narrow.priority = shiftwork_model::Priority::new(3);
    narrow.on_overrun = ModelOnOverrun::Continue;
    let set = set(vec![narrow, task("wide", 2, None)]);
    let of = |index: usize, cpus| reservation(&set.tasks[index], &set, &status(cpus, Vec::new()));
    let expected = Reservation {
        deadline: Some(Span::from_ms(8)),
        cpus: Some("0,1".to_owned()),
        priority: Some(3),
        on_overrun: Some(OnOverrun::Continue),
        ..Reservation::new(Span::from_ms(2), Span::from_ms(10))
    };
    // CPUs that the file names are requested, also if the daemon will refuse them.
    assert_eq!(of(0, 1..3), expected);
    let cpus = |cpus| of(1, cpus).cpus.unwrap();
    assert_eq!(
        [cpus(0..4), cpus(1..3), cpus(2..9), cpus(7..9)],
        ["0-3", "1,2", "2,3", "0-3"]
    );
    assert_eq!(Platform::uniform(4).all(), CpuSet::first(4));
}

#[test]
fn each_task_that_cannot_be_reserved_is_named() {
    let threads = [thread((40, "rover"), 40, "rover")];
    let main = || Some(named("rover", None, None));
    let now = status(
        0..4,
        vec![
            reserved(
                3,
                "other/a",
                (40, 40),
                Reservation::new(Span::from_ms(1), Span::from_ms(9)),
            ),
            reserved(
                4,
                "file/twice",
                (50, 50),
                Reservation::new(Span::from_ms(1), Span::from_ms(9)),
            ),
            reserved(
                5,
                "file/twice",
                (51, 51),
                Reservation::new(Span::from_ms(1), Span::from_ms(9)),
            ),
        ],
    );
    let file = set(vec![
        task("lost", 1, Some(named("rober", None, None))),
        task("nothing", 1, None),
        task("taken", 1, main()),
        program("twice", 1),
        task(&"x".repeat(60), 1, main()),
    ]);
    let mistakes = plan(&situation(&file, &threads, &now)).unwrap_err();
    let expected = [
        "task `lost`: there is no process named `rober`",
        "task `nothing`: has neither `thread` nor `command`",
        "task `taken`: thread 40 has a reservation already, `other/a`, which is not of this file; `shiftwork release 40`",
        "task `twice`: several processes have the reservation `file/twice`: 50, 51; give back all but one",
        "a name has at most 64 bytes",
    ];
    assert_eq!(mistakes.len(), expected.len(), "{mistakes:#?}");
    for (mistake, says) in mistakes.iter().zip(expected) {
        assert!(mistake.contains(says), "{mistake}");
    }
    let twice = set(vec![task("a", 1, main()), task("b", 1, main())]);
    let mistakes = plan(&situation(&twice, &threads, &status(0..4, Vec::new()))).unwrap_err();
    assert_eq!(
        mistakes,
        ["task `b`: is the same thread as task `a`, 40; a thread has one reservation"]
    );
}
