//! What the kernel of the guest offers.

use std::fs;
use std::time::Instant;

/// The kernel was built with `sched_ext`, nobody holds it, and its types and configuration are where
/// loaders look for them.
pub fn offers_sched_ext() -> Result<(), String> {
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

/// The same instructions take the same time, whatever else the host does: the least times of two
/// batches agree to one part in a thousand. (The least, because interrupts of the guest count too.)
#[allow(clippy::disallowed_methods, reason = "the clock is what is tested")]
pub fn clock_counts_instructions() -> Result<(), String> {
    let time = || {
        let began = Instant::now();
        let mut sum = 0_u64;
        for step in 0..2_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(step));
        }
        began.elapsed()
    };
    let least = || (0..50).map(|_| time()).min().unwrap();
    least();
    let (first, second) = (least(), least());
    match first.abs_diff(second) * 1000 <= first {
        true => Ok(()),
        false => Err(format!("the same loop took {first:?}, then {second:?}")),
    }
}
