//! What carries out what the ledger decides.

pub mod sched_ext;

use shiftwork_model::TaskId;

use crate::reservation::{Denial, Reservation, Thread};

/// A machine that schedules threads by their reservations. Nothing here decides whether they fit.
pub trait SchedulerBackend {
    /// The thread is scheduled by this reservation from now on, as task `task`, which was nobody's, and bound to its CPUs.
    ///
    /// # Errors
    /// [`Denial::Missing`] if the thread is not there any more; anything else if the machine or the kernel refuses. Then
    /// nothing has changed.
    fn admit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial>;

    /// The thread, of which `task` has been the number, is scheduled by this reservation from now on, and bound to its
    /// CPUs. Nothing happens if it is so already.
    ///
    /// # Errors
    /// As of [`admit`](Self::admit). Only [`Denial::Missing`] is final: a CPU may be offline again, or the control group
    /// too narrow for now.
    fn readmit(
        &mut self,
        task: TaskId,
        thread: &Thread,
        reservation: &Reservation,
    ) -> Result<(), Denial>;

    /// The task has another reservation from now on.
    ///
    /// # Errors
    /// As of [`admit`](Self::admit).
    fn change(
        &mut self,
        task: TaskId,
        thread: &Thread,
        from: &Reservation,
        to: &Reservation,
    ) -> Result<(), Denial>;

    /// The task's thread goes on in the background, if it goes on.
    fn dismiss(&mut self, task: TaskId);
}
