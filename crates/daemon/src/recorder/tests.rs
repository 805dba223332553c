//! What the recorder keeps, and the causes that it names for misses of which the cause is known.

use shiftwork_model::{CpuId, OnOverrun, Priority};

use super::*;

mod files;
mod noise;

const A: TaskId = TaskId::from_index(0);
const B: TaskId = TaskId::from_index(5);

/// Records with instants in microseconds, as the scheduler has them of two tasks: `a` has a cost of 1 ms and a deadline
/// of 4 ms, `b` of 1 ms and 5 ms. The daemon has CPUs 1 and 2.
struct Tape {
    recorder: Recorder,
    /// The job that each task began last, and when.
    jobs: BTreeMap<TaskId, (u64, u64)>,
}

const fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

impl Tape {
    fn on(cpus_of_b: &str) -> Self {
        let ours = "1-2".parse().unwrap();
        let mut tape = Self {
            recorder: Recorder::new(Span::from_s(10), ours, "strong-edf", Instant::ZERO),
            jobs: BTreeMap::new(),
        };
        for (task, name, cpus, deadline_ms) in [(A, "a", "1", 4), (B, "b", cpus_of_b, 5)] {
            tape.recorder
                .know(task, name, 7, &reservation(cpus, deadline_ms));
            tape.tell(0, RecordKind::Entered { task });
        }
        tape
    }

    fn tell(&mut self, at_us: u64, kind: RecordKind) {
        let at = at(at_us);
        self.recorder.record(&Record { at, kind });
    }

    fn job(&self, task: TaskId) -> JobId {
        let number = self.jobs.get(&task).map_or(0, |&(number, _)| number);
        JobId { task, number }
    }

    /// The next job of the task wakes up, and may run.
    fn wakes(&mut self, at_us: u64, task: TaskId, due_us: u64) {
        let number = self.job(task).number + 1;
        self.jobs.insert(task, (number, at_us));
        let (job, deadline) = (self.job(task), at(due_us));
        self.tell(at_us, RecordKind::Released { job, deadline });
        let priority = Priority::MOST_URGENT;
        self.tell(
            at_us,
            RecordKind::Ready {
                job,
                deadline,
                priority,
            },
        );
    }

    fn begins(&mut self, at_us: u64, task: TaskId, cpu: usize) {
        let (cpu, to) = (CpuId::from_index(cpu), Some(self.job(task)));
        self.tell(
            at_us,
            RecordKind::Switched {
                cpu,
                from: None,
                to,
            },
        );
    }

    fn stops(&mut self, at_us: u64, task: TaskId, cpu: usize) {
        let (cpu, from) = (CpuId::from_index(cpu), Some(self.job(task)));
        self.tell(
            at_us,
            RecordKind::Switched {
                cpu,
                from,
                to: None,
            },
        );
    }

    fn runs(&mut self, from_us: u64, to_us: u64, task: TaskId, cpu: usize) {
        self.begins(from_us, task, cpu);
        self.stops(to_us, task, cpu);
    }

    fn blocks(&mut self, at_us: u64, task: TaskId) {
        let job = self.job(task);
        self.tell(at_us, RecordKind::Completed { job });
    }

    /// Polls every 50 ms until then, as the daemon does.
    fn polls_until(&mut self, us: u64) {
        let mut now = self.recorder.polled;
        while now < at(us) {
            now = (now + Span::from_ms(50)).min(at(us));
            self.recorder.advance(now, 0);
        }
    }

    /// What is kept of the miss of the last job of `b`.
    fn recording(&mut self, now_us: u64) -> Recording {
        self.polls_until(now_us);
        self.late();
        let missed = self.recorder.take_missed(at(now_us));
        let missed = missed.expect("it is to be explained");
        self.all(0, Some(missed.job))
    }

    fn all(&self, since_us: u64, missed: Option<JobId>) -> Recording {
        self.recorder
            .recording(at(since_us), usize::MAX, 1_795_000_000_123_000_000, missed)
    }

    fn late(&mut self) {
        let began_us = self.jobs.get(&B).map_or(0, |&(_, began)| began);
        self.recorder.missed(&Miss {
            job: self.job(B),
            release: at(began_us),
            due: at(began_us + 5_000),
        });
    }

    /// The same, explained.
    fn report(&mut self, now_us: u64) -> MissReport {
        report(&self.recording(now_us))
    }

    fn cause(&mut self, now_us: u64) -> String {
        self.report(now_us).cause()
    }
}

fn report(recording: &Recording) -> MissReport {
    let job = recording.metadata.missed_job().expect("it is recorded");
    let report = RecordingAnalysis::new(recording).explain(job);
    let report = report.expect("it was late");
    println!("{}", report.text());
    report
}

fn reservation(cpus: &str, deadline_ms: u64) -> Reservation {
    Reservation {
        cost: Span::from_ms(1),
        period: Span::from_ms(20),
        deadline: Span::from_ms(deadline_ms),
        cpus: cpus.parse().unwrap(),
        priority: Priority::MOST_URGENT,
        on_overrun: OnOverrun::Continue,
    }
}

/// `a` runs for 8 ms instead of one, and `b` waits for it.
fn overrun(cpus_of_b: &str) -> Tape {
    let mut tape = Tape::on(cpus_of_b);
    tape.wakes(1_000, A, 5_000);
    tape.begins(1_000, A, 1);
    tape.wakes(2_000, B, 7_000);
    let job = tape.job(A);
    tape.tell(2_000, RecordKind::BudgetSpent { job });
    tape.stops(9_000, A, 1);
    tape.blocks(9_000, A);
    tape.runs(9_000, 10_000, B, 1);
    tape.blocks(10_000, B);
    tape
}

/// A CPU goes away, and comes back; with the cause of misses by that.
fn absences(index: usize) -> [(RecordKind, RecordKind, &'static str); 3] {
    let cpu = CpuId::from_index(index);
    [
        (
            RecordKind::CpuTaken { cpu },
            RecordKind::CpuReturned { cpu },
            "CPU taken by a higher class",
        ),
        (
            RecordKind::CpuOffline { cpu },
            RecordKind::CpuOnline { cpu },
            "CPU went offline",
        ),
        (
            RecordKind::BackgroundStarted { cpu },
            RecordKind::BackgroundEnded { cpu },
            "background reserve",
        ),
    ]
}

#[test]
fn a_task_that_runs_for_too_long_is_the_cause() {
    assert_eq!(overrun("1").cause(11_000), "overrun of a");
}

#[test]
fn a_cpu_that_was_away_is_the_cause() {
    for (goes, comes, cause) in absences(1) {
        let mut tape = Tape::on("1");
        tape.tell(1_000, goes);
        tape.wakes(2_000, B, 7_000);
        tape.tell(9_000, comes);
        tape.runs(9_010, 10_010, B, 1);
        tape.blocks(10_010, B);
        assert_eq!(tape.cause(11_000), cause);
    }
}

#[test]
fn a_cpu_that_was_away_before_the_recording_begins_still_is() {
    let others = absences(2);
    for ((goes, _, cause), (other_goes, other_comes, _)) in absences(1).into_iter().zip(others) {
        let mut tape = Tape::on("1");
        tape.tell(1_000, goes);
        tape.tell(2_000, other_goes);
        tape.tell(3_000, other_comes);
        tape.wakes(15_000_000, B, 15_005_000);
        let recording = tape.recording(17_000_000);
        assert_eq!(report(&recording).cause(), cause);
        // CPU 0 is not the daemon's, both tasks take part, one CPU is away, and a job is released and ready.
        assert_eq!(recording.records.len(), 6, "{:?}", recording.records);
    }
}

#[test]
fn a_task_that_runs_since_before_the_recording_begins_still_does() {
    let mut tape = Tape::on("1");
    tape.wakes(1_000, A, 5_000);
    tape.begins(1_000, A, 1);
    tape.wakes(15_000_000, B, 15_005_000);
    assert_eq!(tape.cause(17_000_000), "overrun of a");
}

#[test]
fn a_scheduler_that_does_nothing_is_the_cause() {
    let mut tape = Tape::on("1-2");
    tape.wakes(2_000, B, 7_000);
    tape.runs(9_000, 10_000, B, 1);
    tape.blocks(10_000, B);
    assert_eq!(tape.cause(11_000), "scheduler stall");
}

#[test]
fn interrupts_are_the_cause_where_they_are_recorded() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    tape.begins(2_000, B, 1);
    let (job, time) = (tape.job(B), Span::from_us(5_100));
    tape.tell(8_000, RecordKind::Interrupted { job, time });
    tape.stops(8_000, B, 1);
    tape.blocks(8_000, B);
    assert_eq!(tape.cause(11_000), "interrupts");
}

#[test]
fn too_narrow_an_affinity_is_the_cause_and_only_the_daemons_cpus_count() {
    for (is_offline, cause) in [(false, "affinity too narrow"), (true, "overload")] {
        let mut tape = Tape::on("1");
        if is_offline {
            let cpu = CpuId::from_index(2);
            tape.tell(500, RecordKind::CpuOffline { cpu });
        }
        for at in [1_000, 2_000, 3_000, 4_000, 5_000, 6_000] {
            tape.wakes(at, A, at + 400);
            if at == 1_000 {
                tape.wakes(at, B, 6_000);
            }
            tape.runs(at, at + 1_000, A, 1);
            tape.blocks(at + 1_000, A);
        }
        tape.runs(7_000, 8_000, B, 1);
        tape.blocks(8_000, B);
        assert_eq!(tape.cause(11_000), cause);
    }
}

#[test]
fn an_absence_of_the_daemon_is_named_with_the_cause() {
    let mut tape = overrun("1");
    tape.polls_until(1_000);
    tape.recorder.advance(at(901_000), 7);
    let report = tape.report(902_000);
    assert_eq!(report.cause(), "overrun of a");
    let notes = report.notes.join(" ");
    assert!(notes.contains("did not run from 1ms to 901ms"), "{notes}");
    assert!(notes.contains("7 events were lost"), "{notes}");
    assert_eq!(report.to_json()["notes"].as_array().map(Vec::len), Some(2));
    // A later miss has nothing to do with it.
    let mut tape = Tape::on("1-2");
    tape.polls_until(1_000);
    tape.recorder.advance(at(901_000), 0);
    tape.wakes(902_000, B, 907_000);
    assert_eq!(tape.report(2_000_000).notes, Vec::<String>::new());
}

#[test]
fn the_loss_of_a_reservation_is_explained() {
    let asked = Box::new(CpuSet::from_bits(0b1000));
    let demoted = RecordKind::Demoted { task: B, asked };
    for (before, cause) in [
        (
            Some(demoted),
            "it lost its reservation, since it asked for CPUs 3",
        ),
        (None, "it lost its reservation, since CPU 1 was offline"),
    ] {
        let mut tape = Tape::on("1");
        tape.wakes(2_000, B, 7_000);
        let cpu = CpuId::from_index(1);
        tape.tell(3_000, RecordKind::CpuOffline { cpu });
        if let Some(demoted) = before {
            tape.tell(3_010, demoted);
        }
        tape.tell(3_010, RecordKind::Left { task: B });
        let report = tape.report(9_000);
        assert_eq!(report.cause(), cause);
        assert!(report.text().contains("went on in the background"));
    }
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    tape.tell(3_000, RecordKind::Left { task: B });
    tape.recorder.forget(B, at(4_000));
    tape.polls_until(9_000);
    let recording = tape.all(0, None);
    let ended = EndedTask {
        task: 1,
        at_ns: 3_000_000,
    };
    assert_eq!(recording.metadata.ended, [ended]);
    let job = RecordingAnalysis::new(&recording).late()[0];
    let report = RecordingAnalysis::new(&recording).explain(job).unwrap();
    assert!(report.notes[0].starts_with("Its reservation ended at 3ms"));
}

#[test]
fn a_miss_is_explained_when_its_job_is_finished_or_a_second_later() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    let take = |tape: &mut Tape, us: u64| tape.recorder.take_missed(at(us));
    tape.late();
    assert_eq!(take(&mut tape, 1_006_999), None);
    tape.late();
    let missed = take(&mut tape, 1_007_000).unwrap();
    assert_eq!((missed.job.task.index(), missed.release), (1, at(2_000)));
    // At most once a second, and of each task one after the other.
    tape.blocks(1_900_000, B);
    tape.late();
    assert_eq!(take(&mut tape, 1_900_000), None);
    tape.polls_until(2_100_000);
    tape.wakes(2_100_000, B, 2_105_000);
    tape.late();
    assert_eq!(take(&mut tape, 2_106_000), None);
    tape.blocks(2_107_000, B);
    assert!(take(&mut tape, 2_107_000).is_some());
    // One that was finished before its miss was found.
    tape.polls_until(4_000_000);
    tape.wakes(4_000_000, B, 4_005_000);
    tape.blocks(4_006_000, B);
    tape.late();
    assert!(take(&mut tape, 4_006_001).is_some());
}

#[test]
fn a_miss_with_expired_records_makes_room_for_the_next() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    tape.blocks(9_000, B);
    tape.late();
    tape.polls_until(10_003_000);
    assert_eq!(tape.recorder.take_missed(at(10_003_000)), None);
    tape.wakes(10_010_000, B, 10_015_000);
    tape.blocks(10_017_000, B);
    tape.late();
    let missed = tape.recorder.take_missed(at(10_018_000));
    assert_eq!(missed.unwrap().release, at(10_010_000));
}

#[test]
fn records_that_are_too_old_are_forgotten() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000_000, B, 2_005_000);
    tape.blocks(2_006_000, B);
    tape.polls_until(2_500_000);
    // One says that CPU 0 is not the daemon's.
    let count = |tape: &Tape, since_us: u64| tape.all(since_us, None).records.len() - 1;
    assert_eq!(count(&tape, 0), 5);
    // That they take part stays so.
    assert_eq!(count(&tape, 2_000_001), 5);
    assert_eq!(count(&tape, 2_100_000), 2);
    tape.recorder.forget(A, at(1_000_000));
    tape.polls_until(11_500_000);
    assert_eq!(count(&tape, 0), 4);
    assert_eq!(tape.recorder.incarnations.all().len(), 1);
    tape.polls_until(13_000_000);
    assert_eq!(count(&tape, 0), 1);
    let since = tape.recorder.recording(Instant::ZERO, 0, 0, None);
    let since_ns = since.metadata.origin_ns + since.metadata.since_ns;
    assert_eq!(since_ns, 3_000_000_000);
}

#[test]
fn of_jobs_that_ended_nothing_remains() {
    let mut tape = overrun("1");
    tape.polls_until(20_000_000);
    let records = tape.all(0, None).records;
    let entered = |record: &Record| matches!(record.kind, RecordKind::Entered { .. });
    assert!(
        records.len() == 3 && records[1..].iter().all(entered),
        "{records:?}"
    );
}

#[test]
fn a_limit_keeps_the_newest() {
    let mut tape = Tape::on("1");
    for number in 1..=1_000 {
        tape.wakes(number * 1_000, B, number * 1_000 + 5_000);
        tape.blocks(number * 1_000 + 500, B);
    }
    tape.polls_until(1_100_000);
    let records = |of: &Recording| {
        let origin_ns = of.metadata.origin_ns;
        let at = |it: &Record| (it.at.as_ns() + origin_ns, std::mem::discriminant(&it.kind));
        // The first says that CPU 0 is not the daemon's.
        of.records.iter().skip(1).map(at).collect::<Vec<_>>()
    };
    let all = tape.all(0, None);
    let empty = tape.recorder.recording(Instant::ZERO, 0, 0, None);
    // The task set and the names of tracks.
    let fixed = empty.trace().len();
    for bytes in [0, 1_000, 100_000] {
        let some = tape.recorder.recording(Instant::ZERO, bytes, 0, None);
        // What still held from before is there however little there is to be.
        let written = some.trace().len();
        assert!(written <= bytes + fixed + 500, "{written} of {bytes}");
        let since_ns = some.metadata.origin_ns + some.metadata.since_ns;
        let (old, new): (Vec<_>, Vec<_>) = records(&some)
            .into_iter()
            .partition(|(at_ns, _)| *at_ns <= since_ns);
        assert!(records(&all).ends_with(&new), "{bytes}");
        assert!(old.len() <= 5, "{old:?}");
    }
}

#[test]
fn tasks_that_share_a_name_have_their_numbers_behind_it() {
    let mut tape = overrun("1");
    let third = TaskId::from_index(6);
    tape.recorder.know(third, "b", 7, &reservation("1", 5));
    let recording = tape.recording(11_000);
    let names: Vec<&str> = recording
        .set
        .tasks
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b#1", "b#2"]);
    let head = RecordingHead::read(&recording.trace()).unwrap();
    assert_eq!(head.missed.map(|(name, _)| name).as_deref(), Some("b"));
}

#[test]
fn misses_of_a_task_are_counted_from_an_instant_on() {
    let mut tape = overrun("1");
    tape.wakes(20_000, B, 25_000);
    tape.tell(24_000, RecordKind::Left { task: B });
    tape.polls_until(40_000);
    let recording = tape.all(0, None);
    // One job of `b` ended late, and one was dropped before it was due.
    assert_eq!(recording.misses_of(5, at(6_999)), 1);
    assert_eq!(recording.misses_of(5, at(7_000)), 0);
    assert_eq!(recording.misses_of(0, Instant::ZERO), 1);
    assert_eq!(recording.misses_of(1, Instant::ZERO), 0);
}
