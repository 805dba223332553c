//! The kernel's own trace of its switches, on and off, and read.

use std::fs;

use shiftwork_observe::{Line, SwitchedOut, TraceEvent, TraceLine, parse};

/// Where the kernel keeps its trace.
const ROOT: &str = "/sys/kernel/tracing";
/// Room for each CPU: about 100 bytes an event.
const BUFFER_KIB: &str = "4096";
/// Chooses switches from and to `SCHED_DEADLINE` threads: the kernel shows a negative priority of them alone.
pub const ONLY_DEADLINE: &str = "prev_prio < 0 || next_prio < 0";

/// A CPU changed to another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// By the monotonic clock, to the microsecond.
    pub at_ns: u64,
    /// The CPU of the machine.
    pub cpu: usize,
    /// The thread that ran.
    pub from: u32,
    /// Why it does not run any more.
    pub out: SwitchedOut,
    /// The thread that runs.
    pub to: u32,
}

/// Begins to trace switches that this filter of the kernel chooses. What was traced before is gone.
///
/// # Errors
/// If the kernel cannot.
pub fn begin(filter: &str) -> Result<(), String> {
    write("tracing_on", "0")?;
    write("trace_clock", "mono")?;
    write("buffer_size_kb", BUFFER_KIB)?;
    write("events/sched/sched_switch/filter", filter)?;
    write("events/sched/sched_switch/enable", "1")?;
    write("trace", "")?;
    write("tracing_on", "1")
}

/// Ends it and returns the kernel's text, for [`read`].
///
/// # Errors
/// If the trace cannot be read.
pub fn stop() -> Result<String, String> {
    write("tracing_on", "0")?;
    write("events/sched/sched_switch/enable", "0")?;
    let path = format!("{ROOT}/trace");
    fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
}

fn write(file: &str, text: &str) -> Result<(), String> {
    let path = format!("{ROOT}/{file}");
    fs::write(&path, text).map_err(|error| format!("{path}: {error}"))
}

/// The switches of a trace in the kernel's text form, by time. Other events are left out.
///
/// # Errors
/// A line that should be a switch and cannot be read, or events that were overwritten.
pub fn read(text: &str) -> Result<Vec<Switch>, String> {
    let mut switches = Vec::new();
    for line in text.lines() {
        if let Some(lost) = line.strip_prefix("# entries-in-buffer/entries-written: ") {
            let counts = lost.split_whitespace().next().unwrap_or_default();
            match counts.split_once('/') {
                Some((kept, written)) if kept == written => {}
                _ => return Err(format!("events were lost: {line}")),
            }
        }
        match parse(line).map_err(|error| error.to_string())? {
            Line::Lost { .. } => return Err(format!("events were lost: {line}")),
            Line::Event(TraceLine {
                at,
                cpu,
                event: TraceEvent::Switch { from, out, to },
                ..
            }) => switches.push(Switch {
                at_ns: at.as_ns(),
                cpu,
                from,
                out,
                to,
            }),
            Line::Event(_) | Line::Other => {}
        }
    }
    switches.sort_by_key(|switch| switch.at_ns);
    Ok(switches)
}

/// A trace written by hand, with what names may look like.
const SAMPLE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 3/3   #P:4
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       [002] d..2.    12.000250: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=T 1 ==> x next_pid=71 next_prio=-1
       T 1 [9] x-71      [001] d.h2.    12.000001: sched_wakeup: comm=T2 pid=72 prio=-1 target_cpu=001
       T 1 [9] x-71      [002] d..2.    11.999999: sched_switch: prev_comm=T 1 ==> x prev_pid=71 prev_prio=-1 prev_state=S ==> next_comm=a next_pid=5 next_pid=6 next_prio=120
";

/// The sample is read as it is meant, and what is broken is refused.
pub fn trace_of_switches_is_read() -> Result<(), String> {
    let expected = [
        Switch {
            at_ns: 11_999_999_000,
            cpu: 2,
            from: 71,
            out: SwitchedOut::Asleep,
            to: 6,
        },
        Switch {
            at_ns: 12_000_250_000,
            cpu: 2,
            from: 0,
            out: SwitchedOut::Ready,
            to: 71,
        },
    ];
    let found = read(SAMPLE)?;
    if found != expected {
        return Err(format!("{found:?}"));
    }
    for (whole, broken) in [
        ("3/3", "3/4"),
        ("prev_pid=0", "prev_pid="),
        ("[002]", "002"),
        ("12.000250", "12"),
    ] {
        if let Ok(found) = read(&SAMPLE.replace(whole, broken)) {
            return Err(format!("{broken} is taken for {found:?}"));
        }
    }
    Ok(())
}
