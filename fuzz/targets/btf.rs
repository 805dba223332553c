//! A kernel's type information: no bytes make the reader panic, and errors have words.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shiftwork_btf::kfuncs;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = kfuncs(bytes) {
        assert!(!error.to_string().is_empty());
    }
});
