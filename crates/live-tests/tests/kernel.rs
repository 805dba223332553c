//! What the kernel of the guest offers.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::host::machines::{CPUS, TURN};

/// The kernel was built with `sched_ext`, no scheduler is loaded, and its types and configuration
/// are where loaders look for them.
pub fn kernel_offers_sched_ext() -> Result<(), String> {
    let state = fs::read_to_string("/sys/kernel/sched_ext/state").map_err(|e| e.to_string())?;
    if state.trim() != "disabled" {
        return Err(format!("the state of sched_ext is {state:?}"));
    }
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(|e| e.to_string())?;
    let config = fs::read_to_string(format!("/boot/config-{}", release.trim()));
    let config = config.map_err(|error| format!("no configuration of {release}: {error}"))?;
    if !config.contains("\nCONFIG_SCHED_CLASS_EXT=y\n") {
        return Err("the configuration is not that of this kernel".to_owned());
    }
    let types = fs::metadata("/sys/kernel/btf/vmlinux").map_err(|e| e.to_string())?;
    match types.len() {
        0 => Err("the kernel shows no types".to_owned()),
        _ => Ok(()),
    }
}

/// Whether the kernel has `PREEMPT_RT`, where threads do what elsewhere interrupts do.
pub fn is_realtime() -> Result<bool, String> {
    let version = fs::read_to_string("/proc/version").map_err(|error| error.to_string())?;
    Ok(version.contains("PREEMPT_RT"))
}

/// While four threads compute, one on each CPU, none stands still for longer than all others have their turns: between two
/// readings of the clock it shows how long the CPU was not executed. The clock is that of the thread's own CPU time, which
/// goes on then, and not while the kernel runs another thread.
pub fn no_cpu_is_executed_for_long_where_locks_are_tested() -> Result<(), String> {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let longest_gap = move |cpu| {
        let mut only = CpuSet::new();
        only.set(cpu as usize);
        sched_setaffinity(None, &only).unwrap();
        let (mut last, mut longest) = (now(), Duration::ZERO);
        let end = last + Duration::from_millis(100);
        while last < end {
            let read = now();
            longest = longest.max(read - last);
            last = read;
        }
        longest
    };
    let threads = (0..CPUS).map(|cpu| thread::spawn(move || longest_gap(cpu)));
    let threads: Vec<_> = threads.collect();
    let gaps = threads.into_iter().map(|thread| thread.join().unwrap());
    let longest = gaps.max().unwrap();
    println!("a CPU stood still for {longest:?} at most");
    // An interrupt takes some turns, and one that waits for a lock some more.
    let allowed = TURN * CPUS * 10;
    match longest <= allowed {
        true => Ok(()),
        false => Err(format!("allowed are {allowed:?}")),
    }
}
