//! The status repeatedly: `top` without a terminal.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use shiftwork_model::Span;

use crate::args::TopArgs;
use crate::failure::{Answer, Failure};
use crate::output::Console;
use crate::verb::daemon_client;
use crate::verb::status::show;
use crate::verb::watch::{catch_interrupts, is_interrupted};

/// Maximum delay of the reaction to Ctrl-C.
const NAP: Span = Span::from_ms(100);

/// Shows the status until Ctrl-C, or as often as requested.
pub fn run(args: &TopArgs, console: &mut Console) -> Result<Answer, Failure> {
    /// Moves the cursor to the upper left corner and clears the screen.
    const CLEARED: &str = "\x1b[H\x1b[J";
    let clears = io::stdout().is_terminal() && !console.json;
    let mut client = daemon_client::connect()?;
    catch_interrupts();
    let mut shown = 0;
    while !is_interrupted() {
        let status = client
            .status()
            .map_err(|failure| daemon_client::of(&failure))?;
        match (clears, shown) {
            (true, _) => console.text(CLEARED)?,
            (false, 0) => {}
            (false, _) if console.json => {}
            (false, _) => console.line("")?,
        }
        show(&status, console)?;
        console.flush()?;
        shown += 1;
        if args.count.is_some_and(|count| shown >= count) {
            break;
        }
        let mut left = args.interval;
        while !left.is_zero() && !is_interrupted() {
            let nap = left.min(NAP);
            std::thread::sleep(Duration::from_nanos(nap.as_ns()));
            left -= nap;
        }
    }
    // Without a count Ctrl-C is the regular end.
    Ok(match args.count {
        Some(count) if shown < count => Answer::Interrupted,
        _ => Answer::Yes,
    })
}
