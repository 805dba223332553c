//! `top` on a terminal, with a daemon that decides as ever.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod terminal;
#[path = "../common/test_daemon.rs"]
mod test_daemon;

use std::process::Command;

use rustix::process::Signal;

use terminal::Terminal;
use test_daemon::{Sleepers, TestDaemon};

/// A daemon with reservations for two threads of this process.
fn daemon() -> (TestDaemon, Sleepers) {
    let daemon = TestDaemon::start();
    let sleepers = Sleepers::start(&["camera", "control"]);
    for (thread, name) in sleepers.threads.iter().zip(["camera", "control"]) {
        let thread = thread.to_string();
        let options = ["exec", "--tid", &thread, "--name", name];
        let reserved = daemon.run(&[&options[..], &["--cost", "1ms", "--period", "10ms"]].concat());
        assert!(reserved.status.success(), "{reserved:?}");
    }
    (daemon, sleepers)
}

fn top(daemon: &TestDaemon) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shiftwork"));
    command
        .args(["top", "--interval", "50ms"])
        .env_remove("NO_COLOR")
        .env("SHIFTWORK_SOCKET", daemon.folder.path().join("socket"));
    command
}

/// A name, and what is done.
type Way = (&'static str, fn(&mut Terminal));

#[test]
fn every_way_out_restores_terminal() {
    let (daemon, _sleepers) = daemon();
    let ways: [Way; 5] = [
        ("q", |it| it.press(b"q")),
        ("Ctrl-C", |it| it.press(b"\x03")),
        ("SIGTERM", |it| it.signal(Signal::TERM)),
        ("SIGINT", |it| it.signal(Signal::INT)),
        ("SIGHUP", |it| it.signal(Signal::HUP)),
    ];
    for (way, leave) in ways {
        let mut terminal = Terminal::start(&top(&daemon));
        terminal.wait_for("control");
        assert!(terminal.is_raw(), "{way}");
        terminal.wait("screen of its own", |screen| {
            screen.is_alternate && !screen.has_cursor
        });
        leave(&mut terminal);
        assert_eq!(terminal.end().code(), Some(0), "{way}");
    }
}

#[test]
fn terminal_that_hangs_up_ends_it() {
    let (daemon, _sleepers) = daemon();
    // With SIGHUP, and without one, as of a process that is not in the foreground or ignores it.
    for ignores in [false, true] {
        let mut command = top(&daemon);
        if ignores {
            let mut shell = Command::new("sh");
            shell.args(["-c", "trap '' HUP; \"$@\"; exit $?", "sh"]);
            shell.arg(command.get_program()).args(command.get_args());
            shell.env("SHIFTWORK_SOCKET", daemon.folder.path().join("socket"));
            command = shell;
        }
        let terminal = Terminal::start(&command);
        terminal.wait_for("control");
        let ended = terminal.hang_up();
        assert_ne!(ended.code(), Some(101), "a panic, {ignores}");
    }
}

#[test]
fn keys_filter_open_and_page_while_answers_come() {
    let (daemon, _sleepers) = daemon();
    let mut terminal = Terminal::start(&top(&daemon));
    terminal.wait_for("camera");
    terminal.press(b"/contr\r");
    terminal.wait("only one thread", |screen| {
        let text = screen.text();
        text.contains("1-1 of 1 thread of 2 with `contr`") && !text.contains("camera")
    });
    terminal.press(b"\r");
    terminal.wait_for("no missed deadline");
    terminal.press(b"\x1b");
    terminal.wait_for("by missed");
    terminal.press(b"c");
    terminal.wait_for("free for one task");
    terminal.press(b"?");
    terminal.wait_for("misses and causes");
    terminal.resize(40, 12);
    terminal.wait("narrow screen", |screen| {
        let text = screen.text();
        let rows: Vec<&str> = text.lines().collect();
        rows[11].starts_with("Esc back") && rows[12..].iter().all(|row| row.is_empty())
    });
    terminal.press(b"q");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn stopped_program_takes_terminal_again() {
    let (daemon, _sleepers) = daemon();
    let mut terminal = Terminal::start(&top(&daemon));
    terminal.wait_for("control");
    let taken_again = |terminal: &Terminal, times: usize| {
        terminal.wait("screen that is taken again", |screen| {
            screen.times_taken == times && screen.text().contains("control")
        });
        assert!(terminal.is_raw());
    };
    terminal.signal(Signal::STOP);
    terminal.signal(Signal::CONT);
    taken_again(&terminal, 2);
    // The only process of its session is not stopped by a terminal, but goes on.
    terminal.press(b"\x1a");
    taken_again(&terminal, 3);
    terminal.press(b"q");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn daemon_may_end_and_come_back() {
    let (mut daemon, _sleepers) = daemon();
    let mut terminal = Terminal::start(&top(&daemon));
    terminal.wait_for("control");
    daemon.stop();
    terminal.wait_for("connection lost");
    terminal.wait_for("control");
    daemon.restart();
    terminal.wait("connection", |screen| {
        let text = screen.text();
        !text.contains("connection lost") && text.contains("control")
    });
    terminal.press(b"q");
    assert_eq!(terminal.end().code(), Some(0));
}

#[test]
fn slow_daemon_is_shown_and_delays_no_key() {
    let (daemon, _sleepers) = daemon();
    let mut terminal = Terminal::start(&top(&daemon));
    terminal.wait_for("control");
    daemon.set_stuck(true);
    terminal.wait_for("the daemon has not answered for");
    terminal.press(b"?");
    terminal.wait_for("misses and causes");
    terminal.press(b"q");
    assert_eq!(terminal.end().code(), Some(0));
    daemon.set_stuck(false);
}

#[test]
fn colour_is_left_out_on_request() {
    let (mut daemon, sleepers) = daemon();
    let thread = sleepers.threads[0].to_string();
    daemon.stop();
    for (variable, option, has_color) in [
        ("", "auto", true),
        ("1", "auto", false),
        ("", "never", false),
        ("1", "always", true),
    ] {
        let mut command = top(&daemon);
        command.env("NO_COLOR", variable).args(["--color", option]);
        daemon.restart();
        let mut terminal = Terminal::start(&command);
        terminal.wait_for(&thread);
        // What is wrong is red.
        daemon.stop();
        terminal.wait_for("connection lost");
        terminal.wait("colour", |screen| screen.has_color == has_color);
        terminal.press(b"q");
        assert_eq!(terminal.end().code(), Some(0));
    }
}

#[test]
fn without_terminal_or_with_count_it_prints() {
    let (daemon, _sleepers) = daemon();
    let printed = daemon.run(&["top", "--count", "2", "--interval", "1ms"]);
    let text = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(text.matches("strong-edf for ").count(), 2, "{text}");
    assert_eq!(text.matches("camera").count(), 2, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    // On a terminal `--count` prints, too.
    let mut command = top(&daemon);
    command.args(["--count", "1"]);
    let terminal = Terminal::start(&command);
    terminal.wait_for("control");
    assert!(!terminal.is_raw());
    assert_eq!(terminal.end().code(), Some(0));
}
