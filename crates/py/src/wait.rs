//! How everything that computes waits.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// How often Ctrl-C is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// As much as a main thread has.
const STACK_BYTES: usize = 8 << 20;

/// Lets a thread of its own do the work, without the interpreter's lock, and waits for it or for Ctrl-C.
///
/// After Ctrl-C nobody waits any longer, and the flag that the work gets is set. Work that looks at it ends
/// soon; other work goes on unseen until it is done. A thread and not a pool: pools do not survive `fork`.
///
/// # Errors
/// What a signal handler of Python raises, `KeyboardInterrupt` as a rule; or that there are no more threads.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let (sender, mut receiver) = sync_channel(1);
    let worker = thread::Builder::new()
        .name("shiftwork".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            // Nobody listens any more after Ctrl-C.
            let _ = sender.send(work(&seen));
        })?;
    loop {
        let answer;
        (receiver, answer) = py.detach(move || {
            let answer = receiver.recv_timeout(LOOK_EVERY);
            (receiver, answer)
        });
        match answer {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py
                .check_signals()
                .inspect_err(|_| stop.store(true, Ordering::Relaxed))?,
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Ok(()) => unreachable!("a worker that ends has sent"),
                Err(panic) => resume_unwind(panic),
            },
        }
    }
}
