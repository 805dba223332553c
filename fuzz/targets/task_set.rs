//! Task-set files: no text makes the reader panic, and what it reads can be written and read back.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use shiftwork_taskset::{Environment, read, read_in, write};

fuzz_target!(|text: &str| {
    let environment = Environment {
        sysfs: Path::new("no-such-machine"),
        ..Environment::default()
    };
    match read_in(text, &environment) {
        Ok(set) => assert_eq!(read(&write(&set)), Ok(set)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
