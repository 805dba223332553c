//! Switch: from one job to another on the same CPU.
//!
//! Two threads, or two processes, hand a byte to and fro through pipes. Each turn is one system call that
//! writes, one that reads, and a switch to the other. What the calls take is measured beside it, by a thread
//! that reads what it has just written, and taken off. What is left is waking up, choosing the next and
//! switching, of which the kernel's choosing is the part that a policy would replace.
//!
//! The method of L. McVoy, C. Staelin, "lmbench: Portable Tools for Performance Analysis", USENIX 1996.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::process::{Command, Stdio};

use shiftwork_live::probe::{Probe, monotonic_ns};
use shiftwork_model::CpuId;

use super::{Batch, Measurement, Slice};
use crate::place::{Place, Rank, Urgency, join, note, samples};
use crate::quantity::{Kind, Quantity};

/// What comes back what it is given: any program that copies its input to its output as it comes.
const ECHO: &str = "cat";

/// So many at least, also if a slice is over before it has begun.
const TURNS_MIN: usize = 100;

/// Turns by which caches and branches get used to it.
const WARM: usize = 50;

/// Between threads of one process, with one address space.
pub(super) struct Threads {
    pub(super) cpu: CpuId,
    pub(super) rank: Rank,
}

/// Between processes.
pub(super) struct Processes {
    pub(super) cpu: CpuId,
    pub(super) rank: Rank,
}

fn place(cpu: CpuId, rank: Rank) -> Place {
    Place {
        cpu,
        rank,
        urgency: Urgency::High,
    }
}

impl Measurement for Threads {
    fn name(&self) -> &'static str {
        "switch between threads"
    }

    fn share(&self) -> u64 {
        2
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let place = place(self.cpu, self.rank);
        let (mut heard, out) = pipe().map_err(|error| no_pipe(&error))?;
        let (back, mut said) = pipe().map_err(|error| no_pipe(&error))?;
        let until_ns = slice.until_ns;
        let (all, lost) = std::thread::scope(|scope| {
            let echo = place.spawn(scope, move || {
                let mut byte = [0];
                while heard.read_exact(&mut byte).is_ok() && said.write_all(&byte).is_ok() {}
            });
            let measured = samples(place, move |probe| turns(out, back, until_ns, probe));
            join(echo)?;
            measured
        })?;
        into.push((Quantity::of(Kind::SwitchThreads), all, lost));
        Ok(())
    }
}

impl Measurement for Processes {
    fn name(&self) -> &'static str {
        "switch between processes"
    }

    fn share(&self) -> u64 {
        2
    }

    fn take(&mut self, slice: &Slice, into: &mut Vec<Batch>) -> Result<(), String> {
        let place = place(self.cpu, self.rank);
        let until_ns = slice.until_ns;
        let (heard, out) = pipe().map_err(|error| no_pipe(&error))?;
        let (back, said) = pipe().map_err(|error| no_pipe(&error))?;
        // A process is born on the CPU and in the class of the thread that starts it.
        let mut child = std::thread::scope(|scope| {
            join(place.spawn(scope, move || {
                let mut command = Command::new(ECHO);
                command.stdin(heard).stdout(said).stderr(Stdio::null());
                command.spawn()
            }))
        })?
        .map_err(|error| {
            format!("`{ECHO}` cannot be started ({error}); it is part of coreutils and of busybox")
        })?;
        let measured = samples(place, move |probe| turns(out, back, until_ns, probe));
        // It ends with its input.
        let _ = child.wait();
        let (all, lost) = measured?;
        into.push((Quantity::of(Kind::SwitchProcesses), all, lost));
        Ok(())
    }
}

fn no_pipe(error: &std::io::Error) -> String {
    format!("there is no pipe to be had: {error}")
}

/// Sends a byte to the thread at the other end and waits for its reply; notes half of each round
/// trip without the system calls.
fn turns(mut out: PipeWriter, mut back: PipeReader, until_ns: u64, probe: &Probe) {
    let mut byte = [7];
    let mut turn = || -> Option<u64> {
        let begin_ns = monotonic_ns();
        out.write_all(&byte).ok()?;
        back.read_exact(&mut byte).ok()?;
        Some(monotonic_ns() - begin_ns)
    };
    if (0..WARM).any(|_| turn().is_none()) {
        return;
    }
    let Some(calls_ns) = calls_ns() else { return };
    let mut count = 0;
    while count < TURNS_MIN || monotonic_ns() < until_ns {
        let Some(turn_ns) = turn() else { return };
        note(probe, turn_ns as i64 / 2 - calls_ns);
        count += 1;
    }
}

/// What a thread takes to write a byte and to read it again; the median of many.
fn calls_ns() -> Option<i64> {
    let (mut back, mut out) = pipe().ok()?;
    let mut byte = [7];
    let mut all = [0; 501];
    for span in &mut all {
        let begin_ns = monotonic_ns();
        out.write_all(&byte).ok()?;
        back.read_exact(&mut byte).ok()?;
        *span = (monotonic_ns() - begin_ns) as i64;
    }
    all.sort_unstable();
    Some(all[all.len() / 2])
}
