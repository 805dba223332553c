//! Whether the machine is one of metal.

use shiftwork_live::host::System;

use super::Finding;

/// Whether something between kernel and hardware takes time that cannot be seen from here.
pub(super) fn hypervisor(system: &System) -> Finding {
    const NAME: &str = "hypervisor";
    let info = system.read("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim())
    };
    let model = field("model name").unwrap_or_default();
    if model.contains("QEMU TCG") {
        return Finding::poor(
            NAME,
            format!("an emulator ({model}): times here say nothing about hardware"),
            "measure on the machine itself; here only what happens counts, not when",
        );
    }
    let guest = match field("flags") {
        Some(flags) => flags.split(' ').any(|flag| flag == "hypervisor"),
        // Other processors have no such flag; some firmware says so.
        None if vendor(system).is_some_and(|vendor| vendor.contains("QEMU")) => true,
        None => return Finding::unknown(NAME, "the machine does not say"),
    };
    if !guest {
        return Finding::good(NAME, "none");
    }
    let name = vendor(system).map_or_else(String::new, |vendor| format!(" ({vendor})"));
    Finding::poor(
        NAME,
        format!("a virtual machine{name}: the host may take CPUs away at any time"),
        "on the host, give each virtual CPU a CPU of its own, as with `virsh vcpupin`",
    )
}

/// Vendor and product name of the machine.
fn vendor(system: &System) -> Option<String> {
    let words: Vec<String> = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|file| system.read(&format!("/sys/class/dmi/id/{file}")))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}
