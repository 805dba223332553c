//! Threads that keep held jobs from running: one per CPU, above held jobs and below assigned ones.
//!
//! A job that is not assigned has the lowest level, and would still run on a CPU that is otherwise idle. The
//! blocker of that CPU then spins and computes nothing.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use shiftwork_model::CpuSet;

use super::shared_state::{BLOCKING, BlockerCpu, IDLE, SharedState};
use super::{BLOCKER_LEVEL, refused};
use crate::LiveError;
use crate::sys::clock::{monotonic_ns, pause};
use crate::sys::thread::{Class, set_affinity, set_class};

/// How long a new thread may take to report that it is prepared; a slower machine is stuck.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a blocker checks whether the heartbeats of the agent have resumed.
const RECHECK_NS: u64 = 10_000_000;

/// One thread per CPU of the platform. Dropping them ends them.
#[derive(Debug)]
pub(super) struct Blockers {
    shared: Arc<SharedState>,
    threads: Vec<JoinHandle<()>>,
}

impl Blockers {
    /// Spawns the threads; all sleep.
    ///
    /// # Errors
    /// If the kernel refuses a thread, its CPU or its level.
    pub(super) fn spawn(shared: &Arc<SharedState>) -> Result<Self, LiveError> {
        let mut blockers = Self {
            shared: Arc::clone(shared),
            threads: Vec::new(),
        };
        for index in 0..shared.blocker_cpus.len() {
            blockers.add(index)?;
        }
        Ok(blockers)
    }

    fn add(&mut self, index: usize) -> Result<(), LiveError> {
        let cpu = self.shared.blocker_cpus[index].cpu;
        let shared = Arc::clone(&self.shared);
        let (sender, ready) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("blocker/{cpu}"))
            .spawn(move || run(&shared, &shared.blocker_cpus[index], &sender))
            .map_err(LiveError::system(format!("make a thread for CPU {cpu}")))?;
        self.threads.push(thread);
        let prepared = ready.recv_timeout(START_TIMEOUT).map_err(io::Error::other);
        let doing = format!("put a thread on CPU {cpu}");
        let prepared = prepared.and_then(|prepared| prepared);
        prepared.map_err(|error| refused(error, doing))
    }
}

impl Drop for Blockers {
    fn drop(&mut self) {
        self.shared.end_blockers();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended as well.
            let _ = thread.join();
        }
    }
}

fn run(shared: &SharedState, blocker: &BlockerCpu, ready: &Sender<io::Result<()>>) {
    let cpu = CpuSet::single(blocker.cpu);
    let level = Class::Fifo(BLOCKER_LEVEL);
    let prepared = set_affinity(None, &cpu).and_then(|()| set_class(None, level));
    let failed = prepared.is_err();
    // If the receiver is gone, the word says that this thread is to end.
    let _ = ready.send(prepared);
    if failed {
        return;
    }
    loop {
        match blocker.word.get() {
            IDLE => blocker.word.wait_while(IDLE),
            BLOCKING => block(shared, blocker),
            _ => return,
        }
    }
}

/// Spins as long as the CPU is to be blocked, while the agent sends heartbeats.
fn block(shared: &SharedState, blocker: &BlockerCpu) {
    while blocker.word.get() == BLOCKING {
        let now_ns = monotonic_ns();
        if shared.overdue_ns(now_ns).is_some() {
            blocker.word.wait_until(BLOCKING, now_ns + RECHECK_NS);
        }
        pause();
    }
}
