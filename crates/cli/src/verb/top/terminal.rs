//! The terminal as `top` uses it, and as it was before on every way out.

use std::io::{self, Stdout, stdin, stdout};
use std::mem::ManuallyDrop;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{Event, poll, read};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Frame, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::low_level::raise;

use super::key::Key;

/// What came from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key.
    Key(Key),
    /// It has another size.
    Resized,
}

/// Exit status of a process that its terminal leaves: as of one that SIGHUP ends.
const HUNG_UP: i32 = 128 + SIGHUP;

/// Whether the terminal is not as it was before.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// A full screen in raw mode, until it is dropped or the process panics.
pub struct Screen {
    /// Never dropped: it would show the cursor, which [`restore`] does, and panic where the terminal is gone.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// Set by a signal to end.
    is_ended: Arc<AtomicBool>,
    /// Set when the process goes on after it was stopped.
    is_continued: Arc<AtomicBool>,
    /// While the library reads: see [`input`](Self::input).
    is_reading: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal. From now on signals to end are only noted: see [`is_ended`](Self::is_ended).
    ///
    /// # Errors
    /// If it is none.
    pub fn open() -> io::Result<Self> {
        let [is_ended, is_continued, is_reading] =
            [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        signal_hook::flag::register_conditional_shutdown(SIGHUP, HUNG_UP, Arc::clone(&is_reading))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&is_continued))?;
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&is_ended))?;
        }
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            restore();
            before(panicked);
        }));
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| restore())?;
        Ok(Self {
            terminal: ManuallyDrop::new(terminal),
            is_ended,
            is_continued,
            is_reading,
        })
    }

    /// Whether a signal to end came.
    pub fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed)
    }

    /// Draws what has changed.
    ///
    /// # Errors
    /// If the terminal cannot be written.
    pub fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(view).map(drop)
    }

    /// Waits for input, at most for this long.
    ///
    /// The library would read a terminal that is gone again and again, without an end. So that is found out before; if it happens
    /// while the library reads, the signal of it ends the process.
    ///
    /// # Errors
    /// If the terminal cannot be read, or is gone.
    pub fn input(&self, timeout: Duration) -> io::Result<Option<Input>> {
        wait(timeout)?;
        self.is_reading.store(true, Ordering::SeqCst);
        let input = match self.is_ended.load(Ordering::SeqCst) {
            true => Ok(None),
            false => input_there(),
        };
        self.is_reading.store(false, Ordering::SeqCst);
        input
    }

    /// Stops the process as Ctrl-Z does, with the terminal as it was; takes the terminal again when it is continued.
    ///
    /// # Errors
    /// If the terminal is gone meanwhile.
    pub fn suspend(&mut self) -> io::Result<()> {
        restore();
        // This thread itself: another one could take the signal after the terminal is taken again.
        raise(SIGTSTP)?;
        self.take_again()
    }

    /// Takes the terminal again after the process was stopped by another one. Returns whether it was.
    ///
    /// # Errors
    /// If the terminal is gone meanwhile.
    pub fn resume(&mut self) -> io::Result<bool> {
        let was_stopped = self.is_continued.swap(false, Ordering::Relaxed);
        if was_stopped {
            // A shell has set its own modes meanwhile.
            restore();
            self.take_again()?;
        }
        Ok(was_stopped)
    }

    fn take_again(&mut self) -> io::Result<()> {
        take()?;
        // A new one draws everything, and does not ask for the cursor as `clear` does, which not all terminals answer.
        self.terminal = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(stdout()))?);
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Waits until there is input, a signal comes or so much time has passed.
///
/// # Errors
/// If the terminal is gone.
fn wait(timeout: Duration) -> io::Result<()> {
    let stdin = stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
    match rustix::event::poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    match fds[0].revents().intersects(gone) {
        true => Err(io::Error::other("it is gone")),
        false => Ok(()),
    }
}

/// What came, if there is something: a change of its size is known to the library alone.
fn input_there() -> io::Result<Option<Input>> {
    let is_there = match poll(Duration::ZERO) {
        // A signal came.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
        polled => polled?,
    };
    if !is_there {
        return Ok(None);
    }
    Ok(match read()? {
        Event::Key(event) => Key::of(event).map(Input::Key),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    })
}

fn take() -> io::Result<()> {
    IS_TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen).inspect_err(|_| restore())
}

/// Gives the terminal back as it was. The second of two calls does nothing: it would move the cursor back over the message
/// of a panic.
fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
