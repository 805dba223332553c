//! Capabilities and limits of this process.

use std::{io, thread};

use super::{Obstacle, System};
use crate::sys::thread::{Class, set_class};

/// The capabilities that are needed to load a scheduler and to set priorities of other threads, by bit number: `BPF`
/// and `PERFMON` to load programs that use the kernel's types, `SYS_ADMIN` to find a loaded scheduler,
/// `SYS_NICE` to set scheduling parameters.
const NEEDED: &[(u32, &str)] = &[
    (23, "CAP_SYS_NICE"),
    (39, "CAP_BPF"),
    (38, "CAP_PERFMON"),
    (21, "CAP_SYS_ADMIN"),
];

/// Allows real-time priorities to the user who enters it. `ulimit -r` does not help: it cannot exceed the hard
/// limit, which is 0 on most machines.
pub const RTPRIO_REMEDY: &str = "echo \"$USER - rtprio 99\" | sudo tee /etc/security/limits.d/99-realtime.conf # then log \
                               in again";

/// Allows locked memory to the user who enters it.
const MEMORY_REMEDY: &str = "echo \"$USER - memlock unlimited\" | sudo tee /etc/security/limits.d/99-memlock.conf # \
                             then log in again";

/// Allows locking memory beyond the limit.
const IPC_LOCK: u32 = 14;

/// The capabilities that a live run needs and this process does not have, by name; `None` if there is
/// no `/proc`.
pub fn lacking_capabilities(system: &System) -> Option<Vec<&'static str>> {
    let effective = effective(system)?;
    let lacking = NEEDED.iter().filter(|(bit, _)| effective >> bit & 1 == 0);
    Some(lacking.map(|&(_, name)| name).collect())
}

/// The effective capabilities, as bits.
fn effective(system: &System) -> Option<u64> {
    let status = system.read("/proc/self/status")?;
    let digits = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

/// Whether this process is inside a user namespace, where root has no privileges over the kernel.
fn is_in_user_namespace(system: &System) -> bool {
    system.read("/proc/self/uid_map").is_some_and(|map| {
        let words: Vec<&str> = map.split_whitespace().collect();
        words != ["0", "0", "4294967295"]
    })
}

/// The obstacle of a process that may not load a scheduler.
pub fn lacking(system: &System) -> Option<Obstacle> {
    let lacking = lacking_capabilities(system)?;
    if !lacking.is_empty() {
        return Some(Obstacle::new(
            format!("this process lacks {}", lacking.join(", ")),
            match system.is_root() {
                false => "run it as root, with `sudo`",
                true => "run it outside of this container or service, which takes them from root",
            },
        ));
    }
    is_in_user_namespace(system).then(|| {
        Obstacle::new(
            "this process is root only inside a user namespace, as in a container",
            "run it outside, as root of the machine",
        )
    })
}

/// The obstacle of a process that may not give its threads this real-time priority.
pub fn insufficient_rtprio(system: &System, wanted: u8) -> Option<Obstacle> {
    const SYS_NICE: u32 = 23;
    if effective(system)? >> SYS_NICE & 1 == 1 {
        return None;
    }
    let allowed = limit(system, "Max realtime priority")?;
    let is_enough = allowed
        .parse()
        .map_or(true, |allowed: u64| allowed >= u64::from(wanted));
    (!is_enough).then(|| {
        Obstacle::new(
            format!(
                "this process may have real-time priorities to {allowed}, and {wanted} is needed"
            ),
            RTPRIO_REMEDY,
        )
    })
}

/// The obstacle of a process to which the kernel refuses real-time priorities although it has the privilege; tried by a
/// thread that ends at once. `None` if that could not be tried, and of a simulated machine.
pub fn refused_rtprio(system: &System) -> Option<Obstacle> {
    const LEAST: u8 = 1;
    if system.is_simulated() || insufficient_rtprio(system, LEAST).is_some() {
        return None;
    }
    let tried = thread::Builder::new().spawn(|| set_class(None, Class::Fifo(LEAST)));
    let error = tried.ok()?.join().ok()?.err()?;
    Some(no_share(system, &error))
}

/// With `CONFIG_RT_GROUP_SCHED` a control group without a real-time share of its own has no real-time threads.
fn no_share(system: &System, error: &io::Error) -> Obstacle {
    let groups = system.read("/proc/self/cgroup").unwrap_or_default();
    let of_cpu = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers
            .split(',')
            .any(|one| one == "cpu")
            .then_some(path)
    });
    let remedy = match of_cpu {
        Some(path) => {
            format!("echo 950000 | sudo tee /sys/fs/cgroup/cpu{path}/cpu.rt_runtime_us")
        }
        None => String::from(
            "echo $$ | sudo tee /sys/fs/cgroup/cgroup.procs # leaves the control group; or boot with rt_group_sched=0",
        ),
    };
    Obstacle::new(
        format!(
            "the kernel refuses real-time priorities to this process, which may have them ({error}): probably its \
             control group has no real-time share (CONFIG_RT_GROUP_SCHED)"
        ),
        remedy,
    )
}

/// A soft limit in `/proc/self/limits`, as it is written there.
pub fn limit(system: &System, name: &str) -> Option<String> {
    let limits = system.read("/proc/self/limits")?;
    let values = limits.lines().find_map(|line| line.strip_prefix(name))?;
    values.split_whitespace().next().map(str::to_owned)
}

/// How many bytes of memory this process may lock; `None` if there is no limit, or it is not readable.
pub fn lockable_bytes(system: &System) -> Option<u64> {
    let has_capability = effective(system).is_some_and(|bits| bits >> IPC_LOCK & 1 == 1);
    if has_capability {
        return None;
    }
    limit(system, "Max locked memory")?.parse().ok()
}

/// The obstacle of a process that may not lock all its memory.
pub fn too_little_locked_memory(system: &System) -> Option<Obstacle> {
    let bytes = lockable_bytes(system)?;
    Some(Obstacle::new(
        format!(
            "this process may lock only {} KiB of memory, and a page that is fetched back delays a job",
            bytes / 1024
        ),
        MEMORY_REMEDY,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_priority_requires_capability_or_limit() {
        let machine = |bits: &str, limit: &str| {
            let status = format!("Name:\tx\nCapEff:\t{bits}\n");
            let limits = format!("Max realtime priority     {limit}        {limit}\n");
            let files = [
                ("/proc/self/status", status.as_str()),
                ("/proc/self/limits", limits.as_str()),
            ];
            insufficient_rtprio(&System::of(files), 90).map(|obstacle| obstacle.what)
        };
        assert_eq!(machine("0000000000800000", "0"), None);
        assert_eq!(machine("0000000000000000", "90"), None);
        assert_eq!(machine("0000000000000000", "unlimited"), None);
        let refused = "this process may have real-time priorities to 0, and 90 is needed";
        assert_eq!(machine("0000000000000000", "0").as_deref(), Some(refused));
    }

    #[test]
    fn group_without_real_time_share_is_named() {
        let error = io::Error::from_raw_os_error(libc::EPERM);
        let machine = |groups| no_share(&System::of([("/proc/self/cgroup", groups)]), &error);
        let old = machine("5:memory:/a\n4:cpu,cpuacct:/user/b\n0::/user\n").remedy;
        assert!(
            old.ends_with("/sys/fs/cgroup/cpu/user/b/cpu.rt_runtime_us"),
            "{old}"
        );
        let new = machine("0::/user.slice\n").remedy;
        assert!(new.contains("rt_group_sched=0"), "{new}");
    }

    #[test]
    fn priority_is_refused_exactly_if_the_kernel_refuses_it() {
        let allowed = std::thread::spawn(|| set_class(None, Class::Fifo(1)));
        let is_refused = allowed.join().unwrap().is_err();
        let this = System::this();
        let obstacle = insufficient_rtprio(&this, 1).or_else(|| refused_rtprio(&this));
        assert_eq!(obstacle.is_some(), is_refused, "{obstacle:?}");
    }

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
         Max locked memory         8388608              8388608              bytes\n\
         Max realtime priority     0                    0\n";

    #[test]
    fn missing_capabilities_are_named() {
        // All but BPF (39) and NICE (23).
        let status = "Name:\tshiftwork\nCapEff:\t0000017fff7fffff\n";
        let obstacle = lacking(&System::of([("/proc/self/status", status)])).unwrap();
        assert_eq!(
            obstacle.to_string(),
            "this process lacks CAP_SYS_NICE, CAP_BPF; run it as root, with `sudo`"
        );
    }

    #[test]
    fn root_without_capabilities_is_not_advised_to_use_sudo() {
        let status = "Uid:\t0\t0\t0\t0\nCapEff:\t0\n";
        let obstacle = lacking(&System::of([("/proc/self/status", status)])).unwrap();
        assert!(
            obstacle
                .remedy
                .starts_with("run it outside of this container"),
            "{obstacle}"
        );
    }

    #[test]
    fn root_of_a_user_namespace_is_an_obstacle() {
        let with = |map| {
            lacking(&System::of([
                ("/proc/self/status", "CapEff:\t000001ffffffffff\n"),
                ("/proc/self/uid_map", map),
            ]))
        };
        assert_eq!(with("         0          0 4294967295\n"), None);
        let obstacle = with("         0       1000          1\n").unwrap();
        assert_eq!(obstacle.remedy, "run it outside, as root of the machine");
    }

    #[test]
    fn capability_replaces_the_limit_of_locked_memory() {
        let with = |status| {
            too_little_locked_memory(&System::of([
                ("/proc/self/status", status),
                ("/proc/self/limits", LIMITS),
            ]))
        };
        assert_eq!(with("CapEff:\t0000000000004000\n"), None);
        assert_eq!(
            with("CapEff:\t0000000000000000\n").unwrap().to_string(),
            "this process may lock only 8192 KiB of memory, and a page that is fetched back delays a \
             job; echo \"$USER - memlock unlimited\" | sudo tee /etc/security/limits.d/99-memlock.conf # then log in \
             again"
        );
        let unlimited = LIMITS.replace("8388608", "unlimited");
        assert_eq!(
            lockable_bytes(&System::of([("/proc/self/limits", unlimited.as_str())])),
            None
        );
    }
}
