//! sched_ext: whether the kernel has it, and whether a scheduler is loaded.

use std::fmt;

use shiftwork_model::Span;

use super::{Obstacle, System, kernel};

/// The greatest timeout of the sched_ext watchdog
/// (`SCX_WATCHDOG_MAX_TIMEOUT` in the kernel).
pub const WATCHDOG_MAX: Span = Span::from_s(30);

/// The state of sched_ext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The kernel has no sched_ext.
    Absent,
    /// No scheduler is loaded.
    Free,
    /// A scheduler is loaded, and there can be only one.
    Taken {
        /// `enabled`, or a transition: `enabling`, `disabling`.
        state: String,
        /// The scheduler's name; `None` if the kernel does not report it.
        scheduler: Option<String>,
    },
}

/// Reads the state of sched_ext.
pub fn state(system: &System) -> State {
    match system.read("/sys/kernel/sched_ext/state") {
        None => State::Absent,
        Some(state) if state == "disabled" => State::Free,
        Some(state) => State::Taken {
            state,
            scheduler: system
                .read("/sys/kernel/sched_ext/root/ops")
                .filter(|name| !name.is_empty()),
        },
    }
}

/// The obstacle of a kernel without sched_ext.
pub fn absent(system: &System) -> Option<Obstacle> {
    if state(system) != State::Absent {
        return None;
    }
    if !system.has("/sys/kernel") {
        return Some(Obstacle::new(
            "/sys is not mounted, so that the kernel cannot be asked for sched_ext",
            "sudo mount -t sysfs sysfs /sys",
        ));
    }
    let release = kernel::release(system).map_or_else(String::new, |release| format!(" {release}"));
    Some(Obstacle::new(
        format!("kernel{release} was built without sched_ext"),
        kernel::another_kernel(),
    ))
}

/// A process that keeps a scheduler loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its systemd service; `None` if it belongs to none.
    pub service: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

/// The first process that has a struct_ops link open, as the owner of a scheduler does.
/// `None` if there is none, because the scheduler is pinned, or if files of other processes are not readable.
///
/// Reads all open files of all processes: some hundredths of a second.
pub fn holder(system: &System) -> Option<Holder> {
    let processes = system.names("/proc").into_iter();
    processes
        .filter_map(|name| name.parse().ok())
        .find(|&pid| holds_link(system, pid))
        .map(|pid| Holder {
            pid,
            name: system
                .read(&format!("/proc/{pid}/comm"))
                .unwrap_or_default(),
            service: service(system, pid),
        })
}

fn holds_link(system: &System, pid: u32) -> bool {
    let folder = format!("/proc/{pid}/fdinfo");
    system.names(&folder).iter().any(|file| {
        let text = system.read(&format!("{folder}/{file}"));
        text.is_some_and(|text| {
            text.lines()
                .filter_map(|line| line.strip_prefix("link_type:"))
                .any(|kind| kind.trim() == "struct_ops")
        })
    })
}

/// The systemd service of a process, from its control group.
fn service(system: &System, pid: u32) -> Option<String> {
    let groups = system.read(&format!("/proc/{pid}/cgroup"))?;
    let mut names = groups.lines().filter_map(|line| line.rsplit('/').next());
    let service = names.find(|name| name.ends_with(".service"));
    service.map(str::to_owned)
}

/// The obstacle of a scheduler that is loaded already.
pub fn taken(system: &System) -> Option<Obstacle> {
    let State::Taken { state, scheduler } = state(system) else {
        return None;
    };
    let name = scheduler.unwrap_or_else(|| "unnamed".into());
    let (by, remedy) = match holder(system) {
        Some(holder) => {
            let remedy = match &holder.service {
                Some(service) => format!("sudo systemctl stop {service}"),
                None => format!("sudo kill {}", holder.pid),
            };
            (format!(", held by {holder}"), remedy)
        }
        // The kernel's own command that unloads any scheduler.
        None => (
            String::new(),
            "echo S | sudo tee /proc/sysrq-trigger".into(),
        ),
    };
    Some(Obstacle::new(
        format!(
            "a sched_ext scheduler is loaded already, and there can be only one: {name} ({state}){by}"
        ),
        remedy,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENABLED: (&str, &str) = ("/sys/kernel/sched_ext/state", "enabled\n");
    const OPS: (&str, &str) = ("/sys/kernel/sched_ext/root/ops", "rusty_1.0.4\n");
    const LINK: &str = "pos:\t0\nflags:\t02000000\nlink_type:\tstruct_ops\nlink_id:\t3\n";

    #[test]
    fn loaded_scheduler_is_named_with_the_command_to_stop_it() {
        let message = |files: &[(&str, &str)]| {
            let all = [&[ENABLED, OPS], files].concat();
            taken(&System::of(all)).unwrap().to_string()
        };
        assert_eq!(
            message(&[]),
            "a sched_ext scheduler is loaded already, and there can be only one: rusty_1.0.4 (enabled); \
             echo S | sudo tee /proc/sysrq-trigger"
        );
        let process = [
            ("/proc/12/fdinfo/3", "pos:\t0\nlink_type:\ttracing\n"),
            ("/proc/417/fdinfo/9", LINK),
            ("/proc/417/comm", "scx_rusty\n"),
            ("/proc/self/fdinfo/9", LINK),
        ];
        assert_eq!(
            message(&process),
            "a sched_ext scheduler is loaded already, and there can be only one: rusty_1.0.4 (enabled), \
             held by process 417 (scx_rusty); sudo kill 417"
        );
        let service = ("/proc/417/cgroup", "0::/system.slice/scx.service\n");
        let message = message(&[&process[..], &[service]].concat());
        assert!(
            message.ends_with("; sudo systemctl stop scx.service"),
            "{message}"
        );
    }

    #[test]
    fn free_sched_ext_is_no_obstacle() {
        let free = System::of([("/sys/kernel/sched_ext/state", "disabled\n")]);
        assert_eq!(state(&free), State::Free);
        assert_eq!(taken(&free), None);
        assert_eq!(absent(&free), None);
    }

    #[test]
    fn kernel_without_sched_ext_is_named() {
        let system = System::of([
            ("/proc/sys/kernel/osrelease", "6.18.44\n"),
            ("/sys/kernel/btf/vmlinux", ""),
        ]);
        assert_eq!(
            absent(&system).unwrap().to_string(),
            "kernel 6.18.44 was built without sched_ext; boot a kernel of 6.15 or newer with \
             CONFIG_SCHED_CLASS_EXT=y"
        );
        assert_eq!(taken(&system), None);
    }
}
