//! What lines for people call threads under SCHED_DEADLINE.

use shiftwork_live::host::{DeadlineThread, Reservation};

/// So many threads are named in a line; the JSON names all.
const NAMED_MAX: usize = 4;

/// The first threads, and how many more there are.
pub(super) fn named(threads: &[DeadlineThread], text: fn(&DeadlineThread) -> String) -> String {
    let first = threads.iter().take(NAMED_MAX).map(text);
    let mut names: Vec<String> = first.collect();
    if threads.len() > NAMED_MAX {
        names.push(format!("and {} more", threads.len() - NAMED_MAX));
    }
    names.join(", ")
}

pub(super) fn in_short(thread: &DeadlineThread) -> String {
    format!("{} `{}`", thread.id, thread.name)
}

pub(super) fn in_full(thread: &DeadlineThread) -> String {
    let mut text = in_short(thread);
    if let Some(Reservation {
        runtime, period, ..
    }) = thread.reservation
    {
        text.push_str(&format!(" {runtime}/{period}"));
    }
    if let Some(cpus) = thread.cpus {
        text.push_str(&format!(" on CPUs {cpus}"));
    }
    if let Some(cpuset) = thread.cpuset.filter(|cpuset| Some(*cpuset) != thread.cpus) {
        text.push_str(&format!(" of {cpuset}"));
    }
    text
}
