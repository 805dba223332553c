//! What the recorder remembers, and whom it blames for misses of which the cause is known.

use shiftwork_live::standing::Absence;
use shiftwork_model::{CpuId, OnOverrun, Priority, RandomStream};

use super::*;

const A: TaskId = TaskId::from_index(0);
const B: TaskId = TaskId::from_index(5);

/// Facts with instants in microseconds, as the kernel would tell them of two tasks: `a` has a cost of 1 ms and a
/// deadline of 4 ms, `b` of 1 ms and 5 ms. The agent has CPUs 1 and 2.
struct Tape(Recorder);

impl Tape {
    fn on(cpus_of_b: &str) -> Self {
        let ours = "1-2".parse().unwrap();
        let recorder = Recorder::new(Span::from_s(10), ours, "strong-edf", Instant::ZERO);
        let mut tape = Self(recorder);
        for (task, name, cpus, deadline_ms) in [(A, "a", "1", 4), (B, "b", cpus_of_b, 5)] {
            let reservation = reservation(cpus, deadline_ms);
            tape.0.know(task, name, &reservation, Instant::ZERO);
            let cpus = reservation.cpus;
            tape.tell(0, task, None, FactKind::Entered { cpus });
        }
        tape
    }

    fn tell(&mut self, at_us: u64, task: TaskId, cpu: Option<usize>, what: FactKind) {
        self.0.tell(Fact {
            at_ns: at_us * 1_000,
            task: Some(task),
            cpu: cpu.map(CpuId::from_index),
            what,
        });
    }

    fn cpu(&mut self, at_us: u64, cpu: usize, what: FactKind) {
        self.0.tell(Fact {
            at_ns: at_us * 1_000,
            task: None,
            cpu: Some(CpuId::from_index(cpu)),
            what,
        });
    }

    /// Wakes up, and may run.
    fn wakes(&mut self, at_us: u64, task: TaskId, due_us: u64) {
        self.tell(at_us, task, None, FactKind::Woken);
        let deadline_ns = due_us * 1_000;
        self.tell(at_us, task, None, FactKind::Ready { deadline_ns });
    }

    fn runs(&mut self, from_us: u64, to_us: u64, task: TaskId, cpu: usize) {
        self.tell(from_us, task, Some(cpu), FactKind::Running);
        let ran = Span::from_us(to_us - from_us);
        self.tell(to_us, task, Some(cpu), FactKind::Stopped { ran });
    }

    fn blocks(&mut self, at_us: u64, task: TaskId) {
        self.tell(at_us, task, None, FactKind::Blocked);
    }

    /// Looks every 50 ms until then, as the agent does.
    fn looks_until(&mut self, us: u64) {
        let mut at = self.0.looked;
        let end = Instant::from_ns(us * 1_000);
        while at < end {
            at = (at + Span::from_ms(50)).min(end);
            self.0.advance(at, 0);
        }
    }

    /// What is remembered of the miss of the job of `b` that began then.
    fn recording(&mut self, began_us: u64, now_us: u64) -> Recording {
        self.looks_until(now_us);
        self.late(began_us);
        let now = Instant::from_ns(now_us * 1_000);
        let missed = self.0.take_missed(now).expect("it is to be explained");
        let mut recording = self.0.recording(Instant::ZERO, usize::MAX, 0);
        recording.missed = Some(missed);
        recording
    }

    fn late(&mut self, began_us: u64) {
        self.0.missed(&Miss {
            task: B,
            began_ns: began_us * 1_000,
            due_ns: (began_us + 5_000) * 1_000,
        });
    }

    /// The same, explained.
    fn told(&mut self, began_us: u64, now_us: u64) -> Told {
        told(&self.recording(began_us, now_us))
    }

    fn why(&mut self, began_us: u64, now_us: u64) -> String {
        self.told(began_us, now_us).cause()
    }
}

fn told(recording: &Recording) -> Told {
    let tale = Tale::of(recording);
    let job = tale
        .job(&recording.missed.unwrap())
        .expect("it is recorded");
    let told = tale.explain(job).expect("it was late");
    println!("{}", told.text());
    told
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

/// `b` misses since `a` runs for 8 ms instead of one.
fn overrun(cpus_of_b: &str) -> Tape {
    let mut tape = Tape::on(cpus_of_b);
    tape.wakes(1_000, A, 5_000);
    tape.tell(1_000, A, Some(1), FactKind::Running);
    tape.wakes(2_000, B, 7_000);
    tape.tell(2_000, A, None, FactKind::Overrun);
    let ran = Span::from_ms(8);
    tape.tell(9_000, A, Some(1), FactKind::Stopped { ran });
    tape.blocks(9_000, A);
    tape.runs(9_000, 10_000, B, 1);
    tape.blocks(10_000, B);
    tape
}

#[test]
fn who_runs_for_too_long_is_to_blame() {
    assert_eq!(overrun("1").why(2_000, 11_000), "overrun of a");
}

#[test]
fn a_cpu_that_was_away_is_to_blame() {
    for (why, cause) in [
        (Absence::Taken, "CPU taken by a higher class"),
        (Absence::Offline, "CPU went offline"),
        (Absence::Background, "background reserve"),
    ] {
        let mut tape = Tape::on("1");
        tape.cpu(1_000, 1, FactKind::CpuLost { why });
        tape.wakes(2_000, B, 7_000);
        tape.cpu(9_000, 1, FactKind::CpuBack { why });
        tape.runs(9_010, 10_010, B, 1);
        tape.blocks(10_010, B);
        assert_eq!(tape.why(2_000, 11_000), cause);
    }
}

#[test]
fn a_cpu_that_was_away_before_the_record_begins_still_is() {
    for (why, cause) in [
        (Absence::Taken, "CPU taken by a higher class"),
        (Absence::Offline, "CPU went offline"),
    ] {
        let mut tape = Tape::on("1");
        tape.cpu(1_000, 1, FactKind::CpuLost { why });
        tape.cpu(2_000, 2, FactKind::CpuLost { why });
        tape.cpu(3_000, 2, FactKind::CpuBack { why });
        tape.wakes(15_000_000, B, 15_005_000);
        let recording = tape.recording(15_000_000, 17_000_000);
        assert_eq!(told(&recording).cause(), cause);
        // Both tasks take part, and one CPU is away.
        assert_eq!(recording.facts.len(), 5, "{:?}", recording.facts);
    }
}

#[test]
fn who_runs_since_before_the_record_begins_still_does() {
    let mut tape = Tape::on("1");
    tape.wakes(1_000, A, 5_000);
    tape.tell(1_000, A, Some(1), FactKind::Running);
    tape.wakes(15_000_000, B, 15_005_000);
    assert_eq!(tape.why(15_000_000, 17_000_000), "overrun of a");
}

#[test]
fn a_scheduler_that_does_nothing_is_to_blame() {
    let mut tape = Tape::on("1-2");
    tape.wakes(2_000, B, 7_000);
    tape.runs(9_000, 10_000, B, 1);
    tape.blocks(10_000, B);
    assert_eq!(tape.why(2_000, 11_000), "scheduler stall");
}

#[test]
fn interrupts_are_to_blame_where_the_kernel_tells_of_them() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    tape.tell(2_000, B, Some(1), FactKind::Running);
    let ran = Span::from_us(900);
    tape.tell(8_000, B, Some(1), FactKind::Stopped { ran });
    tape.blocks(8_000, B);
    assert_eq!(tape.why(2_000, 11_000), "interrupts");
}

#[test]
fn too_narrow_an_affinity_is_to_blame_and_only_the_agents_cpus_count() {
    for (cpu_2, cause) in [
        (None, "affinity too narrow"),
        (Some(Absence::Offline), "overload"),
    ] {
        let mut tape = Tape::on("1");
        if let Some(why) = cpu_2 {
            tape.cpu(500, 2, FactKind::CpuLost { why });
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
        assert_eq!(tape.why(1_000, 11_000), cause);
    }
}

#[test]
fn an_agent_that_was_away_is_named_with_the_cause() {
    let mut tape = overrun("1");
    tape.looks_until(1_000);
    tape.0.advance(Instant::from_ns(901_000_000), 7);
    let told = tape.told(2_000, 902_000);
    assert_eq!(told.cause(), "overrun of a");
    let notes = told.notes.join(" ");
    assert!(notes.contains("away from 1ms to 901ms"), "{notes}");
    assert!(notes.contains("7 facts were lost"), "{notes}");
    assert_eq!(told.to_json()["notes"].as_array().map(Vec::len), Some(2));
    // Who is late later has nothing to do with it.
    let mut tape = Tape::on("1-2");
    tape.looks_until(1_000);
    tape.0.advance(Instant::from_ns(901_000_000), 0);
    tape.wakes(902_000, B, 907_000);
    let told = tape.told(902_000, 2_000_000);
    assert_eq!(told.notes, Vec::<String>::new());
}

#[test]
fn who_lost_its_reservation_is_told_why() {
    let asked = CpuSet::from_bits(0b1000);
    let offline = FactKind::CpuLost {
        why: Absence::Offline,
    };
    for (lost, cause) in [
        (
            FactKind::Demoted { asked },
            "it lost its reservation, since it asked for CPUs 3",
        ),
        (
            FactKind::Left,
            "it lost its reservation, since CPU 1 was offline",
        ),
    ] {
        let mut tape = Tape::on("1");
        tape.wakes(2_000, B, 7_000);
        tape.cpu(3_000, 1, offline);
        tape.tell(3_010, B, None, lost);
        let told = tape.told(2_000, 9_000);
        assert_eq!(told.cause(), cause);
        assert!(told.text().contains("went on in the background"));
    }
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    tape.tell(3_000, B, None, FactKind::Left);
    tape.0.forget(B, Instant::from_ns(4_000_000));
    let recording = tape.0.recording(Instant::ZERO, usize::MAX, 0);
    assert_eq!(recording.lives[&1].gone_ns, Some(3_000_000));
}

#[test]
fn a_miss_is_explained_when_its_job_is_finished_or_a_second_later() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    let take = |tape: &mut Tape, us: u64| tape.0.take_missed(Instant::from_ns(us * 1_000));
    tape.late(2_000);
    assert_eq!(take(&mut tape, 1_006_999), None);
    tape.late(2_000);
    let missed = take(&mut tape, 1_007_000).unwrap();
    assert_eq!((missed.life, missed.began_ns), (1, 2_000_000));
    // Not more often than once a second, and of each task one after the other.
    tape.late(30_000);
    tape.blocks(1_900_000, B);
    assert_eq!(take(&mut tape, 1_900_000), None);
    tape.looks_until(2_100_000);
    tape.wakes(2_100_000, B, 2_105_000);
    tape.late(2_100_000);
    assert_eq!(take(&mut tape, 2_106_000), None);
    tape.blocks(2_107_000, B);
    assert!(take(&mut tape, 2_107_000).is_some());
    // One that was finished before its miss was found.
    tape.looks_until(4_000_000);
    tape.wakes(4_000_000, B, 4_005_000);
    tape.blocks(4_006_000, B);
    tape.late(4_000_000);
    assert!(take(&mut tape, 4_006_001).is_some());
}

#[test]
fn a_miss_that_had_to_wait_until_its_beginning_is_forgotten_makes_room_for_the_next() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000, B, 7_000);
    tape.blocks(9_000, B);
    tape.late(2_000);
    tape.looks_until(10_003_000);
    assert_eq!(tape.0.take_missed(Instant::from_ns(10_003_000_000)), None);
    tape.wakes(10_010_000, B, 10_015_000);
    tape.blocks(10_017_000, B);
    tape.late(10_010_000);
    let missed = tape.0.take_missed(Instant::from_ns(10_018_000_000));
    assert_eq!(missed.unwrap().began_ns, 10_010_000_000);
}

#[test]
fn what_is_too_old_is_forgotten() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000_000, B, 2_005_000);
    tape.blocks(2_006_000, B);
    tape.looks_until(2_500_000);
    let count = |tape: &Tape, since_us: u64| {
        let since = Instant::from_ns(since_us * 1_000);
        tape.0.recording(since, usize::MAX, 0).facts.len()
    };
    assert_eq!(count(&tape, 0), 5);
    // That they take part stays so.
    assert_eq!(count(&tape, 2_000_001), 5);
    assert_eq!(count(&tape, 2_100_000), 2);
    tape.0.forget(A, Instant::from_ns(1_000_000_000));
    tape.looks_until(11_500_000);
    assert_eq!(count(&tape, 0), 5);
    assert_eq!(tape.0.lives.all().len(), 1);
    tape.looks_until(13_000_000);
    assert_eq!(count(&tape, 0), 2);
    assert_eq!(
        tape.0.recording(Instant::ZERO, 0, 0).since_ns,
        3_000_000_000
    );
}

#[test]
fn of_what_is_over_nothing_remains() {
    let mut tape = overrun("1");
    tape.looks_until(20_000_000);
    let facts = tape.0.recording(Instant::ZERO, usize::MAX, 0).facts;
    let entered = |noted: &Noted| matches!(noted.fact.what, FactKind::Entered { .. });
    assert!(facts.len() == 2 && facts.iter().all(entered), "{facts:?}");
}

#[test]
fn a_limit_keeps_the_newest() {
    let mut tape = Tape::on("1");
    for number in 1..=1_000 {
        tape.wakes(number * 1_000, B, number * 1_000 + 5_000);
        tape.blocks(number * 1_000 + 500, B);
    }
    tape.looks_until(1_100_000);
    let all = tape.0.recording(Instant::ZERO, usize::MAX, 0);
    for bytes in [0, 1_000, 100_000] {
        let some = tape.0.recording(Instant::ZERO, bytes, 0);
        let lines = some.lines(None);
        let facts: usize = lines.lines().skip(3).map(str::len).sum();
        // What is still so from before is there however little there is to be.
        assert!(facts <= bytes + 4 * 200, "{facts} of {bytes}");
        assert!(some.since_ns >= all.since_ns);
        let (old, new): (Vec<Noted>, _) = some
            .facts
            .iter()
            .partition(|noted| noted.fact.at_ns < some.since_ns);
        assert!(all.facts.ends_with(&new), "{bytes}");
        assert!(old.len() <= 4, "{old:?}");
    }
}

#[test]
fn what_is_written_reads_back() {
    let mut tape = overrun("1");
    let changed = Reservation {
        cost: Span::from_ms(2),
        ..reservation("1", 5)
    };
    tape.0
        .know(B, "b \"\\ü", &changed, Instant::from_ns(8_000_000));
    tape.0.forget(A, Instant::from_ns(9_500_000));
    for what in [
        FactKind::Yielded,
        FactKind::Spent,
        FactKind::Replenished { deadline_ns: 7 },
        FactKind::Assigned,
        FactKind::Affinity {
            cpus: CpuSet::from_bits(2),
        },
        FactKind::Demoted {
            asked: CpuSet::from_bits(4),
        },
        FactKind::Narrowed {
            cpus: Some(CpuSet::from_bits(2)),
        },
        FactKind::Narrowed { cpus: None },
        FactKind::Prioritized {
            priority: Priority::LEAST_URGENT,
        },
        FactKind::Left,
    ] {
        tape.tell(10_000, B, Some(2), what);
    }
    for why in [Absence::Offline, Absence::Taken, Absence::Background] {
        tape.cpu(10_000, 2, FactKind::CpuLost { why });
        tape.cpu(10_000, 2, FactKind::CpuBack { why });
    }
    let mut recording = tape.recording(2_000, 600_000);
    recording.own = vec![
        Own::Away {
            since_ns: 1,
            until_ns: 5,
        },
        Own::Lost { at_ns: 6, facts: 2 },
    ];
    recording.unix_ns = 1_795_000_000_123_000_000;
    let text = recording.lines(Some("/folder"));
    assert_eq!(Recording::read(&text).unwrap(), recording);
    let head = Head::read(text.lines().next().unwrap()).unwrap();
    assert_eq!(head.folder.as_deref(), Some("/folder"));
    assert_eq!(
        head.missed,
        Some(("b".to_owned(), told(&recording).cause()))
    );
    assert_eq!(head.unix_ns, recording.unix_ns);
    assert!(text.contains("\"utc\":\"2026-11-18T"), "{text}");
    let more = format!("{text}{{\"at_ns\":9,\"what\":\"seen-by-nobody\"}}\n");
    assert_eq!(Recording::read(&more).unwrap(), recording);
}

#[test]
fn what_is_no_record_is_told_and_nothing_panics() {
    let text = overrun("1").recording(2_000, 11_000).lines(None);
    for (before, after, wanted) in [
        (
            "\"what\":\"record\"",
            "\"what\":\"run\"",
            "line 1: it does not begin",
        ),
        (
            "\"schema_version\":1",
            "\"schema_version\":2",
            "line 1: `schema_version` is not 1",
        ),
        ("\"cpus\":\"1,2\"", "\"cpus\":\"2-1\"", "line 1: `cpus`: "),
        ("\"ran_ns\"", "\"run_ns\"", "`stopped` is not whole"),
        ("\"cpu\":1,", "\"cpu\":1000000,", "`running` is not whole"),
    ] {
        let changed = text.replace(before, after);
        assert_ne!(changed, text, "{before}");
        let said = Recording::read(&changed).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said}");
        assert!(said.contains("`shiftwork record` prints"), "{said}");
    }
    assert_eq!(Recording::read("").unwrap_err().line, 1);
    let (mut read, mut wrong) = (0, 0);
    for seed in 1..=2_000 {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            // Digits most of all, which mean something else afterwards.
            bytes[at] = match bytes[at] {
                b'0'..=b'9' => b'0' + random.below(10) as u8,
                _ => random.below(128) as u8,
            };
        }
        let Ok(damaged) = String::from_utf8(bytes) else {
            continue;
        };
        match Recording::read(&damaged) {
            Ok(recording) => {
                let tale = Tale::of(&recording);
                for job in tale.late() {
                    let _ = tale.explain(job).map(|told| told.text());
                }
                read += 1;
            }
            Err(_) => wrong += 1,
        }
    }
    assert!(read > 50 && wrong > 50, "{read} read, {wrong} did not");
}

#[test]
fn the_clerk_explains_and_keeps_what_it_is_given_and_says_once_that_it_cannot() {
    let above = tempfile::tempdir().unwrap();
    let folder = Folder {
        path: above.path().join("records"),
        files_max: 2,
    };
    let mut clerk = Clerk::begin(Some(folder.clone()), Span::from_ms(10)).unwrap();
    let mut now = Instant::ZERO;
    let mut given = |clerk: &mut Clerk, recording: &Recording| {
        assert!(clerk.is_idle(now));
        clerk.take(recording.clone(), now);
        // It is as if this took a millisecond.
        now += Span::from_ms(1);
        while clerk.began.is_some() {
            assert!(!clerk.is_idle(now), "it rests first");
            std::thread::yield_now();
        }
        now += Span::from_ns(8_999_999);
        assert!(!clerk.is_idle(now), "not yet");
        now += Span::from_ns(1);
    };
    let mut recording = overrun("1").recording(2_000, 11_000);
    given(&mut clerk, &recording);
    // Too early for another.
    recording.until_ns += Span::from_ms(9).as_ns();
    given(&mut clerk, &recording);
    let kept = list(&folder.path).unwrap();
    assert_eq!(kept.len(), 1);
    let text = std::fs::read_to_string(&kept[0]).unwrap();
    assert!(text.contains("\"cause\":\"overrun of a\""), "{text}");
    assert_eq!(
        told(&Recording::read(&text).unwrap()).cause(),
        "overrun of a"
    );
    let news = clerk.take_news();
    assert_eq!(
        news,
        [format!("what led to it is in {}", kept[0].display())]
    );
    std::fs::remove_dir_all(&folder.path).unwrap();
    std::fs::write(&folder.path, "in the way").unwrap();
    for _ in 0..EXPLAINED {
        recording.until_ns += Span::from_ms(10).as_ns();
        given(&mut clerk, &recording);
    }
    let news = clerk.take_news().join("\n");
    assert_eq!(news.matches("misses are not kept in").count(), 1, "{news}");
    const EXPLAINED: usize = 110;
    assert_eq!(clerk.explanations(usize::MAX).len(), 100);
    assert!(clerk.explanations(2)[1].contains("cause: overrun of a"));
    std::fs::remove_file(&folder.path).unwrap();
    recording.until_ns += Span::from_ms(10).as_ns();
    given(&mut clerk, &recording);
    assert_eq!(list(&folder.path).unwrap().len(), 1);
}

/// Whatever the kernel may tell, in whatever order: nothing panics, and the account of every late job adds up.
#[test]
fn noise_is_explained_as_well_as_it_can_be() {
    let seeds = match std::env::var_os("SHIFTWORK_LONG") {
        Some(_) => 20_000,
        None => 100,
    };
    let mut explained = 0;
    for seed in 1..=seeds {
        let mut random = RandomStream::new(seed, 0, 0);
        let mut tape = Tape::on("1-2");
        let mut at_us = 0;
        for _ in 0..150 {
            at_us += random.below(30_000) * random.below(2);
            let task = [A, B][random.below(2) as usize];
            let cpu = 1 + random.below(2) as usize;
            let cpus = CpuSet::from_bits(1 + random.below(15));
            let ns = at_us * 1_000;
            let why = [Absence::Offline, Absence::Taken, Absence::Background];
            let why = why[random.below(3) as usize];
            let what = match random.below(22) {
                0..=2 => FactKind::Woken,
                3..=5 => FactKind::Ready {
                    deadline_ns: ns + random.below(9_000_000),
                },
                6 | 7 => FactKind::Blocked,
                8 => FactKind::Yielded,
                9 => FactKind::Spent,
                10 => FactKind::Replenished {
                    deadline_ns: ns + random.below(9_000_000),
                },
                11..=13 => FactKind::Running,
                14..=16 => FactKind::Stopped {
                    ran: Span::from_us(random.below(20_000)),
                },
                17 => FactKind::Entered { cpus },
                18 => FactKind::Left,
                19 => FactKind::Demoted { asked: cpus },
                20 => FactKind::Narrowed { cpus: Some(cpus) },
                _ => {
                    tape.cpu(at_us, cpu, FactKind::CpuLost { why });
                    tape.cpu(at_us, 3 - cpu, FactKind::CpuBack { why });
                    continue;
                }
            };
            tape.tell(at_us, task, Some(cpu), what);
            match random.below(60) {
                0 => tape.0.forget(task, Instant::from_ns(ns)),
                1 => {
                    let other = reservation("1-2", 1 + random.below(9));
                    tape.0.know(task, "other", &other, Instant::from_ns(ns));
                }
                _ => {}
            }
        }
        tape.looks_until(at_us + 10_000);
        for since_ms in [0, 500, 1_500] {
            let since = Instant::from_ns(since_ms * 1_000_000);
            let recording = tape.0.recording(since, usize::MAX, 0);
            let recording = Recording::read(&recording.lines(None)).unwrap();
            let tale = Tale::of(&recording);
            for job in tale.late() {
                let Some(told) = tale.explain(job) else {
                    continue;
                };
                assert!(!told.text().is_empty());
                let it = told.explanation;
                let sum = it.parts.iter().fold(Span::ZERO, |sum, part| sum + part.1);
                assert_eq!(
                    sum,
                    it.until.late_since(it.release),
                    "seed {seed}, since {since_ms} ms, {job:?}"
                );
                explained += 1;
            }
        }
    }
    assert!(explained > 300, "{explained}");
}
