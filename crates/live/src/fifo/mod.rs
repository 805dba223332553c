//! The machine for kernels without sched_ext: an agent decides, and `SCHED_FIFO` priorities enact its decisions.
//!
//! Each task is a thread of this process, bound to exactly one CPU at any time and on one of a few
//! priority levels:
//!
//! ```text
//!   95  the watchdog    releases all threads if the agent fails
//!   90  the agent       on a CPU of its own
//!   50  assigned jobs   one on each CPU; and threads that wait for their next job
//!   40  blockers        on CPUs where only held jobs could run
//!   30  held jobs       preempted by a more urgent job, or throttled
//! ```
//!
//! Between jobs a thread waits in its handshake (`thread_handshake.rs`), on the level of assigned jobs: it
//! cannot run before the agent starts its next job, so a release costs one wake-up. A shift is a change of
//! affinity. Only the priority level holds a job, because nothing else stops a thread that computes: the
//! thread itself would have to handle a signal, and a control group stops it too late.
//!
//! This module owns the scheduling parameters of the threads during a run and restores all of them
//! afterwards. It must never decide which task runs: the agent does. Start reading at
//! `thread_controller.rs`, which turns slots into system calls. `thread_handshake.rs` and `job_barrier.rs`
//! are the side of the threads, `doorbell.rs` wakes the agent, and `owner.rs` is the side of the thread
//! that started the agent.

mod blocker;
mod doorbell;
mod enactor;
mod job_barrier;
mod managed_thread;
mod owner;
mod shared_state;
mod thread_controller;
mod thread_handshake;
mod thread_ops;
mod watchdog;

use std::io;
use std::sync::Arc;

use shiftwork_model::CpuSet;

pub(crate) use enactor::FifoEnactor;
pub(crate) use owner::FifoOwner;

use crate::LiveError;
use crate::host::privileges::RTPRIO_REMEDY;
use crate::host::{
    Obstacle, Served, System, deadline_servers, kernel, obstacle_to_fifo, real_time_limit,
};
use blocker::Blockers;
use shared_state::SharedState;
use thread_ops::KernelThreadOps;
use watchdog::Watchdog;

const WATCHDOG_LEVEL: u8 = 95;
const JOB_LEVEL: u8 = 50;
const BLOCKER_LEVEL: u8 = 40;
const WAITING_LEVEL: u8 = 30;

/// Prepares a machine of these CPUs for tasks with these names: the owner's side, and the enactor for the
/// agent. No CPU is blocked and no task is admitted yet.
///
/// # Errors
/// If this user may not have real-time threads, or the kernel refuses a thread or a CPU.
pub(crate) fn set_up(
    cpus: &CpuSet,
    names: Vec<String>,
) -> Result<(FifoOwner, FifoEnactor), LiveError> {
    let (shared, receivers) = SharedState::new(cpus, names.len());
    let shared = Arc::new(shared);
    let ops = KernelThreadOps {
        _blockers: Blockers::spawn(&shared)?,
        shared: Arc::clone(&shared),
    };
    let owner = FifoOwner {
        watchdog: Some(Watchdog::start(&shared, cpus)?),
        shared: Arc::clone(&shared),
    };
    Ok((owner, FifoEnactor::new(shared, ops, receivers, names)))
}

/// Facts about this machine that affect the results, one sentence each.
pub(crate) fn notes() -> Vec<String> {
    notes_on(&System::this())
}

fn notes_on(system: &System) -> Vec<String> {
    // Kernels that have servers do not throttle.
    if let Some(servers) = deadline_servers(system).filter(|servers| !servers.is_empty()) {
        let mut fair = servers
            .iter()
            .filter(|server| server.served == Served::Fair);
        let given = fair.find(|server| !server.runtime.is_zero());
        let note = given.map(|server| {
            format!(
                "where SCHED_FIFO leaves ordinary threads no time, the kernel gives them {} of every {} \
                 (its deadline server), which real-time jobs there lose",
                server.runtime, server.period
            )
        });
        return note.into_iter().collect();
    }
    let version = kernel::release(system).and_then(|release| kernel::version(&release));
    if version.is_some_and(|version| version >= kernel::DEADLINE_SERVERS_SINCE) {
        return vec![String::from(
            "where SCHED_FIFO leaves ordinary threads no time, the kernel gives them some (its deadline \
             server), which real-time jobs there lose",
        )];
    }
    let limit = real_time_limit(system).and_then(|limit| Some((limit.runtime?, limit.period)));
    let note = limit.map(|(runtime, period)| {
        format!(
            "the kernel keeps {} of every {period} on each CPU from SCHED_FIFO, and stops real-time jobs \
             for that; `sysctl kernel.sched_rt_runtime_us=-1` ends this",
            period.saturating_sub(runtime)
        )
    });
    note.into_iter().collect()
}

/// The error of a refused operation on real-time threads.
fn refused(error: io::Error, doing: String) -> LiveError {
    if error.raw_os_error() == Some(libc::EPERM) {
        let system = System::this();
        return match obstacle_to_fifo(&system) {
            Some(Obstacle { what, remedy }) => LiveError::Machine { what, remedy },
            None => LiveError::Machine {
                what: String::from("SCHED_FIFO is not allowed for this user"),
                remedy: system.for_caller(RTPRIO_REMEDY.to_owned()),
            },
        };
    }
    LiveError::System { doing, error }
}

#[cfg(test)]
mod tests;
