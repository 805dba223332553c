//! From the text of the kernel's trace to a recording.

use std::collections::BTreeMap;

use shiftwork_model::Instant;

use crate::event::{Event, EventKind, Recording, Thread, Waker};
use crate::trace_line::{Line, TraceEvent, TraceLine, parse};

/// Takes the text of the trace, piece by piece.
pub(crate) struct Collector {
    from: Instant,
    /// The end of the last piece, without the end of its line.
    rest: Vec<u8>,
    events: Vec<Event>,
    /// When the latest event of each CPU was, and since when events of it are lost.
    cpus: BTreeMap<usize, (Instant, Option<Instant>)>,
    gaps: Vec<(Instant, Instant)>,
    unreadable: u64,
}

impl Collector {
    /// For a trace that begins now.
    pub(crate) fn new(from: Instant) -> Self {
        Self {
            from,
            rest: Vec::new(),
            events: Vec::new(),
            cpus: BTreeMap::new(),
            gaps: Vec::new(),
            unreadable: 0,
        }
    }

    /// When the trace began.
    pub(crate) fn from(&self) -> Instant {
        self.from
    }

    /// Takes the next piece. Events that concern none of the process' own threads are left out.
    pub(crate) fn take(&mut self, bytes: &[u8], is_own: impl Fn(u32) -> bool) {
        self.rest.extend(bytes);
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else {
            return;
        };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        for line in String::from_utf8_lossy(&lines).lines() {
            match parse(line) {
                Ok(Line::Event(event)) => self.take_event(event, &is_own),
                Ok(Line::Lost { cpu }) => {
                    let (last, lost) = self.cpus.entry(cpu).or_insert((self.from, None));
                    lost.get_or_insert(*last);
                }
                Ok(Line::Other) => {}
                Err(_) => self.unreadable += 1,
            }
        }
    }

    fn take_event(&mut self, line: TraceLine, is_own: &impl Fn(u32) -> bool) {
        let before = self.cpus.insert(line.cpu, (line.at, None));
        if let Some((_, Some(since))) = before {
            self.gaps.push((since, line.at));
        }
        let kind = match line.event {
            TraceEvent::Switch { from, out, to } if is_own(from) || is_own(to) => {
                EventKind::Switch { from, out, to }
            }
            TraceEvent::Waking { thread } if is_own(thread) => EventKind::Wakeup {
                thread,
                // A CPU that is idle wakes threads in soft interrupts only.
                by: match line.in_interrupt || line.thread == 0 {
                    true => Waker::Interrupt,
                    false => Waker::Thread(line.thread),
                },
            },
            TraceEvent::Switch { .. } | TraceEvent::Waking { .. } => return,
        };
        self.events.push(Event { at: line.at, kind });
    }

    /// The recording until now.
    pub(crate) fn finish(
        mut self,
        process: u32,
        threads: BTreeMap<u32, Thread>,
        until: Instant,
    ) -> Recording {
        for (last, lost) in self.cpus.values() {
            if lost.is_some() {
                self.gaps.push((*last, until));
            }
        }
        // Those of different CPUs may have been read one after the other.
        self.events.sort_by_key(|event| event.at);
        Recording {
            process,
            threads,
            from: self.from,
            until,
            events: self.events,
            gaps: self.gaps,
            unreadable: self.unreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::SwitchedOut;

    const TRACE: &str = "\
 a-7   [000] d..2.  1.000010: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=9 next_prio=120
 x-9   [000] d..3.  1.000030: sched_waking: comm=a pid=7 prio=120 target_cpu=001
 x-9   [000] d.h3.  1.000040: sched_waking: comm=a pid=7 prio=120 target_cpu=001
 <idle>-0   [001] d.s3.  1.000020: sched_waking: comm=a pid=7 prio=120 target_cpu=001
 x-9   [000] d..3.  1.000050: sched_waking: comm=c pid=8 prio=120 target_cpu=001
 x-9   [000] d..3.  1.000060: sched_switch: prev_comm=x
CPU:1 [LOST 5 EVENTS]
 y-8   [001] d..3.  1.000080: sched_switch: prev_comm=y prev_pid=8 prev_prio=120 prev_state=R ==> next_comm=z next_pid=6 next_prio=120
CPU:0 [LOST 5 EVENTS]
";

    fn at(us: u64) -> Instant {
        Instant::from_ns(1_000_000_000 + us * 1_000)
    }

    #[test]
    fn recording_has_the_events_of_the_process_and_its_gaps() {
        let kinds = [
            (
                10,
                EventKind::Switch {
                    from: 7,
                    out: SwitchedOut::Asleep,
                    to: 9,
                },
            ),
            (
                20,
                EventKind::Wakeup {
                    thread: 7,
                    by: Waker::Interrupt,
                },
            ),
            (
                30,
                EventKind::Wakeup {
                    thread: 7,
                    by: Waker::Thread(9),
                },
            ),
            (
                40,
                EventKind::Wakeup {
                    thread: 7,
                    by: Waker::Interrupt,
                },
            ),
        ];
        let expected = kinds.map(|(us, kind)| Event { at: at(us), kind });
        // In pieces of any length.
        for length in [1, 7, 100, TRACE.len()] {
            let mut collector = Collector::new(at(0));
            for piece in TRACE.as_bytes().chunks(length) {
                collector.take(piece, |id| id == 7);
            }
            let found = collector.finish(7, BTreeMap::new(), at(100));
            assert_eq!(found.events, expected);
            // CPU 1 has lost events after its last one at 20, and CPU 0 after that at 50.
            assert_eq!(found.gaps, [(at(20), at(80)), (at(50), at(100))]);
            assert_eq!(found.unreadable, 1);
        }
    }
}
