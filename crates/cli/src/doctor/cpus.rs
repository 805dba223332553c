//! The CPUs: how many, what they share, what else uses them, how fast they run.

use std::collections::BTreeMap;

use shiftwork_live::host::System;
use shiftwork_model::{CpuSet, Span};

use super::Finding;

/// Leaving an idle state must be shorter than this, or it dominates the latency of a release.
const EXIT_LATENCY_MAX: Span = Span::from_us(10);

/// Makes all CPUs run at full speed.
pub(super) const PERFORMANCE: &str =
    "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";

/// More idle states than any CPU has.
const IDLE_STATES_MAX: usize = 32;

/// Which CPUs there are.
pub(super) fn online(system: &System) -> Finding {
    const NAME: &str = "cpus";
    match system.online() {
        Some(online) if online.len() == 1 => Finding::poor(
            NAME,
            format!("only CPU {online}: affinities have nothing to choose from"),
            "use a machine with more CPUs",
        ),
        Some(online) => Finding::good(NAME, format!("{} online: {online}", online.len())),
        None => Finding::unknown(NAME, "no /sys/devices/system/cpu/online"),
    }
}

/// Which CPUs share caches: a migration inside such a group is cheap.
pub(super) fn caches(system: &System) -> Finding {
    const NAME: &str = "caches";
    let mut levels = BTreeMap::<u32, Vec<String>>::new();
    for (level, cpus) in system.caches() {
        levels.entry(level).or_default().push(cpus.to_string());
    }
    if levels.is_empty() {
        return Finding::unknown(NAME, "the machine does not say what CPUs share");
    }
    let text: Vec<String> = levels
        .iter()
        .map(|(level, groups)| format!("L{level} {}", groups.join(" | ")))
        .collect();
    Finding::good(NAME, text.join("; "))
}

/// Whether CPUs are threads of one core, which slow each other down.
pub(super) fn smt(system: &System) -> Finding {
    const NAME: &str = "smt";
    match system.read("/sys/devices/system/cpu/smt/active").as_deref() {
        Some("0") => Finding::good(NAME, "off: no two CPUs share a core"),
        Some("1") => Finding::poor(
            NAME,
            "on: the cost of a job depends on what the sibling CPU does",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
        ),
        _ => Finding::unknown(NAME, "the machine does not say"),
    }
}

/// Which CPUs the rest of the system keeps off.
pub(super) fn isolated(system: &System) -> Finding {
    const NAME: &str = "isolated";
    if !system.has("/sys/devices/system/cpu/isolated") {
        return Finding::unknown(NAME, "no /sys/devices/system/cpu/isolated");
    }
    match system.cpus("/sys/devices/system/cpu/isolated") {
        Some(cpus) => Finding::good(NAME, format!("CPUs {cpus}")),
        None => Finding::poor(
            NAME,
            "none: interrupts and other programs run on every CPU",
            format!(
                "boot with `isolcpus=managed_irq,domain,{}`",
                all_but_the_first(system)
            ),
        ),
    }
}

fn all_but_the_first(system: &System) -> String {
    let online = system.online().unwrap_or(CpuSet::EMPTY);
    let rest: CpuSet = online.iter().skip(1).collect();
    if rest.is_empty() {
        "LIST".into()
    } else {
        rest.to_string()
    }
}

/// What decides how fast the CPUs run.
pub(super) fn governor(system: &System) -> Finding {
    const NAME: &str = "governor";
    let mut governors = BTreeMap::<String, CpuSet>::new();
    for cpu in system.online().unwrap_or(CpuSet::EMPTY).iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        if let Some(governor) = system.read(&path) {
            governors
                .entry(governor)
                .or_insert(CpuSet::EMPTY)
                .insert(cpu);
        }
    }
    if governors.is_empty() {
        return Finding::unknown(
            NAME,
            "no cpufreq: the hardware or hypervisor sets the speed",
        );
    }
    let text: Vec<String> = governors
        .iter()
        .map(|(governor, cpus)| format!("CPUs {cpus}: {governor}"))
        .collect();
    if governors.keys().all(|governor| governor == "performance") {
        Finding::good(NAME, text.join("; "))
    } else {
        Finding::poor(NAME, text.join("; "), PERFORMANCE)
    }
}

/// How long a CPU may take to wake up.
pub(super) fn idle_states(system: &System) -> Finding {
    const NAME: &str = "idle-states";
    let mut deepest = BTreeMap::<(Span, String), CpuSet>::new();
    for cpu in system.online().unwrap_or(CpuSet::EMPTY).iter() {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        if let Some(state) = deepest_idle_state(system, &folder) {
            deepest.entry(state).or_insert(CpuSet::EMPTY).insert(cpu);
        }
    }
    let Some(((slowest, _), _)) = deepest.last_key_value() else {
        return Finding::unknown(NAME, "no cpuidle: the hardware or hypervisor decides");
    };
    let text: Vec<String> = deepest
        .iter()
        .map(|((latency, name), cpus)| format!("CPUs {cpus}: {latency} to leave {name}"))
        .collect();
    if *slowest < EXIT_LATENCY_MAX {
        Finding::good(NAME, text.join("; "))
    } else {
        Finding::poor(
            NAME,
            text.join("; "),
            // The tool cpupower is not everywhere; a shell is.
            format!(
                "sudo sh -c 'for state in /sys/devices/system/cpu/cpu*/cpuidle/state*; do [ $(cat $state/latency) -le \
                 {} ] || echo 1 > $state/disable; done'",
                EXIT_LATENCY_MAX.as_ns() / 1000
            ),
        )
    }
}

/// The state that takes longest to leave among those that are not disabled: how long, and its name.
fn deepest_idle_state(system: &System, folder: &str) -> Option<(Span, String)> {
    (0..IDLE_STATES_MAX)
        .map(|index| format!("{folder}/state{index}"))
        .map_while(|state| Some((system.number(&format!("{state}/latency"))?, state)))
        .filter(|(_, state)| system.number(&format!("{state}/disable")) != Some(1))
        .filter_map(|(us, state)| {
            let ns = u64::try_from(us).ok()?.checked_mul(1000)?;
            Some((Span::from_ns(ns), system.read(&format!("{state}/name"))?))
        })
        .max()
}
