//! `shiftwork top`: the reserved threads as they are now, on a terminal or as repeated output.
//!
//! [`state`] says what is shown, from keys and answers; [`view`] draws it; [`poller`] asks the daemon; [`terminal`] is the
//! terminal. Here they meet.

mod key;
mod poller;
mod repeat;
mod scroll;
mod state;
mod terminal;
mod view;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use ratatui::crossterm::style::force_color_output;
use shiftwork_daemon::clock::now;

use super::daemon_client;
use super::status::users::Users;
use crate::args::TopArgs;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use poller::Poller;
use state::{Next, State, Visible};
use terminal::{Input, Screen};

/// How long keys are waited for before answers and signals are looked for.
const NAP: Duration = Duration::from_millis(50);

/// On a terminal shows the threads until a key ends that; otherwise, with `--json` or `--count`, the status repeatedly.
pub fn run(args: &TopArgs, console: &mut Console) -> Result<Answer, Failure> {
    match args.count.is_some() || console.json || !is_interactive() {
        true => repeat::run(args, console),
        false => interactive(args, console),
    }
}

fn is_interactive() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|it| it.is_empty() || it == "dumb");
    !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

fn interactive(args: &TopArgs, console: &Console) -> Result<Answer, Failure> {
    // Without a daemon at the beginning there is nothing to show, as for all verbs.
    let mut client = daemon_client::connect()?;
    let status = client.status();
    let status = status.map_err(|failure| daemon_client::of(&failure))?;
    let failed = |error: &io::Error| Failure::Machine(format!("the terminal: {error}"));
    let poller = Poller::begin(client).map_err(|error| failed(&error))?;
    let mut state = State::new(status, Users::of_this_machine(), args.interval, now());
    // The command line decides, and not what the library reads of NO_COLOR.
    force_color_output(console.color);
    let mut screen = Screen::open().map_err(|error| failed(&error))?;
    let shown = show(&mut screen, &mut state, &poller, console.color);
    drop(screen);
    match shown {
        Ok(()) => Ok(Answer::Yes),
        Err(Ended::Terminal(error)) => Err(failed(&error)),
        Err(Ended::Poller) => Err(Failure::Machine(
            "the thread that asks the daemon has ended; please report this with the message above"
                .to_owned(),
        )),
    }
}

/// Why it cannot go on.
enum Ended {
    Terminal(io::Error),
    Poller,
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Terminal(error)
    }
}

/// Until a key or a signal ends it.
fn show(
    screen: &mut Screen,
    state: &mut State,
    poller: &Poller,
    has_color: bool,
) -> Result<(), Ended> {
    /// An age on the screen is at most this much too small.
    const REDRAWN_EVERY: u32 = 10;
    let mut naps = 0;
    let mut is_changed = true;
    while !screen.is_ended() {
        is_changed |= screen.resume()?;
        if let Some(question) = state.question(now()) {
            poller.ask(question);
        }
        while let Some(answer) = poller.answer().map_err(|_| Ended::Poller)? {
            state.take(answer, now());
            is_changed = true;
        }
        if is_changed || naps >= REDRAWN_EVERY {
            let mut visible = Visible::default();
            screen.draw(|frame| visible = view::draw(frame, state, now(), has_color))?;
            state.fit(visible);
            (is_changed, naps) = (false, 0);
        }
        // Keys that come faster than screens are drawn are taken together.
        let mut timeout = NAP;
        while let Some(input) = screen.input(timeout)? {
            (is_changed, timeout) = (true, Duration::ZERO);
            let Input::Key(key) = input else { continue };
            match state.press(key) {
                Next::Continue => {}
                Next::Suspend => screen.suspend()?,
                Next::Quit => return Ok(()),
            }
        }
        naps += 1;
    }
    Ok(())
}
