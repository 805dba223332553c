//! The interface between the reservation table and the scheduler that enforces its reservations.

pub mod sched_ext;

use shiftwork_model::TaskId;

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
