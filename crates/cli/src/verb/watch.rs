//! A progress bar, and stopping at Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use shiftwork_model::{Instant, Span};

use crate::output::Console;

/// Set by the first Ctrl-C.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Set by SIGTERM.
static TERMINATED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on the first Ctrl-C, or SIGTERM as batch systems send when time is over, is only noted, so that what
/// there is can be written; a second Ctrl-C ends the process. Hang-ups are left to `nohup`.
pub fn catch_interrupts() {
    // Without a handler signals end the process at once, which is no worse than to refuse.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    catch_termination();
}

/// The same for SIGTERM alone, by no thread of its own. It may be asked for twice.
pub fn catch_termination() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&TERMINATED));
}

/// Whether SIGTERM came.
pub fn is_terminated() -> bool {
    TERMINATED.load(Ordering::Relaxed)
}

/// Whether Ctrl-C was pressed, or SIGTERM came.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed) || is_terminated()
}

/// Follows a simulation through its time.
pub struct Watch {
    bar: ProgressBar,
    /// When to draw next.
    next: Instant,
    step: Span,
}

impl Watch {
    /// Watches runs to this horizon. From now on the first Ctrl-C stops the run, so that what was
    /// simulated is shown; the second ends the process.
    pub fn new(console: &Console, horizon: Instant) -> Self {
        catch_interrupts();
        let bar = if console.shows_progress() {
            ProgressBar::new(horizon.as_ns()).with_style(
                ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}%")
                    .expect("the template is a constant that a test draws"),
            )
        } else {
            ProgressBar::hidden()
        };
        // A thousand pictures are smooth enough.
        let step = Span::from_ns((horizon.as_ns() / 1_000).max(1));
        Self {
            bar,
            next: Instant::ZERO,
            step,
        }
    }

    /// The next run begins.
    pub fn start(&mut self, policy: &'static str) {
        self.bar.set_message(policy);
        self.bar.set_position(0);
        self.next = Instant::ZERO + self.step;
    }

    /// Called before every instant of a run; whether to go on.
    pub fn goes_on(&mut self, now: Instant) -> bool {
        if now >= self.next {
            self.bar.set_position(now.as_ns());
            self.next = now + self.step;
        }
        !self.is_interrupted()
    }

    /// Whether Ctrl-C was pressed.
    pub fn is_interrupted(&self) -> bool {
        is_interrupted()
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Shows that work goes on of which it is not known how much there is, once it takes longer than [`PATIENCE`]. Ctrl-C ends the
/// process, as there is nothing to be shown before the end.
pub struct Spinner {
    bar: ProgressBar,
}

/// What is over sooner needs no picture.
const PATIENCE: Duration = Duration::from_millis(500);

impl Spinner {
    /// Work of this kind begins.
    pub fn new(console: &Console, what: &'static str) -> Self {
        if !console.shows_progress() {
            let bar = ProgressBar::hidden();
            return Self { bar };
        }
        let bar = ProgressBar::new_spinner().with_message(what);
        // By a thread of its own.
        bar.enable_steady_tick(PATIENCE);
        Self { bar }
    }

    /// From now on it is this work.
    pub fn show(&mut self, what: &str) {
        // A message is drawn at once.
        if self.bar.elapsed() >= PATIENCE {
            self.bar.set_message(what.to_owned());
        }
    }

    /// Takes the picture away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_sound() {
        assert!(ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}%").is_ok());
    }
}
