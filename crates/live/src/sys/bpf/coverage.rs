//! Counters of branches, in builds whose programs have them (`.ci/coverage`): one map for all schedulers that are loaded
//! until the machine is switched off, so that nothing is lost when a process is killed.

use std::path::Path;

use libbpf_rs::{MapHandle, OpenObject};

use super::skeleton::BpfSkel;

/// The section that the compiler's wrapper leaves counters in.
const COUNTERS: &str = ".data.counters";
/// Where the map stays.
const PIN: &str = "/sys/fs/bpf/shiftwork-counters";

/// Programs that are loaded from this object go on counting where those before ended. A process that may not use the pinned
/// map has counters of its own, which are lost.
pub(super) fn continue_counting(object: &mut OpenObject) {
    if !Path::new(PIN).exists() {
        return;
    }
    for mut map in object.maps_mut().filter(|map| map.name() == COUNTERS) {
        let _ = map.reuse_pinned_map(PIN);
    }
}

/// The map of the programs that were loaded stays, if it is the first.
pub(super) fn keep_counters(skel: &BpfSkel<'_>) {
    let counters = &skel.maps.data_counters;
    if !Path::new(PIN).exists()
        && let Ok(mut map) = MapHandle::try_from(counters)
    {
        let _ = map.pin(PIN);
    }
}
