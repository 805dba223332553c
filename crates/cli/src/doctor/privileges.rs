//! What this process may do.

use shiftwork_live::host::{System, privileges};

use super::Finding;

/// Whether this process may load a scheduler and change the scheduling of others.
pub(super) fn capabilities(system: &System) -> Finding {
    const NAME: &str = "privileges";
    match privileges::lacking(system) {
        Some(obstacle) => Finding::blocked(NAME, obstacle),
        None if privileges::lacking_capabilities(system).is_none() => {
            Finding::unknown(NAME, "no /proc/self/status")
        }
        None => Finding::good(NAME, "all that a live scheduler needs"),
    }
}

/// Whether this process may keep all its memory present.
pub(super) fn locked_memory(system: &System) -> Finding {
    const NAME: &str = "locked-memory";
    match privileges::too_little_locked_memory(system) {
        Some(obstacle) => Finding::blocked(NAME, obstacle),
        None if privileges::lacking_capabilities(system).is_none() => {
            Finding::unknown(NAME, "no /proc/self/status")
        }
        None => Finding::good(NAME, "without limit"),
    }
}

/// The highest SCHED_FIFO priority that this process may take.
pub(super) fn rtprio(system: &System) -> Finding {
    const NAME: &str = "rtprio";
    let lacking = privileges::lacking_capabilities(system);
    if let Some(obstacle) = privileges::refused_rtprio(system) {
        return Finding::blocked(NAME, obstacle);
    }
    if lacking.is_some_and(|lacking| !lacking.contains(&"CAP_SYS_NICE")) {
        return Finding::good(NAME, "any: CAP_SYS_NICE");
    }
    match privileges::limit(system, "Max realtime priority").as_deref() {
        None => Finding::unknown(NAME, "no /proc/self/limits"),
        Some("0") => Finding::poor(
            NAME,
            "ulimit -r is 0: without root, no SCHED_FIFO",
            privileges::RTPRIO_REMEDY,
        ),
        Some(limit) => Finding::good(NAME, format!("ulimit -r is {limit}")),
    }
}
