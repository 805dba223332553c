//! The kernel: its release, its preemption model, and its type information.

use shiftwork_btf::{BtfError, Kfuncs, kfuncs};

use super::{Obstacle, System};

/// The first kernel on which our schedulers load: they set `SCX_OPS_ALLOW_QUEUED_WAKEUP`, and a kernel refuses
/// unknown flags. sched_ext itself is older (6.12), as are the newest functions that
/// the programs need (`bpf_local_irq_save`, 6.14).
pub const WORKS_SINCE: (u32, u32) = (6, 15);

/// The first kernel with deadline servers, which limit real-time threads.
pub const DEADLINE_SERVERS_SINCE: (u32, u32) = (6, 12);

/// The remedy where sched_ext is missing or too old.
pub(super) fn another_kernel() -> String {
    let (major, minor) = WORKS_SINCE;
    format!("boot a kernel of {major}.{minor} or newer with CONFIG_SCHED_CLASS_EXT=y")
}

/// The kernel's type information.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The kernel's release, as `uname -r` prints it; `None` if there is no `/proc`.
pub fn release(system: &System) -> Option<String> {
    system.read("/proc/sys/kernel/osrelease")
}

/// The first two numbers of a release; `None` if it does not begin with two.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|digits| digits.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// A kernel on which our schedulers do not load, however it was built. A release that cannot be parsed is
/// no obstacle.
pub fn too_old(system: &System) -> Option<Obstacle> {
    let release = release(system)?;
    let (major, minor) = WORKS_SINCE;
    (version(&release)? < WORKS_SINCE).then(|| {
        Obstacle::new(
            format!(
                "kernel {release} is older than {major}.{minor}, the first with all of sched_ext that is needed"
            ),
            another_kernel(),
        )
    })
}

/// The kernel's preemption model in its own terms: `PREEMPT_RT`, `PREEMPT_DYNAMIC`, `PREEMPT`;
/// `None` if it has none or does not report it.
pub fn preemption(system: &System) -> Option<String> {
    let build = system.read("/proc/sys/kernel/version")?;
    let mut words = build.split_whitespace();
    // Patched kernels before 6.12 wrote `PREEMPT RT`.
    if build.contains("PREEMPT RT") {
        return Some("PREEMPT_RT".into());
    }
    let word = words.find(|word| word.starts_with("PREEMPT"));
    word.map(str::to_owned)
}

/// Whether the kernel is a real-time one (PREEMPT_RT), on which BPF schedulers have no
/// timers.
pub fn is_real_time(system: &System) -> bool {
    // The file came with the patch set and is not in every kernel that has the option.
    system.read("/sys/kernel/realtime").as_deref() == Some("1")
        || preemption(system).as_deref() == Some("PREEMPT_RT")
}

/// The kernel's type information (BTF).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Types {
    /// Missing: BPF programs cannot be relocated to this kernel.
    Absent,
    /// Not readable.
    Unreadable(BtfError),
    /// Readable, with these functions that schedulers may call.
    Known(Kfuncs),
}

/// Reads the kernel's type information. Takes milliseconds.
pub fn types(system: &System) -> Types {
    match system.read_bytes(TYPES).as_deref().map(kfuncs) {
        None => Types::Absent,
        Some(Err(error)) => Types::Unreadable(error),
        Some(Ok(kfuncs)) => Types::Known(kfuncs),
    }
}

impl Types {
    /// The obstacle, if BPF programs cannot be relocated to these types.
    pub fn obstacle(&self) -> Option<Obstacle> {
        match self {
            Self::Absent => Some(Obstacle::new(
                format!("this kernel does not describe its types (BTF): no {TYPES}"),
                "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
            )),
            // Possibly newer than this program; loading will show.
            Self::Unreadable(BtfError::UnknownKind { .. }) => None,
            Self::Unreadable(error) => Some(Obstacle::new(
                format!("{TYPES}: {error}"),
                "boot another build of the kernel",
            )),
            Self::Known(kfuncs) if kfuncs.malformed.is_empty() => None,
            Self::Known(kfuncs) => Some(Obstacle::new(
                format!(
                    "this kernel's type information (BTF) is malformed, as pahole 1.30 makes it: {} of \
                     {} sched_ext functions cannot be called, such as {}",
                    kfuncs.malformed.len(),
                    kfuncs.all.len(),
                    kfuncs.malformed[0]
                ),
                "no program can mend that: boot another build of the kernel (on Debian, another \
                 version of linux-image-amd64)",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shiftwork_btf::samples::{MALFORMED, SOUND, Sample};

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("6.9.0-foo"), Some((6, 9)));
        assert_eq!(version("7.0.13+deb13"), Some((7, 0)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.9.0").unwrap() < WORKS_SINCE);
        assert!(version("10.1.0").unwrap() > WORKS_SINCE);
    }

    #[test]
    fn only_a_release_that_is_parsed_is_too_old() {
        let message = |release| {
            let system = System::of([("/proc/sys/kernel/osrelease", release)]);
            too_old(&system).map(|obstacle| obstacle.to_string())
        };
        assert_eq!(
            message("6.1.0-40-amd64\n").as_deref(),
            Some(
                "kernel 6.1.0-40-amd64 is older than 6.15, the first with all of sched_ext that is needed; boot \
                 a kernel of 6.15 or newer with CONFIG_SCHED_CLASS_EXT=y"
            )
        );
        // These have sched_ext, but do not know one of the scheduler's flags.
        assert!(message("6.12.57+deb13-amd64\n").is_some());
        assert!(message("6.14.11\n").is_some());
        assert_eq!(message("6.15.0\n"), None);
        assert_eq!(message("mine\n"), None);
    }

    /// The BPF program sets the flag that requires a newer kernel, and the documents name the same kernel.
    #[test]
    fn first_kernel_is_the_same_in_code_and_documents() {
        let (major, minor) = WORKS_SINCE;
        let program = include_str!("../../bpf/main.bpf.c");
        assert!(program.contains("SCX_OPS_ALLOW_QUEUED_WAKEUP"));
        let page = include_str!("../../../../docs/live-machine.md");
        let said = format!("before {major}.{minor} the kernel refuses a flag");
        assert!(page.contains(&said), "docs/live-machine.md lacks: {said}");
    }

    #[test]
    fn real_time_kernel_is_recognised_by_file_or_version() {
        let build = |text| System::of([("/proc/sys/kernel/version", text)]);
        let real_time = build("#1 SMP PREEMPT_RT Debian 7.2.13-1 (2026-10-28)\n");
        assert!(is_real_time(&real_time));
        assert!(is_real_time(&build("#1 SMP PREEMPT RT Debian 5.10\n")));
        assert!(is_real_time(&System::of([("/sys/kernel/realtime", "1\n")])));
        let dynamic = build("#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1 (2026-10-28)\n");
        assert!(!is_real_time(&dynamic));
        assert_eq!(preemption(&dynamic).as_deref(), Some("PREEMPT_DYNAMIC"));
        assert_eq!(preemption(&build("#1 SMP Debian 6.1\n")), None);
    }

    #[test]
    fn malformed_types_are_an_obstacle_and_counted() {
        let message = |content: Vec<u8>| {
            let obstacle = types(&System::of([(TYPES, content)])).obstacle();
            obstacle.map(|obstacle| obstacle.to_string())
        };
        assert_eq!(message(Sample::of(SOUND)), None);
        assert_eq!(
            message(Sample::of(MALFORMED)).as_deref(),
            Some(
                "this kernel's type information (BTF) is malformed, as pahole 1.30 makes it: 2 of 4 \
                 sched_ext functions cannot be called, such as bpf_iter_scx_dsq_new; no program can \
                 mend that: boot another build of the kernel (on Debian, another version of \
                 linux-image-amd64)"
            )
        );
        assert_eq!(
            message(b"\x7fELF".to_vec()).as_deref(),
            Some(
                "/sys/kernel/btf/vmlinux: no type information: it begins with 7f 45 instead of 9f eb; \
                 boot another build of the kernel"
            )
        );
        // A kind that only later kernels have.
        let mut newer = Sample::of(SOUND);
        newer[24 + 7] = 30;
        assert_eq!(message(newer), None);
        let nothing = types(&System::of([("", ""); 0])).obstacle().unwrap();
        assert_eq!(nothing.remedy, "boot a kernel with CONFIG_DEBUG_INFO_BTF=y");
    }
}
