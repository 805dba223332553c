//! Information about threads from `/proc`.

use std::fs;

use shiftwork_model::CpuSet;

use crate::accounts::charged_user;
use crate::reservation::{Credentials, Denial, Thread};

/// A thread and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its identity.
    pub thread: Thread,
    /// Its user and group.
    pub credentials: Credentials,
    /// The user that quotas charge for its real user.
    pub account: u32,
    /// Its name (`comm`).
    pub name: String,
    /// The path of its control group.
    pub cgroup: String,
    /// Its affinity.
    pub cpus: CpuSet,
    /// Whether its scheduling class is above that of sched_ext.
    pub has_higher_class: bool,
}

/// Where the daemon looks up threads; tests have threads of their own.
pub trait ThreadDirectory {
    /// As [`look_up`].
    ///
    /// # Errors
    /// [`Denial::Missing`] if there is none.
    fn look_up(&self, number: u32) -> Result<ThreadInfo, Denial>;

    /// As [`credentials`].
    fn credentials(&self, thread: &Thread) -> Option<Credentials>;

    /// As [`is_alive`].
    fn is_alive(&self, thread: &Thread) -> bool;
}

/// The threads of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Proc;

impl ThreadDirectory for Proc {
    fn look_up(&self, number: u32) -> Result<ThreadInfo, Denial> {
        look_up(number)
    }

    fn credentials(&self, thread: &Thread) -> Option<Credentials> {
        credentials(thread)
    }

    fn is_alive(&self, thread: &Thread) -> bool {
        is_alive(thread)
    }
}

/// The present credentials of the thread; `None` if it has ended.
///
/// # Cost
/// Two small files are read.
pub fn credentials(thread: &Thread) -> Option<Credentials> {
    let status = fs::read(format!("/proc/{}/status", thread.thread)).ok()?;
    // Read afterwards: if the thread is alive then, the status is not of a later thread with its ID.
    is_alive(thread).then(|| credentials_in(&String::from_utf8_lossy(&status)))
}

/// The thread with this ID.
///
/// # Errors
/// [`Denial::Missing`] if there is none.
pub fn look_up(number: u32) -> Result<ThreadInfo, Denial> {
    let read = |what: &str| {
        let missing = |_| Denial::Missing(format!("thread {number}"));
        fs::read(format!("/proc/{number}/{what}"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(missing)
    };
    // `stat`, which has the start time, is read last: if that equals one known before, all are of the same thread.
    let (status, cgroup, uid_map) = (read("status")?, read("cgroup")?, read("uid_map")?);
    let stat = read("stat")?;
    let unread = || Denial::Broken(format!("unexpected format of /proc/{number}"));
    let (started, class) = started_and_class(&stat).ok_or_else(unread)?;
    let cpus = field(&status, "Cpus_allowed_list:").and_then(|list| list.parse().ok());
    let process = field(&status, "Tgid:").and_then(|value| value.parse().ok());
    let real_user = ids(&status, "Uid:").next().ok_or_else(unread)?;
    Ok(ThreadInfo {
        thread: Thread {
            process: process.ok_or_else(unread)?,
            thread: number,
            started,
        },
        credentials: credentials_in(&status),
        account: charged_user(real_user, &uid_map),
        name: field(&status, "Name:").unwrap_or("").to_owned(),
        cgroup: group(&cgroup).to_owned(),
        cpus: cpus.ok_or_else(unread)?,
        has_higher_class: matches!(class, FIFO | ROUND_ROBIN | DEADLINE),
    })
}

// Numbers of scheduling policies, as in the kernel's `sched.h`.
const FIFO: u32 = 1;
const ROUND_ROBIN: u32 = 2;
const DEADLINE: u32 = 6;

/// The user that is charged for what this process does as `user`.
pub(crate) fn account_of(process: Option<u32>, user: u32) -> u32 {
    // In another PID namespace, or gone: not shown to be outside of all user namespaces.
    let map = process.and_then(|it| fs::read_to_string(format!("/proc/{it}/uid_map")).ok());
    charged_user(user, map.as_deref().unwrap_or(""))
}

/// The control group of this process; `None` if it does not exist.
pub(crate) fn cgroup_of(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    Some(group(&text).to_owned())
}

/// Whether the thread is alive: neither ended, nor a zombie, nor another thread with a reused ID.
pub fn is_alive(thread: &Thread) -> bool {
    let stat = fs::read(format!("/proc/{}/stat", thread.thread)).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let started = started_and_class(&stat).map(|(started, _)| started);
    started == Some(thread.started) && !has_ended(&stat)
}

/// Whether its state, which follows the name, is zombie or dead.
fn has_ended(stat: &str) -> bool {
    let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    matches!(state.trim_start().chars().next(), Some('Z' | 'X' | 'x'))
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

fn credentials_in(status: &str) -> Credentials {
    // The file-system ID, which is the last, does not matter.
    let common = |name| {
        let mut ids = ids(status, name).take(3);
        let first = ids.next()?;
        ids.all(|other| other == first).then_some(first)
    };
    Credentials {
        user: common("Uid:"),
        group: common("Gid:"),
    }
}

/// The real, effective, saved and file-system ID.
fn ids<'a>(status: &'a str, name: &str) -> impl Iterator<Item = u32> + use<'a> {
    let ids = field(status, name).unwrap_or("").split_whitespace();
    ids.map_while(|id| id.parse().ok())
}

/// Start time in clock ticks since boot, and the number of the scheduling policy. The name before them may contain any
/// characters.
fn started_and_class(stat: &str) -> Option<(u64, u32)> {
    /// Fields 22 and 41, counted from the one after the name, which is the second.
    const STARTED: usize = 19;
    const CLASS: usize = 38;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let started = fields.nth(STARTED)?.parse().ok()?;
    let class = fields.nth(CLASS - STARTED - 1)?.parse().ok()?;
    Some((started, class))
}

/// The path in the unified hierarchy, or in the first one listed.
fn group(cgroup: &str) -> &str {
    let path = |line: &'_ str| line.splitn(3, ':').nth(2).map(str::len);
    let unified = cgroup.lines().find(|line| line.starts_with("0::"));
    let line = unified.or(cgroup.lines().next()).unwrap_or("");
    path(line).map_or("/", |length| &line[line.len() - length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_thread_is_found() {
        let found = look_up(std::process::id()).unwrap();
        assert_eq!(found.thread.process, std::process::id());
        assert!(found.thread.started > 0);
        assert!(is_alive(&found.thread));
        assert!(found.cgroup.starts_with('/'), "{found:?}");
        assert!(
            !found.cpus.is_empty() && !found.has_higher_class,
            "{found:?}"
        );
        let other = Thread {
            started: found.thread.started + 1,
            ..found.thread
        };
        assert!(!is_alive(&other));
    }

    #[test]
    fn zombie_is_not_alive() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let found = look_up(child.id()).unwrap();
        assert!(is_alive(&found.thread));
        child.kill().unwrap();
        // Not reaped yet: its ID is still in use.
        while is_alive(&found.thread) {
            std::thread::yield_now();
        }
        assert_eq!(look_up(child.id()).unwrap().thread, found.thread);
        child.wait().unwrap();
        assert!(!is_alive(&found.thread));
    }

    #[test]
    fn look_up_of_unknown_thread_is_missing() {
        let missing = Denial::Missing("thread 4194304".to_owned());
        assert_eq!(look_up(4_194_304), Err(missing));
    }

    #[test]
    fn stat_with_parentheses_in_name_is_parsed() {
        let numbers: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) b) R {}", numbers.join(" "));
        assert_eq!(started_and_class(&stat), Some((22, 41)));
        assert_eq!(started_and_class("7 (a"), None);
        assert_eq!(started_and_class("7 (a) R 1"), None);
    }

    #[test]
    fn thread_with_differing_user_ids_has_no_user() {
        let user = |status| credentials_in(status).user;
        assert_eq!(user("Name:\ta\nUid:\t5\t5\t5\t5\n"), Some(5));
        assert_eq!(user("Uid:\t5\t5\t5\t0\n"), Some(5));
        assert_eq!(user("Uid:\t5\t0\t5\t0\n"), None);
        assert_eq!(user("Uid:\t5\t5\t0\t0\n"), None);
        assert_eq!(user("Uid:\t\n"), None);
        assert_eq!(user(""), None);
    }

    #[test]
    fn cgroups_of_both_hierarchies_are_parsed() {
        assert_eq!(group("0::/user.slice/a:b\n"), "/user.slice/a:b");
        assert_eq!(group("3:cpu:/x\n0::/y\n"), "/y");
        assert_eq!(group("3:cpu,cpuacct:/x\n"), "/x");
        assert_eq!(group(""), "/");
    }
}
