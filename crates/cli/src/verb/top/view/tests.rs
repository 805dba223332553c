//! Whole screens, as text. `INSTA_UPDATE=always` writes what differs.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use shiftwork_client::{State as ReservationState, Task};
use shiftwork_model::Span;

use super::super::state::Answer;
use super::super::tests::{NOW, miss, press, state, status, thread};
use super::*;

/// Draws twice, as after a resize: the first frame has the positions of the size before.
fn drawn(state: &mut State, (width, height): (u16, u16), has_color: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut frames = Vec::new();
    for _ in 0..2 {
        let mut visible = Visible::default();
        let frame = terminal
            .draw(|frame| visible = draw(frame, state, NOW, has_color))
            .unwrap();
        frames.push(frame.buffer.clone());
        state.fit(visible);
    }
    assert_eq!(frames[0], frames[1], "the first frame is right already");
    frames.remove(0)
}

/// The characters of a screen; the selected row begins by `>`, all others by `|`.
fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in buffer.area.rows() {
        let first = &buffer[(row.x, row.y)];
        let is_selected = first.modifier.contains(ratatui::style::Modifier::REVERSED);
        let mut line = String::new();
        let mut hidden = 0;
        for at in row.columns() {
            let symbol = buffer[(at.x, at.y)].symbol();
            assert!(!symbol.chars().any(char::is_control), "{symbol:?}");
            // A wide character hides the cell behind it.
            match hidden {
                0 => line.push_str(symbol),
                _ => hidden -= 1,
            }
            if hidden == 0 {
                hidden = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            }
        }
        text.push(if is_selected { '>' } else { '|' });
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn screen(state: &mut State, size: (u16, u16)) -> String {
    text(&drawn(state, size, false))
}

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 12)];

/// Compares the screen in all sizes.
fn compare(name: &str, state: &mut State) {
    for (width, height) in SIZES {
        let shown = screen(state, (width, height));
        insta::assert_snapshot!(format!("{name}-{width}x{height}"), shown);
    }
}

/// Threads as on a robot: some late, one without its reservation.
fn rover() -> Vec<Task> {
    let mut tasks = vec![
        thread(1, "rover/imu"),
        thread(2, "rover/camera-left-rectification-and-undistortion"),
        thread(3, "rover/control"),
        thread(4, "制御ループ日本語の長い名前です"),
        thread(5, "evil\u{1b}[2J\u{1b}]0;title\u{7}\nname\u{202e}"),
        thread(6, "plan"),
    ];
    tasks[0].process = tasks[0].thread;
    tasks[1].misses = 12;
    tasks[1].response_max = Span::from_us(10_020);
    tasks[1].tardiness_max = Span::from_us(20);
    tasks[1].overruns = 3;
    tasks[1].load = 0.19;
    tasks[1].cpu = Some(2);
    tasks[2].user = 0;
    tasks[2].misses = 1;
    tasks[2].jobs = 12_345_678;
    tasks[3].user = 998;
    tasks[3].reservation.cpus = Some("0,2,4,6,8,10,12,14".to_owned());
    tasks[3].reservation.cost = Span::from_us(2_390);
    tasks[3].reservation.period = Span::from_ms(20);
    tasks[5].state = ReservationState::Demoted;
    tasks[5].guarantee = "none".to_owned();
    tasks[5].load = 0.0;
    tasks[5].jobs = 0;
    tasks[5].response_max = Span::ZERO;
    tasks
}

#[test]
fn threads() {
    let mut state = state(status(rover()));
    press(&mut state, "j");
    compare("threads", &mut state);
}

#[test]
fn no_threads() {
    compare("no_threads", &mut state(status(Vec::new())));
}

#[test]
fn thousand_threads() {
    let tasks = (0..1_000).map(|number| thread(number, &format!("task {number}")));
    let mut state = state(status(tasks.collect()));
    drawn(&mut state, (80, 24), false);
    press(&mut state, "Gkk");
    compare("thousand_threads", &mut state);
}

#[test]
fn filter_while_it_is_typed() {
    let mut state = state(status(rover()));
    press(&mut state, "/rover");
    compare("filter", &mut state);
    press(&mut state, "x");
    insta::assert_snapshot!(screen(&mut state, (40, 12)));
}

#[test]
fn everything_wrong() {
    let mut status = status(rover());
    status.cpus[3].online = false;
    status.lost = 7;
    status.problems = vec!["the state cannot be saved: no space left on device".to_owned()];
    let mut state = state(status);
    let earlier = shiftwork_model::Instant::from_ns(NOW.as_ns() - 12_000_000_000);
    state.question(NOW);
    let reason = "no daemon at /run/shiftwork/daemon.sock".to_owned();
    state.take(Answer::Failed(reason), earlier);
    press(&mut state, "p");
    compare("everything_wrong", &mut state);
    press(&mut state, "c");
    compare("cpus", &mut state);
}

#[test]
fn misses_of_thread() {
    let mut state = state(status(rover()));
    press(&mut state, "\n");
    insta::assert_snapshot!("asking-80x24", screen(&mut state, (80, 24)));
    state.question(NOW).unwrap();
    let answer = Answer::Answered {
        status: Box::new(status(rover())),
        misses: Some((2, Ok(vec![miss(9), miss(8), miss(1)]))),
    };
    state.take(answer, NOW);
    compare("misses", &mut state);
    press(&mut state, "G");
    insta::assert_snapshot!("misses_end-40x12", screen(&mut state, (40, 12)));
}

#[test]
fn thread_that_ended_without_misses() {
    let mut state = state(status(rover()));
    press(&mut state, "G\n");
    state.question(NOW).unwrap();
    let answer = Answer::Answered {
        status: Box::new(status(Vec::new())),
        misses: Some((6, Err("there is no task 6".to_owned()))),
    };
    state.take(answer, NOW);
    insta::assert_snapshot!(screen(&mut state, (80, 24)));
}

#[test]
fn help() {
    let mut state = state(status(rover()));
    press(&mut state, "?");
    compare("help", &mut state);
}

/// Every size, on every screen: nothing panics, and no cell has a control character.
#[test]
fn every_size_is_drawn() {
    for keys in ["", "j\n", "c", "?", "/x", "p"] {
        let mut state = state(status(rover()));
        press(&mut state, keys);
        for width in (1..=45).step_by(4).chain([80, 300]) {
            for height in (1..=13).step_by(2).chain([24, 60]) {
                screen(&mut state, (width, height));
            }
        }
    }
}

#[test]
fn without_colour_no_cell_has_one() {
    let mut state = state(status(rover()));
    let colored = |buffer: &Buffer| {
        let mut cells = buffer.content.iter();
        cells.any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(!colored(&drawn(&mut state, (80, 24), false)));
    assert!(colored(&drawn(&mut state, (80, 24), true)));
}
