//! Threads under SCHED_DEADLINE, with their CPUs and reservations.
//!
//! The kernel's own frequency threads (`sugov:0`) are left out: they have the class only in order to preempt all
//! others, and reserve nothing.

use shiftwork_model::{CpuSet, Span};

use super::System;

/// `SCHED_DEADLINE` in the field `policy` of a thread's `stat`.
const SCHED_DEADLINE: &[u8] = b"6";

/// The parent of all threads of the kernel.
const KTHREADD: &[u8] = b"2";

/// The reservation of a thread: CPU time in every period, by a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// CPU time in every period.
    pub runtime: Span,
    /// Relative deadline, from the start of a period.
    pub deadline: Span,
    /// The period.
    pub period: Span,
}

/// A thread under SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineThread {
    /// Its number.
    pub id: i32,
    /// Its name, up to 15 bytes.
    pub name: String,
    /// Its affinity; `None` if it is not readable.
    pub cpus: Option<CpuSet>,
    /// The CPUs of its cpuset; `None` if it has none, or it is not readable.
    pub cpuset: Option<CpuSet>,
    /// Its reservation; `None` if this process may not read it, or the thread has just ended.
    pub reservation: Option<Reservation>,
}

/// The threads under SCHED_DEADLINE, as far as this process may see them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DeadlineThreads {
    /// In the order of their processes and of their numbers, both as text.
    pub threads: Vec<DeadlineThread>,
    /// Number of threads that were read, of all classes.
    pub looked_at: usize,
    /// Number of threads, and of processes without visible threads, that are not readable.
    pub unreadable: usize,
}

/// Reads every thread of the machine: one file each, more only of those under SCHED_DEADLINE.
/// Threads that end meanwhile are left out.
pub fn deadline_threads(system: &System) -> DeadlineThreads {
    let mut found = DeadlineThreads::default();
    let processes = system.names("/proc");
    for process in processes.iter().filter(|name| is_number(name)) {
        let folder = format!("/proc/{process}/task");
        let threads = system.names(&folder);
        if threads.is_empty() && system.has(&format!("/proc/{process}")) {
            found.unreadable += 1;
        }
        for thread in threads {
            look_at(system, &format!("{folder}/{thread}"), &mut found);
        }
    }
    found
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

fn look_at(system: &System, folder: &str, found: &mut DeadlineThreads) {
    let Some(stat) = system.read_bytes(&format!("{folder}/stat")) else {
        found.unreadable += usize::from(system.has(folder));
        return;
    };
    found.looked_at += 1;
    let Some((name, fields)) = name_and_rest(&stat) else {
        return;
    };
    // proc(5) counts fields from 1; the third is the first after the name.
    let mut fields = fields.split(|byte| *byte == b' ').skip(1);
    let parent = fields.next();
    if fields.nth(36) != Some(SCHED_DEADLINE) {
        return;
    }
    if parent == Some(KTHREADD) && name.starts_with(b"sugov:") {
        return;
    }
    let number = folder.rsplit('/').next();
    let Some(id) = number.and_then(|number| number.parse().ok()) else {
        return;
    };
    found.threads.push(DeadlineThread {
        id,
        name: String::from_utf8_lossy(name).into_owned(),
        cpus: cpus_allowed(system, folder),
        cpuset: cpuset(system, folder),
        reservation: system.reservation(id),
    });
}

/// The name, which may contain spaces and parentheses itself, and the fields after it.
fn name_and_rest(stat: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = stat.iter().position(|byte| *byte == b'(')? + 1;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    Some((stat.get(begin..end)?, stat.get(end + 2..)?))
}

fn cpus_allowed(system: &System, folder: &str) -> Option<CpuSet> {
    let status = system.read(&format!("{folder}/status"))?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let cpus: CpuSet = list.trim().parse().ok()?;
    (!cpus.is_empty()).then_some(cpus)
}

/// The CPUs of the nearest cgroup that has a cpuset, under either version of cgroups.
fn cpuset(system: &System, folder: &str) -> Option<CpuSet> {
    let groups = system.read(&format!("{folder}/cgroup"))?;
    let entries = groups.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        Some((controllers, group))
    });
    let mut unified = None;
    for (controllers, group) in entries {
        if controllers.split(',').any(|name| name == "cpuset") {
            return cpuset_of(system, "/sys/fs/cgroup/cpuset", group, "effective_cpus");
        }
        if controllers.is_empty() {
            unified = Some(group);
        }
    }
    cpuset_of(system, "/sys/fs/cgroup", unified?, "cpus.effective")
}

/// The CPUs of the group or of its nearest ancestor with a cpuset.
fn cpuset_of(system: &System, root: &str, group: &str, file: &str) -> Option<CpuSet> {
    // A group outside this process's cgroup namespace.
    if group.split('/').any(|name| name == "..") {
        return None;
    }
    let mut group = group.trim_end_matches('/');
    loop {
        let cpus = system.cpus(&format!("{root}{group}/cpuset.{file}"));
        if cpus.is_some() || group.is_empty() {
            return cpus;
        }
        group = group.rsplit_once('/')?.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `stat` as the kernel writes it, up to the field `policy`.
    fn stat(name: &str, parent: u32, policy: u32) -> String {
        let zeros = "0 ".repeat(36);
        format!("7 ({name}) S {parent} {zeros}{policy} 0 0\n")
    }

    fn found(files: &[(&str, String)]) -> DeadlineThreads {
        let files = files.iter().map(|(path, text)| (*path, text.as_str()));
        deadline_threads(&System::of(files))
    }

    #[test]
    fn deadline_thread_is_found_by_its_class_whatever_its_name() {
        let files = [
            ("/proc/1/task/1/stat", stat("init", 0, 0)),
            ("/proc/7/task/7/stat", stat("a) R 1 6 (6", 1, 6)),
            (
                "/proc/7/task/7/status",
                "Name:\ta\nCpus_allowed_list:\t0,2-3\n".into(),
            ),
            ("/proc/7/task/9/stat", stat("b 6 6", 1, 1)),
            ("/proc/8/task/8/stat", stat("sugov:0", 2, 6)),
            ("/proc/8/task/11/stat", stat("sugov:0", 1, 6)),
            ("/proc/self/task/7/stat", stat("a", 1, 6)),
        ];
        let found = found(&files);
        let names: Vec<_> = found
            .threads
            .iter()
            .map(|thread| (thread.id, thread.name.as_str()))
            .collect();
        assert_eq!(names, [(7, "a) R 1 6 (6"), (11, "sugov:0")]);
        assert_eq!(found.threads[0].cpus, "0,2-3".parse().ok());
        assert_eq!(found.threads[1].cpus, None);
        assert_eq!((found.looked_at, found.unreadable), (5, 0));
    }

    #[test]
    fn unreadable_threads_are_counted() {
        let files = [
            ("/proc/1/status", String::new()),
            ("/proc/2/task/2/status", String::new()),
            ("/proc/3/task/3/stat", String::from("nonsense")),
        ];
        let found = found(&files);
        assert_eq!((found.looked_at, found.unreadable), (1, 2));
        assert_eq!(found.threads, []);
    }

    #[test]
    fn cpuset_is_that_of_the_nearest_group_with_one() {
        let with = |groups: &str, files: &[(&str, &str)]| {
            let stat = stat("a", 1, 6);
            let own = [
                ("/proc/7/task/7/stat", stat.as_str()),
                ("/proc/7/task/7/cgroup", groups),
            ];
            let system = System::of(own.into_iter().chain(files.iter().copied()));
            deadline_threads(&system).threads[0].cpuset
        };
        let set = |list: &str| list.parse::<CpuSet>().ok();
        let root = ("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
        let inner = ("/sys/fs/cgroup/a/cpuset.cpus.effective", "2-3\n");
        let first = ("/sys/fs/cgroup/cpuset/x/cpuset.effective_cpus", "5\n");
        assert_eq!(with("0::/a/b/c\n", &[root, inner]), set("2-3"));
        assert_eq!(with("0::/a/b/c\n", &[root]), set("0-7"));
        assert_eq!(with("0::/\n", &[root, inner]), set("0-7"));
        assert_eq!(with("0::/../a\n", &[root, inner]), None);
        assert_eq!(with("0::/a\n", &[]), None);
        assert_eq!(with("0::/a\n4:cpu,cpuset:/x\n", &[inner, first]), set("5"));
    }

    #[test]
    fn reservation_is_read_from_the_kernel() {
        let reservation = Reservation {
            runtime: Span::from_ms(1),
            deadline: Span::from_ms(5),
            period: Span::from_ms(10),
        };
        let stat = stat("a", 1, 6);
        let system = System::of([("/proc/7/task/7/stat", stat.as_str())]);
        assert_eq!(deadline_threads(&system).threads[0].reservation, None);
        let system = system.with_reservation(7, reservation);
        let found = deadline_threads(&system).threads[0].reservation;
        assert_eq!(found, Some(reservation));
    }

    #[test]
    fn this_machine_has_threads_and_this_thread_has_no_reservation() {
        let this = System::this();
        assert!(deadline_threads(&this).looked_at >= 1);
        let own = crate::sys::thread::own_id().as_raw_nonzero().get();
        let found = this.reservation(own);
        assert!(
            found.is_none_or(|found| found.runtime.is_zero()),
            "{found:?}"
        );
    }
}
