//! The frequent packets, encoded without prost.

use prost::Message;

use super::proto_buffer::ProtoBuffer;
use super::schema::{RECORDS_KEY, STATE_NEEDED, TracePacket};

/// The one sequence of packets that a trace consists of.
pub(super) const SEQUENCE: u32 = 1;

/// Names in every trace, by the number by which packets refer to them. The names of tasks follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Name {
    Release = 1,
    Deadline,
    Missed,
    Throttled,
    Suspended,
    Offline,
    Background,
    BudgetSpent,
    Replenished,
    Entered,
    Left,
    Taken,
    Blocked,
    Trigger,
    TriggerLost,
    Spinning,
}

impl Name {
    /// All of them, with their texts.
    pub const ALL: [(Self, &'static str); 16] = [
        (Self::Release, "release"),
        (Self::Deadline, "deadline"),
        (Self::Missed, "deadline missed!"),
        (Self::Throttled, "throttled"),
        (Self::Suspended, "suspended"),
        (Self::Offline, "offline"),
        (Self::Background, "background"),
        (Self::BudgetSpent, "budget spent"),
        (Self::Replenished, "replenished"),
        (Self::Entered, "entered"),
        (Self::Left, "left"),
        (Self::Taken, "taken"),
        (Self::Blocked, "waits for mutex"),
        (Self::Trigger, "trigger"),
        (Self::TriggerLost, "trigger lost"),
        (Self::Spinning, "spins for mutex"),
    ];
    /// The number of the first task's name.
    pub const TASKS: u64 = 24;
}

/// The annotations of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Note {
    Job = 1,
    Deadline,
    Response,
    Tardiness,
}

impl Note {
    /// All of them, with their texts.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Job, "job"),
        (Self::Deadline, "deadline_ns"),
        (Self::Response, "response_ns"),
        (Self::Tardiness, "tardiness_ns"),
    ];
}

/// A `TrackEvent` packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub at_ns: u64,
    pub kind: i32,
    pub track: u64,
    /// 0 for none: the end of a slice needs no name.
    pub name: u64,
    pub job: Option<u64>,
    pub note: Option<(Note, u64)>,
    /// The flow that starts at this event.
    pub flow_out: Option<u64>,
    /// The flow that ends at this event.
    pub flow_in: Option<u64>,
}

/// Maximum size of an event packet.
const EVENT_BYTES_MAX: usize = 120;

impl Event {
    pub const fn new(at_ns: u64, kind: i32, track: u64, name: u64) -> Self {
        Self {
            at_ns,
            kind,
            track,
            name,
            job: None,
            note: None,
            flow_out: None,
            flow_in: None,
        }
    }

    /// Appends the packet. The bytes are keys (field number and wire type) of the fields in the
    /// comments; all lengths fit one byte.
    #[inline]
    pub fn write(&self, buffer: &mut ProtoBuffer) {
        buffer.ensure(EVENT_BYTES_MAX);
        buffer.byte(0x0a); // Trace.packet
        let packet = buffer.open();
        buffer.byte(0x40); // timestamp
        buffer.varint(self.at_ns);
        // trusted_packet_sequence_id, sequence_flags, track_event
        buffer.put([0x50, SEQUENCE as u8, 0x68, STATE_NEEDED as u8, 0x5a]);
        let event = buffer.open();
        buffer.put([0x48, self.kind as u8, 0x58]); // type, track_uuid
        buffer.varint(self.track);
        if self.name != 0 {
            buffer.byte(0x50); // name_iid
            buffer.varint(self.name);
        }
        if let Some(job) = self.job {
            write_note(buffer, Note::Job, job);
        }
        if let Some((note, value)) = self.note {
            write_note(buffer, note, value);
        }
        if let Some(flow) = self.flow_out {
            buffer.put([0xf9, 0x02]); // flow_ids
            buffer.put(flow.to_le_bytes());
        }
        if let Some(flow) = self.flow_in {
            buffer.put([0x81, 0x03]); // terminating_flow_ids
            buffer.put(flow.to_le_bytes());
        }
        buffer.close(event);
        buffer.close(packet);
    }
}

#[inline]
fn write_note(buffer: &mut ProtoBuffer, note: Note, value: u64) {
    buffer.byte(0x22); // debug_annotations
    let start = buffer.open();
    buffer.put([0x08, note as u8, 0x18]); // name_iid, uint_value
    buffer.varint(value);
    buffer.close(start);
}

/// Appends a packet of any kind.
pub(super) fn write_packet(buffer: &mut ProtoBuffer, packet: &TracePacket) {
    write_body(buffer, &packet.encode_to_vec());
}

/// Appends a packet that holds a stretch of records.
pub(super) fn write_records(buffer: &mut ProtoBuffer, stretch: &[u8]) {
    let mut key = Vec::new();
    prost::encoding::encode_varint(RECORDS_KEY, &mut key);
    prost::encoding::encode_varint(stretch.len() as u64, &mut key);
    buffer.ensure(32);
    buffer.byte(0x0a); // Trace.packet
    buffer.varint((key.len() + stretch.len()) as u64);
    buffer.slice(&key);
    buffer.slice(stretch);
}

fn write_body(buffer: &mut ProtoBuffer, body: &[u8]) {
    buffer.ensure(32);
    buffer.byte(0x0a); // Trace.packet
    buffer.varint(body.len() as u64);
    buffer.slice(body);
}
