//! No text makes the reader of overhead files panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shiftwork_taskset::overheads::read;

fuzz_target!(|text: &str| {
    if let Err(error) = read(text) {
        assert!(!error.to_string().is_empty());
    }
});
