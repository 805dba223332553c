//! A pseudo terminal with what a program shows on it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(5);

/// A program on a pseudo terminal.
pub struct Terminal {
    controller: File,
    /// The side of the program: open, so that its modes can be read after the end.
    program_side: OwnedFd,
    screen: Arc<Mutex<Screen>>,
    child: Child,
    modes: LocalModes,
    /// What reads from the controller, until it is to end.
    reader: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Terminal {
    /// Starts the program with this terminal as its controlling one, 80 columns wide and 24 rows high.
    pub fn start(command: &Command) -> Self {
        let controller =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let program_side = open(
            std::ffi::OsStr::from_bytes(name.as_bytes()),
            flags,
            Mode::empty(),
        );
        let program_side = program_side.unwrap();
        let screen = Arc::new(Mutex::new(Screen::new()));
        let mut in_session = Command::new("setsid");
        in_session
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => in_session.env(name, value),
                None => in_session.env_remove(name),
            };
        }
        let side = || program_side.try_clone().unwrap();
        let controller = File::from(controller);
        let is_over = Arc::new(AtomicBool::new(false));
        let reader = spawn({
            let (output, screen) = (controller.try_clone().unwrap(), Arc::clone(&screen));
            let is_over = Arc::clone(&is_over);
            move || follow(output, &screen, &is_over)
        });
        let mut terminal = Self {
            modes: tcgetattr(&program_side).unwrap().local_modes,
            child: in_session
                .stdin(side())
                .stdout(side())
                .stderr(side())
                .env("TERM", "xterm-256color")
                .spawn()
                .unwrap(),
            controller,
            program_side,
            screen,
            reader: Some(reader),
            is_over,
        };
        terminal.resize(80, 24);
        terminal
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_col: columns,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.controller, size).unwrap();
    }

    pub fn press(&mut self, keys: &[u8]) {
        self.controller.write_all(keys).unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the screen is as wanted.
    pub fn wait(&self, what: &str, is_wanted: impl Fn(&Screen) -> bool) {
        let mut waited = Duration::ZERO;
        while !is_wanted(&self.screen.lock().unwrap()) {
            let text = self.screen.lock().unwrap().text();
            assert!(waited < PATIENCE, "no {what} on the screen:\n{text}");
            sleep(NAP);
            waited += NAP;
        }
    }

    /// Waits until the text is on the screen.
    pub fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.text().contains(text));
    }

    /// Whether keys reach the program one by one and are not shown by the terminal.
    pub fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.program_side).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Closes it, as a window or a connection does that ends, and waits for the end.
    pub fn hang_up(mut self) -> ExitStatus {
        self.is_over.store(true, Ordering::Relaxed);
        self.reader.take().unwrap().join().unwrap();
        let nothing = || {
            File::options()
                .read(true)
                .write(true)
                .open("/dev/null")
                .unwrap()
        };
        self.controller = nothing();
        self.program_side = nothing().into();
        ended(&mut self.child)
    }

    /// Waits for the end; the terminal must be as it was before.
    pub fn end(mut self) -> ExitStatus {
        let status = ended(&mut self.child);
        self.wait("screen as before", |screen| {
            !screen.is_alternate && screen.has_cursor
        });
        let modes = tcgetattr(&self.program_side).unwrap().local_modes;
        assert_eq!(modes, self.modes);
        status
    }
}

/// Shows what comes, until it is over or the program side is closed.
fn follow(mut output: File, screen: &Mutex<Screen>, is_over: &AtomicBool) {
    let mut bytes = [0; 4096];
    let nap = Timespec::try_from(NAP).unwrap();
    while !is_over.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(&output, PollFlags::IN)];
        if poll(&mut fds, Some(&nap)).unwrap() == 0 {
            continue;
        }
        match output.read(&mut bytes) {
            Ok(length @ 1..) => screen.lock().unwrap().write(&bytes[..length]),
            _ => break,
        }
    }
}

/// Waits for the end.
fn ended(child: &mut Child) -> ExitStatus {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(waited < PATIENCE, "it does not end");
        sleep(NAP);
        waited += NAP;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is on a screen, as far as programs here use it.
pub struct Screen {
    rows: Vec<Vec<char>>,
    at: (usize, usize),
    pending: Vec<u8>,
    pub is_alternate: bool,
    /// How often a program took the alternate screen.
    pub times_taken: usize,
    pub has_cursor: bool,
    pub has_color: bool,
}

const ROWS: usize = 24;
const COLUMNS: usize = 80;

impl Screen {
    fn new() -> Self {
        Self {
            rows: vec![vec![' '; COLUMNS]; ROWS],
            at: (0, 0),
            pending: Vec::new(),
            is_alternate: false,
            times_taken: 0,
            has_cursor: true,
            has_color: false,
        }
    }

    pub fn text(&self) -> String {
        let rows = self.rows.iter();
        let rows = rows.map(|row| row.iter().collect::<String>().trim_end().to_owned() + "\n");
        rows.collect()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let bytes = std::mem::take(&mut self.pending);
        let valid = match std::str::from_utf8(&bytes) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = std::str::from_utf8(&bytes[..valid]).unwrap();
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let after = &rest[char.len_utf8()..];
            rest = match char {
                '\u{1b}' => match self.sequence(after) {
                    Some(after) => after,
                    None => break,
                },
                '\r' => {
                    self.at.1 = 0;
                    after
                }
                '\n' => {
                    self.at.0 += 1;
                    after
                }
                char => {
                    self.put(char);
                    after
                }
            };
        }
        self.pending = bytes[text.len() - rest.len()..].to_vec();
    }

    /// Carries out what follows an escape character; `None`: it is not complete.
    fn sequence<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        if !text.starts_with('[') {
            return text.get(1..);
        }
        let end = text.find(|it: char| it.is_ascii_alphabetic())?;
        let (parameters, last) = (&text[1..end], &text[end..=end]);
        match (last, parameters) {
            ("H", _) => {
                let mut numbers = parameters.split(';').map(|it| it.parse().unwrap_or(1));
                let mut next = || numbers.next().unwrap_or(1_usize) - 1;
                self.at = (next(), next());
            }
            ("J", _) => self.clear(),
            ("h" | "l", "?1049") => {
                self.is_alternate = last == "h";
                self.times_taken += usize::from(self.is_alternate);
                self.clear();
            }
            ("h" | "l", "?25") => self.has_cursor = last == "h",
            // Of the colours the program uses only those; 39 and 49 are the default.
            ("m", _) => {
                self.has_color |= parameters
                    .split(';')
                    .any(|it| ["31", "33", "38"].contains(&it))
            }
            _ => {}
        }
        Some(&text[end + 1..])
    }

    fn clear(&mut self) {
        self.rows = vec![vec![' '; COLUMNS]; ROWS];
    }

    fn put(&mut self, char: char) {
        let (row, column) = self.at;
        if let Some(cell) = self.rows.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = char;
        }
        self.at.1 += 1;
    }
}
