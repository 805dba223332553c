//! How everything that computes waits.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::prelude::*;

/// How often Ctrl-C is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// As much as a main thread has.
const STACK_BYTES: usize = 8 << 20;

/// Work in a thread of its own. A thread and not a pool: pools do not survive `fork`.
struct Worker<T> {
    /// Set to stop the work.
    stop: Arc<AtomicBool>,
    /// Where it puts what it returns.
    answers: Receiver<T>,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> Worker<T> {
    fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> PyResult<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (sender, receiver) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("shiftwork".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                // After Ctrl-C the receiver is gone.
                let _ = sender.send(work(&seen));
            })?;
        Ok(Self {
            stop,
            answers: receiver,
            thread,
        })
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for a moment, without the interpreter's lock.
    fn wait(self, py: Python<'_>) -> Waited<T> {
        // All of it is moved: the thread that waits without the lock owns it alone.
        let (worker, answer) = py.detach(move || {
            let answer = self.answers.recv_timeout(LOOK_EVERY);
            (self, answer)
        });
        match answer {
            Ok(done) => Waited::Done(done),
            Err(RecvTimeoutError::Timeout) => Waited::GoesOn(worker),
            Err(RecvTimeoutError::Disconnected) => match worker.thread.join() {
                Ok(()) => unreachable!("a worker that ends has sent"),
                Err(panic) => resume_unwind(panic),
            },
        }
    }
}

enum Waited<T> {
    Done(T),
    GoesOn(Worker<T>),
}

/// Lets a thread of its own do the work, without the interpreter's lock, and waits for it or for Ctrl-C.
///
/// After Ctrl-C this returns at once, and the flag that the work gets is set. Work that checks it
/// ends soon; other work goes on in the background until it is done.
///
/// # Errors
/// What a signal handler of Python raises, `KeyboardInterrupt` as a rule; or that there are no more threads.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let mut worker = Worker::start(work)?;
    loop {
        worker = match worker.wait(py) {
            Waited::Done(done) => return Ok(done),
            Waited::GoesOn(worker) => worker,
        };
        py.check_signals().inspect_err(|_| worker.stop())?;
    }
}

/// As [`interruptible`], for work that leaves something when it ends: after Ctrl-C this sets the
/// flag and waits for the end of the work. `glance` is called several times a second; an error of
/// it counts as Ctrl-C. Returns what the work returned, with the error that stopped it.
///
/// # Errors
/// After a second Ctrl-C, which ends the wait; or that there are no more threads.
pub fn watched<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
    glance: &mut dyn FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<(T, Option<PyErr>)> {
    let mut worker = Worker::start(work)?;
    let mut raised = None;
    loop {
        worker = match worker.wait(py) {
            Waited::Done(done) => return Ok((done, raised)),
            Waited::GoesOn(worker) => worker,
        };
        match raised {
            None => {
                let seen = py.check_signals().and_then(|()| glance(py));
                raised = seen.inspect_err(|_| worker.stop()).err();
            }
            Some(_) => py.check_signals()?,
        }
    }
}
