//! Saves the state in a thread of its own: a slow disk delays neither calls nor scheduling events.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};

use super::StateFile;
use crate::reservation_table::ReservedTask;

/// A thread that replaces the state file, once at a time.
#[derive(Debug)]
pub(crate) struct StateWriter {
    sender: Option<SyncSender<Vec<ReservedTask>>>,
    results: Receiver<io::Result<()>>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl StateWriter {
    /// Begins, with nothing to do.
    ///
    /// # Errors
    /// If no thread can be created.
    pub(crate) fn begin(file: Arc<StateFile>) -> io::Result<Self> {
        let (sender, states) = sync_channel::<Vec<ReservedTask>>(1);
        let (answers, results) = sync_channel(1);
        let write = move || {
            for tasks in states {
                // The receiver is gone if the daemon has ended.
                let _ = answers.send(file.save(tasks.iter()));
            }
        };
        let thread = Builder::new().name("state".to_owned()).spawn(write)?;
        Ok(Self {
            sender: Some(sender),
            results,
            is_busy: false,
            thread: Some(thread),
        })
    }

    /// Whether a state is being written.
    pub(crate) const fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Begins to write this state. To be called while it is not busy.
    pub(crate) fn save(&mut self, tasks: Vec<ReservedTask>) {
        // Fails only if the thread has panicked, which the next poll reports.
        if let Some(sender) = &self.sender {
            let _ = sender.try_send(tasks);
        }
        self.is_busy = true;
    }

    /// The result of the last [`save`](Self::save), once, when it has ended.
    pub(crate) fn poll(&mut self) -> Option<io::Result<()>> {
        if !self.is_busy {
            return None;
        }
        let result = match self.results.try_recv() {
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Err(io::Error::other("its thread has ended")),
            Ok(result) => result,
        };
        self.is_busy = false;
        Some(result)
    }

    /// As [`poll`](Self::poll); waits for the end.
    pub(crate) fn wait(&mut self) -> Option<io::Result<()>> {
        if !std::mem::take(&mut self.is_busy) {
            return None;
        }
        let result = self.results.recv();
        Some(result.unwrap_or_else(|_| Err(io::Error::other("its thread has ended"))))
    }
}

impl Drop for StateWriter {
    /// What is being written is finished.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // Its failure has no consequences any more.
            let _ = thread.join();
        }
    }
}
