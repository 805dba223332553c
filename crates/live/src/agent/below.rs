//! The thread of a run on the CPU of an agent that looks all the time for something to do.

use std::io;

use crate::sys::thread::{Class, is_ordinary, set_class};

/// The calling thread runs when the agent yields the CPU that both use, and never instead of it, until this is dropped.
///
/// As an ordinary thread it would wait for the same yields. But when an ordinary thread has waited for most of a second, kernels let it
/// run before all real-time ones for 50 ms, and then whenever it wakes up: then each time that it reads the trace the
/// agent's decisions wait.
#[derive(Debug)]
pub(crate) struct BelowAgent {
    /// Whether it was an ordinary thread. Otherwise its class is what the user has given it.
    was_ordinary: bool,
}

impl BelowAgent {
    /// The least urgent real-time priority: less than that of the agent, and of threads of interrupts.
    const PRIORITY: u8 = 1;

    /// # Errors
    /// If this process may have no real-time threads.
    pub(crate) fn begin() -> io::Result<Self> {
        let was_ordinary = is_ordinary()?;
        if was_ordinary {
            set_class(None, Class::FifoAlone(Self::PRIORITY))?;
        }
        Ok(Self { was_ordinary })
    }
}

impl Drop for BelowAgent {
    fn drop(&mut self) {
        if self.was_ordinary {
            // A process that may load a scheduler may do that.
            let _ = set_class(None, Class::Ordinary);
        }
    }
}
