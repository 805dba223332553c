//! What keeps a job from running that was stopped in the middle: a thread above it that computes nothing.
//!
//! A job that is not told to run has the lowest level, and would still run on a CPU that has nothing
//! better to do. There a blocker does, above it and below those that are told to run.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use shiftwork_model::CpuSet;

use super::shared_state::{BLOCKING, Floor, IDLE, Post};
use super::{BLOCKER_LEVEL, refused};
use crate::LiveError;
use crate::sys::clock::{monotonic_ns, pause};
use crate::sys::thread::{Class, set_affinity, set_class};

/// How long a new thread may take to say that it is there; a machine that needs longer is stuck.
pub(super) const MUSTER_MAX: Duration = Duration::from_secs(10);

/// How often to look whether an agent that has fallen silent is there again.
const LISTEN_NS: u64 = 10_000_000;

/// One thread for each CPU of the platform. Dropping them ends them.
#[derive(Debug)]
pub(super) struct Blockers {
    floor: Arc<Floor>,
    threads: Vec<JoinHandle<()>>,
}

impl Blockers {
    /// Makes them; all sleep.
    ///
    /// # Errors
    /// If the kernel refuses a thread, its CPU or its level.
    pub(super) fn muster(floor: &Arc<Floor>) -> Result<Self, LiveError> {
        let mut blockers = Self {
            floor: Arc::clone(floor),
            threads: Vec::new(),
        };
        for index in 0..floor.posts.len() {
            blockers.add(index)?;
        }
        Ok(blockers)
    }

    fn add(&mut self, index: usize) -> Result<(), LiveError> {
        let cpu = self.floor.posts[index].cpu;
        let floor = Arc::clone(&self.floor);
        let (sender, ready) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("blocker/{cpu}"))
            .spawn(move || live(&floor, &floor.posts[index], &sender))
            .map_err(LiveError::system(format!("make a thread for CPU {cpu}")))?;
        self.threads.push(thread);
        let prepared = ready.recv_timeout(MUSTER_MAX).map_err(io::Error::other);
        let doing = format!("put a thread on CPU {cpu}");
        let prepared = prepared.and_then(|prepared| prepared);
        prepared.map_err(|error| refused(error, doing))
    }
}

impl Drop for Blockers {
    fn drop(&mut self) {
        self.floor.end_blockers();
        for thread in self.threads.drain(..) {
            // Had it panicked, it would be as gone.
            let _ = thread.join();
        }
    }
}

fn live(floor: &Floor, post: &Post, ready: &Sender<io::Result<()>>) {
    let cpu = CpuSet::single(post.cpu);
    let level = Class::Fifo(BLOCKER_LEVEL);
    let prepared = set_affinity(None, &cpu).and_then(|()| set_class(None, level));
    let failed = prepared.is_err();
    // If nobody listens any more, the word says that this is to end.
    let _ = ready.send(prepared);
    if failed {
        return;
    }
    loop {
        match post.word.get() {
            IDLE => post.word.wait_while(IDLE),
            BLOCKING => block(floor, post),
            _ => return,
        }
    }
}

/// Keeps the CPU busy as long as it has to, and no longer than the agent lives.
fn block(floor: &Floor, post: &Post) {
    while post.word.get() == BLOCKING {
        let now_ns = monotonic_ns();
        if floor.silence(now_ns).is_some() {
            post.word.wait_until(BLOCKING, now_ns + LISTEN_NS);
        }
        pause();
    }
}
