//! Which keys are events: they are recognized by their beginnings, as rt-app does.

use super::value::Json;
use crate::error::TasksetError;

/// What an event does, by the beginning of its key; the first that fits counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Run,
    Sleep,
    Timer,
    Lock,
    Unlock,
    /// Waits at a condition, for which it gives up a mutex meanwhile.
    Wait,
    /// Wakes one thread that waits at a condition.
    Signal,
    /// Wakes all threads that wait at a condition.
    Broadcast,
    /// Signals a condition and then waits there, with a mutex, which it locks unless it is locked.
    Sync,
    /// Waits at the condition, and with the mutex, of this name.
    Suspend,
    /// Wakes all that suspended themselves with this name.
    Resume,
    /// Adds one to a semaphore.
    SemPost,
    /// Takes one from a semaphore, or waits until it can.
    SemWait,
    /// Nothing, unless other threads come to it, too.
    Barrier,
    /// It takes as long as the machine needs.
    TakesUnknownTime,
    Yield,
    Fork,
}

const EVENTS: [(&str, Kind); 18] = [
    ("lock", Kind::Lock),
    ("unlock", Kind::Unlock),
    ("wait", Kind::Wait),
    ("signal", Kind::Signal),
    ("broad", Kind::Broadcast),
    ("sync", Kind::Sync),
    ("sleep", Kind::Sleep),
    ("run", Kind::Run),
    ("timer", Kind::Timer),
    ("suspend", Kind::Suspend),
    ("resume", Kind::Resume),
    ("mem", Kind::TakesUnknownTime),
    ("iorun", Kind::TakesUnknownTime),
    ("yield", Kind::Yield),
    ("barrier", Kind::Barrier),
    ("fork", Kind::Fork),
    ("sem_post", Kind::SemPost),
    ("sem_wait", Kind::SemWait),
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

/// The condition and the mutex of a `wait` or `sync`.
pub(super) fn condition_and_mutex(wait: Json<'_>) -> Result<(&str, &str), TasksetError> {
    let name = |key: &str, what| match wait.get(key)? {
        Some(name) => name.text_value(what),
        None => Ok("unknown"),
    };
    let condition = name("ref", "the name of a condition")?;
    Ok((condition, name("mutex", "the name of a mutex")?))
}
