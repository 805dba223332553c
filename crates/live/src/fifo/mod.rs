//! A machine for kernels without sched_ext: an agent decides, and `SCHED_FIFO` carries out.
//!
//! Every task is a thread of ours, always bound to exactly one CPU and on one of a few levels:
//!
//! ```text
//!   95  the watch       takes the machine away from an agent that has died
//!   90  the agent       on a CPU of its own
//!   50  jobs            that are told to run: one on each CPU; and threads that wait for their jobs
//!   40  blockers        where only held jobs could run
//!   30  held jobs       stopped in the middle, by a more urgent one or because their budget is used up
//! ```
//!
//! Between jobs a thread waits at its seat (`thread_handshake.rs`), on the level of those that run: it cannot before it
//! is let out, and so a release costs one wake-up. A shift is a change of affinity. Jobs are held only by a level because nothing else stops a thread that computes:
//! a signal would have to be handled by it, and a control group stops it too late.
//!
//! This module owns the threads' settings while a run is on, and puts all of them back. It must never
//! decide who runs: the agent does. Start reading at `thread_controller.rs`, where orders become system calls; `thread_handshake.rs`
//! and `job_barrier.rs` are the threads' side, `doorbell.rs` is how they reach the agent, `owner.rs` the side of
//! whoever started it.

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
use crate::host::{Served, System, deadline_servers, kernel, real_time_limit};
use blocker::Blockers;
use shared_state::SharedState;
use thread_ops::KernelThreadOps;
use watchdog::Watchdog;

const WATCHDOG_LEVEL: u8 = 95;
const JOB_LEVEL: u8 = 50;
const BLOCKER_LEVEL: u8 = 40;
const WAITING_LEVEL: u8 = 30;

/// Prepares a machine of these CPUs for the tasks of these names: what its user holds on to, and what
/// its agent gets. Nobody is blocked and nobody takes part yet.
///
/// # Errors
/// If this user may not have real-time threads, or the kernel refuses threads or CPUs.
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

/// What a reader of the results should know of this machine.
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

/// The kernel refused to do this with real-time threads.
fn refused(error: io::Error, doing: String) -> LiveError {
    if error.raw_os_error() == Some(libc::EPERM) {
        return LiveError::Machine {
            what: String::from("SCHED_FIFO is not allowed for this user"),
            remedy: System::this().for_caller(RTPRIO_REMEDY.to_owned()),
        };
    }
    LiveError::System { doing, error }
}

#[cfg(test)]
mod tests;
