//! Switches in the form of the Linux kernel's `sched_switch` events.

use shiftwork_model::{Instant, JobId};

use super::packets::{SEQUENCE, write_packet};
use super::proto_buffer::ProtoBuffer;
use super::schema::{FtraceEvent, FtraceEventBundle, SchedSwitch, TracePacket};
use crate::running::Change;

/// The kernel's states of preempted and of sleeping threads.
const RUNNABLE: i64 = 0;
const SLEEPING: i64 = 1;

/// In the kernel's events real-time priorities are below 100, and the idle task has 120.
const REAL_TIME: i32 = 50;
const IDLE: i32 = 120;

/// Maximum length of a thread's name in the kernel, in bytes.
const COMM_BYTES_MAX: usize = 15;

/// Appends a packet with one event.
pub(super) fn write(
    buffer: &mut ProtoBuffer,
    at: Instant,
    names: &[String],
    change: Change,
    still_ready: bool,
) {
    let cpu = change.cpu.index();
    let (prev_comm, prev_pid, prev_prio) = thread(names, cpu, change.before);
    let (next_comm, next_pid, next_prio) = thread(names, cpu, change.after);
    let runs_on = still_ready || change.before.is_none();
    let event = FtraceEvent {
        timestamp: Some(at.as_ns()),
        pid: Some(prev_pid.unsigned_abs()),
        sched_switch: Some(SchedSwitch {
            prev_comm: Some(prev_comm),
            prev_pid: Some(prev_pid),
            prev_prio: Some(prev_prio),
            prev_state: Some(if runs_on { RUNNABLE } else { SLEEPING }),
            next_comm: Some(next_comm),
            next_pid: Some(next_pid),
            next_prio: Some(next_prio),
        }),
    };
    let bundle = FtraceEventBundle {
        cpu: u32::try_from(cpu).ok(),
        event: vec![event],
    };
    let packet = TracePacket {
        ftrace_events: Some(bundle),
        trusted_packet_sequence_id: Some(SEQUENCE),
        ..TracePacket::default()
    };
    write_packet(buffer, &packet);
}

/// Name, number and priority of the thread that represents a job's task, or an idle CPU.
fn thread(names: &[String], cpu: usize, job: Option<JobId>) -> (String, i32, i32) {
    let Some(index) = job.map(|job| job.task.index()) else {
        return (format!("swapper/{cpu}"), 0, IDLE);
    };
    let name = names.get(index).map_or("", String::as_str);
    let end = (0..=COMM_BYTES_MAX.min(name.len()))
        .rev()
        .find(|&end| name.is_char_boundary(end));
    let pid = i32::try_from(index + 1).unwrap_or(i32::MAX);
    (name[..end.unwrap_or(0)].to_owned(), pid, REAL_TIME)
}
