//! Tests of the events in traces.

mod reading;

use prost::Message;

use shiftwork_model::{CpuSet, NotReadyReason, RecordKind, Recorder, Span, TaskId, TaskSet};

use super::schema::{INSTANT, SLICE_BEGIN, SLICE_END, TracePacket, TrackEvent};
use super::*;
use crate::testing::{Script, at, cpu, set};

/// Perfetto's `Trace`.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

fn provenance(horizon: u64) -> Provenance {
    Provenance {
        tool: "shiftwork 0".into(),
        policy: "g-edf".into(),
        seed: Some(7),
        horizon: at(horizon),
        task_set: "name = \"script\"\n".into(),
    }
}

fn write(set: &TaskSet, script: &Script, horizon: u64) -> Vec<u8> {
    let mut writer = Writer::new(set, &provenance(horizon), Vec::new());
    script.play(&mut writer);
    writer.finish(at(horizon)).unwrap()
}

/// Every event as a line: time, track, event and annotations.
fn shown(bytes: &[u8]) -> Vec<String> {
    let trace = Trace::decode(bytes).unwrap();
    let names = trace
        .packet
        .iter()
        .find_map(|packet| packet.interned_data.clone())
        .unwrap();
    let tracks: Vec<_> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.track_descriptor.clone())
        .collect();
    let track_name = |event: &TrackEvent| {
        let track = tracks
            .iter()
            .find(|track| track.uuid == event.track_uuid)
            .unwrap();
        track.name.clone().unwrap()
    };
    let interned = |iid| {
        names
            .event_names
            .iter()
            .find(|name| name.iid == iid)
            .unwrap()
    };
    let note_name = |iid| {
        let name = names
            .debug_annotation_names
            .iter()
            .find(|name| name.iid == iid)
            .unwrap();
        name.name.clone().unwrap()
    };
    let line = |packet: &TracePacket| {
        let event = packet.track_event.as_ref()?;
        let sign = match event.kind.unwrap() {
            SLICE_BEGIN => "[",
            SLICE_END => "]",
            INSTANT => "!",
            other => panic!("unknown kind of event: {other}"),
        };
        let name = match (event.name_iid, &event.name) {
            (Some(_), _) => interned(event.name_iid).name.clone().unwrap(),
            (None, name) => name.clone().unwrap_or_default(),
        };
        let mut line = format!(
            "{} {} {sign}{name}",
            packet.timestamp.unwrap(),
            track_name(event)
        );
        for note in event
            .debug_annotations
            .iter()
            .filter(|note| note.name_iid.is_some())
        {
            line += &format!(" {}={}", note_name(note.name_iid), note.uint_value.unwrap());
        }
        event
            .flow_ids
            .iter()
            .for_each(|flow| line += &format!(" ->{flow}"));
        event
            .terminating_flow_ids
            .iter()
            .for_each(|flow| line += &format!(" <-{flow}"));
        Some(line)
    };
    trace.packet.iter().filter_map(line).collect()
}

fn shown_on(track: &str, bytes: &[u8]) -> Vec<String> {
    let part = format!(" {track} ");
    shown(bytes)
        .into_iter()
        .filter(|line| line.contains(&part))
        .collect()
}

fn shift_script() -> (TaskSet, Script) {
    let script = Script::default()
        .at(0)
        .release(0, 1, 10)
        .release(1, 1, 20)
        .switch(0, Some((0, 1)))
        .switch(1, Some((1, 1)))
        .at(4)
        .complete(0, 1)
        .switch(0, Some((1, 1)))
        .switch(1, None)
        .at(25)
        .complete(1, 1)
        .switch(0, None);
    (set(2, &[("imu", "0-1"), ("gps", "0-1")]), script)
}

#[test]
fn cpu_track_has_running_jobs_and_flows_for_shifts() {
    let (set, script) = shift_script();
    let bytes = write(&set, &script, 30);
    assert_eq!(
        shown_on("CPU 0", &bytes),
        [
            "0 CPU 0 [imu job=1",
            "4 CPU 0 ]",
            "4 CPU 0 [gps job=1 <-1",
            "25 CPU 0 ]"
        ]
    );
    assert_eq!(
        shown_on("CPU 1", &bytes),
        ["0 CPU 1 [gps job=1", "4 CPU 1 ] ->1"]
    );
    let lines = shown(&bytes);
    let place = |line: &str| lines.iter().position(|other| other == line).unwrap();
    assert!(place("4 CPU 1 ] ->1") < place("4 CPU 0 [gps job=1 <-1"));
}

#[test]
fn task_track_has_jobs_from_release_to_completion_and_misses() {
    let (set, script) = shift_script();
    assert_eq!(
        shown_on("gps", &write(&set, &script, 30)),
        [
            "0 gps !release job=1",
            "20 gps !deadline job=1",
            "0 gps [gps job=1 deadline_ns=20",
            "25 gps !deadline missed! job=1 tardiness_ns=5",
            "25 gps ] response_ns=25",
        ]
    );
}

#[test]
fn slice_of_a_pending_job_begins_when_its_predecessor_ends() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 10)
        .at(10)
        .record(RecordKind::Released {
            job: crate::testing::job(0, 2),
            deadline: at(20),
        })
        .at(15)
        .complete(0, 1)
        .ready(0, 2, 20);
    let bytes = write(&set(1, &[("imu", "0")]), &script, 30);
    assert_eq!(
        shown_on("imu", &bytes),
        [
            "0 imu !release job=1",
            "10 imu !deadline job=1",
            "0 imu [imu job=1 deadline_ns=10",
            "10 imu !release job=2",
            "20 imu !deadline job=2",
            "15 imu !deadline missed! job=1 tardiness_ns=5",
            "15 imu ] response_ns=15",
            "15 imu [imu job=2 deadline_ns=20",
            "20 imu !deadline missed! job=2",
        ]
    );
}

#[test]
fn throttled_and_suspended_times_are_slices_within_the_job() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 90)
        .at(5)
        .not_ready(0, 1, NotReadyReason::Throttled)
        .at(9)
        .ready(0, 1, 90)
        .at(12)
        .not_ready(0, 1, NotReadyReason::Suspended)
        .at(14)
        .record(RecordKind::Left {
            task: TaskId::from_index(0),
        });
    let lines = shown_on("imu", &write(&set(1, &[("imu", "0")]), &script, 30));
    assert_eq!(
        lines[2..],
        [
            "5 imu [throttled",
            "9 imu ]",
            "12 imu [suspended",
            "14 imu !left",
            "14 imu ]",
            "14 imu ]"
        ]
    );
}

#[test]
fn cpu_taken_by_a_higher_class_is_a_slice() {
    let script = Script::default()
        .at(1)
        .record(RecordKind::CpuTaken { cpu: cpu(1) })
        .at(2)
        .record(RecordKind::CpuReturned { cpu: cpu(1) });
    let lines = shown(&write(&set(2, &[("imu", "0")]), &script, 30));
    assert_eq!(lines[1..], ["1 CPU 1 away [taken", "2 CPU 1 away ]"]);
}

#[test]
fn unavailable_cpus_and_changes_of_parameters_are_events() {
    let task = TaskId::from_index(0);
    let affinity = Box::new(shiftwork_model::Affinity::pinned(cpu(1)));
    let spans = [1, 2, 3].map(Span::from_us);
    let script = Script::default()
        .at(1)
        .record(RecordKind::CpuOffline { cpu: cpu(1) })
        .record(RecordKind::BackgroundStarted { cpu: cpu(0) })
        .record(RecordKind::AffinitySet { task, affinity })
        .at(2)
        .record(RecordKind::CpuOnline { cpu: cpu(1) })
        .record(RecordKind::AttributesSet {
            task,
            cost: spans[0],
            period: spans[1],
            deadline: spans[2],
        })
        .record(RecordKind::Demoted {
            task,
            asked: Box::new(CpuSet::first(3)),
        })
        .record(RecordKind::Refused {
            action: 3,
            reason: "no".into(),
        });
    let lines = shown(&write(&set(2, &[("imu", "0")]), &script, 30));
    assert_eq!(
        lines[1..],
        [
            "1 CPU 1 away [offline",
            "1 CPU 0 away [background",
            "1 imu !affinity 1",
            "2 CPU 1 away ]",
            "2 imu !cost 1us, period 2us, deadline 3us",
            "2 imu !demoted: asked for CPUs 0-2",
            "2 script under g-edf !action 3 refused: no",
        ]
    );
}

#[test]
fn activity_within_one_instant_is_no_event() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 50)
        .switch(0, Some((0, 1)))
        .switch(0, None)
        .at(30)
        .switch(0, Some((0, 1)));
    let bytes = write(&set(1, &[("imu", "0")]), &script, 30);
    assert!(shown_on("CPU 0", &bytes).is_empty());
}

#[test]
fn open_slice_ends_at_the_horizon() {
    let script = Script::default()
        .at(0)
        .release(0, 1, 50)
        .switch(0, Some((0, 1)));
    let bytes = write(&set(1, &[("imu", "0")]), &script, 30);
    assert_eq!(
        shown_on("CPU 0", &bytes),
        ["0 CPU 0 [imu job=1", "30 CPU 0 ]"]
    );
    assert!(
        shown_on("imu", &bytes)
            .iter()
            .all(|line| !line.contains("missed"))
    );
}

#[test]
fn sched_switches_are_added_on_request() {
    let (set, script) = shift_script();
    let mut writer = Writer::new(&set, &provenance(30), Vec::new()).with_sched_switch(&set);
    script.play(&mut writer);
    let trace = Trace::decode(&writer.finish(at(30)).unwrap()[..]).unwrap();
    let switches: Vec<_> = trace
        .packet
        .iter()
        .filter_map(|packet| packet.ftrace_events.as_ref())
        .map(|bundle| {
            let switch = bundle.event[0].sched_switch.as_ref().unwrap();
            let text = |comm: &Option<String>| comm.clone().unwrap();
            format!(
                "{} CPU {} {} {} -> {}",
                bundle.event[0].timestamp.unwrap(),
                bundle.cpu.unwrap(),
                text(&switch.prev_comm),
                ["R", "S"][switch.prev_state.unwrap() as usize],
                text(&switch.next_comm)
            )
        })
        .collect();
    assert_eq!(
        switches,
        [
            "0 CPU 0 swapper/0 R -> imu",
            "0 CPU 1 swapper/1 R -> gps",
            "4 CPU 0 imu S -> gps",
            "4 CPU 1 gps R -> swapper/1",
            "25 CPU 0 gps S -> swapper/0",
        ]
    );
}
