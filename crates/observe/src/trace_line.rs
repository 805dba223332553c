//! Lines of the kernel's trace in its text form, as `trace` and `trace_pipe` of tracefs have them.

use std::fmt;

use shiftwork_model::Instant;

use crate::event::SwitchedOut;

/// An event that is of interest here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// `sched_switch`.
    Switch {
        /// The thread that ran.
        from: u32,
        /// Why it does not run any more.
        out: SwitchedOut,
        /// The thread that runs.
        to: u32,
    },
    /// `sched_waking`: a thread is to be woken.
    Waking {
        /// The thread.
        thread: u32,
    },
}

/// A line with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// By the clock of the trace, to the microsecond.
    pub at: Instant,
    /// The CPU of the machine.
    pub cpu: usize,
    /// The thread that ran there; 0 if the CPU was idle.
    pub thread: u32,
    /// Whether the CPU handled a hardware interrupt, which has nothing to do with the thread. Network packets that a thread
    /// sends to this machine itself are delivered in a soft interrupt, which is the thread's doing and no interrupt here.
    pub in_interrupt: bool,
    /// The event.
    pub event: TraceEvent,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// An event.
    Event(TraceLine),
    /// Events of this CPU were lost before the next line about it.
    Lost {
        /// The CPU.
        cpu: usize,
    },
    /// Nothing of interest: a comment or another event.
    Other,
}

/// A line that should be an event and cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLineError {
    line: String,
}

impl fmt::Display for TraceLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the trace has the line `{}`; expected `NAME-TID [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: KEY=VALUE..`",
            self.line
        )
    }
}

impl std::error::Error for TraceLineError {}

/// Reads a line.
///
/// # Errors
/// If it names an event of interest and has another form than the kernel's.
pub fn parse(line: &str) -> Result<Line, TraceLineError> {
    if line.starts_with('#') {
        return Ok(Line::Other);
    }
    if let Some(cpu) = lost(line) {
        return Ok(Line::Lost { cpu });
    }
    // A name is at most 15 characters long and so cannot contain these.
    let found = if let Some((head, fields)) = line.split_once(": sched_switch: ") {
        switch(fields).and_then(|event| event_line(head, event))
    } else if let Some((head, fields)) = line.split_once(": sched_waking: ") {
        let thread = number_after(fields, " pid=");
        thread.and_then(|thread| event_line(head, TraceEvent::Waking { thread }))
    } else {
        return Ok(Line::Other);
    };
    found.map(Line::Event).ok_or_else(|| TraceLineError {
        line: line.to_owned(),
    })
}

/// `CPU:1 [LOST 27 EVENTS]`, in older kernels `CPU:1 [LOST EVENTS]`.
fn lost(line: &str) -> Option<usize> {
    let (cpu, rest) = line.strip_prefix("CPU:")?.split_once(' ')?;
    let cpu = cpu.parse().ok()?;
    (rest.starts_with("[LOST ") && rest.ends_with("EVENTS]")).then_some(cpu)
}

/// ` NAME-TID [CPU] FLAGS SECONDS.MICROSECONDS`, where names may have spaces, brackets and hyphens of their own. Before the
/// CPU there may be the number of the process, `(  71)`.
fn event_line(head: &str, event: TraceEvent) -> Option<TraceLine> {
    let (head, time) = head.rsplit_once(' ')?;
    let (seconds, micros) = time.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let micros: u64 = (micros.len() == 6).then(|| micros.parse().ok())??;
    let at = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
    let (thread, rest) = head.rsplit_once('[')?;
    let (cpu, flags) = rest.split_once(']')?;
    let thread = match thread.trim_end().strip_suffix(')') {
        Some(before) => before.rsplit_once('(')?.0,
        None => thread,
    };
    let thread = thread.trim_end().rsplit_once('-')?.1;
    // Interrupts disabled, rescheduling needed, in an interrupt, depth of disabled preemption, and so on.
    let context = flags.trim().chars().nth(2);
    Some(TraceLine {
        at: Instant::from_ns(at.checked_mul(1_000)?),
        cpu: cpu.parse().ok()?,
        thread: thread.parse().ok()?,
        in_interrupt: matches!(context?, 'h' | 'H' | 'z' | 'Z'),
        event,
    })
}

/// `prev_comm=.. prev_pid=.. prev_prio=.. prev_state=.. ==> next_comm=.. next_pid=.. next_prio=..`, where both names may
/// look like keys.
fn switch(fields: &str) -> Option<TraceEvent> {
    const NAME: &str = "prev_comm=";
    const NUMBER: &str = " prev_pid=";
    // In the longest beginning that can have the key behind the first name, it is the last one.
    let most = NAME.len() + NAME_CHARACTERS + NUMBER.len();
    let end = fields.char_indices().nth(most).map(|(at, _)| at);
    let number = fields[..end.unwrap_or(fields.len())].rfind(NUMBER)? + NUMBER.len();
    let (from, rest) = fields[number..].split_once(' ')?;
    let state = rest.split_once("prev_state=")?.1.split(' ').next()?;
    Some(TraceEvent::Switch {
        from: from.parse().ok()?,
        out: switched_out(state)?,
        to: number_after(fields, " next_pid=")?,
    })
}

/// Longest name of a thread.
const NAME_CHARACTERS: usize = 15;

/// What follows the last of these keys, as a number.
fn number_after(fields: &str, key: &str) -> Option<u32> {
    let value = fields.rsplit_once(key)?.1;
    value.split(' ').next()?.parse().ok()
}

/// The state as the kernel prints it: letters, joined by `|`, and `+` if the thread was preempted.
fn switched_out(state: &str) -> Option<SwitchedOut> {
    let mut letters = state.trim_end().chars();
    Some(match letters.next()? {
        _ if state.contains('+') => SwitchedOut::Ready,
        'R' => SwitchedOut::Ready,
        'D' | 'T' | 't' => SwitchedOut::Suspended,
        'X' | 'Z' | 'x' => SwitchedOut::Ended,
        letter if letter.is_ascii_alphabetic() => SwitchedOut::Asleep,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> TraceLine {
        match parse(line) {
            Ok(Line::Event(found)) => found,
            other => panic!("{line}: {other:?}"),
        }
    }

    const SWITCH: &str = "  a b [1]-x-71      [002] d..2.    11.999999: sched_switch: prev_comm=a b [1]-x prev_pid=71 \
                          prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120";

    #[test]
    fn switch_is_read_whatever_the_names_look_like() {
        let expected = TraceLine {
            at: Instant::from_ns(11_999_999_000),
            cpu: 2,
            thread: 71,
            in_interrupt: false,
            event: TraceEvent::Switch {
                from: 71,
                out: SwitchedOut::Asleep,
                to: 0,
            },
        };
        assert_eq!(event(SWITCH), expected);
        for name in [
            "x",
            "",
            " prev_pid=9",
            "prev_pid=9 prev",
            " ==> next_comm=",
            " ==> next_pid=5",
            "next_pid=6 ",
            " prev_state=R",
            "(70) [003] d..2",
        ] {
            let named = SWITCH.replace("a b [1]-x", name);
            assert_eq!(event(&named), expected, "{named}");
            let named = SWITCH.replace("swapper/2", name);
            assert_eq!(event(&named), expected, "{named}");
        }
        let with_process = SWITCH.replace("-71      [", "-71      (     70) [");
        assert_eq!(event(&with_process), expected);
        let with_process = SWITCH.replace("-71      [", "-71      (-------) [");
        assert_eq!(event(&with_process), expected);
    }

    #[test]
    fn reason_of_a_switch_follows_from_the_state() {
        for (state, expected) in [
            ("R", SwitchedOut::Ready),
            ("R+", SwitchedOut::Ready),
            ("S", SwitchedOut::Asleep),
            ("I", SwitchedOut::Asleep),
            ("D", SwitchedOut::Suspended),
            ("D|K", SwitchedOut::Suspended),
            ("T", SwitchedOut::Suspended),
            ("X", SwitchedOut::Ended),
            ("Z", SwitchedOut::Ended),
        ] {
            let line = SWITCH.replace("prev_state=S", &format!("prev_state={state}"));
            let TraceEvent::Switch { out, .. } = event(&line).event else {
                panic!("{line}");
            };
            assert_eq!(out, expected, "{state}");
        }
    }

    const WAKING: &str = "          <idle>-0       [001] d.h2.    12.000001: sched_waking: comm=T pid=3 pid=72 prio=-1 \
                          target_cpu=001";

    #[test]
    fn wakeup_is_by_an_interrupt_or_by_the_thread_that_runs() {
        let found = event(WAKING);
        assert_eq!(found.event, TraceEvent::Waking { thread: 72 });
        assert_eq!((found.thread, found.cpu), (0, 1));
        for (flags, in_interrupt) in [
            ("d.h2.", true),
            ("dNH2", true),
            ("d.Z2.", true),
            ("dnh31", true),
            ("d..2.", false),
            ("d.s2.", false),
            ("dN.2", false),
        ] {
            let line = WAKING.replace("d.h2.", flags);
            assert_eq!(event(&line).in_interrupt, in_interrupt, "{flags}");
        }
    }

    #[test]
    fn other_lines_are_left_out_and_lost_events_are_named() {
        for line in [
            "",
            "# tracer: nop",
            "#  : sched_switch: ",
            "   x-1  [000] d..2.  1.000000: sched_stat_runtime: comm=x pid=1",
            "CPU:x [LOST 3 EVENTS]",
        ] {
            assert_eq!(parse(line), Ok(Line::Other), "{line}");
        }
        assert_eq!(parse("CPU:3 [LOST 27 EVENTS]"), Ok(Line::Lost { cpu: 3 }));
        assert_eq!(parse("CPU:3 [LOST EVENTS]"), Ok(Line::Lost { cpu: 3 }));
    }

    #[test]
    fn broken_events_are_errors() {
        for (whole, broken) in [
            ("prev_pid=71", "prev_pid="),
            ("prev_pid=71", "prev_pid=-71"),
            ("next_pid=0", "next_pid=y"),
            ("prev_state=S", "prev_state="),
            ("prev_state=S", "prev_state=?"),
            ("[002]", "002"),
            ("d..2.", "d."),
            ("11.999999", "11.99"),
            ("11.999999", "99999999999999999999.000000"),
            ("-71 ", " "),
        ] {
            let line = SWITCH.replace(whole, broken);
            let message = parse(&line).unwrap_err().to_string();
            assert!(message.contains(&line), "{message}");
        }
        assert!(parse(&WAKING.replace("pid=", "id=")).is_err());
        // Cut anywhere it is no panic.
        for line in [SWITCH, WAKING] {
            for end in 0..line.len() {
                let _ = parse(&line[..end]);
            }
        }
    }
}
