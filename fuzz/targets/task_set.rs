//! Task-set files: no text makes the reader panic, and what it reads can be written and read back.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use shiftwork_taskset::{read, read_with_sysfs, write};

fuzz_target!(|text: &str| {
    match read_with_sysfs(text, Path::new("no-such-machine")) {
        Ok(set) => assert_eq!(read(&write(&set)), Ok(set)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
