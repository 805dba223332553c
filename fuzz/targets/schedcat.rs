//! SchedCAT files: no text makes the importer panic, and what it makes of one can be written and read
//! back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shiftwork_taskset::import::schedcat;
use shiftwork_taskset::{read, write};

fuzz_target!(|text: &str| {
    match schedcat::read(text) {
        Ok(imported) => assert_eq!(read(&write(&imported.set)), Ok(imported.set)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
