//! Recordings as files.

use std::sync::Arc;

use shiftwork_model::{NotReadyReason, RandomStream};

use super::*;

#[test]
fn a_recording_that_is_written_reads_back() {
    let mut tape = overrun("1");
    tape.recorder.forget(A, at(9_500));
    let (task, job) = (B, tape.job(B));
    let cpus = CpuSet::from_bits(2);
    let deadline = at(12_000);
    for kind in [
        RecordKind::Replenished {
            task,
            budget: Span::from_ms(1),
            deadline,
        },
        RecordKind::AffinitySet {
            task,
            affinity: Box::new(Affinity::new(cpus).unwrap()),
        },
        RecordKind::PrioritySet {
            task,
            priority: Priority::LEAST_URGENT,
        },
        RecordKind::NotReady {
            job,
            reason: NotReadyReason::Throttled,
        },
        RecordKind::Demoted {
            task,
            asked: Box::new(cpus),
        },
        RecordKind::Left { task },
    ] {
        tape.tell(10_000, kind);
    }
    let mut recording = tape.recording(600_000);
    recording.metadata.absences.push(Absence {
        since_ns: 1,
        until_ns: 5,
    });
    recording.metadata.missed.as_mut().unwrap().cause = report(&recording).cause();
    let trace = recording.trace();
    let mut read = Recording::read(&trace).unwrap();
    // Text knows no names of task sets but its own, and no users.
    read.set.name = recording.set.name.clone();
    read.users = recording.users.clone();
    assert_eq!(read, recording);
    let head = RecordingHead::read(&trace).unwrap();
    let missed = Some(("b".to_owned(), report(&recording).cause()));
    assert_eq!(
        (head.missed, head.unix_ns),
        (missed, recording.metadata.unix_ns)
    );
}

#[test]
fn damaged_bytes_are_refused_or_explained_and_nothing_panics() {
    let trace = overrun("1").recording(11_000).trace();
    assert!(matches!(
        Recording::read(b"{}"),
        Err(RecordingError::Trace(_))
    ));
    let (mut read, mut wrong) = (0, 0);
    for seed in 1..=2_000 {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut damaged = trace.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = random.below(256) as u8;
        }
        match Recording::read(&damaged) {
            Ok(recording) => {
                let analysis = RecordingAnalysis::new(&recording);
                for job in analysis.late() {
                    let _ = analysis.explain(job).map(|report| report.text());
                }
                read += 1;
            }
            Err(_) => wrong += 1,
        }
    }
    assert!(read > 50 && wrong > 50, "{read} read, {wrong} did not");
}

#[test]
fn explainer_keeps_recordings_and_reports_failure_to() {
    let above = tempfile::tempdir().unwrap();
    let folder = Folder {
        path: above.path().join("records"),
        files_max: 2,
    };
    let mut explainer = {
        let disk = Arc::new(crate::files::Disk);
        MissExplainer::begin(Some(folder.clone()), Span::from_ms(10), disk).unwrap()
    };
    let mut now = Instant::ZERO;
    let mut given = |explainer: &mut MissExplainer, recording: &Recording| {
        assert!(explainer.is_idle(now));
        explainer.take(recording.clone(), TaskId::from_index(8), now);
        // It is as if this took a millisecond.
        now += Span::from_ms(1);
        while explainer.began.is_some() {
            assert!(!explainer.is_idle(now), "it rests first");
            std::thread::yield_now();
        }
        now += Span::from_ns(8_999_999);
        assert!(!explainer.is_idle(now), "not yet");
        now += Span::from_ns(1);
    };
    let mut recording = overrun("1").recording(11_000);
    given(&mut explainer, &recording);
    // Too early for another.
    recording.until += Span::from_ms(9);
    given(&mut explainer, &recording);
    let kept = list(&folder.path).unwrap();
    assert_eq!(kept.len(), 1);
    let trace = std::fs::read(&kept[0]).unwrap();
    let missed = RecordingHead::read(&trace).unwrap().missed;
    assert_eq!(missed, Some(("b".to_owned(), "overrun of a".to_owned())));
    let kept_one = Recording::read(&trace).unwrap();
    assert_eq!(report(&kept_one).cause(), "overrun of a");
    let news = explainer.take_news();
    assert_eq!(
        news,
        [format!("what led to it is in {}", kept[0].display())]
    );
    std::fs::remove_dir_all(&folder.path).unwrap();
    std::fs::write(&folder.path, "in the way").unwrap();
    for _ in 0..EXPLAINED {
        recording.until += Span::from_ms(10);
        given(&mut explainer, &recording);
    }
    let why = explainer.take_kept().unwrap().unwrap_err();
    assert!(why.starts_with("misses are not kept in"), "{why}");
    assert_eq!(explainer.take_kept(), None);
    const EXPLAINED: usize = 110;
    assert_eq!(explainer.explanations(0, usize::MAX).len(), 100);
    assert!(explainer.explanations(0, 2)[1].contains("cause: overrun of a"));
    let of = |user, task| explainer.misses(user, TaskId::from_index(task), 1);
    let newest = &of(0, 8)[0];
    assert_eq!(
        (newest.cause.as_str(), newest.ended),
        ("overrun of a", true)
    );
    assert_eq!([of(0, 7), of(4_711, 8)], [vec![], vec![]]);
    std::fs::remove_file(&folder.path).unwrap();
    recording.until += Span::from_ms(10);
    given(&mut explainer, &recording);
    assert_eq!(list(&folder.path).unwrap().len(), 1);
}
