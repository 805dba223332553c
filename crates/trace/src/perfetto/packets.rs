//! The packets of which a trace has millions, encoded by hand.

use prost::Message;

use super::ink::Ink;
use super::schema::{FACTS_KEY, STATE_NEEDED, TracePacket};

/// The one sequence of packets that a trace consists of.
pub(super) const SEQUENCE: u32 = 1;

/// Names that every trace has, by the number under which packets refer to them. Tasks follow.
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
}

impl Name {
    /// All of them, with what people read.
    pub const ALL: [(Self, &'static str); 12] = [
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
    ];
    /// The number of the first task's name.
    pub const TASKS: u64 = 16;
}

/// What a packet may say beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Note {
    Job = 1,
    Deadline,
    Response,
    Tardiness,
}

impl Note {
    /// All of them, with what people read.
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
    /// 0 for none: a slice that ends needs no name.
    pub name: u64,
    pub job: Option<u64>,
    pub note: Option<(Note, u64)>,
    /// The flow that leaves the slice here.
    pub flow_out: Option<u64>,
    /// The flow that arrives with the slice.
    pub flow_in: Option<u64>,
}

/// No event packet takes more.
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
    pub fn write(&self, ink: &mut Ink) {
        ink.ensure(EVENT_BYTES_MAX);
        ink.byte(0x0a); // Trace.packet
        let packet = ink.open();
        ink.byte(0x40); // timestamp
        ink.varint(self.at_ns);
        // trusted_packet_sequence_id, sequence_flags, track_event
        ink.put([0x50, SEQUENCE as u8, 0x68, STATE_NEEDED as u8, 0x5a]);
        let event = ink.open();
        ink.put([0x48, self.kind as u8, 0x58]); // type, track_uuid
        ink.varint(self.track);
        if self.name != 0 {
            ink.byte(0x50); // name_iid
            ink.varint(self.name);
        }
        if let Some(job) = self.job {
            write_note(ink, Note::Job, job);
        }
        if let Some((note, value)) = self.note {
            write_note(ink, note, value);
        }
        if let Some(flow) = self.flow_out {
            ink.put([0xf9, 0x02]); // flow_ids
            ink.put(flow.to_le_bytes());
        }
        if let Some(flow) = self.flow_in {
            ink.put([0x81, 0x03]); // terminating_flow_ids
            ink.put(flow.to_le_bytes());
        }
        ink.close(event);
        ink.close(packet);
    }
}

#[inline]
fn write_note(ink: &mut Ink, note: Note, value: u64) {
    ink.byte(0x22); // debug_annotations
    let start = ink.open();
    ink.put([0x08, note as u8, 0x18]); // name_iid, uint_value
    ink.varint(value);
    ink.close(start);
}

/// Appends a packet of any kind.
pub(super) fn write_packet(ink: &mut Ink, packet: &TracePacket) {
    write_body(ink, &packet.encode_to_vec());
}

/// Appends a packet that holds a stretch of records.
pub(super) fn write_facts(ink: &mut Ink, stretch: &[u8]) {
    let mut key = Vec::new();
    prost::encoding::encode_varint(FACTS_KEY, &mut key);
    prost::encoding::encode_varint(stretch.len() as u64, &mut key);
    ink.ensure(32);
    ink.byte(0x0a); // Trace.packet
    ink.varint((key.len() + stretch.len()) as u64);
    ink.slice(&key);
    ink.slice(stretch);
}

fn write_body(ink: &mut Ink, body: &[u8]) {
    ink.ensure(32);
    ink.byte(0x0a); // Trace.packet
    ink.varint(body.len() as u64);
    ink.slice(body);
}
