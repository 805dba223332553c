//! The functions of `shiftwork.h`, and all `unsafe` of this crate.
//!
//! They rely on the contract of the header: a pointer that is not null points to an object of its type that is valid during
//! the call; a task comes from `shiftwork_admit` and was not dismissed. Tasks are only borrowed shared here, by any threads:
//! [`CTask`] synchronizes the access. No panic leaves this module.
#![allow(unsafe_code, reason = "the only module that C calls")]

use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use shiftwork_client::Reservation;

use crate::failure::{CallFailure, Code, last_error, set_last_error};
use crate::reservation::{RawReservation, check_size, read};
use crate::task::CTask;

/// See the header.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shiftwork_admit(
    task: *mut *mut CTask,
    name: *const c_char,
    reservation: *const RawReservation,
) -> c_int {
    // SAFETY: the caller's pointer is null or valid, and no other code accesses its target during the call.
    let Some(place) = (unsafe { task.as_mut() }) else {
        return failed(&null("task"));
    };
    *place = ptr::null_mut();
    status(|| {
        // SAFETY: the caller's pointer is null or a NUL-terminated string.
        let name = unsafe { text(name) }.ok_or_else(|| null("name"))?;
        // SAFETY: the caller's pointer is null or a reservation.
        let reservation = unsafe { reservation_at(reservation) }?;
        *place = Box::into_raw(Box::new(CTask::admit(name, &reservation)?));
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shiftwork_change(
    task: *mut CTask,
    reservation: *const RawReservation,
) -> c_int {
    // SAFETY: the caller's pointer is null or a task.
    let task = unsafe { task.as_ref() };
    status(|| {
        // SAFETY: the caller's pointer is null or a reservation.
        let reservation = unsafe { reservation_at(reservation) }?;
        task.ok_or_else(|| null("task"))?.change(&reservation)
    })
}

/// See the header.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shiftwork_wait_next(task: *mut CTask) -> i64 {
    // SAFETY: the caller's pointer is null or a task.
    let task = unsafe { task.as_ref() };
    number(|| task.ok_or_else(|| null("task"))?.wait_next())
}

/// See the header.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shiftwork_dismiss(task: *mut CTask) -> c_int {
    // SAFETY: the caller's pointer is null or a task.
    let Some(shared) = (unsafe { task.as_ref() }) else {
        return 0;
    };
    status(|| {
        shared.check_thread()?;
        // SAFETY: `shiftwork_admit` leaked the box, and its owner does not use the pointer after this call.
        let task = unsafe { Box::from_raw(task) };
        task.dismiss()
    })
}

/// See the header.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shiftwork_release(task: *const CTask) -> i64 {
    // SAFETY: the caller's pointer is null or a task.
    let task = unsafe { task.as_ref() };
    number(|| task.ok_or_else(|| null("task"))?.release_ns())
}

/// See the header.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shiftwork_guarantee(task: *const CTask) -> *const c_char {
    // SAFETY: the caller's pointer is null or a task.
    let task = unsafe { task.as_ref() };
    task.map_or(ptr::null(), CTask::guarantee)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn shiftwork_error() -> *const c_char {
    last_error()
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn shiftwork_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL"),
        };
    VERSION.as_ptr()
}

/// The reservation as a type of the client.
///
/// # Safety
/// The pointer is null, or to a structure as long as its first field says.
unsafe fn reservation_at(pointer: *const RawReservation) -> Result<Reservation, CallFailure> {
    if pointer.is_null() {
        return Err(null("reservation"));
    }
    // The structure may be shorter in another version: its size is checked before a reference to all of it is created.
    // SAFETY: valid, and `size` is first in every version.
    check_size(unsafe { ptr::read(pointer.cast::<usize>()) })?;
    // SAFETY: valid, and as long as this version's.
    let raw = unsafe { &*pointer };
    // SAFETY: null or a NUL-terminated string.
    let cpus = unsafe { text(raw.cpus) };
    read(raw, cpus)
}

/// The string at this address; `None` for null.
///
/// # Safety
/// The pointer is null or a NUL-terminated string that is valid for `'a`.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated string, as the caller guarantees.
    Some(unsafe { CStr::from_ptr(pointer) })
}

fn null(what: &str) -> CallFailure {
    CallFailure::invalid(format!("`{what}` is NULL"))
}

fn status(work: impl FnOnce() -> Result<(), CallFailure>) -> c_int {
    guarded(work).map_or_else(|code| code as c_int, |()| 0)
}

fn number(work: impl FnOnce() -> Result<i64, CallFailure>) -> i64 {
    guarded(work).unwrap_or_else(|code| code as i64)
}

fn failed(failure: &CallFailure) -> c_int {
    set_last_error(failure) as c_int
}

/// Runs `work`, and stores its failure as the thread's last error.
fn guarded<T>(work: impl FnOnce() -> Result<T, CallFailure>) -> Result<T, Code> {
    // Unwind safety: the header forbids using a task after SHIFTWORK_INTERNAL.
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(CallFailure {
            code: Code::Internal,
            text: String::from("a bug in libshiftwork; details are on stderr"),
        })
    });
    done.map_err(|failure| set_last_error(&failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calling thread's last error.
    fn error_text() -> String {
        // SAFETY: always a NUL-terminated string.
        let text = unsafe { CStr::from_ptr(shiftwork_error()) };
        text.to_str().unwrap().to_owned()
    }

    #[test]
    fn null_pointer_is_an_error() {
        let mut task = ptr::NonNull::<CTask>::dangling().as_ptr();
        // SAFETY: null is allowed.
        let code = unsafe { shiftwork_admit(&raw mut task, ptr::null(), ptr::null()) };
        assert_eq!((code, error_text()), (-3, "`name` is NULL".to_owned()));
        assert!(task.is_null(), "no task was created");
        // SAFETY: null is allowed.
        let code = unsafe { shiftwork_admit(&raw mut task, c"a".as_ptr(), ptr::null()) };
        assert_eq!(
            (code, error_text()),
            (-3, "`reservation` is NULL".to_owned())
        );
        // SAFETY: null is allowed.
        let code = unsafe { shiftwork_admit(ptr::null_mut(), c"a".as_ptr(), ptr::null()) };
        assert_eq!((code, error_text()), (-3, "`task` is NULL".to_owned()));
        // SAFETY: null is allowed.
        let codes = unsafe { shiftwork_change(task, ptr::null()) };
        assert_eq!(codes, -3);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { shiftwork_wait_next(task) }, -3);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { shiftwork_release(task) }, -3);
        // SAFETY: null is allowed.
        assert!(unsafe { shiftwork_guarantee(task) }.is_null());
        // SAFETY: null is allowed.
        assert_eq!(unsafe { shiftwork_dismiss(task) }, 0);
    }

    #[test]
    fn panic_becomes_internal_error() {
        let code = status(|| panic!("expected by this test"));
        assert_eq!(code, Code::Internal as c_int);
        assert!(error_text().contains("stderr"), "{}", error_text());
    }

    #[test]
    fn last_error_is_per_thread() {
        failed(&CallFailure::invalid("a\nb\0c"));
        assert_eq!(error_text(), "a b c");
        std::thread::spawn(|| assert_eq!(error_text(), ""))
            .join()
            .unwrap();
        assert_eq!(error_text(), "a b c");
    }
}
