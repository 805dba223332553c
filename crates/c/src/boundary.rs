//! The functions of `shiftwork.h`, and all `unsafe` of this crate.
//!
//! What they rely on is what the header asks of C: a pointer that is not null points to what its type says, and stays
//! valid during the call; a task comes from `shiftwork_admit` and was not dismissed. Tasks are only ever shared here, by
//! any threads: [`CTask`] sees to that. No panic leaves this module.
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
    // SAFETY: the caller's pointer is null or valid, and nobody else uses what it points to.
    let Some(place) = (unsafe { task.as_mut() }) else {
        return failed(&null("task"));
    };
    *place = ptr::null_mut();
    status(|| {
        // SAFETY: the caller's pointer is null or a text.
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
        // SAFETY: `shiftwork_admit` made the box and gave it away, and whose it is says that nobody uses it again.
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

/// The reservation, as the client has them.
///
/// # Safety
/// The pointer is null, or to a structure as long as its first field says.
unsafe fn reservation_at(pointer: *const RawReservation) -> Result<Reservation, CallFailure> {
    if pointer.is_null() {
        return Err(null("reservation"));
    }
    // The rest may be shorter, of another version: its size is looked at before a reference to all of it is made.
    // SAFETY: valid, and `size` is first in every version.
    check_size(unsafe { ptr::read(pointer.cast::<usize>()) })?;
    // SAFETY: valid, and as long as this version's.
    let raw = unsafe { &*pointer };
    // SAFETY: null or a text.
    let cpus = unsafe { text(raw.cpus) };
    read(raw, cpus)
}

/// The text there; `None` for null.
///
/// # Safety
/// The pointer is null or a text with a NUL at its end, which lives for `'a`.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: a text with a NUL at its end, as the caller says.
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

/// Does it, and remembers why it fails.
fn guarded<T>(work: impl FnOnce() -> Result<T, CallFailure>) -> Result<T, Code> {
    // What was broken half-way is not used again: the header says so of SHIFTWORK_INTERNAL.
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(CallFailure {
            code: Code::Internal,
            text: String::from("a mistake of libshiftwork, which it has described on stderr"),
        })
    });
    done.map_err(|failure| set_last_error(&failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calling thread's last error.
    fn said() -> String {
        // SAFETY: always a text.
        let text = unsafe { CStr::from_ptr(shiftwork_error()) };
        text.to_str().unwrap().to_owned()
    }

    #[test]
    fn null_is_told_and_not_followed() {
        let mut task = ptr::NonNull::<CTask>::dangling().as_ptr();
        // SAFETY: null is allowed.
        let code = unsafe { shiftwork_admit(&raw mut task, ptr::null(), ptr::null()) };
        assert_eq!((code, said()), (-3, "`name` is NULL".to_owned()));
        assert!(task.is_null(), "there is none");
        // SAFETY: null is allowed.
        let code = unsafe { shiftwork_admit(&raw mut task, c"a".as_ptr(), ptr::null()) };
        assert_eq!((code, said()), (-3, "`reservation` is NULL".to_owned()));
        // SAFETY: null is allowed.
        let code = unsafe { shiftwork_admit(ptr::null_mut(), c"a".as_ptr(), ptr::null()) };
        assert_eq!((code, said()), (-3, "`task` is NULL".to_owned()));
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
    fn what_goes_wrong_inside_stays_inside() {
        let code = status(|| panic!("expected by this test"));
        assert_eq!(code, Code::Internal as c_int);
        assert!(said().contains("stderr"), "{}", said());
    }

    #[test]
    fn each_thread_has_its_own_error() {
        failed(&CallFailure::invalid("a\nb\0c"));
        assert_eq!(said(), "a b c");
        std::thread::spawn(|| assert_eq!(said(), ""))
            .join()
            .unwrap();
        assert_eq!(said(), "a b c");
    }
}
