//! Counters of the branches of the programs in the kernel, in builds of `.ci/coverage`: from the guest to a file for each boot.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use shiftwork_emulator::{Boot, Collected};

/// The folder of the files on the host; unset where nothing is counted.
const FOLDER: &str = "SHIFTWORK_COUNTERS";
/// Where the schedulers of a guest leave their map.
const PIN: &str = "/sys/fs/bpf/shiftwork-counters";
/// The guest's file.
const FILE: &str = "/tmp/shiftwork-counters";

/// Has this boot bring its counters home, if they are asked for.
pub fn collect(boot: &mut Boot) {
    static BOOTS: AtomicU32 = AtomicU32::new(0);
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let number = BOOTS.fetch_add(1, Ordering::Relaxed);
    let host = folder.join(format!("{}-{number}", process::id()));
    boot.environment
        .insert(FOLDER.to_owned(), OsString::from("1"));
    boot.collect.push(Collected {
        guest: FILE.into(),
        host,
    });
}

/// In the guest, after all tests: writes the counters, as the programs have them in memory, to the file that is brought home.
/// Where no scheduler was loaded there is none.
pub fn save() {
    if std::env::var_os(FOLDER).is_none() {
        return;
    }
    let counters = MapHandle::from_pinned_path(PIN)
        .and_then(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY));
    if let Ok(Some(bytes)) = counters
        && let Err(error) = fs::write(FILE, bytes)
    {
        println!("the counters cannot be saved: {error}");
    }
}
