//! The kernel: release, sched_ext, type information, preemption, what its own classes may take, clock.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rustix::time::{ClockId, clock_getres};
use shiftwork_live::host::kernel::Types;
use shiftwork_live::host::sched_ext::State;
use shiftwork_live::host::{
    Served, System, deadline_servers, is_real_time, kernel, real_time_limit, sched_ext,
};
use shiftwork_model::{CpuSet, Span};

use super::Finding;

/// The first kernel with deadline servers for sched_ext.
const EXT_SERVER_SINCE: &str = "7.0";

/// What the kernel gives a deadline server by default.
const SERVER_RUNTIME: Span = Span::from_ms(50);

/// Which kernel is running.
pub(super) fn release(system: &System) -> Finding {
    const NAME: &str = "kernel";
    let Some(release) = kernel::release(system) else {
        return Finding::unknown(NAME, "not a Linux kernel, or no /proc");
    };
    match kernel::too_old(system) {
        Some(obstacle) => Finding::blocked(NAME, obstacle),
        None if kernel::version(&release).is_some() => Finding::good(NAME, release),
        None => Finding::unknown(NAME, format!("release `{release}`")),
    }
}

/// Whether BPF programs may schedule, and whether one does already.
pub(super) fn sched_ext(system: &System) -> Finding {
    const NAME: &str = "sched_ext";
    let obstacle = sched_ext::absent(system).or_else(|| sched_ext::taken(system));
    match (obstacle, sched_ext::state(system)) {
        (Some(obstacle), _) => Finding::blocked(NAME, obstacle),
        (None, State::Free) => Finding::good(NAME, "present, no scheduler loaded"),
        (None, _) => Finding::unknown(NAME, "the kernel does not say"),
    }
}

/// The kernel's description of its own types, without which BPF programs cannot be fitted to it.
pub(super) fn btf(system: &System) -> Finding {
    const NAME: &str = "btf";
    let types = kernel::types(system);
    if let Some(obstacle) = types.obstacle() {
        return Finding::blocked(NAME, obstacle);
    }
    match types {
        Types::Known(kfuncs) if kfuncs.all.is_empty() => {
            Finding::good(NAME, "describes the kernel, without sched_ext")
        }
        Types::Known(kfuncs) => Finding::good(
            NAME,
            format!("describes {} sched_ext functions", kfuncs.all.len()),
        ),
        Types::Unreadable(error) => Finding::unknown(NAME, error.to_string()),
        Types::Absent => Finding::unknown(NAME, "none"),
    }
}

/// How soon the kernel lets go of a CPU.
pub(super) fn preemption(system: &System) -> Finding {
    const NAME: &str = "preemption";
    const REMEDY: &str = "boot a kernel with CONFIG_PREEMPT_RT=y (Debian: linux-image-rt-amd64)";
    if is_real_time(system) {
        return Finding::good(NAME, "PREEMPT_RT");
    }
    if !system.has("/proc/sys/kernel/version") {
        return Finding::unknown(NAME, "the kernel does not say");
    }
    let found = match kernel::preemption(system) {
        Some(model) => format!("{model}: long kernel sections delay real-time tasks"),
        None => "none: the kernel is not preemptible".into(),
    };
    Finding::poor(NAME, found, REMEDY)
}

/// How much of each second Linux leaves to its own real-time classes.
pub(super) fn rt_throttling(system: &System) -> Finding {
    const NAME: &str = "rt-throttling";
    const REMEDY: &str = "sudo sysctl kernel.sched_rt_runtime_us=950000";
    let Some(limit) = real_time_limit(system) else {
        return Finding::unknown(NAME, "the kernel does not say");
    };
    let Some(runtime) = limit.runtime else {
        return Finding::poor(
            NAME,
            "off: a runaway SCHED_FIFO or SCHED_DEADLINE task takes its CPU for ever",
            REMEDY,
        );
    };
    let share = format!("{runtime} of every {}", limit.period);
    let version = kernel::release(system).and_then(|release| kernel::version(&release));
    if version.is_some_and(|version| version >= kernel::DEADLINE_SERVERS_SINCE) {
        return Finding::good(
            NAME,
            format!("SCHED_DEADLINE may reserve {share}; deadline servers hold SCHED_FIFO back"),
        );
    }
    if runtime >= limit.period {
        return Finding::poor(NAME, format!("SCHED_FIFO may take {share}"), REMEDY);
    }
    Finding::good(NAME, format!("SCHED_FIFO and SCHED_DEADLINE get {share}"))
}

/// What is left to sched_ext when a SCHED_FIFO task does not let go of its CPU.
pub(super) fn servers(system: &System) -> Finding {
    const NAME: &str = "deadline-servers";
    const DANGER: &str =
        "a SCHED_FIFO task that never sleeps starves sched_ext until the watchdog ends it";
    let Some(servers) = deadline_servers(system) else {
        return Finding::unknown(
            NAME,
            "not to be seen: debugfs is not mounted, or this is not root",
        );
    };
    let mut shares = BTreeMap::<(Span, Span), CpuSet>::new();
    for server in servers.iter().filter(|server| server.served == Served::Ext) {
        shares
            .entry((server.runtime, server.period))
            .or_insert(CpuSet::EMPTY)
            .insert(server.cpu);
    }
    let texts: Vec<String> = shares
        .iter()
        .map(|((runtime, period), cpus)| format!("{runtime} of every {period} on CPUs {cpus}"))
        .collect();
    match shares.first_key_value() {
        None => Finding::poor(
            NAME,
            format!("none for sched_ext: {DANGER}"),
            format!("boot a kernel of {EXT_SERVER_SINCE} or newer"),
        ),
        Some(((runtime, _), cpus)) if runtime.is_zero() => Finding::poor(
            NAME,
            format!("off on CPUs {cpus}: {DANGER}"),
            format!(
                "sudo sh -c 'echo {} | tee {}/cpu*/runtime'",
                SERVER_RUNTIME.as_ns(),
                Served::Ext.folder()
            ),
        ),
        Some(_) => Finding::good(
            NAME,
            format!("SCHED_FIFO leaves sched_ext {}", texts.join(", ")),
        ),
    }
}

/// How fine the clock is and what drives it.
pub(super) fn clock(system: &System) -> Finding {
    const NAME: &str = "clock";
    const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";
    let resolution = clock_getres(ClockId::Monotonic);
    let ns = resolution.tv_sec.saturating_mul(1_000_000_000) + resolution.tv_nsec;
    let source = system
        .read(&format!("{FOLDER}/current_clocksource"))
        .filter(|source| !source.is_empty());
    let mut found = format!("resolution {ns} ns");
    if let Some(source) = &source {
        let _ = write!(found, ", source {source}");
    }
    if ns > 1 {
        return Finding::poor(NAME, found, "boot without `highres=off` and `nohz=off`");
    }
    // Reading one of these traps into a device: a microsecond and more instead of 20 ns.
    if !matches!(
        source.as_deref(),
        Some("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies")
    ) {
        return Finding::good(NAME, found);
    }
    let available = system.read(&format!("{FOLDER}/available_clocksource"));
    let has_tsc = available.is_some_and(|names| names.split_whitespace().any(|name| name == "tsc"));
    let remedy = if has_tsc {
        format!("echo tsc | sudo tee {FOLDER}/current_clocksource")
    } else {
        "boot with `tsc=reliable` if the CPU's counter is sound".into()
    };
    Finding::poor(NAME, found, remedy)
}
