//! A status for tests of `top`, and the state for random keys and answers.

use std::collections::BTreeSet;

use shiftwork_client::{
    Cpu, Miss, Reservation, Room, State as ReservationState, Status, Task as Reserved,
};
use shiftwork_model::{Instant, RandomStream, Span};

use super::key::Key;
use super::state::{Answer, Next, Screen, State, Visible};
use crate::verb::status::columns::COLUMNS;
use crate::verb::status::users::Users;

pub(super) const NOW: Instant = Instant::from_ns(3_723_000_000_000);

pub(super) fn users() -> Users {
    Users::read("root:x:0:\nanna:x:1000:\nsvc-telemetry-collector:x:998:\n")
}

/// A thread that uses half of 2 ms in each 10 ms, and has missed no deadline in a thousand jobs.
pub(super) fn thread(number: u32, name: &str) -> Reserved {
    Reserved {
        task: number,
        name: name.to_owned(),
        process: 4_000,
        thread: 4_000 + number,
        user: 1_000,
        cgroup: "/user.slice".to_owned(),
        reservation: Reservation {
            cpus: Some("0-3".to_owned()),
            ..Reservation::new(Span::from_ms(2), Span::from_ms(10))
        },
        state: ReservationState::Admitted,
        guarantee: "bounded-tardiness".to_owned(),
        cpu: None,
        jobs: 1_000,
        misses: 0,
        overruns: 0,
        tardiness_max: Span::ZERO,
        response_max: Span::from_us(4_200),
        ran: Span::from_s(1),
        load: 0.1,
    }
}

pub(super) fn status(tasks: Vec<Reserved>) -> Status {
    let cpu = |cpu| Cpu {
        cpu,
        online: true,
        running: None,
        load: 0.125,
        share: 0.95,
        reserve: 0.05,
    };
    Status {
        version: "1.2.3".to_owned(),
        policy: "strong-edf".to_owned(),
        guarantee: "bounded-tardiness".to_owned(),
        cpus: (0..4).map(cpu).collect(),
        rooms: vec![
            Room {
                cpus: "0-3".to_owned(),
                reserved: 1.25,
                free: 0.95,
            },
            Room {
                cpus: "0,1".to_owned(),
                reserved: 0.5,
                free: 0.7,
            },
        ],
        misses: tasks.iter().map(|it| it.misses).sum(),
        tasks,
        since: Instant::ZERO,
        now: NOW,
        lost: 0,
        problems: Vec::new(),
    }
}

pub(super) fn state(status: Status) -> State {
    State::new(status, users(), Span::from_s(1), NOW)
}

pub(super) fn miss(job: u64) -> Miss {
    Miss {
        job,
        due: Instant::from_ns(NOW.as_ns() - job * 1_000_000_000),
        tardiness: Span::from_us(20 * job),
        ended: job != 1,
        cause: "overrun of hog".to_owned(),
        text: format!(
            "job {job} of control missed its deadline; cause: overrun of hog\n  It waited for 9 ms while `hog` ran.\n"
        ),
    }
}

/// The keys in a text, and `\n` for Enter, `\u{1b}` for Esc.
pub(super) fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let next = state.press(match key {
            '\n' => Key::Enter,
            '\u{1b}' => Key::Escape,
            char => Key::Char(char),
        });
        assert_eq!(next, Next::Continue, "{keys:?}");
    }
}

fn shown(state: &State) -> Vec<u32> {
    state.rows().map(|it| it.thread - 4_000).collect()
}

fn selected(state: &State) -> Option<u32> {
    state.selected().map(|it| it.thread - 4_000)
}

/// Three threads: 2 has missed most, then 3.
fn three() -> Vec<Reserved> {
    let mut tasks = vec![thread(1, "imu"), thread(2, "camera"), thread(3, "control")];
    (tasks[1].misses, tasks[2].misses) = (5, 1);
    tasks[2].user = 0;
    tasks
}

#[test]
fn most_missed_deadlines_come_first_at_first() {
    let mut state = state(status(three()));
    assert_eq!(shown(&state), [2, 3, 1]);
    press(&mut state, "r");
    assert_eq!(shown(&state), [1, 3, 2]);
    // To the right are `response`, `overruns` and `tardiness`, and then the first column.
    press(&mut state, ">>>>");
    assert_eq!(shown(&state), [1, 2, 3]);
    press(&mut state, "<>>>");
    assert_eq!(
        (shown(&state), state.sorted_by),
        (vec![2, 3, 1], 2),
        "by name"
    );
}

#[test]
fn selected_thread_stays_selected() {
    let mut state = state(status(three()));
    press(&mut state, "j");
    assert_eq!(selected(&state), Some(3));
    press(&mut state, "r>>");
    assert_eq!(selected(&state), Some(3));
    let mut tasks = three();
    tasks.insert(0, thread(9, "new"));
    tasks[1].misses = 70;
    let answered = |tasks| Answer::Answered {
        status: Box::new(status(tasks)),
        misses: None,
    };
    state.take(answered(tasks), NOW);
    assert_eq!(selected(&state), Some(3));
    // The one in its place, when it is gone.
    let place = state.threads.at();
    let mut tasks = three();
    tasks.remove(2);
    state.take(answered(tasks), NOW);
    assert_eq!(state.threads.at(), place.min(1));
    assert!(selected(&state).is_some());
    state.take(answered(Vec::new()), NOW);
    assert_eq!(selected(&state), None);
}

#[test]
fn filter_finds_name_owner_and_number() {
    let mut state = state(status(three()));
    for (typed, expected) in [
        ("CAM", &[2][..]),
        ("root", &[3]),
        ("4001", &[1]),
        ("c", &[2, 3]),
        ("zzz", &[]),
        ("", &[2, 3, 1]),
    ] {
        press(&mut state, "/");
        press(&mut state, typed);
        assert_eq!(shown(&state), expected, "{typed}");
        press(&mut state, "\n");
        assert_eq!((shown(&state), state.is_typing), (expected.to_vec(), false));
        press(&mut state, "\u{1b}");
        assert_eq!(shown(&state).len(), 3, "{typed}");
    }
    // Keys are text while it is typed.
    press(&mut state, "/qj?");
    assert_eq!(state.filter, "qj?");
    for left in ["qj", "q", ""] {
        state.press(Key::Backspace);
        assert_eq!(state.filter, left);
    }
    assert!(state.is_typing);
    state.press(Key::Backspace);
    assert!(!state.is_typing);
}

#[test]
fn opened_thread_asks_for_its_misses_at_once_and_again() {
    let mut state = state(status(three()));
    assert_eq!(state.question(NOW), None, "not before a second");
    press(&mut state, "j\n");
    let opened = |state: &State| state.opened.clone().unwrap();
    assert_eq!(
        (state.screen, opened(&state).task.task),
        (Screen::Thread, 3)
    );
    let question = state.question(NOW).unwrap();
    assert_eq!(question.misses_of, Some(3));
    assert_eq!(state.question(NOW), None, "one at a time");
    let answer = |tasks, of| Answer::Answered {
        status: Box::new(status(tasks)),
        misses: Some((of, Ok(vec![miss(2)]))),
    };
    // A late answer for another thread is not shown as that of this one.
    state.take(answer(three(), 2), NOW);
    assert_eq!(opened(&state).misses, None);
    state.question(NOW).unwrap();
    state.take(answer(three(), 3), NOW);
    assert_eq!(opened(&state).misses, Some(Ok(vec![miss(2)])));
    let later = NOW + Span::from_s(1);
    assert_eq!(state.question(NOW), None);
    assert_eq!(state.question(later).unwrap().misses_of, Some(3));
    // It ends.
    state.take(answer(vec![thread(1, "imu")], 3), later);
    assert!(!opened(&state).is_present);
    let question = state.question(later + Span::from_s(1)).unwrap();
    assert_eq!(question.misses_of, None);
    press(&mut state, "\u{1b}");
    assert_eq!((state.screen, state.opened), (Screen::Threads, None));
}

#[test]
fn pause_keeps_what_is_shown_and_asks_nothing() {
    let mut state = state(status(three()));
    let later = NOW + Span::from_s(2);
    state.question(later).unwrap();
    press(&mut state, "p");
    let answer = Answer::Answered {
        status: Box::new(status(Vec::new())),
        misses: None,
    };
    state.take(answer.clone(), later);
    assert_eq!(shown(&state).len(), 3);
    assert_eq!(state.question(later + Span::from_s(9)), None);
    // An opened thread is asked for nevertheless.
    press(&mut state, "\n");
    assert_eq!(state.question(later).unwrap().misses_of, Some(2));
    state.take(answer.clone(), later);
    press(&mut state, "\u{1b}p");
    assert!(state.question(later).is_some());
    state.take(answer, later);
    assert_eq!(shown(&state).len(), 0);
}

#[test]
fn lost_connection_is_dated_by_its_first_failure_and_asked_again() {
    let mut state = state(status(three()));
    let at = |s| NOW + Span::from_s(s);
    state.question(at(1)).unwrap();
    assert_eq!(state.waiting(at(2)), None);
    assert_eq!(state.waiting(at(4)), Some(Span::from_s(3)));
    let failed = |reason: &str| Answer::Failed(reason.to_owned());
    state.take(failed("a"), at(4));
    assert_eq!(state.question(at(4)), None, "not at once");
    state.question(at(5)).unwrap();
    state.take(failed("b"), at(6));
    assert_eq!(state.lost, Some((at(4), "b".to_owned())));
    assert_eq!(shown(&state).len(), 3, "what was known last");
    state.question(at(7)).unwrap();
    let answer = Answer::Answered {
        status: Box::new(status(three())),
        misses: None,
    };
    state.take(answer, at(7));
    assert_eq!(state.lost, None);
}

fn random_tasks(random: &mut RandomStream) -> Vec<Reserved> {
    let count = match random.below(30) {
        0 => 0,
        1 => 1_000,
        _ => random.below(40) as usize,
    };
    let mut numbers: Vec<u32> = (0..count as u32 + 10).collect();
    random.shuffle(&mut numbers);
    numbers.truncate(count);
    let tasks = numbers.into_iter().map(|number| {
        let names = ["imu", "camera", "\u{1b}[2J", "日本", ""];
        let mut task = thread(number, names[number as usize % names.len()]);
        task.misses = random.below(3);
        task.load = [0.0, 0.1, f64::NAN, 7.0][random.below(4) as usize];
        task.user = [0, 998, 1_000][random.below(3) as usize];
        if random.below(9) == 0 {
            task.state = ReservationState::Demoted;
        }
        task
    });
    tasks.collect()
}

/// Whatever keys and answers come: the rows are those that the filter and the order define, the selection is one of them and
/// visible, and it stays on its thread unless a key or the end of the thread moves it.
#[test]
fn random_keys_and_answers_keep_selection_and_order() {
    const KEYS: [Key; 13] = [
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Enter,
        Key::Escape,
        Key::Backspace,
        Key::Suspend,
        Key::Char('/'),
    ];
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 500,
        None => 25,
    };
    for seed in 1..=seeds {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut state = state(status(random_tasks(&mut random)));
        let mut now = NOW;
        for step in 0..200 {
            let what = format!("seed {seed}, step {step}");
            let before = selected(&state);
            let mut moves = false;
            match random.below(8) {
                0 => {
                    now += Span::from_ms(random.below(3_000));
                    if let Some(question) = state.question(now) {
                        let answer = match random.below(4) {
                            0 => Answer::Failed("gone".to_owned()),
                            _ => Answer::Answered {
                                status: Box::new(status(random_tasks(&mut random))),
                                misses: question.misses_of.map(|of| (of, Ok(vec![miss(1)]))),
                            },
                        };
                        state.take(answer, now);
                    }
                }
                1 => state.fit(Visible {
                    rows: random.below(50) as usize,
                    lines: (random.below(90) as usize, random.below(30) as usize),
                }),
                2..5 => {
                    let char = b"q?cpr<>jkgG h4am\xff"[random.below(17) as usize];
                    moves = state.is_typing || b"jkgG ".contains(&char);
                    state.press(Key::Char(char.into()));
                }
                _ => {
                    let key = KEYS[random.below(KEYS.len() as u64) as usize];
                    moves = state.is_typing || !matches!(key, Key::Left | Key::Right);
                    state.press(key);
                }
            }
            let rows = shown(&state);
            let wanted: Vec<&Reserved> = state
                .status
                .tasks
                .iter()
                .filter(|it| is_wanted(it, &state))
                .collect();
            let expected: BTreeSet<u32> = wanted.iter().map(|it| it.thread - 4_000).collect();
            assert_eq!(
                rows.iter().copied().collect::<BTreeSet<_>>(),
                expected,
                "{what}"
            );
            assert_eq!(rows.len(), expected.len(), "{what}");
            assert_order(&state, &what);
            let row = state.threads.at();
            assert_eq!(selected(&state), rows.get(row).copied(), "{what}");
            assert_eq!(selected(&state).is_none(), rows.is_empty(), "{what}");
            assert!(state.threads.first() <= row, "{what}");
            let kept = before.filter(|it| rows.contains(it) && !moves);
            assert!(
                kept.is_none() || kept == selected(&state),
                "{what}: {before:?}"
            );
        }
    }
}

/// The filter by definition.
fn is_wanted(task: &Reserved, state: &State) -> bool {
    let name = task.name.replace('\u{1b}', "?").to_lowercase();
    let texts = [name, state.users.name(task.user)];
    let typed = state.filter.to_lowercase();
    let numbers = [task.thread, task.process].map(|it| it.to_string());
    texts.iter().any(|it| it.contains(&typed)) || numbers.iter().any(|it| it.starts_with(&typed))
}

fn assert_order(state: &State, what: &str) {
    let column = &COLUMNS[state.sorted_by];
    let rows: Vec<&Reserved> = state.rows().collect();
    for pair in rows.windows(2) {
        let mut ordering = (column.order)(pair[0], pair[1]);
        if column.is_largest_first != state.is_reversed {
            ordering = ordering.reverse();
        }
        let is_first = ordering.is_lt() || ordering.is_eq() && pair[0].thread < pair[1].thread;
        assert!(is_first, "{what}: by {}", column.shape.heading);
    }
}
