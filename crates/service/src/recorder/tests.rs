//! What the recorder remembers, and whom it blames for misses of which the cause is known.

use shiftwork_live::standing::Absence;
use shiftwork_model::{Affinity, CpuId};
use shiftwork_trace::check::{Invariant, Order};

use super::*;

const A: TaskId = TaskId::from_index(0);
const B: TaskId = TaskId::from_index(5);

const FACTS: Facts = Facts {
    invariant: Invariant::Strong,
    order: Order::Edf,
    packing: None,
    immediate: false,
};

/// Facts with instants in microseconds, as the kernel would tell them of two tasks: `a` has a cost of 1 ms and a
/// deadline of 4 ms, `b` of 1 ms and 5 ms.
struct Tape(Recorder);

impl Tape {
    fn on(cpus_of_b: &str) -> Self {
        let mut recorder = Recorder::new(Span::from_s(10), "1-2".parse().unwrap());
        for (id, name, cpus, deadline_ms) in [(A, "a", "1", 4), (B, "b", cpus_of_b, 5)] {
            let affinity = Affinity::new(cpus.parse().unwrap()).unwrap();
            let (cost, period) = (Span::from_ms(1), Span::from_ms(20));
            let task = Task {
                deadline: Span::from_ms(deadline_ms),
                ..Task::periodic(name, cost, period, affinity)
            };
            recorder.know(id, task, Priority::MOST_URGENT);
        }
        let mut tape = Self(recorder);
        tape.tell(
            0,
            A,
            None,
            FactKind::Entered {
                cpus: "1".parse().unwrap(),
            },
        );
        tape.tell(
            0,
            B,
            None,
            FactKind::Entered {
                cpus: cpus_of_b.parse().unwrap(),
            },
        );
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

    /// The explanation of the job of `b` that woke up then.
    fn why(&mut self, began_us: u64, now_us: u64) -> String {
        let miss = Miss {
            task: B,
            began_ns: began_us * 1_000,
            due_ns: (began_us + 5_000) * 1_000,
        };
        let now = Instant::from_ns(now_us * 1_000);
        let found = self.0.explain(&miss, &FACTS, now);
        self.0.keep(found.expect("its beginning is remembered"));
        let last = self.0.explanations(1).pop().expect("it is explained");
        println!("{last}");
        last
    }
}

#[test]
fn who_runs_for_too_long_is_to_blame() {
    let mut tape = Tape::on("1");
    tape.wakes(1_000, A, 5_000);
    tape.tell(1_000, A, Some(1), FactKind::Running);
    tape.wakes(2_000, B, 7_000);
    tape.tell(2_000, A, None, FactKind::Overrun);
    tape.tell(
        9_000,
        A,
        Some(1),
        FactKind::Stopped {
            ran: Span::from_ms(8),
        },
    );
    tape.tell(9_000, A, None, FactKind::Blocked);
    tape.runs(9_000, 10_000, B, 1);
    tape.tell(10_000, B, None, FactKind::Blocked);
    let why = tape.why(2_000, 11_000);
    assert!(
        why.contains("overrun of a") || why.contains("overran"),
        "{why}"
    );
}

#[test]
fn a_cpu_that_was_taken_or_offline_is_to_blame() {
    for (absence, word) in [(Absence::Taken, "higher"), (Absence::Offline, "offline")] {
        let mut tape = Tape::on("1");
        tape.cpu(1_000, 1, FactKind::CpuLost { why: absence });
        tape.wakes(2_000, B, 7_000);
        tape.cpu(9_000, 1, FactKind::CpuBack { why: absence });
        tape.runs(9_010, 10_010, B, 1);
        tape.tell(10_010, B, None, FactKind::Blocked);
        let why = tape.why(2_000, 11_000);
        assert!(why.contains(word), "{why}");
    }
}

#[test]
fn a_scheduler_that_does_nothing_is_to_blame() {
    let mut tape = Tape::on("1-2");
    tape.wakes(2_000, B, 7_000);
    tape.runs(9_000, 10_000, B, 1);
    tape.tell(10_000, B, None, FactKind::Blocked);
    let why = tape.why(2_000, 11_000);
    assert!(why.contains("stall"), "{why}");
}

#[test]
fn a_job_that_is_not_finished_is_explained_as_far_as_it_came() {
    let mut tape = Tape::on("1");
    tape.cpu(
        1_000,
        1,
        FactKind::CpuLost {
            why: Absence::Taken,
        },
    );
    tape.wakes(2_000, B, 7_000);
    let why = tape.why(2_000, 8_000);
    assert!(why.contains("higher"), "{why}");
}

#[test]
fn what_is_too_old_is_forgotten() {
    let mut tape = Tape::on("1");
    tape.wakes(2_000_000, B, 2_005_000);
    let lines = |tape: &Tape, since_us: u64| {
        let text = tape.0.lines(Instant::from_ns(since_us * 1_000));
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(lines(&tape, 0).len(), 4);
    let woken = r#"{"at_ns":2000000000,"task":5,"name":"b","what":"woken"}"#;
    assert_eq!(lines(&tape, 1_000_000)[0], woken);
    tape.0.forget(A, Instant::from_ns(1_000_000_000));
    tape.0.advance(Instant::from_ns(11_500_000_000));
    assert_eq!(lines(&tape, 0).len(), 2);
    assert!(!tape.0.tasks.contains_key(&A));
    assert!(tape.0.tasks.contains_key(&B));
    tape.0.advance(Instant::from_ns(13_000_000_000));
    assert_eq!(lines(&tape, 0), Vec::<String>::new());
}

#[test]
fn the_last_explanations_are_kept() {
    let mut tape = Tape::on("1");
    for number in 0..EXPLANATIONS_MAX as u64 + 7 {
        let at = 10_000 * (number + 1);
        tape.wakes(at, B, at + 5_000);
        tape.cpu(
            at + 1,
            1,
            FactKind::CpuLost {
                why: Absence::Taken,
            },
        );
        tape.cpu(
            at + 7_000,
            1,
            FactKind::CpuBack {
                why: Absence::Taken,
            },
        );
        tape.tell(at + 8_000, B, None, FactKind::Blocked);
        tape.why(at, at + 9_000);
    }
    assert_eq!(tape.0.explanations(usize::MAX).len(), EXPLANATIONS_MAX);
    assert_eq!(tape.0.explanations(2).len(), 2);
}
