//! Which keys are events: they are recognized by their beginnings, as rt-app does.

use super::value::Json;
use crate::error::TasksetError;

/// What an event does, by the beginning of its key; the first that fits counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Run,
    Sleep,
    Timer,
    /// `lock` and `unlock`: nothing, unless other threads take the mutex, too.
    Mutex,
    /// Nothing, unless other threads come to it, too.
    Barrier,
    /// It wakes other threads, and changes nothing for this one.
    Wakes,
    /// It waits for what another thread does.
    Waits,
    /// It takes as long as the machine needs.
    TakesUnknownTime,
    Yield,
    Fork,
}

const EVENTS: [(&str, Kind); 18] = [
    ("lock", Kind::Mutex),
    ("unlock", Kind::Mutex),
    ("wait", Kind::Waits),
    ("signal", Kind::Wakes),
    ("broad", Kind::Wakes),
    ("sync", Kind::Waits),
    ("sleep", Kind::Sleep),
    ("run", Kind::Run),
    ("timer", Kind::Timer),
    ("suspend", Kind::Waits),
    ("resume", Kind::Wakes),
    ("mem", Kind::TakesUnknownTime),
    ("iorun", Kind::TakesUnknownTime),
    ("yield", Kind::Yield),
    ("barrier", Kind::Barrier),
    ("fork", Kind::Fork),
    ("sem_post", Kind::Wakes),
    ("sem_wait", Kind::Waits),
];

/// What the event of this key does; `None` if rt-app takes the key for no event.
pub(super) fn kind_of(key: &str) -> Option<Kind> {
    let event = EVENTS.iter().find(|(prefix, _)| key.starts_with(prefix));
    event.map(|&(_, kind)| kind)
}

/// The name of the timer that an event means.
pub(super) fn timer_name(timer: Json<'_>) -> Result<&str, TasksetError> {
    match timer.get("ref")? {
        Some(name) => name.text_value("the name of a timer"),
        None => Ok("unknown"),
    }
}
