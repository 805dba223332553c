//! Reservations as C passes them.

use std::ffi::{CStr, c_char};

use shiftwork_client::{OnOverrun, Reservation};
use shiftwork_model::Span;

use crate::failure::CallFailure;

/// `struct shiftwork_reservation`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[expect(missing_docs, reason = "documented in the header")]
pub struct RawReservation {
    pub size: usize,
    pub cost_ns: u64,
    pub period_ns: u64,
    pub deadline_ns: u64,
    pub cpus: *const c_char,
    pub priority: u32,
    pub on_overrun: u32,
}

/// `enum shiftwork_on_overrun`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "documented in the header")]
pub enum OnOverrunName {
    Throttle = 0,
    Signal = 1,
    Continue = 2,
}

/// Converts `raw`, whose string `cpus` is passed separately.
pub(crate) fn read(raw: &RawReservation, cpus: Option<&CStr>) -> Result<Reservation, CallFailure> {
    let on_overrun = match raw.on_overrun {
        it if it == OnOverrunName::Throttle as u32 => OnOverrun::Throttle,
        it if it == OnOverrunName::Signal as u32 => OnOverrun::Signal,
        it if it == OnOverrunName::Continue as u32 => OnOverrun::Continue,
        other => {
            return Err(CallFailure::invalid(format!(
                "`on_overrun` is {other}; SHIFTWORK_THROTTLE (0), SHIFTWORK_SIGNAL (1) or SHIFTWORK_CONTINUE (2) \
                 would be accepted"
            )));
        }
    };
    let cpus = cpus.map(|cpus| text(cpus, "cpus")).transpose()?;
    Ok(Reservation {
        deadline: (raw.deadline_ns != 0)
            .then(|| span(raw.deadline_ns, "deadline_ns"))
            .transpose()?,
        cpus: cpus.map(str::to_owned),
        priority: (raw.priority != 0).then_some(raw.priority),
        on_overrun: Some(on_overrun),
        ..Reservation::new(
            span(raw.cost_ns, "cost_ns")?,
            span(raw.period_ns, "period_ns")?,
        )
    })
}

/// Checks that a structure of this size is known to this library. There is only one version so far.
pub(crate) fn check_size(size: usize) -> Result<(), CallFailure> {
    if size == size_of::<RawReservation>() {
        return Ok(());
    }
    Err(CallFailure::invalid(format!(
        "`size` is {size}; sizeof(struct shiftwork_reservation) is {} in version {} of libshiftwork: set `size`, or compile \
         the program with the header of this version",
        size_of::<RawReservation>(),
        env!("CARGO_PKG_VERSION")
    )))
}

/// The text of a C string; `what` names it in the error.
pub(crate) fn text<'a>(bytes: &'a CStr, what: &str) -> Result<&'a str, CallFailure> {
    bytes
        .to_str()
        .map_err(|_| CallFailure::invalid(format!("`{what}` is not UTF-8")))
}

/// A negative number of the caller is a very large one here.
fn span(ns: u64, what: &str) -> Result<Span, CallFailure> {
    let span = Span::from_ns(ns);
    if (Span::from_ns(1)..=Span::MAX).contains(&span) {
        return Ok(span);
    }
    Err(CallFailure::invalid(format!(
        "`{what}` is {ns}; 1 to {} nanoseconds would be accepted",
        Span::MAX.as_ns()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Code;

    fn raw() -> RawReservation {
        RawReservation {
            size: size_of::<RawReservation>(),
            cost_ns: 2_000_000,
            period_ns: 10_000_000,
            deadline_ns: 0,
            cpus: std::ptr::null(),
            priority: 0,
            on_overrun: 0,
        }
    }

    #[test]
    fn unset_fields_are_left_to_the_daemon() {
        let read = read(&raw(), None).unwrap();
        let plain = Reservation {
            on_overrun: Some(OnOverrun::Throttle),
            ..Reservation::new(Span::from_ms(2), Span::from_ms(10))
        };
        assert_eq!(read, plain);
    }

    #[test]
    fn all_fields_are_converted() {
        let all = RawReservation {
            deadline_ns: 5_000_000,
            priority: 7,
            on_overrun: 1,
            ..raw()
        };
        let expected = Reservation {
            cost: Span::from_ms(2),
            period: Span::from_ms(10),
            deadline: Some(Span::from_ms(5)),
            cpus: Some("0-3,7".to_owned()),
            priority: Some(7),
            on_overrun: Some(OnOverrun::Signal),
        };
        assert_eq!(read(&all, Some(c"0-3,7")), Ok(expected));
        let last = RawReservation {
            on_overrun: 2,
            ..raw()
        };
        let read = read(&last, None).unwrap();
        assert_eq!(read.on_overrun, Some(OnOverrun::Continue));
    }

    #[test]
    fn invalid_field_is_named_with_valid_values() {
        let largest = Span::MAX.as_ns();
        let cases = [
            (
                RawReservation {
                    cost_ns: 0,
                    ..raw()
                },
                None,
                format!("`cost_ns` is 0; 1 to {largest} nanoseconds would be accepted"),
            ),
            (
                RawReservation {
                    period_ns: u64::MAX,
                    ..raw()
                },
                None,
                format!(
                    "`period_ns` is {}; 1 to {largest} nanoseconds would be accepted",
                    u64::MAX
                ),
            ),
            (
                RawReservation {
                    deadline_ns: largest + 1,
                    ..raw()
                },
                None,
                format!(
                    "`deadline_ns` is {}; 1 to {largest} nanoseconds would be accepted",
                    largest + 1
                ),
            ),
            (
                RawReservation {
                    on_overrun: 3,
                    ..raw()
                },
                None,
                "`on_overrun` is 3; SHIFTWORK_THROTTLE (0), SHIFTWORK_SIGNAL (1) or SHIFTWORK_CONTINUE (2) would be \
                 accepted"
                    .to_owned(),
            ),
            (raw(), Some(c"0\xff"), "`cpus` is not UTF-8".to_owned()),
        ];
        for (raw, cpus, text) in cases {
            let failure = read(&raw, cpus).unwrap_err();
            assert_eq!((failure.code, failure.text), (Code::Invalid, text));
        }
    }

    #[test]
    fn structure_of_other_size_is_refused() {
        assert_eq!(check_size(size_of::<RawReservation>()), Ok(()));
        for size in [0, size_of::<RawReservation>() - 1, 1 << 40] {
            let failure = check_size(size).unwrap_err();
            assert!(failure.text.starts_with(&format!("`size` is {size};")));
        }
    }
}
