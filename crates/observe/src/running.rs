//! The threads that run now, found by the names of their processes.

use std::collections::BTreeSet;
use std::fs;

use crate::process::{Stat, field, process_ids, shown, thread, thread_ids};

/// A thread of a running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningThread {
    /// The number of its process, which is that of the main thread.
    pub process: u32,
    /// The name of its process, which is that of the main thread.
    pub process_name: String,
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// When it began, in clock ticks since boot.
    pub started: u64,
    /// The real user of the process.
    pub user: u32,
}

/// The threads of all processes with one of these names that have not ended, by process; of each the main thread first, then
/// by age.
///
/// # Cost
/// Reads one small file of each process, and three of each thread that is found.
pub fn running_threads(processes: &BTreeSet<String>) -> Vec<RunningThread> {
    let mut found = Vec::new();
    for process in process_ids() {
        let Ok(name) = fs::read(format!("/proc/{process}/comm")) else {
            continue;
        };
        let process_name = shown(&name);
        if !processes.contains(&process_name) {
            continue;
        }
        let status = fs::read(format!("/proc/{process}/status")).unwrap_or_default();
        let Some(user) = real_user(&String::from_utf8_lossy(&status)) else {
            continue;
        };
        let threads = thread_ids(process).into_iter().filter_map(|id| {
            let facts = thread(process, id)?;
            Some(RunningThread {
                process,
                process_name: process_name.clone(),
                id,
                name: facts.name,
                started: facts.started,
                user,
            })
        });
        let mut threads: Vec<RunningThread> = threads.collect();
        threads.sort_by_key(|it| (it.id != process, it.started, it.id));
        found.extend(threads);
    }
    found
}

/// Whether the thread sleeps until something wakes it, not for a device; `None` if it has ended.
pub fn is_asleep(thread: u32) -> Option<bool> {
    let stat = fs::read(format!("/proc/{thread}/stat")).ok()?;
    let stat = Stat::parse(&String::from_utf8_lossy(&stat))?;
    (!stat.has_ended()).then_some(stat.state == 'S')
}

fn real_user(status: &str) -> Option<u32> {
    let ids = field(status, "Uid:")?;
    ids.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn threads_of_own_process_are_found_main_thread_first() {
        let (sender, receiver) = mpsc::channel::<()>();
        let waiting = std::thread::Builder::new().name("has a name".to_owned());
        let (ready, is_ready) = mpsc::channel();
        // A thread gives itself its name.
        let wait = move || {
            ready.send(()).unwrap();
            receiver.recv()
        };
        let waiting = waiting.spawn(wait).unwrap();
        is_ready.recv().unwrap();
        let own = std::process::id();
        let name = fs::read(format!("/proc/{own}/comm")).unwrap();
        let all = running_threads(&BTreeSet::from([shown(&name)]));
        let all: Vec<_> = all.into_iter().filter(|it| it.process == own).collect();
        assert_eq!(all[0].id, own, "{all:?}");
        let user = fs::metadata("/proc/self").unwrap().uid();
        assert!(all.iter().all(|it| it.user == user));
        let named = all.iter().find(|it| it.name == "has a name").unwrap();
        assert!(named.started >= all[0].started);
        assert_eq!(running_threads(&BTreeSet::from(["no such".to_owned()])), []);
        drop(sender);
        assert!(waiting.join().unwrap().is_err());
    }

    #[test]
    fn sleeping_process_is_asleep_and_a_zombie_is_not_there() {
        let mut child = Command::new("sleep")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        while is_asleep(child.id()) == Some(false) {
            std::thread::yield_now();
        }
        assert_eq!(is_asleep(child.id()), Some(true));
        child.kill().unwrap();
        while is_asleep(child.id()).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
