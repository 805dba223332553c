//! What an enactor does to threads, so that its decisions can be tested without any.

use std::io;
use std::sync::Arc;

use rustix::thread::Pid;
use shiftwork_model::CpuSet;

use super::blocker::Blockers;
use super::shared_state::{BLOCKING, IDLE, SharedState};
use crate::sys::clock::{cpu_ns_of, monotonic_ns};
use crate::sys::thread::{Class, set_affinity, set_class};

/// What an enactor does to threads and learns of them.
pub(crate) trait ThreadOps {
    /// The monotonic clock.
    fn now_ns(&mut self) -> u64;

    /// How long the thread has run since it began.
    fn ran_ns(&mut self, thread: Pid) -> io::Result<u64>;

    /// The thread may use these CPUs from now on, and uses no other when this returns.
    fn bind(&mut self, thread: Pid, cpus: &CpuSet) -> io::Result<()>;

    /// The thread is scheduled by this class from now on.
    fn set_class(&mut self, thread: Pid, class: Class) -> io::Result<()>;

    /// Whether the CPU of this post is kept from everybody below the blockers.
    fn block(&mut self, blocker: usize, is_blocked: bool);
}

/// The hands that reach into the kernel.
#[derive(Debug)]
pub(crate) struct KernelThreadOps {
    pub(super) shared: Arc<SharedState>,
    /// Held for their end.
    pub(super) _blockers: Blockers,
}

impl ThreadOps for KernelThreadOps {
    fn now_ns(&mut self) -> u64 {
        monotonic_ns()
    }

    fn ran_ns(&mut self, thread: Pid) -> io::Result<u64> {
        cpu_ns_of(thread)
    }

    fn bind(&mut self, thread: Pid, cpus: &CpuSet) -> io::Result<()> {
        set_affinity(Some(thread), cpus)
    }

    fn set_class(&mut self, thread: Pid, class: Class) -> io::Result<()> {
        set_class(Some(thread), class)
    }

    fn block(&mut self, blocker: usize, is_blocked: bool) {
        let word = &self.shared.blocker_cpus[blocker].word;
        // Once the blockers have been ended, neither of these changes anything.
        if is_blocked && word.change(IDLE, BLOCKING) {
            word.wake();
        } else if !is_blocked {
            word.change(BLOCKING, IDLE);
        }
    }
}
