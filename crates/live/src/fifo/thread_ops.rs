//! Operations of an enactor on threads, behind a trait so that tests run without threads.

use std::io;
use std::sync::Arc;

use rustix::thread::Pid;
use shiftwork_model::CpuSet;

use super::blocker::Blockers;
use super::shared_state::{BLOCKING, IDLE, SharedState};
use crate::sys::clock::{cpu_ns_of, monotonic_ns};
use crate::sys::thread::{Class, set_affinity, set_class};

/// Operations of an enactor on threads.
pub(crate) trait ThreadOps {
    /// The monotonic clock.
    fn now_ns(&mut self) -> u64;

    /// The CPU time of the thread since it was created.
    fn ran_ns(&mut self, thread: Pid) -> io::Result<u64>;

    /// Binds the thread to these CPUs; when this returns, it runs on no other.
    fn bind(&mut self, thread: Pid, cpus: &CpuSet) -> io::Result<()>;

    /// Sets the scheduling class of the thread.
    fn set_class(&mut self, thread: Pid, class: Class) -> io::Result<()>;

    /// Whether the blocker of this CPU keeps all threads of lower priority from it.
    fn block(&mut self, blocker: usize, is_blocked: bool);
}

/// The operations of the kernel.
#[derive(Debug)]
pub(crate) struct KernelThreadOps {
    pub(super) shared: Arc<SharedState>,
    /// Ended when dropped.
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
