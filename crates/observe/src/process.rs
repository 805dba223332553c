//! What `/proc` says of a process and its threads.

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
pub(crate) fn check_process(process: u32) -> Result<(), ObserveError> {
    let missing = || ObserveError::NoProcess { process };
    match process_of(process).ok_or_else(missing)? {
        group if group != process => Err(ObserveError::NotMainThread {
            thread: process,
            process: group,
        }),
        _ if stat(process).is_none() => Err(missing()),
        _ => Ok(()),
    }
}

/// The process of a thread; `None` if there is no such thread.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{thread}/status")).ok()?;
    field(&String::from_utf8_lossy(&status), "Tgid:")?
        .parse()
        .ok()
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

/// The name of a thread; `None` if it has ended.
pub(crate) fn name(process: u32, id: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{process}/task/{id}/comm")).ok()?;
    Some(shown(&name))
}

/// The facts about a thread; `None` if it has ended.
pub(crate) fn thread(process: u32, id: u32) -> Option<ThreadFacts> {
    let folder = format!("/proc/{process}/task/{id}");
    let status = fs::read(format!("{folder}/status")).ok()?;
    let counters = fs::read_to_string(format!("{folder}/schedstat")).unwrap_or_default();
    let stat = fs::read(format!("{folder}/stat")).ok()?;
    facts(
        &name(process, id)?,
        &String::from_utf8_lossy(&status),
        &counters,
        &String::from_utf8_lossy(&stat),
    )
}

/// A name in `/proc`, without the end of its line. What is no UTF-8 is replaced.
pub(crate) fn shown(name: &[u8]) -> String {
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    String::from_utf8_lossy(name).into_owned()
}

/// What `stat` says of a process or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Its name (`comm`).
    pub(crate) name: String,
    /// The letter of its state.
    pub(crate) state: char,
    /// The process that started it, or has taken it over.
    pub(crate) parent: u32,
    /// When it began, in clock ticks since boot.
    pub(crate) started: u64,
}

impl Stat {
    /// The name may contain any characters.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        /// Field 22, counted from the one after the parent, which is the fourth.
        const STARTED: usize = 17;
        let (before, after_name) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut fields = after_name.split_whitespace();
        Some(Self {
            name: name.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            started: fields.nth(STARTED)?.parse().ok()?,
        })
    }

    /// Whether it has ended, and only its parent has not noticed.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// What `stat` says of a process; `None` if it has ended, with all its threads.
pub(crate) fn stat(process: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = Stat::parse(&String::from_utf8_lossy(&text))?;
    // The main thread may have ended before the others.
    (!stat.has_ended() || thread_ids(process).len() > 1).then_some(stat)
}

/// The numbers of all processes, ascending.
pub(crate) fn process_ids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut ids: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    ids
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
        started: Stat::parse(stat)?.started,
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
    fn name_in_stat_may_contain_anything() {
        let expected = Stat {
            name: "x) y".to_owned(),
            state: 'S',
            parent: 1,
            started: 4_711,
        };
        assert_eq!(Stat::parse(STAT), Some(expected));
        assert_eq!(Stat::parse("7 (x) S 1"), None);
    }

    #[test]
    fn own_process_has_threads_and_others_may_not_exist() {
        let own = std::process::id();
        assert!(check_process(own).is_ok());
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
