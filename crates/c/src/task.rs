//! The task type of the C interface.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use shiftwork_client::{Failure, OwnTask, Reservation, calling_thread};

use crate::failure::CallFailure;
use crate::reservation::text;

/// `struct shiftwork_task`.
///
/// May be shared by all threads; threads other than its own may only find out that it is not theirs.
#[derive(Debug)]
pub struct CTask {
    thread: u32,
    /// Accessed only by the task's own thread.
    own: RefCell<Own>,
}

#[derive(Debug)]
struct Own {
    task: OwnTask,
    guarantee: CString,
}

impl CTask {
    pub(crate) fn admit(name: &CStr, reservation: &Reservation) -> Result<Self, CallFailure> {
        let task = OwnTask::admit(text(name, "name")?, reservation)?;
        let guarantee = guarantee_of(&task);
        Ok(Self {
            thread: calling_thread(),
            own: RefCell::new(Own { task, guarantee }),
        })
    }

    pub(crate) fn change(&self, reservation: &Reservation) -> Result<(), CallFailure> {
        self.with(|own| {
            own.task.change(reservation)?;
            own.guarantee = guarantee_of(&own.task);
            Ok(())
        })
    }

    pub(crate) fn wait_next(&self) -> Result<i64, CallFailure> {
        let missed = self.with(|own| Ok(own.task.wait_next()?))?;
        Ok(i64::try_from(missed).unwrap_or(i64::MAX))
    }

    pub(crate) fn dismiss(self) -> Result<(), CallFailure> {
        self.check_thread()?;
        Ok(self.own.into_inner().task.dismiss()?)
    }

    pub(crate) fn release_ns(&self) -> Result<i64, CallFailure> {
        let release = self.with(|own| Ok(own.task.release()))?;
        Ok(i64::try_from(release.as_ns()).unwrap_or(i64::MAX))
    }

    /// Valid until the task is changed or dismissed; null for other threads.
    pub(crate) fn guarantee(&self) -> *const c_char {
        self.with(|own| Ok(own.guarantee.as_ptr()))
            .unwrap_or(ptr::null())
    }

    /// Checks that the task belongs to the calling thread.
    pub(crate) fn check_thread(&self) -> Result<(), CallFailure> {
        if calling_thread() == self.thread {
            return Ok(());
        }
        let thread = self.thread;
        Err(Failure::OtherThread { thread }.into())
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Own) -> Result<T, CallFailure>,
    ) -> Result<T, CallFailure> {
        self.check_thread()?;
        match self.own.try_borrow_mut() {
            Ok(mut own) => work(&mut own),
            // Called from a signal handler that interrupted another call.
            Err(_) => Err(CallFailure::invalid(
                "the task is in use by the code that this signal handler has interrupted",
            )),
        }
    }
}

fn guarantee_of(task: &OwnTask) -> CString {
    // Names of guarantees contain no NUL.
    CString::new(task.guarantee()).unwrap_or_default()
}
