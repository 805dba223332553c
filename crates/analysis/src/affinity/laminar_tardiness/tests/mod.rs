//! The operator and its fixed points, against a plain program, a naive one, and the theorems.

mod beside;
mod explicit;
mod naive;
mod plain;
mod reference;

/// Times more cases if `SHIFTWORK_LONG` is set.
fn times_if_long(few: u64, factor: u64) -> u64 {
    match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => few * factor,
        None => few,
    }
}
