//! What `/proc` says of a process and its threads.

use std::collections::BTreeMap;
use std::fs;

use rustix::time::{ClockId, clock_gettime};
use shiftwork_model::{CpuSet, Instant};

use crate::error::ObserveError;

/// What is known of a thread now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadFacts {
    /// Its name (`comm`).
    pub(crate) name: String,
    /// The CPUs that it may use.
    pub(crate) affinity: CpuSet,
    /// CPU time since it began, in nanoseconds; `None` without CONFIG_SCHED_INFO.
    pub(crate) cpu_ns: Option<u64>,
    /// How often it went to sleep since it began.
    pub(crate) sleeps: u64,
    /// When it began, in clock ticks since boot.
    pub(crate) started: u64,
}

/// That there is a process with this number.
///
/// # Errors
/// If there is none, or if it is the number of another thread of a process.
pub fn check_process(process: u32) -> Result<(), ObserveError> {
    let missing = || ObserveError::NoProcess { process };
    let status = fs::read_to_string(format!("/proc/{process}/status")).map_err(|_| missing())?;
    let group = field(&status, "Tgid:").and_then(|text| text.parse().ok());
    match group.ok_or_else(missing)? {
        group if group != process => Err(ObserveError::NotMainThread {
            thread: process,
            process: group,
        }),
        _ if threads(process).is_empty() => Err(missing()),
        _ => Ok(()),
    }
}

/// The numbers of the threads of a process, also of those that have just ended; none if there is no such process.
pub(crate) fn thread_ids(process: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{process}/task"));
    let entries = entries.into_iter().flatten().flatten();
    let mut ids: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    ids
}

/// The facts about a thread; `None` if it has ended.
pub(crate) fn thread(process: u32, id: u32) -> Option<ThreadFacts> {
    let folder = format!("/proc/{process}/task/{id}");
    let name = fs::read(format!("{folder}/comm")).ok()?;
    let status = fs::read(format!("{folder}/status")).ok()?;
    let counters = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
    let stat = fs::read(format!("{folder}/stat")).ok()?;
    facts(
        &shown(&name),
        &String::from_utf8_lossy(&status),
        &counters,
        &String::from_utf8_lossy(&stat),
    )
}

/// The threads of a process that have not ended.
pub(crate) fn threads(process: u32) -> BTreeMap<u32, ThreadFacts> {
    let ids = thread_ids(process).into_iter();
    ids.filter_map(|id| Some((id, thread(process, id)?)))
        .collect()
}

/// A name in `/proc`, without the end of its line. What is no UTF-8 is replaced.
pub(crate) fn shown(name: &[u8]) -> String {
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    String::from_utf8_lossy(name).into_owned()
}

/// When the thread began, from its `stat`, in clock ticks since boot. The name before may contain any characters.
pub(crate) fn started(stat: &str) -> Option<u64> {
    /// Field 22, counted from the one after the name, which is the second.
    const STARTED: usize = 19;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(STARTED)?.parse().ok()
}

fn facts(name: &str, status: &str, counters: &str, stat: &str) -> Option<ThreadFacts> {
    if field(status, "State:")?.starts_with(['Z', 'X']) {
        return None;
    }
    Some(ThreadFacts {
        name: name.to_owned(),
        affinity: field(status, "Cpus_allowed_list:")?.parse().ok()?,
        cpu_ns: counters
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok()),
        sleeps: field(status, "voluntary_ctxt_switches:")?.parse().ok()?,
        started: started(stat)?,
    })
}

/// The monotonic clock, which is that of the trace.
pub(crate) fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, ns) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    Instant::from_ns(seconds * 1_000_000_000 + ns)
}

/// The value of a line that begins so.
pub(crate) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nState:\tS (sleeping)\nTgid:\t7\nCpus_allowed_list:\t0,2-3\n\
                          voluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t3\n";
    const STAT: &str = "7 (x) y) S 1 7 7 0 -1 4194304 90 0 0 0 1 2 0 0 20 0 1 0 4711 9 9 9";

    #[test]
    fn facts_about_a_thread_are_read() {
        let expected = ThreadFacts {
            name: "x y".to_owned(),
            affinity: CpuSet::from_bits(0b1101),
            cpu_ns: Some(123),
            sleeps: 41,
            started: 4_711,
        };
        assert_eq!(
            facts("x y", STATUS, "123 45 6\n", STAT),
            Some(expected.clone())
        );
        let without = ThreadFacts {
            cpu_ns: None,
            ..expected
        };
        assert_eq!(facts("x y", STATUS, "", STAT), Some(without));
        assert_eq!(facts("x", &STATUS.replace("S (", "Z ("), "", STAT), None);
        assert_eq!(facts("x", "", "", STAT), None);
        assert_eq!(facts("x", STATUS, "", ""), None);
        assert_eq!(shown(b"a \xff\n"), "a \u{fffd}");
    }

    #[test]
    fn own_process_has_threads_and_others_may_not_exist() {
        let own = std::process::id();
        assert!(check_process(own).is_ok());
        assert!(!threads(own).is_empty());
        let missing = check_process(4_194_305).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "there is no process 4194305; `pgrep NAME` finds one by its name"
        );
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || receiver.recv());
        let other = thread_ids(own).into_iter().find(|id| *id != own).unwrap();
        let error = check_process(other).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{other} is a thread of process {own}; name the process")
        );
        drop(sender);
        assert!(waiting.join().unwrap().is_err());
    }
}
