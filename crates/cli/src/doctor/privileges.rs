//! What this process may do.

use super::Finding;
use crate::system::System;

/// What loading a scheduler and pinning tasks takes, by bit number.
const NEEDED: &[(u32, &str)] = &[
    (23, "CAP_SYS_NICE"),
    (39, "CAP_BPF"),
    (38, "CAP_PERFMON"),
    (21, "CAP_SYS_ADMIN"),
    (14, "CAP_IPC_LOCK"),
];

/// Whether this process may load a scheduler and change the scheduling of others.
pub(super) fn capabilities(system: &System) -> Finding {
    const NAME: &str = "privileges";
    let effective = system.read("/proc/self/status").and_then(|status| {
        let digits = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(digits.trim(), 16).ok()
    });
    let Some(effective) = effective else {
        return Finding::unknown(NAME, "no /proc/self/status");
    };
    let lacking: Vec<&str> = NEEDED
        .iter()
        .filter(|(bit, _)| effective >> bit & 1 == 0)
        .map(|&(_, name)| name)
        .collect();
    if lacking.is_empty() {
        Finding::good(NAME, "all that a live scheduler needs")
    } else {
        Finding::missing(
            NAME,
            format!("without {}", lacking.join(", ")),
            "run as root: sudo shiftwork doctor",
        )
    }
}

/// The highest SCHED_FIFO priority that an unprivileged process may take.
pub(super) fn rtprio(system: &System) -> Finding {
    const NAME: &str = "rtprio";
    let limit = system.read("/proc/self/limits").and_then(|limits| {
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max realtime priority"))?;
        Some(line.split_whitespace().next()?.to_owned())
    });
    match limit.as_deref() {
        None => Finding::unknown(NAME, "no /proc/self/limits"),
        Some("0") => Finding::poor(
            NAME,
            "ulimit -r is 0: without root, no SCHED_FIFO",
            "echo \"$USER - rtprio 99\" | sudo tee /etc/security/limits.d/99-realtime.conf",
        ),
        Some(limit) => Finding::good(NAME, format!("ulimit -r is {limit}")),
    }
}
