//! The interface between the daemon and the scheduler that enforces its reservations.

pub mod sched_ext;

use std::os::fd::BorrowedFd;

use shiftwork_live::LiveError;
use shiftwork_live::standing::Observed;
use shiftwork_model::{CpuSet, Record, Share, TaskId};

use crate::reservation::{Denial, Reservation, Thread};

/// A scheduler that enforces reservations of threads. It does no admission test.
pub trait SchedulerBackend {
    /// Schedules the thread by this reservation as task `task`, an unused number, and binds it to the reservation's CPUs.
    ///
    /// # Errors
    /// [`Denial::Missing`] if the thread has ended; any other if the scheduler or the kernel refuses. On an error nothing
    /// has changed.
    fn admit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial>;

    /// Schedules the thread, which already has the number `task`, by this reservation again and binds it to its CPUs. Does
    /// nothing if that is so already.
    ///
    /// # Errors
    /// As for [`admit`](Self::admit). Only [`Denial::Missing`] is final: any other may be temporary, as when a CPU is
    /// offline again or the cpuset of the control group excludes it.
    fn readmit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial>;

    /// Replaces the reservation `from` of the task by `to`.
    ///
    /// # Errors
    /// As for [`admit`](Self::admit).
    fn change(
        &mut self,
        task: TaskId,
        thread: &Thread,
        from: &Reservation,
        to: &Reservation,
    ) -> Result<(), Denial>;

    /// Ends the reservation. The thread continues as ordinary work, if it is still alive.
    fn dismiss(&mut self, task: TaskId);
}

/// Accepts everything and does nothing, where it is only of interest what would be admitted.
#[derive(Clone, Copy, Debug)]
pub struct AcceptsAll;

impl SchedulerBackend for AcceptsAll {
    fn admit(&mut self, _: TaskId, _: &Thread, _: &Reservation) -> Result<(), Denial> {
        Ok(())
    }

    fn readmit(&mut self, _: TaskId, _: &Thread, _: &Reservation) -> Result<(), Denial> {
        Ok(())
    }

    fn change(
        &mut self,
        _: TaskId,
        _: &Thread,
        _: &Reservation,
        _: &Reservation,
    ) -> Result<(), Denial> {
        Ok(())
    }

    fn dismiss(&mut self, _: TaskId) {}
}

/// A scheduler with the events of its tasks and of observed threads.
pub trait Scheduler: SchedulerBackend {
    /// Observes the thread, without a reservation, under the number `task`.
    ///
    /// # Errors
    /// [`Denial::Missing`] if the thread has ended.
    fn observe(&mut self, task: TaskId, thread: &Thread) -> Result<(), Denial>;

    /// Ends the observation with this number.
    fn stop_observing(&mut self, task: TaskId);

    /// Sets the affinity of the calling thread.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn bind_self(&self, cpus: &CpuSet) -> Result<(), LiveError>;

    /// Replaces the share of each CPU that waiting ordinary work gets.
    fn set_reserve(&mut self, reserve: Share);

    /// Signals an exhausted budget to the thread's process. Does nothing if the process has ended.
    fn send_overrun_signal(&self, thread: &Thread);

    /// The next records, of at most so many `events`, in the order of their instants.
    ///
    /// # Errors
    /// If the events cannot be read.
    fn take_records(&mut self, events: usize) -> Result<Vec<Record>, LiveError>;

    /// Whether [`take_records`](Self::take_records) has left some.
    fn has_more_records(&self) -> bool;

    /// What observed threads did since the last call.
    fn take_observed(&mut self) -> Vec<Observed>;

    /// The CPUs of the machine that are online; `None` if that is not known for now.
    fn online(&self) -> Option<CpuSet>;

    /// Number of events that were lost so far.
    fn events_lost(&self) -> u64;

    /// How often a thread that waited for a lock lent its reservation to the holder so far.
    fn loans_made(&self) -> u64;

    /// Why the kernel unloaded the scheduler; `None` while it is loaded.
    fn unloaded(&mut self) -> Option<String>;

    /// Readable when there are events to handle.
    fn events(&self) -> BorrowedFd<'_>;
}
