//! Reading traces back, and errors of reading and writing.

use shiftwork_model::{JobId, Priority, RandomStream, Record, Span, TaskId};

use super::*;
use crate::testing::noise;

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
            .for_each(|record| writer.record(record.at, &record.kind));
        let file = read(&writer.finish(at(horizon)).unwrap()).unwrap();
        let expected = TraceFile {
            recorder: None,
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

/// As one to which a mutex passes that boosts it.
#[test]
fn job_that_becomes_ready_before_all_others_is_read_back() {
    let set = set(1, &[("a", "0")]);
    let mut writer = Writer::new(&set, &provenance(99), Vec::new());
    let task = TaskId::from_index(0);
    let kind = RecordKind::Ready {
        job: JobId { task, number: 1 },
        deadline: at(9),
        priority: Priority::NON_PREEMPTIVE,
    };
    writer.record(at(1), &kind);
    let file = read(&writer.finish(at(5)).unwrap()).unwrap();
    assert_eq!(file.records, [Record { at: at(1), kind }]);
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
            .for_each(|record| writer.record(record.at, &record.kind));
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
            "the records have version 9, and this program reads up to version 4; use a newer \
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

#[test]
fn metadata_of_a_flight_recorder_is_read_with_and_without_the_records() {
    let recorder = RecorderMetadata {
        origin_ns: 5,
        since_ns: 2,
        unix_ns: 7,
        cpus: "0-1".into(),
        missed: Some(MissedJob {
            task: 0,
            number: 3,
            cause: "overrun of hog".into(),
            name: "imu".into(),
        }),
        absences: vec![Absence {
            since_ns: 1,
            until_ns: 2,
        }],
        losses: vec![Loss {
            at_ns: 4,
            events: 9,
        }],
        numbers: vec![5],
        ended: vec![EndedTask { task: 0, at_ns: 20 }],
    };
    let set = set(2, &[("imu", "0")]);
    let writer = Writer::new(&set, &Provenance::default(), Vec::new());
    let mut writer = writer.with_recorder(recorder.clone());
    let script = Script::default().at(1).release(0, 3, 4);
    script.play(&mut writer);
    let bytes = writer.finish(at(30)).unwrap();
    let whole = read(&bytes).unwrap();
    assert_eq!(
        (whole.recorder.as_ref(), whole.records.len()),
        (Some(&recorder), 2)
    );
    let part = read_metadata(&bytes).unwrap();
    assert_eq!(
        (part.recorder, part.records.len()),
        (Some(recorder.clone()), 0)
    );
    assert_eq!(recorder.missed_job(), Some(crate::testing::job(0, 3)));
    let task = TaskId::from_index(0);
    assert!(recorder.has_ended(task, at(20)) && !recorder.has_ended(task, at(19)));
    assert_eq!(recorder.cpu_set().len(), 2);
}
