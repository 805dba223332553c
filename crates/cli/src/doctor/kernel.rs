//! The kernel: release, sched_ext, type information, preemption, throttling, clock.

use std::fmt::Write as _;

use rustix::time::{ClockId, clock_getres};

use super::Finding;
use crate::system::System;

/// The first kernel with sched_ext.
const SCHED_EXT_SINCE: (u32, u32) = (6, 12);

/// Which kernel is running.
pub(super) fn release(system: &System) -> Finding {
    const NAME: &str = "kernel";
    let Some(release) = system.read("/proc/sys/kernel/osrelease") else {
        return Finding::unknown(NAME, "not a Linux kernel, or no /proc");
    };
    let (major, minor) = SCHED_EXT_SINCE;
    match version(&release) {
        Some(found) if found >= SCHED_EXT_SINCE => Finding::good(NAME, release),
        Some(_) => Finding::missing(
            NAME,
            format!("{release}, older than {major}.{minor}"),
            format!("boot a kernel of {major}.{minor} or newer with CONFIG_SCHED_CLASS_EXT=y"),
        ),
        None => Finding::unknown(NAME, format!("release `{release}`")),
    }
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|digits| digits.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Whether BPF programs may schedule, and whether one does already.
pub(super) fn sched_ext(system: &System) -> Finding {
    const NAME: &str = "sched_ext";
    let Some(state) = system.read("/sys/kernel/sched_ext/state") else {
        return Finding::missing(
            NAME,
            "this kernel has no /sys/kernel/sched_ext",
            "boot a kernel of 6.12 or newer with CONFIG_SCHED_CLASS_EXT=y",
        );
    };
    if state == "disabled" {
        return Finding::good(NAME, "present, no scheduler loaded");
    }
    let loaded = system
        .read("/sys/kernel/sched_ext/root/ops")
        .unwrap_or_else(|| "an unnamed scheduler".into());
    Finding::poor(
        NAME,
        format!("{state}: {loaded} is loaded, and only one scheduler can be"),
        "sudo systemctl stop scx.service scx_loader.service",
    )
}

/// The kernel's description of its own types, without which BPF programs cannot be fitted to it.
pub(super) fn btf(system: &System) -> Finding {
    const NAME: &str = "btf";
    if system.has("/sys/kernel/btf/vmlinux") {
        Finding::good(NAME, "/sys/kernel/btf/vmlinux")
    } else {
        Finding::missing(
            NAME,
            "this kernel has no /sys/kernel/btf/vmlinux",
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
        )
    }
}

/// How soon the kernel lets go of a CPU.
pub(super) fn preemption(system: &System) -> Finding {
    const NAME: &str = "preemption";
    if system.read("/sys/kernel/realtime").as_deref() == Some("1") {
        return Finding::good(NAME, "PREEMPT_RT");
    }
    let Some(build) = system.read("/proc/sys/kernel/version") else {
        return Finding::unknown(NAME, "the kernel does not say");
    };
    match build
        .split_whitespace()
        .find(|word| word.starts_with("PREEMPT"))
    {
        Some(model @ "PREEMPT_RT") => Finding::good(NAME, model),
        Some(model) => Finding::poor(
            NAME,
            format!("{model}: long kernel sections delay real-time tasks"),
            "boot a kernel with CONFIG_PREEMPT_RT=y (Debian: linux-image-rt-amd64)",
        ),
        None => Finding::poor(
            NAME,
            "none: the kernel is not preemptible",
            "boot a kernel with CONFIG_PREEMPT_RT=y (Debian: linux-image-rt-amd64)",
        ),
    }
}

/// How much of each second Linux leaves to its own real-time classes.
pub(super) fn rt_throttling(system: &System) -> Finding {
    const NAME: &str = "rt-throttling";
    let number = |file: &str| -> Option<i64> {
        system
            .read(&format!("/proc/sys/kernel/sched_rt_{file}_us"))?
            .parse()
            .ok()
    };
    match (number("runtime"), number("period")) {
        (Some(-1), _) => Finding::poor(
            NAME,
            "off: a runaway SCHED_FIFO task takes its CPU for ever",
            "sudo sysctl kernel.sched_rt_runtime_us=950000",
        ),
        (Some(runtime), Some(period)) => Finding::good(
            NAME,
            format!("SCHED_FIFO and SCHED_DEADLINE get {runtime} of every {period} us"),
        ),
        _ => Finding::unknown(NAME, "the kernel does not say"),
    }
}

/// How fine the clock is and what drives it.
pub(super) fn clock(system: &System) -> Finding {
    const NAME: &str = "clock";
    let resolution = clock_getres(ClockId::Monotonic);
    let ns = resolution.tv_sec.saturating_mul(1_000_000_000) + resolution.tv_nsec;
    let source = system
        .read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        .filter(|source| !source.is_empty());
    let mut found = format!("resolution {ns} ns");
    if let Some(source) = &source {
        let _ = write!(found, ", source {source}");
    }
    if ns > 1 {
        return Finding::poor(NAME, found, "boot without `highres=off` and `nohz=off`");
    }
    // Reading one of these traps into a device: a microsecond and more instead of 20 ns.
    match source.as_deref() {
        Some("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies") => Finding::poor(
            NAME,
            found,
            "boot with `tsc=reliable` if the CPU's counter is sound",
        ),
        _ => Finding::good(NAME, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("6.9.0-foo"), Some((6, 9)));
        assert_eq!(version("7.0.13+deb13"), Some((7, 0)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.9.0").unwrap() < SCHED_EXT_SINCE);
        assert!(version("10.1.0").unwrap() > SCHED_EXT_SINCE);
    }
}
