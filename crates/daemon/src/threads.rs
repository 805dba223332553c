//! Who a thread is, by what the kernel says of it in `/proc`.

use std::fs;

use shiftwork_model::CpuSet;

use crate::reservation::{Denial, Thread};

/// A thread, whose it is, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Which.
    pub thread: Thread,
    /// The user whose it is; `None` where its real, effective and saved users differ, as of a program that
    /// has another's privileges.
    pub user: Option<u32>,
    /// The kernel's name for it.
    pub name: String,
    /// The path of its control group.
    pub cgroup: String,
    /// The CPUs that it may use now.
    pub cpus: CpuSet,
    /// Whether it is in a scheduling class above all that an agent could do for it.
    pub has_higher_class: bool,
}

/// The thread with this number.
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
    // Who it is comes last: if that is as before, nobody else had the number in between.
    let (status, cgroup, stat) = (read("status")?, read("cgroup")?, read("stat")?);
    let unread = || {
        Denial::Broken(format!(
            "the kernel tells of thread {number} in a way that is not understood here"
        ))
    };
    let (started, class) = started_and_class(&stat).ok_or_else(unread)?;
    let cpus = field(&status, "Cpus_allowed_list:").and_then(|list| list.parse().ok());
    let process = field(&status, "Tgid:").and_then(|value| value.parse().ok());
    Ok(ThreadInfo {
        thread: Thread {
            process: process.ok_or_else(unread)?,
            thread: number,
            started,
        },
        user: user(&status),
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

/// The control group of this process; `None` if there is no such process.
pub(crate) fn cgroup_of(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    Some(group(&text).to_owned())
}

/// Whether the thread is there, and neither another with its number nor what is left of it until its parent asks.
pub fn is_alive(thread: &Thread) -> bool {
    let stat = fs::read(format!("/proc/{}/stat", thread.thread)).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let started = started_and_class(&stat).map(|(started, _)| started);
    started == Some(thread.started) && !has_ended(&stat)
}

/// By its state, which follows the name.
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

fn user(status: &str) -> Option<u32> {
    let mut users = field(status, "Uid:")?.split_whitespace();
    let first = users.next()?;
    // Real, effective, saved, and the one for files, which is of no interest.
    users
        .take(2)
        .all(|other| other == first)
        .then(|| first.parse().ok())?
}

/// When it was started, in ticks since the machine was, and the number of its scheduling policy. The name before them
/// may contain anything.
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

/// That of the unified hierarchy, or of the first that there is.
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
    fn this_thread_is_found() {
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
    fn a_thread_that_has_ended_is_not_there_whoever_still_asks() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let found = look_up(child.id()).unwrap();
        assert!(is_alive(&found.thread));
        child.kill().unwrap();
        // Nobody has asked how it ended: its number is still its own.
        while is_alive(&found.thread) {
            std::thread::yield_now();
        }
        assert_eq!(look_up(child.id()).unwrap().thread, found.thread);
        child.wait().unwrap();
        assert!(!is_alive(&found.thread));
    }

    #[test]
    fn a_thread_that_is_not_there_is_missing() {
        let missing = Denial::Missing("thread 4194304".to_owned());
        assert_eq!(look_up(4_194_304), Err(missing));
    }

    #[test]
    fn names_with_anything_in_them_confuse_nobody() {
        let numbers: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) b) R {}", numbers.join(" "));
        assert_eq!(started_and_class(&stat), Some((22, 41)));
        assert_eq!(started_and_class("7 (a"), None);
        assert_eq!(started_and_class("7 (a) R 1"), None);
    }

    #[test]
    fn whoever_has_anothers_privileges_is_nobodys() {
        assert_eq!(user("Name:\ta\nUid:\t5\t5\t5\t5\n"), Some(5));
        assert_eq!(user("Uid:\t5\t5\t5\t0\n"), Some(5));
        assert_eq!(user("Uid:\t5\t0\t5\t0\n"), None);
        assert_eq!(user("Uid:\t5\t5\t0\t0\n"), None);
        assert_eq!(user("Uid:\t\n"), None);
        assert_eq!(user(""), None);
    }

    #[test]
    fn control_groups_of_either_hierarchy_are_read() {
        assert_eq!(group("0::/user.slice/a:b\n"), "/user.slice/a:b");
        assert_eq!(group("3:cpu:/x\n0::/y\n"), "/y");
        assert_eq!(group("3:cpu,cpuacct:/x\n"), "/x");
        assert_eq!(group(""), "/");
    }
}
