"""Decodes a trace with Perfetto's own protobufs and asserts its events.

Usage: official_protobufs.py TRACE, where TRACE is the trace of official_protobufs.rs. Exits 77 if the
package is missing.
"""

import sys

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
except ImportError as missing:
    print(f"{missing}; python3 -m pip install -r crates/trace/tests/requirements.txt")
    sys.exit(77)

Event = schema.TrackEvent


def main(path):
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())

    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    interned = next(p for p in trace.packet if p.HasField("interned_data"))
    names = {name.iid: name.name for name in interned.interned_data.event_names}
    notes = {name.iid: name.name for name in interned.interned_data.debug_annotation_names}
    assert interned.sequence_flags & schema.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED

    # Every CPU and every task has a track of its own, in its group, in order.
    groups = {track.name: track for track in tracks.values() if not track.parent_uuid}
    assert set(groups) == {"example under g-edf", "CPUs", "Tasks"}, groups

    def tracks_of(group):
        assert groups[group].child_ordering == schema.TrackDescriptor.EXPLICIT
        members = [track for track in tracks.values() if track.parent_uuid == groups[group].uuid]
        return [track.name for track in sorted(members, key=lambda track: track.sibling_order_rank)]

    assert tracks_of("CPUs") == ["CPU 0", "CPU 0 away", "CPU 1", "CPU 1 away"], tracks_of("CPUs")
    assert tracks_of("Tasks") == ["imu", "gps"], tracks_of("Tasks")

    events = []
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        assert packet.HasField("timestamp")
        assert packet.trusted_packet_sequence_id == interned.trusted_packet_sequence_id
        event = packet.track_event
        if event.name_iid:
            assert packet.sequence_flags & schema.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        events.append((packet.timestamp, tracks[event.track_uuid].name, event))

    def shown(track):
        return [
            (
                at,
                Event.Type.Name(event.type)[len("TYPE_"):],
                names[event.name_iid] if event.name_iid else event.name,
                {notes[note.name_iid]: note.uint_value for note in event.debug_annotations},
                list(event.flow_ids),
                list(event.terminating_flow_ids),
            )
            for at, name, event in events
            if name == track
        ]

    # The running jobs; job 1 of gps is shifted from CPU 1 to CPU 0.
    assert shown("CPU 0") == [
        (0, "SLICE_BEGIN", "imu", {"job": 1}, [], []),
        (4000000, "SLICE_END", "", {}, [], []),
        (4000000, "SLICE_BEGIN", "gps", {"job": 1}, [], [1]),
        (6000000, "SLICE_END", "", {}, [], []),
        (8000000, "SLICE_BEGIN", "gps", {"job": 1}, [], []),
        (25000000, "SLICE_END", "", {}, [], []),
    ], shown("CPU 0")
    assert shown("CPU 1") == [
        (0, "SLICE_BEGIN", "gps", {"job": 1}, [], []),
        (4000000, "SLICE_END", "", {}, [1], []),
    ], shown("CPU 1")
    assert shown("CPU 1 away") == [
        (26000000, "SLICE_BEGIN", "offline", {}, [], []),
        (28000000, "SLICE_END", "", {}, [], []),
    ], shown("CPU 1 away")

    # Each job from release to completion, with its throttled time, and the miss.
    assert shown("gps") == [
        (0, "INSTANT", "release", {"job": 1}, [], []),
        (20000000, "INSTANT", "deadline", {"job": 1}, [], []),
        (0, "SLICE_BEGIN", "gps", {"job": 1, "deadline_ns": 20000000}, [], []),
        (6000000, "INSTANT", "budget spent", {}, [], []),
        (6000000, "SLICE_BEGIN", "throttled", {}, [], []),
        (8000000, "INSTANT", "replenished", {}, [], []),
        (8000000, "SLICE_END", "", {}, [], []),
        (25000000, "INSTANT", "deadline missed!", {"job": 1, "tardiness_ns": 5000000}, [], []),
        (25000000, "SLICE_END", "", {"response_ns": 25000000}, [], []),
    ], shown("gps")

    # The begins and ends of slices on each track match.
    for track in tracks.values():
        depth = 0
        for _, kind in shown_sorted(events, track.name):
            depth += {Event.TYPE_SLICE_BEGIN: 1, Event.TYPE_SLICE_END: -1}.get(kind, 0)
            assert depth >= 0, track.name
        assert depth == 0, track.name

    # The provenance of the run.
    run = next(event for _, name, event in events if name == "example under g-edf")
    origin = {note.name: note.string_value for note in run.debug_annotations}
    assert origin == {
        "tool": "shiftwork 0",
        "policy": "g-edf",
        "seed": "7",
        "horizon": "30ms",
        "name": "example",
        "task_set": 'name = "example"\n',
    }, origin

    # The same switches as sched_switch events.
    switches = [
        (event.timestamp, bundle.cpu, event.sched_switch.prev_comm, event.sched_switch.next_comm)
        for bundle in (p.ftrace_events for p in trace.packet if p.HasField("ftrace_events"))
        for event in bundle.event
    ]
    assert switches == [
        (0, 0, "swapper/0", "imu"),
        (0, 1, "swapper/1", "gps"),
        (4000000, 0, "imu", "gps"),
        (4000000, 1, "gps", "swapper/1"),
        (6000000, 0, "gps", "swapper/0"),
        (8000000, 0, "swapper/0", "gps"),
        (25000000, 0, "gps", "swapper/0"),
    ], switches
    print(f"{len(trace.packet)} packets, {len(events)} track events as expected")


def shown_sorted(events, track):
    return sorted(((at, event.type) for at, name, event in events if name == track), key=lambda pair: pair[0])


main(sys.argv[1])
