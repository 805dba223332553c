//! No text makes the reader of study files panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shiftwork_taskset::study::read;

fuzz_target!(|text: &str| {
    if let Err(error) = read(text) {
        assert!(!error.to_string().is_empty());
    }
});
