//! The beginning of a trace: header, tracks and names; and the rare packets.

use shiftwork_model::{Instant, RecordKind, TaskSet};

use super::Provenance;
use super::packets::{Name, Note, SEQUENCE, write_packet};
use super::proto_buffer::ProtoBuffer;
use super::records::VERSION;
use super::schema::{
    DebugAnnotation, Header, INSTANT, InternedData, InternedName, ORDER_EXPLICIT, STATE_CLEARED,
    STATE_NEEDED, TracePacket, TrackDescriptor, TrackEvent,
};

/// The numbers of the tracks: the run, the group of the CPUs, the group of the tasks, then one per
/// CPU, one per CPU for the times when it is away, one per task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracks {
    cpus: u64,
}

const RUN: u64 = 1;
const CPUS: u64 = 2;
const TASKS: u64 = 3;

impl Tracks {
    pub const fn of(set: &TaskSet) -> Self {
        Self {
            cpus: set.platform.cpus as u64,
        }
    }

    #[inline]
    pub const fn cpu(self, index: usize) -> u64 {
        TASKS + 1 + index as u64
    }

    pub const fn away(self, index: usize) -> u64 {
        self.cpu(index) + self.cpus
    }

    pub const fn task(self, index: usize) -> u64 {
        self.cpu(index) + 2 * self.cpus
    }
}

/// Writes all packets before the first record.
pub(super) fn write(
    buffer: &mut ProtoBuffer,
    set: &TaskSet,
    provenance: &Provenance,
    tracks: Tracks,
) {
    write_packet(buffer, &header(set, provenance));
    write_packet(buffer, &names(set));
    let title = format!("{} under {}", set.name, provenance.policy);
    write_track(buffer, RUN, None, 0, &title);
    write_track(buffer, CPUS, None, 1, "CPUs");
    write_track(buffer, TASKS, None, 2, "Tasks");
    for index in 0..set.platform.cpus {
        let rank = 2 * index;
        write_track(
            buffer,
            tracks.cpu(index),
            Some(CPUS),
            rank,
            &format!("CPU {index}"),
        );
        // Perfetto does not show tracks without events.
        let name = format!("CPU {index} away");
        write_track(buffer, tracks.away(index), Some(CPUS), rank + 1, &name);
    }
    for (index, task) in set.tasks.iter().enumerate() {
        write_track(buffer, tracks.task(index), Some(TASKS), index, &task.name);
    }
    write_packet(buffer, &origin(set, provenance));
}

fn header(set: &TaskSet, provenance: &Provenance) -> TracePacket {
    let header = Header {
        version: VERSION,
        tool: provenance.tool.clone(),
        policy: provenance.policy.clone(),
        seed: provenance.seed,
        horizon_ns: provenance.horizon.as_ns(),
        task_set: provenance.task_set.clone(),
        name: set.name.clone(),
        cpus: u32::try_from(set.platform.cpus).expect("there are at most CPUS_MAX CPUs"),
        tasks: set.tasks.iter().map(|task| task.name.clone()).collect(),
    };
    TracePacket {
        header: Some(header),
        ..TracePacket::default()
    }
}

fn names(set: &TaskSet) -> TracePacket {
    let interned = |iid: u64, name: &str| InternedName {
        iid: Some(iid),
        name: Some(name.to_owned()),
    };
    let fixed = Name::ALL
        .iter()
        .map(|&(name, text)| interned(name as u64, text));
    let tasks = set
        .tasks
        .iter()
        .zip(Name::TASKS..)
        .map(|(task, iid)| interned(iid, &task.name));
    let notes = Note::ALL
        .iter()
        .map(|&(note, text)| interned(note as u64, text));
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(STATE_CLEARED | STATE_NEEDED),
        interned_data: Some(InternedData {
            event_names: fixed.chain(tasks).collect(),
            debug_annotation_names: notes.collect(),
        }),
        ..TracePacket::default()
    }
}

fn write_track(buffer: &mut ProtoBuffer, uuid: u64, parent: Option<u64>, rank: usize, name: &str) {
    let track = TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name.to_owned()),
        parent_uuid: parent,
        child_ordering: parent.is_none().then_some(ORDER_EXPLICIT),
        sibling_order_rank: i32::try_from(rank).ok(),
    };
    let packet = TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(track),
        ..TracePacket::default()
    };
    write_packet(buffer, &packet);
}

/// The provenance for users of Perfetto: an instant at the start of the run.
fn origin(set: &TaskSet, provenance: &Provenance) -> TracePacket {
    let seed = provenance
        .seed
        .map_or("none".into(), |seed| seed.to_string());
    let horizon = provenance.horizon.late_since(Instant::ZERO);
    let annotations = [
        ("tool", provenance.tool.clone()),
        ("policy", provenance.policy.clone()),
        ("seed", seed),
        ("horizon", horizon.in_whole_units().to_string()),
        ("name", set.name.clone()),
        ("task_set", provenance.task_set.clone()),
    ];
    let mut packet = instant(RUN, 0, "run".into());
    if let Some(event) = &mut packet.track_event {
        event.debug_annotations = annotations
            .into_iter()
            .map(|(name, value)| DebugAnnotation {
                name: Some(name.into()),
                string_value: Some(value),
                ..DebugAnnotation::default()
            })
            .collect();
    }
    packet
}

fn instant(track: u64, at_ns: u64, name: String) -> TracePacket {
    TracePacket {
        timestamp: Some(at_ns),
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(STATE_NEEDED),
        track_event: Some(TrackEvent {
            kind: Some(INSTANT),
            track_uuid: Some(track),
            name: Some(name),
            ..TrackEvent::default()
        }),
        ..TracePacket::default()
    }
}

/// Appends an instant for a change of parameters, with its text; nothing for other records.
pub(super) fn write_change(
    buffer: &mut ProtoBuffer,
    tracks: Tracks,
    at_ns: u64,
    kind: &RecordKind,
) {
    let (track, text) = match kind {
        RecordKind::AffinitySet { task, affinity } => {
            (tracks.task(task.index()), format!("affinity {affinity}"))
        }
        RecordKind::PrioritySet { task, priority } => {
            (tracks.task(task.index()), format!("priority {priority}"))
        }
        RecordKind::AttributesSet {
            task,
            cost,
            period,
            deadline,
        } => (
            tracks.task(task.index()),
            format!("cost {cost}, period {period}, deadline {deadline}"),
        ),
        RecordKind::Demoted { task, asked } => (
            tracks.task(task.index()),
            format!("demoted: asked for CPUs {asked}"),
        ),
        RecordKind::Refused { action, reason } => {
            (RUN, format!("action {action} refused: {reason}"))
        }
        _ => return,
    };
    write_packet(buffer, &instant(track, at_ns, text));
}
