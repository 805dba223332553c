//! The used part of Perfetto's schema, and shiftwork's own fields in it.
//!
//! Tags are those of `perfetto_trace.proto`. `packets.rs` writes the frequent packets without these types; the
//! other packets, the reader and the tests use them.

use prost::Message;

use super::RecorderMetadata;

/// A slice begins.
pub(super) const SLICE_BEGIN: i32 = 1;
/// The slice that began last on the track ends.
pub(super) const SLICE_END: i32 = 2;
/// An event without duration.
pub(super) const INSTANT: i32 = 3;

/// Names defined so far are discarded; the names in this packet replace them.
pub(super) const STATE_CLEARED: u32 = 1;
/// The packet uses the names.
pub(super) const STATE_NEEDED: u32 = 2;

/// Child tracks are ordered by their rank.
pub(super) const ORDER_EXPLICIT: i32 = 3;

/// Perfetto's `TracePacket`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(message, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    #[prost(message, tag = "21336")]
    pub header: Option<Header>,
    #[prost(message, tag = "21337")]
    pub end: Option<End>,
    #[prost(message, tag = "21338")]
    pub recorder: Option<RecorderMetadata>,
}

/// The fields of a packet that the reader uses.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OwnPacket {
    #[prost(bytes = "vec", optional, tag = "21335")]
    pub records: Option<Vec<u8>>,
    #[prost(message, tag = "21336")]
    pub header: Option<Header>,
    #[prost(message, tag = "21337")]
    pub end: Option<End>,
    #[prost(message, tag = "21338")]
    pub recorder: Option<RecorderMetadata>,
}

/// Tag and wire type of [`OwnPacket::records`], as a varint.
pub(super) const RECORDS_KEY: u64 = 21335 << 3 | 2;

/// A field of shiftwork: the provenance of the run.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Header {
    #[prost(uint32, tag = "1")]
    pub version: u32,
    #[prost(string, tag = "2")]
    pub tool: String,
    #[prost(string, tag = "3")]
    pub policy: String,
    #[prost(uint64, optional, tag = "4")]
    pub seed: Option<u64>,
    #[prost(uint64, tag = "5")]
    pub horizon_ns: u64,
    #[prost(string, tag = "6")]
    pub task_set: String,
    #[prost(string, tag = "7")]
    pub name: String,
    #[prost(uint32, tag = "8")]
    pub cpus: u32,
    #[prost(string, repeated, tag = "9")]
    pub tasks: Vec<String>,
}

/// A field of shiftwork: the horizon that the run reached.
#[derive(Clone, PartialEq, Message)]
pub(super) struct End {
    #[prost(uint64, tag = "1")]
    pub horizon_ns: u64,
}

/// Perfetto's `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// Perfetto's `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub kind: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// Perfetto's `DebugAnnotation`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}

/// Perfetto's `InternedData`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
}

/// Perfetto's `EventName` and `DebugAnnotationName`, which have the same fields.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedName {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// Perfetto's `FtraceEventBundle`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
}

/// Perfetto's `FtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(message, tag = "4")]
    pub sched_switch: Option<SchedSwitch>,
}

/// Perfetto's `SchedSwitchFtraceEvent`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SchedSwitch {
    #[prost(string, optional, tag = "1")]
    pub prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}
