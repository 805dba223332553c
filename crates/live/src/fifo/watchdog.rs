//! Restores ordinary scheduling after the agent has failed.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use shiftwork_model::CpuSet;

use super::blocker::START_TIMEOUT;
use super::shared_state::SharedState;
use super::{WATCHDOG_LEVEL, refused};
use crate::LiveError;
use crate::sync::Word;
use crate::sys::clock::monotonic_ns;
use crate::sys::thread::{Class, affinity_outside, set_affinity, set_class};

/// How often the watchdog checks the heartbeat of the agent.
const POLL_NS: u64 = 50_000_000;

/// A thread of higher priority than the agent, outside the platform if there is such a CPU. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Watchdog {
    state: Arc<Word>,
    thread: Option<JoinHandle<()>>,
}

const ON: u32 = 0;
const OFF: u32 = 1;

impl Watchdog {
    /// Starts to supervise the agent of this platform.
    ///
    /// # Errors
    /// If the kernel refuses a thread or its level.
    pub(super) fn start(shared: &Arc<SharedState>, platform: &CpuSet) -> Result<Self, LiveError> {
        let doing = "start the watchdog of the agent";
        let cpus = affinity_outside(platform).map_err(LiveError::system(doing))?;
        let (shared, state) = (Arc::clone(shared), Arc::new(Word::new(ON)));
        let (sender, ready) = channel();
        let own = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name(String::from("watchdog"))
            .spawn(move || run(&shared, &own, &cpus, &sender))
            .map_err(LiveError::system(doing))?;
        let watchdog = Self {
            state,
            thread: Some(thread),
        };
        let prepared = ready.recv_timeout(START_TIMEOUT).map_err(io::Error::other);
        let prepared = prepared.and_then(|prepared| prepared);
        prepared.map_err(|error| refused(error, doing.to_owned()))?;
        Ok(watchdog)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.state.set(OFF);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

fn run(shared: &SharedState, state: &Word, cpus: &CpuSet, ready: &Sender<io::Result<()>>) {
    let level = Class::Fifo(WATCHDOG_LEVEL);
    let prepared = set_affinity(None, cpus).and_then(|()| set_class(None, level));
    let failed = prepared.is_err();
    // If the receiver is gone, the word says that this thread is to end.
    let _ = ready.send(prepared);
    let mut due_ns = monotonic_ns() + POLL_NS;
    while !failed && state.get() == ON {
        state.wait_until(ON, due_ns);
        let now_ns = monotonic_ns();
        // A watchdog that is late itself was stopped with the whole process, as by a debugger: the agent has not
        // failed.
        if now_ns.saturating_sub(due_ns) < POLL_NS {
            check(shared, now_ns);
        }
        due_ns = now_ns + POLL_NS;
    }
}

/// Ends the blockers and restores all threads once a heartbeat is overdue. Repeated at every check, since the
/// agent may still be in the middle of an operation.
fn check(shared: &SharedState, now_ns: u64) {
    if let Some(overdue_ns) = shared.overdue_ns(now_ns)
        && shared.failed().is_none()
    {
        let ms = overdue_ns / 1_000_000;
        shared.fail(format!("the agent sent no heartbeat for {ms} ms"));
    }
    if shared.failed().is_some() {
        shared.end_blockers();
        shared.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fifo::shared_state::{ENDED, HEARTBEAT_TIMEOUT_NS};

    #[test]
    fn overdue_heartbeat_ends_blockers_and_fails_run() {
        let (shared, _) = SharedState::new(&CpuSet::first(2), 1);
        check(&shared, 1);
        shared.heartbeat(1_000);
        check(&shared, 1_000 + HEARTBEAT_TIMEOUT_NS);
        assert_eq!(shared.failed(), None);
        check(&shared, 1_000 + HEARTBEAT_TIMEOUT_NS + 1_000_000);
        let why = shared.failed();
        assert_eq!(why, Some("the agent sent no heartbeat for 201 ms"));
        assert!(
            shared
                .blocker_cpus
                .iter()
                .all(|blocker| blocker.word.get() == ENDED)
        );
    }
}
