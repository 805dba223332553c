//! Tests of the events in traces, and of reading traces back.

use prost::Message;

use shiftwork_model::{Happening, NotReadyReason, RandomStream, Recorder, Span, TaskId, TaskSet};

use super::schema::{INSTANT, SLICE_BEGIN, SLICE_END, TracePacket, TrackEvent};
use super::*;
use crate::testing::{Script, at, cpu, noise, set};

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
        .record(Happening::Released {
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
        .record(Happening::Left {
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
        .record(Happening::CpuTaken { cpu: cpu(1) })
        .at(2)
        .record(Happening::CpuReturned { cpu: cpu(1) });
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
        .record(Happening::CpuOffline { cpu: cpu(1) })
        .record(Happening::BackgroundStarted { cpu: cpu(0) })
        .record(Happening::AffinitySet { task, affinity })
        .at(2)
        .record(Happening::CpuOnline { cpu: cpu(1) })
        .record(Happening::AttributesSet {
            task,
            cost: spans[0],
            period: spans[1],
            deadline: spans[2],
        })
        .record(Happening::Refused {
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

#[test]
fn header_and_records_are_read_back() {
    for seed in 1..=60 {
        let mut random = RandomStream::new(seed, 0, 0);
        let (tasks, cpus) = (1 + random.below(40), 1 + random.below(200));
        let names: Vec<String> = (0..tasks).map(|index| format!("task {index}")).collect();
        let tasks_of: Vec<_> = names.iter().map(|name| (name.as_str(), "0")).collect();
        let set = set(cpus as usize, &tasks_of);
        // Some are long enough for several stretches.
        let count = if seed % 20 == 0 {
            10_000
        } else {
            random.below(300)
        };
        let records = noise(&mut random, tasks, cpus, count);
        let horizon = records.last().map_or(0, |record| record.at.as_ns());
        let mut writer = Writer::new(&set, &provenance(99), Vec::new());
        records
            .iter()
            .for_each(|record| writer.record(record.at, &record.what));
        let file = read(&writer.finish(at(horizon)).unwrap()).unwrap();
        let expected = TraceFile {
            provenance: provenance(99),
            name: "script".into(),
            cpus: cpus as usize,
            tasks: names,
            ended: Some(at(horizon)),
            records,
        };
        assert!(file == expected, "seed {seed}");
    }
}

#[test]
fn corrupted_trace_never_panics_the_reader() {
    let set = set(3, &[("a", "0"), ("b", "0-2")]);
    let mut outcomes = [0; 2];
    for seed in 1..=400 {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut writer = Writer::new(&set, &provenance(99), Vec::new());
        let records = noise(&mut random, 2, 3, 20);
        records
            .iter()
            .for_each(|record| writer.record(record.at, &record.what));
        let bytes = writer.finish(at(99)).unwrap();
        for _ in 0..20 {
            let mut broken = bytes.clone();
            for _ in 0..=random.below(3) {
                let place = random.below(broken.len() as u64) as usize;
                match random.below(4) {
                    0 => broken[place] ^= 1 << random.below(8),
                    1 => broken[place] = random.bits() as u8,
                    2 => drop(broken.remove(place)),
                    _ => broken.truncate(place.max(1)),
                }
            }
            outcomes[usize::from(read(&broken).is_ok())] += 1;
        }
    }
    // Both results occur: much of a trace is for Perfetto only, and is skipped.
    assert!(outcomes.iter().all(|&count| count > 100), "{outcomes:?}");
}

#[test]
fn random_bytes_are_refused() {
    for seed in 1..=2_000 {
        let mut random = RandomStream::new(seed, 0, 0);
        let length = random.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| random.bits() as u8).collect();
        assert!(read(&bytes).is_err(), "seed {seed}");
    }
}

#[test]
fn every_defect_has_its_message() {
    let (set, script) = shift_script();
    let bytes = write(&set, &script, 30);
    let header = |change: fn(&mut schema::Header)| {
        let mut packet = Trace::decode(&bytes[..]).unwrap().packet.remove(0);
        change(packet.header.as_mut().unwrap());
        Trace {
            packet: vec![packet],
        }
        .encode_to_vec()
    };
    let packets = Trace::decode(&bytes[..]).unwrap().packet;
    let first = 2 + packets[0].encoded_len();
    let last = bytes.len() - 2 - packets[packets.len() - 1].encoded_len();
    let cases = [
        (
            b"hello".to_vec(),
            "byte 0: this is no Perfetto trace; a file written by `simulate --trace` or `run` \
             would be accepted"
                .into(),
        ),
        (
            bytes[..bytes.len() - 1].to_vec(),
            format!("byte {last}: the file ends in the midst of this packet; it was cut off"),
        ),
        (
            Vec::new(),
            "the trace has no shiftwork header before its records; only traces written by \
             `simulate --trace` or `run` can be read back"
                .into(),
        ),
        (
            [&bytes[..], &bytes[..]].concat(),
            format!(
                "byte {}: a second header; traces that were joined cannot be read back, give them \
                 one by one",
                bytes.len()
            ),
        ),
        (
            header(|header| header.version = 9),
            "the records have version 9, and this program reads up to version 2; use a newer \
             program"
                .into(),
        ),
        (
            header(|header| header.cpus = 1025),
            "the header names 1025 CPUs, and at most 1024 are possible".into(),
        ),
        (
            [
                header(|header| header.tasks.truncate(1)),
                bytes[first..].to_vec(),
            ]
            .concat(),
            "record 2 is broken: it names a task that the header does not".into(),
        ),
    ];
    for (bytes, message) in cases {
        assert_eq!(read(&bytes).unwrap_err().to_string(), message);
    }
}

#[test]
fn writer_that_is_never_finished_has_flushed_earlier_records() {
    let (set, script) = shift_script();
    let mut bytes = Vec::new();
    let writer = Writer::new(&set, &provenance(99), &mut bytes);
    let mut writer = writer.with_patience(Span::from_ns(1));
    script.play(&mut writer);
    drop(writer);
    let file = read(&bytes).unwrap();
    let last = script.records.last().unwrap().at;
    let mut before = script.records;
    before.retain(|record| record.at < last);
    assert!(!before.is_empty());
    assert_eq!((file.records, file.ended), (before, None));
}

#[test]
fn write_error_is_reported_by_finish() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (set, script) = shift_script();
    let mut writer = Writer::new(&set, &provenance(30), Full);
    script.play(&mut writer);
    let error = writer.finish(at(30)).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}
