//! Keys that count their comparisons: a measure of steps that does not depend on the machine.

use std::cell::Cell;
use std::cmp::Ordering;

use shiftwork_queue::Key;

thread_local! {
    static COMPARED: Cell<u64> = const { Cell::new(0) };
}

/// A key that counts its comparisons.
#[derive(Clone, Copy, Debug)]
pub struct Counted(pub u64);

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        COMPARED.set(COMPARED.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted {}

impl Key for Counted {
    fn prefix(self) -> u64 {
        self.0
    }
}

/// Distinct keys; those of consecutive numbers are far apart.
pub fn scattered(number: usize) -> Counted {
    Counted((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Number of comparisons in a call.
pub fn compared(call: impl FnOnce()) -> u64 {
    COMPARED.set(0);
    call();
    COMPARED.get()
}
